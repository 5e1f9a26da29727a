//! Where a pass looks again after a rewrite: a bounded worklist, so that chains collapse in one round.

use super::provenance::Effects;
use super::state::State;
use crate::ir::{Edit, NodeId, Patch, Use};
use std::collections::BTreeSet;

/// Nodes near what a step touched, where the same pass may find something new.
pub(super) fn neighbourhood(state: &State, patch: &Patch, inverse: &Patch, effects: &Effects) -> Vec<NodeId> {
    /// Readers of one value that are looked at: a mask that thousands read does not make every step long.
    const READERS: usize = 32;
    let mut nodes: BTreeSet<NodeId> = BTreeSet::new();
    let touched = effects.added.iter().chain(&effects.changed).chain(&effects.rewired).chain(&patch.reads);
    for id in touched {
        let Some(node) = state.model.get_node(*id) else { continue };
        nodes.insert(*id);
        let producers = node.inputs.iter().flatten().filter_map(|v| state.model.get_value(*v)?.node());
        nodes.extend(producers.map(|(n, _)| n));
        for v in node.outputs.iter().flatten() {
            let uses = state.model.get_value(*v).into_iter().flat_map(|v| v.uses.iter().take(READERS));
            nodes.extend(uses.filter_map(|u| match u {
                Use::Input { node, .. } => Some(node),
                Use::Output { .. } => None,
            }));
        }
    }
    // What a removed node read may have lost its last reader.
    for edit in &inverse.edits {
        if let Edit::AddNode { node, .. } = edit {
            let producers = node.inputs.iter().flatten().filter_map(|v| state.model.get_value(*v)?.node());
            nodes.extend(producers.map(|(n, _)| n));
        }
    }
    nodes.retain(|n| state.model.get_node(*n).is_some());
    nodes.into_iter().collect()
}
