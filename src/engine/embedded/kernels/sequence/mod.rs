//! Operators on sequences and optionals.

use super::movement::reshape::joined;
use super::movement::view::View;
use crate::engine::array::{Array, Value};
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::fault::Fault;
use std::sync::Arc;

kernels! {
    "ConcatFromSequence" => Kernel::plain(concat_from_sequence),
    "Optional" => Kernel::plain(optional),
    "OptionalGetElement" => Kernel::plain(optional_get_element),
    "OptionalHasElement" => Kernel::plain(optional_has_element),
    "SequenceAt" => Kernel::plain(sequence_at),
    "SequenceConstruct" => Kernel::plain(sequence_construct),
    "SequenceEmpty" => Kernel::plain(sequence_empty),
    "SequenceErase" => Kernel::plain(sequence_erase),
    "SequenceInsert" => Kernel::plain(sequence_insert),
    "SequenceLength" => Kernel::plain(sequence_length),
    "SplitToSequence" => Kernel::plain(split_to_sequence),
}

/// The only result of a node, of any kind.
fn only(value: Value) -> Result<Outputs, Fault> {
    Ok(smallvec::smallvec![Some(value)])
}

/// The items of an input that is a sequence.
fn items<'c>(call: &'c Call, index: usize) -> Result<&'c Arc<Vec<Value>>, Fault> {
    match call.value(index)? {
        Value::Sequence(items) => Ok(items),
        other => Err(Fault::Invalid(format!("a sequence is needed where there is a {}", other.kind()))),
    }
}

/// The items, copied (by handle) only when somebody else has them.
fn taken(call: &mut Call) -> Result<Vec<Value>, Fault> {
    items(call, 0)?;
    match call.inputs[0].take() {
        Some(Value::Sequence(items)) => Ok(Arc::unwrap_or_clone(items)),
        _ => Ok(Vec::new()),
    }
}

/// A position from an input, among `count`; it may count from the end.
fn position(call: &Call, index: usize, count: usize) -> Result<usize, Fault> {
    match call.input(index)?.integers()?.as_slice() {
        [at] if *at < 0 => usize::try_from(at.saturating_add_unsigned(count as u64)).ok(),
        [at] => usize::try_from(*at).ok(),
        _ => None,
    }
    .filter(|at| *at < count)
    .ok_or_else(|| Fault::Invalid(format!("input {index} is no position among {count}")))
}

/// SequenceEmpty; which type its arrays would have is known from the graph.
fn sequence_empty(_: &mut Call) -> Result<Outputs, Fault> {
    only(Value::Sequence(Arc::default()))
}

/// SequenceConstruct.
fn sequence_construct(call: &mut Call) -> Result<Outputs, Fault> {
    let items = (0..call.inputs.len()).map(|i| call.take(i).map(Value::Array)).collect::<Result<_, _>>()?;
    only(Value::Sequence(Arc::new(items)))
}

/// SequenceAt.
fn sequence_at(call: &mut Call) -> Result<Outputs, Fault> {
    let items = items(call, 0)?;
    only(items[position(call, 1, items.len())?].clone())
}

/// SequenceInsert; without a position at the end.
fn sequence_insert(call: &mut Call) -> Result<Outputs, Fault> {
    let count = items(call, 0)?.len();
    let at = if call.has(2) {
        match call.input(2)?.integers()?.as_slice() {
            // A negative position counts from the end of the sequence as it was.
            [at] if (-(count as i64)..=count as i64).contains(at) => {
                if *at < 0 {
                    count - at.unsigned_abs() as usize
                } else {
                    *at as usize
                }
            }
            other => {
                return Err(Fault::Invalid(format!("{other:?} is no position to insert at among {count}")));
            }
        }
    } else {
        count
    };
    let new = call.take(1)?;
    let mut items = taken(call)?;
    items.insert(at, Value::Array(new));
    only(Value::Sequence(Arc::new(items)))
}

/// SequenceErase; without a position the last.
fn sequence_erase(call: &mut Call) -> Result<Outputs, Fault> {
    let count = items(call, 0)?.len();
    let at = if call.has(1) { position(call, 1, count)? } else { count.wrapping_sub(1) };
    if at >= count {
        return Err(Fault::Invalid("the sequence is empty".into()));
    }
    let mut items = taken(call)?;
    items.remove(at);
    only(Value::Sequence(Arc::new(items)))
}

