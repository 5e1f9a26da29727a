//! The hierarchy of a model: from exporter scopes, from structure, and from recognised modules.

pub mod tree;

pub use tree::{Block, BlockId, BlockKind, BlockTree, Child, Repeat};
