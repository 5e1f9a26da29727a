//! Arithmetic of two or more arrays: Add … Mod, Pow, Max, Min, Sum, Mean, bits.

use super::binary::{Arithmetic, Plain, Vector, aligned, arithmetic, combine, compute, operands};
use super::broadcast::Broadcast;
use super::number::Integer;
use crate::engine::array::{Array, Element, Storage, with_storage_type};
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::fault::Fault;
use crate::ir::ElementType;

macro_rules! operators {
    ($($op:ident: |$a:ident, $b:ident| $float:expr, $integer:ident;)*) => {
        $(#[derive(Clone, Copy)]
        struct $op;

        impl Arithmetic for $op {
            #[inline(always)]
            fn single(self, $a: f32, $b: f32) -> f32 {
                $float
            }

            #[inline(always)]
            fn double(self, $a: f64, $b: f64) -> f64 {
                $float
            }

            #[inline(always)]
            fn integer<T: Integer>(self, a: T, b: T) -> T {
                a.$integer(b)
            }
        }

)*
    };
}

operators! {
    Add: |a, b| a + b, add;
    Sub: |a, b| a - b, sub;
    Mul: |a, b| a * b, mul;
    Div: |a, b| a / b, div;
    FloorMod: |a, b| {
        let r = a % b;
        if r == 0.0 { r.abs().copysign(b) } else if (r < 0.0) != (b < 0.0) { r + b } else { r }
    }, floor_mod;
    TruncatedMod: |a, b| a % b, rem;
    Larger: |a, b| if a > b || a.is_nan() { a } else { b }, max;
    Smaller: |a, b| if a < b || a.is_nan() { a } else { b }, min;
}

/// Add.
pub fn add(call: &mut Call) -> Result<Outputs, Fault> {
    arithmetic(call, Add)
}

/// Sub.
pub fn sub(call: &mut Call) -> Result<Outputs, Fault> {
    arithmetic(call, Sub)
}

/// Mul.
pub fn mul(call: &mut Call) -> Result<Outputs, Fault> {
    arithmetic(call, Mul)
}

/// An integer divisor of 0 is a fault.
fn divisor_is_not_0(call: &Call) -> Result<(), Fault> {
    let divisors = call.input(1)?;
    let zero = match divisors.storage() {
        Storage::F32(_) | Storage::F64(_) | Storage::F16(_) | Storage::BF16(_) => false,
        other => with_storage_type!(other, T => divisors.view::<T>()?.contains(&T::default())),
    };
    match zero && !call.input(0)?.is_empty() {
        true => Err(Fault::Invalid("an integer is divided by 0".into())),
        false => Ok(()),
    }
}

/// Div; integers towards zero.
pub fn div(call: &mut Call) -> Result<Outputs, Fault> {
    divisor_is_not_0(call)?;
    arithmetic(call, Div)
}

/// Mod: remainders with the sign of the divisor, with `fmod` of the dividend.
pub fn modulo(call: &mut Call) -> Result<Outputs, Fault> {
    divisor_is_not_0(call)?;
    match call.attributes.int("fmod", 0)? {
        0 => arithmetic(call, FloorMod),
        _ => arithmetic(call, TruncatedMod),
    }
}

/// All inputs in one, two by two. Sums of 16-bit numbers are rounded once.
fn variadic(call: &mut Call, op: impl Arithmetic, mean: bool) -> Result<Outputs, Fault> {
    let count = call.inputs.len();
    let element = call.input(0)?.element();
    let short = matches!(element, ElementType::FLOAT16 | ElementType::BFLOAT16);
    let mut total = None;
    for i in 0..count {
        let array = call.take(i)?;
        if array.element() != element {
            return Err(Fault::Invalid(format!("its inputs are {element} and {}", array.element())));
        }
        let array = if short { super::cast::to(call, &array, ElementType::FLOAT)? } else { array };
        total = Some(match total {
            None => array,
            Some(total) => compute(call, total, array, op)?,
        });
    }
    let total = total.ok_or_else(|| Fault::Invalid("it has no input".into()))?;
    if !(short || total.element().is_float() || total.element().is_integer()) {
        return call.unsupported(element);
    }
    let total = match mean {
        true => {
            let count = Array::scalar(count as f32);
            let by = super::cast::to(call, &count, total.element())?;
            compute(call, total, by, Div)?
        }
        false => total,
    };
    one(if short { super::cast::to(call, &total, element)? } else { total })
}

/// Max.
pub fn max(call: &mut Call) -> Result<Outputs, Fault> {
    variadic(call, Larger, false)
}

/// Min.
pub fn min(call: &mut Call) -> Result<Outputs, Fault> {
    variadic(call, Smaller, false)
}

/// Sum.
pub fn sum(call: &mut Call) -> Result<Outputs, Fault> {
    variadic(call, Add, false)
}

