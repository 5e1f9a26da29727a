//! The open model: where it came from, the pipeline's state, what the last run did, and undo.

use super::changes::Change;
use super::pipeline_rows::{PassRow, SiteRow};
use super::tables::{LogRow, RunLists, StepRow};
use crate::blocks::BlockId;
use crate::formats::{self, Severity};
use crate::ir::{Model, NodeId, ValueId};
use crate::passes::Blocked;
use crate::pipeline::{Config, ListedSite, Registry, Run, Runner, State};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Something that is wrong or worth knowing, in the list of problems.
#[derive(Clone, PartialEq, Debug)]
pub struct ProblemRow {
    pub severity: Severity,
    pub text: String,
    pub node: Option<NodeId>,
    pub value: Option<ValueId>,
}

/// Where a document came from.
#[derive(Clone, PartialEq, Debug)]
pub enum Source {
    File(PathBuf),
    Sample(&'static str),
}

/// A model that was read, with everything that is known of it, ready to be shown.
pub struct Opened {
    pub name: String,
    pub source: Source,
    /// Size of the file; 0 for a sample.
    pub bytes: u64,
    pub problems: Vec<ProblemRow>,
    /// Number of nodes, in bodies and functions too.
    pub nodes: usize,
    pub runner: Runner,
    pub seconds: f64,
}

/// What a pass that is off would find: sites and near misses.
pub(super) type Preview = (Vec<ListedSite>, Vec<Blocked>);

/// The open model.
pub struct Document {
    pub name: String,
    pub source: Source,
    pub bytes: u64,
    pub problems: Vec<ProblemRow>,
    /// Number of nodes as imported, in bodies and functions too.
    pub nodes: usize,
    /// As imported.
    pub initial: Arc<State>,
    pub(super) runner: Arc<Mutex<Runner>>,
    pub(super) config: Config,
    pub(super) undo: Vec<(String, Config)>,
    pub(super) redo: Vec<(String, Config)>,
    /// The last complete run, with the configuration that it ran with.
    pub(super) run: Option<(Arc<Run>, Config)>,
    pub(super) previews: BTreeMap<String, Arc<Preview>>,
    pub(super) lists: RunLists,
}

/// Reads a model file of any kind that is known: ONNX, JSON graph, text form.
pub fn read(path: &Path) -> Result<(Model, Vec<ProblemRow>), String> {
    let imported = formats::open(path).map_err(|e| e.to_string())?;
    let rows = imported.problems.into_iter().map(|p| ProblemRow {
        severity: p.severity,
        text: p.text,
        node: p.node,
        value: p.value,
    });
    Ok((imported.model, rows.collect()))
}

/// What facts found to be false in the file.
pub fn fact_problems(state: &State) -> Vec<ProblemRow> {
    let row = |p: &crate::facts::Problem| ProblemRow {
        severity: Severity::Warning,
        text: p.message.to_string(),
        node: None,
        value: Some(p.value),
    };
    state.facts.problems().iter().map(row).collect()
}

impl Document {
    /// A document that was just opened; nothing has run.
    pub fn new(opened: Opened) -> Document {
        let initial = Arc::new(opened.runner.initial().clone());
        Document {
            name: opened.name,
            source: opened.source,
            bytes: opened.bytes,
            problems: opened.problems,
            nodes: opened.nodes,
            initial,
            runner: Arc::new(Mutex::new(opened.runner)),
            config: Config::default(),
            undo: Vec::new(),
            redo: Vec::new(),
            run: None,
            previews: BTreeMap::new(),
            lists: RunLists::default(),
        }
    }

    /// The pipeline's state.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The last complete run.
    pub fn run(&self) -> Option<&Arc<Run>> {
        self.run.as_ref().map(|(run, _)| run)
    }

    /// True while the last run is not of the pipeline as it stands now.
    pub fn is_stale(&self) -> bool {
        self.run.as_ref().is_none_or(|(_, config)| *config != self.config)
    }

    /// Number of steps of the last run.
    pub fn step_count(&self) -> u32 {
        self.run().map_or(0, |r| r.steps.len() as u32)
    }

    /// All steps of the last run, a row each.
    pub fn changes(&self) -> &Arc<[Change]> {
        &self.lists.changes
    }

    /// The same steps as rows of a table.
    pub fn step_rows(&self) -> &Arc<[StepRow]> {
        &self.lists.steps
    }

    /// The log of the last run.
    pub fn log_rows(&self) -> &Arc<[LogRow]> {
        &self.lists.log
    }

    /// What Undo would take back.
    pub fn undo_name(&self) -> Option<&str> {
        self.undo.last().map(|(name, _)| name.as_str())
    }

    /// What Redo would make again.
    pub fn redo_name(&self) -> Option<&str> {
        self.redo.last().map(|(name, _)| name.as_str())
    }

    /// The passes with what the last run did, in order of run.
    pub fn pass_rows(&self, registry: &Registry) -> Vec<PassRow> {
        super::pipeline_rows::pass_rows(self, registry)
    }

    /// The sites of a pass: applied, left alone, failed, or (while it is off) found by a preview.
    pub fn site_rows(&self, pass: &str) -> Vec<SiteRow> {
        super::pipeline_rows::site_rows(self, pass)
    }

    /// Path of the block of a node, empty at the top.
    pub fn block_path(&self, state: &State, node: NodeId) -> String {
        let block: Option<BlockId> = state.blocks.block_of(node);
        block.map(|b| state.blocks.path(b)).unwrap_or_default()
    }

    pub(super) fn set_run(&mut self, run: Arc<Run>, lists: RunLists, config: Config) {
        self.lists = lists;
        self.run = Some((run, config));
        self.previews.clear();
    }

    /// Changes the pipeline, for Undo to take back.
    pub(super) fn change(&mut self, name: String, config: Config) -> bool {
        if config == self.config {
            return false;
        }
        let old = std::mem::replace(&mut self.config, config);
        self.undo.push((name, old));
        self.redo.clear();
        true
    }

    pub(super) fn undo(&mut self) -> bool {
        let Some((name, config)) = self.undo.pop() else { return false };
        let now = std::mem::replace(&mut self.config, config);
        self.redo.push((name, now));
        true
    }

    pub(super) fn redo(&mut self) -> bool {
        let Some((name, config)) = self.redo.pop() else { return false };
        let now = std::mem::replace(&mut self.config, config);
        self.undo.push((name, now));
        true
    }
}
