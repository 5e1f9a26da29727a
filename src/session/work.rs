//! Doing commands: what is quick at once, the rest as jobs whose outcomes are taken in later.

use super::comparison::Comparison;
use super::document::{self, Document, Opened, Preview, ProblemRow, Source};
use super::jobs::{Handle, Kind};
use super::pictures::{PictureRequest, Scenes, Shown};
use super::query;
use super::search::{self, Hits};
use super::tables::RunLists;
use super::{Command, Session, ViewMode, WeightCard};
use crate::facts::statistics::Statistics;
use crate::facts::view;
use crate::formats::{self, SaveOptions, SaveReport, Severity};
use crate::ir::Model;
use crate::pipeline::{Config, Options, Run, Runner, State, StopReason};
use crate::scene::{Item, Place};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Result of a job.
pub(super) enum Outcome {
    Opened(Result<Box<Opened>, (String, String)>),
    Compared {
        seconds: f64,
        found: Result<Box<Comparison>, (String, String)>,
    },
    Ran {
        run: Arc<Run>,
        lists: RunLists,
        config: Box<Config>,
    },
    Pictured(Option<Box<Shown>>),
    Previewed {
        pass: String,
        found: Result<Preview, String>,
    },
    Searched(Hits),
    Weighed(Vec<WeightCard>),
    Saved(Result<SaveReport, String>),
    /// Told to end.
    Nothing,
}

/// What a failure of a command is called on its card; `None` where the answer alone is enough.
pub(super) fn title(command: &Command) -> Option<String> {
    match command {
        Command::Open { path } => Some(format!("Opening {}", path.display())),
        Command::Compare { path } => Some(format!("Comparing with {}", path.display())),
        Command::OpenSample { name } => Some(format!("Opening the sample '{name}'")),
        Command::LoadPipeline { path } => Some(format!("Reading the pipeline from {}", path.display())),
        Command::SavePipeline { path } => Some(format!("Writing the pipeline to {}", path.display())),
        Command::Save { path } => Some(format!("Saving {}", path.display())),
        _ => None,
    }
}

impl Session {
    pub(super) fn perform(&mut self, command: Command) -> Result<(), String> {
        if command.changes_pipeline() {
            return self.change_pipeline(command);
        }
        match command {
            Command::Open { path } => self.open_file(path),
            Command::OpenSample { name } => return self.open_sample(&name),
            Command::Close => self.close(),
            Command::Compare { path } => self.start_comparison(path)?,
            Command::CloseComparison => self.end_comparison()?,
            Command::SavePipeline { path } => {
                let text = self.need_document()?.config.to_toml();
                write_text(&path, &text)?;
                self.notice = Some(format!("Pipeline written to {}", path.display()));
            }
            Command::Undo => {
                if !self.need_document()?.undo() {
                    return Err("there is nothing to undo".into());
                }
                self.start_run();
            }
            Command::Redo => {
                if !self.need_document()?.redo() {
                    return Err("there is nothing to redo".into());
                }
                self.start_run();
            }
            Command::Preview { pass } => self.start_preview(pass)?,
            Command::Search { query } => self.start_search(query)?,
            Command::Save { path } => self.start_save(path)?,
            Command::Cancel => {
                let open_failed = self.jobs.is_running(Kind::Open);
                self.jobs.cancel_all();
                if !open_failed && self.document.as_ref().is_some_and(Document::is_stale) {
                    self.notice = Some("Cancelled; what is shown is the last complete run".into());
                }
            }
            Command::Dismiss { card } => self.cards.retain(|c| c.id != card),
            other => return self.navigate(other),
        }
        Ok(())
    }

    fn change_pipeline(&mut self, command: Command) -> Result<(), String> {
        let registry = self.registry.clone();
        let known = |pass: &String| Config::check_names(&registry, [pass]).map_err(|e| e.to_string());
        let document = self.need_document()?;
        let mut config = document.config.clone();
        let name = match command {
            Command::SetPass { pass, on } => {
                known(&pass)?;
                config.set_pass(&pass, on);
                format!("switch {} {pass}", if on { "on" } else { "off" })
            }
            Command::SetStage { stage, on } => {
                config.set_stage(&registry, stage, on);
                format!("switch stage {} {}", stage.name(), if on { "on" } else { "off" })
            }
            Command::MovePass { pass, up } => {
                config.order = registry.can_move(&config, &pass, up)?;
                format!("move {pass} {}", if up { "up" } else { "down" })
            }
            Command::SetRounds { rounds } => {
                config.rounds = rounds;
                format!("{rounds} rounds")
            }
            Command::SetAggressive { on } => {
                config.aggressive = on;
                format!("risky passes {}", if on { "on" } else { "off" })
            }
            Command::ExcludeSite { key, exclude } => {
                known(&key.pass.to_string())?;
                let name = format!("{} {key}", if exclude { "leave out" } else { "take in" });
                if exclude {
                    config.exclude.insert(key)
                } else {
                    config.exclude.remove(&key)
                };
                name
            }
            Command::ExcludeBlock { pass, block, exclude } => {
                known(&pass)?;
                let blocks = &mut config.passes.entry(pass.clone()).or_default().exclude_blocks;
                let name = format!("{} {pass} in {block}", if exclude { "leave out" } else { "take in" });
                if exclude {
                    blocks.insert(block)
                } else {
                    blocks.remove(&block)
                };
                name
            }
            Command::ResetPipeline => {
                config = Config::default();
                "reset the pipeline".to_owned()
            }
            Command::LoadPipeline { path } => {
                config = Config::load(&path, &registry).map_err(|e| e.to_string())?;
                format!("load {}", path.display())
            }
            _ => return Ok(()),
        };
        if document.change(name, config) {
            self.start_run();
        }
        Ok(())
    }

