//! Operators of one array, element by element.

use super::number::{Half, Integer};
use super::produce::{Filling, PIECE, convert, map, produce};
use super::special;
use crate::engine::array::{Array, Element, Storage};
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::embedded::vector_math::{self, each};
use crate::engine::fault::Fault;
use crate::engine::narrow;
use crate::ir::ElementType;
use half::{bf16, f16};

/// A function of floating-point numbers: `single` changes float32 numbers; 16-bit numbers go through it and are rounded once.
pub fn floats(
    call: &mut Call,
    single: &(dyn Fn(&mut [f32]) + Sync),
    double: &(dyn Fn(f64) -> f64 + Sync),
) -> Result<Outputs, Fault> {
    let array = call.take(0)?;
    one(float_map(call, array, single, double)?)
}

/// See [`floats`].
pub fn float_map(
    call: &Call,
    array: Array,
    single: &(dyn Fn(&mut [f32]) + Sync),
    double: &(dyn Fn(f64) -> f64 + Sync),
) -> Result<Array, Fault> {
    match array.storage() {
        Storage::F32(_) => map(call, array, single),
        Storage::F64(_) => map(call, array, &|xs: &mut [f64]| xs.iter_mut().for_each(|x| *x = double(*x))),
        Storage::F16(_) => map_halves::<f16>(call, &array, single),
        Storage::BF16(_) => map_halves::<bf16>(call, &array, single),
        _ => call.unsupported(array.element()),
    }
}

fn map_halves<H: Half>(
    call: &Call,
    array: &Array,
    single: &(dyn Fn(&mut [f32]) + Sync),
) -> Result<Array, Fault> {
    let from = array.view::<H>()?;
    let elements = produce(call, array.dims(), &|start, out: &mut Filling<H>| {
        let end = start + out.left();
        let mut wide = Vec::with_capacity(PIECE.min(end - start));
        for piece in from[start..end].chunks(PIECE) {
            wide.clear();
            wide.extend(piece.iter().map(|x| x.widen()));
            single(&mut wide);
            out.extend(wide.iter().map(|x| H::round(*x)));
        }
    })?;
    Ok(Array::of(array.element(), array.dims(), H::store(elements)))
}

/// A function of integers of one type.
fn integer_map<T: Integer>(call: &Call, array: Array, f: impl Fn(T) -> T + Sync) -> Result<Array, Fault> {
    map(call, array, &|xs: &mut [T]| xs.iter_mut().for_each(|x| *x = f(*x)))
}

/// A function that is given as a method of [`Integer`], for the integer types; what else there is for other types.
macro_rules! integer_or {
    ($call:ident, $array:ident, $method:ident, $other:expr) => {
        match $array.element() {
            ElementType::INT8 => integer_map($call, $array, <i8 as Integer>::$method),
            ElementType::INT16 => integer_map($call, $array, <i16 as Integer>::$method),
            ElementType::INT32 => integer_map($call, $array, <i32 as Integer>::$method),
            ElementType::INT64 => integer_map($call, $array, <i64 as Integer>::$method),
            ElementType::UINT8 => integer_map($call, $array, <u8 as Integer>::$method),
            ElementType::UINT16 => integer_map($call, $array, <u16 as Integer>::$method),
            ElementType::UINT32 => integer_map($call, $array, <u32 as Integer>::$method),
            ElementType::UINT64 => integer_map($call, $array, <u64 as Integer>::$method),
            _ => $other,
        }
    };
}

