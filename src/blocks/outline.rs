//! The tree as text: for `inspect`, for tests, for reading.

use super::tree::{Block, BlockId, BlockKind, BlockTree, Child};
use crate::ir::Model;
use std::fmt::Write;

/// All blocks, indented; loose nodes by operator; of alike siblings only the first is written out.
pub fn outline(tree: &BlockTree, model: &Model) -> String {
    outline_to(tree, model, usize::MAX)
}

/// [`outline`], blocks more than `depth` below the graph's own closed.
pub fn outline_to(tree: &BlockTree, model: &Model, depth: usize) -> String {
    let mut text = String::new();
    for graph in model.live_graphs() {
        if let Some(root) = tree.root(graph) {
            let block = tree.block(root);
            let _ = writeln!(text, "{}: {}, {}", block.name, count(block.nodes), block.note);
            write_children(tree, model, root, 1, depth, &mut text);
        }
    }
    text
}

fn count(nodes: u32) -> String {
    format!("{nodes} node{}", if nodes == 1 { "" } else { "s" })
}

fn write_children(
    tree: &BlockTree,
    model: &Model,
    id: BlockId,
    level: usize,
    depth: usize,
    text: &mut String,
) {
    let indent = "  ".repeat(level);
    let children = &tree.block(id).children;
    let mut at = 0;
    while at < children.len() {
        match children[at] {
            Child::Node(_) => {
                let ops: Vec<&str> = children[at..]
                    .iter()
                    .map_while(|c| match c {
                        Child::Node(n) => Some(model.get_node(*n).map_or("", |n| &*n.op_type)),
                        Child::Block(_) => None,
                    })
                    .collect();
                at += ops.len();
                let shown: Vec<&str> = ops.into_iter().filter(|op| *op != "Constant").collect();
                if !shown.is_empty() {
                    let _ = writeln!(text, "{indent}· {}", shown.join(" "));
                }
            }
            Child::Block(b) => {
                let block = tree.block(b);
                let alike = children[at..]
                    .iter()
                    .map_while(|c| match c {
                        Child::Block(c) => Some((*c, tree.block(*c))),
                        Child::Node(_) => None,
                    })
                    .take_while(|(c, next)| {
                        next.repeat.as_ref().is_some_and(|r| r.index > 0 && r.first != *c)
                            && next.repeat.as_ref().map(|r| r.first) == block.repeat.as_ref().map(|r| r.first)
                    })
                    .collect::<Vec<_>>();
                if let (Some((_, last)), Some(repeat)) = (alike.last(), &block.repeat) {
                    let first = &tree.block(repeat.first).name;
                    let range = match alike.len() {
                        1 => block.name.to_string(),
                        n => format!("{} … {} ({n})", block.name, last.name),
                    };
                    let _ = writeln!(text, "{indent}{range} — as {first}");
                    at += alike.len();
                    continue;
                }
                at += 1;
                let _ = writeln!(text, "{indent}{} — {}", block.name, describe(block));
                if level < depth {
                    write_children(tree, model, b, level + 1, depth, text);
                }
            }
        }
    }
}

fn describe(block: &Block) -> String {
    let kind = match &block.kind {
        BlockKind::Graph => "graph".to_owned(),
        BlockKind::Scope => "scope".to_owned(),
        BlockKind::Module(name) => format!("module {name}"),
        BlockKind::Region => "region".to_owned(),
        BlockKind::Part => "part".to_owned(),
    };
    let mut text = format!("{kind}, {}", count(block.nodes));
    if let Some(repeat) = &block.repeat {
        let _ = write!(text, ", {} alike", repeat.of);
    }
    if !block.note.is_empty() {
        let _ = write!(text, ", {}", block.note);
    }
    text
}
