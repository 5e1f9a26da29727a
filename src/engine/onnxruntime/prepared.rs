//! A model prepared in ONNX Runtime: its file, its session in a child, runs and profiles.

use super::child::Child;
use super::message::{Answer, Call, Form, Named, Options};
use super::names::{self, Places};
use super::profile::{self, Attribution};
use super::{OnnxRuntime, folder, values};
use crate::engine::array::Value;
use crate::engine::fault::{EngineError, Fault};
use crate::engine::{Array, Inputs, Outcome, Prepared, Request, Settings};
use crate::formats;
use crate::formats::onnx::copy;
use crate::ir::{ElementType, Model, NodeId, Producer, Text, Type, ValueId};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tempfile::TempDir;

/// How long a child may take to forget a session.
const CLOSE_SECONDS: u64 = 5;

/// OrtErrorCode of what ONNX Runtime has no code for.
const NOT_IMPLEMENTED: i32 = 9;

/// Values of an answer, their bytes, seconds of each run, and the profile.
type Ran = (Vec<Named>, Vec<u8>, Vec<f64>, Option<PathBuf>);

/// A model ready to run in ONNX Runtime.
pub struct Ready {
    engine: OnnxRuntime,
    model: Model,
    settings: Settings,
    options: Options,
    folder: TempDir,
    names: BTreeMap<NodeId, Text>,
    inputs: Vec<(Text, ValueId)>,
    outputs: Vec<Text>,
    child: Option<Child>,
    /// Sessions of the child, by the values that they give beside the outputs.
    sessions: BTreeMap<Vec<ValueId>, u32>,
    /// Model files, by the same.
    files: BTreeMap<Vec<ValueId>, PathBuf>,
    resident: u64,
    /// Made when a profile is read for the first time.
    places: Option<Places>,
    attribution: Option<Attribution>,
}

impl Ready {
    /// Writes the model and loads it.
    pub fn new(engine: &OnnxRuntime, model: &Model, settings: &Settings) -> Result<Ready, EngineError> {
        if settings.wide {
            return Err(EngineError::Model("only the embedded engine runs in float64 throughout".into()));
        }
        let name = |value: ValueId| model.value(value).name.clone();
        let main = model.graph(model.main());
        let fed = main.inputs.iter().filter(|port| !model.is_constant_input(port.value));
        let mut ready = Ready {
            inputs: fed.map(|port| (name(port.value), port.value)).collect(),
            outputs: main.outputs.iter().map(|port| name(port.value)).collect(),
            names: names::all(model),
            options: engine.options(settings, engine.choice().level),
            engine: engine.clone(),
            model: model.clone(),
            settings: settings.clone(),
            folder: folder()?,
            child: None,
            sessions: BTreeMap::new(),
            files: BTreeMap::new(),
            resident: 0,
            places: None,
            attribution: None,
        };
        let never = AtomicBool::new(false);
        ready.session(&[], &never)?;
        Ok(ready)
    }

