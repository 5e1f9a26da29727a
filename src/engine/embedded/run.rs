//! The loop over the steps of a plan.

use super::call::{Attributes, Call, Outputs};
use super::ledger::Ledger;
use super::plan::{Action, Plan, Read, Source, Step};
use super::wide::widened;
use super::{Ready, weights::Weight};
use crate::engine::array::Value;
use crate::engine::fault::{EngineError, Fault};
use crate::engine::{CallPath, Inputs, NodeTime, Outcome, Request, Seen};
use crate::ir::{Constant, ElementType, Model, Text, Type, ValueId};
use smallvec::SmallVec;
use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// An input of the model.
pub struct Formal {
    name: Text,
    ty: Type,
    /// What it is when the caller does not say.
    default: Option<Constant>,
}

impl Formal {
    pub fn of(model: &Model, value: ValueId) -> Formal {
        let v = model.value(value);
        Formal { name: v.name.clone(), ty: v.ty.clone(), default: v.constant.clone() }
    }

    /// The value of the input for this run.
    fn feed(&self, inputs: &Inputs) -> Result<Value, EngineError> {
        let fail = |message: String| EngineError::Input { name: self.name.clone(), message };
        let Some(value) = inputs.get(&self.name) else {
            return match (&self.default, &self.ty) {
                (Some(constant), _) => {
                    super::super::Array::try_from(constant).map(Value::Array).map_err(|f| fail(f.to_string()))
                }
                (None, Type::Optional(_)) => Ok(Value::Optional(None)),
                _ => Err(fail("no value is given".into())),
            };
        };
        match (&self.ty, value) {
            (Type::Tensor { element, shape }, Value::Array(array)) => {
                if *element != ElementType::UNDEFINED && *element != array.element() {
                    return Err(fail(format!("it is {element}, and {} was given", array.element())));
                }
                if let Some(shape) = shape {
                    let fits = shape.len() == array.rank()
                        && shape
                            .iter()
                            .zip(array.dims())
                            .all(|(d, n)| d.fixed().is_none_or(|d| d == *n as u64));
                    if !fits {
                        let wanted = crate::ir::shape_text(shape);
                        return Err(fail(format!("its shape is {wanted}, and {:?} was given", array.dims())));
                    }
                }
                Ok(value.clone())
            }
            (Type::Tensor { .. }, other) => {
                Err(fail(format!("it is a tensor, and a {} was given", other.kind())))
            }
            (Type::Optional(_), Value::Optional(_)) => Ok(value.clone()),
            (Type::Optional(_), other) => Ok(Value::Optional(Some(Arc::new(other.clone())))),
            _ => Ok(value.clone()),
        }
    }
}

/// Runs a prepared model.
pub fn run(ready: &Ready, inputs: &Inputs, request: &mut Request<'_>) -> Result<Outcome, EngineError> {
    if let Some(name) = inputs.keys().find(|name| !ready.inputs.iter().any(|f| f.name == **name)) {
        let known: Vec<&str> = ready.inputs.iter().map(|f| &*f.name).collect();
        let message = format!("the model has no input of that name; it has {}", known.join(", "));
        return Err(EngineError::Input { name: name.clone(), message });
    }
    let mut fed = Vec::with_capacity(ready.inputs.len());
    for formal in &ready.inputs {
        let value = formal.feed(inputs)?;
        fed.push(Some(if ready.settings.wide { widened(value) } else { value }));
    }
    let mut keep =
        Keep { slots: vec![false; ready.plan.slots], found: BTreeMap::new(), values: request.values };
    for value in request.values {
        match ready.plan.places.get(value) {
            Some(Source::Slot(slot)) => keep.slots[*slot as usize] = true,
            Some(Source::Weight(_)) => {}
            None => {
                let name =
                    ready.model.get_value(*value).map_or_else(|| value.to_string(), |v| v.name.to_string());
                return Err(EngineError::Model(format!("value {name} is not one of the main graph")));
            }
        }
    }
    let times = if request.times { vec![(0.0, 0); ready.places.len()] } else { Vec::new() };
    let mut runner = Runner {
        ready,
        ledger: Ledger::new(ready.settings.memory_limit),
        times,
        inner_seconds: 0.0,
        path: CallPath::new(),
        cancel: request.cancel,
        observer: request.observer.as_deref_mut(),
    };
    let start = Instant::now();
    let results = runner.plan(&ready.plan, fed, Vec::new(), Some(&mut keep))?;
    let seconds = start.elapsed().as_secs_f64();
    let absent = || Value::Optional(None);
    let outputs =
        ready.outputs.iter().cloned().zip(results.into_iter().map(|v| v.unwrap_or_else(absent))).collect();
    let times = runner.times.into_iter().zip(&ready.places).filter(|((_, calls), _)| *calls > 0);
    let nodes = times
        .map(|((seconds, calls), (path, node))| NodeTime { path: path.clone(), node: *node, seconds, calls })
        .collect();
    Ok(Outcome { outputs, values: keep.found, seconds, nodes, peak_bytes: Some(runner.ledger.peak()) })
}

