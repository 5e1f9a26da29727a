//! The open document and everything that can be done with it: commands in, state out, long work in the background.
//! Knows nothing of windows; the window, the command line's scripts and tests all drive it the same way.

pub mod changes;
pub mod command;
pub mod comparison;
pub mod document;
pub mod inspect;
pub mod jobs;
pub mod names;
mod navigation;
pub mod pictures;
pub mod pipeline_rows;
pub mod query;
pub mod script;
pub mod search;
pub mod tables;
mod work;

pub use crate::facts::statistics::Statistics;
pub use changes::Change;
pub use command::{Command, Target, ViewMode};
pub use comparison::Comparison;
pub use document::{Document, ProblemRow, Source};
pub use inspect::NodeCard;
pub use jobs::{JobStatus, Kind};
pub use pictures::Shown;
pub use pipeline_rows::{PassOutcome, PassRow, SiteRow, SiteState};
pub use search::{Hit, Hits};
pub use tables::{ChangeRow, LogRow, StepRow};

use crate::ir::ValueId;
use crate::pipeline::Registry;
use crate::scene::Place;
use jobs::Jobs;
use navigation::Spot;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A failure that stays on screen until it is taken away.
#[derive(Clone, PartialEq, Debug)]
pub struct Card {
    pub id: u64,
    /// What was being done: "Opening model.onnx".
    pub title: String,
    /// What happened, and what would be right.
    pub text: String,
}

/// Statistics of a constant before and after, where the two differ.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct WeightCard {
    /// Input position of the chosen node.
    pub input: usize,
    pub value: Option<ValueId>,
    pub name: String,
    pub ty: String,
    pub bytes: u64,
    /// At the step that is shown.
    pub now: Option<Statistics>,
    /// As imported, when a pass gave the node other data.
    pub before: Option<Statistics>,
}

/// A session: at most one document, and how it is looked at.
pub struct Session {
    pub(crate) registry: Registry,
    document: Option<Document>,
    comparison: Option<Arc<Comparison>>,
    /// How the open model was looked at before it was compared.
    left: comparison::Left,
    view: ViewMode,
    open: BTreeSet<Place>,
    first_look: BTreeSet<Place>,
    selected: Option<Place>,
    back: Vec<Spot>,
    forward: Vec<Spot>,
    /// Step that is looked at; `None` is after all of them.
    step: Option<u32>,
    shown: Option<Shown>,
    scenes: Arc<Mutex<pictures::Scenes>>,
    hits: Hits,
    hit: Option<usize>,
    badges_of: Option<String>,
    weights: Vec<WeightCard>,
    /// What was opened or closed last: it should stay where it is on the screen.
    anchor: Option<Place>,
    cards: Vec<Card>,
    next_card: u64,
    /// The last good news, for the status bar.
    notice: Option<String>,
    jobs: Jobs<work::Outcome>,
    /// The shown state is of the last run, not of one before a change of the pipeline.
    shown_run_is_current: bool,
    /// Counts changes, for whoever keeps something derived.
    revision: u64,
}

impl Session {
    /// Without a document. `wake` is called from other threads whenever [`Session::poll`] would find something.
    pub fn new(registry: Registry, wake: Arc<dyn Fn() + Send + Sync>) -> Session {
        Session {
            registry,
            document: None,
            comparison: None,
            left: comparison::Left::default(),
            view: ViewMode::default(),
            open: BTreeSet::new(),
            first_look: BTreeSet::new(),
            selected: None,
            back: Vec::new(),
            forward: Vec::new(),
            step: None,
            shown: None,
            scenes: Arc::default(),
            hits: Hits::default(),
            hit: None,
            badges_of: None,
            weights: Vec::new(),
            anchor: None,
            cards: Vec::new(),
            next_card: 1,
            notice: None,
            jobs: Jobs::new(wake),
            shown_run_is_current: false,
            revision: 0,
        }
    }

    /// Does what a command says, or starts it. What cannot be done is said in one sentence, and for what a person
    /// should not miss also stays as a card.
    pub fn apply(&mut self, command: Command) -> Result<(), String> {
        self.revision += 1;
        let title = work::title(&command);
        let done = self.perform(command);
        if let (Err(text), Some(title)) = (&done, title) {
            self.card(title, text.clone());
        }
        done
    }

