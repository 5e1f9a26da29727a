//! Passes: what finds places where a graph can be better, and proposes a patch for each.
//!
//! A pass never changes a model. `find` lists sites, `rewrite` turns one site into a patch or says why not; the
//! pipeline does everything else: checks, numbering, provenance, rollback.

use crate::blocks::BlockTree;
use crate::facts::Facts;
use crate::ir::{GraphId, Model, NodeId, Patch, Text, ValueId};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Where in the order a pass belongs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Removes what does nothing.
    Eliminate,
    /// Computes what is constant.
    Fold,
    /// Merges several operations into one.
    Fuse,
    /// Moves or merges changes of data layout.
    Layout,
    /// Closes every round: removes what nothing reads.
    Clean,
}

impl Stage {
    /// All stages, in the order of a round.
    pub const ALL: &'static [Stage] =
        &[Stage::Eliminate, Stage::Fold, Stage::Fuse, Stage::Layout, Stage::Clean];

    /// Name in configurations and lists.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Eliminate => "eliminate",
            Stage::Fold => "fold",
            Stage::Fuse => "fuse",
            Stage::Layout => "layout",
            Stage::Clean => "clean",
        }
    }
}

impl Risk {
    /// Name in lists.
    pub fn name(self) -> &'static str {
        match self {
            Risk::Exact => "exact",
            Risk::Rounding => "rounding",
            Risk::Lossy => "lossy",
            Risk::Risky => "risky",
        }
    }
}

/// How far outputs may move.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Risk {
    /// Equal to the bit: -0.0, NaN, infinities and wrap-around included.
    Exact,
    /// Last bits differ, because floating-point operations happen in another order.
    Rounding,
    /// Information is lost; how much is stated.
    Lossy,
    /// Right only under conditions that the graph does not show; off unless asked for.
    Risky,
}

/// Which shapes a pass can work with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ShapeMode {
    /// Needs fixed dimensions where it looks.
    Static,
    /// Works with symbolic dimensions too.
    Symbolic,
    /// Does not look at shapes.
    Any,
}

/// What is known of a pass without running it.
#[derive(Clone, Debug)]
pub struct PassInfo {
    /// `verb_object`, unique.
    pub name: &'static str,
    pub stage: Stage,
    /// One sentence without a full stop.
    pub summary: &'static str,
    pub risk: Risk,
    pub shapes: ShapeMode,
    /// Passes that should have run before in the same round, by name.
    pub after: &'static [&'static str],
    /// On unless switched off.
    pub default_on: bool,
    /// A small graph before, in the text form; shown as help and run as a test.
    pub example_before: &'static str,
    /// The same graph after.
    pub example_after: &'static str,
}

/// One place where a pass would rewrite.
#[derive(Clone, PartialEq, Debug)]
pub struct Site {
    pub graph: GraphId,
    /// What gives the site its name: the node that stays, where one stays.
    pub anchor: Anchor,
    /// Every node of the match, the anchor included.
    pub nodes: Vec<NodeId>,
    /// A few words: `Conv + BatchNormalization`, `Dropout`.
    pub what: Text,
}

/// What a site is named after.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Anchor {
    /// A node: the site bears the name of its first output.
    Node(NodeId),
    /// A value without a node, such as an initializer.
    Value(ValueId),
}

/// A near miss: everything fitted but one condition.
#[derive(Clone, PartialEq, Debug)]
pub struct Blocked {
    pub graph: GraphId,
    /// Where the rewrite would have been.
    pub anchor: NodeId,
    /// The condition that failed, as a sentence without a full stop: "the Conv result is also read by 'Add_3'".
    pub condition: Text,
    /// The node to blame.
    pub blame: NodeId,
}

/// Everything that one `find` saw.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Findings {
    /// In graph order of their anchors.
    pub sites: Vec<Site>,
    pub blocked: Vec<Blocked>,
}

/// Why a site gave no patch.
#[derive(Clone, PartialEq, Debug)]
pub enum Declined {
    /// What was found is not there any longer: another rewrite took it.
    Stale,
    /// The rewrite would change nothing.
    NoEffect,
    /// A condition does not hold.
    Blocked(Blocked),
    /// The patch could not be written.
    Failed(String),
}

impl From<crate::ir::PatchError> for Declined {
    fn from(e: crate::ir::PatchError) -> Declined {
        Declined::Failed(e.to_string())
    }
}

/// What a pass may look at.
pub struct Context<'a> {
    pub model: &'a Model,
    pub facts: &'a Facts,
    pub blocks: &'a BlockTree,
    /// Set when the person does not want to wait any longer; a long `find` looks at it now and then.
    pub cancel: &'a AtomicBool,
}

/// An optimization pass.
pub trait Pass: Send + Sync {
    /// What is known of it.
    fn info(&self) -> &PassInfo;

    /// Sites and near misses in one graph (bodies are asked for on their own). With `around`, only sites whose match
    /// involves one of these nodes need be found: the worklist after a rewrite.
    fn find(&self, cx: &Context, graph: GraphId, around: Option<&[NodeId]>) -> Findings;

    /// The patch for a site, which may have been found before other rewrites happened: check it again.
    fn rewrite(&self, cx: &Context, site: &Site) -> Result<Patch, Declined>;
}

mod bypass;
mod clean;
mod eliminate;
mod fuse;
mod known;
mod layout;
mod matching;
mod operators;

/// The built-in passes, in order of run.
pub fn builtin() -> Vec<Arc<dyn Pass>> {
    vec![
        Arc::new(eliminate::identity::EliminateIdentity),
        Arc::new(eliminate::common_subexpressions::EliminateCommonSubexpressions),
        Arc::new(fuse::conv_batch_norm::FuseConvBatchNorm),
        Arc::new(fuse::matmul_add::FuseMatMulAdd),
        Arc::new(layout::merge_transposes::MergeTransposes),
        Arc::new(layout::merge_reshapes::MergeReshapes),
        Arc::new(clean::dead_code::EliminateDeadCode),
    ]
}
