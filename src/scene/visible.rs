//! What is to be seen: the boxes that follow from the blocks and from what is open, without places.

use super::picture::{BoxKind, Item, Mark, Place};
use super::source::{Members, Source};
use crate::blocks::{BlockId, BlockTree, Child};
use crate::ir::{GraphId, NodeId, Text, ValueId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a visible box stands for.
#[derive(Clone, Debug)]
pub(super) enum What {
    Node(NodeId),
    /// With the nodes inside, for a closed one (an open one shows them), and the number of all of them.
    Block(BlockId, Vec<NodeId>, u32),
    /// A body of an open node: the attribute that holds it.
    Body(Text),
    Input(ValueId, Mark),
    Output(ValueId, Mark),
}

/// A box without a place.
#[derive(Clone, Debug)]
pub(super) struct Visible {
    pub(super) place: Place,
    pub(super) kind: BoxKind,
    pub(super) what: What,
    pub(super) parent: Option<u32>,
    pub(super) depth: u32,
    pub(super) children: Vec<u32>,
    /// Number of its context.
    pub(super) context: u32,
}

impl Visible {
    pub(super) fn is_container(&self) -> bool {
        matches!(self.kind, BoxKind::OpenNode | BoxKind::OpenBlock | BoxKind::Body)
    }
}

/// One way into a graph: the main graph, or a function by one chain of calls.
#[derive(Debug, Default)]
pub(super) struct Context {
    pub(super) calls: SmallVec<[NodeId; 2]>,
    /// Innermost visible box of each node of the graphs shown.
    pub(super) box_of: FxHashMap<NodeId, u32>,
    pub(super) input: FxHashMap<ValueId, u32>,
    /// Graphs shown in it, in order.
    pub(super) graphs: Vec<GraphId>,
}

/// All visible boxes, containers before what is in them.
#[derive(Debug, Default)]
pub(super) struct Scenery {
    pub(super) boxes: Vec<Visible>,
    pub(super) top: Vec<u32>,
    pub(super) contexts: Vec<Context>,
}

/// Gives the members of a graph's blocks, from a cache if it has them.
pub(super) type MembersOf<'m> = dyn FnMut(GraphId) -> Arc<Members> + 'm;

struct Builder<'a, 'm> {
    source: Source<'a>,
    blocks: &'a BlockTree,
    open: &'a BTreeSet<Place>,
    members_of: &'m mut MembersOf<'m>,
    scenery: Scenery,
    /// Positions of functions' graphs by what a call names.
    functions: BTreeMap<(&'a str, &'a str, &'a str), GraphId>,
}

/// Collects what is visible of the graph and of everything open in it.
pub(super) fn collect<'a, 'm>(
    source: Source<'a>,
    blocks: &'a BlockTree,
    graph: GraphId,
    open: &'a BTreeSet<Place>,
    members_of: &'m mut MembersOf<'m>,
) -> Scenery {
    // The first of a name counts, those of the model now before those that it had.
    let models = source.before.into_iter().chain([source.after]);
    let functions = models
        .flat_map(|model| model.header().functions.iter().rev())
        .map(|f| ((plain(&f.domain), &*f.name, &*f.overload), f.graph))
        .collect();
    let mut builder = Builder { source, blocks, open, members_of, scenery: Scenery::default(), functions };
    builder.scenery.contexts.push(Context::default());
    builder.graph(graph, None, 0);
    builder.scenery
}

/// The standard domain has two spellings.
fn plain(domain: &str) -> &str {
    if domain == "ai.onnx" { "" } else { domain }
}

impl<'a> Builder<'a, '_> {
    /// Inputs, members and outputs of a graph. Recursion follows open places only, so it ends with them.
    fn graph(&mut self, graph: GraphId, parent: Option<u32>, context: u32) {
        let (inputs, outputs) = self.source.ports(graph);
        self.scenery.contexts[context as usize].graphs.push(graph);
        let source = self.source;
        let constant = |v| source.model_of(v).is_constant_input(v);
        for (_, value, mark) in inputs.into_iter().filter(|(_, v, _)| !constant(*v)) {
            let what = What::Input(value, mark);
            let at = self.push(Item::Input(value), BoxKind::Input, what, parent, context);
            self.scenery.contexts[context as usize].input.insert(value, at);
        }
        let members = (self.members_of)(graph);
        self.children(&members, &members.top, parent, context);
        for (index, value, mark) in outputs {
            let what = What::Output(value, mark);
            self.push(Item::Output(index, value), BoxKind::Output, what, parent, context);
        }
    }

    fn children(&mut self, members: &Arc<Members>, children: &[Child], parent: Option<u32>, context: u32) {
        for child in children {
            match *child {
                Child::Node(id) => self.node(id, parent, context),
                Child::Block(id) => {
                    let item = Item::Block(id);
                    let count = members.count(id);
                    if self.open.contains(&self.place(item, context)) {
                        let what = What::Block(id, Vec::new(), count);
                        let at = self.push(item, BoxKind::OpenBlock, what, parent, context);
                        self.children(members, members.of(id), Some(at), context);
                    } else {
                        let nodes = members.nodes(id);
                        let what = What::Block(id, Vec::new(), count);
                        let at = self.push(item, BoxKind::ClosedBlock, what, parent, context);
                        let box_of = &mut self.scenery.contexts[context as usize].box_of;
                        box_of.extend(nodes.iter().map(|n| (*n, at)));
                        self.scenery.boxes[at as usize].what = What::Block(id, nodes, count);
                    }
                }
            }
        }
    }

    fn node(&mut self, id: NodeId, parent: Option<u32>, context: u32) {
        let Some(node) = self.source.node(id) else { return };
        let bodies: Vec<(Text, GraphId)> = node.bodies().map(|(name, g)| (name.clone(), g)).collect();
        let called = self.functions.get(&(plain(&node.domain), &*node.op_type, &*node.overload)).copied();
        let opens = !bodies.is_empty() || called.is_some();
        let open = opens && self.open.contains(&self.place(Item::Node(id), context));
        let kind = match (opens, open) {
            (false, _) => BoxKind::Node,
            (true, false) => BoxKind::ClosedNode,
            (true, true) => BoxKind::OpenNode,
        };
        let at = self.push(Item::Node(id), kind, What::Node(id), parent, context);
        self.scenery.contexts[context as usize].box_of.insert(id, at);
        if !open {
            return;
        }
        if let Some(function) = called {
            let mut calls = self.scenery.contexts[context as usize].calls.clone();
            calls.push(id);
            let inner = self.scenery.contexts.len() as u32;
            self.scenery.contexts.push(Context { calls, ..Context::default() });
            self.graph(function, Some(at), inner);
        }
        for (name, body) in &bodies {
            let Some(root) = self.blocks.root(*body).filter(|_| bodies.len() > 1) else {
                self.graph(*body, Some(at), context);
                continue;
            };
            let what = What::Body(name.clone());
            let container = self.push(Item::Block(root), BoxKind::Body, what, Some(at), context);
            self.graph(*body, Some(container), context);
        }
    }

    fn place(&self, item: Item, context: u32) -> Place {
        Place { calls: self.scenery.contexts[context as usize].calls.clone(), item }
    }

    fn push(&mut self, item: Item, kind: BoxKind, what: What, parent: Option<u32>, context: u32) -> u32 {
        let at = self.scenery.boxes.len() as u32;
        let place = self.place(item, context);
        let depth = parent.map_or(0, |p| self.scenery.boxes[p as usize].depth + 1);
        self.scenery.boxes.push(Visible { place, kind, what, parent, depth, children: Vec::new(), context });
        match parent {
            Some(p) => self.scenery.boxes[p as usize].children.push(at),
            None => self.scenery.top.push(at),
        }
        at
    }
}
