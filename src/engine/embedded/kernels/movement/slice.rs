//! Parts of an array: Slice, Transpose and the operators that are a change of axes, ReverseSequence, CenterCropPad.

use super::view::{View, strides};
use super::words::{Word, with_word};
use super::{dimension, pad};
use crate::engine::array::{Array, Dims};
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::fault::Fault;

/// Slice; bounds and axes are attributes before opset 10, which also brings steps.
pub fn slice(call: &mut Call) -> Result<Outputs, Fault> {
    let list = |index: usize, name: &str| -> Result<Option<Vec<i64>>, Fault> {
        Ok(match call.optional(index)? {
            Some(array) => Some(array.integers()?),
            None => call.attributes.ints(name)?.map(<[i64]>::to_vec),
        })
    };
    let missing = || Fault::Invalid("starts or ends are missing".into());
    let starts = list(1, "starts")?.ok_or_else(missing)?;
    let ends = list(2, "ends")?.ok_or_else(missing)?;
    let axes = list(3, "axes")?.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = list(4, "steps")?.unwrap_or_else(|| vec![1; starts.len()]);
    if ends.len() != starts.len() || axes.len() != starts.len() || steps.len() != starts.len() {
        return Err(Fault::Invalid(format!(
            "{} starts, {} ends, {} axes and {} steps",
            starts.len(),
            ends.len(),
            axes.len(),
            steps.len()
        )));
    }
    let array = call.input(0)?;
    let mut view = View::dense(array.dims());
    let mut seen = vec![false; array.rank()];
    for (((start, end), axis), step) in starts.iter().zip(&ends).zip(&axes).zip(&steps) {
        let axis = call.axis(*axis, array.rank())?;
        if std::mem::replace(&mut seen[axis], true) {
            return Err(Fault::Invalid(format!("axis {axis} is named twice in {axes:?}")));
        }
        if *step == 0 {
            return Err(Fault::Invalid("a step is 0".into()));
        }
        let (first, count) = span(*start, *end, *step, view.dims[axis]);
        view.dims[axis] = count;
        if count > 0 {
            view.start += first as isize * view.steps[axis];
            // With one element the step is not taken, and may be larger than any place.
            view.steps[axis] *= if count > 1 { *step as isize } else { 1 };
        }
    }
    if view.dims.as_slice() == array.dims() && view.steps == strides(array.dims()) {
        return one(call.take(0)?);
    }
    one(view.copy(call, array, &view.dims)?)
}

/// The first place and the number of places that `start:end:step` takes of an axis, bounds clamped as NumPy does.
fn span(start: i64, end: i64, step: i64, length: usize) -> (usize, usize) {
    let length = length as i128;
    let bound = |at: i64| {
        let at = i128::from(at) + if at < 0 { length } else { 0 };
        if step > 0 { at.clamp(0, length) } else { at.clamp(-1, length - 1) }
    };
    let (start, end, step) = (bound(start), bound(end), i128::from(step));
    let distance = if step > 0 { end - start } else { start - end };
    let count = if distance <= 0 { 0 } else { (distance - 1) / step.abs() + 1 };
    (start.max(0) as usize, count as usize)
}

/// Transpose; without `perm` the axes are reversed.
pub fn transpose(call: &mut Call) -> Result<Outputs, Fault> {
    let array = call.input(0)?;
    let rank = array.rank();
    let order: Vec<usize> = match call.attributes.ints("perm")? {
        None => (0..rank).rev().collect(),
        Some(perm) => perm.iter().map(|p| call.axis(*p, rank)).collect::<Result<_, _>>()?,
    };
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if !sorted.into_iter().eq(0..rank) {
        return Err(Fault::Invalid(format!("perm {order:?} is no order of {rank} axes")));
    }
    let view = View::dense(array.dims()).permuted(&order);
    // Axes of one element may move without any element moving.
    let moved = order.iter().filter(|a| array.dims()[**a] != 1);
    if moved.clone().zip(moved.skip(1)).all(|(a, b)| a < b) {
        let dims = view.dims;
        return one(call.take(0)?.reshaped(&dims));
    }
    one(view.copy(call, array, &view.dims)?)
}

/// DepthToSpace; `mode` comes with opset 11, before it is DCR.
pub fn depth_to_space(call: &mut Call) -> Result<Outputs, Fault> {
    let (array, block, crd) = blocks(call)?;
    let [batch, depth, height, width] = *array.dims() else { return Err(not_an_image(array)) };
    if !depth.is_multiple_of(block * block) {
        return Err(Fault::Invalid(format!("a depth of {depth} is no multiple of {block} squared")));
    }
    let depth = depth / (block * block);
    let (split, order) = if crd {
        ([batch, depth, block, block, height, width], [0, 1, 4, 2, 5, 3])
    } else {
        ([batch, block, block, depth, height, width], [0, 3, 4, 1, 5, 2])
    };
    let dims = [batch, depth, height * block, width * block];
    one(View::dense(&split).permuted(&order).copy(call, array, &dims)?)
}