/// Mean.
pub fn mean(call: &mut Call) -> Result<Outputs, Fault> {
    variadic(call, Add, true)
}

/// base^exponent by squaring, wrapped around. A negative exponent leaves the whole part of the quotient.
fn integer_power<T: Integer>(base: T, exponent: i128) -> T {
    if exponent < 0 {
        let odd = exponent & 1 == 1;
        return match base {
            b if b == T::ONE => T::ONE,
            // -1; the largest number of an unsigned type is not below 0.
            b if b < T::default() && b == T::ONE.neg() => {
                if odd {
                    b
                } else {
                    T::ONE
                }
            }
            _ => T::default(),
        };
    }
    let (mut result, mut square, mut left) = (T::ONE, base, exponent);
    while left > 0 {
        if left & 1 == 1 {
            result = result.mul(square);
        }
        square = square.mul(square);
        left >>= 1;
    }
    result
}

#[derive(Clone, Copy)]
struct Power;

impl Arithmetic for Power {
    #[inline(always)]
    fn single(self, a: f32, b: f32) -> f32 {
        a.powf(b)
    }

    fn double(self, a: f64, b: f64) -> f64 {
        a.powf(b)
    }

    fn integer<T: Integer>(self, a: T, b: T) -> T {
        integer_power(a, b.to_i128())
    }
}

/// Pow; since opset 12 base and exponent may be of different types. Integers are exact; 0 to a negative integer has no
/// value and is a fault.
pub fn pow(call: &mut Call) -> Result<Outputs, Fault> {
    let (base, exponent) = (call.take(0)?, call.take(1)?);
    let (base, exponent) = if call.opset < 7 { aligned(call, base, exponent)? } else { (base, exponent) };
    if let (Storage::F32(_), Storage::F32(exponents)) = (base.storage(), exponent.storage())
        && let [only] = exponents.as_slice()
    {
        // Exponents with a shorter way; the square root of -0.0 and of -infinity is not their power of 0.5.
        match *only {
            2.0 => {
                return one(combine(
                    call,
                    base,
                    exponent,
                    &Vector(
                        #[inline(always)]
                        |a, _| a * a,
                    ),
                )?);
            }
            3.0 => {
                return one(combine(
                    call,
                    base,
                    exponent,
                    &Vector(
                        #[inline(always)]
                        |a, _| a * a * a,
                    ),
                )?);
            }
            0.5 => {
                let root = |a: f32, _| if a == f32::NEG_INFINITY { f32::INFINITY } else { (a + 0.0).sqrt() };
                return one(combine(call, base, exponent, &Vector(root))?);
            }
            _ => {}
        }
    }
    let negative = |a: &Array| {
        Ok::<bool, Fault>(match a.storage() {
            Storage::I8(v) => v.iter().any(|x| *x < 0),
            Storage::I16(v) => v.iter().any(|x| *x < 0),
            Storage::I32(v) => v.iter().any(|x| *x < 0),
            Storage::I64(v) => v.iter().any(|x| *x < 0),
            _ => false,
        })
    };
    if base.element().is_integer()
        && negative(&exponent)?
        && with_storage_type!(base.storage(), T => base.view::<T>()?.contains(&T::default()))
    {
        return Err(Fault::Invalid("0 is raised to a negative power of integers".into()));
    }
    if base.element() == exponent.element() {
        return one(compute(call, base, exponent, Power)?);
    }
    let result = match base.element() {
        ElementType::FLOAT => mixed(call, &base, &exponent, |a: f32| f64::from(a), |y| y as f32),
        ElementType::DOUBLE => mixed(call, &base, &exponent, |a: f64| a, |y| y),
        ElementType::FLOAT16 => mixed(call, &base, &exponent, half::f16::to_f64, half::f16::from_f64),
        ElementType::BFLOAT16 => mixed(call, &base, &exponent, half::bf16::to_f64, half::bf16::from_f64),
        ElementType::INT8 => mixed_integer::<i8>(call, &base, &exponent),
        ElementType::INT16 => mixed_integer::<i16>(call, &base, &exponent),
        ElementType::INT32 => mixed_integer::<i32>(call, &base, &exponent),
        ElementType::INT64 => mixed_integer::<i64>(call, &base, &exponent),
        ElementType::UINT8 => mixed_integer::<u8>(call, &base, &exponent),
        ElementType::UINT16 => mixed_integer::<u16>(call, &base, &exponent),
        ElementType::UINT32 => mixed_integer::<u32>(call, &base, &exponent),
        ElementType::UINT64 => mixed_integer::<u64>(call, &base, &exponent),
        other => return call.unsupported(other),
    };
    one(result?)
}

