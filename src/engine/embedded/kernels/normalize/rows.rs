//! Normalizations over the elements of a row: LayerNormalization, RMSNormalization, InstanceNormalization,
//! GroupNormalization, MeanVarianceNormalization.

use super::super::real::{Real, in_real, sum};
use crate::engine::Fault;
use crate::engine::array::Array;
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::ir::ElementType;
use rayon::prelude::*;
use smallvec::smallvec;

/// Calls `change` with every row and its number, on several threads when that pays.
fn each_row<T: Real>(
    call: &Call,
    values: &mut [T],
    length: usize,
    change: impl Fn(usize, &mut [T]) + Sync + Send,
) {
    if call.threads > 1 && values.len() > 1 << 16 {
        values.par_chunks_mut(length.max(1)).enumerate().for_each(|(i, row)| change(i, row));
    } else {
        values.chunks_mut(length.max(1)).enumerate().for_each(|(i, row)| change(i, row));
    }
}

/// Takes the mean off a row and divides it by its standard deviation; gives the mean and what it was multiplied by.
fn standardize<T: Real>(row: &mut [T], epsilon: f64) -> (f64, f64) {
    let count = row.len() as f64;
    let mean = sum(row, |v| v) / count;
    let offset = T::from_f64(mean);
    row.iter_mut().for_each(|v| *v = *v - offset);
    let factor = 1.0 / (sum(row, |v| v * v) / count + epsilon).sqrt();
    let scale = T::from_f64(factor);
    row.iter_mut().for_each(|v| *v *= scale);
    (mean, factor)
}

/// Splits a shape before an axis: rows, and the length of each.
fn rows(call: &Call, dims: &[usize]) -> Result<(usize, usize, usize), Fault> {
    let axis = call.axis(call.attributes.int("axis", -1)?, dims.len())?;
    Ok((axis, dims[..axis].iter().product(), dims[axis..].iter().product()))
}

/// An array that is broadcast to another shape: where each row of that shape starts in it, and its elements.
struct Operand<T> {
    values: Vec<T>,
}

impl<T: Real> Operand<T> {
    /// The elements, spread to the row when the array has no more axes than the row, else to the whole shape.
    fn of(call: &Call, array: &Array, dims: &[usize], axis: usize) -> Result<Operand<T>, Fault> {
        let values = T::load(array)?;
        let own = array.dims();
        let unfit = || Fault::Invalid(format!("shape {own:?} cannot be broadcast to {dims:?}"));
        if own.len() > dims.len() {
            return Err(unfit());
        }
        // Leading axes of size 1 say nothing.
        let used = own.iter().position(|d| *d != 1).map_or(0, |first| own.len() - first);
        let target = if used <= dims.len() - axis { &dims[axis..] } else { dims };
        let own = &own[own.len() - used..];
        if own == target {
            return Ok(Operand { values: values.into_owned() });
        }
        let lead = target.len() - own.len();
        if own.iter().zip(&target[lead..]).any(|(o, t)| o != t && *o != 1) {
            return Err(unfit());
        }
        let count = call.elements(target, size_of::<T>())?;
        let mut spread = Vec::with_capacity(count);
        let mut index = vec![0usize; target.len()];
        for _ in 0..count {
            let place = own.iter().zip(&index[lead..]).fold(0, |place, (o, i)| match *o {
                1 => place,
                o => place * o + i,
            });
            spread.push(values[place]);
            for axis in (0..target.len()).rev() {
                index[axis] += 1;
                if index[axis] < target[axis] {
                    break;
                }
                index[axis] = 0;
            }
        }
        Ok(Operand { values: spread })
    }

    fn row(&self, row: usize, length: usize) -> &[T] {
        if self.values.len() == length { &self.values } else { &self.values[row * length..][..length] }
    }
}

/// LayerNormalization; scale and bias are broadcast to the input. Float32 and narrower are computed in float32, whatever
/// `stash_type` says, which gives the type of the second and third output.
pub fn layer_normalization(call: &mut Call) -> Result<Outputs, Fault> {
    in_real!(call, 0, layer)
}

fn layer<T: Real>(call: &mut Call) -> Result<Outputs, Fault> {
    let epsilon = f64::from(call.attributes.float("epsilon", 1e-5)?);
    let stash = call.attributes.element("stash_type")?.unwrap_or(ElementType::FLOAT);
    let x = call.take(0)?;
    let (element, dims) = (x.element(), x.dims().to_vec());
    let (axis, count, length) = rows(call, &dims)?;
    let scale = Operand::<T>::of(call, call.input(1)?, &dims, axis)?;
    let bias = call.optional(2)?.map(|b| Operand::<T>::of(call, b, &dims, axis)).transpose()?;
    let mut values = T::take_from(x)?;
    let change = |index: usize, row: &mut [T]| {
        let statistics = standardize(row, epsilon);
        let scale = scale.row(index, length);
        match &bias {
            Some(bias) => {
                let lines = row.iter_mut().zip(scale).zip(bias.row(index, length));
                lines.for_each(|((v, s), b)| *v = *v * *s + *b);
            }
            None => row.iter_mut().zip(scale).for_each(|(v, s)| *v *= *s),
        }
        statistics
    };
    if !call.wants(1) && !call.wants(2) {
        each_row(call, &mut values, length, |index, row| {
            change(index, row);
        });
        return one(T::array(element, &dims, values));
    }
    let mut means = call.vec::<f64>(&[count])?;
    let mut factors = call.vec::<f64>(&[count])?;
    for (index, row) in values.chunks_mut(length.max(1)).enumerate() {
        let (mean, factor) = change(index, row);
        means.push(mean);
        factors.push(factor);
    }
    if length == 0 {
        (means, factors) = (vec![f64::NAN; count], vec![f64::NAN; count]);
    }
    let mut reduced = dims[..axis].to_vec();
    reduced.resize(dims.len(), 1);
    let stash = if call.wide { ElementType::DOUBLE } else { stash };
    Ok(smallvec![
        Some(T::array(element, &dims, values).into()),
        Some(f64::array(stash, &reduced, means).into()),
        Some(f64::array(stash, &reduced, factors).into()),
    ])
}

