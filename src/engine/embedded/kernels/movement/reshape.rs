//! Operators that show the same elements in another shape: nothing is copied.

use super::dimension;
use super::view::View;
use super::words::{Word, with_word};
use crate::engine::array::{Array, Dims, Value};
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::fault::Fault;

/// Reshape; the shape is an attribute before opset 5, `allowzero` comes with opset 14.
pub fn reshape(call: &mut Call) -> Result<Outputs, Fault> {
    let wanted = match call.optional(1)? {
        Some(shape) => shape.integers()?,
        None => call.attributes.ints("shape")?.unwrap_or(&[]).to_vec(),
    };
    let keeps_zero = call.attributes.int("allowzero", 0)? == 0;
    let array = call.take(0)?;
    let refused = || Fault::Invalid(format!("shape {:?} cannot be shown as {wanted:?}", array.dims()));
    let mut dims: Dims = Dims::with_capacity(wanted.len());
    let mut open = None;
    for (axis, want) in wanted.iter().enumerate() {
        dims.push(match want {
            0 if keeps_zero => *array.dims().get(axis).ok_or_else(refused)?,
            -1 if open.is_none() => {
                open = Some(axis);
                1
            }
            other => usize::try_from(*other).map_err(|_| refused())?,
        });
    }
    let known = dims.iter().try_fold(1usize, |n, d| n.checked_mul(*d)).ok_or_else(refused)?;
    match open {
        Some(axis) if known > 0 && array.len().is_multiple_of(known) => dims[axis] = array.len() / known,
        None if known == array.len() => {}
        _ => return Err(refused()),
    }
    one(array.reshaped(&dims))
}

/// Flatten.
pub fn flatten(call: &mut Call) -> Result<Outputs, Fault> {
    let axis = call.attributes.int("axis", 1)?;
    let rank = call.input(0)?.rank();
    let axis = if axis == rank as i64 { rank } else { call.axis(axis, rank)? };
    let array = call.take(0)?;
    let (outer, inner) = array.dims().split_at(axis);
    let dims = [outer.iter().product(), inner.iter().product()];
    one(array.reshaped(&dims))
}

/// Axes that are an input since opset 13, an attribute before; `None` when neither gives them.
fn axes(call: &Call) -> Result<Option<Vec<i64>>, Fault> {
    Ok(match call.optional(1)? {
        Some(axes) => Some(axes.integers()?),
        None => call.attributes.ints("axes")?.map(<[i64]>::to_vec),
    })
}

/// Squeeze.
pub fn squeeze(call: &mut Call) -> Result<Outputs, Fault> {
    let axes = axes(call)?;
    let dims = call.input(0)?.dims();
    let mut gone: Vec<bool> = dims.iter().map(|d| axes.is_none() && *d == 1).collect();
    for axis in axes.iter().flatten() {
        let axis = call.axis(*axis, dims.len())?;
        if dims[axis] != 1 {
            return Err(Fault::Invalid(format!(
                "axis {axis} of shape {dims:?} is not 1 and cannot be left out"
            )));
        }
        gone[axis] = true;
    }
    let dims: Dims = dims.iter().zip(gone).filter(|(_, gone)| !gone).map(|(d, _)| *d).collect();
    let array = call.take(0)?;
    one(array.reshaped(&dims))
}

/// Unsqueeze.
pub fn unsqueeze(call: &mut Call) -> Result<Outputs, Fault> {
    let axes = axes(call)?.ok_or_else(|| Fault::Invalid("no axes are given".into()))?;
    let old = call.input(0)?.dims();
    let rank = old.len() + axes.len();
    let mut new = vec![false; rank];
    for axis in &axes {
        let axis = call.axis(*axis, rank)?;
        if std::mem::replace(&mut new[axis], true) {
            return Err(Fault::Invalid(format!("axis {axis} is named twice in {axes:?}")));
        }
    }
    let mut old = old.iter().copied();
    let dims: Dims = new.iter().map(|new| if *new { 1 } else { old.next().unwrap_or(1) }).collect();
    let array = call.take(0)?;
    one(array.reshaped(&dims))
}