/// SpaceToDepth; `mode` comes with opset 28, before it is DCR.
pub fn space_to_depth(call: &mut Call) -> Result<Outputs, Fault> {
    let (array, block, crd) = blocks(call)?;
    let [batch, depth, height, width] = *array.dims() else { return Err(not_an_image(array)) };
    if !height.is_multiple_of(block) || !width.is_multiple_of(block) {
        return Err(Fault::Invalid(format!("{height} × {width} is no multiple of {block}")));
    }
    let split = [batch, depth, height / block, block, width / block, block];
    let order = if crd { [0, 1, 3, 5, 2, 4] } else { [0, 3, 5, 1, 2, 4] };
    let dims = [batch, depth * block * block, height / block, width / block];
    one(View::dense(&split).permuted(&order).copy(call, array, &dims)?)
}

fn blocks<'c>(call: &'c Call) -> Result<(&'c Array, usize, bool), Fault> {
    let block = dimension(call.attributes.int("blocksize", 0)?)?;
    if block == 0 || block > 1 << 16 {
        return Err(Fault::Invalid(format!("blocksize is {block}")));
    }
    let crd = match call.attributes.text("mode", "DCR")? {
        "DCR" => false,
        "CRD" => true,
        other => return Err(Fault::Invalid(format!("mode {other} is neither DCR nor CRD"))),
    };
    Ok((call.input(0)?, block, crd))
}

fn not_an_image(array: &Array) -> Fault {
    Fault::Invalid(format!("shape {:?} is not of rank 4", array.dims()))
}

/// ReverseSequence.
pub fn reverse_sequence(call: &mut Call) -> Result<Outputs, Fault> {
    let array = call.input(0)?;
    let lengths = call.input(1)?.integers()?;
    let batch_axis = call.axis(call.attributes.int("batch_axis", 1)?, array.rank())?;
    let time_axis = call.axis(call.attributes.int("time_axis", 0)?, array.rank())?;
    let dims = array.dims();
    let fits = |l: &i64| (0..=dims[time_axis] as i64).contains(l);
    if batch_axis == time_axis || lengths.len() != dims[batch_axis] || !lengths.iter().all(fits) {
        return Err(Fault::Invalid(format!(
            "lengths {lengths:?} do not fit shape {dims:?} with batch axis {batch_axis} and time axis {time_axis}"
        )));
    }
    with_word!(array, W => {
        let from = W::of(array)?;
        call.elements(dims, size_of::<W>())?;
        let mut to = from.to_vec();
        let steps = strides(dims);
        // Rows along the axes behind both named ones move as a whole.
        let inner: usize = dims[batch_axis.max(time_axis) + 1..].iter().product();
        let (batch_step, time_step) = (steps[batch_axis] as usize, steps[time_axis] as usize);
        if inner > 0 {
            for (row, to) in to.chunks_mut(inner).enumerate() {
                let place = row * inner;
                let time = place / time_step % dims[time_axis];
                let length = lengths[place / batch_step % dims[batch_axis]] as usize;
                if time < length {
                    let from_place = place - time * time_step + (length - 1 - time) * time_step;
                    to.clone_from_slice(&from[from_place..from_place + inner]);
                }
            }
        }
        one(W::array(array, dims, to)?)
    })
}

/// CenterCropPad: what is too long is cropped, what is too short padded with zeros, the odd element at the end.
pub fn center_crop_pad(call: &mut Call) -> Result<Outputs, Fault> {
    let array = call.input(0)?;
    let wanted = call.input(1)?.integers()?;
    let axes: Vec<usize> = match call.attributes.ints("axes")? {
        Some(axes) => axes.iter().map(|a| call.axis(*a, array.rank())).collect::<Result<_, _>>()?,
        None => (0..array.rank()).collect(),
    };
    if wanted.len() != axes.len() {
        return Err(Fault::Invalid(format!("{} sizes are given for {} axes", wanted.len(), axes.len())));
    }
    let mut crop = View::dense(array.dims());
    let mut pads: Vec<(i64, i64)> = vec![(0, 0); array.rank()];
    for (axis, want) in axes.into_iter().zip(&wanted) {
        let (have, want) = (array.dims()[axis], dimension(*want)?);
        if want < have {
            crop.start += ((have - want) / 2) as isize * crop.steps[axis];
            crop.dims[axis] = want;
            pads[axis] = (0, 0);
        } else {
            let missing = (want - have) as i64;
            pads[axis] = (missing / 2, missing - missing / 2);
        }
    }
    let dims: Dims = crop.dims.clone();
    let cropped = crop.copy(call, array, &dims)?;
    one(pad::padded(call, &cropped, &pads, pad::Mode::Constant, None)?)
}

#[cfg(test)]
mod tests {
    use super::span;

    #[test]
    fn bounds_are_clamped_as_numpy_does() {
        assert_eq!(span(0, i64::MAX, 1, 5), (0, 5));
        assert_eq!(span(-1, i64::MIN, -1, 5), (4, 5));
        assert_eq!(span(10, -10, -2, 5), (4, 3));
        assert_eq!(span(-100, 100, 3, 5), (0, 2));
        assert_eq!(span(3, 3, 1, 5).1, 0);
        assert_eq!(span(0, 5, -1, 5).1, 0);
        assert_eq!(span(i64::MAX, i64::MIN, i64::MIN, 5), (4, 1));
        assert_eq!(span(0, -1, -1, 0).1, 0);
    }
}
