//! One tree of blocks for two models that share ids: the first one's, with the second one's own nodes joined where their
//! neighbours are, and blocks of the second that have little of the first as blocks of their own.

use super::freeze::unique;
use super::tree::{Block, BlockId, BlockTree, Child, Repeat};
use crate::ir::{Model, Node, NodeId};
use std::collections::{BTreeMap, BTreeSet};

/// The tree for a model with `first` as its tree and a `second` one, whose own tree is given. Blocks of the first keep
/// their ids.
pub fn beside(first: &BlockTree, (model, second): (&Model, &BlockTree)) -> BlockTree {
    let mut merging = Merging {
        first,
        model,
        second,
        blocks: first.iter().map(|(_, block)| block.clone()).collect(),
        copies: BTreeMap::new(),
        spilled: BTreeMap::new(),
        joined: BTreeMap::new(),
    };
    let homes = homes(first, second);
    for (id, block) in second.iter() {
        let home = match (block.parent, homes.get(&id)) {
            (Some(_), Some(home)) => *home,
            // Outer blocks come before inner ones, so the parent has its place.
            (Some(parent), None) => match merging.copies.get(&parent) {
                Some(outer) => merging.copy(id, block, Some(*outer)),
                None => continue,
            },
            (None, _) => match first.root(block.graph) {
                Some(root) => root,
                None => merging.copy(id, block, None),
            },
        };
        merging.copies.insert(id, home);
    }
    for graph in model.live_graphs() {
        for (id, node) in model.nodes_of(graph) {
            if first.block_of(id).is_none() {
                merging.join(id, node);
            }
        }
    }
    BlockTree::new(merging.blocks)
}

/// For each block of the second tree of whose nodes at least half are the first's: the lowest block of the first that
/// holds those. Two models that have little in common share a node here and there; it says nothing about what is around.
fn homes(first: &BlockTree, second: &BlockTree) -> BTreeMap<BlockId, BlockId> {
    /// Nodes, those of them that the first tree has, and the lowest block that holds these.
    #[derive(Clone, Copy, Default)]
    struct Held {
        nodes: u32,
        common: u32,
        lowest: Option<BlockId>,
    }
    let mut held: BTreeMap<BlockId, Held> = BTreeMap::new();
    let blocks: Vec<(BlockId, &Block)> = second.iter().collect();
    for (id, block) in blocks.into_iter().rev() {
        let mut sum = Held::default();
        for child in &block.children {
            let more = match child {
                Child::Node(node) => {
                    let lowest = first.block_of(*node);
                    Held { nodes: 1, common: u32::from(lowest.is_some()), lowest }
                }
                Child::Block(inner) => held.get(inner).copied().unwrap_or_default(),
            };
            sum.nodes += more.nodes;
            sum.common += more.common;
            sum.lowest = match (sum.lowest, more.lowest) {
                (Some(a), Some(b)) => lowest_common(first, a, b).or(Some(a)),
                (a, b) => a.or(b),
            };
        }
        held.insert(id, sum);
    }
    let most = held.into_iter().filter(|(_, h)| h.common * 2 >= h.nodes);
    most.filter_map(|(id, h)| Some((id, h.lowest?))).collect()
}

/// The lowest block that holds both; `None` for blocks of different graphs.
fn lowest_common(tree: &BlockTree, a: BlockId, b: BlockId) -> Option<BlockId> {
    let around: Vec<BlockId> = tree.ancestors(a).collect();
    tree.ancestors(b).find(|block| around.contains(block))
}

struct Merging<'a> {
    first: &'a BlockTree,
    model: &'a Model,
    second: &'a BlockTree,
    blocks: Vec<Block>,
    /// Where each block of the second tree is: itself, copied, or the block of the first that stands for it.
    copies: BTreeMap<BlockId, BlockId>,
    /// Copies of blocks that have another block standing for them, for what is loose there.
    spilled: BTreeMap<BlockId, BlockId>,
    /// Block of each node that only the second model has.
    joined: BTreeMap<NodeId, BlockId>,
}

