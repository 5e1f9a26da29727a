//! CumSum and CumProd.

use super::layout::Rows;
use crate::engine::array::{Array, Element};
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::embedded::kernels::elementwise::number::{Half, Integer};
use crate::engine::fault::Fault;
use crate::ir::ElementType;
use half::{bf16, f16};

/// CumSum.
pub fn cum_sum(call: &mut Call) -> Result<Outputs, Fault> {
    cumulative(call, false)
}

/// CumProd.
pub fn cum_prod(call: &mut Call) -> Result<Outputs, Fault> {
    cumulative(call, true)
}

fn cumulative(call: &mut Call, product: bool) -> Result<Outputs, Fault> {
    let array = call.take(0)?;
    match array.element() {
        ElementType::FLOAT => floats(call, array, product, |x: f32| x, |x| x),
        ElementType::DOUBLE => match product {
            true => along(call, array, 1.0, |x: f64| x, |x| x, |a, b| a * b),
            false => along(call, array, 0.0, |x: f64| x, |x| x, |a, b| a + b),
        },
        ElementType::FLOAT16 => floats(call, array, product, f16::widen, f16::round),
        ElementType::BFLOAT16 => floats(call, array, product, bf16::widen, bf16::round),
        ElementType::INT8 => integers::<i8>(call, array, product),
        ElementType::INT16 => integers::<i16>(call, array, product),
        ElementType::INT32 => integers::<i32>(call, array, product),
        ElementType::INT64 => integers::<i64>(call, array, product),
        ElementType::UINT8 => integers::<u8>(call, array, product),
        ElementType::UINT16 => integers::<u16>(call, array, product),
        ElementType::UINT32 => integers::<u32>(call, array, product),
        ElementType::UINT64 => integers::<u64>(call, array, product),
        other => call.unsupported(other),
    }
}

fn integers<T: Integer>(call: &mut Call, array: Array, product: bool) -> Result<Outputs, Fault> {
    match product {
        true => along(call, array, T::ONE, |x: T| x, |x| x, T::mul),
        false => along(call, array, T::default(), |x: T| x, |x| x, T::add),
    }
}

/// Numbers that are put together in float32.
fn floats<T: Element + Copy>(
    call: &mut Call,
    array: Array,
    product: bool,
    widen: impl Fn(T) -> f32 + Sync,
    round: impl Fn(f32) -> T + Sync,
) -> Result<Outputs, Fault> {
    match product {
        true => along(call, array, 1.0, widen, round, |a, b| a * b),
        false => along(call, array, 0.0, widen, round, |a, b| a + b),
    }
}

/// Each element with all before it along an axis, or, `exclusive`, only those before it; `reverse` goes from the end.
fn along<T: Element + Copy, A: Copy + Sync>(
    call: &mut Call,
    array: Array,
    start: A,
    widen: impl Fn(T) -> A + Sync,
    round: impl Fn(A) -> T + Sync,
    with: impl Fn(A, A) -> A + Sync,
) -> Result<Outputs, Fault> {
    let axis = match call.input(1)?.integers()?.as_slice() {
        [axis] => call.axis(*axis, array.rank())?,
        other => return Err(Fault::Invalid(format!("axis {other:?} is not one number"))),
    };
    let exclusive = call.attributes.int("exclusive", 0)? != 0;
    let reverse = call.attributes.int("reverse", 0)? != 0;
    let rows = Rows::along(array.dims(), axis);
    let dims: crate::engine::array::Dims = array.dims().into();
    call.elements(&dims, size_of::<T>())?;
    let mut elements = array.take::<T>()?;
    rows.change(call, &mut elements, &|row| {
        let step = |(sum, x): (A, &mut T)| {
            let next = with(sum, widen(*x));
            *x = round(if exclusive { sum } else { next });
            next
        };
        match reverse {
            true => row.iter_mut().rev().fold(start, |sum, x| step((sum, x))),
            false => row.iter_mut().fold(start, |sum, x| step((sum, x))),
        };
    });
    one(Array::new(&dims, elements))
}