    /// Several runs of one session that takes times, after one that does not count. A profile ends with its session,
    /// so that many runs at once are much cheaper than one at a time.
    fn profile(
        &mut self,
        inputs: &Inputs,
        request: &mut Request<'_>,
        runs: u32,
    ) -> Result<Vec<Outcome>, EngineError> {
        let (extra, given) = self.wanted(request.values, inputs)?;
        let (fed, body) = self.feed(inputs)?;
        let (model, options) = (self.file(&extra)?, self.options.clone());
        let outputs = self.output_names(&extra);
        let call = Call::Profile { model, options, runs, inputs: fed, outputs };
        let (named, bytes, seconds, profile) = self.ran(&call, &body, request.cancel)?;
        let place = profile.ok_or_else(|| EngineError::Engine("ONNX Runtime wrote no profile".into()))?;
        let text =
            std::fs::read(&place).map_err(|error| EngineError::Engine(format!("the profile: {error}")))?;
        std::fs::remove_file(&place).ok();
        let mut profiled = profile::runs(&text).map_err(EngineError::Engine)?;
        if profiled.len() != seconds.len() + 1 {
            let count = profiled.len();
            return Err(EngineError::Engine(format!(
                "the profile has {count} runs, not {}",
                seconds.len() + 1
            )));
        }
        // Only the first run allocates value by value; later ones take one block for all.
        let peak_bytes = profiled.remove(0).peak_bytes;
        let nameless = profile::nameless(&profiled);
        if !nameless.is_empty() && self.attribution.is_none() {
            let as_run = self.as_run(request.cancel)?;
            self.attribution = Some(Attribution::of(&self.model, &as_run, &nameless));
        }
        let places = self.places.get_or_insert_with(|| Places::of(&self.model));
        let nothing = Attribution::default();
        let attribution = self.attribution.as_ref().unwrap_or(&nothing);
        let times: Vec<_> = profiled.iter().map(|run| attribution.times(run, places)).collect();
        let outcome = self.outcome(named, bytes, &extra, given, request.values)?;
        let each = seconds.into_iter().zip(times);
        let each = each.map(|(seconds, nodes)| Outcome { seconds, nodes, peak_bytes, ..outcome.clone() });
        Ok(each.collect())
    }

    /// The graph as it runs, with our names.
    fn as_run(&mut self, cancel: &AtomicBool) -> Result<Model, EngineError> {
        let to = self.folder.path().join("as-run.onnx");
        let call = Call::Optimize { model: self.file(&[])?, options: self.options.clone(), to: to.clone() };
        match self.ask(&call, &[], cancel)?.0 {
            Answer::Failed { code, message } => Err(failed(&self.model, code, &message)),
            _ => {
                let opened = formats::open(&to).map_err(|error| EngineError::Engine(error.to_string()))?;
                std::fs::remove_file(&to).ok();
                Ok(opened.model)
            }
        }
    }

    /// The model file that gives out further values.
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

    /// A session that gives out further values, in a child that may have to be started first.
    fn session(&mut self, extra: &[ValueId], cancel: &AtomicBool) -> Result<u32, EngineError> {
        if self.child.is_none() {
            self.sessions.clear();
            self.child = Some(self.engine.child(self.engine.memory_limit(&self.settings))?);
        }
        if let Some(session) = self.sessions.get(extra) {
            return Ok(*session);
        }
        let before = self.child.as_ref().and_then(Child::resident_bytes);
        let call = Call::Open { model: self.file(extra)?, options: self.options.clone() };
        let session = match self.ask(&call, &[], cancel)?.0 {
            Answer::Session { session } => session,
            Answer::Failed { code, message } => return Err(failed(&self.model, code, &message)),
            _ => return Err(unexpected()),
        };
        if extra.is_empty() {
            let after = self.child.as_ref().and_then(Child::resident_bytes);
            let grown = before.zip(after).map(|(before, after)| after.saturating_sub(before));
            self.resident = grown.unwrap_or(0);
        }
        self.sessions.insert(extra.to_vec(), session);
        Ok(session)
    }

    fn ask(
        &mut self,
        call: &Call,
        body: &[Bytes],
        cancel: &AtomicBool,
    ) -> Result<(Answer, Vec<u8>), EngineError> {
        let limit = self.engine.choice().time_limit;
        let Some(child) = &mut self.child else { return Err(unexpected()) };
        let parts: Vec<&[u8]> = body.iter().map(|part| &part[..]).collect();
        let answer = child.ask(call, &parts, limit, cancel);
        if answer.is_err() {
            // That process is gone; the next run starts another.
            self.child = None;
            self.sessions.clear();
        }
        answer
    }

    fn ran(&mut self, call: &Call, body: &[Bytes], cancel: &AtomicBool) -> Result<Ran, EngineError> {
        match self.ask(call, body, cancel)? {
            (Answer::Ran { outputs, seconds, profile }, bytes) => Ok((outputs, bytes, seconds, profile)),
            (Answer::Failed { code, message }, _) => Err(failed(&self.model, code, &message)),
            _ => Err(unexpected()),
        }
    }

