//! The tree of blocks as an outline: alike siblings are one line.

use crate::blocks::{BlockId, BlockKind, BlockTree, Child};
use crate::ir::{GraphId, Model};
use serde::Serialize;

/// Lines that an outline has at most, unless all of it is asked for.
const LINES: usize = 60;

/// Levels that an outline shows at most, unless all of it is asked for.
const LEVELS: u32 = 4;

/// The hierarchy of a model.
#[derive(Debug, Serialize)]
pub struct Outline {
    /// Blocks of all levels.
    pub count: usize,
    /// Levels below the main graph.
    pub depth: u32,
    /// True when the blocks are the model's own, and not cuts made for the eye.
    pub clear: bool,
    /// What the verdict rests on.
    pub why: String,
    /// Share of nodes in scopes that the exporter named, 0 to 1.
    pub named: f64,
    /// Share of nodes in blocks that were recognised by their operators, 0 to 1.
    pub recognised: f64,
    /// Outermost first; as far as it is shown.
    pub outline: Vec<Line>,
    /// Lines that were left out.
    pub left_out: usize,
}

/// A block, several alike ones, or a node.
#[derive(Debug, Serialize)]
pub struct Line {
    pub level: u32,
    pub name: String,
    /// `graph`, `scope`, `region`, `part`, the name of the recognised module, or for a node its operator.
    pub kind: String,
    /// How many alike ones this line stands for.
    pub times: u32,
    /// Nodes in each.
    pub nodes: u32,
    /// What the exporter or the recogniser says of it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// The outline of all graphs.
pub fn of(model: &Model, blocks: &BlockTree, all: bool) -> Outline {
    let mut walk = Walk { model, blocks, all, lines: Vec::new() };
    for graph in model.live_graphs() {
        if let Some(root) = blocks.root(graph) {
            walk.root(graph, root);
        }
    }
    let mut lines = walk.lines;
    let limit = if all { usize::MAX } else { LINES };
    let left_out = shorten(&mut lines, limit);
    let clarity = crate::blocks::clarity(blocks);
    Outline {
        count: blocks.iter().count(),
        depth: depth(model, blocks),
        clear: clarity.clear,
        why: clarity.reason.clone(),
        named: clarity.named,
        recognised: clarity.recognised,
        outline: lines,
        left_out,
    }
}

/// Takes away the innermost level until the rest is short enough; when one level alone is too long, its end.
fn shorten(lines: &mut Vec<Line>, limit: usize) -> usize {
    let before = lines.len();
    while lines.len() > limit {
        let deepest = lines.iter().map(|line| line.level).max().unwrap_or(0);
        if deepest <= 1 {
            break;
        }
        lines.retain(|line| line.level < deepest);
    }
    lines.truncate(limit);
    before - lines.len()
}

fn depth(model: &Model, blocks: &BlockTree) -> u32 {
    let of_main = blocks.iter().filter(|(_, block)| block.graph == model.main());
    of_main.map(|(id, _)| blocks.ancestors(id).count() as u32 - 1).max().unwrap_or(0)
}

struct Walk<'a> {
    model: &'a Model,
    blocks: &'a BlockTree,
    all: bool,
    lines: Vec<Line>,
}

impl Walk<'_> {
    /// A body stands below the graph that its owner is in, and is called by its owner and attribute.
    fn root(&mut self, graph: GraphId, root: BlockId) {
        let path = self.model.graph_path(graph);
        let mut level = 0;
        let mut around = None;
        let mut at = graph;
        while let Some(owner) = self.model.owner_of(at).and_then(|owner| self.model.get_node(owner)) {
            at = owner.graph;
            around.get_or_insert(at);
            level += 1;
        }
        let outer = around.map(|graph| self.model.graph_path(graph) + "/").unwrap_or_default();
        let name = path.strip_prefix(&outer).unwrap_or(&path).to_owned();
        self.line(level, name, "graph".into(), 1, root);
        self.children(root, level + 1);
    }

    fn line(&mut self, level: u32, name: String, kind: String, times: u32, block: BlockId) {
        let block = self.blocks.block(block);
        self.lines.push(Line { level, name, kind, times, nodes: block.nodes, note: block.note.to_string() });
    }

    fn children(&mut self, parent: BlockId, level: u32) {
        if !self.all && level > LEVELS {
            return;
        }
        let children = &self.blocks.block(parent).children;
        let mut at = 0;
        while let Some(child) = children.get(at) {
            at += 1;
            match child {
                Child::Node(node) => {
                    if self.all {
                        let name = self.model.node_label(*node);
                        let kind = self.model.get_node(*node).map(|n| n.op_type.to_string());
                        let kind = kind.unwrap_or_default();
                        self.lines.push(Line { level, name, kind, times: 1, nodes: 1, note: String::new() });
                    }
                }
                Child::Block(block) => {
                    let alike = if self.all { 1 } else { self.alike(&children[at - 1..]) };
                    at += alike - 1;
                    let last = match children.get(at - 1) {
                        Some(Child::Block(last)) => *last,
                        _ => *block,
                    };
                    let name = match alike {
                        1 => self.blocks.block(*block).name.to_string(),
                        _ => format!("{} … {}", self.blocks.block(*block).name, self.blocks.block(last).name),
                    };
                    self.line(level, name, self.kind(*block), alike as u32, *block);
                    self.children(*block, level + 1);
                }
            }
        }
    }

    /// How many blocks at the beginning of `children` repeat the first, without anything between them.
    fn alike(&self, children: &[Child]) -> usize {
        let first = |child: &Child| match child {
            Child::Block(block) => self.blocks.block(*block).repeat.as_ref().map(|r| r.first),
            Child::Node(_) => None,
        };
        match children.first().and_then(first) {
            Some(group) => children.iter().take_while(|child| first(child) == Some(group)).count(),
            None => 1,
        }
    }

    fn kind(&self, block: BlockId) -> String {
        match &self.blocks.block(block).kind {
            BlockKind::Graph => "graph".into(),
            BlockKind::Scope => "scope".into(),
            BlockKind::Module(name) => name.to_string(),
            BlockKind::Region => "region".into(),
            BlockKind::Part => "part".into(),
        }
    }
}
