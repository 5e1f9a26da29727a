//! Everything that can be asked of a session. The window sends these on a click, scripts and tests write them as JSON;
//! things are named by graph path, node, value or block, not by id.

use crate::passes::Stage;
use crate::pipeline::SiteKey;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Which of the pictures is looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ViewMode {
    /// The model as it was opened.
    Before,
    /// The model at the step that is looked at.
    #[default]
    After,
    /// Both, with one camera.
    SideBySide,
    /// Both in one picture, with what differs marked.
    Difference,
}

impl ViewMode {
    /// Name on buttons.
    pub fn name(self) -> &'static str {
        match self {
            ViewMode::Before => "Before",
            ViewMode::After => "After",
            ViewMode::SideBySide => "Side by side",
            ViewMode::Difference => "Difference",
        }
    }
}

/// A thing of the model by name. One of `node`, `value`, `block` is given; a node is found by its name, by the name of
/// its first output, or by its operator and position (`Conv#2`).
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// As `inspect` writes graph paths; the main graph when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Path of a block within its graph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<String>,
}

impl Target {
    /// A node of the main graph.
    pub fn node(name: &str) -> Target {
        Target { node: Some(name.into()), ..Target::default() }
    }

    /// A block of the main graph.
    pub fn block(path: &str) -> Target {
        Target { block: Some(path.into()), ..Target::default() }
    }
}

/// A command.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Command {
    /// Open a model file (ONNX, JSON graph or text form).
    Open {
        path: PathBuf,
    },
    /// Open a built-in sample by name.
    OpenSample {
        name: String,
    },
    /// Close the model.
    Close,
    /// Open a second file beside the open model: the model as opened is before, the second file after.
    Compare {
        path: PathBuf,
    },
    /// Back to the open model alone.
    CloseComparison,

    SetPass {
        pass: String,
        on: bool,
    },
    SetStage {
        stage: Stage,
        on: bool,
    },
    /// One place up or down in the order of run.
    MovePass {
        pass: String,
        up: bool,
    },
    SetRounds {
        rounds: u32,
    },
    SetAggressive {
        on: bool,
    },
    /// Leave a site alone, or no longer.
    ExcludeSite {
        key: SiteKey,
        exclude: bool,
    },
    /// Keep a pass out of a block, or no longer.
    ExcludeBlock {
        pass: String,
        block: String,
        exclude: bool,
    },
    /// All as it is when nothing was changed.
    ResetPipeline,
    LoadPipeline {
        path: PathBuf,
    },
    SavePipeline {
        path: PathBuf,
    },
    Undo,
    Redo,
    /// List the sites that a pass that is off would find.
    Preview {
        pass: String,
    },

    /// Look at the model after a step; 0 is as opened.
    GoToStep {
        step: u32,
    },
    /// Look at the model after all steps.
    GoToEnd,
    NextStep,
    PreviousStep,
    SetView {
        view: ViewMode,
    },
    /// Open or close a block, or a node with bodies.
    Toggle {
        target: Target,
    },
    /// Open a thing and everything in it; all without a target.
    OpenAll {
        #[serde(default)]
        target: Option<Target>,
    },
    /// Close everything in a thing; back to the first look without a target.
    CloseAll {
        #[serde(default)]
        target: Option<Target>,
    },

    /// Choose a thing (and open what hides it); nothing without a target.
    Select {
        #[serde(default)]
        target: Option<Target>,
    },
    /// Choose the next or previous place that differs.
    NextChange,
    PreviousChange,
    /// Before the last choice or opening.
    Back,
    Forward,
    /// Find nodes; see [`crate::session::query`] for what a query can say. Empty ends the search.
    Search {
        query: String,
    },
    NextHit,
    PreviousHit,
    /// Show badges of this pass only; of all without one.
    FilterProvenance {
        #[serde(default)]
        pass: Option<String>,
    },

    /// Write the model at the step that is looked at.
    Save {
        path: PathBuf,
    },
    /// Stop what is running; what is complete is kept.
    Cancel,
    /// Take a card away.
    Dismiss {
        card: u64,
    },
}

impl Command {
    /// True for what Undo takes back.
    pub fn changes_pipeline(&self) -> bool {
        matches!(
            self,
            Command::SetPass { .. }
                | Command::SetStage { .. }
                | Command::MovePass { .. }
                | Command::SetRounds { .. }
                | Command::SetAggressive { .. }
                | Command::ExcludeSite { .. }
                | Command::ExcludeBlock { .. }
                | Command::ResetPipeline
                | Command::LoadPipeline { .. }
        )
    }
}
