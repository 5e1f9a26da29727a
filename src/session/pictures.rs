//! Pictures for what is looked at: made in the background, from the state at a step.

use super::changes::{self, Change};
use super::command::ViewMode;
use super::jobs::Handle;
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
    pub step: u32,
    pub view: ViewMode,
    pub open: BTreeSet<Place>,
    pub hits: BTreeSet<NodeId>,
    pub badges_of: Option<String>,
    /// The state at `step` from the last picture, when that was of the same run and step.
    pub known: Option<Arc<State>>,
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
    /// Seconds that layout and picture took.
    pub seconds: f64,
}

impl PictureRequest {
    /// Makes the pictures; `None` when cancelled.
    pub fn make(self, handle: &Handle) -> Option<Shown> {
        let clock = std::time::Instant::now();
        let state = match (&self.known, &self.run) {
            (Some(state), _) => state.clone(),
            (None, Some(run)) if self.step > 0 => Arc::new(run.state_at(self.step)),
            _ => self.initial.clone(),
        };
        let changes = &self.changes[..(self.step as usize).min(self.changes.len())];
        let marks = changes::marks(&self.initial.model, &state.model, changes);
        let badges = changes::badges(&state, &self.changes, self.badges_of.as_deref());
        // A scene is left poisoned only by a panic, which was reported; its cache is still a cache.
        let mut scenes = self.scenes.lock().unwrap_or_else(|p| p.into_inner());
        let overlay = |with_marks: bool| Overlay {
            marks: if with_marks { marks.clone() } else { BTreeMap::new() },
            badges: badges.clone(),
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
        let stops = changes::stops(&self.initial.model, &state.model, &marks);
        Some(Shown {
            view: self.view,
            step: self.step,
            state,
            before,
            after,
            marks: Arc::new(marks),
            stops: stops.into(),
            seconds: clock.elapsed().as_secs_f64(),
        })
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
