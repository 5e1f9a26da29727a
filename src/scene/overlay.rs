//! What is laid over a picture: differences, provenance, search results.

use super::Mark;
use crate::ir::{NodeId, Text};
use std::collections::{BTreeMap, BTreeSet};

/// Things known about nodes that the picture shows on them; a closed block shows the sum of what is inside.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overlay {
    /// How a node differs; nodes that are only in the model before are `Removed` without being listed here.
    pub marks: BTreeMap<NodeId, Mark>,
    /// Pass that made or changed a node.
    pub badges: BTreeMap<NodeId, Text>,
    /// Nodes that the search found.
    pub hits: BTreeSet<NodeId>,
}
