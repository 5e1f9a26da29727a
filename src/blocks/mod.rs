//! The hierarchy of a model: from exporter scopes, from structure, and from recognised modules.
//!
//! [`build`] makes one tree per graph. Scopes come first (node metadata, node names, value names); inside what is still
//! crowded, modules are recognised by their operators, then repeats of one sequence, and what remains is cut into parts.

mod beside;
mod clarity;
mod content;
mod cut;
mod flow;
mod freeze;
mod hierarchy;
mod joins;
mod level;
mod modules;
mod open;
mod outline;
mod scopes;
mod side;
pub mod tree;
mod untangle;

pub use beside::beside;
pub use clarity::{Clarity, clarity};
pub use open::{initial_open, visible};
pub use outline::{outline, outline_to};
pub use tree::{Block, BlockId, BlockKind, BlockTree, Child, Repeat};

use crate::facts::Facts;
use crate::ir::Model;

/// The block trees of all live graphs. The same model gives the same trees.
pub fn build(model: &Model, facts: &Facts) -> BlockTree {
    let mut blocks = Vec::new();
    for flow in flow::flows(model, &model.live_graphs()) {
        let scopes = scopes::scopes(model, &flow);
        let mut work = level::Work::new(model, facts, &flow);
        let members = hierarchy::members(&mut work, &scopes);
        freeze::graph(&work, &members, scopes.origin, &mut blocks);
    }
    freeze::mark_repeats(model, &mut blocks);
    BlockTree::new(blocks)
}
