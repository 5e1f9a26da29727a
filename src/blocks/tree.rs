//! The tree of blocks: its data, kept small and immutable but for nodes that rewrites create.

use crate::ir::{GraphId, NodeId, Text};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A block of one model's tree.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BlockId(pub u32);

impl fmt::Debug for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b{}", self.0)
    }
}

/// What a block is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum BlockKind {
    /// All of a graph.
    Graph,
    /// A scope that the exporter named.
    Scope,
    /// A module recognised by its operators: "attention", "feed-forward", "inverted residual", …
    Module(Text),
    /// A stretch between two values that everything passes through.
    Region,
    /// One piece of a level that had too many members to look at.
    Part,
}

/// One of several alike siblings.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Repeat {
    /// Position among the alike, from 0.
    pub index: u32,
    /// How many are alike.
    pub of: u32,
    /// The first of them: what names the group.
    pub first: BlockId,
}

/// Member of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Child {
    Block(BlockId),
    Node(NodeId),
}

/// A part of a graph with a name.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Block {
    pub graph: GraphId,
    pub parent: Option<BlockId>,
    pub kind: BlockKind,
    /// Short: `layer.3`, `attention`, `stage 2`.
    pub name: Text,
    /// Class of the exporter's module, or how it was found ("found by pattern"); empty when there is nothing to say.
    pub note: Text,
    /// In graph order of their first computing nodes (constants and shape arithmetic may be listed anywhere).
    pub children: Vec<Child>,
    /// Nodes in it and in the blocks inside it; nodes of bodies are not counted. As imported.
    pub nodes: u32,
    pub repeat: Option<Repeat>,
}

/// All blocks of a model: one tree a graph, each node in exactly one block. Cloning is cheap.
#[derive(Clone, Debug, Default)]
pub struct BlockTree {
    imported: Arc<Imported>,
    /// Block of each node that a rewrite created.
    created: imbl::OrdMap<NodeId, BlockId>,
}

/// What was made on import and never changes.
#[derive(Debug, Default)]
struct Imported {
    blocks: Vec<Block>,
    roots: BTreeMap<GraphId, BlockId>,
    /// Block of each imported node.
    leaf: BTreeMap<NodeId, BlockId>,
}

impl BlockTree {
    /// A tree of these blocks: exactly one without parent per graph; parents and children agree.
    pub fn new(blocks: Vec<Block>) -> BlockTree {
        let mut tree = Imported::default();
        for (i, block) in blocks.iter().enumerate() {
            let id = BlockId(i as u32);
            if block.parent.is_none() {
                tree.roots.insert(block.graph, id);
            }
            for child in &block.children {
                if let Child::Node(node) = child {
                    tree.leaf.insert(*node, id);
                }
            }
        }
        tree.blocks = blocks;
        BlockTree { imported: Arc::new(tree), created: imbl::OrdMap::new() }
    }

    /// A block. Panics for an id of another tree.
    pub fn block(&self, id: BlockId) -> &Block {
        &self.imported.blocks[id.0 as usize]
    }

    /// A block, if there is one of that id.
    pub fn get(&self, id: BlockId) -> Option<&Block> {
        self.imported.blocks.get(id.0 as usize)
    }

    /// All blocks with their ids.
    pub fn iter(&self) -> impl Iterator<Item = (BlockId, &Block)> {
        self.imported.blocks.iter().enumerate().map(|(i, b)| (BlockId(i as u32), b))
    }

    /// The block that is all of a graph.
    pub fn root(&self, graph: GraphId) -> Option<BlockId> {
        self.imported.roots.get(&graph).copied()
    }

    /// The innermost block of a node.
    pub fn block_of(&self, node: NodeId) -> Option<BlockId> {
        self.imported.leaf.get(&node).or_else(|| self.created.get(&node)).copied()
    }

    /// The block and those around it, innermost first.
    pub fn ancestors(&self, id: BlockId) -> impl Iterator<Item = BlockId> + '_ {
        std::iter::successors(Some(id), |b| self.get(*b)?.parent)
    }

    /// Names from the graph's own block down, joined by `/`; empty for a graph's own block.
    pub fn path(&self, id: BlockId) -> String {
        let mut names: Vec<&str> = self
            .ancestors(id)
            .filter(|b| self.block(*b).parent.is_some())
            .map(|b| &*self.block(b).name)
            .collect();
        names.reverse();
        names.join("/")
    }

    /// The block of a path within a graph, as [`BlockTree::path`] writes it.
    pub fn find(&self, graph: GraphId, path: &str) -> Option<BlockId> {
        self.iter().find(|(id, b)| b.graph == graph && self.path(*id) == path).map(|(id, _)| id)
    }

    /// Puts a node that a rewrite created into the lowest block that holds all of its origins (else its graph's own block).
    pub fn join(&mut self, node: NodeId, graph: GraphId, origins: &[NodeId]) {
        let mut common: Option<Vec<BlockId>> = None;
        for block in
            origins.iter().filter_map(|o| self.block_of(*o)).filter(|b| self.block(*b).graph == graph)
        {
            let around: Vec<BlockId> = self.ancestors(block).collect();
            common = Some(match common {
                None => around,
                Some(c) => c.into_iter().filter(|b| around.contains(b)).collect(),
            });
        }
        let lowest = common.and_then(|c| c.first().copied()).or_else(|| self.root(graph));
        if let Some(block) = lowest {
            self.created.insert(node, block);
        }
    }

    /// Nodes that rewrites created and the blocks that they joined; nodes that are gone are included.
    pub fn created(&self) -> impl Iterator<Item = (NodeId, BlockId)> + '_ {
        self.created.iter().map(|(n, b)| (*n, *b))
    }
}
