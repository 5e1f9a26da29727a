//! Everything that one frame of the window shows, and everything that a person can ask for in it. Made from the session
//! when something changed; the shell draws it.

use std::path::PathBuf;
use std::sync::Arc;

use super::lit::Lit;
use super::panels::start::{Recent, SampleRow};
use super::rows::{ChangeRow, Compared, Crumb, Facts, HitRow, JobRow, LogRow, PassRow, ProblemRow, StepRow};
use super::verbs::Verb;
use crate::ir::{NodeId, ValueId};
use crate::passes::Stage;
use crate::pipeline::SiteKey;
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
    /// The verb that switches to this view.
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
    /// The second file, while two are compared.
    pub compared: Option<Compared>,
    pub wanted: View,
    /// The view that the pictures are of; another one than is wanted while new ones are being made.
    pub view: View,
    /// The picture of the view; of `Both`, that of before.
    pub picture: Arc<Picture>,
    /// Of `Both`, that of after.
    pub second: Arc<Picture>,
    /// New pictures are being made.
    pub waiting: bool,
    pub chosen: Option<Place>,
    /// What stands for it in the picture, and in the second one.
    pub lit: Option<Lit>,
    pub second_lit: Option<Lit>,
    /// Opened or closed last.
    pub anchor: Option<Place>,
    /// Families of the boxes in the picture.
    pub families: Vec<Family>,
    pub crumbs: Vec<Crumb>,
    pub passes: Vec<PassRow>,
    pub steps: Arc<[StepRow]>,
    /// Step that is shown, 0 for before all.
    pub step: u32,
    pub changes: Arc<[ChangeRow]>,
    pub change: Option<usize>,
    pub log: Arc<[LogRow]>,
    pub problems: Vec<ProblemRow>,
    pub facts: Facts,
    pub hits: Vec<HitRow>,
    pub hit: Option<usize>,
    /// How many fit, of which the first are listed, and why the search cannot be understood.
    pub hits_total: usize,
    pub search_problem: Option<String>,
    pub jobs: Vec<JobRow>,
    pub nodes_before: usize,
    pub nodes_after: usize,
    pub verified: String,
    /// Failures that stay until they are closed: number and text.
    pub cards: Vec<(u64, String)>,
    /// The last good news.
    pub notice: String,
    /// Badges of this pass only are shown; of all when `None`.
    pub badges_of: Option<String>,
    /// Risky passes run too.
    pub aggressive: bool,
    /// What undo and redo would do, by name.
    pub undo: Option<String>,
    pub redo: Option<String>,
    pub can_back: bool,
    pub can_forward: bool,
    pub samples: Arc<[SampleRow]>,
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
        key: SiteKey,
        on: bool,
    },
    /// Keep a pass out of a block, or let it in again.
    ExcludeBlock {
        pass: Arc<str>,
        block: String,
        on: bool,
    },
    /// The sites of a pass were opened in the list.
    OpenPass(Arc<str>),
    /// Show badges of this pass only, or of all.
    Badges(Option<Arc<str>>),
    ShowStep(u32),
    Choose(Option<Place>),
    Toggle(Place),
    Up,
    Reveal(NodeId),
    Producer(ValueId),
    /// Go to one of these: the next one of them after what is chosen.
    OneOf(Vec<NodeId>),
    Change(usize),
    Search(String),
    Hit(usize),
    Copy(String),
    CloseCard(u64),
}
