//! Patches: the only way to change a model. [`Model::apply`](super::Model::apply) checks one, costs what it touches, and
//! returns its inverse.

use super::attribute::Attribute;
use super::check::Fault;
use super::ids::{GraphId, NodeId, OrderKey, Text, ValueId};
use super::node::{Declaration, Node, Use, Value};
use super::tensor::Constant;
use super::types::Type;
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::sync::Arc;
use thiserror::Error;

/// One change.
#[derive(Clone, Debug)]
pub enum Edit {
    /// A value without producer and uses, or an initializer.
    AddValue {
        id: ValueId,
        value: Value,
    },
    /// Must have neither producer nor uses left when the patch is done.
    RemoveValue {
        id: ValueId,
    },
    /// A node at the order key it carries; it becomes the producer of its outputs.
    AddNode {
        id: NodeId,
        node: Node,
    },
    /// Bodies go with it: they no longer read anything.
    RemoveNode {
        id: NodeId,
    },
    SetOperator {
        node: NodeId,
        domain: Text,
        op_type: Text,
        overload: Text,
    },
    /// The attribute at a position: replaced (`replace`), inserted before it, or with `None` removed.
    SetAttribute {
        node: NodeId,
        position: usize,
        attribute: Option<Attribute>,
        replace: bool,
    },
    SetInputs {
        node: NodeId,
        inputs: SmallVec<[Option<ValueId>; 4]>,
    },
    SetOutputs {
        node: NodeId,
        outputs: SmallVec<[Option<ValueId>; 2]>,
    },
    /// The given uses of a value, or all of them, become uses of another.
    ReplaceUses {
        of: ValueId,
        with: ValueId,
        uses: Option<Vec<Use>>,
    },
    SetConstant {
        value: ValueId,
        constant: Option<Constant>,
    },
    SetType {
        value: ValueId,
        ty: Type,
        declaration: Option<Arc<Declaration>>,
    },
    MoveNode {
        node: NodeId,
        graph: GraphId,
        order: OrderKey,
    },
    SetGraphOutput {
        graph: GraphId,
        index: usize,
        value: ValueId,
    },
}

/// A list of edits that is applied whole or not at all.
#[derive(Clone, Debug, Default)]
pub struct Patch {
    pub edits: Vec<Edit>,
    /// Nodes that the rewrite looked at and relies on, beside those it removes: origins of what it creates.
    pub reads: Vec<NodeId>,
}

/// Why a patch cannot be applied; the model is then as it was.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum PatchError {
    #[error("the patch speaks of {0}, which is not in the model")]
    NoNode(NodeId),
    #[error("the patch speaks of {0}, which is not in the model")]
    NoValue(ValueId),
    #[error("the patch speaks of {0}, which is not in the model")]
    NoGraph(GraphId),
    #[error("the patch adds {0}, which is there already")]
    NodeExists(NodeId),
    #[error("the patch adds {0}, which is there already")]
    ValueExists(ValueId),
    #[error("node {node} has no attribute {position}")]
    NoAttribute { node: NodeId, position: usize },
    #[error("graph {graph} has no output {index}")]
    NoOutput { graph: GraphId, index: usize },
    #[error("two nodes of graph {0} would have the same place")]
    PlaceTaken(GraphId),
    #[error("an id that stands for a new thing was not given a real one")]
    Placeholder,
    #[error("{0}")]
    Fault(Fault),
}

/// What a patch touched, for checks and for whoever keeps something per node or value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Touched {
    pub nodes: BTreeSet<NodeId>,
    pub values: BTreeSet<ValueId>,
    /// Values that have another producer, or one at another place: their readers' order is in question.
    pub produced: BTreeSet<ValueId>,
    pub graphs: BTreeSet<GraphId>,
}

impl Patch {
    /// Nothing to do.
    pub fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// Nodes that the patch removes.
    pub fn removed_nodes(&self) -> Vec<NodeId> {
        self.edits
            .iter()
            .filter_map(|e| if let Edit::RemoveNode { id } = e { Some(*id) } else { None })
            .collect()
    }

    /// Nodes that the patch adds.
    pub fn added_nodes(&self) -> Vec<NodeId> {
        self.edits
            .iter()
            .filter_map(|e| if let Edit::AddNode { id, .. } = e { Some(*id) } else { None })
            .collect()
    }

    /// Gives every placeholder id a real one; `node` and `value` map the placeholder's index to an id.
    pub fn resolve(&mut self, node: &mut dyn FnMut(u32) -> NodeId, value: &mut dyn FnMut(u32) -> ValueId) {
        let mut n = |id: &mut NodeId| {
            if id.is_placeholder() {
                *id = node(id.0 - super::ids::PLACEHOLDER);
            }
        };
        let mut v = |id: &mut ValueId| {
            if id.is_placeholder() {
                *id = value(id.0 - super::ids::PLACEHOLDER);
            }
        };
        for edit in &mut self.edits {
            match edit {
                Edit::AddValue { id, .. } | Edit::RemoveValue { id } => v(id),
                Edit::AddNode { id, node } => {
                    n(id);
                    node.inputs.iter_mut().flatten().for_each(&mut v);
                    node.outputs.iter_mut().flatten().for_each(&mut v);
                }
                Edit::RemoveNode { id } => n(id),
                Edit::SetOperator { node, .. }
                | Edit::SetAttribute { node, .. }
                | Edit::MoveNode { node, .. } => n(node),
                Edit::SetInputs { node, inputs } => {
                    n(node);
                    inputs.iter_mut().flatten().for_each(&mut v);
                }
                Edit::SetOutputs { node, outputs } => {
                    n(node);
                    outputs.iter_mut().flatten().for_each(&mut v);
                }
                Edit::ReplaceUses { of, with, .. } => {
                    v(of);
                    v(with);
                }
                Edit::SetConstant { value, .. }
                | Edit::SetType { value, .. }
                | Edit::SetGraphOutput { value, .. } => v(value),
            }
        }
    }
}
