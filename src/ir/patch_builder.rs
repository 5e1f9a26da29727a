//! Writing a patch: placeholders for what is new, places for nodes, and removal of values that lose their producer.

use super::attribute::Attribute;
use super::ids::{GraphId, NodeId, OrderKey, PLACEHOLDER, ValueId};
use super::model::Model;
use super::node::{Node, Value};
use super::patch::{Edit, Patch, PatchError};
use super::tensor::Constant;
use super::types::Type;
use std::collections::{BTreeMap, BTreeSet};

/// Collects the edits of one rewrite against a model that it only reads.
///
/// New nodes and values have placeholder ids; whoever applies the patch gives them real ones with [`Patch::resolve`].
pub struct PatchBuilder<'m> {
    model: &'m Model,
    edits: Vec<Edit>,
    reads: Vec<NodeId>,
    new_nodes: u32,
    new_values: u32,
    /// Values that a removed or changed node no longer gives.
    released: BTreeSet<ValueId>,
    /// Values that got a producer in this patch.
    claimed: BTreeSet<ValueId>,
    /// Key of the last node placed before an anchor.
    last_before: BTreeMap<NodeId, OrderKey>,
    names: BTreeSet<String>,
}

impl<'m> PatchBuilder<'m> {
    pub fn new(model: &'m Model) -> PatchBuilder<'m> {
        PatchBuilder {
            model,
            edits: Vec::new(),
            reads: Vec::new(),
            new_nodes: 0,
            new_values: 0,
            released: BTreeSet::new(),
            claimed: BTreeSet::new(),
            last_before: BTreeMap::new(),
            names: BTreeSet::new(),
        }
    }

    /// The model that the patch is for.
    pub fn model(&self) -> &'m Model {
        self.model
    }

    /// Notes a node that the rewrite relies on without removing it: an origin of what it creates.
    pub fn read(&mut self, node: NodeId) {
        self.reads.push(node);
    }

    fn fresh_name(&mut self, base: &str, taken_in_model: impl Fn(&str) -> String) -> String {
        let mut name = taken_in_model(base);
        let mut k = 1u32;
        while !self.names.insert(name.clone()) {
            name = taken_in_model(&format!("{base}_{k}"));
            k += 1;
        }
        name
    }

    /// A new value of a graph; its name is `base`, made unique.
    pub fn value(&mut self, graph: GraphId, base: &str, ty: Type) -> ValueId {
        let model = self.model;
        let name = self.fresh_name(base, |b| model.fresh_value_name(b).to_string());
        self.add_value(Value::new(graph, name, ty))
    }

    /// A new initializer of a graph; its name is `base`, made unique.
    pub fn constant(&mut self, graph: GraphId, base: &str, data: impl Into<Constant>) -> ValueId {
        let data = data.into();
        let model = self.model;
        let name = self.fresh_name(base, |b| model.fresh_value_name(b).to_string());
        let mut value = Value::new(graph, name, data.ty());
        value.constant = Some(data);
        value.constant_position = u32::MAX;
        self.add_value(value)
    }

    fn add_value(&mut self, value: Value) -> ValueId {
        let id = ValueId(PLACEHOLDER + self.new_values);
        self.new_values += 1;
        self.edits.push(Edit::AddValue { id, value });
        id
    }

    /// A new node right before an existing one (after those already placed before it by this patch), in its graph.
    /// A name that is not empty is made unique.
    pub fn node_before(&mut self, anchor: NodeId, mut node: Node) -> Result<NodeId, PatchError> {
        let at = self.model.get_node(anchor).ok_or(PatchError::NoNode(anchor))?;
        let graph = self.model.get_graph(at.graph).ok_or(PatchError::NoGraph(at.graph))?;
        let low = match self.last_before.get(&anchor) {
            Some(key) => *key,
            None => graph.nodes.range(..at.order).next_back().map(|(k, _)| *k).unwrap_or(OrderKey(0)),
        };
        node.graph = at.graph;
        node.order = OrderKey::between(low, at.order).ok_or(PatchError::PlaceTaken(at.graph))?;
        self.last_before.insert(anchor, node.order);
        if !node.name.is_empty() {
            let model = self.model;
            let base = node.name.to_string();
            node.name = self.fresh_name(&base, |b| model.fresh_node_name(b).to_string()).into();
        }
        let id = NodeId(PLACEHOLDER + self.new_nodes);
        self.new_nodes += 1;
        self.claimed.extend(node.outputs.iter().flatten());
        self.edits.push(Edit::AddNode { id, node });
        Ok(id)
    }

