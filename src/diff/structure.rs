//! Hashes of what a node computes, and of what is done with it, that do not depend on names.

use crate::ir::{Attribute, AttributeValue, Constant, Data, Model, Node, NodeId, Tensor, Use, ValueId};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};

/// Tensors up to this size are told apart by content, larger ones by type and shape.
const CONTENT_BYTES: u64 = 1024;

/// One hash a node.
pub struct Hashes(FxHashMap<NodeId, u64>);

impl Hashes {
    /// Over operator, attributes and all that a node's inputs are computed from. `label` tells values that are matched
    /// already: they stand for themselves.
    pub fn from_inputs(
        model: &Model,
        nodes: &[(NodeId, &Node)],
        label: &dyn Fn(ValueId) -> Option<ValueId>,
    ) -> Hashes {
        let mut hashes: FxHashMap<NodeId, u64> = FxHashMap::default();
        for (id, node) in nodes {
            let mut h = of_node(node);
            for input in &node.inputs {
                let read = input.map(|v| match (label(v), model.value(v).node()) {
                    (Some(known), _) => hash(&(1u8, known)),
                    (None, Some((producer, output))) => hash(&(2u8, hashes.get(&producer), output)),
                    (None, None) => constant(model, v),
                });
                read.hash(&mut h);
            }
            hashes.insert(*id, h.finish());
        }
        Hashes(hashes)
    }

    /// Over operator, attributes and all that a node's outputs are used for.
    pub fn to_outputs(
        model: &Model,
        nodes: &[(NodeId, &Node)],
        label: &dyn Fn(ValueId) -> Option<ValueId>,
    ) -> Hashes {
        let mut hashes: FxHashMap<NodeId, u64> = FxHashMap::default();
        for (id, node) in nodes.iter().rev() {
            let mut h = of_node(node);
            for output in &node.outputs {
                let Some(value) = output else { continue };
                let mut uses: Vec<u64> = model
                    .value(*value)
                    .uses
                    .iter()
                    .map(|u| match u {
                        Use::Input { node, index } => hash(&(1u8, hashes.get(&node), index)),
                        Use::Output { index, .. } => hash(&(2u8, index)),
                    })
                    .collect();
                uses.sort_unstable();
                uses.hash(&mut h);
            }
            for input in node.inputs.iter().flatten() {
                label(*input).hash(&mut h);
            }
            hashes.insert(*id, h.finish());
        }
        Hashes(hashes)
    }

    /// Hash of a node; 0 for one that was not hashed.
    pub fn of(&self, node: NodeId) -> u64 {
        self.0.get(&node).copied().unwrap_or(0)
    }
}

/// Operator and the position at which it reads something.
pub fn shape_of(node: &Node, position: usize) -> u64 {
    hash(&(node.is_standard(), &*node.op_type, node.overload.as_bytes(), position))
}

fn hash(value: &impl Hash) -> u64 {
    let mut h = FxHasher::default();
    value.hash(&mut h);
    h.finish()
}

fn of_node(node: &Node) -> FxHasher {
    let mut h = FxHasher::default();
    let domain = if node.is_standard() { "" } else { &*node.domain };
    (domain, &*node.op_type, &*node.overload, node.inputs.len(), node.outputs.len()).hash(&mut h);
    let mut attributes: Vec<&Attribute> = node.attributes.iter().collect();
    attributes.sort_by(|a, b| a.name.cmp(&b.name));
    for attribute in attributes {
        attribute.name.hash(&mut h);
        of_attribute(&attribute.value, &mut h);
    }
    h
}

fn of_attribute(value: &AttributeValue, h: &mut FxHasher) {
    std::mem::discriminant(value).hash(h);
    match value {
        AttributeValue::Float(v) => v.to_bits().hash(h),
        AttributeValue::Int(v) => v.hash(h),
        AttributeValue::String(v) => v.hash(h),
        AttributeValue::Floats(v) => v.iter().for_each(|v| v.to_bits().hash(h)),
        AttributeValue::Ints(v) => v.hash(h),
        AttributeValue::Strings(v) => v.hash(h),
        AttributeValue::Tensor(t) => of_tensor(t, h),
        AttributeValue::Tensors(t) => t.iter().for_each(|t| of_tensor(t, h)),
        AttributeValue::Reference { name, kind } => (name, kind).hash(h),
        // Bodies, types and the like: that they are there is enough for a guess at which node is which.
        _ => {}
    }
}

fn constant(model: &Model, value: ValueId) -> u64 {
    let mut h = FxHasher::default();
    match &model.value(value).constant {
        Some(Constant::Dense(t)) => of_tensor(t, &mut h),
        Some(Constant::Sparse(s)) => (3u8, &s.dims).hash(&mut h),
        None => 4u8.hash(&mut h),
    }
    h.finish()
}

fn of_tensor(tensor: &Tensor, h: &mut FxHasher) {
    (tensor.element, &tensor.dims).hash(h);
    if tensor.byte_count() <= CONTENT_BYTES {
        match &tensor.data {
            Data::Bytes(b) => b.hash(h),
            Data::Strings(s) => s.hash(h),
            Data::Missing(_) => {}
        }
    }
}
