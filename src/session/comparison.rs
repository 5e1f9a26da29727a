//! A second file beside the open one: the open model, as it was opened, is "before", the second one "after".

use super::document::{self, ProblemRow};
use super::navigation::Spot;
use super::{Session, ViewMode, names};
use crate::diff::{self, Diff, Mark};
use crate::ir::Model;
use crate::pipeline::State;
use crate::scene::{Item, Place};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What cannot be done while two files are compared.
const FIRST_CLOSE: &str = "two files are compared: close the comparison first";

/// A second model, put beside a first one.
pub struct Comparison {
    /// File name of the second one.
    pub name: String,
    pub path: PathBuf,
    /// The second model with the first one's ids wherever the two have something in common; one tree of blocks for both.
    pub state: Arc<State>,
    pub diff: Diff,
    /// What is wrong with the second file.
    pub problems: Vec<ProblemRow>,
}

impl Comparison {
    /// Reads a second file and puts it beside a model.
    ///
    /// # Errors
    /// Why the file cannot be read.
    pub fn read(initial: &State, path: &Path) -> Result<Comparison, String> {
        let (model, problems) = document::read(path)?;
        let name =
            path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned());
        let own =
            |p: ProblemRow| ProblemRow { text: format!("{name}: {}", p.text), node: None, value: None, ..p };
        let problems = problems.into_iter().map(own).collect();
        let (state, diff) = Comparison::beside(initial, &model);
        Ok(Comparison { name, path: path.to_path_buf(), state: Arc::new(state), diff, problems })
    }

    /// A second model as a state beside a first one, and in what the two differ.
    pub fn beside(initial: &State, model: &Model) -> (State, Diff) {
        let aligned = diff::align(&initial.model, model);
        (initial.beside(aligned.model), aligned.diff)
    }

    /// What differs, in a few words: `2 added, 1 removed, 3 changed, 0 rewired`, and what is not about nodes.
    pub fn summary(&self) -> String {
        let nodes = [
            (Mark::Added, "added"),
            (Mark::Removed, "removed"),
            (Mark::Changed, "changed"),
            (Mark::Rewired, "rewired"),
        ];
        let mut parts: Vec<String> = nodes
            .iter()
            .filter(|(mark, _)| self.diff.count(*mark) > 0)
            .map(|(mark, word)| format!("{} {word}", self.diff.count(*mark)))
            .collect();
        if !self.diff.renamed.is_empty() {
            parts.push(format!("{} with another name", self.diff.renamed.len()));
        }
        match parts.is_empty() {
            true => "no node differs".to_owned(),
            false => parts.join(", "),
        }
    }
}

/// What is open at first in a picture of both: what is of the first model alone, and of the second what only that has.
pub fn first_look(initial: &State, beside: &State) -> BTreeSet<Place> {
    let mut open = names::first_look(&initial.model, &initial.blocks);
    let only_second = |place: &Place| match place.item {
        Item::Block(block) => initial.blocks.get(block).is_none(),
        Item::Node(node) => initial.model.get_node(node).is_none(),
        Item::Input(_) | Item::Output(..) => false,
    };
    open.extend(names::first_look(&beside.model, &beside.blocks).into_iter().filter(only_second));
    open
}

/// How the open model was looked at before a comparison.
#[derive(Default)]
pub(super) struct Left {
    view: ViewMode,
    step: Option<u32>,
    spot: Spot,
}

impl Session {
    /// The second file, while two are compared.
    pub fn comparison(&self) -> Option<&Arc<Comparison>> {
        self.comparison.as_ref()
    }

    /// An error while two files are compared.
    pub(super) fn not_comparing(&self) -> Result<(), String> {
        if self.comparison.is_some() { Err(FIRST_CLOSE.to_owned()) } else { Ok(()) }
    }

    /// Shows the open model beside another one.
    pub(super) fn begin_comparison(&mut self, comparison: Comparison, seconds: f64) {
        if self.comparison.is_none() {
            let spot = Spot { selected: self.selected.clone(), open: self.open.clone() };
            self.left = Left { view: self.view, step: self.step, spot };
        }
        // Ids of what the pipeline made mean other things here, so what was chosen and open is not taken along.
        let known = std::mem::take(&mut self.first_look);
        self.forget_view();
        self.first_look = known;
        if let Some(document) = &self.document {
            self.open = first_look(&document.initial, &comparison.state);
        }
        self.view = ViewMode::Difference;
        self.notice = Some(format!("Compared with {} in {seconds:.2} s", comparison.name));
        self.comparison = Some(Arc::new(comparison));
        self.start_picture();
    }

    /// Back to the open model alone, looked at as it was.
    pub(super) fn end_comparison(&mut self) -> Result<(), String> {
        if self.comparison.take().is_none() {
            return Err("no second file is open".to_owned());
        }
        let first_look = std::mem::take(&mut self.first_look);
        self.forget_view();
        let left = std::mem::take(&mut self.left);
        (self.view, self.step, self.first_look) = (left.view, left.step, first_look);
        (self.selected, self.open) = (left.spot.selected, left.spot.open);
        self.notice = None;
        self.start_picture();
        Ok(())
    }
}
