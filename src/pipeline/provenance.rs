//! Where nodes come from: their origins among the imported nodes, and the steps that touched them.

use crate::ir::{Edit, NodeId, Patch};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Origins and steps of nodes. Cloning is cheap. A node without an entry is its own origin and was never touched.
#[derive(Clone, Debug, Default)]
pub struct Provenance {
    origins: imbl::OrdMap<NodeId, Arc<[NodeId]>>,
    steps: imbl::OrdMap<NodeId, Arc<[u32]>>,
}

/// What a step did to nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Effects {
    pub added: Vec<NodeId>,
    pub removed: Vec<NodeId>,
    /// Operator, attributes, inputs or outputs set by the rewrite.
    pub changed: Vec<NodeId>,
    /// Reads another value because a value was replaced.
    pub rewired: Vec<NodeId>,
}

impl Effects {
    /// Of a patch that was applied; `touched` are the nodes that it touched.
    pub fn of(patch: &Patch, touched: &BTreeSet<NodeId>) -> Effects {
        let added: BTreeSet<NodeId> = patch.added_nodes().into_iter().collect();
        let removed: BTreeSet<NodeId> = patch.removed_nodes().into_iter().collect();
        let mut changed = BTreeSet::new();
        for edit in &patch.edits {
            match edit {
                Edit::SetOperator { node, .. }
                | Edit::SetAttribute { node, .. }
                | Edit::SetInputs { node, .. }
                | Edit::SetOutputs { node, .. }
                | Edit::MoveNode { node, .. } => {
                    changed.insert(*node);
                }
                _ => {}
            }
        }
        changed.retain(|n| !added.contains(n) && !removed.contains(n));
        let rewired =
            touched.iter().filter(|n| !added.contains(n) && !removed.contains(n) && !changed.contains(n));
        Effects {
            rewired: rewired.copied().collect(),
            added: added.into_iter().collect(),
            removed: removed.into_iter().collect(),
            changed: changed.into_iter().collect(),
        }
    }
}

impl Provenance {
    /// Imported nodes that a node came from; itself for one that is as imported.
    pub fn origins(&self, node: NodeId) -> Vec<NodeId> {
        self.origins.get(&node).map_or_else(|| vec![node], |o| o.to_vec())
    }

    /// Steps that made or touched a node, in order.
    pub fn steps(&self, node: NodeId) -> &[u32] {
        self.steps.get(&node).map_or(&[], |s| s)
    }

    /// Nodes that any step made or touched, with their steps.
    pub fn touched(&self) -> impl Iterator<Item = (NodeId, &[u32])> {
        self.steps.iter().map(|(n, s)| (*n, &**s))
    }

    /// Takes in a step: what it created comes from what it removed or read, and so does what it changed.
    pub fn record(&mut self, step: u32, patch: &Patch, effects: &Effects) {
        let sources = effects.removed.iter().chain(&patch.reads);
        let from: BTreeSet<NodeId> = sources.flat_map(|n| self.origins(*n)).collect();
        for node in &effects.added {
            self.origins.insert(*node, from.iter().copied().collect());
        }
        for node in &effects.changed {
            let all: BTreeSet<NodeId> = self.origins(*node).into_iter().chain(from.iter().copied()).collect();
            self.origins.insert(*node, all.into_iter().collect());
        }
        for node in effects.added.iter().chain(&effects.changed).chain(&effects.rewired) {
            let steps = self.steps(*node).iter().copied().chain([step]).collect();
            self.steps.insert(*node, steps);
        }
    }
}
