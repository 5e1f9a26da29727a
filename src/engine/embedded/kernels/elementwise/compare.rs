//! Comparisons, and choices that follow them.

use super::binary::operands;
use super::broadcast::Broadcast;
use super::number::Integer;
use super::produce::{map, produce};
use crate::engine::array::{Array, Element, Storage, with_storage_type};
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::embedded::vector_math::each;
use crate::engine::fault::Fault;
use crate::ir::ElementType;

fn compared<T: Element>(
    call: &Call,
    a: &Array,
    b: &Array,
    holds: impl Fn(&T, &T) -> bool + Sync,
) -> Result<Array, Fault> {
    let (from_a, from_b) = (a.view::<T>()?, b.view::<T>()?);
    let plan = Broadcast::of([a.dims(), b.dims()])?;
    let steps = plan.steps();
    let answers = produce(call, &plan.dims, &|start, out| {
        let count = out.left();
        plan.runs(start, count, |[at_a, at_b], n| match steps {
            [1, 1] => {
                let pairs = from_a[at_a..][..n].iter().zip(&from_b[at_b..][..n]);
                out.extend(pairs.map(|(a, b)| u8::from(holds(a, b))));
            }
            [1, _] => {
                let b = &from_b[at_b];
                out.extend(from_a[at_a..][..n].iter().map(|a| u8::from(holds(a, b))));
            }
            [_, 1] => {
                let a = &from_a[at_a];
                out.extend(from_b[at_b..][..n].iter().map(|b| u8::from(holds(a, b))));
            }
            _ => out.extend(std::iter::repeat_n(u8::from(holds(&from_a[at_a], &from_b[at_b])), n)),
        });
    })?;
    Ok(Array::of(ElementType::BOOL, &plan.dims, u8::store(answers)))
}

