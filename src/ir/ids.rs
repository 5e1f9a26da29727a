//! Identities: ids of nodes, values and graphs, and the key that orders nodes inside a graph.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Shared immutable text: names, domains, documentation.
pub type Text = Arc<str>;

/// Ids from here on stand for things that a patch is going to create; see [`crate::ir::patch::PatchBuilder`].
pub(crate) const PLACEHOLDER: u32 = 1 << 31;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $letter:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// Position in the model's arena.
            pub fn index(self) -> usize {
                self.0 as usize
            }

            /// True for an id that a patch has not been given a real one for yet.
            pub fn is_placeholder(self) -> bool {
                self.0 >= PLACEHOLDER
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($letter, "{}"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($letter, "{}"), self.0)
            }
        }
    };
}

id!(
    /// A node of a model; never reused within a session.
    NodeId, "n"
);
id!(
    /// A value (an edge of the graph, an input, an initializer); never reused within a session.
    ValueId, "v"
);
id!(
    /// A graph of a model: the main graph, a body of If, Loop or Scan, or a model-local function.
    GraphId, "g"
);

/// Place of a node in its graph's list; a producer's key is smaller than its readers' keys.
///
/// Imported nodes are [`OrderKey::STRIDE`] apart, so that about ninety rewrites can each halve the same gap.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OrderKey(pub u128);

impl OrderKey {
    /// Distance between neighbours in an imported graph.
    pub const STRIDE: u128 = 1 << 90;

    /// Key of the node at `position` of an imported graph.
    pub fn at(position: usize) -> OrderKey {
        OrderKey((position as u128 + 1) * Self::STRIDE)
    }

    /// The key in the middle of two, `None` when the gap is used up.
    pub fn between(low: OrderKey, high: OrderKey) -> Option<OrderKey> {
        let gap = high.0.checked_sub(low.0)?;
        (gap >= 2).then_some(OrderKey(low.0 + gap / 2))
    }
}
