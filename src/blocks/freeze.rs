//! From drafts to the finished tree: order of children, depth, unique names, counts, repeats.

use super::level::{Member, Work};
use super::scopes::Origin;
use super::tree::{Block, BlockId, BlockKind, Child, Repeat};
use crate::ir::{AttributeValue, Model, Node, NodeId, Producer, Text};
use rustc_hash::{FxHashMap, FxHasher};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};

/// Blocks this far below the graph's own hold nodes only.
pub(super) const DEEPEST: usize = 8;

/// Adds the tree of one graph to `blocks`.
pub(super) fn graph(work: &Work, members: &[Member], origin: Origin, blocks: &mut Vec<Block>) {
    let graph = work.flow.graph;
    let root = Block {
        graph,
        parent: None,
        kind: BlockKind::Graph,
        name: work.model.graph_path(graph).into(),
        note: origin.describe().into(),
        children: Vec::new(),
        nodes: work.flow.len() as u32,
        repeat: None,
    };
    let root_id = BlockId(blocks.len() as u32);
    blocks.push(root);
    fill(work, members, root_id, 0, blocks);
}

fn fill(work: &Work, members: &[Member], id: BlockId, depth: usize, blocks: &mut Vec<Block>) {
    let mut members = members.to_vec();
    if depth >= DEEPEST {
        members = members.iter().flat_map(|m| work.positions(*m)).map(Member::Node).collect();
    }
    members.sort_by_key(|m| (work.first(*m), matches!(m, Member::Node(_))));
    let mut names: BTreeSet<String> = BTreeSet::new();
    let mut children = Vec::with_capacity(members.len());
    let graph = work.flow.graph;
    for member in members {
        match member {
            Member::Node(at) => children.push(Child::Node(work.flow.ids[at as usize])),
            Member::Draft(d) => {
                let draft = &work.drafts[d as usize];
                let child = BlockId(blocks.len() as u32);
                blocks.push(Block {
                    graph,
                    parent: Some(id),
                    kind: draft.kind.clone(),
                    name: unique(&draft.name, &mut names),
                    note: draft.note.as_str().into(),
                    children: Vec::new(),
                    nodes: draft.content.all,
                    repeat: None,
                });
                fill(work, &draft.members, child, depth + 1, blocks);
                children.push(Child::Block(child));
            }
        }
    }
    blocks[id.0 as usize].children = children;
}

/// The name, with a number behind it when it is taken among its siblings.
pub(super) fn unique(name: &str, names: &mut BTreeSet<String>) -> Text {
    let mut unique = name.to_owned();
    let mut k = 2;
    while !names.insert(unique.clone()) {
        unique = format!("{name} ({k})");
        k += 1;
    }
    unique.into()
}

/// What is asked of nodes again and again, block around block; by node id.
struct Known<'m> {
    model: &'m Model,
    /// Place in the running order of its graph; `NONE` for constants, which do not count.
    place: Vec<u32>,
    /// Hash of operator and attributes.
    operator: Vec<u64>,
    /// Place among the nodes of the block in hand; `NONE` outside of it.
    local: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl Known<'_> {
    fn new(model: &Model) -> Known<'_> {
        let (bound, _, _) = model.id_bounds();
        let bound = bound as usize;
        let mut known =
            Known { model, place: vec![NONE; bound], operator: vec![0; bound], local: vec![NONE; bound] };
        for graph in model.live_graphs() {
            let shown = model.nodes_of(graph).filter(|(_, node)| !node.is("Constant"));
            for (k, (id, node)) in shown.enumerate() {
                let mut h = FxHasher::default();
                operator(model, node, &mut h);
                known.place[id.index()] = k as u32;
                known.operator[id.index()] = h.finish();
            }
        }
        known
    }

    fn is_shown(&self, node: NodeId) -> bool {
        self.place[node.index()] != NONE
    }
}