/// An ordering of numbers.
macro_rules! ordering {
    ($($(#[$doc:meta])* $name:ident: $method:ident;)*) => {
        $($(#[$doc])*
        pub fn $name(call: &mut Call) -> Result<Outputs, Fault> {
            let (a, b) = operands(call)?;
            let plain = a.element().bits() >= 8 && (a.element().is_integer() || !matches!(a.storage(), Storage::U8(_)));
            let result = match a.storage() {
                Storage::F16(_) => compared(call, &a, &b, |a: &half::f16, b| a.to_f32().$method(&b.to_f32())),
                Storage::BF16(_) => compared(call, &a, &b, |a: &half::bf16, b| a.to_f32().$method(&b.to_f32())),
                Storage::Strings(_) | Storage::C64(_) | Storage::C128(_) => return call.unsupported(a.element()),
                other if plain => with_storage_type!(other, T => compared(call, &a, &b, |a: &T, b: &T| a.$method(b))),
                _ => return call.unsupported(a.element()),
            };
            one(result?)
        })*
    };
}

ordering! {
    /// Less.
    less: lt;
    /// LessOrEqual.
    less_or_equal: le;
    /// Greater.
    greater: gt;
    /// GreaterOrEqual.
    greater_or_equal: ge;
}

/// Equal, of bool and strings as well.
pub fn equal(call: &mut Call) -> Result<Outputs, Fault> {
    let (a, b) = operands(call)?;
    if a.element().is_float() && matches!(a.storage(), Storage::U8(_)) {
        return call.unsupported(a.element());
    }
    one(with_storage_type!(a.storage(), T => compared(call, &a, &b, |a: &T, b: &T| a == b))?)
}

/// Where, of every type.
pub fn choose(call: &mut Call) -> Result<Outputs, Fault> {
    let (condition, a, b) = (call.input(0)?, call.input(1)?, call.input(2)?);
    if condition.element() != ElementType::BOOL || a.element() != b.element() {
        let types = [condition, a, b].map(Array::element);
        return Err(Fault::Invalid(format!("its inputs are {types:?}")));
    }
    let plan = Broadcast::of([condition.dims(), a.dims(), b.dims()])?;
    let condition = condition.view::<u8>()?;
    let storage = with_storage_type!(a.storage(), T => {
        T::store(chosen(&plan, condition, a.view::<T>()?, b.view::<T>()?, call.vec::<T>(&plan.dims)?))
    });
    one(Array::of(a.element(), &plan.dims, storage))
}

/// Elements of `a` where the condition holds, of `b` elsewhere.
fn chosen<T: Clone>(
    plan: &Broadcast<3>,
    condition: &[u8],
    from_a: &[T],
    from_b: &[T],
    mut elements: Vec<T>,
) -> Vec<T> {
    fn either<T: Clone>(condition: &u8, a: &T, b: &T) -> T {
        if *condition != 0 { a.clone() } else { b.clone() }
    }
    let steps = plan.steps();
    plan.runs(0, plan.dims.iter().product(), |[c, a, b], n| match steps {
        [0, from, _] if condition[c] != 0 => repeated(&mut elements, from_a, a, from, n),
        [0, _, from] => repeated(&mut elements, from_b, b, from, n),
        [_, 1, 1] => {
            let pairs = from_a[a..][..n].iter().zip(&from_b[b..][..n]);
            elements.extend(condition[c..][..n].iter().zip(pairs).map(|(c, (a, b))| either(c, a, b)));
        }
        [_, 1, _] => {
            let both = condition[c..][..n].iter().zip(&from_a[a..][..n]);
            elements.extend(both.map(|(c, a)| either(c, a, &from_b[b])));
        }
        [_, _, 1] => {
            let both = condition[c..][..n].iter().zip(&from_b[b..][..n]);
            elements.extend(both.map(|(c, b)| either(c, &from_a[a], b)));
        }
        _ => elements.extend(condition[c..][..n].iter().map(|c| either(c, &from_a[a], &from_b[b]))),
    });
    elements
}

/// `n` elements from a place on, or `n` times the element there.
fn repeated<T: Clone>(out: &mut Vec<T>, from: &[T], at: usize, step: usize, n: usize) {
    match step {
        0 => out.extend(std::iter::repeat_n(from[at].clone(), n)),
        _ => out.extend_from_slice(&from[at..][..n]),
    }
}

/// Clip. Bounds were attributes before opset 11 and are inputs since; what is not given is the least or the largest
/// finite number. NaN goes through; the upper bound wins over the lower one.
pub fn clip(call: &mut Call) -> Result<Outputs, Fault> {
    let array = call.take(0)?;
    match array.element() {
        ElementType::FLOAT => {
            let (low, high) = bounds(call, f32::MIN, f32::MAX, |x| x)?;
            let clip = |x: f32| {
                let x = if x < low { low } else { x };
                if x > high { high } else { x }
            };
            one(map(call, array, &|xs| each(xs, clip))?)
        }
        ElementType::DOUBLE => {
            // A model run in float64 throughout has the bounds of its own, narrower type.
            let (low, high) = bounds(call, f64::MIN, f64::MAX, f64::from)?;
            between(call, array, low, high)
        }
        ElementType::FLOAT16 => {
            let (low, high) = bounds(call, half::f16::MIN, half::f16::MAX, half::f16::from_f32)?;
            between(call, array, low, high)
        }
        ElementType::BFLOAT16 => {
            let (low, high) = bounds(call, half::bf16::MIN, half::bf16::MAX, half::bf16::from_f32)?;
            between(call, array, low, high)
        }
        ElementType::INT8 => clip_integers::<i8>(call, array),
        ElementType::INT16 => clip_integers::<i16>(call, array),
        ElementType::INT32 => clip_integers::<i32>(call, array),
        ElementType::INT64 => clip_integers::<i64>(call, array),
        ElementType::UINT8 => clip_integers::<u8>(call, array),
        ElementType::UINT16 => clip_integers::<u16>(call, array),
        ElementType::UINT32 => clip_integers::<u32>(call, array),
        ElementType::UINT64 => clip_integers::<u64>(call, array),
        other => call.unsupported(other),
    }
}

fn clip_integers<T: Integer>(call: &mut Call, array: Array) -> Result<Outputs, Fault> {
    let (low, high) = bounds(call, T::MIN, T::MAX, |x| T::from_f64(f64::from(x)))?;
    between(call, array, low, high)
}

fn bounds<T: Element + Copy>(call: &Call, low: T, high: T, from: impl Fn(f32) -> T) -> Result<(T, T), Fault> {
    if call.opset < 11 {
        let given = |name: &str, otherwise: T| match call.attributes.get(name) {
            None => Ok(otherwise),
            Some(_) => call.attributes.float(name, 0.0).map(&from),
        };
        return Ok((given("min", low)?, given("max", high)?));
    }
    let given = |i: usize, otherwise: T| call.optional(i)?.map_or(Ok(otherwise), Array::single::<T>);
    Ok((given(1, low)?, given(2, high)?))
}

fn between<T: Element + Copy + PartialOrd>(
    call: &mut Call,
    array: Array,
    low: T,
    high: T,
) -> Result<Outputs, Fault> {
    let change = |xs: &mut [T]| {
        for x in xs {
            *x = if *x < low { low } else { *x };
            *x = if *x > high { high } else { *x };
        }
    };
    one(map(call, array, &change)?)
}
