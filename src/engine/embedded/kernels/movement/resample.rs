//! The loops of Resize: weighted sums along one axis after the other, or elements picked.

use super::pad::fill;
use super::view::strides;
use super::words::{Word, with_word};
use crate::engine::array::{Array, Dims, Element, Storage};
use crate::engine::embedded::call::Call;
use crate::engine::fault::Fault;
use crate::ir::ElementType;
use half::{bf16, f16};
use rayon::prelude::*;

/// For every output along an axis `each` places of the input with their weights.
pub struct Taps {
    pub each: usize,
    pub places: Vec<usize>,
    pub weights: Vec<f64>,
}

/// The array that shows, along each axis, the places named; `None` is the extrapolated value.
pub fn nearest(
    call: &Call,
    array: &Array,
    sources: &[Vec<Option<usize>>],
    extrapolation: f32,
) -> Result<Array, Fault> {
    let dims: Dims = sources.iter().map(Vec::len).collect();
    let value = if sources.iter().flatten().any(Option::is_none) {
        constant(call, array, extrapolation)?
    } else {
        None
    };
    with_word!(array, W => {
        let count = call.elements(&dims, size_of::<W>())?;
        let value = value.as_ref().map(W::of).transpose()?.and_then(|v| v.first().cloned()).unwrap_or_default();
        let mut to = Vec::with_capacity(count);
        fill(sources, array.dims(), W::of(array)?, Some(0), &value, &mut to);
        W::array(array, &dims, to)
    })
}

/// A number as an element of the type of an array; `None` is the type's zero.
fn constant(call: &Call, like: &Array, value: f32) -> Result<Option<Array>, Fault> {
    Ok(Some(match like.storage() {
        _ if value == 0.0 => return Ok(None),
        Storage::F32(_) => Array::scalar(value),
        Storage::F64(_) => Array::scalar(f64::from(value)),
        Storage::F16(_) => Array::scalar(f16::from_f32(value)),
        Storage::BF16(_) => Array::scalar(bf16::from_f32(value)),
        Storage::I8(_) => Array::scalar(value as i8),
        Storage::U8(_) if like.element() == ElementType::UINT8 => Array::scalar(value as u8),
        Storage::I32(_) => Array::scalar(value as i32),
        Storage::I64(_) => Array::scalar(value as i64),
        _ => return call.unsupported(format_args!("an extrapolation value in {}", like.element())),
    }))
}

/// The array resampled along every axis that has taps. float32 and narrower floats are summed in float32 and rounded
/// once at the end, everything else in float64; integers are rounded to even and saturate.
pub fn resampled(
    call: &mut Call,
    array: Array,
    taps: &[Option<Taps>],
    outside: &[Vec<bool>],
    extrapolation: f32,
) -> Result<Array, Fault> {
    let dims: Dims = array.dims().into();
    let wanted: Dims = dims.iter().zip(outside).map(|(_, o)| o.len()).collect();
    macro_rules! through {
        ($wide:ty, $from:expr, $to:expr, $t:ty) => {{
            let element = array.element();
            let values: Vec<$wide> = array.view::<$t>()?.iter().map($from).collect();
            let values = along_all(call, values, &dims, taps, outside, extrapolation as $wide)?;
            let values: Vec<$t> = values.into_iter().map($to).collect();
            Ok(Array::of(element, &wanted, Element::store(values)))
        }};
    }
    match array.storage() {
        Storage::F32(_) => {
            let values = along_all(call, array.take::<f32>()?, &dims, taps, outside, extrapolation)?;
            Ok(Array::new(&wanted, values))
        }
        Storage::F64(_) => {
            let values =
                along_all(call, array.take::<f64>()?, &dims, taps, outside, f64::from(extrapolation))?;
            Ok(Array::new(&wanted, values))
        }
        Storage::F16(_) => through!(f32, |v| v.to_f32(), f16::from_f32, f16),
        Storage::BF16(_) => through!(f32, |v| v.to_f32(), bf16::from_f32, bf16),
        Storage::U8(_) if array.element() != ElementType::UINT8 => call.unsupported(array.element()),
        Storage::U8(_) => through!(f64, |v| f64::from(*v), |v: f64| v.round_ties_even() as u8, u8),
        Storage::I8(_) => through!(f64, |v| f64::from(*v), |v: f64| v.round_ties_even() as i8, i8),
        Storage::U16(_) => through!(f64, |v| f64::from(*v), |v: f64| v.round_ties_even() as u16, u16),
        Storage::I16(_) => through!(f64, |v| f64::from(*v), |v: f64| v.round_ties_even() as i16, i16),
        Storage::U32(_) => through!(f64, |v| f64::from(*v), |v: f64| v.round_ties_even() as u32, u32),
        Storage::I32(_) => through!(f64, |v| f64::from(*v), |v: f64| v.round_ties_even() as i32, i32),
        Storage::U64(_) => through!(f64, |v| *v as f64, |v: f64| v.round_ties_even() as u64, u64),
        Storage::I64(_) => through!(f64, |v| *v as f64, |v: f64| v.round_ties_even() as i64, i64),
        Storage::C64(_) | Storage::C128(_) | Storage::Strings(_) => call.unsupported(array.element()),
    }
}