    fn open_file(&mut self, path: PathBuf) {
        let name =
            path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned());
        self.jobs.start(Kind::Open, format!("Opening {name}"), move |handle| {
            handle.say("reading".into());
            let clock = Instant::now();
            let bytes = std::fs::metadata(&path).map_or(0, |m| m.len());
            match document::read(&path) {
                Ok((model, problems)) => {
                    let opened = understand(name, Source::File(path), model, problems, bytes, handle, clock);
                    opened.map_or(Outcome::Nothing, |o| Outcome::Opened(Ok(Box::new(o))))
                }
                Err(text) => Outcome::Opened(Err((format!("Opening {}", path.display()), text))),
            }
        });
    }

    fn start_comparison(&mut self, path: PathBuf) -> Result<(), String> {
        let initial = self.need_document()?.initial.clone();
        let title = format!("Comparing with {}", path.display());
        self.jobs.start(Kind::Open, title.clone(), move |handle| {
            handle.say("reading and matching nodes".into());
            let clock = Instant::now();
            let found = Comparison::read(&initial, &path).map(Box::new).map_err(|text| (title, text));
            match handle.is_cancelled() {
                true => Outcome::Nothing,
                false => Outcome::Compared { seconds: clock.elapsed().as_secs_f64(), found },
            }
        });
        Ok(())
    }

    fn open_sample(&mut self, name: &str) -> Result<(), String> {
        let samples = crate::samples::all();
        let sample = samples.iter().find(|s| s.name == name).ok_or_else(|| {
            let hint = crate::pipeline::config::nearest(name, samples.iter().map(|s| s.name));
            format!("there is no sample '{name}'{hint}")
        })?;
        self.jobs.start(Kind::Open, format!("Opening {}", sample.title), move |handle| {
            let clock = Instant::now();
            let model = (sample.build)();
            let opened = understand(
                sample.title.into(),
                Source::Sample(sample.name),
                model,
                Vec::new(),
                0,
                handle,
                clock,
            );
            opened.map_or(Outcome::Nothing, |o| Outcome::Opened(Ok(Box::new(o))))
        });
        Ok(())
    }

    fn close(&mut self) {
        self.jobs.cancel_all();
        self.document = None;
        self.comparison = None;
        self.forget_view();
        self.notice = None;
    }

    pub(super) fn forget_view(&mut self) {
        self.open.clear();
        self.first_look.clear();
        self.selected = None;
        self.back.clear();
        self.forward.clear();
        self.step = None;
        self.shown = None;
        self.scenes = Arc::new(Mutex::new(Scenes::default()));
        self.hits = Hits::default();
        self.hit = None;
        self.badges_of = None;
        self.weights.clear();
        self.anchor = None;
    }

    fn start_run(&mut self) {
        let Some(document) = &self.document else { return };
        let (runner, config, registry) =
            (document.runner.clone(), document.config.clone(), self.registry.clone());
        self.jobs.start(Kind::Run, "Running passes", move |handle| {
            let mut runner = runner.lock().unwrap_or_else(|p| p.into_inner());
            let progress = |p: crate::pipeline::Progress| {
                handle.say(format!("round {}, {}, {} rewrites so far", p.round, p.pass, p.steps));
            };
            let mut progress = progress;
            let mut options = Options { stop_at: None, cancel: &handle.cancel, progress: &mut progress };
            let run = runner.run(&registry, &config, &mut options);
            match run.stop {
                StopReason::Cancelled => Outcome::Nothing,
                _ => Outcome::Ran { lists: RunLists::of(&run), run: Arc::new(run), config: Box::new(config) },
            }
        });
    }

    /// Starts making the pictures of what is looked at now.
    pub(super) fn start_picture(&mut self) {
        let Some(document) = &self.document else { return };
        let step = self.step();
        let known = self.shown.clone().filter(|s| s.step == step && self.shown_run_is_current);
        let request = PictureRequest {
            scenes: self.scenes.clone(),
            initial: document.initial.clone(),
            run: document.run().cloned(),
            changes: document.lists.changes.clone(),
            comparison: self.comparison.clone(),
            step,
            view: self.view,
            open: self.open.clone(),
            hits: self.hits.list.iter().map(|h| h.node).collect(),
            badges_of: self.badges_of.clone(),
            known,
        };
        self.jobs.start(Kind::Picture, "Drawing", move |handle| {
            Outcome::Pictured(request.make(handle).map(Box::new))
        });
    }

    fn start_preview(&mut self, pass: String) -> Result<(), String> {
        let found = self.registry.get(&pass).cloned();
        let found = found.ok_or_else(|| {
            Config::check_names(&self.registry, [&pass]).map_or_else(|e| e.to_string(), |()| pass.clone())
        })?;
        let document = self.need_document()?;
        let (run, initial) = (document.run().cloned(), document.initial.clone());
        self.jobs.start(Kind::Preview, format!("Looking for sites of {pass}"), move |handle| {
            let state = run.map_or_else(|| (*initial).clone(), |r| r.last_state());
            let found = Runner::preview(&state, &*found, &handle.cancel).map_err(|f| f.message);
            Outcome::Previewed { pass, found }
        });
        Ok(())
    }

    fn start_search(&mut self, query: String) -> Result<(), String> {
        self.need_document()?;
        if let Err(problem) = query::words(&query) {
            // Said where it is typed, and to whoever sent it; what was found before no longer counts.
            self.jobs.cancel(Kind::Search);
            self.take(Outcome::Searched(Hits { query, problem: Some(problem.clone()), ..Hits::default() }));
            return Err(problem);
        }
        let passes = self.passes_by_step();
        let state = self.shown.as_ref().map(|s| s.state.clone());
        let initial = self.document.as_ref().map(|d| d.initial.clone());
        let Some(state) = state.or(initial) else { return Ok(()) };
        self.jobs.start(Kind::Search, "Searching", move |handle| {
            Outcome::Searched(search::search(&state, &passes, &query, &handle.cancel))
        });
        Ok(())
    }

    fn start_save(&mut self, path: PathBuf) -> Result<(), String> {
        self.not_comparing()?;
        let step = self.step();
        let source = self.path().cloned();
        let document = self.need_document()?;
        let (run, initial) = (document.run().cloned(), document.initial.clone());
        if let Some(problem) = document.problems.iter().find(|p| p.severity == Severity::Error) {
            return Err(format!("it cannot be saved: {}", problem.text));
        }
        self.jobs.start(Kind::Save, format!("Saving {}", path.display()), move |handle| {
            handle.say("writing and reading back".into());
            let state = run.map_or_else(|| (*initial).clone(), |r| r.state_at(step));
            let options = SaveOptions { unique_node_names: true, source, ..SaveOptions::default() };
            Outcome::Saved(formats::save(&state.model, &path, &options).map_err(|e| e.to_string()))
        });
        Ok(())
    }

    /// Starts the statistics of the chosen node's constants.
    pub(super) fn start_weights(&mut self) {
        self.weights.clear();
        self.jobs.cancel(Kind::Statistics);
        let (Some(document), Some(shown)) = (&self.document, &self.shown) else { return };
        let Some(Place { item: Item::Node(node), .. }) = self.selected else { return };
        let (initial, state) = (document.initial.clone(), shown.state.clone());
        self.jobs.start(Kind::Statistics, "Looking at weights", move |handle| {
            let at = |s: &State| s.model.get_node(node).cloned();
            let Some(now) = at(&state).or_else(|| at(&initial)) else { return Outcome::Nothing };
            let model = if state.model.get_node(node).is_some() { &state.model } else { &initial.model };
            let old = at(&initial);
            let mut cards = Vec::new();
            for (input, value) in now.inputs.iter().enumerate() {
                if handle.is_cancelled() {
                    return Outcome::Nothing;
                }
                let Some(value) = *value else { continue };
                let Some(tensor) = view::constant(model, value) else { continue };
                let before = old.as_ref().and_then(|n| view::constant(&initial.model, n.input(input)?));
                let before = before.filter(|b| !b.same_content(&tensor));
                cards.push(WeightCard {
                    input,
                    value: Some(value),
                    name: model.value(value).name.to_string(),
                    ty: tensor.ty().to_string(),
                    bytes: tensor.byte_count(),
                    now: Statistics::of(&tensor),
                    before: before.and_then(|b| Statistics::of(&b)),
                });
            }
            Outcome::Weighed(cards)
        });
    }

    pub(super) fn take(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Opened(Ok(opened)) => {
                self.close();
                self.view = ViewMode::default();
                let initial = opened.runner.initial();
                self.first_look = super::names::first_look(&initial.model, &initial.blocks);
                self.open = self.first_look.clone();
                self.notice = Some(format!("{} opened in {:.2} s", opened.name, opened.seconds));
                self.document = Some(Document::new(*opened));
                self.shown_run_is_current = true;
                // The model is looked at before any pass has run; the run follows on its own.
                self.start_picture();
                self.start_run();
            }
            Outcome::Opened(Err((title, text))) | Outcome::Compared { found: Err((title, text)), .. } => {
                self.card(title, text);
            }
            Outcome::Compared { found: Ok(comparison), seconds } => {
                self.begin_comparison(*comparison, seconds);
            }
            Outcome::Ran { run, lists, config } => {
                for failure in run.passes.iter().flat_map(|p| p.failures.iter().map(move |f| (&p.pass, f))) {
                    let (pass, failure) = failure;
                    let text = failure
                        .key
                        .as_ref()
                        .map_or_else(|| failure.message.clone(), |k| format!("{k}: {}", failure.message));
                    let row = ProblemRow {
                        severity: Severity::Warning,
                        text: format!("{pass} was rolled back at one site: {text}"),
                        node: None,
                        value: None,
                    };
                    if let Some(d) = &mut self.document
                        && !d.problems.contains(&row)
                    {
                        d.problems.push(row);
                    }
                }
                if let Some(document) = &mut self.document {
                    document.set_run(run, lists, *config);
                }
                self.shown_run_is_current = false;
                self.start_picture();
                if !self.hits.query.is_empty() {
                    let query = self.hits.query.clone();
                    // The document is there: its run just ended.
                    let _ = self.start_search(query);
                }
            }
            Outcome::Pictured(Some(shown)) => {
                let moved = self.shown.as_ref().is_none_or(|s| !Arc::ptr_eq(&s.state, &shown.state));
                self.shown = Some(*shown);
                self.shown_run_is_current = true;
                if moved {
                    self.start_weights();
                }
            }
            Outcome::Previewed { pass, found } => match found {
                Ok(found) => {
                    if let Some(d) = &mut self.document {
                        d.previews.insert(pass, Arc::new(found));
                    }
                }
                Err(text) => self.card(format!("Looking for sites of {pass}"), text),
            },
            Outcome::Searched(hits) => {
                let fresh = hits.query != self.hits.query;
                self.hits = hits;
                if fresh {
                    self.hit = None;
                }
                self.start_picture();
            }
            Outcome::Weighed(cards) => self.weights = cards,
            Outcome::Saved(Ok(report)) => {
                let renamed = match report.renamed.len() {
                    0 => String::new(),
                    n => format!("; {n} nodes were given unique names"),
                };
                let data = report
                    .data_file
                    .as_ref()
                    .map(|(p, _)| format!(" with {}", p.display()))
                    .unwrap_or_default();
                self.notice = Some(format!("Saved {}{data}{renamed}", report.path.display()));
            }
            Outcome::Saved(Err(text)) => self.card("Saving".into(), text),
            Outcome::Pictured(None) | Outcome::Nothing => {}
        }
    }
}

