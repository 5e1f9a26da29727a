//! A program of the user's as an engine: it gets files, runs the model wherever it likes (a board, another machine, a
//! runtime of its own), and leaves files.
//!
//! Called as `PROGRAM [ARGS] MODEL.onnx INPUTS.npz OUTPUTS.npz TIMES.json`. It writes the outputs by name (all values that
//! the model file gives out) and exits with 0; what it says on standard error is the message when it does not. It may
//! write TIMES.json: `{"seconds": s}` or `{"runs": [s, …]}` is the time of a run, else the time of the whole program is
//! taken; `"nodes": {"name": s, …}` are times of nodes by name.

mod process;
mod words;

use super::onnxruntime::unique_names;
use super::{
    Array, Description, Engine, EngineError, Inputs, NodeTime, Outcome, Prepared, Request, Settings,
};
use super::{Value, archive};
use crate::formats::onnx::copy;
use crate::ir::{Model, NodeId, Producer, Text, Type, ValueId};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// The engine.
#[derive(Clone, Debug)]
pub struct Command {
    program: PathBuf,
    arguments: Vec<String>,
    /// How long one run may take.
    pub time_limit: Duration,
}

impl Command {
    /// From the words after `cmd:`, quoted as a shell quotes; a path of a file that is there is the program as it is.
    pub fn new(words: &str) -> Result<Command, EngineError> {
        let fail = |why: &str| EngineError::Engine(format!("cmd:{words}: {why}"));
        let split = match Path::new(words).is_file() {
            true => vec![words.to_owned()],
            false => words::split(words).map_err(|why| fail(&why))?,
        };
        let mut split = split.into_iter();
        let program = split.next().filter(|program| !program.is_empty());
        let program = program.ok_or_else(|| fail("a program is missing: cmd:PROGRAM [ARGS]"))?;
        let found = process::find(&program)
            .ok_or_else(|| fail(&format!("there is no program '{program}' here or on PATH")))?;
        Ok(Command { program: found, arguments: split.collect(), time_limit: Duration::from_secs(600) })
    }
}

impl Engine for Command {
    fn describe(&self) -> Description {
        let program = self.program.display().to_string();
        let words: Vec<&str> =
            std::iter::once(&*program).chain(self.arguments.iter().map(String::as_str)).collect();
        let name = format!("cmd:{}", words.join(" "));
        Description { name, version: String::new(), place: Some(program) }
    }

    fn prepare(&self, model: &Model, settings: &Settings) -> Result<Box<dyn Prepared>, EngineError> {
        if settings.wide {
            return Err(EngineError::Model("only the embedded engine runs in float64 throughout".into()));
        }
        let folder = tempfile::Builder::new()
            .prefix("passlens-")
            .tempdir()
            .map_err(|error| EngineError::Engine(format!("a temporary folder cannot be made: {error}")))?;
        let mut ready = Ready {
            engine: self.clone(),
            model: model.clone(),
            threads: settings.threads,
            folder,
            names: unique_names(model),
            files: BTreeMap::new(),
        };
        ready.file(&[])?;
        Ok(Box::new(ready))
    }
}

/// A model in a file.
struct Ready {
    engine: Command,
    model: Model,
    threads: usize,
    folder: TempDir,
    names: BTreeMap<NodeId, Text>,
    /// Model files by the values that they give out beside the outputs.
    files: BTreeMap<Vec<ValueId>, PathBuf>,
}

/// What TIMES.json may say.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Times {
    seconds: Option<f64>,
    runs: Vec<f64>,
    nodes: BTreeMap<String, f64>,
}

impl Ready {
    fn file(&mut self, extra: &[ValueId]) -> Result<PathBuf, EngineError> {
        if let Some(path) = self.files.get(extra) {
            return Ok(path.clone());
        }
        let path = self.folder.path().join(format!("model{}.onnx", self.files.len()));
        let more: Vec<Text> = extra.iter().map(|value| self.model.value(*value).name.clone()).collect();
        copy::write(&self.model, &path, &self.names, &more)
            .map_err(|error| EngineError::Model(error.to_string()))?;
        self.files.insert(extra.to_vec(), path.clone());
        Ok(path)
    }

    /// Values of the main graph that are neither fed nor constant nor an output: the program has to give them out.
    fn extra(&self, asked: &[ValueId]) -> Result<Vec<ValueId>, EngineError> {
        let mut extra = Vec::new();
        for id in asked {
            match self.model.get_value(*id).filter(|value| value.graph == self.model.main()) {
                Some(value) if matches!(value.producer, Producer::Node { .. }) && !value.uses.is_output() => {
                    extra.push(*id);
                }
                Some(_) => {}
                None => return Err(EngineError::Model(format!("value {id} is not one of the main graph"))),
            }
        }
        extra.sort_unstable();
        extra.dedup();
        Ok(extra)
    }

