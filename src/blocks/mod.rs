//! The hierarchy of a model: from exporter scopes, from structure, and from recognised modules.

pub mod tree;

pub use tree::{Block, BlockId, BlockKind, BlockTree, Child, Repeat};

/// The tree of a model.
pub fn build(model: &crate::ir::Model, _facts: &crate::facts::Facts) -> BlockTree {
    let blocks = model.live_graphs().into_iter().map(|graph| Block {
        graph,
        parent: None,
        kind: BlockKind::Graph,
        name: model.graph(graph).name.clone(),
        note: "".into(),
        children: model.nodes_of(graph).map(|(id, _)| Child::Node(id)).collect(),
        nodes: model.graph(graph).nodes.len() as u32,
        repeat: None,
    });
    BlockTree::new(blocks.collect())
}
/// s
pub fn initial_open(_: &BlockTree, _: &crate::ir::Model) -> std::collections::BTreeSet<BlockId> {
    Default::default()
}
