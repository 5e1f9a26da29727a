//! What steps did, for lists, marks and badges.

use crate::ir::{Model, NodeId};
use crate::pipeline::{Run, SiteKey, State};
use crate::scene::Mark;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// One step as a row.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    pub step: u32,
    pub round: u32,
    pub pass: Arc<str>,
    pub key: SiteKey,
    pub what: Arc<str>,
    pub added: Vec<NodeId>,
    pub removed: Vec<NodeId>,
    pub changed: Vec<NodeId>,
    pub rewired: Vec<NodeId>,
    /// Nodes afterwards, as against before.
    pub node_change: i64,
}

/// All steps of a run.
pub fn rows(run: &Run) -> Vec<Change> {
    let row = |s: &crate::pipeline::Step| Change {
        step: s.number,
        round: s.round,
        pass: s.pass.clone(),
        key: s.key.clone(),
        what: s.what.clone(),
        added: s.effects.added.clone(),
        removed: s.effects.removed.clone(),
        changed: s.effects.changed.clone(),
        rewired: s.effects.rewired.clone(),
        node_change: s.node_change,
    };
    run.steps.iter().map(row).collect()
}

/// How nodes differ between the model as imported and after some of the steps: what those steps touched, netted.
pub fn marks(before: &Model, after: &Model, changes: &[Change]) -> BTreeMap<NodeId, Mark> {
    let mut marks: BTreeMap<NodeId, Mark> = BTreeMap::new();
    for change in changes {
        for node in &change.rewired {
            marks.entry(*node).or_insert(Mark::Rewired);
        }
        for node in change.changed.iter().chain(&change.added).chain(&change.removed) {
            marks.insert(*node, Mark::Changed);
        }
    }
    marks.retain(|node, mark| {
        *mark = match (before.get_node(*node), after.get_node(*node)) {
            (None, Some(_)) => Mark::Added,
            (Some(_), None) => Mark::Removed,
            (None, None) => return false,
            // Shared storage: untouched in the end.
            (Some(a), Some(b)) if Arc::ptr_eq(a, b) => return false,
            _ => *mark,
        };
        true
    });
    marks
}

/// The pass that last made or changed each node, of one pass only or of all.
pub fn badges(state: &State, changes: &[Change], only: Option<&str>) -> BTreeMap<NodeId, Arc<str>> {
    let mut badges = BTreeMap::new();
    for (node, steps) in state.provenance.touched() {
        if state.model.get_node(node).is_none() {
            continue;
        }
        let passes = steps.iter().filter_map(|s| changes.get((*s as usize).checked_sub(1)?));
        let mut made = passes.filter(|c| c.added.contains(&node) || c.changed.contains(&node));
        if let Some(last) = made.rfind(|c| only.is_none_or(|o| *c.pass == *o)) {
            badges.insert(node, last.pass.clone());
        }
    }
    badges
}

/// Nodes at which the next and previous change stop, in graph order: one per step's most telling node.
pub fn stops(before: &Model, after: &Model, marks: &BTreeMap<NodeId, Mark>) -> Vec<NodeId> {
    let mut stops = Vec::new();
    let mut seen = BTreeSet::new();
    let placed = |id: NodeId| after.get_node(id).or_else(|| before.get_node(id)).map(|n| (n.graph, n.order));
    let mut all: Vec<_> = marks.keys().filter_map(|id| Some((placed(*id)?, *id))).collect();
    all.sort();
    for (_, id) in all {
        if seen.insert(id) {
            stops.push(id);
        }
    }
    stops
}
