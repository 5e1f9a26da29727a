//! Which blocks are open when a model is first looked at.

use super::tree::{BlockId, BlockTree, Child};
use crate::ir::{Model, NodeId};
use std::collections::{BTreeMap, BTreeSet};

/// From this many boxes on nothing more is opened, unless one box still hides a quarter of the model.
const ENOUGH: usize = 12;
/// No block is opened beyond this many boxes.
const MOST: usize = 40;
/// As long as there are fewer than this, up to [`LAST_RESORT`] boxes are better.
const TOO_FEW: usize = 5;
const LAST_RESORT: usize = 60;
/// Functions that call functions (or themselves) can multiply without end: beyond this nothing is counted.
const UNREADABLE: usize = 1_000_000;

/// Blocks open at first, so that about 8 to 40 boxes are seen. The own block of the main graph is always among them; that
/// of a body or function means that the nodes that hold or call it are open.
pub fn initial_open(tree: &BlockTree, model: &Model) -> BTreeSet<BlockId> {
    let mut open = BTreeSet::new();
    let Some(root) = tree.root(model.main()) else { return open };
    open.insert(root);
    let weights = weights(tree, model);
    let total = weights.get(&root).copied().unwrap_or(0).max(1);
    loop {
        let count = visible(tree, model, &open);
        let mut candidates: Vec<(u64, Vec<BlockId>)> = closed(tree, model, &open)
            .into_values()
            .map(|group| (group.iter().map(|b| weights.get(b).copied().unwrap_or(0)).sum(), group))
            .collect();
        // The heaviest first; the sort is stable, so equal ones stay in order of the tree.
        candidates.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
        let chosen = candidates.into_iter().find(|(weight, group)| {
            let hides_much = group.len() == 1 && weight * 4 > total;
            if count >= ENOUGH && !hides_much {
                return false;
            }
            let mut then = open.clone();
            then.extend(group);
            let after = visible(tree, model, &then);
            after <= if count < TOO_FEW { LAST_RESORT } else { MOST }
        });
        match chosen {
            Some((_, group)) => open.extend(group),
            None => return open,
        }
    }
}

/// Boxes seen with these blocks open: closed blocks and nodes. Constants are shown at their readers and do not count.
pub fn visible(tree: &BlockTree, model: &Model, open: &BTreeSet<BlockId>) -> usize {
    let mut count = 0;
    let mut stack: Vec<BlockId> = tree.root(model.main()).into_iter().collect();
    let mut opened = 0usize;
    while let Some(block) = stack.pop() {
        opened += 1;
        if opened > UNREADABLE || count > UNREADABLE {
            return UNREADABLE;
        }
        for child in &tree.block(block).children {
            match child {
                Child::Block(b) if open.contains(b) => stack.push(*b),
                Child::Block(_) => count += 1,
                Child::Node(n) if is_constant(model, *n) => {}
                Child::Node(n) => {
                    let inside = held(tree, model, *n);
                    match inside.iter().all(|b| open.contains(b)) && !inside.is_empty() {
                        true => stack.extend(inside),
                        false => count += 1,
                    }
                }
            }
        }
    }
    count
}

fn is_constant(model: &Model, node: NodeId) -> bool {
    model.get_node(node).is_some_and(|n| n.is("Constant"))
}

/// Own blocks of the bodies that a node holds, or of the function that it calls.
fn held(tree: &BlockTree, model: &Model, node: NodeId) -> Vec<BlockId> {
    let Some(node) = model.get_node(node) else { return Vec::new() };
    let bodies = node.bodies().map(|(_, g)| g);
    bodies.chain(model.function_of(node).map(|f| f.graph)).filter_map(|g| tree.root(g)).collect()
}

/// What can be opened next: alike or similarly named siblings together, bodies of one node together.
fn closed(
    tree: &BlockTree,
    model: &Model,
    open: &BTreeSet<BlockId>,
) -> BTreeMap<(BlockId, String), Vec<BlockId>> {
    let mut groups: BTreeMap<(BlockId, String), Vec<BlockId>> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut stack: Vec<BlockId> = tree.root(model.main()).into_iter().collect();
    while let Some(block) = stack.pop() {
        if !seen.insert(block) {
            continue;
        }
        for child in &tree.block(block).children {
            match child {
                Child::Block(b) if open.contains(b) => stack.push(*b),
                Child::Block(b) => {
                    let stem: String = tree.block(*b).name.chars().filter(|c| !c.is_ascii_digit()).collect();
                    groups.entry((block, stem)).or_default().push(*b);
                }
                Child::Node(n) => {
                    let inside = held(tree, model, *n);
                    if inside.iter().all(|b| open.contains(b)) {
                        stack.extend(inside);
                    } else {
                        // A block's name never begins with a slash and a number.
                        groups.insert((block, format!("/{}", n.0)), inside);
                    }
                }
            }
        }
    }
    groups
}

/// Nodes in each block, those of bodies and called functions included.
fn weights(tree: &BlockTree, model: &Model) -> BTreeMap<BlockId, u64> {
    let mut weights: BTreeMap<BlockId, u64> = BTreeMap::new();
    // Inner graphs have later ids than the graphs around them, and inner blocks than outer ones; functions come last.
    let all: Vec<BlockId> = tree.iter().map(|(id, _)| id).collect();
    for id in all.into_iter().rev() {
        let weight = tree
            .block(id)
            .children
            .iter()
            .map(|child| match child {
                Child::Block(b) => weights.get(b).copied().unwrap_or(0),
                Child::Node(n) => {
                    let inside = held(tree, model, *n).iter().filter_map(|b| weights.get(b)).sum::<u64>();
                    u64::from(!is_constant(model, *n)).saturating_add(inside)
                }
            })
            .fold(0u64, u64::saturating_add);
        weights.insert(id, weight);
    }
    weights
}
