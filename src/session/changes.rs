//! What steps did, for lists, marks and badges.

use crate::diff::{self, Diff, NodeChange};
use crate::ir::NodeId;
use crate::pipeline::{Run, SiteKey, State};
use crate::scene::Mark;
use std::collections::BTreeMap;
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

/// Marks of nodes that differ.
pub fn marks(diff: &Diff) -> BTreeMap<NodeId, Mark> {
    diff.nodes.iter().filter_map(|change| Some((node_of(change)?, mark_of(change.mark)))).collect()
}

/// The node of a change: as it is now, or as it was when it is gone.
pub fn node_of(change: &NodeChange) -> Option<NodeId> {
    change.after.or(change.before)
}

/// The picture's mark for a difference.
pub fn mark_of(mark: diff::Mark) -> Mark {
    match mark {
        diff::Mark::Added => Mark::Added,
        diff::Mark::Removed => Mark::Removed,
        diff::Mark::Changed => Mark::Changed,
        diff::Mark::Rewired => Mark::Rewired,
    }
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
