//! The embedded engine: our own runner over our own graph, one node at a time.

pub mod call;
mod control;
pub mod kernels;
mod ledger;
mod plan;
pub mod products;
mod run;
mod stack;
mod vector_math;
mod weights;
mod wide;

use super::{Description, Engine, EngineError, Inputs, Outcome, Prepared, Request, Settings};
use crate::ir::{Model, Text};
use plan::{Places, Plan, Planner};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use weights::Weights;

/// The engine that is part of the program. Weights are kept in the kernels' own form for as long as a prepared model
/// uses them, and shared between all that do.
#[derive(Clone, Default)]
pub struct Embedded {
    weights: Arc<Weights>,
    pools: Arc<Mutex<BTreeMap<usize, Arc<rayon::ThreadPool>>>>,
}

impl Embedded {
    /// The engine.
    pub fn new() -> Embedded {
        Embedded::default()
    }

    /// Prepares without hiding what it is, for callers that want the embedded engine and no other.
    pub fn ready(&self, model: &Model, settings: &Settings) -> Result<Ready, EngineError> {
        let (plan, places) = Planner::new(model, settings, &self.weights).plan()?;
        let inputs = model.graph(model.main()).inputs.iter();
        let inputs = inputs.filter(|p| !model.is_constant_input(p.value)).map(|p| p.value);
        let inputs = inputs.map(|v| run::Formal::of(model, v)).collect();
        let outputs = model.graph(model.main()).outputs.iter();
        let outputs = outputs.map(|p| model.value(p.value).name.clone()).collect();
        Ok(Ready {
            model: model.clone(),
            engine: self.clone(),
            settings: settings.clone(),
            pool: self.pool(settings.threads)?,
            plan,
            places,
            inputs,
            outputs,
        })
    }

    fn pool(&self, threads: usize) -> Result<Arc<rayon::ThreadPool>, EngineError> {
        let threads = threads.max(1);
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = pools.get(&threads) {
            return Ok(pool.clone());
        }
        // Bodies of If and Loop run inside one another, up to some thirty deep, on a thread of the pool.
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).stack_size(16 << 20).build();
        let pool = Arc::new(pool.map_err(|e| EngineError::Engine(format!("no threads could be had: {e}")))?);
        pools.insert(threads, pool.clone());
        Ok(pool)
    }
}

impl Engine for Embedded {
    fn describe(&self) -> Description {
        Description { name: "embedded".into(), version: env!("CARGO_PKG_VERSION").into(), place: None }
    }

    fn prepare(&self, model: &Model, settings: &Settings) -> Result<Box<dyn Prepared>, EngineError> {
        Ok(Box::new(self.ready(model, settings)?))
    }
}

/// A model ready to run in the embedded engine.
pub struct Ready {
    model: Model,
    engine: Embedded,
    settings: Settings,
    pool: Arc<rayon::ThreadPool>,
    plan: Plan,
    places: Places,
    inputs: Vec<run::Formal>,
    outputs: Vec<Text>,
}

impl Prepared for Ready {
    fn run(&mut self, inputs: &Inputs, request: &mut Request) -> Result<Outcome, EngineError> {
        let pool = self.pool.clone();
        pool.install(|| run::run(self, inputs, request))
    }

    fn resident_bytes(&self) -> u64 {
        let own: u64 = self.plan.weights.iter().map(|w| w.resident_bytes()).sum();
        own + self.engine.weights.packed_bytes()
    }
}
