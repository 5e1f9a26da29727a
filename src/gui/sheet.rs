//! Everything that one frame of the window shows, and everything that a person can ask for in it. Made from the session
//! when something changed; the shell draws it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::panels::start::{Recent, SampleRow};
use super::rows::{ChangeRow, Crumb, Facts, HitRow, JobRow, LogRow, PassRow, ProblemRow, StepRow};
use super::verbs::Verb;
use crate::ir::{NodeId, ValueId};
use crate::passes::Stage;
use crate::scene::{Family, Mark, Picture, Place};

/// Which pictures are on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum View {
    Before,
    #[default]
    After,
    Both,
    Difference,
}

impl View {
    /// The verb that switches to it.
    pub fn verb(self) -> Verb {
        match self {
            View::Before => Verb::ViewBefore,
            View::After => Verb::ViewAfter,
            View::Both => Verb::ViewBoth,
            View::Difference => Verb::ViewDifference,
        }
    }
}

/// What is shown.
#[derive(Debug, Clone, Default)]
pub struct Sheet {
    /// Name of the open model; `None` shows the start page.
    pub name: Option<String>,
    pub view: View,
    /// The picture of the view; of `Both`, that of before.
    pub picture: Arc<Picture>,
    /// Of `Both`, that of after.
    pub second: Arc<Picture>,
    /// New pictures are being made.
    pub waiting: bool,
    pub chosen: Option<Place>,
    /// Opened or closed last.
    pub anchor: Option<Place>,
    /// Where far values of the picture come from.
    pub producers: BTreeMap<ValueId, Place>,
    /// Families of the boxes in the picture.
    pub families: Vec<Family>,
    pub crumbs: Vec<Crumb>,
    pub passes: Vec<PassRow>,
    pub steps: Vec<StepRow>,
    /// Step that is shown, 0 for before all.
    pub step: u32,
    pub changes: Vec<ChangeRow>,
    pub change: Option<usize>,
    pub log: Vec<LogRow>,
    pub problems: Vec<ProblemRow>,
    pub facts: Facts,
    pub hits: Vec<HitRow>,
    pub hit: Option<usize>,
    pub search_error: Option<String>,
    pub jobs: Vec<JobRow>,
    pub nodes_before: usize,
    pub nodes_after: usize,
    pub verified: String,
    /// Failures that stay until they are closed: what happened and what was kept.
    pub cards: Vec<String>,
    /// What undo and redo would do, by name.
    pub undo: Option<String>,
    pub redo: Option<String>,
    pub can_back: bool,
    pub can_forward: bool,
    pub samples: Vec<SampleRow>,
    pub recent: Vec<Recent>,
}

impl Sheet {
    /// How many changes of a kind there are.
    pub fn count(&self, mark: Mark) -> usize {
        self.changes.iter().filter(|change| change.mark == mark).count()
    }
}

/// What a person asked for.
#[derive(Debug, Clone, PartialEq)]
pub enum Ask {
    Verb(Verb),
    Open(PathBuf),
    /// A file was dropped while a model is open: open it or compare with it.
    Dropped(PathBuf),
    OpenSample(String),
    SetPass {
        pass: Arc<str>,
        on: bool,
    },
    SetStage {
        stage: Stage,
        on: bool,
    },
    MovePass {
        pass: Arc<str>,
        up: bool,
    },
    Exclude {
        key: String,
        on: bool,
    },
    ShowStep(u32),
    Choose(Option<Place>),
    Toggle(Place),
    Up,
    Reveal(NodeId),
    Producer(ValueId),
    Readers(ValueId),
    Change(usize),
    Search(String),
    Hit(usize),
    Copy(String),
    CloseCard(usize),
}
