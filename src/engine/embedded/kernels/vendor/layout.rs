//! Operators that com.microsoft had before the standard did, and a matrix inverse.

use crate::engine::array::{Array, Value};
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::embedded::kernels::real::{Real, in_real};
use crate::engine::embedded::kernels::standard;
use crate::engine::fault::Fault;
use smallvec::smallvec;
use std::collections::BTreeMap;

/// Runs the standard's operator of the same name, which means the same from an opset on.
fn as_standard(call: &mut Call, name: &'static str, opset: i64) -> Result<Outputs, Fault> {
    call.opset = opset;
    match standard(name) {
        Some(kernel) => (kernel.run)(call),
        None => call.unsupported("any type"),
    }
}

/// Pad (com.microsoft 1): the standard's of opset 13.
pub fn pad(call: &mut Call) -> Result<Outputs, Fault> {
    as_standard(call, "Pad", 13)
}

/// Trilu (com.microsoft 1): the standard's of opset 14.
pub fn trilu(call: &mut Call) -> Result<Outputs, Fault> {
    as_standard(call, "Trilu", 14)
}

/// ExpandDims (com.microsoft 1): one more axis of size 1.
pub fn expand_dims(call: &mut Call) -> Result<Outputs, Fault> {
    let x = call.take(0)?;
    let axis = match call.input(1)?.integers()?.as_slice() {
        [axis] => call.axis(*axis, x.rank() + 1)?,
        many => return Err(Fault::Invalid(format!("{} axes are given, not one", many.len()))),
    };
    let mut dims = x.dims().to_vec();
    dims.insert(axis, 1);
    one(x.reshaped(&dims))
}

/// Unique (com.microsoft 1) of a vector: in order of first occurrence, with where each went and how often it occurs.
pub fn unique(call: &mut Call) -> Result<Outputs, Fault> {
    fn run<T: Real>(call: &mut Call) -> Result<Outputs, Fault> {
        let x = call.input(0)?;
        if x.rank() != 1 {
            return Err(Fault::Invalid(format!("shape {:?} is no vector", x.dims())));
        }
        let mut found: BTreeMap<u64, usize> = BTreeMap::new();
        let (mut values, mut counts, mut places) = (Vec::new(), Vec::new(), Vec::with_capacity(x.len()));
        for v in T::load(x)?.iter() {
            // Both zeros are one value.
            let key = if *v == T::default() { 0 } else { v.wide().to_bits() };
            let place = *found.entry(key).or_insert_with(|| {
                values.push(*v);
                counts.push(0i64);
                values.len() - 1
            });
            counts[place] += 1;
            places.push(place as i64);
        }
        let values = T::array(x.element(), &[values.len()], values);
        Ok(smallvec![
            Some(Value::Array(values)),
            Some(Value::Array(Array::ints(places))),
            Some(Value::Array(Array::ints(counts)))
        ])
    }
    in_real!(call, 0, run)
}

/// Inverse (com.microsoft 1) of square matrices, by elimination in float64 with the largest pivot of a column.
pub fn inverse(call: &mut Call) -> Result<Outputs, Fault> {
    fn run<T: Real>(call: &mut Call) -> Result<Outputs, Fault> {
        let x = call.input(0)?;
        let [.., n, m] = *x.dims() else { return Err(Fault::Invalid("there is no matrix".into())) };
        if n != m {
            return Err(Fault::Invalid(format!("a matrix of {n} x {m} has no inverse")));
        }
        let mut out = call.vec::<T>(x.dims())?;
        let space = call.elements(&[n, n], 2 * size_of::<f64>())? * 2 * size_of::<f64>();
        let values = T::load(x)?;
        for matrix in values.chunks((n * n).max(1)) {
            let mut left: Vec<f64> = matrix.iter().map(|v| v.wide()).collect();
            let mut right = vec![0.0; n * n];
            (0..n).for_each(|i| right[i * n + i] = 1.0);
            for column in 0..n {
                let pivot = (column..n)
                    .max_by(|a, b| left[a * n + column].abs().total_cmp(&left[b * n + column].abs()))
                    .filter(|row| left[row * n + column] != 0.0);
                let Some(pivot) = pivot else { return Err(Fault::Invalid("a matrix has no inverse".into())) };
                for k in 0..n {
                    left.swap(column * n + k, pivot * n + k);
                    right.swap(column * n + k, pivot * n + k);
                }
                let factor = 1.0 / left[column * n + column];
                for k in 0..n {
                    left[column * n + k] *= factor;
                    right[column * n + k] *= factor;
                }
                for row in (0..n).filter(|row| *row != column) {
                    let factor = left[row * n + column];
                    for k in 0..n {
                        left[row * n + k] -= factor * left[column * n + k];
                        right[row * n + k] -= factor * right[column * n + k];
                    }
                }
            }
            out.extend(right.into_iter().map(T::from_f64));
        }
        let inverses = T::array(x.element(), x.dims(), out);
        call.working_space = space as u64;
        one(inverses)
    }
    in_real!(call, 0, run)
}