/// Marks alike siblings: same operators, attributes and wiring; names, weights and sizes do not count.
pub(super) fn mark_repeats(model: &Model, blocks: &mut [Block]) {
    let mut known = Known::new(model);
    // Nodes that are not constants, by block; inner blocks come after outer ones.
    let mut shown = vec![0u32; blocks.len()];
    for b in (0..blocks.len()).rev() {
        let count = |child: &Child| match child {
            Child::Node(n) => u32::from(known.is_shown(*n)),
            Child::Block(c) => shown[c.0 as usize],
        };
        shown[b] = blocks[b].children.iter().map(count).sum();
    }
    for b in 0..blocks.len() {
        let mut sizes: BTreeMap<u32, Vec<BlockId>> = BTreeMap::new();
        for child in &blocks[b].children {
            if let Child::Block(c) = child {
                sizes.entry(shown[c.0 as usize]).or_default().push(*c);
            }
        }
        // Only blocks of one size can be alike.
        let mut alike: BTreeMap<u64, Vec<BlockId>> = BTreeMap::new();
        for block in sizes.into_values().filter(|s| s.len() > 1).flatten() {
            alike.entry(digest(&mut known, blocks, block.0 as usize)).or_default().push(block);
        }
        for group in alike.into_values().filter(|g| g.len() > 1) {
            let (first, of) = (group[0], group.len() as u32);
            for (index, block) in group.into_iter().enumerate() {
                blocks[block.0 as usize].repeat = Some(Repeat { index: index as u32, of, first });
            }
        }
    }
}

/// Nodes of a block and the blocks inside it that are not constants, in running order.
fn nodes_in(known: &Known, blocks: &[Block], block: usize) -> Vec<NodeId> {
    let mut nodes = Vec::with_capacity(blocks[block].nodes as usize);
    let mut stack = vec![block];
    while let Some(b) = stack.pop() {
        for child in &blocks[b].children {
            match child {
                Child::Node(n) if known.is_shown(*n) => nodes.push(*n),
                Child::Node(_) => {}
                Child::Block(c) => stack.push(c.0 as usize),
            }
        }
    }
    nodes.sort_unstable_by_key(|n| known.place[n.index()]);
    nodes
}

fn digest(known: &mut Known, blocks: &[Block], block: usize) -> u64 {
    let model = known.model;
    let mut h = FxHasher::default();
    let shown = nodes_in(known, blocks, block);
    for (k, id) in shown.iter().enumerate() {
        known.local[id.index()] = k as u32;
    }
    let mut outside: FxHashMap<u32, u32> = FxHashMap::default();
    for id in &shown {
        known.operator[id.index()].hash(&mut h);
        for input in &model.node(*id).inputs {
            let Some((id, value)) = input.and_then(|v| Some((v, model.get_value(v)?))) else {
                0u8.hash(&mut h);
                continue;
            };
            match value.producer {
                Producer::Node { node, output } if known.local[node.index()] != NONE => {
                    (1u8, known.local[node.index()], output).hash(&mut h);
                }
                Producer::Node { node, .. } if model.get_node(node).is_some_and(|n| n.is("Constant")) => {
                    2u8.hash(&mut h);
                }
                _ if value.constant.is_some() => 2u8.hash(&mut h),
                _ => (3u8, ordinal(&mut outside, id.0)).hash(&mut h),
            }
        }
    }
    shown.iter().for_each(|id| known.local[id.index()] = NONE);
    h.finish()
}

fn ordinal(seen: &mut FxHashMap<u32, u32>, value: u32) -> u32 {
    let next = seen.len() as u32;
    *seen.entry(value).or_insert(next)
}

/// Hash of operator and attributes; of tensors only type and dimensions, of bodies the operators.
fn operator(model: &Model, node: &Node, h: &mut FxHasher) {
    node.op_type.hash(h);
    node.domain.hash(h);
    node.outputs.iter().filter(|o| o.is_some()).count().hash(h);
    let mut attributes: Vec<_> = node.attributes.iter().collect();
    attributes.sort_by(|a, b| a.name.cmp(&b.name));
    for a in attributes {
        a.name.hash(h);
        match &a.value {
            AttributeValue::Float(v) => v.to_bits().hash(h),
            // The number of groups of a depthwise convolution is its width.
            AttributeValue::Int(v) if &*a.name == "group" => (*v).min(2).hash(h),
            AttributeValue::Int(v) => v.hash(h),
            AttributeValue::String(v) => v.hash(h),
            AttributeValue::Ints(v) => v.hash(h),
            AttributeValue::Floats(v) => v.iter().for_each(|v| v.to_bits().hash(h)),
            AttributeValue::Tensor(t) => (t.element, t.dims.len()).hash(h),
            other => {
                for graph in other.graphs() {
                    // Bodies can hold bodies; their operators in order are enough here.
                    model.nodes_of(*graph).for_each(|(_, n)| n.op_type.hash(h));
                }
            }
        }
    }
}