/// Numbers that weighted sums are taken of.
trait Summed: Element + Copy + std::ops::AddAssign + std::ops::Mul<Output = Self> {
    fn from_weight(weight: f64) -> Self;
}

impl Summed for f32 {
    fn from_weight(weight: f64) -> f32 {
        weight as f32
    }
}

impl Summed for f64 {
    fn from_weight(weight: f64) -> f64 {
        weight
    }
}

fn along_all<T: Summed>(
    call: &mut Call,
    mut values: Vec<T>,
    dims: &[usize],
    taps: &[Option<Taps>],
    outside: &[Vec<bool>],
    extrapolation: T,
) -> Result<Vec<T>, Fault> {
    let mut dims: Dims = dims.into();
    for (axis, taps) in taps.iter().enumerate() {
        let Some(taps) = taps else { continue };
        let length = dims[axis];
        dims[axis] = outside[axis].len();
        let inner: usize = dims[axis + 1..].iter().product();
        let mut to = call.zeros::<T>(&dims)?;
        call.working_space = call.working_space.max(size_of_val(values.as_slice()) as u64);
        along(&values, length, inner, taps, &mut to);
        values = to;
    }
    if outside.iter().flatten().any(|o| *o) {
        let steps = strides(&dims);
        for (at, value) in values.iter_mut().enumerate() {
            if (0..dims.len()).any(|a| outside[a][at / steps[a] as usize % dims[a]]) {
                *value = extrapolation;
            }
        }
    }
    Ok(values)
}

/// Weighted sums along one axis, with `inner` elements between its neighbours.
fn along<T: Summed>(from: &[T], length: usize, inner: usize, taps: &Taps, to: &mut [T]) {
    let weights: Vec<T> = taps.weights.iter().map(|w| T::from_weight(*w)).collect();
    let outputs = taps.places.len() / taps.each;
    if outputs == 0 || inner == 0 {
        return;
    }
    let block = outputs * inner;
    let one = |(number, to): (usize, &mut [T])| {
        let from = &from[number * length * inner..(number + 1) * length * inner];
        let each = taps.places.chunks_exact(taps.each).zip(weights.chunks_exact(taps.each));
        if inner == 1 {
            for (to, (places, weights)) in to.iter_mut().zip(each) {
                let mut sum = T::default();
                for (place, weight) in places.iter().zip(weights) {
                    sum += from[*place] * *weight;
                }
                *to = sum;
            }
        } else {
            for (to, (places, weights)) in to.chunks_exact_mut(inner).zip(each) {
                for (place, weight) in places.iter().zip(weights) {
                    let row = &from[place * inner..(place + 1) * inner];
                    for (to, from) in to.iter_mut().zip(row) {
                        *to += *from * *weight;
                    }
                }
            }
        }
    };
    if to.len() >= 1 << 16 && rayon::current_num_threads() > 1 {
        to.par_chunks_mut(block).enumerate().for_each(one);
    } else {
        to.chunks_mut(block).enumerate().for_each(one);
    }
}
