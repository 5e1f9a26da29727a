//! Nodes and values: what a graph is made of.

use super::attribute::{Attribute, AttributeValue};
use super::ids::{GraphId, NodeId, OrderKey, Text, ValueId};
use super::tensor::Constant;
use super::types::Type;
use bytes::Bytes;
use smallvec::SmallVec;
use std::sync::Arc;

/// What a message of a file held beyond this model: kept, and written back unread.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Extra {
    /// Bit n is set when field number n held its default value and its presence was not the usual one: written although
    /// such a field is usually left out, or left out although it is usually written (proto2 tells the two apart).
    pub explicit: u64,
    /// Fields without a place here, as they stood on the wire (tag and payload).
    pub unknown: Bytes,
}

/// A type as a file declares it for a value (`ValueInfoProto`).
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Declaration {
    pub ty: Type,
    /// The whole `TypeProto` as it stood, when writing `ty` anew would not give the same (denotations, newer fields).
    pub raw: Option<Bytes>,
    pub doc: Option<Text>,
    pub metadata: Vec<(Text, Text)>,
    pub extra: Option<Arc<Extra>>,
    /// Position in the file's `value_info` list; 0 for inputs and outputs.
    pub position: u32,
}

impl Declaration {
    /// A declaration of a type and nothing else.
    pub fn of(ty: Type) -> Declaration {
        Declaration { ty, ..Declaration::default() }
    }
}

/// One operation.
#[derive(Clone, Debug)]
pub struct Node {
    /// The graph whose list holds it.
    pub graph: GraphId,
    /// May be empty, and two nodes may have the same.
    pub name: Text,
    /// As it stands in the file; `""` and `"ai.onnx"` are the same domain, see [`Node::is_standard`].
    pub domain: Text,
    pub op_type: Text,
    pub overload: Text,
    /// `None` is a skipped optional input.
    pub inputs: SmallVec<[Option<ValueId>; 4]>,
    /// `None` is an output that is not wanted.
    pub outputs: SmallVec<[Option<ValueId>; 2]>,
    pub attributes: Vec<Attribute>,
    pub doc: Text,
    pub metadata: Vec<(Text, Text)>,
    pub extra: Option<Arc<Extra>>,
    pub order: OrderKey,
}

impl Node {
    /// A node of the standard domain without name, inputs or outputs; place and order are set when it is added.
    pub fn new(graph: GraphId, op_type: &str) -> Node {
        Node {
            graph,
            name: "".into(),
            domain: "".into(),
            op_type: op_type.into(),
            overload: "".into(),
            inputs: SmallVec::new(),
            outputs: SmallVec::new(),
            attributes: Vec::new(),
            doc: "".into(),
            metadata: Vec::new(),
            extra: None,
            order: OrderKey(0),
        }
    }

    /// True when the operator is one of the ONNX standard's default domain.
    pub fn is_standard(&self) -> bool {
        matches!(&*self.domain, "" | "ai.onnx")
    }

    /// True for the standard operator of that name (a custom operator named `Identity` is not one).
    pub fn is(&self, op_type: &str) -> bool {
        self.is_standard() && &*self.op_type == op_type
    }

    /// Input at a position; `None` when skipped or beyond the list.
    pub fn input(&self, index: usize) -> Option<ValueId> {
        self.inputs.get(index).copied().flatten()
    }

    /// Output at a position; `None` when not wanted or beyond the list.
    pub fn output(&self, index: usize) -> Option<ValueId> {
        self.outputs.get(index).copied().flatten()
    }

    /// Attribute value by name.
    pub fn attribute(&self, name: &str) -> Option<&AttributeValue> {
        self.attributes.iter().find(|a| &*a.name == name).map(|a| &a.value)
    }

    /// Integer attribute, or the default that the standard gives. `None` when present with another kind or as a reference.
    pub fn int_or(&self, name: &str, default: i64) -> Option<i64> {
        match self.attribute(name) {
            None => Some(default),
            Some(v) => v.int(),
        }
    }

    /// Body graphs of If, Loop, Scan and of custom operators, in attribute order, with the attribute's name.
    pub fn bodies(&self) -> impl Iterator<Item = (&Text, GraphId)> + '_ {
        self.attributes.iter().flat_map(|a| a.value.graphs().iter().map(move |g| (&a.name, *g)))
    }

    /// True when any attribute refers to one of the enclosing function's.
    pub fn has_attribute_references(&self) -> bool {
        self.attributes.iter().any(|a| matches!(a.value, AttributeValue::Reference { .. }))
    }
}

