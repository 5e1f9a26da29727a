//! If, Loop, Scan, SequenceMap and calls of model-local functions.

use super::call::{Attributes, Outputs};
use super::plan::{Action, Body, Plan, Step};
use super::run::Runner;
use super::stack::{slice_along, stack_along};
use crate::engine::array::{Array, Value};
use crate::engine::fault::{EngineError, Fault};
use smallvec::SmallVec;
use std::sync::Arc;

/// Values of a body from around it.
type Captured = Vec<(u32, Option<Value>)>;

impl Runner<'_, '_> {
    #[allow(clippy::too_many_arguments, reason = "what a step of a plan has at hand")]
    pub(super) fn control(
        &mut self,
        plan: &Plan,
        step: &Step,
        action: &Action,
        inputs: SmallVec<[Option<Value>; 4]>,
        slots: &mut [Option<Value>],
        keep: Option<&[bool]>,
        ended: &mut SmallVec<[usize; 8]>,
    ) -> Result<Outputs, EngineError> {
        match action {
            Action::Kernel(..) => Err(EngineError::Model("a kernel is not control flow".into())),
            Action::If { then, otherwise } => {
                let truth = match inputs.first() {
                    Some(Some(value)) => value.array().and_then(Array::truth),
                    _ => Err(Fault::Invalid("the condition is missing".into())),
                };
                let truth = truth.map_err(|f| self.blame(step, f))?;
                // Both branches are read for, so that what only the other one needed is let go of as well.
                let for_then = self.captured(plan, step, then, slots, keep, ended)?;
                let for_otherwise = self.captured(plan, step, otherwise, slots, keep, ended)?;
                let (body, captured) = if truth { (then, for_then) } else { (otherwise, for_otherwise) };
                Ok(self.inside(&body.plan, Vec::new(), &captured)?.into())
            }
            Action::Loop(body) => {
                let captured = self.captured(plan, step, body, slots, keep, ended)?;
                self.repeat(step, body, inputs, &captured)
            }
            Action::Scan(body) => {
                let captured = self.captured(plan, step, body, slots, keep, ended)?;
                self.scan(step, body, inputs, &captured)
            }
            Action::SequenceMap(body) => {
                let captured = self.captured(plan, step, body, slots, keep, ended)?;
                self.map(step, body, inputs, &captured)
            }
            Action::Function(body) => {
                let captured = self.captured(plan, step, body, slots, keep, ended)?;
                let mut given = inputs.into_vec();
                given.resize(body.plan.inputs.len(), None);
                Ok(self.inside(&body.plan, given, &captured)?.into())
            }
        }
    }

    fn captured(
        &self,
        plan: &Plan,
        step: &Step,
        body: &Body,
        slots: &mut [Option<Value>],
        keep: Option<&[bool]>,
        ended: &mut SmallVec<[usize; 8]>,
    ) -> Result<Captured, EngineError> {
        let mut captured = Vec::with_capacity(body.captures.len());
        for (read, slot) in &body.captures {
            let value = self.read(plan, *read, slots, keep, ended).map_err(|f| self.blame(step, f))?;
            captured.push((*slot, value));
        }
        Ok(captured)
    }