/// RMSNormalization; the scale is broadcast to the input and gives the type of the output.
pub fn rms_normalization(call: &mut Call) -> Result<Outputs, Fault> {
    in_real!(call, 0, root_mean_square)
}

fn root_mean_square<T: Real>(call: &mut Call) -> Result<Outputs, Fault> {
    let epsilon = f64::from(call.attributes.float("epsilon", 1e-5)?);
    let x = call.take(0)?;
    let dims = x.dims().to_vec();
    let (axis, _, length) = rows(call, &dims)?;
    let element = call.input(1)?.element();
    let scale = Operand::<T>::of(call, call.input(1)?, &dims, axis)?;
    let mut values = T::take_from(x)?;
    each_row(call, &mut values, length, |index, row| {
        let factor = T::from_f64(1.0 / (sum(row, |v| v * v) / length as f64 + epsilon).sqrt());
        row.iter_mut().zip(scale.row(index, length)).for_each(|(v, s)| *v = *v * factor * *s);
    });
    one(T::array(element, &dims, values))
}

/// InstanceNormalization (all opsets).
pub fn instance_normalization(call: &mut Call) -> Result<Outputs, Fault> {
    in_real!(call, 0, groups, true)
}

/// GroupNormalization: scale and bias for each group before opset 21, for each channel since.
pub fn group_normalization(call: &mut Call) -> Result<Outputs, Fault> {
    in_real!(call, 0, groups, false)
}

fn groups<T: Real>(call: &mut Call, instance: bool) -> Result<Outputs, Fault> {
    let epsilon = f64::from(call.attributes.float("epsilon", 1e-5)?);
    let x = call.take(0)?;
    let (element, dims) = (x.element(), x.dims().to_vec());
    let [_, channels, space @ ..] = dims.as_slice() else {
        return Err(Fault::Invalid(format!("an input of shape {dims:?} has no channels")));
    };
    let groups = match instance {
        true => *channels,
        false => match call.attributes.optional_int("num_groups")?.map(usize::try_from) {
            Some(Ok(groups)) if groups > 0 && channels % groups == 0 => groups,
            other => {
                return Err(Fault::Invalid(format!(
                    "num_groups={other:?} does not divide {channels} channels"
                )));
            }
        },
    };
    let plane = space.iter().product::<usize>();
    let each = if instance || call.opset >= 21 { *channels } else { groups };
    let parameter = |index: usize| -> Result<Vec<T>, Fault> {
        let array = call.input(index)?;
        if array.dims() != [each] {
            return Err(Fault::Invalid(format!(
                "input {index} has shape {:?} where [{each}] is needed",
                array.dims()
            )));
        }
        Ok(T::load(array)?.into_owned())
    };
    let (scale, bias) = (parameter(1)?, parameter(2)?);
    let mut values = T::take_from(x)?;
    let together = channels / groups.max(1);
    let length = together * plane;
    each_row(call, &mut values, length, |index, row| {
        standardize(row, epsilon);
        let group = index % groups;
        for (i, plane) in row.chunks_mut(plane.max(1)).enumerate() {
            let at = if each == *channels { group * together + i } else { group };
            let (scale, bias) = (scale[at], bias[at]);
            plane.iter_mut().for_each(|v| *v = *v * scale + bias);
        }
    });
    one(T::array(element, &dims, values))
}

/// MeanVarianceNormalization: over any axes; 1e-9 is added to the standard deviation, as in the function that defines it.
pub fn mean_variance_normalization(call: &mut Call) -> Result<Outputs, Fault> {
    in_real!(call, 0, mean_variance)
}

fn mean_variance<T: Real>(call: &mut Call) -> Result<Outputs, Fault> {
    let x = call.take(0)?;
    let (element, dims) = (x.element(), x.dims().to_vec());
    let axes = call.attributes.ints("axes")?.unwrap_or(&[0, 2, 3]);
    let mut reduced = vec![false; dims.len()];
    for axis in axes {
        reduced[call.axis(*axis, dims.len())?] = true;
    }
    let mut values = T::take_from(x)?;
    // The set that each element belongs to: its place along the axes that stay.
    let kept = dims.iter().zip(&reduced).filter(|(_, r)| !**r).map(|(d, _)| *d).product::<usize>();
    let mut sets = call.vec::<i64>(&dims)?;
    let mut index = vec![0usize; dims.len()];
    for _ in 0..values.len() {
        let set = (0..dims.len()).filter(|a| !reduced[*a]).fold(0, |set, a| set * dims[a] + index[a]);
        sets.push(set as i64);
        for axis in (0..dims.len()).rev() {
            index[axis] += 1;
            if index[axis] < dims[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    let count = (values.len() / kept.max(1)) as f64;
    let mut means = vec![0.0; kept];
    for (v, set) in values.iter().zip(&sets) {
        means[*set as usize] += v.wide() / count;
    }
    let mut variances = vec![0.0; kept];
    for (v, set) in values.iter().zip(&sets) {
        let off = v.wide() - means[*set as usize];
        variances[*set as usize] += off * off / count;
    }
    for (v, set) in values.iter_mut().zip(&sets) {
        let off = v.wide() - means[*set as usize];
        *v = T::from_f64(off / (variances[*set as usize].sqrt() + 1e-9));
    }
    call.working_space = (sets.len() * size_of::<i64>()) as u64;
    one(T::array(element, &dims, values))
}