/// SequenceLength.
fn sequence_length(call: &mut Call) -> Result<Outputs, Fault> {
    one(Array::scalar(items(call, 0)?.len() as i64))
}

/// SplitToSequence: into parts of the sizes given, of one size (the last smaller), or of one each.
fn split_to_sequence(call: &mut Call) -> Result<Outputs, Fault> {
    let array = call.input(0)?;
    let axis = call.axis(call.attributes.int("axis", 0)?, array.rank())?;
    let length = array.dims()[axis];
    let keeps_axis = call.has(1) || call.attributes.int("keepdims", 1)? != 0;
    let refused =
        |sizes: &[i64]| Fault::Invalid(format!("an axis of {length} cannot be split into {sizes:?}"));
    let sizes: Vec<usize> = match call.optional(1)? {
        None => vec![1; length],
        Some(split) => {
            let sizes = split.integers()?;
            match (split.rank(), sizes.as_slice()) {
                (0, [each]) if *each > 0 => {
                    let each = usize::try_from(*each).unwrap_or(length).min(length.max(1));
                    (0..length).step_by(each).map(|at| each.min(length - at)).collect()
                }
                (1, all) => {
                    let all = all.iter().map(|s| usize::try_from(*s).ok()).collect::<Option<Vec<_>>>();
                    all.ok_or_else(|| refused(&sizes))?
                }
                _ => return Err(refused(&sizes)),
            }
        }
    };
    if sizes.iter().try_fold(0usize, |n, s| n.checked_add(*s)) != Some(length) {
        return Err(Fault::Invalid(format!("an axis of {length} cannot be split into {sizes:?}")));
    }
    call.elements(array.dims(), array.bytes() / array.len().max(1))?;
    let mut view = View::dense(array.dims());
    let mut items = Vec::with_capacity(sizes.len());
    for size in sizes {
        view.dims[axis] = size;
        let mut part = view.copy(call, array, &view.dims)?;
        if !keeps_axis {
            let mut dims = view.dims.clone();
            dims.remove(axis);
            part = part.reshaped(&dims);
        }
        items.push(Value::Array(part));
        view.start += size as isize * view.steps[axis];
    }
    only(Value::Sequence(Arc::new(items)))
}

/// ConcatFromSequence; with `new_axis` the arrays are stacked.
fn concat_from_sequence(call: &mut Call) -> Result<Outputs, Fault> {
    let missing = || Fault::Invalid("no axis is given".into());
    let axis = call.attributes.optional_int("axis")?.ok_or_else(missing)?;
    let stacks = call.attributes.int("new_axis", 0)? != 0;
    let mut parts = items(call, 0)?.iter().map(|v| v.array().cloned()).collect::<Result<Vec<_>, _>>()?;
    if stacks {
        for part in &mut parts {
            let mut dims = part.dims().to_vec();
            dims.insert(call.axis(axis, dims.len() + 1)?, 1);
            *part = part.clone().reshaped(&dims);
        }
    }
    one(joined(call, &parts.iter().collect::<Vec<_>>(), axis)?)
}

/// Optional: of its input, or empty without one.
fn optional(call: &mut Call) -> Result<Outputs, Fault> {
    only(Value::Optional(call.inputs.first_mut().and_then(Option::take).map(Arc::new)))
}

/// OptionalGetElement; since opset 18 what is no optional passes through.
fn optional_get_element(call: &mut Call) -> Result<Outputs, Fault> {
    match call.value(0)? {
        Value::Optional(Some(value)) => only((**value).clone()),
        Value::Optional(None) => Err(Fault::Invalid("the optional is empty".into())),
        other => only(other.clone()),
    }
}

/// OptionalHasElement; since opset 18 true for what is no optional, and false without an input.
fn optional_has_element(call: &mut Call) -> Result<Outputs, Fault> {
    let full = !matches!(call.inputs.first(), None | Some(None | Some(Value::Optional(None))));
    one(Array::bools(&[], [full]))
}