    /// Takes in what background work has finished; true when anything changed.
    pub fn poll(&mut self) -> bool {
        let mut changed = false;
        while let Some((kind, result)) = self.jobs.collect() {
            self.revision += 1;
            changed = true;
            match result {
                Ok(outcome) => self.take(outcome),
                Err(panic) => {
                    self.card("Something went wrong inside passlens".into(), format!("{kind:?}: {panic}"))
                }
            }
        }
        changed
    }

    /// Polls until nothing runs any longer; false when that takes longer than the limit.
    pub fn wait_idle(&mut self, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        loop {
            self.poll();
            if self.jobs.is_idle() {
                return true;
            }
            if Instant::now() > end {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The passes there are.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The open document.
    pub fn document(&self) -> Option<&Document> {
        self.document.as_ref()
    }

    /// Which view is looked at.
    pub fn view(&self) -> ViewMode {
        self.view
    }

    /// What is on screen; of an earlier step or pipeline while [`Session::is_waiting`].
    pub fn shown(&self) -> Option<&Shown> {
        self.shown.as_ref()
    }

    /// A newer picture is being made.
    pub fn is_waiting(&self) -> bool {
        self.jobs.is_running(Kind::Picture) || self.jobs.is_running(Kind::Run)
    }

    /// Step that is looked at, the last one when not set otherwise.
    pub fn step(&self) -> u32 {
        let last = self.document.as_ref().map_or(0, Document::step_count);
        self.step.map_or(last, |s| s.min(last))
    }

    /// The chosen box.
    pub fn selected(&self) -> Option<&Place> {
        self.selected.as_ref()
    }

    /// What was opened or closed last.
    pub fn anchor(&self) -> Option<&Place> {
        self.anchor.as_ref()
    }

    /// Blocks and nodes that are open.
    pub fn open_places(&self) -> &BTreeSet<Place> {
        &self.open
    }

    /// Whether there is somewhere to go back to.
    pub fn can_go_back(&self) -> bool {
        !self.back.is_empty()
    }

    /// Whether there is somewhere to go forward to.
    pub fn can_go_forward(&self) -> bool {
        !self.forward.is_empty()
    }

    /// What the search found.
    pub fn hits(&self) -> &Hits {
        &self.hits
    }

    /// The hit that was gone to last.
    pub fn hit(&self) -> Option<usize> {
        self.hit
    }

    /// The pass whose badges are shown; all when `None`.
    pub fn badges_of(&self) -> Option<&str> {
        self.badges_of.as_deref()
    }

    /// Constants of the chosen node with their statistics.
    pub fn weights(&self) -> &[WeightCard] {
        &self.weights
    }

    /// Failures that were not taken away yet.
    pub fn cards(&self) -> &[Card] {
        &self.cards
    }

    /// The last good news.
    pub fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
    }

    /// What runs.
    pub fn jobs(&self) -> Vec<JobStatus> {
        self.jobs.status()
    }

    /// True when nothing runs.
    pub fn is_idle(&self) -> bool {
        self.jobs.is_idle()
    }

    /// Grows with every change; equal numbers mean that nothing derived from the session has changed.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The card of a node at the step that is shown.
    pub fn node_card(&self, node: crate::ir::NodeId) -> Option<NodeCard> {
        let mut card = inspect::node_card(self.document.as_ref()?, &self.shown.as_ref()?.state, node)?;
        if self.comparison.is_some() {
            // What the pipeline did is another story than what a second file holds.
            (card.origins, card.story, card.why_not) = Default::default();
        }
        Some(card)
    }

    /// The pass of each step of the last run.
    fn passes_by_step(&self) -> BTreeMap<u32, Arc<str>> {
        let changes = self.document.iter().flat_map(|d| d.changes().iter());
        changes.map(|c| (c.step, c.pass.clone())).collect()
    }

    fn card(&mut self, title: String, text: String) {
        self.revision += 1;
        self.cards.push(Card { id: self.next_card, title, text });
        self.next_card += 1;
    }

    fn need_document(&mut self) -> Result<&mut Document, String> {
        self.document.as_mut().ok_or_else(|| "no model is open".to_owned())
    }

    /// The file that the document came from.
    pub fn path(&self) -> Option<&PathBuf> {
        match self.document.as_ref().map(|d| &d.source) {
            Some(Source::File(path)) => Some(path),
            _ => None,
        }
    }
}
