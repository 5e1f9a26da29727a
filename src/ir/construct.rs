//! Building a model from nothing: what importers, the text form and the builder use; afterwards only patches change it.

use super::check;
use super::ids::{GraphId, NodeId, OrderKey, Text, ValueId};
use super::model::{Graph, GraphKind, Header, Model, Port};
use super::node::{Declaration, Extra, Node, Producer, Use, Value};
use bytes::Bytes;
use std::sync::Arc;

/// A graph that is being filled.
#[derive(Clone, Debug)]
pub struct GraphDraft {
    pub name: Text,
    pub doc: Text,
    pub kind: GraphKind,
    pub inputs: Vec<Port>,
    pub outputs: Vec<Port>,
    /// In an order in which they can run.
    pub nodes: Vec<NodeId>,
    pub metadata: Vec<(Text, Text)>,
    pub annotations: Vec<(Text, Bytes)>,
    pub stray_declarations: Vec<(Text, Arc<Declaration>)>,
    pub extra: Option<Arc<Extra>>,
}

/// A model that is being built: plain vectors, frozen by [`Construction::finish`].
#[derive(Clone, Debug)]
pub struct Construction {
    pub header: Header,
    graphs: Vec<GraphDraft>,
    nodes: Vec<Option<Node>>,
    values: Vec<Value>,
}

impl Construction {
    /// With an empty main graph.
    pub fn new(header: Header) -> Construction {
        let mut c = Construction { header, graphs: Vec::new(), nodes: Vec::new(), values: Vec::new() };
        c.add_graph(GraphKind::Main);
        c
    }

    /// The main graph.
    pub fn main(&self) -> GraphId {
        GraphId(0)
    }

    /// An empty graph.
    pub fn add_graph(&mut self, kind: GraphKind) -> GraphId {
        self.graphs.push(GraphDraft {
            name: "".into(),
            doc: "".into(),
            kind,
            inputs: Vec::new(),
            outputs: Vec::new(),
            nodes: Vec::new(),
            metadata: Vec::new(),
            annotations: Vec::new(),
            stray_declarations: Vec::new(),
            extra: None,
        });
        GraphId(self.graphs.len() as u32 - 1)
    }

    /// A graph of this construction. Panics for a foreign id.
    pub fn graph(&self, id: GraphId) -> &GraphDraft {
        &self.graphs[id.index()]
    }

    /// A graph of this construction, to be filled. Panics for a foreign id.
    pub fn graph_mut(&mut self, id: GraphId) -> &mut GraphDraft {
        &mut self.graphs[id.index()]
    }

    /// Adds a value; its producer is set by the node or port that makes it.
    pub fn add_value(&mut self, value: Value) -> ValueId {
        self.values.push(value);
        ValueId(self.values.len() as u32 - 1)
    }

    /// A value of this construction. Panics for a foreign id.
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.index()]
    }

    /// A value of this construction, to be filled. Panics for a foreign id.
    pub fn value_mut(&mut self, id: ValueId) -> &mut Value {
        &mut self.values[id.index()]
    }

    /// Makes a value the next formal input of a graph.
    pub fn add_input(&mut self, graph: GraphId, value: ValueId, declaration: Declaration) {
        let index = self.graphs[graph.index()].inputs.len() as u32;
        self.values[value.index()].producer = Producer::Input { index };
        self.graphs[graph.index()].inputs.push(Port { value, declaration: Arc::new(declaration) });
    }

    /// Makes a value the next output of a graph.
    pub fn add_output(&mut self, graph: GraphId, value: ValueId, declaration: Declaration) {
        self.graphs[graph.index()].outputs.push(Port { value, declaration: Arc::new(declaration) });
    }

    /// An id for a node whose bodies are built before it is.
    pub fn reserve_node(&mut self) -> NodeId {
        self.nodes.push(None);
        NodeId(self.nodes.len() as u32 - 1)
    }

    /// Puts a node at the end of its graph's list and makes it the producer of its outputs.
    pub fn set_node(&mut self, id: NodeId, node: Node) {
        for (output, value) in node.outputs.iter().enumerate() {
            if let Some(v) = value {
                self.values[v.index()].producer = Producer::Node { node: id, output: output as u32 };
            }
        }
        self.graphs[node.graph.index()].nodes.push(id);
        self.nodes[id.index()] = Some(node);
    }

    /// [`Construction::reserve_node`] and [`Construction::set_node`] in one.
    pub fn add_node(&mut self, node: Node) -> NodeId {
        let id = self.reserve_node();
        self.set_node(id, node);
        id
    }

    /// A node of this construction that was set.
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id.index())?.as_ref()
    }

    /// Freezes: readers are listed, order keys given, names counted. What is wrong with the result,
    /// [`crate::ir::check::check`] says.
    pub fn finish(mut self) -> Model {
        for draft in &self.graphs {
            for (position, id) in draft.nodes.iter().enumerate() {
                if let Some(node) = self.nodes[id.index()].as_mut() {
                    node.order = OrderKey::at(position);
                }
            }
        }
        for (i, node) in self.nodes.iter().enumerate() {
            for (index, value) in node.iter().flat_map(|n| n.inputs.iter().enumerate()) {
                if let Some(v) = value {
                    let u = Use::Input { node: NodeId(i as u32), index: index as u32 };
                    self.values[v.index()].uses.insert(u);
                }
            }
        }
        for (g, draft) in self.graphs.iter().enumerate() {
            for (index, port) in draft.outputs.iter().enumerate() {
                let u = Use::Output { graph: GraphId(g as u32), index: index as u32 };
                self.values[port.value.index()].uses.insert(u);
            }
        }
        let mut value_names: imbl::OrdMap<Text, smallvec::SmallVec<[ValueId; 1]>> = imbl::OrdMap::new();
        for (i, v) in self.values.iter().enumerate() {
            value_names.entry(v.name.clone()).or_default().push(ValueId(i as u32));
        }
        let mut node_names: imbl::OrdMap<Text, u32> = imbl::OrdMap::new();
        for n in self.nodes.iter().flatten().filter(|n| !n.name.is_empty()) {
            *node_names.entry(n.name.clone()).or_default() += 1;
        }
        let nodes = &self.nodes;
        let graphs = self.graphs.into_iter().map(|d| {
            let order =
                d.nodes.iter().filter_map(|id| Some((nodes[id.index()].as_ref()?.order, *id))).collect();
            Arc::new(Graph {
                name: d.name,
                doc: d.doc,
                kind: d.kind,
                inputs: d.inputs.into(),
                outputs: d.outputs.into(),
                nodes: order,
                metadata: d.metadata,
                annotations: d.annotations.into(),
                stray_declarations: d.stray_declarations.into(),
                extra: d.extra,
            })
        });
        let graphs = graphs.collect();
        let mut model = Model {
            header: Arc::new(self.header),
            graphs,
            nodes: self.nodes.into_iter().map(|n| n.map(Arc::new)).collect(),
            values: self.values.into_iter().map(|v| Some(Arc::new(v))).collect(),
            value_names,
            node_names,
            hiding: Arc::default(),
            spoken: Arc::default(),
        };
        let named = model.value_names.iter().filter(|(_, named)| named.len() > 1);
        let hiding = named.filter(|(_, named)| check::hides(&model, named)).map(|(name, _)| name.clone());
        model.hiding = Arc::new(hiding.collect());
        model
    }
}
