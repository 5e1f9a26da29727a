//! The two precisions of the family: float32, and float64 for wide runs and float64 scales.

use crate::engine::array::{Array, Element, Storage};
use crate::engine::fault::Fault;
use crate::engine::narrow;
use crate::ir::ElementType;
use half::{bf16, f16};
use std::borrow::Cow;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// float32 or float64.
pub trait Real:
    Element
    + Copy
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// Rounded once.
    fn of(value: f64) -> Self;
    /// From an integer, rounded once.
    fn int(value: i32) -> Self;
    fn wide(self) -> f64;
    /// Clamped to `low`…`high` (integers within ±2^21; NaN becomes `low`) and rounded, ties to even.
    fn nearest(self, low: Self, high: Self) -> i32;
    fn exp(self) -> Self;
}

impl Real for f32 {
    fn of(value: f64) -> f32 {
        value as f32
    }

    fn int(value: i32) -> f32 {
        value as f32
    }

    fn wide(self) -> f64 {
        f64::from(self)
    }

    #[inline(always)]
    fn nearest(self, low: f32, high: f32) -> i32 {
        // At 1.5 · 2^23 neighbours are 1 apart, so the addition itself rounds; the integer is in the low bits.
        const SHIFT: f32 = 12_582_912.0;
        let clamped = if self > low { self } else { low };
        let clamped = if clamped < high { clamped } else { high };
        ((clamped + SHIFT).to_bits() as i32).wrapping_sub(SHIFT.to_bits() as i32)
    }

    fn exp(self) -> f32 {
        f32::exp(self)
    }
}

impl Real for f64 {
    fn of(value: f64) -> f64 {
        value
    }

    fn int(value: i32) -> f64 {
        f64::from(value)
    }

    fn wide(self) -> f64 {
        self
    }

    #[inline(always)]
    fn nearest(self, low: f64, high: f64) -> i32 {
        self.max(low).min(high).round_ties_even() as i32
    }

    fn exp(self) -> f64 {
        f64::exp(self)
    }
}

/// Elements of a floating-point, int32 or float8e8m0 array, each rounded once.
pub fn reals<R: Real>(array: &Array) -> Result<Cow<'_, [R]>, Fault> {
    if let Some(same) = R::view(array.storage()) {
        return Ok(Cow::Borrowed(same));
    }
    Ok(Cow::Owned(match array.storage() {
        Storage::F32(v) => v.iter().map(|v| R::of(f64::from(*v))).collect(),
        Storage::F64(v) => v.iter().map(|v| R::of(*v)).collect(),
        Storage::F16(v) => v.iter().map(|v| R::of(v.to_f64())).collect(),
        Storage::BF16(v) => v.iter().map(|v| R::of(v.to_f64())).collect(),
        Storage::I32(v) => v.iter().map(|v| R::int(*v)).collect(),
        Storage::U8(v) if array.element() == ElementType::FLOAT8E8M0 => {
            v.iter().map(|v| R::of(narrow::number(ElementType::FLOAT8E8M0, *v))).collect()
        }
        _ => return Err(Fault::element(array.element())),
    }))
}

/// The only element, or an error that names what it is of.
pub fn single<R: Real>(array: &Array, what: &str) -> Result<R, Fault> {
    match reals::<R>(array)?.as_ref() {
        [one] => Ok(*one),
        many => Err(Fault::Invalid(format!("{what} needs one element, not {}", many.len()))),
    }
}

/// An array of a floating-point type from numbers of the working precision, rounded once more where it is narrower; in
/// float64 (wide runs) it stays float64.
pub fn narrowed<R: Real>(element: ElementType, dims: &[usize], values: Vec<R>) -> Result<Array, Fault> {
    if R::TYPE == ElementType::DOUBLE || R::TYPE == element {
        return Ok(Array::new(dims, values));
    }
    Ok(match element {
        ElementType::FLOAT16 => {
            Array::new(dims, values.iter().map(|v| f16::from_f64(v.wide())).collect::<Vec<_>>())
        }
        ElementType::BFLOAT16 => {
            Array::new(dims, values.iter().map(|v| bf16::from_f64(v.wide())).collect::<Vec<_>>())
        }
        ElementType::DOUBLE => Array::new(dims, values.iter().map(|v| v.wide()).collect::<Vec<_>>()),
        other => return Err(Fault::element(other)),
    })
}
