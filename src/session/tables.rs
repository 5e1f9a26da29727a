//! The long lists about a run: its rewrites, its log, and what differs afterwards. Made in the background, with the run
//! or the picture, because a large model has tens of thousands of rows.

use super::changes::{self, Change};
use crate::diff::{self, Diff, NodeChange};
use crate::ir::NodeId;
use crate::pipeline::log::{Event, Kind, Outcome};
use crate::pipeline::{Run, State};
use crate::scene::Mark;
use std::collections::BTreeMap;
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

/// What differs between two states, a row for each node in graph order. `steps` led from the one to the other, if steps
/// did.
pub fn change_rows(before: &State, after: &State, diff: &Diff, steps: &[Change]) -> Arc<[ChangeRow]> {
    let mut last: BTreeMap<NodeId, &Arc<str>> = BTreeMap::new();
    for step in steps {
        let all = [&step.added, &step.removed, &step.changed, &step.rewired];
        for node in all.into_iter().flatten() {
            last.insert(*node, &step.pass);
        }
    }
    let row = |change: &NodeChange| {
        let node = changes::node_of(change)?;
        let model = if change.after.is_some() { &after.model } else { &before.model };
        Some(ChangeRow {
            mark: changes::mark_of(change.mark),
            operator: model.get_node(node)?.op_type.clone(),
            name: model.node_label(node),
            detail: detail(before, after, change),
            pass: last.get(&node).map(|pass| (*pass).clone()),
            node,
        })
    };
    diff.nodes.iter().filter_map(row).collect()
}

/// What is different about a node, in a few words.
fn detail(before: &State, after: &State, change: &NodeChange) -> String {
    if let (diff::Mark::Added, Some(node)) = (change.mark, change.after) {
        let origins = after.provenance.origins(node);
        let known = origins.iter().filter(|o| before.model.get_node(**o).is_some());
        let names: Vec<String> = known.take(4).map(|o| before.model.node_label(*o)).collect();
        return if names.is_empty() { String::new() } else { format!("from {}", names.join(", ")) };
    }
    let parts: Vec<String> =
        change.what.iter().map(|what| diff::sentence(&before.model, &after.model, what)).collect();
    parts.join(" · ")
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
