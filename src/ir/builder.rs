//! Graphs made by hand, in a few lines.

use super::attribute::{Attribute, AttributeValue};
use super::check::{self, Fault};
use super::construct::Construction;
use super::ids::{GraphId, NodeId, Text, ValueId};
use super::model::{GraphKind, Header, Model};
use super::node::{Declaration, Node, Value};
use super::tensor::Constant;
use super::types::{Dim, ElementType, Type};
use std::collections::BTreeMap;

/// Makes a model node by node.
///
/// ```
/// use passlens::ir::{Builder, ElementType, Tensor};
/// let mut b = Builder::new("tiny", 17);
/// let x = b.input("x", ElementType::FLOAT, &["batch".into(), 2.into()]);
/// let w = b.constant("w", Tensor::from_f32(&[2, 1], &[0.5, -1.0]));
/// let y = b.op("MatMul", &[x, w]).named("dense").one();
/// b.output(y);
/// assert_eq!(b.finish().unwrap().node_count(), 1);
/// ```
pub struct Builder {
    construction: Construction,
    graph: GraphId,
    counts: BTreeMap<String, u32>,
    positions: u32,
}

impl Builder {
    /// An empty model with one operator set of the standard domain.
    pub fn new(name: &str, opset: i64) -> Builder {
        let header = Header {
            ir_version: 8,
            opsets: vec![("".into(), opset)],
            producer_name: "passlens".into(),
            ..Header::default()
        };
        let mut construction = Construction::new(header);
        let graph = construction.main();
        construction.graph_mut(graph).name = name.into();
        Builder { construction, graph, counts: BTreeMap::new(), positions: 0 }
    }

    /// The model-wide part, to be filled.
    pub fn header(&mut self) -> &mut Header {
        &mut self.construction.header
    }

    /// A formal input of the graph that is being filled.
    pub fn input(&mut self, name: &str, element: ElementType, shape: &[Dim]) -> ValueId {
        let ty = Type::tensor(element, shape.iter().cloned());
        let id = self.construction.add_value(Value::new(self.graph, name, ty.clone()));
        self.construction.add_input(self.graph, id, Declaration::of(ty));
        id
    }

    /// An initializer of the graph that is being filled.
    pub fn constant(&mut self, name: &str, data: impl Into<Constant>) -> ValueId {
        let data = data.into();
        let name = self.unique(name);
        let mut value = Value::new(self.graph, name, data.ty());
        value.constant = Some(data);
        value.constant_position = self.positions;
        value.producer = super::node::Producer::Initializer;
        self.positions += 1;
        self.construction.add_value(value)
    }

    /// An operator of the standard domain; finished by [`Op::one`] or [`Op::outputs`].
    pub fn op(&mut self, op_type: &str, inputs: &[ValueId]) -> Op<'_> {
        let mut node = Node::new(self.graph, op_type);
        node.inputs = inputs.iter().map(|v| Some(*v)).collect();
        Op { builder: self, node, reserved: None }
    }

    /// Makes a value an output of the graph that is being filled, with its declared type.
    pub fn output(&mut self, value: ValueId) {
        let ty = self.construction.value(value).ty.clone();
        self.construction.add_output(self.graph, value, Declaration::of(ty));
    }

    /// Makes a value an output, under another name and with a type.
    pub fn output_as(&mut self, value: ValueId, name: &str, element: ElementType, shape: &[Dim]) {
        let v = self.construction.value_mut(value);
        v.name = name.into();
        v.ty = Type::tensor(element, shape.iter().cloned());
        self.output(value);
    }

    /// The model; all that [`check::check`] finds wrong when it is not sound.
    pub fn finish(self) -> Result<Model, Vec<Fault>> {
        let model = self.construction.finish();
        let faults = check::check(&model);
        if faults.is_empty() { Ok(model) } else { Err(faults) }
    }

    fn unique(&mut self, base: &str) -> Text {
        let count = self.counts.entry(base.to_owned()).or_default();
        *count += 1;
        match *count {
            1 => base.into(),
            n => format!("{base}_{}", n - 1).into(),
        }
    }
}

/// An operator that is being described.
pub struct Op<'b> {
    builder: &'b mut Builder,
    node: Node,
    /// Its id, once a body needed to know its owner.
    reserved: Option<NodeId>,
}

impl Op<'_> {
    /// Sets the node's name; without it the node is called by its operator and a number.
    pub fn named(mut self, name: &str) -> Self {
        self.node.name = name.into();
        self
    }

    /// Adds an attribute.
    pub fn attr(mut self, name: &str, value: impl Into<AttributeValue>) -> Self {
        self.node.attributes.push(Attribute::new(name, value));
        self
    }

    /// Adds an input after a number of skipped optional ones.
    pub fn skip_then(mut self, skipped: usize, input: ValueId) -> Self {
        self.node.inputs.extend(std::iter::repeat_n(None, skipped));
        self.node.inputs.push(Some(input));
        self
    }

    /// Adds a body graph, filled by the closure; values of the outer graphs can be read in it.
    pub fn body(mut self, attribute: &str, fill: impl FnOnce(&mut Builder)) -> Self {
        let owner = *self.reserved.get_or_insert_with(|| self.builder.construction.reserve_node());
        let kind = GraphKind::Body { owner, attribute: attribute.into(), index: 0 };
        let body = self.builder.construction.add_graph(kind);
        self.builder.construction.graph_mut(body).name = attribute.into();
        let outer = std::mem::replace(&mut self.builder.graph, body);
        fill(self.builder);
        self.builder.graph = outer;
        self.node.attributes.push(Attribute::new(attribute, body));
        self
    }

    /// Finishes with one output.
    pub fn one(self) -> ValueId {
        self.outputs(1)[0]
    }

    /// Finishes with several outputs.
    pub fn outputs(mut self, count: usize) -> Vec<ValueId> {
        if self.node.name.is_empty() {
            self.node.name = self.builder.unique(&self.node.op_type.clone());
        }
        let graph = self.builder.graph;
        let ids: Vec<ValueId> = (0..count.max(1))
            .map(|i| {
                let name = self.builder.unique(&format!("{}_output_{i}", self.node.name));
                self.builder.construction.add_value(Value::new(graph, name, Type::Unknown))
            })
            .collect();
        self.node.outputs = ids.iter().map(|v| Some(*v)).collect();
        match self.reserved {
            Some(id) => self.builder.construction.set_node(id, self.node),
            None => {
                self.builder.construction.add_node(self.node);
            }
        }
        ids
    }
}
