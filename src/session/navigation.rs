//! Going about: choosing, opening and closing, steps, changes, hits, back and forward.

use super::names;
use super::work::blocks_inside;
use super::{Command, Session, Target, ViewMode};
use crate::ir::{Model, NodeId};
use crate::scene::{Item, Place};
use std::collections::BTreeSet;

/// Where one was: for back and forward.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Spot {
    pub(super) selected: Option<Place>,
    pub(super) open: BTreeSet<Place>,
}

/// How many spots Back remembers.
const SPOTS: usize = 200;

impl Session {
    pub(super) fn navigate(&mut self, command: Command) -> Result<(), String> {
        self.need_document()?;
        if matches!(
            command,
            Command::GoToStep { .. } | Command::GoToEnd | Command::NextStep | Command::PreviousStep
        ) {
            self.not_comparing()?;
        }
        match command {
            Command::GoToStep { step } => self.go_to_step(Some(step)),
            Command::GoToEnd => self.go_to_step(None),
            Command::NextStep => {
                let (step, last) = (self.step(), self.need_document()?.step_count());
                self.go_to_step(if step + 1 >= last { None } else { Some(step + 1) });
            }
            Command::PreviousStep => self.go_to_step(Some(self.step().saturating_sub(1))),
            Command::SetView { view } => {
                self.view = view;
                self.start_picture();
            }
            Command::Toggle { target } => {
                let place = self.place(&target)?;
                self.toggle(place);
            }
            Command::OpenAll { target } => self.open_all(target)?,
            Command::CloseAll { target } => self.close_all(target)?,
            Command::Select { target: None } => {
                self.remember();
                self.selected = None;
                self.start_weights();
            }
            Command::Select { target: Some(target) } => {
                let place = self.place(&target)?;
                self.select(Some(place));
            }
            Command::NextChange => self.go_to_change(true)?,
            Command::PreviousChange => self.go_to_change(false)?,
            Command::NextHit => self.go_to_hit(true)?,
            Command::PreviousHit => self.go_to_hit(false)?,
            Command::Back => {
                let spot = self.back.pop().ok_or("there is nowhere to go back to")?;
                let here = self.spot();
                self.forward.push(here);
                self.go_to_spot(spot);
            }
            Command::Forward => {
                let spot = self.forward.pop().ok_or("there is nowhere to go forward to")?;
                let here = self.spot();
                self.back.push(here);
                self.go_to_spot(spot);
            }
            Command::FilterProvenance { pass } => {
                self.badges_of = pass;
                self.start_picture();
            }
            _ => {}
        }
        Ok(())
    }

    /// The place of a target in what is shown.
    pub fn place(&self, target: &Target) -> Result<Place, String> {
        let document = self.document.as_ref().ok_or("no model is open")?;
        let shown = self.shown.as_ref().map_or(&document.initial, |s| &s.state);
        names::place(shown, &document.initial, target)
    }

    /// Chooses a place and opens what hides it.
    pub fn select(&mut self, place: Option<Place>) {
        self.revision += 1;
        if self.selected == place {
            return;
        }
        self.remember();
        self.selected = place;
        self.reveal();
        self.start_weights();
    }

    /// Chooses a node, in the first place where it is seen.
    pub fn select_node(&mut self, node: NodeId) {
        if let Some(place) = self.place_of_node(node) {
            self.select(Some(place));
        }
    }

    /// The first place of a node.
    pub fn place_of_node(&self, node: NodeId) -> Option<Place> {
        let model = self.model_with(node)?;
        let graph = model.get_node(node)?.graph;
        Some(Place { calls: names::calls_to(model, graph), item: Item::Node(node) })
    }

    /// Opens a closed place, closes an open one.
    pub fn toggle(&mut self, place: Place) {
        self.revision += 1;
        self.remember();
        if !self.open.remove(&place) {
            self.open.insert(place.clone());
        }
        self.anchor = Some(place);
        self.start_picture();
    }

    fn model_with(&self, node: NodeId) -> Option<&Model> {
        let shown = self.shown.as_ref().map(|s| &s.state.model).filter(|m| m.get_node(node).is_some());
        shown.or_else(|| Some(&self.document.as_ref()?.initial.model).filter(|m| m.get_node(node).is_some()))
    }

