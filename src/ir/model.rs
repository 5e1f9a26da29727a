//! The model: graphs, nodes and values in persistent arenas, so that a copy is a few pointers.

use super::attribute::Attribute;
use super::ids::{GraphId, NodeId, OrderKey, Text, ValueId};
use super::node::{Declaration, Extra, Node, Producer, Use, Value};
use super::tensor::{Constant, Tensor};
use bytes::Bytes;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a graph is the graph of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GraphKind {
    /// The model's own.
    Main,
    /// Held by an attribute of a node (If, Loop, Scan, SequenceMap, or an operator of a foreign domain).
    Body { owner: NodeId, attribute: Text, index: u32 },
    /// Body of a model-local function; the position in [`Header::functions`].
    Function(u32),
}

/// A formal input or output of a graph with what the file declares about it.
#[derive(Clone, Debug)]
pub struct Port {
    pub value: ValueId,
    pub declaration: Arc<Declaration>,
}

/// A list of nodes with inputs and outputs.
#[derive(Clone, Debug)]
pub struct Graph {
    pub name: Text,
    pub doc: Text,
    pub kind: GraphKind,
    pub inputs: Arc<[Port]>,
    pub outputs: Arc<[Port]>,
    /// Nodes in an order in which they can run.
    pub nodes: imbl::OrdMap<OrderKey, NodeId>,
    pub metadata: Vec<(Text, Text)>,
    /// `quantization_annotation` entries: the tensor they are about, and the message as it stood.
    pub annotations: Arc<[(Text, Bytes)]>,
    /// `value_info` entries about names that no value has, with their position.
    pub stray_declarations: Arc<[(Text, Arc<Declaration>)]>,
    pub extra: Option<Arc<Extra>>,
}

/// A model-local function.
#[derive(Clone, Debug)]
pub struct Function {
    pub name: Text,
    pub domain: Text,
    pub overload: Text,
    pub graph: GraphId,
    /// Names of attributes that a call must give.
    pub attributes: Vec<Text>,
    /// Attributes with a default.
    pub defaults: Vec<Attribute>,
    pub opsets: Vec<(Text, i64)>,
    pub extra: Option<Arc<Extra>>,
}

/// The model-wide part.
#[derive(Clone, Debug, Default)]
pub struct Header {
    pub ir_version: i64,
    /// Domain and version, in file order.
    pub opsets: Vec<(Text, i64)>,
    pub producer_name: Text,
    pub producer_version: Text,
    pub domain: Text,
    pub model_version: i64,
    pub doc: Text,
    pub metadata: Vec<(Text, Text)>,
    pub functions: Vec<Function>,
    /// `TrainingInfoProto` messages as they stood.
    pub training: Vec<Bytes>,
    /// `DeviceConfigurationProto` messages as they stood.
    pub configurations: Vec<Bytes>,
    pub extra: Option<Arc<Extra>>,
}

/// A model. Cloning is cheap (shared storage); changes go through [`crate::ir::Patch`].
#[derive(Clone, Debug)]
pub struct Model {
    pub(super) header: Arc<Header>,
    pub(super) nodes: imbl::Vector<Option<Arc<Node>>>,
    pub(super) values: imbl::Vector<Option<Arc<Value>>>,
    pub(super) graphs: imbl::Vector<Arc<Graph>>,
    /// Values by name, in all graphs: new names avoid every one of them.
    pub(super) value_names: imbl::OrdMap<Text, SmallVec<[ValueId; 1]>>,
    /// How many nodes have a name.
    pub(super) node_names: imbl::OrdMap<Text, u32>,
    /// Names that more than one value had at the beginning, one in a body and one around it. The standard forbids that,
    /// files have it all the same.
    pub(super) hiding: Arc<BTreeSet<Text>>,
    /// Names of values that kept messages speak of, and what speaks of them: "a quantization annotation".
    pub(super) spoken: Arc<BTreeMap<Text, Text>>,
}

impl Model {
    /// The model-wide part.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The main graph.
    pub fn main(&self) -> GraphId {
        GraphId(0)
    }

    /// A node that is there; `None` for a removed one.
    pub fn get_node(&self, id: NodeId) -> Option<&Arc<Node>> {
        self.nodes.get(id.index())?.as_ref()
    }

