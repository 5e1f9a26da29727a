//! ONNX Runtime as an engine: the user's own copy, found at run time, always in a child process.
//!
//! The child is this same program with a verb that help does not list. A crash there, or a run that takes too long, ends
//! the child and is one sentence here; the next run starts another.

mod child;
mod library;
mod message;
mod names;
mod prepared;
mod profile;
mod runtime;
mod serve;
mod values;

use super::{Description, Engine, EngineError, Prepared, Settings};
use crate::formats;
use crate::formats::onnx::copy;
use crate::ir::{Model, NodeId, Text};
use child::Child;
use message::{Answer, Call};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

pub use child::{ending, keep_last};
pub use message::Level;
pub use prepared::Ready;
pub use serve::serve;

/// The verb of the child process.
pub const VERB: &str = "engine-onnxruntime";

/// Children that wait for work; a start costs some hundredths of a second.
const KEPT_CHILDREN: usize = 2;

/// Addresses that a process takes before it does anything: libraries, stacks of threads, the arena's reserve.
const OWN_ADDRESSES: u64 = 4 << 30;

/// What can be chosen about the engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// How much ONNX Runtime may rewrite the graph; off, so that what is measured is ours.
    pub level: Level,
    /// Execution providers, first choice first (`cuda`, `CUDAExecutionProvider`); none is the processor.
    pub providers: Vec<String>,
    /// The library, where it is not to be searched for.
    pub library: Option<PathBuf>,
    /// The program that has the hidden verb; this one unless it is used as a library.
    pub program: Option<PathBuf>,
    /// How long preparing or one run may take.
    pub time_limit: Duration,
}

impl Default for Choice {
    fn default() -> Choice {
        Choice {
            level: Level::Off,
            providers: Vec::new(),
            library: None,
            program: None,
            time_limit: Duration::from_secs(600),
        }
    }
}

/// A library that works.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Found {
    pub library: PathBuf,
    /// How it was found.
    pub from: String,
    pub version: String,
    /// Execution providers that it was built with.
    pub providers: Vec<String>,
}

/// The engine.
#[derive(Clone)]
pub struct OnnxRuntime {
    choice: Choice,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    found: OnceLock<Result<Found, String>>,
    idle: Mutex<Vec<Child>>,
}

impl OnnxRuntime {
    /// The engine; nothing is searched for before it is needed.
    pub fn new(choice: Choice) -> OnnxRuntime {
        OnnxRuntime { choice, shared: Arc::default() }
    }

    /// What was chosen.
    pub fn choice(&self) -> &Choice {
        &self.choice
    }

    /// The library, looked for once. `Err` says in one sentence why there is none, and how to get one.
    pub fn found(&self) -> Result<&Found, EngineError> {
        let found = self.shared.found.get_or_init(|| self.look());
        found.as_ref().map_err(|why| EngineError::Engine(why.clone()))
    }

    fn program(&self) -> Result<PathBuf, String> {
        let own = || child::this_program().map_err(|error| format!("this program cannot be found: {error}"));
        self.choice.program.clone().map_or_else(own, Ok)
    }

    /// Tries the candidates in order: loading a broken library may end a process, so that a child does it.
    fn look(&self) -> Result<Found, String> {
        let search = library::search(self.choice.library.as_deref());
        let program = self.program()?;
        let mut reasons = Vec::new();
        for candidate in search.found {
            match Child::start(&program, &candidate.path, None) {
                Ok(child) => {
                    let found = Found {
                        library: candidate.path,
                        from: candidate.from,
                        version: child.version.clone(),
                        providers: child.providers.clone(),
                    };
                    self.keep(child);
                    return Ok(found);
                }
                Err(why) => reasons.push(format!("{} ({}): {why}", candidate.path.display(), candidate.from)),
            }
        }
        reasons.extend(search.notes);
        Err(match reasons.is_empty() {
            true => "ONNX Runtime was not found; get it by pip install onnxruntime, or set ORT_DYLIB_PATH to its library".into(),
            false => format!("ONNX Runtime cannot be used: {}", reasons.join("; ")),
        })
    }

