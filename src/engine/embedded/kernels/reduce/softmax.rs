//! Softmax, LogSoftmax, Hardmax.

use super::layout::Rows;
use crate::engine::array::{Array, Element, Storage};
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::embedded::kernels::elementwise::number::Half;
use crate::engine::embedded::vector_math;
use crate::engine::fault::Fault;
use half::{bf16, f16};

/// Softmax.
pub fn softmax(call: &mut Call) -> Result<Outputs, Fault> {
    normalised(call, &vector_math::softmax, &|row| {
        let most = largest(row);
        row.iter_mut().for_each(|x| *x = (*x - most).exp());
        let sum: f64 = row.iter().sum();
        row.iter_mut().for_each(|x| *x /= sum);
    })
}

/// LogSoftmax.
pub fn log_softmax(call: &mut Call) -> Result<Outputs, Fault> {
    normalised(call, &vector_math::log_softmax, &|row| {
        let most = largest(row);
        let sum: f64 = row.iter().map(|x| (*x - most).exp()).sum();
        row.iter_mut().for_each(|x| *x = *x - most - sum.ln());
    })
}

/// Hardmax: 1 for the first of the largest, 0 for the others.
pub fn hardmax(call: &mut Call) -> Result<Outputs, Fault> {
    fn first<T: PartialOrd + Copy>(row: &mut [T], zero: T, one: T) {
        let mut best = 0;
        for (i, x) in row.iter().enumerate() {
            if *x > row[best] {
                best = i;
            }
        }
        row.fill(zero);
        if let Some(x) = row.get_mut(best) {
            *x = one;
        }
    }
    normalised(call, &|row| first(row, 0.0, 1.0), &|row| first(row, 0.0, 1.0))
}

fn largest(row: &[f64]) -> f64 {
    row.iter().copied().fold(f64::NEG_INFINITY, |a, b| if a > b || a.is_nan() { a } else { b })
}

/// Rows along an axis changed as a whole. Before opset 13 all axes from `axis` on, by default 1, are one row.
fn normalised(
    call: &mut Call,
    single: &(dyn Fn(&mut [f32]) + Sync),
    double: &(dyn Fn(&mut [f64]) + Sync),
) -> Result<Outputs, Fault> {
    let array = call.take(0)?;
    let rank = array.rank();
    let rows = if call.opset < 13 {
        let axis = call.attributes.int("axis", 1)?;
        let axis = if axis == rank as i64 { rank } else { call.axis(axis, rank)? };
        let (outer, length) = array.dims().split_at(axis);
        Rows { outer: outer.iter().product(), length: length.iter().product(), inner: 1 }
    } else {
        let axis = call.attributes.int("axis", -1)?;
        match rank {
            0 => Rows { outer: 1, length: 1, inner: 1 },
            _ => Rows::along(array.dims(), call.axis(axis, rank)?),
        }
    };
    match array.storage() {
        Storage::F32(_) => changed(call, array, rows, single),
        Storage::F64(_) => changed(call, array, rows, double),
        Storage::F16(_) => halves::<f16>(call, &array, rows, single),
        Storage::BF16(_) => halves::<bf16>(call, &array, rows, single),
        _ => call.unsupported(array.element()),
    }
}

fn changed<T: Element + Copy>(
    call: &mut Call,
    array: Array,
    rows: Rows,
    f: &(dyn Fn(&mut [T]) + Sync),
) -> Result<Outputs, Fault> {
    let element = array.element();
    let (_, dims, storage) = array.into_parts();
    let mut elements = match T::alone(storage).ok_or_else(|| Fault::element(element))? {
        Ok(own) => own,
        Err(shared) => {
            let mut copy = call.vec::<T>(&dims)?;
            if rows.inner == 1 && call.threads == 1 && rows.length > 0 {
                // Row by row, while it is in the nearest cache.
                for row in shared.chunks(rows.length) {
                    copy.extend_from_slice(row);
                    let from = copy.len() - row.len();
                    f(&mut copy[from..]);
                }
                return one(Array::new(&dims, copy));
            }
            copy.extend_from_slice(&shared);
            copy
        }
    };
    rows.change(call, &mut elements, f);
    one(Array::new(&dims, elements))
}

fn halves<H: Half>(
    call: &mut Call,
    array: &Array,
    rows: Rows,
    f: &(dyn Fn(&mut [f32]) + Sync),
) -> Result<Outputs, Fault> {
    let mut wide = call.vec::<f32>(array.dims())?;
    wide.extend(array.view::<H>()?.iter().map(|x| x.widen()));
    rows.change(call, &mut wide, f);
    call.working_space += size_of_val(wide.as_slice()) as u64;
    let mut elements = call.vec::<H>(array.dims())?;
    elements.extend(wide.iter().map(|x| H::round(*x)));
    one(Array::new(array.dims(), elements))
}
