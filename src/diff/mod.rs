//! Two models side by side: nodes added, removed, changed and rewired, and constants that differ.
//!
//! [`by_id`] compares two states of one session, where ids tell which node is which. [`by_matching`] compares two files:
//! nodes are matched by the names of the values they give, then by their own names, then by structure. Either way a node
//! is rewired when it reads another value, not when the value that it reads is computed in another way.

mod align;
mod by_id;
mod compare;
mod matching;
mod model_wide;
mod structure;
mod values;
pub mod weights;
mod words;

pub use align::{Aligned, align};
pub use by_id::by_id;
pub use matching::by_matching;
pub use words::sentence;

use crate::ir::{NodeId, Text, ValueId};
use std::collections::BTreeMap;

/// How a node differs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    /// Only in the second model.
    Added,
    /// Only in the first model.
    Removed,
    /// Another operator, attribute, output or constant.
    Changed,
    /// The same, but reads other values.
    Rewired,
}

/// What told that two nodes are the same one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// One id in one session.
    Id,
    /// They give a value of the same name.
    ValueName,
    /// They have the same name.
    NodeName,
    /// They compute the same from the same, or feed the same, or stand between the same neighbours.
    Structure,
}

/// One way in which two nodes that are the same differ.
#[derive(Clone, PartialEq, Debug)]
pub enum What {
    Operator {
        before: String,
        after: String,
    },
    /// An attribute was set, taken away (`None`) or given another value; values as short texts.
    Attribute {
        name: Text,
        before: Option<String>,
        after: Option<String>,
    },
    /// Another value is read at this position.
    Input {
        index: usize,
        before: Option<Text>,
        after: Option<Text>,
    },
    /// An output is given under another name, anew or no longer.
    Output {
        index: usize,
        before: Option<Text>,
        after: Option<Text>,
    },
    /// The constant read at this position has another type or other elements.
    Constant {
        index: usize,
        before: ValueId,
        after: ValueId,
    },
    /// It stands in another graph.
    Graph {
        before: String,
        after: String,
    },
}

/// A node that differs.
#[derive(Clone, PartialEq, Debug)]
pub struct NodeChange {
    pub before: Option<NodeId>,
    pub after: Option<NodeId>,
    pub mark: Mark,
    /// `None` for a node without a counterpart.
    pub rule: Option<Rule>,
    pub what: Vec<What>,
}

/// Constant data that differs: only before, only after, or other elements.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ConstantChange {
    pub before: Option<ValueId>,
    pub after: Option<ValueId>,
}

/// Everything in which two models differ.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Diff {
    /// In graph order; a removed node stands where it was, before what took its place.
    pub nodes: Vec<NodeChange>,
    /// Initializers.
    pub constants: Vec<ConstantChange>,
    /// Nodes that are the same but for their name.
    pub renamed: Vec<(NodeId, NodeId)>,
    /// Differences of the models as a whole, of inputs and outputs: one sentence each.
    pub model: Vec<String>,
    /// How many nodes each rule matched.
    pub matched: BTreeMap<Rule, usize>,
    before: BTreeMap<NodeId, Mark>,
    after: BTreeMap<NodeId, Mark>,
}

impl Diff {
    /// True when the two models do not differ.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty() && self.constants.is_empty() && self.renamed.is_empty() && self.model.is_empty()
    }

    /// Mark of a node of the first model; `None` when it is the same in both.
    pub fn mark_before(&self, node: NodeId) -> Option<Mark> {
        self.before.get(&node).copied()
    }

    /// Mark of a node of the second model; `None` when it is the same in both.
    pub fn mark_after(&self, node: NodeId) -> Option<Mark> {
        self.after.get(&node).copied()
    }

    /// Nodes with this mark.
    pub fn count(&self, mark: Mark) -> usize {
        self.nodes.iter().filter(|change| change.mark == mark).count()
    }

    fn add(&mut self, change: NodeChange) {
        self.before.extend(change.before.map(|node| (node, change.mark)));
        self.after.extend(change.after.map(|node| (node, change.mark)));
        self.nodes.push(change);
    }
}

impl NodeChange {
    fn alone(node: NodeId, mark: Mark) -> NodeChange {
        let (before, after) = if mark == Mark::Removed { (Some(node), None) } else { (None, Some(node)) };
        NodeChange { before, after, mark, rule: None, what: Vec::new() }
    }
}

impl What {
    /// Only what is read differs, not what the node is.
    fn is_rewiring(&self) -> bool {
        matches!(self, What::Input { .. })
    }
}