    fn reveal(&mut self) {
        let (Some(place), Some(document)) = (self.selected.clone(), &self.document) else { return };
        let shown = self.shown.as_ref().map_or(&document.initial, |s| &s.state);
        let gone = matches!(place.item, Item::Node(n) if shown.model.get_node(n).is_none());
        let state = if gone { &document.initial } else { shown };
        let needed = names::enclosing(&state.model, &state.blocks, &place);
        let before = self.open.len();
        self.open.extend(needed);
        // A node that one of the two models lacks can only be seen where the other one is drawn too.
        let new = matches!(place.item, Item::Node(n) if document.initial.model.get_node(n).is_none());
        let switch = gone && self.view == ViewMode::After || new && self.view == ViewMode::Before;
        if switch {
            self.view = ViewMode::Difference;
        }
        if self.open.len() != before || switch {
            self.anchor = None;
            self.start_picture();
        }
    }

    fn go_to_step(&mut self, step: Option<u32>) {
        let last = self.document.as_ref().map_or(0, |d| d.step_count());
        self.step = step.filter(|s| *s < last);
        self.start_picture();
    }

    fn open_all(&mut self, target: Option<Target>) -> Result<(), String> {
        let place = target.map(|t| self.place(&t)).transpose()?.or_else(|| self.selected.clone());
        self.remember();
        let document = self.document.as_ref().ok_or("no model is open")?;
        let root = match &place {
            Some(Place { item: Item::Block(b), .. }) => Some(*b),
            Some(_) => None,
            None => document.initial.blocks.root(document.initial.model.main()),
        };
        let shown = self.shown.as_ref().map_or(&document.initial, |s| &s.state);
        if let Some(root) = root {
            self.open.extend(blocks_inside(shown, root));
        }
        if let Some(place) = place {
            self.open.insert(place.clone());
            self.anchor = Some(place);
        }
        self.start_picture();
        Ok(())
    }

    fn close_all(&mut self, target: Option<Target>) -> Result<(), String> {
        let place = target.map(|t| self.place(&t)).transpose()?.or_else(|| self.selected.clone());
        self.remember();
        let document = self.document.as_ref().ok_or("no model is open")?;
        match &place {
            Some(Place { item: Item::Block(b), .. }) => {
                let shown = self.shown.as_ref().map_or(&document.initial, |s| &s.state);
                let inside = blocks_inside(shown, *b);
                self.open.retain(|p| !inside.contains(p));
            }
            Some(other) => {
                self.open.remove(other);
            }
            None => self.open = self.first_look.clone(),
        }
        self.anchor = place;
        self.start_picture();
        Ok(())
    }

    fn go_to_change(&mut self, forward: bool) -> Result<(), String> {
        let stops = self.shown.as_ref().map(|s| s.stops.clone()).unwrap_or_default();
        if stops.is_empty() {
            return Err(match self.comparison.is_some() {
                true => "the two models have the same nodes".into(),
                false => "nothing differs from the model as opened".into(),
            });
        }
        let at = match &self.selected {
            Some(Place { item: Item::Node(n), .. }) => stops.iter().position(|s| s == n),
            _ => None,
        };
        let next = match (at, forward) {
            (None, true) => 0,
            (None, false) => stops.len() - 1,
            (Some(i), true) => (i + 1) % stops.len(),
            (Some(i), false) => (i + stops.len() - 1) % stops.len(),
        };
        self.select_node(stops[next]);
        Ok(())
    }

    fn go_to_hit(&mut self, forward: bool) -> Result<(), String> {
        let count = self.hits.list.len();
        if count == 0 {
            return Err("nothing was found".into());
        }
        let next = match (self.hit, forward) {
            (None, true) => 0,
            (None, false) => count - 1,
            (Some(i), true) => (i + 1) % count,
            (Some(i), false) => (i + count - 1) % count,
        };
        self.go_to_hit_number(next);
        Ok(())
    }

    /// Goes to a hit of the list.
    pub fn go_to_hit_number(&mut self, index: usize) {
        if let Some(hit) = self.hits.list.get(index) {
            let node = hit.node;
            self.hit = Some(index);
            self.select_node(node);
        }
    }

    fn spot(&self) -> Spot {
        Spot { selected: self.selected.clone(), open: self.open.clone() }
    }

    fn remember(&mut self) {
        let spot = self.spot();
        if self.back.last() != Some(&spot) {
            self.back.push(spot);
        }
        if self.back.len() > SPOTS {
            self.back.remove(0);
        }
        self.forward.clear();
    }

    fn go_to_spot(&mut self, spot: Spot) {
        let moved = self.open != spot.open;
        (self.selected, self.open) = (spot.selected, spot.open);
        self.anchor = None;
        if moved {
            self.start_picture();
        }
        self.start_weights();
    }
}
