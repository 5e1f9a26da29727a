//! Walking a graph for matches: which nodes to look at, single readers, near misses, constants that a patch leaves behind.

use super::{Blocked, Context};
use crate::ir::{
    Attribute, GraphId, GraphKind, Model, Node, NodeId, PatchBuilder, PatchError, Producer, Tensor, Use,
    Value, ValueId,
};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

/// A value with more readers than this is not searched for further matches after a rewrite; the next round sees them.
const MANY_READERS: usize = 64;

/// Nodes that a `find` has to look at, in graph order: all of the graph, or those around a rewrite and their neighbours.
/// Empty when the search was cancelled.
pub fn candidates(cx: &Context, graph: GraphId, around: Option<&[NodeId]>) -> Vec<NodeId> {
    let model = cx.model;
    if cx.cancel.load(Ordering::Relaxed) {
        return Vec::new();
    }
    let Some(around) = around else {
        return model.nodes_of(graph).map(|(id, _)| id).collect();
    };
    let mut found: BTreeSet<NodeId> = BTreeSet::new();
    for id in around {
        let Some(node) = model.get_node(*id) else { continue };
        found.insert(*id);
        found.extend(node.inputs.iter().flatten().filter_map(|v| Some(model.get_value(*v)?.node()?.0)));
        for value in node.outputs.iter().flatten().filter_map(|v| model.get_value(*v)) {
            if value.uses.len() <= MANY_READERS {
                found.extend(value.uses.iter().filter_map(|u| match u {
                    Use::Input { node, .. } => Some(node),
                    Use::Output { .. } => None,
                }));
            }
        }
    }
    let mut found: Vec<NodeId> =
        found.into_iter().filter(|id| model.get_node(*id).is_some_and(|n| n.graph == graph)).collect();
    found.sort_by_key(|id| model.node(*id).order);
    found
}

/// The node that gives a value, when it is the standard operator of that name in the given graph.
pub fn producer(model: &Model, value: ValueId, graph: GraphId) -> Option<(NodeId, &Node)> {
    let (id, _) = model.get_value(value)?.node()?;
    let node = model.get_node(id)?;
    (node.graph == graph).then_some((id, &**node))
}

/// Who else reads a value beside one node; a graph output counts as the node that gives the value.
pub fn other_reader(model: &Model, value: ValueId, reader: NodeId) -> Option<OtherReader> {
    model.get_value(value)?.uses.iter().find_map(|u| match u {
        Use::Input { node, .. } if node == reader => None,
        Use::Input { node, .. } => Some(OtherReader::Node(node)),
        Use::Output { .. } => Some(OtherReader::Output),
    })
}

/// A further use of a value that a match would like to have for itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OtherReader {
    Node(NodeId),
    Output,
}

impl OtherReader {
    /// The near miss that this reader makes, worded for the result of an operator.
    pub fn blocked(self, model: &Model, anchor: NodeId, giver: NodeId) -> Blocked {
        let op = &model.node(giver).op_type;
        match self {
            OtherReader::Node(by) => blocked(
                model,
                anchor,
                format!("the {op} result is also read by '{}'", model.node_label(by)),
                by,
            ),
            OtherReader::Output => {
                blocked(model, anchor, format!("the {op} result is also an output of the graph"), giver)
            }
        }
    }
}

/// A near miss at a node.
pub fn blocked(model: &Model, anchor: NodeId, condition: impl AsRef<str>, blame: NodeId) -> Blocked {
    Blocked { graph: model.node(anchor).graph, anchor, condition: condition.as_ref().into(), blame }
}

/// The condition that stands in the way when something beside nodes speaks of a value by its name.
pub fn spoken_of(model: &Model, value: ValueId) -> Option<String> {
    let by = model.spoken_of(value)?;
    Some(format!("{by} of the model speaks of '{}'", model.get_value(value)?.name))
}

/// A constant that a rewrite needs at a node: an initializer where the file format has them, else a Constant node
/// (local functions have no initializers; up to IR version 3 each one would have to be an input as well).
pub fn place_constant(
    p: &mut PatchBuilder,
    near: NodeId,
    base: &str,
    tensor: Tensor,
) -> Result<ValueId, PatchError> {
    let model = p.model();
    let graph = model.get_node(near).ok_or(PatchError::NoNode(near))?.graph;
    let in_function = matches!(model.root_of(graph), GraphKind::Function(_));
    if model.header().ir_version >= 4 && !in_function {
        return Ok(p.constant(graph, base, tensor));
    }
    let value = p.value(graph, base, tensor.ty());
    let mut node = Node::new(graph, "Constant");
    node.outputs.push(Some(value));
    node.attributes.push(Attribute::new("value", tensor));
    p.node_before(near, node)?;
    Ok(value)
}

/// Removes constants (initializers, Constant nodes) that only the given nodes read, which do so no longer; those that
/// something else speaks of stay.
pub fn drop_constants(p: &mut PatchBuilder, values: impl IntoIterator<Item = ValueId>, gone: &[NodeId]) {
    let model = p.model();
    let unread =
        |v: &Value| v.uses.iter().all(|u| matches!(u, Use::Input { node, .. } if gone.contains(&node)));
    let values: BTreeSet<ValueId> = values.into_iter().collect();
    let mut nodes: BTreeSet<NodeId> = BTreeSet::new();
    for id in values {
        let Some(value) = model.get_value(id) else { continue };
        if !unread(value) || model.spoken_of(id).is_some() {
            continue;
        }
        match value.producer {
            Producer::Initializer => p.remove_value(id),
            Producer::Node { node, .. }
                if !gone.contains(&node)
                    && model.get_node(node).is_some_and(|n| n.is("Constant"))
                    && nodes.insert(node) =>
            {
                p.remove_node(node);
            }
            _ => {}
        }
    }
}
