//! Activations with parameters.

use super::binary::{Arithmetic, compute, operands};
use super::number::Integer;
use super::produce::convert;
use super::special;
use super::unary::{float_map, floats, unit, unit64};
use crate::engine::array::{Array, Dims};
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::embedded::vector_math::{self, each};
use crate::engine::fault::Fault;
use crate::ir::ElementType;

/// LeakyRelu.
pub fn leaky_relu(call: &mut Call) -> Result<Outputs, Fault> {
    let alpha = call.attributes.float("alpha", 0.01)?;
    let wide = f64::from(alpha);
    floats(
        call,
        &|xs| {
            each(
                xs,
                #[inline(always)]
                |x| if x < 0.0 { alpha * x } else { x },
            )
        },
        &|x| if x < 0.0 { wide * x } else { x },
    )
}

/// ThresholdedRelu: 0 where not above the threshold.
pub fn thresholded_relu(call: &mut Call) -> Result<Outputs, Fault> {
    let alpha = call.attributes.float("alpha", 1.0)?;
    let wide = f64::from(alpha);
    floats(
        call,
        &|xs| {
            each(
                xs,
                #[inline(always)]
                |x| if x > alpha { x } else { 0.0 },
            )
        },
        &|x| if x > wide { x } else { 0.0 },
    )
}

/// Elu.
pub fn elu(call: &mut Call) -> Result<Outputs, Fault> {
    let alpha = call.attributes.float("alpha", 1.0)?;
    exponential_unit(call, alpha, 1.0, 1.0)
}

/// Selu; the numbers of opsets before 6 were shorter.
pub fn selu(call: &mut Call) -> Result<Outputs, Fault> {
    let (alpha, gamma) = match call.opset {
        ..6 => (1.6732, 1.0507),
        _ => (1.673_263_2, 1.050_701),
    };
    let alpha = call.attributes.float("alpha", alpha)?;
    let gamma = call.attributes.float("gamma", gamma)?;
    exponential_unit(call, alpha, gamma, 1.0)
}

/// Celu: Elu in which the argument of the exponential is divided by alpha.
pub fn celu(call: &mut Call) -> Result<Outputs, Fault> {
    let alpha = call.attributes.float("alpha", 1.0)?;
    exponential_unit(call, alpha, 1.0, alpha)
}

/// gamma x above 0, gamma alpha (e^(x / scale) - 1) below.
fn exponential_unit(call: &mut Call, alpha: f32, gamma: f32, scale: f32) -> Result<Outputs, Fault> {
    let [alpha64, gamma64, scale64] = [alpha, gamma, scale].map(f64::from);
    floats(
        call,
        &|xs| {
            each(
                xs,
                #[inline(always)]
                |x| {
                    let below = alpha * vector_math::exp_m1(x / scale);
                    gamma * if x > 0.0 { x } else { below }
                },
            )
        },
        &|x| gamma64 * if x > 0.0 { x } else { alpha64 * (x / scale64).exp_m1() },
    )
}

/// HardSigmoid.
pub fn hard_sigmoid(call: &mut Call) -> Result<Outputs, Fault> {
    let alpha = call.attributes.float("alpha", 0.2)?;
    let beta = call.attributes.float("beta", 0.5)?;
    let (alpha64, beta64) = (f64::from(alpha), f64::from(beta));
    floats(
        call,
        &|xs| {
            each(
                xs,
                #[inline(always)]
                |x| unit(alpha * x + beta),
            )
        },
        &|x| unit64(alpha64 * x + beta64),
    )
}

/// Swish.
pub fn swish(call: &mut Call) -> Result<Outputs, Fault> {
    let alpha = call.attributes.float("alpha", 1.0)?;
    let wide = f64::from(alpha);
    floats(
        call,
        &|xs| {
            each(
                xs,
                #[inline(always)]
                |x| x * vector_math::sigmoid(alpha * x),
            )
        },
        &|x| x / (1.0 + (-wide * x).exp()),
    )
}

