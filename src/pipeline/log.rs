//! The log of a run: one event a line, each with time, pass, kind, scope and result.

use super::config::Config;
use super::key::SiteKey;
use super::run::{PassRun, Run, StopReason};
use super::unmatched::Unmatched;
use crate::passes::Pass;
use serde::Serialize;
use std::sync::Arc;

/// What an event is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The resolved configuration, first of all; and what of it fitted nothing.
    Configuration,
    /// One site.
    Site,
    /// One pass in one round.
    Pass,
    /// The end of the run.
    End,
}

/// How it went, with the reason.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum Outcome {
    Configured {
        config: String,
        plan: Vec<String>,
    },
    Applied {
        step: u32,
        what: String,
    },
    Excluded,
    /// An exclusion that fits nothing.
    Unmatched {
        message: String,
    },
    Blocked {
        condition: String,
        blame: String,
    },
    /// Rolled back.
    Failed {
        message: String,
    },
    Done {
        sites: usize,
        declined: usize,
        blocked: usize,
        failed: usize,
        nodes_before: usize,
        nodes_after: usize,
    },
    Stopped {
        reason: String,
        rounds: u32,
        steps: usize,
    },
}

/// One line of the log.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Event {
    /// Seconds that it took.
    pub seconds: f64,
    pub round: u32,
    /// Empty for the run as a whole.
    pub pass: Arc<str>,
    pub kind: Kind,
    /// Site key, node or model.
    pub scope: String,
    #[serde(flatten)]
    pub outcome: Outcome,
}

impl Event {
    pub(super) fn configuration(config: &Config, plan: &[Arc<dyn Pass>]) -> Event {
        let plan = plan.iter().map(|p| p.info().name.to_owned()).collect();
        let outcome = Outcome::Configured { config: config.to_toml(), plan };
        Event {
            seconds: 0.0,
            round: 0,
            pass: "".into(),
            kind: Kind::Configuration,
            scope: "model".into(),
            outcome,
        }
    }

    pub(super) fn site(done: &PassRun, round: u32, key: &SiteKey, seconds: f64, outcome: Outcome) -> Event {
        Event::at(done, round, key.to_string(), seconds, outcome)
    }

    pub(super) fn at(done: &PassRun, round: u32, scope: String, seconds: f64, outcome: Outcome) -> Event {
        Event { seconds, round, pass: done.pass.clone(), kind: Kind::Site, scope, outcome }
    }

    pub(super) fn pass(done: &PassRun, round: u32) -> Event {
        let outcome = Outcome::Done {
            sites: done.steps.len(),
            declined: done.declined,
            blocked: done.blocked.len(),
            failed: done.failures.len(),
            nodes_before: done.nodes_before,
            nodes_after: done.nodes_after,
        };
        Event {
            seconds: done.seconds,
            round,
            pass: done.pass.clone(),
            kind: Kind::Pass,
            scope: "model".into(),
            outcome,
        }
    }

    pub(super) fn unmatched(unmatched: &Unmatched) -> Event {
        Event {
            seconds: 0.0,
            round: 0,
            pass: "".into(),
            kind: Kind::Configuration,
            scope: unmatched.exclusion.clone(),
            outcome: Outcome::Unmatched { message: unmatched.text.clone() },
        }
    }

    pub(super) fn end(run: &Run) -> Event {
        let reason = match &run.stop {
            StopReason::Cycle { passes } => format!("cycle: {} undo each other", passes.join(" and ")),
            other => other.name().to_owned(),
        };
        let outcome = Outcome::Stopped { reason, rounds: run.rounds, steps: run.steps.len() };
        Event {
            seconds: run.seconds,
            round: run.rounds,
            pass: "".into(),
            kind: Kind::End,
            scope: "model".into(),
            outcome,
        }
    }
}
