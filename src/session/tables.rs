//! The long lists about a run: its rewrites, its log, and what differs afterwards. Made in the background, with the run
//! or the picture, because a large model has tens of thousands of rows.

use super::changes::{self, Change};
use crate::ir::{Node, NodeId};
use crate::pipeline::log::{Event, Kind, Outcome};
use crate::pipeline::{Run, State};
use crate::scene::Mark;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// One rewrite.
#[derive(Debug, Clone, PartialEq)]
pub struct StepRow {
    pub number: u32,
    pub round: u32,
    pub pass: Arc<str>,
    pub what: Arc<str>,
    pub name: String,
    pub node_change: i64,
}

/// One difference between before and after.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangeRow {
    pub mark: Mark,
    pub operator: Arc<str>,
    pub name: String,
    /// What changed.
    pub detail: String,
    /// Pass that did it, if one did.
    pub pass: Option<Arc<str>>,
    pub node: NodeId,
}

/// One line of the log.
#[derive(Debug, Clone, PartialEq)]
pub struct LogRow {
    pub seconds: f64,
    pub round: u32,
    pub pass: Arc<str>,
    pub kind: &'static str,
    pub scope: String,
    pub result: String,
    /// Something went wrong.
    pub bad: bool,
    pub step: Option<u32>,
}

/// What a run did, as lists.
#[derive(Clone, Default)]
pub struct RunLists {
    pub changes: Arc<[Change]>,
    pub steps: Arc<[StepRow]>,
    pub log: Arc<[LogRow]>,
}

impl RunLists {
    /// The lists of a run.
    pub fn of(run: &Run) -> RunLists {
        let changes: Arc<[Change]> = changes::rows(run).into();
        RunLists {
            steps: changes.iter().map(step_row).collect(),
            log: run.log.iter().map(log_row).collect(),
            changes,
        }
    }
}

fn step_row(c: &Change) -> StepRow {
    StepRow {
        number: c.step,
        round: c.round,
        pass: c.pass.clone(),
        what: c.what.clone(),
        name: c.key.anchor.to_string(),
        node_change: c.node_change,
    }
}

/// What differs between the model as imported and `state`, which `changes` led to: a row for each of `stops`.
pub fn change_rows(
    initial: &State,
    state: &State,
    changes: &[Change],
    marks: &BTreeMap<NodeId, Mark>,
    stops: &[NodeId],
) -> Arc<[ChangeRow]> {
    let mut last: BTreeMap<NodeId, &Arc<str>> = BTreeMap::new();
    for change in changes {
        let all = [&change.added, &change.removed, &change.changed, &change.rewired];
        for node in all.into_iter().flatten() {
            last.insert(*node, &change.pass);
        }
    }
    let row = |node: &NodeId| {
        let mark = marks.get(node).copied().unwrap_or_default();
        let model = if mark == Mark::Removed { &initial.model } else { &state.model };
        Some(ChangeRow {
            mark,
            operator: model.get_node(*node)?.op_type.clone(),
            name: model.node_label(*node),
            detail: detail(initial, state, *node, mark),
            pass: last.get(node).map(|pass| (*pass).clone()),
            node: *node,
        })
    };
    stops.iter().filter_map(row).collect()
}

/// What is different about a node, in a few words.
fn detail(initial: &State, state: &State, node: NodeId, mark: Mark) -> String {
    let (old, new) = (initial.model.get_node(node), state.model.get_node(node));
    match (mark, old, new) {
        (Mark::Changed | Mark::Rewired, Some(old), Some(new)) => {
            let mut parts = Vec::new();
            if old.op_type != new.op_type {
                parts.push(format!("{} → {}", old.op_type, new.op_type));
            }
            let inputs =
                (0..old.inputs.len().max(new.inputs.len())).filter(|&i| old.input(i) != new.input(i));
            let inputs: Vec<String> = inputs.map(|i| i.to_string()).collect();
            if !inputs.is_empty() {
                let noun = if inputs.len() == 1 { "input" } else { "inputs" };
                parts.push(format!("other {noun} {}", inputs.join(", ")));
            }
            let text = |n: &Node, name: &str, model| {
                n.attribute(name).map(|v| super::inspect::attribute_text(model, v))
            };
            let names: BTreeSet<&str> =
                old.attributes.iter().chain(&new.attributes).map(|a| &*a.name).collect();
            for name in names {
                let was = text(old, name, &initial.model);
                let is = text(new, name, &state.model);
                if was != is {
                    let none = || "none".to_owned();
                    let (was, is) = (was.unwrap_or_else(none), is.unwrap_or_else(none));
                    parts.push(format!("{name} {was} → {is}"));
                }
            }
            parts.join(" · ")
        }
        (Mark::Added, _, Some(_)) => {
            let origins = state.provenance.origins(node);
            let names: Vec<String> = origins.iter().take(4).map(|o| initial.model.node_label(*o)).collect();
            if names.is_empty() { String::new() } else { format!("from {}", names.join(", ")) }
        }
        _ => String::new(),
    }
}

fn log_row(event: &Event) -> LogRow {
    let kind = match event.kind {
        Kind::Configuration => "setup",
        Kind::Site => "site",
        Kind::Pass => "pass",
        Kind::End => "end",
    };
    let mut step = None;
    let (result, bad) = match &event.outcome {
        Outcome::Configured { plan, .. } => (format!("{} passes: {}", plan.len(), plan.join(", ")), false),
        Outcome::Applied { step: number, what } => {
            step = Some(*number);
            (format!("rewrite {number}: {what}"), false)
        }
        Outcome::Unmatched { message } => (format!("an exclusion fits nothing: {message}"), true),
        Outcome::Excluded => ("left alone, as asked".to_owned(), false),
        Outcome::Blocked { condition, blame } => (format!("near miss: {condition} ({blame})"), false),
        Outcome::Failed { message } => (format!("rolled back: {message}"), true),
        Outcome::Done { sites, blocked, failed, nodes_before, nodes_after, .. } => (
            format!(
                "{sites} sites, {blocked} near misses, {failed} failed, {nodes_before} → {nodes_after} nodes"
            ),
            *failed > 0,
        ),
        Outcome::Stopped { reason, rounds, steps } => {
            (format!("{steps} rewrites in {rounds} rounds: {}", reason.replace('_', " ")), false)
        }
    };
    LogRow {
        seconds: event.seconds,
        round: event.round,
        pass: event.pass.clone(),
        kind,
        scope: event.scope.clone(),
        result,
        bad,
        step,
    }
}