/// Gelu, exact or by tanh.
pub fn gelu(call: &mut Call) -> Result<Outputs, Fault> {
    use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, SQRT_2};
    const SCALE: f64 = FRAC_2_SQRT_PI / SQRT_2;
    match call.attributes.text("approximate", "none")? {
        "none" => floats(
            call,
            &|xs| {
                each(
                    xs,
                    #[inline(always)]
                    |x| 0.5 * x * (1.0 + vector_math::erf(x * FRAC_1_SQRT_2 as f32)),
                )
            },
            &|x| 0.5 * x * (1.0 + special::erf(x * FRAC_1_SQRT_2)),
        ),
        "tanh" => floats(
            call,
            &|xs| {
                each(
                    xs,
                    #[inline(always)]
                    |x| 0.5 * x * (1.0 + vector_math::tanh(SCALE as f32 * (x + 0.044715 * x * x * x))),
                )
            },
            &|x| 0.5 * x * (1.0 + (SCALE * (x + 0.044715 * x * x * x)).tanh()),
        ),
        other => Err(Fault::Invalid(format!("approximate={other} is neither none nor tanh"))),
    }
}

/// Shrink, of integers as well.
pub fn shrink(call: &mut Call) -> Result<Outputs, Fault> {
    fn integers<T: Integer>(
        call: &Call,
        array: &Array,
        f: impl Fn(f64) -> f64 + Sync,
    ) -> Result<Array, Fault> {
        let elements = convert(call, array, |x: T| T::from_f64(f(x.to_f64())))?;
        Ok(Array::of(array.element(), array.dims(), T::store(elements)))
    }
    let bias = call.attributes.float("bias", 0.0)?;
    let lambda = call.attributes.float("lambd", 0.5)?;
    let (bias64, lambda64) = (f64::from(bias), f64::from(lambda));
    let array = call.take(0)?;
    let double = |x: f64| match x {
        x if x < -lambda64 => x + bias64,
        x if x > lambda64 => x - bias64,
        _ => 0.0,
    };
    let single = |x: f32| {
        let above = if x > lambda { x - bias } else { 0.0 };
        if x < -lambda { x + bias } else { above }
    };
    one(match array.element() {
        ElementType::INT8 => integers::<i8>(call, &array, double),
        ElementType::INT16 => integers::<i16>(call, &array, double),
        ElementType::INT32 => integers::<i32>(call, &array, double),
        ElementType::INT64 => integers::<i64>(call, &array, double),
        ElementType::UINT8 => integers::<u8>(call, &array, double),
        ElementType::UINT16 => integers::<u16>(call, &array, double),
        ElementType::UINT32 => integers::<u32>(call, &array, double),
        ElementType::UINT64 => integers::<u64>(call, &array, double),
        _ => float_map(call, array, &|xs| each(xs, single), &double),
    }?)
}

#[derive(Clone, Copy)]
struct SlopeBelowZero;

impl Arithmetic for SlopeBelowZero {
    #[inline(always)]
    fn single(self, x: f32, slope: f32) -> f32 {
        if x < 0.0 { slope * x } else { x }
    }

    fn double(self, x: f64, slope: f64) -> f64 {
        if x < 0.0 { slope * x } else { x }
    }

    fn integer<T: Integer>(self, x: T, slope: T) -> T {
        if x < T::default() { slope.mul(x) } else { x }
    }
}

/// PRelu. Before opset 7 the slopes were one for all or one for each channel, which is axis 1.
pub fn p_relu(call: &mut Call) -> Result<Outputs, Fault> {
    let (x, slope) = match call.opset {
        ..7 => (call.take(0)?, call.take(1)?),
        _ => operands(call)?,
    };
    let slope = match slope.dims() {
        [channels] if call.opset < 7 && x.rank() > 2 && *channels > 1 => {
            let mut dims: Dims = smallvec::smallvec![1; x.rank() - 1];
            dims[0] = *channels;
            slope.reshaped(&dims)
        }
        _ => slope,
    };
    let dims: Dims = x.dims().into();
    let result = compute(call, x, slope, SlopeBelowZero)?;
    if result.dims() != dims.as_slice() {
        return Err(Fault::Invalid(format!("the slopes do not fit shape {dims:?}")));
    }
    one(result)
}