/// Expand: broadcasting to a shape, in both directions.
pub fn expand(call: &mut Call) -> Result<Outputs, Fault> {
    let wanted: Dims = call.input(1)?.integers()?.iter().map(|d| dimension(*d)).collect::<Result<_, _>>()?;
    let array = call.input(0)?;
    let (_, view, _) = broadcast(array.dims(), &wanted)?;
    if view.dims.as_slice() == array.dims() {
        return one(call.take(0)?);
    }
    one(view.copy(call, array, &view.dims)?)
}

/// Tile; in opset 1 one axis is repeated, both numbers being tensors of the input's own type.
pub fn tile(call: &mut Call) -> Result<Outputs, Fault> {
    let rank = call.input(0)?.rank();
    let repeats: Vec<i64> = if call.opset < 6 && call.has(2) {
        let number = |index: usize| -> Result<i64, Fault> {
            let array = call.input(index)?;
            match array.approximate().as_deref() {
                Some([number]) => Ok(*number as i64),
                _ => Err(Fault::Invalid(format!("input {index} is not one number"))),
            }
        };
        let mut repeats = vec![1; rank];
        repeats[call.axis(number(2)?, rank)?] = number(1)?;
        repeats
    } else {
        call.input(1)?.integers()?
    };
    let array = call.input(0)?;
    if repeats.len() != rank {
        return Err(Fault::Invalid(format!("{} repeats are given for rank {rank}", repeats.len())));
    }
    if repeats.iter().all(|r| *r == 1) {
        return one(call.take(0)?);
    }
    let mut dims = Dims::new();
    let dense = View::dense(array.dims());
    let mut view = View { dims: Dims::new(), steps: Default::default(), start: 0 };
    for (axis, repeat) in repeats.iter().enumerate() {
        let repeat = dimension(*repeat)?;
        dims.push(array.dims()[axis].checked_mul(repeat).ok_or(super::TOO_MANY)?);
        view.dims.extend([repeat, array.dims()[axis]]);
        view.steps.extend([0, dense.steps[axis]]);
    }
    one(view.copy(call, array, &dims)?)
}

/// Concat; the axis is 1 when opset 1 does not say.
pub fn concat(call: &mut Call) -> Result<Outputs, Fault> {
    let axis = match call.attributes.optional_int("axis")? {
        Some(axis) => axis,
        None if call.opset < 4 => 1,
        None => return Err(Fault::Invalid("no axis is given".into())),
    };
    let parts: Vec<&Array> = (0..call.inputs.len()).map(|i| call.input(i)).collect::<Result<_, _>>()?;
    one(joined(call, &parts, axis)?)
}

/// Arrays one after the other along an axis.
pub fn joined(call: &Call, parts: &[&Array], axis: i64) -> Result<Array, Fault> {
    let Some(first) = parts.first() else {
        return Err(Fault::Invalid("there is nothing to join".into()));
    };
    let axis = call.axis(axis, first.rank())?;
    let mut dims: Dims = first.dims().into();
    dims[axis] = 0;
    for part in parts {
        let fits = part.rank() == dims.len()
            && part.dims().iter().enumerate().all(|(a, d)| a == axis || *d == first.dims()[a]);
        if !fits || part.element() != first.element() {
            return Err(Fault::Invalid(format!(
                "{} {:?} and {} {:?} cannot be joined along axis {axis}",
                first.element(),
                first.dims(),
                part.element(),
                part.dims()
            )));
        }
        dims[axis] = dims[axis].checked_add(part.dims()[axis]).ok_or(super::TOO_MANY)?;
    }
    if let [one] = parts {
        return Ok((*one).clone());
    }
    let outer: usize = dims[..axis].iter().product();
    with_word!(first, W => {
        let count = call.elements(&dims, size_of::<W>())?;
        let mut to: Vec<W> = Vec::with_capacity(count);
        let mut rows = Vec::with_capacity(parts.len());
        for part in parts {
            let width: usize = part.dims()[axis..].iter().product();
            rows.push((W::of(part)?, width));
        }
        if count > 0 {
            for row in 0..outer {
                for (from, width) in &rows {
                    to.extend_from_slice(&from[row * width..(row + 1) * width]);
                }
            }
        }
        W::array(first, &dims, to)
    })
}