fn understand(
    name: String,
    source: Source,
    model: Model,
    mut problems: Vec<ProblemRow>,
    bytes: u64,
    handle: &Handle,
    clock: Instant,
) -> Option<Opened> {
    let nodes = model.node_count();
    handle.say(format!("{nodes} nodes read, inferring shapes and blocks"));
    if handle.is_cancelled() {
        return None;
    }
    let state = State::new(model);
    problems.extend(document::fact_problems(&state));
    let runner = Runner::from_state(state);
    Some(Opened { name, source, bytes, problems, nodes, runner, seconds: clock.elapsed().as_secs_f64() })
}

fn write_text(path: &Path, text: &str) -> Result<(), String> {
    let written = formats::file::replace(path, text.as_bytes());
    written.map_err(|error| format!("{}: cannot be written: {error}", path.display()))
}

/// Places of everything that can be opened inside some blocks.
pub(super) fn blocks_inside(state: &State, root: crate::blocks::BlockId) -> BTreeSet<Place> {
    let mut open = BTreeSet::new();
    let mut todo = vec![root];
    while let Some(block) = todo.pop() {
        let Some(b) = state.blocks.get(block) else { continue };
        if b.parent.is_some() {
            open.insert(Place::of(Item::Block(block)));
        }
        for child in &b.children {
            if let crate::blocks::Child::Block(inner) = child {
                todo.push(*inner);
            }
        }
    }
    open
}
