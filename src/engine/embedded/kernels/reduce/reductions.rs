//! ReduceSum … ReduceSumSquare: axes, types, results.

use super::layout::Reduction;
use super::rows::{Kind, Reducible};
use crate::engine::array::{Array, Element};
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::fault::Fault;
use crate::ir::ElementType;

macro_rules! reductions {
    ($($(#[$doc:meta])* $name:ident: $kind:ident;)*) => {
        $($(#[$doc])*
        pub fn $name(call: &mut Call) -> Result<Outputs, Fault> {
            reduce(call, Kind::$kind)
        })*
    };
}

reductions! {
    /// ReduceSum.
    sum: Sum;
    /// ReduceMean.
    mean: Mean;
    /// ReduceMax, of bool as well.
    max: Max;
    /// ReduceMin, of bool as well.
    min: Min;
    /// ReduceProd.
    prod: Prod;
    /// ReduceL1.
    l1: L1;
    /// ReduceL2.
    l2: L2;
    /// ReduceLogSum.
    log_sum: LogSum;
    /// ReduceLogSumExp.
    log_sum_exp: LogSumExp;
    /// ReduceSumSquare.
    sum_square: SumSquare;
}

/// Axes are an attribute, or an input since opset 13 (ReduceSum) and 18. Without axes it is all of them, or none with
/// `noop_with_empty_axes`; then every element is a row of its own.
fn axes(call: &Call, rank: usize) -> Result<Vec<bool>, Fault> {
    let given = match call.optional(1)? {
        Some(axes) => Some(axes.integers()?),
        None => call.attributes.ints("axes")?.map(<[i64]>::to_vec),
    };
    match given {
        Some(axes) if !axes.is_empty() => {
            let mut reduced = vec![false; rank];
            for axis in axes {
                reduced[call.axis(axis, rank)?] = true;
            }
            Ok(reduced)
        }
        _ => Ok(vec![call.attributes.int("noop_with_empty_axes", 0)? == 0; rank]),
    }
}

fn reduce(call: &mut Call, kind: Kind) -> Result<Outputs, Fault> {
    let array = call.take(0)?;
    let reduced = axes(call, array.rank())?;
    let keep = call.attributes.int("keepdims", 1)? != 0;
    let plan = Reduction::over(array.dims(), &reduced, keep);
    if kind == Kind::Mean && plan.rows.length == 0 && plan.rows.count() > 0 && array.element().is_integer() {
        return Err(Fault::Invalid("the mean of no integers is not defined".into()));
    }
    match array.element() {
        ElementType::FLOAT => of::<f32>(call, &array, &plan, kind),
        ElementType::DOUBLE => of::<f64>(call, &array, &plan, kind),
        ElementType::FLOAT16 => of::<half::f16>(call, &array, &plan, kind),
        ElementType::BFLOAT16 => of::<half::bf16>(call, &array, &plan, kind),
        ElementType::INT8 => of::<i8>(call, &array, &plan, kind),
        ElementType::INT16 => of::<i16>(call, &array, &plan, kind),
        ElementType::INT32 => of::<i32>(call, &array, &plan, kind),
        ElementType::INT64 => of::<i64>(call, &array, &plan, kind),
        ElementType::UINT8 => of::<u8>(call, &array, &plan, kind),
        ElementType::UINT16 => of::<u16>(call, &array, &plan, kind),
        ElementType::UINT32 => of::<u32>(call, &array, &plan, kind),
        ElementType::UINT64 => of::<u64>(call, &array, &plan, kind),
        ElementType::BOOL if matches!(kind, Kind::Max | Kind::Min) => {
            // The least of no bools is true.
            let truth = elements::<u8>(call, &array, &plan, kind)?.into_iter().map(|x| x.min(1)).collect();
            one(Array::of(ElementType::BOOL, &plan.dims, u8::store(truth)))
        }
        other => call.unsupported(other),
    }
}

fn of<T: Reducible>(call: &mut Call, array: &Array, plan: &Reduction, kind: Kind) -> Result<Outputs, Fault> {
    let elements = elements::<T>(call, array, plan, kind)?;
    one(Array::of(array.element(), &plan.dims, T::store(elements)))
}

fn elements<T: Reducible>(
    call: &mut Call,
    array: &Array,
    plan: &Reduction,
    kind: Kind,
) -> Result<Vec<T>, Fault> {
    let from = array.view::<T>()?;
    let row = |row: &[T]| T::row(kind, row);
    match plan.laid_out(call, from)? {
        None => plan.rows.reduced(call, from, &row),
        Some(laid_out) => {
            let elements = plan.rows.reduced(call, &laid_out, &row);
            call.working_space += size_of_val(laid_out.as_slice()) as u64;
            elements
        }
    }
}