    /// Inputs as messages have them.
    fn feed(&self, inputs: &Inputs) -> Result<(Vec<Named>, Vec<Bytes>), EngineError> {
        if let Some(name) = inputs.keys().find(|name| !self.inputs.iter().any(|(known, _)| known == *name)) {
            let known: Vec<&str> = self.inputs.iter().map(|(name, _)| &**name).collect();
            let message = format!("the model has no input of that name; it has {}", known.join(", "));
            return Err(EngineError::Input { name: name.clone(), message });
        }
        let mut named = Vec::new();
        let mut body = Vec::new();
        for (name, id) in &self.inputs {
            let fail = |message: String| EngineError::Input { name: name.clone(), message };
            let value = self.model.value(*id);
            match inputs.get(name) {
                Some(given) => {
                    if let (Some(wanted), Value::Array(array)) = (value.ty.element(), given)
                        && wanted != array.element()
                        && wanted != ElementType::UNDEFINED
                    {
                        return Err(fail(format!("it is {wanted}, and {} was given", array.element())));
                    }
                    let form = values::form(given, &mut body).map_err(|fault| fail(fault.to_string()))?;
                    named.push(Named { name: name.to_string(), form });
                }
                None if value.constant.is_some() => {}
                None if matches!(value.ty, Type::Optional(_)) => {
                    named.push(Named { name: name.to_string(), form: Form::Absent });
                }
                None => return Err(fail("no value is given".into())),
            }
        }
        Ok((named, body))
    }

    /// Of the values that are asked for: those that the runtime has to give out, and those that are known without it.
    fn wanted(
        &self,
        asked: &[ValueId],
        inputs: &Inputs,
    ) -> Result<(Vec<ValueId>, BTreeMap<ValueId, Value>), EngineError> {
        let mut extra = Vec::new();
        let mut given = BTreeMap::new();
        for id in asked {
            let value = self.model.get_value(*id).filter(|v| v.graph == self.model.main());
            let value = value.ok_or_else(|| {
                let name = self.model.get_value(*id).map_or_else(|| id.to_string(), |v| v.name.to_string());
                EngineError::Model(format!("value {name} is not one of the main graph"))
            })?;
            let fed =
                matches!(value.producer, Producer::Input { .. }).then(|| inputs.get(&value.name)).flatten();
            match (fed, &value.constant) {
                (Some(fed), _) => drop(given.insert(*id, fed.clone())),
                (None, Some(constant)) => {
                    let array = Array::try_from(constant).map_err(|f| EngineError::Model(f.to_string()))?;
                    given.insert(*id, array.into());
                }
                (None, None) if self.outputs.contains(&value.name) => {}
                (None, None) => extra.push(*id),
            }
        }
        extra.sort_unstable();
        extra.dedup();
        Ok((extra, given))
    }

    fn output_names(&self, extra: &[ValueId]) -> Vec<String> {
        let more = extra.iter().map(|value| self.model.value(*value).name.to_string());
        self.outputs.iter().map(|name| name.to_string()).chain(more).collect()
    }

    /// Outputs and values of an answer.
    fn outcome(
        &self,
        named: Vec<Named>,
        bytes: Vec<u8>,
        extra: &[ValueId],
        mut values: BTreeMap<ValueId, Value>,
        asked: &[ValueId],
    ) -> Result<Outcome, EngineError> {
        let all = values::values(named, bytes).map_err(|fault| EngineError::Engine(fault.to_string()))?;
        let mut all = all.into_iter().map(|(_, value)| value);
        let outputs: Vec<(Text, Value)> = self
            .outputs
            .iter()
            .cloned()
            .zip(all.by_ref())
            .map(|(name, v)| (name.clone(), self.typed(&name, v)))
            .collect();
        values.extend(extra.iter().copied().zip(all));
        for id in asked {
            let name = &self.model.value(*id).name;
            if let Some((_, value)) = outputs.iter().find(|(output, _)| output == name) {
                values.entry(*id).or_insert_with(|| value.clone());
            }
        }
        Ok(Outcome { outputs, values, ..Outcome::default() })
    }

