//! Values between visible boxes, constants at their readers, and which values are read from too far away for a line.

use super::Mark;
use super::picture::BoxKind;
use super::source::Source;
use super::visible::{Context, Scenery, What};
use crate::ir::{GraphId, Node, NodeId, Producer, ValueId};

/// A value that goes from a visible box to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Wire {
    pub(super) from: u32,
    pub(super) value: ValueId,
    pub(super) to: u32,
    pub(super) mark: Mark,
}

/// A constant input of a visible node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) holder: u32,
    pub(super) value: ValueId,
}

/// Everything that connects the boxes.
#[derive(Debug, Default)]
pub(super) struct Wires {
    /// Sorted, each once.
    pub(super) wires: Vec<Wire>,
    /// In order of holders and of their inputs.
    pub(super) held: Vec<Held>,
}

enum Origin {
    Box(u32),
    Constant,
    /// Not on display, or nothing.
    Nowhere,
}

pub(super) fn collect(source: &Source, scenery: &Scenery) -> Wires {
    let mut found = Wires::default();
    for context in &scenery.contexts {
        for &graph in &context.graphs {
            for id in source.nodes_of(graph) {
                let (Some(&to), Some(node)) = (context.box_of.get(&id), source.node(id)) else { continue };
                let seen = &scenery.boxes[to as usize];
                let itself = matches!(seen.what, What::Node(own) if own == id);
                for (value, mark) in source.reads(id) {
                    match origin(source, context, value) {
                        Origin::Box(from) if from != to => found.wires.push(Wire { from, value, to, mark }),
                        Origin::Constant if itself && mark != Mark::Removed => {
                            found.held.push(Held { holder: to, value });
                        }
                        _ => {}
                    }
                }
                if !(itself && seen.kind == BoxKind::OpenNode) {
                    captures(source, context, id, node, to, &mut found.wires);
                }
            }
        }
    }
    for (to, output) in scenery.boxes.iter().enumerate() {
        let (What::Output(value, mark), to) = (&output.what, to as u32) else { continue };
        match origin(source, &scenery.contexts[output.context as usize], *value) {
            Origin::Box(from) => {
                found.wires.push(Wire { from, value: *value, to, mark: *mark });
            }
            Origin::Constant => found.held.push(Held { holder: to, value: *value }),
            Origin::Nowhere => {}
        }
    }
    found.wires.sort_unstable();
    found.wires.dedup_by_key(|w| (w.from, w.value, w.to));
    found.held.sort_by_key(|h| h.holder);
    found
}

fn origin(source: &Source, context: &Context, value: ValueId) -> Origin {
    let Some(v) = source.value(value) else { return Origin::Nowhere };
    match v.producer {
        Producer::Node { node, .. } => match context.box_of.get(&node) {
            Some(&at) => Origin::Box(at),
            None if source.node(node).is_some_and(|n| source.is_folded(n)) => Origin::Constant,
            None => Origin::Nowhere,
        },
        Producer::Input { .. } => match context.input.get(&value) {
            Some(&at) => Origin::Box(at),
            None if v.constant.is_some() => Origin::Constant,
            None => Origin::Nowhere,
        },
        Producer::Initializer => Origin::Constant,
        Producer::Nothing => Origin::Nowhere,
    }
}

/// What the closed bodies of a node read from outside goes to the node's box.
fn captures(source: &Source, context: &Context, id: NodeId, node: &Node, to: u32, wires: &mut Vec<Wire>) {
    let mark = if source.is_removed(id) { Mark::Removed } else { Mark::Same };
    let mut bodies: Vec<GraphId> = node.bodies().map(|(_, g)| g).collect();
    while let Some(body) = bodies.pop() {
        let outputs = source.graph(body).into_iter().flat_map(|g| g.outputs.iter().map(|p| p.value));
        let mut read: Vec<ValueId> = outputs.collect();
        for inner in source.nodes_of(body).into_iter().filter_map(|n| source.node(n)) {
            read.extend(inner.inputs.iter().flatten());
            bodies.extend(inner.bodies().map(|(_, g)| g));
        }
        for value in read {
            if let Origin::Box(from) = origin(source, context, value)
                && from != to
            {
                wires.push(Wire { from, value, to, mark });
            }
        }
    }
}

/// By wire: its value is read by more than `limit` boxes.
pub(super) fn widely_read(wires: &[Wire], limit: usize) -> Vec<bool> {
    let mut many = Vec::with_capacity(wires.len());
    for run in wires.chunk_by(|a, b| (a.from, a.value) == (b.from, b.value)) {
        many.extend(std::iter::repeat_n(run.len() > limit, run.len()));
    }
    many
}

/// Marks wires of graph inputs and outputs that cross the border of a block which more than `limit` values enter (or
/// leave): states of fifty layers, say, would be a curtain of lines.
pub(super) fn crowded(scenery: &Scenery, wires: &[Wire], limit: usize, far: &mut [bool]) {
    let kind = |b: u32| scenery.boxes[b as usize].kind;
    let mut entering: Vec<(u32, ValueId)> = Vec::new();
    let mut leaving: Vec<(u32, ValueId)> = Vec::new();
    let shown = |w: usize| !far[w];
    for (_, wire) in wires.iter().enumerate().filter(|(w, _)| shown(*w)) {
        let (from, to) = borders(scenery, wire);
        leaving.extend(from.map(|b| (b, wire.value)));
        entering.extend(to.map(|b| (b, wire.value)));
    }
    let [entering, leaving] = [entering, leaving].map(|mut crossings| {
        crossings.sort_unstable();
        crossings.dedup();
        let many = crossings.chunk_by(|a, b| a.0 == b.0).filter(|run| run.len() > limit);
        many.map(|run| run[0].0).collect::<Vec<u32>>()
    });
    for (wire, far) in wires.iter().zip(far) {
        let (mut from, mut to) = borders(scenery, wire);
        *far |= (kind(wire.from) == BoxKind::Input && to.any(|b| entering.binary_search(&b).is_ok()))
            || (kind(wire.to) == BoxKind::Output && from.any(|b| leaving.binary_search(&b).is_ok()));
    }
}

/// Open blocks that a wire leaves and those that it enters.
fn borders<'s>(
    scenery: &'s Scenery,
    wire: &Wire,
) -> (impl Iterator<Item = u32> + 's, impl Iterator<Item = u32> + 's) {
    let parent = |b: u32| scenery.boxes[b as usize].parent;
    let around = move |b: u32| std::iter::successors(parent(b), move |b| parent(*b));
    // The innermost block around both: the one at which the ways up from the ends meet.
    let outer: Vec<u32> = around(wire.from).collect();
    let common = around(wire.to).find(|b| outer.contains(b));
    (
        around(wire.from).take_while(move |b| Some(*b) != common),
        around(wire.to).take_while(move |b| Some(*b) != common),
    )
}