/// Where a value comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Producer {
    /// Output of a node.
    Node { node: NodeId, output: u32 },
    /// Formal input of its graph (it may also have constant data: a default value, or, up to IR version 3, a constant).
    Input { index: u32 },
    /// An initializer that is not an input.
    Initializer,
    /// Nothing: only while a patch is being applied.
    Nothing,
}

/// One place where a value is read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Use {
    /// Input of a node, in the value's own graph or (a capture) in a body nested inside it.
    Input { node: NodeId, index: u32 },
    /// Output of a graph, in the value's own graph or in a body nested inside it.
    Output { graph: GraphId, index: u32 },
}

/// All places where a value is read, sorted: a short list, or a persistent set when there are many.
#[derive(Clone, Debug)]
pub struct Uses(Repr);

#[derive(Clone, Debug)]
enum Repr {
    Few(SmallVec<[Use; 4]>),
    Many(imbl::OrdSet<Use>),
}

/// From this many readers on a persistent set keeps additions cheap.
const MANY: usize = 16;

impl Default for Uses {
    fn default() -> Uses {
        Uses(Repr::Few(SmallVec::new()))
    }
}

impl Uses {
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Few(list) => list.len(),
            Repr::Many(set) => set.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// In sorted order: node inputs by node, then graph outputs.
    pub fn iter(&self) -> Box<dyn Iterator<Item = Use> + '_> {
        match &self.0 {
            Repr::Few(list) => Box::new(list.iter().copied()),
            Repr::Many(set) => Box::new(set.iter().copied()),
        }
    }

    /// The only use, when there is exactly one.
    pub fn single(&self) -> Option<Use> {
        if self.len() == 1 { self.iter().next() } else { None }
    }

    /// True when a graph gives the value out.
    pub fn is_output(&self) -> bool {
        match &self.0 {
            Repr::Few(list) => matches!(list.last(), Some(Use::Output { .. })),
            Repr::Many(set) => matches!(set.get_max(), Some(Use::Output { .. })),
        }
    }

    pub(super) fn insert(&mut self, u: Use) {
        match &mut self.0 {
            Repr::Few(list) => {
                if let Err(at) = list.binary_search(&u) {
                    list.insert(at, u);
                }
                if list.len() > MANY {
                    self.0 = Repr::Many(list.iter().copied().collect());
                }
            }
            Repr::Many(set) => {
                set.insert(u);
            }
        }
    }

    pub(super) fn remove(&mut self, u: Use) {
        match &mut self.0 {
            Repr::Few(list) => {
                if let Ok(at) = list.binary_search(&u) {
                    list.remove(at);
                }
            }
            Repr::Many(set) => {
                set.remove(&u);
                // One form per content: an undone patch leaves exactly what was there.
                if set.len() <= MANY {
                    self.0 = Repr::Few(set.iter().copied().collect());
                }
            }
        }
    }
}

/// A tensor or other datum that flows between nodes.
#[derive(Clone, Debug)]
pub struct Value {
    /// The graph in which it is defined.
    pub graph: GraphId,
    /// Unique among what is visible in its graph; sibling bodies may use the same.
    pub name: Text,
    /// What the file (or the builder) declares; facts know more, and are right where the two differ.
    pub ty: Type,
    pub producer: Producer,
    pub uses: Uses,
    /// Data of an initializer.
    pub constant: Option<Constant>,
    /// Place of the initializer among the file's.
    pub constant_position: u32,
    /// Its entry in `value_info`, if it has one.
    pub declaration: Option<Arc<Declaration>>,
}

impl Value {
    /// A value without producer.
    pub fn new(graph: GraphId, name: impl Into<Text>, ty: Type) -> Value {
        Value {
            graph,
            name: name.into(),
            ty,
            producer: Producer::Nothing,
            uses: Uses::default(),
            constant: None,
            constant_position: 0,
            declaration: None,
        }
    }

    /// The producing node and its output's position.
    pub fn node(&self) -> Option<(NodeId, usize)> {
        match self.producer {
            Producer::Node { node, output } => Some((node, output as usize)),
            _ => None,
        }
    }
}
