//! What the panels show, as plain rows: made from the session when something changed, never while drawing.

use std::sync::Arc;

use crate::ir::{NodeId, ValueId};
use crate::passes::{Risk, Stage};
use crate::pipeline::SiteKey;
use crate::scene::Place;
pub use crate::session::{ChangeRow, LogRow, StepRow};

/// One pass of the pipeline.
#[derive(Debug, Clone, PartialEq)]
pub struct PassRow {
    pub name: Arc<str>,
    pub stage: Stage,
    pub summary: Arc<str>,
    pub risk: Risk,
    pub on: bool,
    /// Why it cannot be moved up, or down.
    pub up: Result<(), String>,
    pub down: Result<(), String>,
    /// It was reached by the last run.
    pub ran: bool,
    /// Made only while the pass is open in the list.
    pub sites: Vec<SiteRow>,
    /// Near misses, like sites.
    pub near: Vec<BlockedRow>,
    /// Rolled back, with the reason.
    pub failures: Vec<String>,
    pub rewrites: usize,
    /// How many near misses, sites left alone, and sites rolled back.
    pub blocked: usize,
    pub excluded: usize,
    pub failed: usize,
    /// Nodes after minus nodes before, over all rounds.
    pub node_change: i64,
    pub seconds: f64,
}

/// One place where a pass rewrote, would rewrite, or is kept from it.
#[derive(Debug, Clone, PartialEq)]
pub struct SiteRow {
    /// What configurations and scripts keep.
    pub key: SiteKey,
    pub what: Arc<str>,
    pub node: Option<NodeId>,
    pub name: String,
    /// The step that rewrote it.
    pub step: Option<u32>,
    /// Switched off by a person.
    pub excluded: bool,
    /// Path of its block.
    pub block: String,
}

/// A near miss.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockedRow {
    pub node: Option<NodeId>,
    pub name: String,
    pub condition: Arc<str>,
    pub blame: NodeId,
    pub blame_name: String,
}

/// Something that is wrong with the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ProblemRow {
    pub severe: bool,
    pub text: String,
    pub node: Option<NodeId>,
}

/// Something that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct HitRow {
    pub title: String,
    pub name: String,
    /// Path of the enclosing block.
    pub block: String,
}

/// A part of what the inspector shows.
#[derive(Debug, Clone, PartialEq)]
pub enum Fact {
    /// A heading.
    Section(&'static str),
    /// Name and value; weak when it is a default.
    Pair { name: String, value: String, default: bool },
    /// A near miss at this node: pass, condition, node to blame.
    WhyNot { pass: Arc<str>, condition: String, blame: NodeId, blame_name: String },
    /// An input or output: role, name, type; where a click leads.
    Port { role: String, name: String, ty: String, value: ValueId, constant: bool, peers: Vec<NodeId> },
    /// A node that a click leads to.
    Node { text: String, node: NodeId },
    /// A step of the thing's story.
    Step { number: u32, text: String },
    /// A whole line.
    Text(String),
    /// Counts of values in equal bins from the least to the largest.
    Histogram { low: f64, high: f64, counts: Vec<u32> },
}

/// What the inspector shows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Facts {
    pub title: String,
    pub subtitle: String,
    pub rows: Vec<Fact>,
}

/// A part of the way from the model down to what is chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct Crumb {
    pub text: String,
    pub place: Option<Place>,
}

/// The second file, while two are compared.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Compared {
    /// Name of the second file.
    pub name: String,
    /// Where it is.
    pub path: String,
    /// What differs, in a few words.
    pub summary: String,
    /// Differences of the models as a whole, one sentence each.
    pub model: Vec<String>,
}

/// Something that runs.
#[derive(Debug, Clone, PartialEq)]
pub struct JobRow {
    pub what: String,
    pub seconds: f64,
}