impl Merging<'_> {
    /// Adds an empty copy of a block of the second tree.
    fn copy(&mut self, id: BlockId, block: &Block, parent: Option<BlockId>) -> BlockId {
        let new = BlockId(self.blocks.len() as u32);
        let mut name = block.name.clone();
        if let Some(outer) = parent.and_then(|p| self.blocks.get(p.0 as usize)) {
            let inner = outer.children.iter().filter_map(|child| match child {
                Child::Block(b) => self.blocks.get(b.0 as usize).map(|b| b.name.to_string()),
                Child::Node(_) => None,
            });
            name = unique(&name, &mut inner.collect::<BTreeSet<String>>());
        }
        // The first of a group comes before the others; where it is no copy, the group is not whole.
        let repeat = block.repeat.as_ref().and_then(|r| {
            let first = if r.first == id { new } else { *self.copies.get(&r.first)? };
            self.is_copy(first).then_some(Repeat { first, ..r.clone() })
        });
        let children = Vec::new();
        self.blocks.push(Block { parent, name, children, nodes: 0, repeat, ..block.clone() });
        if let Some(outer) = parent.and_then(|p| self.blocks.get_mut(p.0 as usize)) {
            outer.children.push(Child::Block(new));
        }
        new
    }

    /// Puts a node that only the second model has into its copied block, or into the block of its neighbours.
    fn join(&mut self, id: NodeId, node: &Node) {
        let second = self.second.block_of(id);
        let own = second.and_then(|b| self.copies.get(&b)).copied();
        let block = match own.is_some_and(|b| self.is_copy(b)) {
            true => own,
            false => self.deeper(own, self.among_neighbours(node)),
        };
        // Better in a block of its own than loose in the graph, or in one that holds far more than that.
        let fits = |b: BlockId| self.around(b).nth(1).is_some() && second.is_some_and(|s| self.fits(s, b));
        let block = match block {
            Some(block) if fits(block) => Some(block),
            loose => second.and_then(|s| self.spill(s)).or(loose),
        };
        let Some(block) = block else { return };
        self.joined.insert(id, block);
        if let Some(b) = self.blocks.get_mut(block.0 as usize) {
            b.children.push(Child::Node(id));
        }
        let mut around = Some(block);
        while let Some(b) = around.and_then(|b| self.blocks.get_mut(b.0 as usize)) {
            b.nodes += 1;
            around = b.parent;
        }
    }

    /// A copy of a block of the second tree, and of those around it, for nodes that have no place in the first's blocks;
    /// `None` for a graph's own block.
    fn spill(&mut self, id: BlockId) -> Option<BlockId> {
        if let Some(known) = self.spilled.get(&id) {
            return Some(*known);
        }
        let block = self.second.get(id)?;
        let outer = block.parent?;
        let known = self.copies.get(&outer).copied().filter(|b| self.fits(outer, *b));
        let outer = known.or_else(|| self.spill(outer)).or_else(|| self.first.root(block.graph));
        let new = self.copy(id, block, outer);
        self.spilled.insert(id, new);
        Some(new)
    }

    /// The block may stand for that one of the second tree: it is a copy, or not many times as large.
    fn fits(&self, second: BlockId, block: BlockId) -> bool {
        let size = self.second.get(second).map_or(0, |b| b.nodes);
        self.is_copy(block) || self.blocks.get(block.0 as usize).is_some_and(|b| b.nodes <= 4 * size)
    }

    /// The lowest block that holds everything which the node reads from and gives to, as far as that has its place.
    fn among_neighbours(&self, node: &Node) -> Option<BlockId> {
        let value = |v: &_| self.model.get_value(*v);
        let producers = node.inputs.iter().flatten().filter_map(|v| Some(value(v)?.node()?.0));
        let readers = node.outputs.iter().flatten().flat_map(|v| self.model.readers(*v));
        let blocks = producers.chain(readers).filter_map(|n| {
            let there = self.model.get_node(n).is_some_and(|n| n.graph == node.graph);
            let block = self.first.block_of(n).or_else(|| self.joined.get(&n).copied())?;
            there.then_some(block)
        });
        blocks.reduce(|a, b| self.common(a, b).unwrap_or(a))
    }

    /// Not a block of the first tree.
    fn is_copy(&self, block: BlockId) -> bool {
        self.first.get(block).is_none()
    }

    fn common(&self, a: BlockId, b: BlockId) -> Option<BlockId> {
        let around: Vec<BlockId> = self.around(a).collect();
        self.around(b).find(|block| around.contains(block))
    }

    fn around(&self, block: BlockId) -> impl Iterator<Item = BlockId> + '_ {
        std::iter::successors(Some(block), |b| self.blocks.get(b.0 as usize)?.parent)
    }

    fn deeper(&self, a: Option<BlockId>, b: Option<BlockId>) -> Option<BlockId> {
        let depth = |block: Option<BlockId>| block.map_or(0, |b| self.around(b).count());
        if depth(a) > depth(b) { a } else { b.or(a) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Facts;
    use crate::ir::{Builder, Counterparts, ElementType};

    /// Layers by name, each an Exp and two more: what the exporter's node names say.
    fn layers(names: &[&str], operators: [&str; 3]) -> Model {
        let mut b = Builder::new("layers", 17);
        let mut at = b.input("x", ElementType::FLOAT, &[2.into()]);
        for name in names {
            for (k, operator) in operators.iter().enumerate() {
                at = b.op(operator, &[at]).named(&format!("/{name}/{operator}_{k}")).one();
            }
        }
        b.output_as(at, "y", ElementType::FLOAT, &[2.into()]);
        b.finish().unwrap()
    }

    fn tree(model: &Model) -> BlockTree {
        crate::blocks::build(model, &Facts::infer(model))
    }

    fn nodes(model: &Model) -> Vec<NodeId> {
        model.nodes_of(model.main()).map(|(id, _)| id).collect()
    }

    #[test]
    fn own_blocks_are_copied_and_single_nodes_join_their_neighbours() {
        let first = layers(&["a", "b"], ["Exp", "Neg", "Tanh"]);
        let second = layers(&["a", "b", "c"], ["Exp", "Abs", "Tanh"]);
        let (of_first, of_second) = (nodes(&first), nodes(&second));
        // Layers a and b are common but for the middle node; c is new.
        let common = [0, 2, 3, 5].map(|k| (of_second[k], of_first[k]));
        let counterparts = Counterparts { nodes: common.into(), ..Counterparts::default() };
        let model = second.beside(&first, &counterparts).model;
        let (before, after) = (tree(&first), tree(&model));
        let both = beside(&before, (&model, &after));
        let paths: Vec<String> =
            nodes(&model).into_iter().map(|n| both.path(both.block_of(n).expect("a block"))).collect();
        assert_eq!(paths, ["a", "a", "a", "b", "b", "b", "c", "c", "c"]);
        assert_eq!(
            both.path(both.block_of(of_first[1]).expect("a block")),
            "a",
            "what is gone keeps its place"
        );
        for (id, block) in before.iter() {
            assert_eq!((both.block(id).graph, both.path(id)), (block.graph, before.path(id)));
        }
    }

    #[test]
    fn what_is_loose_stays_in_its_own_block() {
        let first = layers(&["a", "b"], ["Exp", "Neg", "Tanh"]);
        let second = layers(&["c", "d"], ["Exp", "Abs", "Tanh"]);
        let (of_first, of_second) = (nodes(&first), nodes(&second));
        // The ends of one layer are matched with nodes of two others, so the middle is between these.
        let common = [(of_second[0], of_first[0]), (of_second[2], of_first[5])];
        let counterparts = Counterparts { nodes: common.into(), ..Counterparts::default() };
        let model = second.beside(&first, &counterparts).model;
        let both = beside(&tree(&first), (&model, &tree(&model)));
        let middle = nodes(&model)[1];
        assert_eq!(both.path(both.block_of(middle).expect("a block")), "c");
    }
}