macro_rules! float_functions {
    ($($(#[$doc:meta])* $name:ident: |$x:ident| $single:expr, |$y:ident| $double:expr;)*) => {
        $($(#[$doc])*
        pub fn $name(call: &mut Call) -> Result<Outputs, Fault> {
            floats(call, &|xs| each(xs, #[inline(always)] |$x| $single), &|$y| $double)
        })*
    };
}

float_functions! {
    /// Ceil.
    ceil: |x| x.ceil(), |x| x.ceil();
    /// Floor.
    floor: |x| x.floor(), |x| x.floor();
    /// Round: half to even.
    round: |x| x.round_ties_even(), |x| x.round_ties_even();
    /// Sqrt.
    sqrt: |x| x.sqrt(), |x| x.sqrt();
    /// Reciprocal.
    reciprocal: |x| 1.0 / x, |x| 1.0 / x;
    /// Exp.
    exp: |x| vector_math::exp(x), |x| x.exp();
    /// Log.
    log: |x| vector_math::ln(x), |x| x.ln();
    /// Erf.
    erf: |x| vector_math::erf(x), |x| special::erf(x);
    /// Tanh.
    tanh: |x| vector_math::tanh(x), |x| x.tanh();
    /// Sigmoid.
    sigmoid: |x| vector_math::sigmoid(x), |x| 1.0 / (1.0 + (-x).exp());
    /// Sin.
    sin: |x| x.sin(), |x| x.sin();
    /// Cos.
    cos: |x| x.cos(), |x| x.cos();
    /// Tan.
    tan: |x| x.tan(), |x| x.tan();
    /// Asin.
    asin: |x| x.asin(), |x| x.asin();
    /// Acos.
    acos: |x| x.acos(), |x| x.acos();
    /// Atan.
    atan: |x| x.atan(), |x| x.atan();
    /// Sinh.
    sinh: |x| x.sinh(), |x| x.sinh();
    /// Cosh.
    cosh: |x| x.cosh(), |x| x.cosh();
    /// Asinh.
    asinh: |x| f64::from(x).asinh() as f32, |x| x.asinh();
    /// Acosh.
    acosh: |x| f64::from(x).acosh() as f32, |x| x.acosh();
    /// Atanh.
    atanh: |x| f64::from(x).atanh() as f32, |x| x.atanh();
    /// Softsign.
    softsign: |x| x / (1.0 + x.abs()), |x| x / (1.0 + x.abs());
    /// HardSwish: x times HardSigmoid of slope 1/6.
    hard_swish: |x| x * unit(x * (1.0 / 6.0) + 0.5), |x| x * unit64(x * (1.0 / 6.0) + 0.5);
    /// Softplus.
    softplus: |x| vector_math::softplus(x), |x| softplus64(x);
    /// Mish: x tanh(softplus(x)), with n = e^x (e^x + 2) written as x n / (n + 2).
    mish: |x| {
        let e = vector_math::exp(if x > 20.0 { 20.0 } else { x });
        let n = e * (e + 2.0);
        x * (n / (n + 2.0))
    }, |x| x * softplus64(x).tanh();
}

fn softplus64(x: f64) -> f64 {
    let positive = if x < 0.0 { 0.0 } else { x };
    positive + (-x.abs()).exp().ln_1p()
}

/// Into 0…1, NaN as it is.
#[inline(always)]
pub fn unit(x: f32) -> f32 {
    let x = if x < 0.0 { 0.0 } else { x };
    if x > 1.0 { 1.0 } else { x }
}

/// Into 0…1, NaN as it is.
pub fn unit64(x: f64) -> f64 {
    let x = if x < 0.0 { 0.0 } else { x };
    if x > 1.0 { 1.0 } else { x }
}

/// Abs; the least integer stays as it is.
pub fn abs(call: &mut Call) -> Result<Outputs, Fault> {
    let array = call.take(0)?;
    let abs = |x: f32| x.abs();
    one(integer_or!(call, array, abs, float_map(call, array, &|xs| each(xs, abs), &f64::abs))?)
}

/// Neg; the least integer stays as it is.
pub fn neg(call: &mut Call) -> Result<Outputs, Fault> {
    let array = call.take(0)?;
    let neg = |x: f32| -x;
    one(integer_or!(call, array, neg, float_map(call, array, &|xs| each(xs, neg), &|x| -x))?)
}

/// Sign: 0 of zeros, NaN of NaN.
pub fn sign(call: &mut Call) -> Result<Outputs, Fault> {
    let array = call.take(0)?;
    let single = |x: f32| if x == 0.0 || x.is_nan() { x + 0.0 } else { 1f32.copysign(x) };
    let double = |x: f64| if x == 0.0 || x.is_nan() { x + 0.0 } else { 1f64.copysign(x) };
    one(integer_or!(call, array, sign, float_map(call, array, &|xs| each(xs, single), &double))?)
}

/// BitwiseNot.
pub fn bitwise_not(call: &mut Call) -> Result<Outputs, Fault> {
    let array = call.take(0)?;
    one(integer_or!(call, array, not, call.unsupported(array.element()))?)
}

/// Relu: NaN goes through; integers since opset 14.
pub fn relu(call: &mut Call) -> Result<Outputs, Fault> {
    fn positive<T: Integer>(x: T) -> T {
        x.max(T::default())
    }
    let array = call.take(0)?;
    if let Storage::F32(_) = array.storage() {
        let relu = |x: f32| if x < 0.0 { 0.0 } else { x };
        return one(map(call, array, &|xs| each(xs, relu))?);
    }
    one(match array.element() {
        ElementType::INT8 => integer_map(call, array, positive::<i8>),
        ElementType::INT16 => integer_map(call, array, positive::<i16>),
        ElementType::INT32 => integer_map(call, array, positive::<i32>),
        ElementType::INT64 => integer_map(call, array, positive::<i64>),
        _ => {
            let relu = |x: f32| if x < 0.0 { 0.0 } else { x };
            float_map(call, array, &|xs| each(xs, relu), &|x| if x < 0.0 { 0.0 } else { x })
        }
    }?)
}

/// Not.
pub fn not(call: &mut Call) -> Result<Outputs, Fault> {
    let array = call.take(0)?;
    match array.element() {
        ElementType::BOOL => one(map(call, array, &|xs: &mut [u8]| xs.iter_mut().for_each(|x| *x ^= 1))?),
        other => call.unsupported(other),
    }
}

/// A question that each floating-point number answers.
fn asked(
    call: &Call,
    array: &Array,
    single: impl Fn(f32) -> bool + Sync,
    double: impl Fn(f64) -> bool + Sync,
) -> Result<Outputs, Fault> {
    let element = array.element();
    let answers = match array.storage() {
        Storage::F32(_) => convert(call, array, |x: f32| u8::from(single(x)))?,
        Storage::F64(_) => convert(call, array, |x: f64| u8::from(double(x)))?,
        Storage::F16(_) => convert(call, array, |x: f16| u8::from(single(x.to_f32())))?,
        Storage::BF16(_) => convert(call, array, |x: bf16| u8::from(single(x.to_f32())))?,
        Storage::U8(_) if element.is_float() => {
            convert(call, array, |x: u8| u8::from(double(narrow::number(element, x))))?
        }
        _ => return call.unsupported(element),
    };
    one(Array::of(ElementType::BOOL, array.dims(), u8::store(answers)))
}

/// IsNaN.
pub fn is_nan(call: &mut Call) -> Result<Outputs, Fault> {
    asked(call, call.input(0)?, f32::is_nan, f64::is_nan)
}

/// IsInf, of either sign unless told otherwise.
pub fn is_inf(call: &mut Call) -> Result<Outputs, Fault> {
    let negative = call.attributes.int("detect_negative", 1)? != 0;
    let positive = call.attributes.int("detect_positive", 1)? != 0;
    asked(
        call,
        call.input(0)?,
        |x| x == f32::INFINITY && positive || x == f32::NEG_INFINITY && negative,
        |x| x == f64::INFINITY && positive || x == f64::NEG_INFINITY && negative,
    )
}