/// Values of the main graph that are given out beside the outputs.
struct Keep<'a> {
    slots: Vec<bool>,
    values: &'a [ValueId],
    found: BTreeMap<ValueId, Value>,
}

/// A run under way.
pub struct Runner<'a, 'o> {
    pub ready: &'a Ready,
    ledger: Ledger,
    times: Vec<(f64, u32)>,
    /// Seconds that steps of bodies took, so that the node around them counts without.
    inner_seconds: f64,
    path: CallPath,
    cancel: &'a std::sync::atomic::AtomicBool,
    observer: Option<&'a mut crate::engine::Observer<'o>>,
}

impl Runner<'_, '_> {
    /// Runs a plan. `captures` are values from around it.
    fn plan(
        &mut self,
        plan: &Plan,
        inputs: Vec<Option<Value>>,
        captures: Vec<(u32, Option<Value>)>,
        mut keep: Option<&mut Keep>,
    ) -> Result<Vec<Option<Value>>, EngineError> {
        let inside = !self.path.is_empty();
        let mut slots: Vec<Option<Value>> = vec![None; plan.slots];
        let given = plan.inputs.iter().copied().zip(inputs).chain(captures);
        for (slot, value) in given {
            if let (true, Some(value)) = (inside, &value) {
                // A value from around is held there as well; what is a weight or an input of the model stays uncounted.
                let addresses: SmallVec<[usize; 2]> =
                    value.arrays().iter().map(|a| a.storage().address()).collect();
                self.ledger.hold(value, &addresses).map_err(|f| EngineError::Model(f.to_string()))?;
            }
            slots[slot as usize] = value;
        }
        for step in &plan.steps {
            if self.cancel.load(Ordering::Relaxed) {
                return Err(EngineError::Cancelled);
            }
            self.step(plan, step, &mut slots, keep.as_deref().map(|k| k.slots.as_slice()))?;
        }
        let weight = |w: u32| self.weight(&plan.weights[w as usize]);
        let mut results = Vec::with_capacity(plan.outputs.len());
        for source in &plan.outputs {
            results.push(match source {
                None => None,
                Some(Source::Slot(slot)) => slots[*slot as usize].clone(),
                Some(Source::Weight(w)) => Some(weight(*w).map_err(|f| EngineError::Model(f.to_string()))?),
            });
        }
        if let Some(keep) = &mut keep {
            for value in keep.values {
                let found = match plan.places.get(value) {
                    Some(Source::Slot(slot)) => slots[*slot as usize].clone(),
                    Some(Source::Weight(w)) => weight(*w).ok(),
                    None => None,
                };
                if let Some(found) = found {
                    keep.found.insert(*value, found);
                }
            }
        }
        for value in slots.iter().flatten() {
            self.ledger.release_value(value);
        }
        Ok(results)
    }

    /// A constant as an array.
    fn weight(&self, weight: &Weight) -> Result<Value, Fault> {
        let value = Value::Array(weight.array()?.clone());
        Ok(if self.ready.settings.wide { widened(value) } else { value })
    }

    fn step(
        &mut self,
        plan: &Plan,
        step: &Step,
        slots: &mut [Option<Value>],
        keep: Option<&[bool]>,
    ) -> Result<(), EngineError> {
        // Buffers of all inputs, and of those that are read for the last time.
        let mut buffers: SmallVec<[usize; 8]> = SmallVec::new();
        let mut ended: SmallVec<[usize; 8]> = SmallVec::new();
        let mut inputs: SmallVec<[Option<Value>; 4]> = SmallVec::with_capacity(step.inputs.len());
        for read in &step.inputs {
            let value = match read {
                None => None,
                Some(read) => {
                    self.read(plan, *read, slots, keep, &mut ended).map_err(|f| self.blame(step, f))?
                }
            };
            match &value {
                Some(Value::Array(a)) => buffers.push(a.storage().address()),
                Some(other) => buffers.extend(other.arrays().iter().map(|a| a.storage().address())),
                None => {}
            }
            inputs.push(value);
        }
        let start = (!self.times.is_empty()).then(Instant::now);
        let inner_before = self.inner_seconds;
        let outputs = match &step.action {
            Action::Kernel(kernel, packed) => {
                let mut call = Call {
                    op_type: &step.op_type,
                    opset: step.opset,
                    attributes: Attributes(&step.attributes),
                    inputs,
                    wanted: step.outputs.iter().map(Option::is_some).collect(),
                    packed: packed.as_ref().map(|(_, p)| p),
                    threads: self.ready.settings.threads.max(1),
                    wide: self.ready.settings.wide,
                    room: self.ledger.room(),
                    working_space: 0,
                    seed: u64::from(step.index).wrapping_mul(0x9e37_79b9_7f4a_7c15),
                };
                let result = catch_unwind(AssertUnwindSafe(|| (kernel.run)(&mut call)));
                let result = result.unwrap_or_else(|panic| Err(Fault::Invalid(panic_text(&*panic))));
                let working_space = call.working_space;
                drop(call);
                self.ledger.visit(working_space);
                result.map_err(|f| self.blame(step, f))?
            }
            action => {
                self.path.push(step.node);
                let outputs = self.control(plan, step, action, inputs, slots, keep, &mut ended);
                self.path.pop();
                outputs?
            }
        };
        if let Some(start) = start {
            let elapsed = start.elapsed().as_secs_f64();
            let own = elapsed - (self.inner_seconds - inner_before);
            self.inner_seconds = inner_before + elapsed;
            let (seconds, calls) = &mut self.times[step.index as usize];
            *seconds += own;
            *calls += 1;
        }
        self.store(step, outputs, &buffers, slots, keep).map_err(|f| self.blame(step, f))?;
        for address in ended {
            self.ledger.release(address);
        }
        Ok(())
    }