/// Split; sizes are an attribute before opset 13 (an optional input in opset 1), `num_outputs` comes with opset 18 and
/// leaves the last part smaller.
pub fn split(call: &mut Call) -> Result<Outputs, Fault> {
    let array = call.input(0)?;
    let axis = call.axis(call.attributes.int("axis", 0)?, array.rank())?;
    let length = array.dims()[axis];
    let sizes: Vec<usize> = match (call.optional(1)?, call.attributes.ints("split")?) {
        (Some(sizes), _) => sizes.integers()?.iter().map(|s| dimension(*s)).collect::<Result<_, _>>()?,
        (None, Some(sizes)) => sizes.iter().map(|s| dimension(*s)).collect::<Result<_, _>>()?,
        (None, None) => equal_parts(call, length)?,
    };
    let sum = sizes.iter().try_fold(0usize, |n, s| n.checked_add(*s));
    if sum != Some(length) || sizes.len() < call.wanted.len() {
        return Err(Fault::Invalid(format!(
            "an axis of {length} cannot be split into {sizes:?} for {} outputs",
            call.wanted.len()
        )));
    }
    let mut view = View::dense(array.dims());
    let mut outputs = Outputs::new();
    for (position, size) in sizes.iter().enumerate() {
        view.dims[axis] = *size;
        let part =
            if call.wants(position) { Some(Value::Array(view.copy(call, array, &view.dims)?)) } else { None };
        outputs.push(part);
        view.start += *size as isize * view.steps[axis];
    }
    Ok(outputs)
}

fn equal_parts(call: &Call, length: usize) -> Result<Vec<usize>, Fault> {
    let parts = dimension(call.attributes.int("num_outputs", call.wanted.len() as i64)?)?;
    if parts == 0 || parts > call.wanted.len() {
        return Err(Fault::Invalid(format!("{parts} parts for {} outputs", call.wanted.len())));
    }
    let each = length.div_ceil(parts);
    let last = length.checked_sub(each * (parts - 1));
    let equal = last == Some(each);
    match last {
        // Before opset 18 only equal parts are allowed.
        Some(last) if equal || call.opset >= 18 => {
            let mut sizes = vec![each; parts];
            sizes[parts - 1] = last;
            Ok(sizes)
        }
        _ => Err(Fault::Invalid(format!("an axis of {length} cannot be split into {parts} parts"))),
    }
}

/// The shape that two shapes are broadcast to, and how each is shown in it.
pub fn broadcast(left: &[usize], right: &[usize]) -> Result<(Dims, View, View), Fault> {
    let rank = left.len().max(right.len());
    let stretched = |dims: &[usize]| {
        let mut view = View::dense(dims);
        while view.dims.len() < rank {
            view.dims.insert(0, 1);
            view.steps.insert(0, 0);
        }
        view
    };
    let (mut a, mut b) = (stretched(left), stretched(right));
    for axis in 0..rank {
        match (a.dims[axis], b.dims[axis]) {
            (same, other) if same == other => {}
            (1, other) => (a.dims[axis], a.steps[axis]) = (other, 0),
            (other, 1) => (b.dims[axis], b.steps[axis]) = (other, 0),
            _ => return Err(Fault::Invalid(format!("shape {left:?} cannot be broadcast with {right:?}"))),
        }
    }
    Ok((a.dims.clone(), a, b))
}