/// Elements of two arrays of different types that meet, put together.
fn met<T: Element + Copy, E: Copy>(
    call: &Call,
    base: &Array,
    exponents: &[E],
    exponent_dims: &[usize],
    f: impl Fn(T, E) -> T,
) -> Result<Array, Fault> {
    let bases = base.view::<T>()?;
    let plan = Broadcast::of([base.dims(), exponent_dims])?;
    let mut elements = call.vec::<T>(&plan.dims)?;
    let steps = plan.steps();
    plan.runs(0, plan.dims.iter().product(), |[a, b], n| {
        elements.extend((0..n).map(|i| f(bases[a + i * steps[0]], exponents[b + i * steps[1]])));
    });
    Ok(Array::of(base.element(), &plan.dims, T::store(elements)))
}

/// Powers of floating-point numbers, computed in float64.
fn mixed<T: Element + Copy>(
    call: &Call,
    base: &Array,
    exponent: &Array,
    widen: impl Fn(T) -> f64,
    narrow: impl Fn(f64) -> T,
) -> Result<Array, Fault> {
    let Some(exponents) = exponent.approximate() else { return call.unsupported(exponent.element()) };
    met(call, base, &exponents, exponent.dims(), |a, b: f64| narrow(widen(a).powf(b)))
}

/// Powers of integers: exact for exponents that are integers, otherwise in float64 and towards zero.
fn mixed_integer<T: Integer>(call: &Call, base: &Array, exponent: &Array) -> Result<Array, Fault> {
    let Some(exponents) = exponent.approximate() else { return call.unsupported(exponent.element()) };
    if exponent.element().is_float() {
        return met(call, base, &exponents, exponent.dims(), |a: T, b: f64| T::from_f64(a.to_f64().powf(b)));
    }
    let exact: Vec<i128> = match exponent.storage() {
        Storage::U64(v) => v.iter().map(|x| i128::from(*x)).collect(),
        _ => exponent.integers()?.into_iter().map(i128::from).collect(),
    };
    met(call, base, &exact, exponent.dims(), integer_power::<T>)
}

/// Integer arrays of one type, combined by a method of [`Integer`].
macro_rules! integers {
    ($call:ident, $method:ident) => {{
        let (a, b) = operands($call)?;
        let result = match a.element() {
            ElementType::INT8 => combine($call, a, b, &Plain(<i8 as Integer>::$method)),
            ElementType::INT16 => combine($call, a, b, &Plain(<i16 as Integer>::$method)),
            ElementType::INT32 => combine($call, a, b, &Plain(<i32 as Integer>::$method)),
            ElementType::INT64 => combine($call, a, b, &Plain(<i64 as Integer>::$method)),
            ElementType::UINT8 => combine($call, a, b, &Plain(<u8 as Integer>::$method)),
            ElementType::UINT16 => combine($call, a, b, &Plain(<u16 as Integer>::$method)),
            ElementType::UINT32 => combine($call, a, b, &Plain(<u32 as Integer>::$method)),
            ElementType::UINT64 => combine($call, a, b, &Plain(<u64 as Integer>::$method)),
            other => $call.unsupported(other),
        };
        one(result?)
    }};
}

/// BitwiseAnd.
pub fn bitwise_and(call: &mut Call) -> Result<Outputs, Fault> {
    integers!(call, and)
}

/// BitwiseOr.
pub fn bitwise_or(call: &mut Call) -> Result<Outputs, Fault> {
    integers!(call, or)
}

/// BitwiseXor.
pub fn bitwise_xor(call: &mut Call) -> Result<Outputs, Fault> {
    integers!(call, xor)
}

/// BitShift.
pub fn bit_shift(call: &mut Call) -> Result<Outputs, Fault> {
    match call.attributes.text("direction", "")? {
        "LEFT" => integers!(call, shift_left),
        "RIGHT" => integers!(call, shift_right),
        other => Err(Fault::Invalid(format!("direction={other:?} is neither LEFT nor RIGHT"))),
    }
}

/// Bool arrays combined.
fn logic(call: &mut Call, f: impl Fn(u8, u8) -> u8 + Sync) -> Result<Outputs, Fault> {
    let (a, b) = operands(call)?;
    match a.element() {
        ElementType::BOOL => one(combine(call, a, b, &Plain(f))?),
        other => call.unsupported(other),
    }
}

/// And.
pub fn and(call: &mut Call) -> Result<Outputs, Fault> {
    logic(call, |a, b| a & b)
}

/// Or.
pub fn or(call: &mut Call) -> Result<Outputs, Fault> {
    logic(call, |a, b| a | b)
}

/// Xor.
pub fn xor(call: &mut Call) -> Result<Outputs, Fault> {
    logic(call, |a, b| a ^ b)
}

/// Products of three arrays.
pub fn scaled(call: &Call, a: Array, b: Array, c: Array) -> Result<Array, Fault> {
    compute(call, compute(call, a, b, Mul)?, c, Mul)
}