    /// Loop: `M`, `cond`, carried values → carried values, then what each iteration gave, stacked.
    fn repeat(
        &mut self,
        step: &Step,
        body: &Body,
        mut inputs: SmallVec<[Option<Value>; 4]>,
        captured: &Captured,
    ) -> Result<Outputs, EngineError> {
        let fail = |runner: &Self, message: String| runner.blame(step, Fault::Invalid(message));
        let limit = match inputs.first() {
            Some(Some(v)) => v.array().and_then(|a| a.single::<i64>()).map_err(|f| self.blame(step, f))?,
            _ => i64::MAX,
        };
        let mut going = match inputs.get(1) {
            Some(Some(v)) => v.array().and_then(Array::truth).map_err(|f| self.blame(step, f))?,
            _ => true,
        };
        let mut carried: Vec<Option<Value>> = inputs.drain(2.min(inputs.len())..).collect();
        let carries = carried.len();
        if body.plan.inputs.len() != carries + 2 || body.plan.outputs.len() < carries + 1 {
            return Err(fail(self, format!("its body does not carry {carries} values")));
        }
        let mut gathered: Vec<Vec<Array>> = vec![Vec::new(); body.plan.outputs.len() - 1 - carries];
        let mut iteration = 0i64;
        while going && iteration < limit {
            if self.cancelled() {
                return Err(EngineError::Cancelled);
            }
            let mut given = Vec::with_capacity(carries + 2);
            given.push(Some(Array::scalar(iteration).into()));
            given.push(Some(Array::bools(&[], [going]).into()));
            given.append(&mut carried);
            let mut results = self.inside(&body.plan, given, captured)?.into_iter();
            going = match results.next().flatten() {
                Some(v) => v.array().and_then(Array::truth).map_err(|f| self.blame(step, f))?,
                None => true,
            };
            carried = results.by_ref().take(carries).collect();
            for (list, value) in gathered.iter_mut().zip(results) {
                let value = value.ok_or_else(|| fail(self, "an iteration gave no value".into()))?;
                list.push(value.into_array().map_err(|f| self.blame(step, f))?);
            }
            iteration += 1;
        }
        let mut outputs: Outputs = carried.into();
        for (list, ty) in gathered.into_iter().zip(&body.results[1 + carries..]) {
            let stacked = stack_along(&list, 0, ty, self.room()).map_err(|f| self.blame(step, f))?;
            outputs.push(Some(stacked.into()));
        }
        Ok(outputs)
    }

    /// Scan since opset 9: states, then sequences that are walked together → states, then what each iteration gave.
    fn scan(
        &mut self,
        step: &Step,
        body: &Body,
        mut inputs: SmallVec<[Option<Value>; 4]>,
        captured: &Captured,
    ) -> Result<Outputs, EngineError> {
        if step.opset < 9 {
            let message = "Scan of opset 8 (with batches and sequence lengths) has no kernel".into();
            return Err(self.blame(step, Fault::Unsupported(message)));
        }
        let walk =
            Walk::of(Attributes(&step.attributes), body, inputs.len()).map_err(|f| self.blame(step, f))?;
        let mut sequences: Vec<(Array, usize, bool)> = Vec::new();
        for (k, value) in inputs.drain(walk.states..).enumerate() {
            let array = value.ok_or(Fault::Invalid("a sequence to scan is missing".into()));
            let array = array.and_then(Value::into_array);
            let array = array.map_err(|f| self.blame(step, f))?;
            let axis = at(&walk.input_axes, k, array.rank()).map_err(|f| self.blame(step, f))?;
            sequences.push((array, axis, walk.input_directions.get(k).copied().unwrap_or(0) == 1));
        }
        let length = sequences.first().map_or(0, |(a, axis, _)| a.dims()[*axis]);
        if sequences.iter().any(|(a, axis, _)| a.dims()[*axis] != length) {
            let message = "the sequences to scan differ in length".into();
            return Err(self.blame(step, Fault::Invalid(message)));
        }
        let mut states: Vec<Option<Value>> = inputs.into_vec();
        let mut gathered: Vec<Vec<Array>> = vec![Vec::new(); body.plan.outputs.len() - walk.states];
        for t in 0..length {
            if self.cancelled() {
                return Err(EngineError::Cancelled);
            }
            let mut given = std::mem::take(&mut states);
            for (array, axis, backwards) in &sequences {
                let index = if *backwards { length - 1 - t } else { t };
                let slice = slice_along(array, *axis, index).map_err(|f| self.blame(step, f))?;
                given.push(Some(slice.into()));
            }
            let mut results = self.inside(&body.plan, given, captured)?.into_iter();
            states = results.by_ref().take(walk.states).collect();
            for (list, value) in gathered.iter_mut().zip(results) {
                let value = value.ok_or(Fault::Invalid("an iteration gave no value".into()));
                list.push(value.and_then(Value::into_array).map_err(|f| self.blame(step, f))?);
            }
        }
        let mut outputs: Outputs = states.into();
        for (k, mut list) in gathered.into_iter().enumerate() {
            if walk.output_directions.get(k).copied().unwrap_or(0) == 1 {
                list.reverse();
            }
            let ty = &body.results[walk.states + k];
            let rank = list.first().map(Array::rank).or(ty.rank()).unwrap_or(0) + 1;
            let stacked =
                at(&walk.output_axes, k, rank).and_then(|axis| stack_along(&list, axis, ty, self.room()));
            outputs.push(Some(stacked.map_err(|f| self.blame(step, f))?.into()));
        }
        Ok(outputs)
    }

