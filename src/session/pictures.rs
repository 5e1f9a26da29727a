//! Pictures for what is looked at: made in the background, from the state at a step.

use super::changes::{self, Change};
use super::command::ViewMode;
use super::comparison::Comparison;
use super::jobs::Handle;
use super::tables::{self, ChangeRow};
use crate::diff::{self, Diff};
use crate::ir::{GraphId, NodeId};
use crate::pipeline::{Run, State};
use crate::scene::{Mark, Overlay, Picture, Place, Scene, View};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// The makers of pictures, one for each that keeps its places.
#[derive(Default)]
pub struct Scenes {
    before: Scene,
    after: Scene,
    difference: Scene,
}

/// What a picture is to be made of.
pub struct PictureRequest {
    pub scenes: Arc<Mutex<Scenes>>,
    pub initial: Arc<State>,
    pub run: Option<Arc<Run>>,
    pub changes: Arc<[Change]>,
    /// A second file, shown in place of the run's result.
    pub comparison: Option<Arc<Comparison>>,
    pub step: u32,
    pub view: ViewMode,
    pub open: BTreeSet<Place>,
    pub hits: BTreeSet<NodeId>,
    pub badges_of: Option<String>,
    /// The last picture, when that was of the same run and step: what depends on these alone is taken from it.
    pub known: Option<Shown>,
}

/// What is shown.
#[derive(Clone)]
pub struct Shown {
    pub view: ViewMode,
    pub step: u32,
    /// The model at that step.
    pub state: Arc<State>,
    /// Of the model as imported; in the views that show it.
    pub before: Option<Arc<Picture>>,
    /// At the step (or the difference).
    pub after: Option<Arc<Picture>>,
    pub marks: Arc<BTreeMap<NodeId, Mark>>,
    /// Where next and previous change stop.
    pub stops: Arc<[NodeId]>,
    /// What differs at each of them.
    pub changes: Arc<[ChangeRow]>,
    /// The pass that last made or changed each node; of `badges_of` alone when that is set.
    pub badges: Arc<BTreeMap<NodeId, Arc<str>>>,
    pub badges_of: Option<String>,
    /// Number of nodes at the step, in bodies and functions too, and how many there are of each operator, by name.
    pub nodes: usize,
    pub operators: Arc<BTreeMap<Arc<str>, usize>>,
    /// Seconds that layout and picture took.
    pub seconds: f64,
}

impl PictureRequest {
    /// Makes the pictures; `None` when cancelled.
    pub fn make(mut self, handle: &Handle) -> Option<Shown> {
        let clock = std::time::Instant::now();
        let mut shown = match self.known.take() {
            Some(known) => known,
            None => self.look(),
        };
        if shown.badges_of != self.badges_of {
            shown.badges = self.badges(&shown.state);
            shown.badges_of = self.badges_of.clone();
        }
        let state = shown.state.clone();
        // A scene is left poisoned only by a panic, which was reported; its cache is still a cache.
        let mut scenes = self.scenes.lock().unwrap_or_else(|p| p.into_inner());
        let overlay = |with_marks: bool| Overlay {
            marks: if with_marks { (*shown.marks).clone() } else { BTreeMap::new() },
            badges: (*shown.badges).clone(),
            hits: self.hits.clone(),
        };
        let mut before = None;
        let mut after = None;
        let difference = self.view == ViewMode::Difference;
        if matches!(self.view, ViewMode::Before | ViewMode::SideBySide) {
            let mut overlay = overlay(self.view == ViewMode::SideBySide);
            overlay.badges.clear();
            let view = view_of(&self.initial, &self.open, &overlay, None);
            before = Some(Arc::new(scenes.before.picture(&view, &handle.cancel).ok()?));
        }
        if self.view != ViewMode::Before {
            let overlay = overlay(self.view != ViewMode::After);
            let old = difference.then_some(&self.initial.model);
            let view = view_of(&state, &self.open, &overlay, old);
            let scene = if difference { &mut scenes.difference } else { &mut scenes.after };
            after = Some(Arc::new(scene.picture(&view, &handle.cancel).ok()?));
        }
        (shown.view, shown.before, shown.after) = (self.view, before, after);
        shown.seconds = clock.elapsed().as_secs_f64();
        Some(shown)
    }

    /// All that is shown but the pictures: what depends on the second file, or on the run and the step, alone.
    fn look(&self) -> Shown {
        if let Some(comparison) = &self.comparison {
            return self.difference(comparison.state.clone(), &comparison.diff, &[]);
        }
        let state = match &self.run {
            Some(run) if self.step > 0 => Arc::new(run.state_at(self.step)),
            _ => self.initial.clone(),
        };
        let diff = diff::by_id(&self.initial.model, &state.model);
        let changes = &self.changes[..(self.step as usize).min(self.changes.len())];
        self.difference(state, &diff, changes)
    }

    fn difference(&self, state: Arc<State>, diff: &Diff, changes: &[Change]) -> Shown {
        let mut operators: BTreeMap<Arc<str>, usize> = BTreeMap::new();
        for graph in state.model.live_graphs() {
            for (_, node) in state.model.nodes_of(graph) {
                *operators.entry(node.op_type.clone()).or_default() += 1;
            }
        }
        Shown {
            view: self.view,
            step: self.step,
            before: None,
            after: None,
            changes: tables::change_rows(&self.initial, &state, diff, changes),
            badges: self.badges(&state),
            badges_of: self.badges_of.clone(),
            nodes: operators.values().sum(),
            operators: Arc::new(operators),
            marks: Arc::new(changes::marks(diff)),
            stops: diff.nodes.iter().filter_map(changes::node_of).collect(),
            state,
            seconds: 0.0,
        }
    }

    fn badges(&self, state: &State) -> Arc<BTreeMap<NodeId, Arc<str>>> {
        match self.comparison {
            Some(_) => Arc::default(),
            None => Arc::new(changes::badges(state, &self.changes, self.badges_of.as_deref())),
        }
    }
}

fn view_of<'a>(
    state: &'a State,
    open: &'a BTreeSet<Place>,
    overlay: &'a Overlay,
    before: Option<&'a crate::ir::Model>,
) -> View<'a> {
    View {
        model: &state.model,
        facts: &state.facts,
        blocks: &state.blocks,
        graph: GraphId(0),
        open,
        overlay,
        before,
    }
}