    /// A value that is there; `None` for a removed one.
    pub fn get_value(&self, id: ValueId) -> Option<&Arc<Value>> {
        self.values.get(id.index())?.as_ref()
    }

    /// A graph that is there.
    pub fn get_graph(&self, id: GraphId) -> Option<&Arc<Graph>> {
        self.graphs.get(id.index())
    }

    /// A node. Panics when it is not there: only for ids taken from this very model.
    pub fn node(&self, id: NodeId) -> &Arc<Node> {
        self.get_node(id).expect("id of a node of this model")
    }

    /// A value. Panics when it is not there: only for ids taken from this very model.
    pub fn value(&self, id: ValueId) -> &Arc<Value> {
        self.get_value(id).expect("id of a value of this model")
    }

    /// A graph. Panics when it is not there: only for ids taken from this very model.
    pub fn graph(&self, id: GraphId) -> &Arc<Graph> {
        self.get_graph(id).expect("id of a graph of this model")
    }

    /// Nodes of one graph, in an order in which they can run; bodies are not entered.
    pub fn nodes_of(&self, graph: GraphId) -> impl DoubleEndedIterator<Item = (NodeId, &Arc<Node>)> + '_ {
        self.graph(graph).nodes.values().map(|id| (*id, self.node(*id)))
    }

    /// All graphs that are reached: main, its bodies depth first where their owners stand, then functions with theirs.
    pub fn live_graphs(&self) -> Vec<GraphId> {
        // By the graphs and not by the nodes: graphs are few, and this is asked often.
        let mut owners: BTreeMap<GraphId, BTreeMap<OrderKey, NodeId>> = BTreeMap::new();
        for graph in &self.graphs {
            if let GraphKind::Body { owner, .. } = graph.kind
                && let Some(node) = self.get_node(owner)
            {
                owners.entry(node.graph).or_default().insert(node.order, owner);
            }
        }
        let mut found = Vec::new();
        let roots = std::iter::once(self.main()).chain(self.header.functions.iter().map(|f| f.graph));
        for root in roots {
            self.collect_graphs(root, &owners, &mut found);
        }
        found
    }

    fn collect_graphs(
        &self,
        graph: GraphId,
        owners: &BTreeMap<GraphId, BTreeMap<OrderKey, NodeId>>,
        into: &mut Vec<GraphId>,
    ) {
        into.push(graph);
        for owner in owners.get(&graph).into_iter().flat_map(BTreeMap::values) {
            for (_, body) in self.node(*owner).bodies() {
                self.collect_graphs(body, owners, into);
            }
        }
    }

    /// All nodes of all live graphs, graph by graph.
    pub fn all_nodes(&self) -> Vec<NodeId> {
        self.live_graphs()
            .into_iter()
            .flat_map(|g| self.graph(g).nodes.values().copied().collect::<Vec<_>>())
            .collect()
    }

    /// All values that are there, by id. Values of bodies that were removed with their owner are included.
    pub fn values(&self) -> impl Iterator<Item = (ValueId, &Arc<Value>)> + '_ {
        self.values.iter().enumerate().filter_map(|(i, v)| Some((ValueId(i as u32), v.as_ref()?)))
    }

    /// Nodes whose storage is not that of `other`, a model of the same session: all that was added, removed or changed
    /// between the two, bodies' nodes by their own change only. Pointers are compared, not contents.
    pub fn nodes_apart(&self, other: &Model) -> Vec<NodeId> {
        apart(&self.nodes, &other.nodes).into_iter().map(NodeId).collect()
    }

    /// Values whose storage is not that of `other`; see [`Model::nodes_apart`].
    pub fn values_apart(&self, other: &Model) -> Vec<ValueId> {
        apart(&self.values, &other.values).into_iter().map(ValueId).collect()
    }

    /// Number of nodes in live graphs.
    pub fn node_count(&self) -> usize {
        self.live_graphs().into_iter().map(|g| self.graph(g).nodes.len()).sum()
    }

    /// First ids that no node, value and graph ever had: where a session's numbering of new ones begins.
    pub fn id_bounds(&self) -> (u32, u32, u32) {
        (self.nodes.len() as u32, self.values.len() as u32, self.graphs.len() as u32)
    }

    /// Version of the operator set of a domain in force in a graph (a function has its own imports).
    pub fn opset(&self, graph: GraphId, domain: &str) -> Option<i64> {
        let same = |d: &str| d == domain || (matches!(d, "" | "ai.onnx") && matches!(domain, "" | "ai.onnx"));
        let imports = match self.root_of(graph) {
            GraphKind::Function(index) => &self.header.functions.get(index as usize)?.opsets,
            _ => &self.header.opsets,
        };
        imports.iter().find(|(d, _)| same(d)).map(|(_, v)| *v)
    }

    /// Kind of the outermost graph around a graph: main or a function.
    pub fn root_of(&self, mut graph: GraphId) -> GraphKind {
        loop {
            match &self.graph(graph).kind {
                GraphKind::Body { owner, .. } => match self.get_node(*owner) {
                    Some(node) => graph = node.graph,
                    // A body whose owner a patch took away belongs to nothing that runs.
                    None => return GraphKind::Main,
                },
                kind => return kind.clone(),
            }
        }
    }

    /// The node that holds the graph, for a body.
    pub fn owner_of(&self, graph: GraphId) -> Option<NodeId> {
        match &self.graph(graph).kind {
            GraphKind::Body { owner, .. } => Some(*owner),
            _ => None,
        }
    }

    /// The graph that `inner` (itself, or through its owners) stands in at the level of `outer`; `None` when not inside.
    /// Gives the node of `outer` that contains `inner`, or no node when the two are the same graph.
    pub fn enclosing_node(&self, outer: GraphId, inner: GraphId) -> Option<Option<NodeId>> {
        let mut at = inner;
        let mut through = None;
        while at != outer {
            let owner = self.owner_of(at)?;
            through = Some(owner);
            at = self.get_node(owner)?.graph;
        }
        Some(through)
    }

    /// The model-local function that a node calls.
    pub fn function_of(&self, node: &Node) -> Option<&Function> {
        let standard = |d: &str| matches!(d, "" | "ai.onnx");
        self.header.functions.iter().find(|f| {
            f.name == node.op_type
                && f.overload == node.overload
                && (f.domain == node.domain || (standard(&f.domain) && standard(&node.domain)))
        })
    }

    /// Data of an initializer that no caller can override: IR version 4 made initializers that are also inputs defaults.
    pub fn initializer(&self, value: ValueId) -> Option<&Constant> {
        let v = self.get_value(value)?;
        match v.producer {
            Producer::Initializer => v.constant.as_ref(),
            Producer::Input { .. } if self.header.ir_version < 4 => v.constant.as_ref(),
            _ => None,
        }
    }

    /// Dense constant data of a value: of an initializer, or of a `Constant` node's `value` attribute.
    /// The other spellings of Constant (value_int, …) are for [`crate::facts`].
    pub fn dense_initializer(&self, value: ValueId) -> Option<&Arc<Tensor>> {
        self.initializer(value)?.dense()
    }

    /// True when a main-graph input is there only as the initializer that it is (IR version 3 lists all of them).
    pub fn is_constant_input(&self, value: ValueId) -> bool {
        self.header.ir_version < 4 && self.get_value(value).is_some_and(|v| v.constant.is_some())
    }

    /// True when the value may not lose its name and producer: an output of any graph.
    pub fn is_output(&self, value: ValueId) -> bool {
        self.get_value(value).is_some_and(|v| v.uses.is_output())
    }

    /// Nodes that read a value, in order of id, each once.
    pub fn readers(&self, value: ValueId) -> Vec<NodeId> {
        let mut nodes: Vec<NodeId> = Vec::new();
        for u in self.value(value).uses.iter() {
            if let Use::Input { node, .. } = u
                && nodes.last() != Some(&node)
            {
                nodes.push(node);
            }
        }
        nodes
    }

    /// Where a graph stands, as people and scripts name it: `main`, `main/If_3.then_branch`, `function Gelu`.
    /// An owner without a name is called by its first output.
    pub fn graph_path(&self, graph: GraphId) -> String {
        match &self.graph(graph).kind {
            GraphKind::Main => "main".into(),
            GraphKind::Function(i) => match self.header.functions.get(*i as usize) {
                Some(f) => format!("function {}", f.name),
                None => "function".into(),
            },
            GraphKind::Body { owner, attribute, index } => match self.get_node(*owner) {
                Some(node) => {
                    let several = node.attribute(attribute).is_some_and(|a| a.graphs().len() > 1);
                    let suffix = if several { format!("[{index}]") } else { String::new() };
                    format!("{}/{}.{attribute}{suffix}", self.graph_path(node.graph), self.node_label(*owner))
                }
                None => attribute.to_string(),
            },
        }
    }

    /// How people call a node: its name, or operator and first output where it has none.
    pub fn node_label(&self, id: NodeId) -> String {
        let Some(node) = self.get_node(id) else { return id.to_string() };
        if !node.name.is_empty() {
            return node.name.to_string();
        }
        match node.outputs.iter().flatten().next().and_then(|v| self.get_value(*v)) {
            Some(v) => format!("{} → {}", node.op_type, v.name),
            None => format!("{} {id}", node.op_type),
        }
    }

    /// A value of a graph by name, looking outward from a body as ONNX scoping does.
    pub fn find_value(&self, graph: GraphId, name: &str) -> Option<ValueId> {
        let named = self.value_names.get(name)?;
        let mut at = Some(graph);
        while let Some(g) = at {
            if let Some(id) = named.iter().find(|id| self.get_value(**id).is_some_and(|v| v.graph == g)) {
                return Some(*id);
            }
            at = self.owner_of(g).and_then(|n| self.get_node(n)).map(|n| n.graph);
        }
        None
    }

    /// Values of that name in all graphs, in order of id.
    pub fn values_named(&self, name: &str) -> &[ValueId] {
        self.value_names.get(name).map_or(&[], |v| v)
    }

    /// A name that no value of any graph has: `base`, or `base_1`, `base_2`, …
    pub fn fresh_value_name(&self, base: &str) -> Text {
        fresh(base, |n| self.value_names.contains_key(n))
    }

    /// A name that no node of any graph has: `base`, or `base_1`, `base_2`, …
    pub fn fresh_node_name(&self, base: &str) -> Text {
        fresh(base, |n| self.node_names.contains_key(n))
    }

    /// What speaks of a value by its name beside the nodes that read it, if anything does: without the value, or with
    /// another one under its name, that would say something false.
    pub fn spoken_of(&self, value: ValueId) -> Option<&Text> {
        if self.spoken.is_empty() {
            return None;
        }
        self.spoken.get(&self.get_value(value)?.name)
    }

    /// A copy that knows which names kept messages speak of (only the formats can read those messages).
    pub fn with_spoken(&self, spoken: BTreeMap<Text, Text>) -> Model {
        Model { spoken: Arc::new(spoken), ..self.clone() }
    }

    /// A copy with another model-wide part (metadata written on request, say).
    pub fn with_header(&self, header: Header) -> Model {
        Model { header: Arc::new(header), ..self.clone() }
    }
}

/// Positions at which two arenas hold different things; beyond an arena's end there is nothing.
fn apart<T>(a: &imbl::Vector<Option<Arc<T>>>, b: &imbl::Vector<Option<Arc<T>>>) -> Vec<u32> {
    let mut found = Vec::new();
    if a.ptr_eq(b) {
        return found;
    }
    let (mut left, mut right) = (a.iter(), b.iter());
    for position in 0..a.len().max(b.len()) {
        let pair = (left.next().and_then(Option::as_ref), right.next().and_then(Option::as_ref));
        let same = match pair {
            (Some(x), Some(y)) => Arc::ptr_eq(x, y),
            (x, y) => x.is_none() && y.is_none(),
        };
        if !same {
            found.push(position as u32);
        }
    }
    found
}

fn fresh(base: &str, taken: impl Fn(&str) -> bool) -> Text {
    if !base.is_empty() && !taken(base) {
        return base.into();
    }
    let base = if base.is_empty() { "unnamed" } else { base };
    let mut k = 1u64;
    loop {
        let name = format!("{base}_{k}");
        if !taken(&name) {
            return name.into();
        }
        k += 1;
    }
}