    /// SequenceMap: the first input is a sequence; the others are sequences of the same length or tensors.
    fn map(
        &mut self,
        step: &Step,
        body: &Body,
        inputs: SmallVec<[Option<Value>; 4]>,
        captured: &Captured,
    ) -> Result<Outputs, EngineError> {
        let Some(Some(Value::Sequence(first))) = inputs.first() else {
            return Err(self.blame(step, Fault::Invalid("its first input is no sequence".into())));
        };
        let mut lists: Vec<Vec<Value>> = vec![Vec::new(); body.plan.outputs.len()];
        for index in 0..first.len() {
            let mut given = Vec::with_capacity(inputs.len());
            for value in &inputs {
                given.push(match value {
                    Some(Value::Sequence(items)) => match items.get(index) {
                        Some(item) => Some(item.clone()),
                        None => {
                            let message = "its sequences differ in length".into();
                            return Err(self.blame(step, Fault::Invalid(message)));
                        }
                    },
                    other => other.clone(),
                });
            }
            for (list, value) in lists.iter_mut().zip(self.inside(&body.plan, given, captured)?) {
                let missing = || self.blame(step, Fault::Invalid("its body gave no value".into()));
                list.push(value.ok_or_else(missing)?);
            }
        }
        Ok(lists.into_iter().map(|list| Some(Value::Sequence(Arc::new(list)))).collect())
    }
}

/// Attributes of Scan.
struct Walk {
    states: usize,
    input_axes: Vec<i64>,
    input_directions: Vec<i64>,
    output_axes: Vec<i64>,
    output_directions: Vec<i64>,
}

impl Walk {
    fn of(attributes: Attributes, body: &Body, inputs: usize) -> Result<Walk, Fault> {
        let scanned = usize::try_from(attributes.int("num_scan_inputs", 0)?).unwrap_or(usize::MAX);
        let states = inputs.checked_sub(scanned).filter(|s| *s <= body.plan.outputs.len());
        let states =
            states.ok_or_else(|| Fault::Invalid(format!("num_scan_inputs={scanned} does not fit")))?;
        if body.plan.inputs.len() != inputs {
            return Err(Fault::Invalid(format!("its body does not take {inputs} values")));
        }
        let list = |name: &str| Ok::<_, Fault>(attributes.ints(name)?.unwrap_or_default().to_vec());
        Ok(Walk {
            states,
            input_axes: list("scan_input_axes")?,
            input_directions: list("scan_input_directions")?,
            output_axes: list("scan_output_axes")?,
            output_directions: list("scan_output_directions")?,
        })
    }
}

/// The axis for sequence `k`, 0 when none is given.
fn at(axes: &[i64], k: usize, rank: usize) -> Result<usize, Fault> {
    let axis = axes.get(k).copied().unwrap_or(0);
    let from_start = if axis < 0 { axis + rank as i64 } else { axis };
    usize::try_from(from_start)
        .ok()
        .filter(|a| *a < rank)
        .ok_or_else(|| Fault::Invalid(format!("axis {axis} is not an axis of rank {rank}")))
}
