//! Engines: what runs a model, node by node, and gives any value, every time and every byte.
//!
//! [`Embedded`] is the default: pure Rust, runs the nodes of *our* graph one by one with the exact element types of
//! the standard. Integer, bool, float64, half-precision and shape-like operators are its own code, because libraries
//! that run models were measured to be silently wrong there (int64 by way of int32, float64 by way of float32); only
//! heavy float32 kernels come from a library, behind one file.
//!
//! [`onnxruntime`] is the user's own ONNX Runtime in a child process, [`command`] a program of the user's that runs a
//! model wherever it likes; [`by_name`] gives any of the three.

pub mod archive;
pub mod array;
pub mod choose;
pub mod command;
pub mod embedded;
pub mod fault;
pub mod narrow;
pub mod onnxruntime;

use crate::ir::{Model, NodeId, Text, ValueId};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

pub use array::{Array, Value};
pub use choose::by_name;
pub use embedded::Embedded;
pub use fault::{EngineError, Fault};

/// Named inputs of a run; elements that the model gives a default for may be left out.
pub type Inputs = BTreeMap<Text, Value>;

/// What an engine is.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Description {
    /// Name as `--engine` takes it.
    pub name: String,
    pub version: String,
    /// Where it was found, for engines that are not part of the program.
    pub place: Option<String>,
}

/// How a model is to be prepared.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Threads that kernels may use; the answer does not depend on it.
    pub threads: usize,
    /// Bytes that values and working space of a run may take.
    pub memory_limit: u64,
    /// Every floating-point value is held in float64: the referee between two float32 answers. Embedded engine only.
    pub wide: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { threads: 1, memory_limit: 8 << 30, wide: false }
    }
}

/// Runs models.
pub trait Engine: Send + Sync {
    /// Name, version, place.
    fn describe(&self) -> Description;

    /// Makes a model ready to run. Operators that the engine does not have are named here, before anything runs.
    fn prepare(&self, model: &Model, settings: &Settings) -> Result<Box<dyn Prepared>, EngineError>;
}

/// A model that is ready to run, any number of times.
pub trait Prepared: Send {
    /// One run.
    fn run(&mut self, inputs: &Inputs, request: &mut Request) -> Result<Outcome, EngineError>;

    /// Several runs with the same inputs, one after the other. Engines that take times of a whole session only are much
    /// faster here than run by run.
    fn run_many(
        &mut self,
        inputs: &Inputs,
        request: &mut Request,
        runs: u32,
    ) -> Result<Vec<Outcome>, EngineError> {
        (0..runs).map(|_| self.run(inputs, request)).collect()
    }

    /// Bytes that the prepared model holds between runs: weights in the engine's own form.
    fn resident_bytes(&self) -> u64;
}

/// Nodes of If, Loop, Scan and function calls around a node, outermost first: where in the run it stands.
pub type CallPath = SmallVec<[NodeId; 2]>;

/// A value as it appears during a run.
pub struct Seen<'a> {
    pub path: &'a [NodeId],
    pub node: NodeId,
    pub value: ValueId,
}

/// Sees every value that a node gives, and may put another in its place.
pub type Observer<'a> = dyn FnMut(Seen<'_>, &mut Value) + Send + 'a;

/// What is wanted of a run beside the outputs.
pub struct Request<'a> {
    /// Values of the main graph to give out as well.
    pub values: &'a [ValueId],
    /// Take the time of every node.
    pub times: bool,
    pub cancel: &'a AtomicBool,
    /// Embedded engine only.
    pub observer: Option<&'a mut Observer<'a>>,
}

impl<'a> Request<'a> {
    /// Outputs only.
    pub fn outputs(cancel: &'a AtomicBool) -> Request<'a> {
        Request { values: &[], times: false, cancel, observer: None }
    }
}

/// What came of a run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// In order of the model's outputs. An optional output that is absent is `Optional(None)`.
    pub outputs: Vec<(Text, Value)>,
    /// The values that were asked for.
    pub values: BTreeMap<ValueId, Value>,
    /// Wall time of the run, seconds.
    pub seconds: f64,
    /// Times by node, in order of first execution; empty when not asked for.
    pub nodes: Vec<NodeTime>,
    /// Most bytes of values and working space alive at once, without weights and inputs; `None` when not measured.
    pub peak_bytes: Option<u64>,
}

/// Time of one node in one place.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeTime {
    pub path: CallPath,
    pub node: NodeId,
    /// Sum over all calls, seconds; for If, Loop, Scan and function calls without what their bodies took.
    pub seconds: f64,
    pub calls: u32,
}