    /// A value for a node: taken out of its slot when nobody reads it later.
    pub fn read(
        &self,
        plan: &Plan,
        read: Read,
        slots: &mut [Option<Value>],
        keep: Option<&[bool]>,
        ended: &mut SmallVec<[usize; 8]>,
    ) -> Result<Option<Value>, Fault> {
        match read.source {
            Source::Weight(w) => self.weight(&plan.weights[w as usize]).map(Some),
            Source::Slot(slot) => {
                let slot = slot as usize;
                if !read.last || keep.is_some_and(|k| k[slot]) {
                    return Ok(slots[slot].clone());
                }
                let value = slots[slot].take();
                match &value {
                    Some(Value::Array(a)) => ended.push(a.storage().address()),
                    Some(other) => ended.extend(other.arrays().iter().map(|a| a.storage().address())),
                    None => {}
                }
                Ok(value)
            }
        }
    }

    fn store(
        &mut self,
        step: &Step,
        outputs: Outputs,
        buffers: &[usize],
        slots: &mut [Option<Value>],
        keep: Option<&[bool]>,
    ) -> Result<(), Fault> {
        let mut outputs = outputs.into_iter();
        for (position, output) in step.outputs.iter().enumerate() {
            let value = outputs.next().flatten();
            let Some(output) = output else { continue };
            let Some(value) = value else {
                // Functions and branches may leave an optional output out; a kernel may not.
                if matches!(step.action, Action::Kernel(..)) {
                    return Err(Fault::Unsupported(format!(
                        "{} has no code for output {position}",
                        step.op_type
                    )));
                }
                continue;
            };
            if let (Some(element), Value::Array(array)) = (output.element, &value)
                && element != array.element()
            {
                return Err(Fault::Invalid(format!(
                    "output {position} came out as {} where {element} is declared",
                    array.element()
                )));
            }
            let mut value = if self.ready.settings.wide { widened(value) } else { value };
            if let Some(observer) = &mut self.observer {
                let seen = Seen { path: &self.path, node: step.node, value: output.value };
                observer(seen, &mut value);
            }
            let slot = output.slot as usize;
            self.ledger.hold(&value, buffers)?;
            if output.unread && !keep.is_some_and(|k| k[slot]) {
                self.ledger.release_value(&value);
                continue;
            }
            slots[slot] = Some(value);
        }
        Ok(())
    }

    /// Runs a body.
    pub fn inside(
        &mut self,
        plan: &Plan,
        inputs: Vec<Option<Value>>,
        captures: &[(u32, Option<Value>)],
    ) -> Result<Vec<Option<Value>>, EngineError> {
        self.plan(plan, inputs, captures.to_vec(), None)
    }

    /// True when the person does not want to wait any longer.
    pub fn cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    /// Bytes that may still be taken.
    pub fn room(&self) -> u64 {
        self.ledger.room()
    }

    /// The fault with the node it is of.
    pub fn blame(&self, step: &Step, fault: Fault) -> EngineError {
        match fault {
            Fault::Cancelled => EngineError::Cancelled,
            fault => EngineError::Node {
                node: self.ready.model.node_label(step.node).into(),
                operator: step.op_type.clone(),
                fault,
            },
        }
    }
}

/// A panic in a kernel is a fault of that node, not the end of the program.
fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()));
    format!("internal fault: {}", text.unwrap_or_else(|| "no message".into()))
}