    /// A child for runs with a memory limit.
    fn child(&self, memory_limit: Option<u64>) -> Result<Child, EngineError> {
        let found = self.found()?;
        let idle = || self.shared.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = {
            let mut idle = idle();
            let fitting = idle.iter().position(|child| child.memory_limit == memory_limit);
            fitting.map(|at| idle.swap_remove(at))
        };
        if let Some(child) = kept {
            return Ok(child);
        }
        let program = self.program().map_err(EngineError::Engine)?;
        Child::start(&program, &found.library, memory_limit).map_err(EngineError::Engine)
    }

    fn keep(&self, child: Child) {
        let mut idle = self.shared.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < KEPT_CHILDREN {
            idle.push(child);
        }
    }

    /// The limit that a child gets. Devices map their whole memory into the process: no limit on addresses there.
    fn memory_limit(&self, settings: &Settings) -> Option<u64> {
        let processor = self.choice.providers.iter().all(|name| name.to_lowercase().starts_with("cpu"));
        processor.then(|| settings.memory_limit.saturating_add(OWN_ADDRESSES))
    }

    fn options(&self, settings: &Settings, level: Level) -> message::Options {
        message::Options { level, threads: settings.threads, providers: self.choice.providers.clone() }
    }

    /// The model as ONNX Runtime itself would run it at a level: what it folds, fuses and replaces by operators of its
    /// own. Nodes keep their names; those without one, and those whose name is not the only one, get one.
    pub fn optimized(&self, model: &Model, level: Level) -> Result<Model, EngineError> {
        let folder = folder()?;
        let (path, to) = (folder.path().join("model.onnx"), folder.path().join("optimized.onnx"));
        copy::write(model, &path, &unique_names(model), &[])
            .map_err(|error| EngineError::Model(error.to_string()))?;
        let settings = Settings::default();
        let mut child = self.child(self.memory_limit(&settings))?;
        let call = Call::Optimize { model: path, options: self.options(&settings, level), to: to.clone() };
        let never = AtomicBool::new(false);
        let (answer, _) = child.ask(&call, &[], self.choice.time_limit, &never)?;
        self.keep(child);
        if let Answer::Failed { code, message } = answer {
            return Err(prepared::failed(model, code, &message));
        }
        let opened = formats::open(&to).map_err(|error| EngineError::Engine(error.to_string()))?;
        Ok(opened.model)
    }
}

impl Engine for OnnxRuntime {
    fn describe(&self) -> Description {
        let name = match self.choice.level {
            Level::Off => "onnxruntime".into(),
            level => format!("onnxruntime:{}", level.name()),
        };
        let found = self.found().ok();
        Description {
            name,
            version: found.map(|f| f.version.clone()).unwrap_or_default(),
            place: found.map(|f| f.library.display().to_string()),
        }
    }

    fn prepare(&self, model: &Model, settings: &Settings) -> Result<Box<dyn Prepared>, EngineError> {
        Ok(Box::new(Ready::new(self, model, settings)?))
    }
}

/// A folder for the files of one prepared model; it goes away with it.
fn folder() -> Result<tempfile::TempDir, EngineError> {
    let made = tempfile::Builder::new().prefix("passlens-").tempdir();
    made.map_err(|error| EngineError::Engine(format!("a temporary folder cannot be made: {error}")))
}

/// New names for nodes that have none or share theirs, so that a runtime accepts the model and people know the rest.
pub fn unique_names(model: &Model) -> BTreeMap<NodeId, Text> {
    let nodes = model.all_nodes();
    let theirs: BTreeSet<Text> = nodes.iter().map(|id| model.node(*id).name.clone()).collect();
    let mut taken: BTreeSet<Text> = BTreeSet::new();
    let mut renamed = BTreeMap::new();
    for id in nodes {
        let node = model.node(id);
        if !node.name.is_empty() && taken.insert(node.name.clone()) {
            continue;
        }
        let base = if node.name.is_empty() { &node.op_type } else { &node.name };
        let mut name: Text = format!("{base}_{id}").into();
        while theirs.contains(&name) || !taken.insert(name.clone()) {
            name = format!("{name}_").into();
        }
        renamed.insert(id, name);
    }
    renamed
}