    /// Nodes of the main graph by the name that they have in the file.
    fn nodes(&self, times: &BTreeMap<String, f64>) -> Vec<NodeTime> {
        let mut found = Vec::new();
        for (id, node) in self.model.nodes_of(self.model.main()) {
            let name = self.names.get(&id).unwrap_or(&node.name);
            if let Some(seconds) = times.get(&**name) {
                found.push(NodeTime { path: Default::default(), node: id, seconds: *seconds, calls: 1 });
            }
        }
        found
    }

    /// Outputs, and values that were asked for, from what the program wrote.
    fn outcome(
        &self,
        mut values: BTreeMap<Text, Value>,
        inputs: &Inputs,
        asked: &[ValueId],
    ) -> Result<Outcome, EngineError> {
        let missing = |name: &str| EngineError::Engine(format!("the program did not write the value {name}"));
        let mut outcome = Outcome::default();
        for id in asked {
            let value = self.model.value(*id);
            let written = values.get(&value.name).or_else(|| inputs.get(&value.name)).cloned();
            let constant = || value.constant.as_ref().and_then(|c| Array::try_from(c).ok()).map(Value::Array);
            let found = written.or_else(constant).ok_or_else(|| missing(&value.name))?;
            outcome.values.insert(*id, found);
        }
        for port in self.model.graph(self.model.main()).outputs.iter() {
            let value = self.model.value(port.value);
            let found = match (values.remove(&value.name), &value.ty) {
                (Some(found), _) => found,
                (None, Type::Optional(_)) => Value::Optional(None),
                (None, Type::Sequence(_)) => Value::Sequence(Default::default()),
                (None, _) => return Err(missing(&value.name)),
            };
            outcome.outputs.push((value.name.clone(), found));
        }
        Ok(outcome)
    }
}

impl Prepared for Ready {
    fn run(&mut self, inputs: &Inputs, request: &mut Request<'_>) -> Result<Outcome, EngineError> {
        if request.observer.is_some() {
            return Err(EngineError::Model("only the embedded engine lets values be observed".into()));
        }
        let extra = self.extra(request.values)?;
        let model = self.file(&extra)?;
        let at = |name: &str| self.folder.path().join(name);
        let (fed, given, times) = (at("inputs.npz"), at("outputs.npz"), at("times.json"));
        archive::write(&fed, inputs).map_err(|error| EngineError::Model(error.to_string()))?;
        for old in [&given, &times] {
            std::fs::remove_file(old).ok();
        }
        let program = &self.engine.program;
        let mut command = std::process::Command::new(program);
        command.args(&self.engine.arguments).args([&model, &fed, &given, &times]);
        command.env("PASSLENS_THREADS", self.threads.to_string());
        let wall = process::run(&mut command, program, self.engine.time_limit, request.cancel)?;
        if !given.is_file() {
            let what = "ended well, but wrote no outputs (the file that is its third word)";
            return Err(EngineError::Engine(format!("{} {what}", program.display())));
        }
        let ports = self.model.graph(self.model.main()).outputs.iter().map(|port| port.value);
        let wanted: Vec<(Text, Type)> = ports
            .chain(extra)
            .map(|id| self.model.value(id))
            .map(|value| (value.name.clone(), value.ty.clone()))
            .collect();
        let read = archive::read_values(&given, &wanted);
        let (values, _) = read.map_err(|error| EngineError::Engine(error.to_string()))?;
        let times = read_times(&times)?;
        let nodes = if request.times { self.nodes(&times.nodes) } else { Vec::new() };
        let seconds = times.seconds.or_else(|| median(times.runs)).unwrap_or(wall);
        Ok(Outcome { seconds, nodes, ..self.outcome(values, inputs, request.values)? })
    }

    fn resident_bytes(&self) -> u64 {
        self.files.values().filter_map(|path| std::fs::metadata(path).ok()).map(|m| m.len()).sum()
    }
}

fn read_times(path: &Path) -> Result<Times, EngineError> {
    let Ok(text) = std::fs::read(path) else { return Ok(Times::default()) };
    let wrong = |what: String| EngineError::Engine(format!("the times that the program wrote: {what}"));
    let times: Times = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
    let mut all = times.seconds.iter().chain(&times.runs).chain(times.nodes.values());
    match all.find(|s| !s.is_finite() || **s < 0.0) {
        Some(number) => Err(wrong(format!("{number} is no time"))),
        None => Ok(times),
    }
}

fn median(mut runs: Vec<f64>) -> Option<f64> {
    runs.sort_by(f64::total_cmp);
    let middle = runs.len() / 2;
    match runs.len() % 2 {
        1 => runs.get(middle).copied(),
        _ => Some((runs.get(middle.checked_sub(1)?)? + runs.get(middle)?) / 2.0),
    }
}
