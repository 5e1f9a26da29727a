//! Kernels that are written once for all floating-point types: float64 in its own arithmetic, the others in float32 and
//! rounded once at the end.

use crate::engine::Fault;
use crate::engine::array::{Array, Storage};
use crate::engine::embedded::products::Factor;
use crate::ir::ElementType;
use half::{bf16, f16};
use std::borrow::Cow;
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub};

/// What a kernel computes in: f32 or f64.
pub trait Real:
    Factor
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + MulAssign
{
    const NEG_INFINITY: Self;
    /// The nearest number.
    fn from_f64(value: f64) -> Self;
    /// The same number in float64.
    fn wide(self) -> f64;
    /// Elements of an array of any floating-point type; not copied when they are of this type.
    fn load(array: &Array) -> Result<Cow<'_, [Self]>, Fault>;
    /// Elements of an array of any floating-point type, not copied when they are of this type and nobody else has them.
    fn take_from(array: Array) -> Result<Vec<Self>, Fault>;
    /// An array of a floating-point element type, each element rounded once.
    fn array(element: ElementType, dims: &[usize], values: Vec<Self>) -> Array;

    fn abs(self) -> Self;
    fn exp(self) -> Self;
    fn ln_1p(self) -> Self;
    fn tanh(self) -> Self;
    fn is_nan(self) -> bool;
}

macro_rules! reals {
    ($($real:ident, $variant:ident, $other:ident, $half:ident;)*) => {
        $(impl Real for $real {
            const NEG_INFINITY: Self = $real::NEG_INFINITY;

            #[inline]
            fn from_f64(value: f64) -> Self {
                value as $real
            }

            #[inline]
            fn wide(self) -> f64 {
                self as f64
            }

            fn load(array: &Array) -> Result<Cow<'_, [Self]>, Fault> {
                Ok(match array.storage() {
                    Storage::$variant(v) => Cow::Borrowed(v.as_slice()),
                    Storage::$other(v) => Cow::Owned(v.iter().map(|v| *v as $real).collect()),
                    Storage::F16(v) => Cow::Owned(v.iter().map(|v| v.to_f32() as $real).collect()),
                    Storage::BF16(v) => Cow::Owned(v.iter().map(|v| v.to_f32() as $real).collect()),
                    _ => return Err(Fault::element(array.element())),
                })
            }

            fn take_from(array: Array) -> Result<Vec<Self>, Fault> {
                match array.storage() {
                    Storage::$variant(_) => array.take::<$real>(),
                    _ => Ok(Self::load(&array)?.into_owned()),
                }
            }

            fn array(element: ElementType, dims: &[usize], values: Vec<Self>) -> Array {
                match element {
                    ElementType::FLOAT16 => {
                        Array::new(dims, values.into_iter().map(f16::$half).collect::<Vec<_>>())
                    }
                    ElementType::BFLOAT16 => {
                        Array::new(dims, values.into_iter().map(bf16::$half).collect::<Vec<_>>())
                    }
                    e if e == <Self as crate::engine::array::Element>::TYPE => Array::new(dims, values),
                    ElementType::DOUBLE => {
                        Array::new(dims, values.into_iter().map(|v| v as f64).collect::<Vec<_>>())
                    }
                    _ => Array::new(dims, values.into_iter().map(|v| v as f32).collect::<Vec<_>>()),
                }
            }

            #[inline]
            fn abs(self) -> Self {
                self.abs()
            }

            #[inline]
            fn exp(self) -> Self {
                self.exp()
            }

            #[inline]
            fn ln_1p(self) -> Self {
                self.ln_1p()
            }

            #[inline]
            fn tanh(self) -> Self {
                self.tanh()
            }

            #[inline]
            fn is_nan(self) -> bool {
                self.is_nan()
            }
        })*
    };
}

reals! {
    f32, F32, F64, from_f32;
    f64, F64, F32, from_f64;
}

/// True when an array is to be computed in float64.
pub fn is_double(array: &Array) -> bool {
    matches!(array.storage(), Storage::F64(_))
}

/// Runs a kernel for the arithmetic of one of the call's inputs: `in_real!(call, index, kernel)` calls `kernel::<T>(call)`.
macro_rules! in_real {
    ($call:expr, $index:expr, $kernel:ident $(, $more:expr)*) => {
        if $crate::engine::embedded::kernels::real::is_double($call.input($index)?) {
            $kernel::<f64>($call $(, $more)*)
        } else {
            $kernel::<f32>($call $(, $more)*)
        }
    };
}
pub(crate) use in_real;

/// Sum in an order that does not depend on the machine: sixteen partial sums within a block, the blocks in float64.
#[inline]
pub fn sum<T: Real>(values: &[T], of: impl Fn(T) -> T) -> f64 {
    const LANES: usize = 16;
    let mut total = 0.0;
    for block in values.chunks(4096) {
        let mut lanes = [T::default(); LANES];
        let (whole, rest) = block.as_chunks::<LANES>();
        for chunk in whole {
            lanes.iter_mut().zip(chunk).for_each(|(lane, v)| *lane += of(*v));
        }
        lanes.iter_mut().zip(rest).for_each(|(lane, v)| *lane += of(*v));
        total += lanes.iter().map(|v| v.wide()).sum::<f64>();
    }
    total
}
