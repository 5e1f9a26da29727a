//! Things by name and by place: from what scripts write to places in the picture, and what must be open to see them.

use super::command::Target;
use crate::blocks::{BlockId, BlockTree};
use crate::ir::{GraphId, GraphKind, Model, NodeId, ValueId};
use crate::pipeline::State;
use crate::scene::{Item, Place};
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// The graph of a path as [`Model::graph_path`] writes it.
pub fn graph(model: &Model, path: Option<&str>) -> Result<GraphId, String> {
    let Some(path) = path else { return Ok(model.main()) };
    let found = model.live_graphs().into_iter().find(|g| model.graph_path(*g) == path);
    found.ok_or_else(|| {
        let hint =
            crate::pipeline::config::nearest(path, model.live_graphs().iter().map(|g| model.graph_path(*g)));
        format!("there is no graph '{path}'{hint}")
    })
}

/// A node of a graph: by name, by the name of its first output, or as `Operator#position`.
pub fn node(model: &Model, graph: GraphId, name: &str) -> Result<NodeId, String> {
    if let Some((id, _)) = model.nodes_of(graph).find(|(_, n)| &*n.name == name) {
        return Ok(id);
    }
    let by_output = model.find_value(graph, name).and_then(|v| model.value(v).node());
    if let Some((id, _)) = by_output {
        return Ok(id);
    }
    if let Some((operator, position)) = name.rsplit_once('#')
        && let Ok(k) = position.parse::<usize>()
        && let Some((id, _)) = model.nodes_of(graph).filter(|(_, n)| &*n.op_type == operator).nth(k)
    {
        return Ok(id);
    }
    let hint = crate::pipeline::config::nearest(name, model.nodes_of(graph).map(|(_, n)| n.name.to_string()));
    Err(format!("there is no node '{name}' in {}{hint}", model.graph_path(graph)))
}

/// The place of a target: in the state that is shown, else in the model as imported (a removed node).
pub fn place(shown: &State, initial: &State, target: &Target) -> Result<Place, String> {
    place_in(shown, target).or_else(|e| place_in(initial, target).map_err(|_| e))
}

fn place_in(state: &State, target: &Target) -> Result<Place, String> {
    let model = &state.model;
    let graph = graph(model, target.graph.as_deref())?;
    let item = match (&target.node, &target.value, &target.block) {
        (Some(name), None, None) => Item::Node(node(model, graph, name)?),
        (None, Some(name), None) => {
            let id = model.find_value(graph, name).ok_or_else(|| format!("there is no value '{name}'"))?;
            item_of_value(model, id)?
        }
        (None, None, Some(path)) => {
            let block = state.blocks.find(graph, path).ok_or_else(|| {
                let paths = state
                    .blocks
                    .iter()
                    .filter(|(_, b)| b.graph == graph)
                    .map(|(id, _)| state.blocks.path(id));
                format!("there is no block '{path}'{}", crate::pipeline::config::nearest(path, paths))
            })?;
            Item::Block(block)
        }
        _ => return Err("a target names one node, one value or one block".into()),
    };
    Ok(Place { calls: calls_to(model, graph), item })
}

fn item_of_value(model: &Model, id: ValueId) -> Result<Item, String> {
    let value = model.value(id);
    if let Some((node, _)) = value.node() {
        return Ok(Item::Node(node));
    }
    if model.graph(value.graph).inputs.iter().any(|p| p.value == id) && !model.is_constant_input(id) {
        return Ok(Item::Input(id));
    }
    // A constant is shown at its readers.
    let reader = model.readers(id).into_iter().next();
    reader.map(Item::Node).ok_or_else(|| format!("nothing reads '{}'", value.name))
}

/// One chain of calls that leads into a graph; empty for what hangs under the main graph.
pub fn calls_to(model: &Model, graph: GraphId) -> SmallVec<[NodeId; 2]> {
    let mut calls = SmallVec::new();
    let mut at = graph;
    // Functions do not call themselves, so no chain is longer than there are functions.
    for _ in 0..=model.header().functions.len() {
        let GraphKind::Function(index) = model.root_of(at) else { break };
        let Some(function) = model.header().functions.get(index as usize) else { break };
        let caller = model.live_graphs().into_iter().find_map(|g| {
            let called =
                |n: &crate::ir::Node| model.function_of(n).is_some_and(|f| f.graph == function.graph);
            model.nodes_of(g).find(|(_, n)| called(n)).map(|(id, n)| (id, n.graph))
        });
        let Some((node, outer)) = caller else { break };
        calls.insert(0, node);
        at = outer;
    }
    calls
}