    /// A value of an optional output is an optional; messages do not tell the two apart.
    fn typed(&self, name: &str, value: Value) -> Value {
        let declared = self.model.find_value(self.model.main(), name).map(|v| &self.model.value(v).ty);
        match (declared, value) {
            (_, Value::Optional(inner)) => Value::Optional(inner),
            (Some(Type::Optional(_)), value) => Value::Optional(Some(Arc::new(value))),
            (_, value) => value,
        }
    }
}

impl Prepared for Ready {
    fn run(&mut self, inputs: &Inputs, request: &mut Request<'_>) -> Result<Outcome, EngineError> {
        if request.observer.is_some() {
            return Err(EngineError::Model("only the embedded engine lets values be observed".into()));
        }
        let (extra, given) = self.wanted(request.values, inputs)?;
        let session = self.session(&extra, request.cancel)?;
        if request.times {
            let mut one = self.profile(inputs, request, 1)?;
            return one.pop().ok_or_else(unexpected);
        }
        let (fed, body) = self.feed(inputs)?;
        let call = Call::Run { session, inputs: fed, outputs: self.output_names(&extra) };
        let (named, bytes, seconds, _) = self.ran(&call, &body, request.cancel)?;
        let seconds = seconds.first().copied().unwrap_or_default();
        Ok(Outcome { seconds, ..self.outcome(named, bytes, &extra, given, request.values)? })
    }

    fn run_many(
        &mut self,
        inputs: &Inputs,
        request: &mut Request<'_>,
        runs: u32,
    ) -> Result<Vec<Outcome>, EngineError> {
        if !request.times || request.observer.is_some() {
            return (0..runs).map(|_| self.run(inputs, request)).collect();
        }
        self.session(&[], request.cancel)?;
        self.profile(inputs, request, runs.max(1))
    }

    fn resident_bytes(&self) -> u64 {
        self.resident
    }
}

impl Drop for Ready {
    /// The child forgets the sessions and waits for the next model.
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        let never = AtomicBool::new(false);
        for session in std::mem::take(&mut self.sessions).into_values() {
            let call = Call::Close { session };
            if child.ask(&call, &[], Duration::from_secs(CLOSE_SECONDS), &never).is_err() {
                return;
            }
        }
        self.engine.keep(child);
    }
}

fn unexpected() -> EngineError {
    EngineError::Engine("the process of ONNX Runtime answered something else than was asked".into())
}

/// What ONNX Runtime says, in our terms: the operator it has no code for, the node that failed.
pub fn failed(model: &Model, code: i32, message: &str) -> EngineError {
    let text = names::readable(message, model);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let node = names::node_in(message).and_then(|id| Some((id, model.get_node(id)?)));
    let unregistered = message.contains("is not a registered function/op");
    let lacking = message.contains("Could not find an implementation for");
    match node {
        Some((id, node)) if unregistered || lacking => {
            EngineError::NoKernel(vec![(node.op_type.clone(), vec![model.node_label(id).into()])])
        }
        _ if unregistered => match text.split_once("Fatal error: ") {
            Some((_, rest)) => {
                let operator = rest.split('(').next().unwrap_or(rest);
                EngineError::NoKernel(vec![(operator.into(), Vec::new())])
            }
            None => EngineError::Model(text),
        },
        Some((id, node)) => {
            let fault = match code {
                NOT_IMPLEMENTED => Fault::Unsupported(text),
                _ => Fault::Invalid(text),
            };
            EngineError::Node { node: model.node_label(id).into(), operator: node.op_type.clone(), fault }
        }
        None if code == NOT_IMPLEMENTED => EngineError::Model(format!("not in ONNX Runtime's power: {text}")),
        None => EngineError::Model(format!("ONNX Runtime: {text}")),
    }
}
