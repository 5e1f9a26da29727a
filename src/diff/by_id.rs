//! Two states of one session. Storage is shared, so that only what really differs is looked at.

use super::compare::{self, Correspondence};
use super::{ConstantChange, Diff, Mark, NodeChange, Rule};
use crate::ir::{Constant, GraphId, Model, NodeId, OrderKey, Use, ValueId};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The difference between two states of one session. The cost is one pointer comparison a node, and follows what
/// differs beyond that.
pub fn by_id(before: &Model, after: &Model) -> Diff {
    let mut candidates: BTreeSet<NodeId> = before.nodes_apart(after).into_iter().collect();
    let values = before.values_apart(after);
    let mut diff = Diff::default();
    let mut other_data: BTreeSet<ValueId> = BTreeSet::new();
    for value in values {
        let of = |model: &Model| model.get_value(value).and_then(|v| v.constant.clone());
        let (old, new) = (of(before), of(after));
        let change = match (&old, &new) {
            (None, None) => continue,
            (Some(a), Some(b)) if same_constant(a, b) => continue,
            (Some(_), Some(_)) => {
                other_data.insert(value);
                candidates.extend(readers(before, value).into_iter().chain(readers(after, value)));
                ConstantChange { before: Some(value), after: Some(value) }
            }
            (Some(_), None) => ConstantChange { before: Some(value), after: None },
            (None, Some(_)) => ConstantChange { before: None, after: Some(value) },
        };
        diff.constants.push(change);
    }
    // Nodes of bodies come and go with their owner without changing themselves.
    for node in candidates.clone() {
        for model in [before, after] {
            add_bodies(model, node, &mut candidates);
        }
    }
    let known = Identity { other_data };
    let place = |model: &Model, id: NodeId| model.get_node(id).map(|n| (n.graph, n.order));
    let mut found: Vec<((GraphId, OrderKey), NodeChange)> = Vec::new();
    for id in candidates {
        let was = is_live(before, id).then(|| place(before, id)).flatten();
        let is = is_live(after, id).then(|| place(after, id)).flatten();
        let change = match (was, is) {
            (None, None) => None,
            (Some(at), None) => Some((at, NodeChange::alone(id, Mark::Removed))),
            (None, Some(at)) => Some((at, NodeChange::alone(id, Mark::Added))),
            (Some(_), Some(at)) => {
                compare::nodes((before, after), (id, id), Rule::Id, &known).map(|change| (at, change))
            }
        };
        found.extend(change);
    }
    found.sort_by_key(|(at, change)| (*at, change.mark));
    found.into_iter().for_each(|(_, change)| diff.add(change));
    diff
}

struct Identity {
    /// Values that kept their id and got other data.
    other_data: BTreeSet<ValueId>,
}

impl Correspondence for Identity {
    fn same_value(&self, before: ValueId, after: ValueId) -> bool {
        before == after && !self.other_data.contains(&before)
    }

    fn gives_other(&self, before: ValueId, after: ValueId) -> bool {
        before != after
    }

    fn names_matter(&self) -> bool {
        true
    }
}

fn same_constant(a: &Constant, b: &Constant) -> bool {
    match (a, b) {
        (Constant::Dense(a), Constant::Dense(b)) => Arc::ptr_eq(a, b) || a.same_content(b),
        (Constant::Sparse(a), Constant::Sparse(b)) => Arc::ptr_eq(a, b) || a.same_content(b),
        _ => false,
    }
}

fn readers(model: &Model, value: ValueId) -> Vec<NodeId> {
    let uses = model.get_value(value).into_iter().flat_map(|v| v.uses.iter());
    uses.filter_map(|u| if let Use::Input { node, .. } = u { Some(node) } else { None }).collect()
}

fn add_bodies(model: &Model, node: NodeId, into: &mut BTreeSet<NodeId>) {
    let Some(node) = model.get_node(node) else { return };
    for (_, body) in node.bodies() {
        if model.get_graph(body).is_none() {
            continue;
        }
        for (inner, _) in model.nodes_of(body) {
            into.insert(inner);
            add_bodies(model, inner, into);
        }
    }
}

/// There, and in a graph that is reached: the body of an owner that is gone is not.
fn is_live(model: &Model, id: NodeId) -> bool {
    let Some(node) = model.get_node(id) else { return false };
    let mut graph = node.graph;
    while let Some(owner) = model.owner_of(graph) {
        match model.get_node(owner).filter(|o| o.bodies().any(|(_, body)| body == graph)) {
            Some(owner) => graph = owner.graph,
            None => return false,
        }
    }
    true
}