/// What is open at first: the places of [`crate::blocks::initial_open`]'s blocks. A body's or function's own block stands
/// for the nodes that hold or call it.
pub fn first_look(model: &Model, blocks: &BlockTree) -> BTreeSet<Place> {
    let mut open = BTreeSet::new();
    for id in crate::blocks::initial_open(blocks, model) {
        let Some(block) = blocks.get(id) else { continue };
        for calls in call_chains(model, block.graph, MOST_CHAINS) {
            match (block.parent, model.graph(block.graph).kind.clone()) {
                (Some(_), _) => {
                    open.insert(Place { calls, item: Item::Block(id) });
                }
                (None, GraphKind::Body { owner, .. }) => {
                    open.insert(Place { calls, item: Item::Node(owner) });
                }
                (None, GraphKind::Function(_)) => {
                    let mut outer = calls;
                    if let Some(caller) = outer.pop() {
                        open.insert(Place { calls: outer, item: Item::Node(caller) });
                    }
                }
                (None, GraphKind::Main) => {}
            }
        }
    }
    open
}

/// Ways into a function beyond this many are not opened on their own.
const MOST_CHAINS: usize = 64;

/// All chains of calls that lead into a graph, outermost call first; one empty chain for what hangs under the main graph.
fn call_chains(model: &Model, graph: GraphId, most: usize) -> Vec<SmallVec<[NodeId; 2]>> {
    let GraphKind::Function(index) = model.root_of(graph) else { return vec![SmallVec::new()] };
    let Some(function) = model.header().functions.get(index as usize) else { return Vec::new() };
    let mut chains = Vec::new();
    for outer in model.live_graphs() {
        for (id, node) in model.nodes_of(outer) {
            if model.function_of(node).is_none_or(|f| f.graph != function.graph) {
                continue;
            }
            for mut chain in call_chains(model, outer, most) {
                if chains.len() >= most {
                    return chains;
                }
                chain.push(id);
                chains.push(chain);
            }
        }
    }
    chains
}

/// Everything that must be open for a place to be seen, the place itself not included.
pub fn enclosing(model: &Model, blocks: &BlockTree, place: &Place) -> BTreeSet<Place> {
    let mut open = BTreeSet::new();
    let mut calls = place.calls.clone();
    let around = |graph: GraphId, node: Option<NodeId>, block: Option<BlockId>| {
        let own = node.and_then(|n| blocks.block_of(n)).or_else(|| block.and_then(|b| blocks.get(b)?.parent));
        let chain: Vec<BlockId> = own.into_iter().flat_map(|b| blocks.ancestors(b)).collect();
        chain
            .into_iter()
            .filter(move |b| blocks.get(*b).is_some_and(|b| b.graph == graph && b.parent.is_some()))
    };
    let mut at = match place.item {
        Item::Node(n) => model.get_node(n).map(|node| (node.graph, Some(n), None)),
        Item::Block(b) => blocks.get(b).map(|block| (block.graph, None, Some(b))),
        Item::Input(v) | Item::Output(_, v) => model.get_value(v).map(|value| (value.graph, None, None)),
        #[allow(unreachable_patterns)] // places of other kinds lie inside what is open already
        _ => None,
    };
    while let Some((graph, node, block)) = at {
        for b in around(graph, node, block) {
            open.insert(Place { calls: calls.clone(), item: Item::Block(b) });
        }
        let outer = match model.get_graph(graph).map(|g| &g.kind) {
            Some(GraphKind::Body { owner, .. }) => Some(*owner),
            Some(GraphKind::Function(_)) => calls.pop(),
            _ => None,
        };
        at = outer.and_then(|owner| {
            open.insert(Place { calls: calls.clone(), item: Item::Node(owner) });
            Some((model.get_node(owner)?.graph, Some(owner), None))
        });
    }
    open
}