    /// Removes a node; values that nothing gives any longer are removed with it.
    pub fn remove_node(&mut self, id: NodeId) {
        if let Some(node) = self.model.get_node(id) {
            self.released.extend(node.outputs.iter().flatten());
        }
        self.edits.push(Edit::RemoveNode { id });
    }

    /// Removes an initializer (or a value that this patch left without use).
    pub fn remove_value(&mut self, id: ValueId) {
        self.edits.push(Edit::RemoveValue { id });
    }

    /// The node takes other inputs.
    pub fn set_inputs(&mut self, node: NodeId, inputs: impl IntoIterator<Item = Option<ValueId>>) {
        self.edits.push(Edit::SetInputs { node, inputs: inputs.into_iter().collect() });
    }

    /// The node gives other values; those that it gave and nothing gives now are removed.
    pub fn set_outputs(&mut self, node: NodeId, outputs: impl IntoIterator<Item = Option<ValueId>>) {
        if let Some(n) = self.model.get_node(node) {
            self.released.extend(n.outputs.iter().flatten());
        }
        let outputs: smallvec::SmallVec<[Option<ValueId>; 2]> = outputs.into_iter().collect();
        self.claimed.extend(outputs.iter().flatten());
        self.edits.push(Edit::SetOutputs { node, outputs });
    }

    /// The node becomes another standard operator.
    pub fn set_operator(&mut self, node: NodeId, op_type: &str) {
        self.edits.push(Edit::SetOperator {
            node,
            domain: "".into(),
            op_type: op_type.into(),
            overload: "".into(),
        });
    }

    /// Sets an attribute, in place of the one of that name if there is one, else at the end.
    ///
    /// Positions are those of the model's node: call it before [`PatchBuilder::remove_attributes`], and for at most one
    /// attribute that the node does not have.
    pub fn set_attribute(&mut self, node: NodeId, attribute: Attribute) {
        let attributes = self.model.get_node(node).map(|n| n.attributes.as_slice()).unwrap_or_default();
        let found = attributes.iter().position(|a| a.name == attribute.name);
        let (position, replace) = (found.unwrap_or(attributes.len()), found.is_some());
        self.edits.push(Edit::SetAttribute { node, position, attribute: Some(attribute), replace });
    }

    /// Removes every attribute whose name is given.
    pub fn remove_attributes(&mut self, node: NodeId, names: &[&str]) {
        let attributes = self.model.get_node(node).map(|n| n.attributes.as_slice()).unwrap_or_default();
        for (position, a) in attributes.iter().enumerate().rev() {
            if names.contains(&&*a.name) {
                self.edits.push(Edit::SetAttribute { node, position, attribute: None, replace: false });
            }
        }
    }

    /// Whatever reads one value reads another, graph outputs included.
    pub fn replace_uses(&mut self, of: ValueId, with: ValueId) {
        self.edits.push(Edit::ReplaceUses { of, with, uses: None });
    }

    /// Any other edit.
    pub fn edit(&mut self, edit: Edit) {
        self.edits.push(edit);
    }

    /// The patch, closed by the removal of values that no node gives any longer.
    pub fn finish(mut self) -> Patch {
        for id in self.released.difference(&self.claimed) {
            self.edits.push(Edit::RemoveValue { id: *id });
        }
        Patch { edits: self.edits, reads: self.reads }
    }
}
