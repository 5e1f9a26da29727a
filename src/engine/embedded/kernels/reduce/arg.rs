//! ArgMax and ArgMin.

use super::layout::Rows;
use crate::engine::array::{Array, Dims, Element};
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::fault::Fault;
use crate::ir::ElementType;
use half::{bf16, f16};

/// ArgMax: the first of the largest unless `select_last_index` (opset 12) asks for the last; NaN is above all.
pub fn arg_max(call: &mut Call) -> Result<Outputs, Fault> {
    arg(call, true)
}

/// ArgMin: likewise; NaN is below all.
pub fn arg_min(call: &mut Call) -> Result<Outputs, Fault> {
    arg(call, false)
}

fn arg(call: &mut Call, largest: bool) -> Result<Outputs, Fault> {
    let array = call.take(0)?;
    match array.element() {
        ElementType::FLOAT => places(call, &array, largest, |x: f32| x),
        ElementType::DOUBLE => places(call, &array, largest, |x: f64| x),
        ElementType::FLOAT16 => places(call, &array, largest, f16::to_f32),
        ElementType::BFLOAT16 => places(call, &array, largest, bf16::to_f32),
        ElementType::INT8 => places(call, &array, largest, |x: i8| x),
        ElementType::INT16 => places(call, &array, largest, |x: i16| x),
        ElementType::INT32 => places(call, &array, largest, |x: i32| x),
        ElementType::INT64 => places(call, &array, largest, |x: i64| x),
        ElementType::UINT8 => places(call, &array, largest, |x: u8| x),
        ElementType::UINT16 => places(call, &array, largest, |x: u16| x),
        ElementType::UINT32 => places(call, &array, largest, |x: u32| x),
        ElementType::UINT64 => places(call, &array, largest, |x: u64| x),
        other => call.unsupported(other),
    }
}

fn places<T: Element + Copy, K: PartialOrd>(
    call: &mut Call,
    array: &Array,
    largest: bool,
    key: impl Fn(T) -> K + Sync,
) -> Result<Outputs, Fault> {
    let axis = call.axis(call.attributes.int("axis", 0)?, array.rank().max(1))?;
    let keep = call.attributes.int("keepdims", 1)? != 0;
    let last = call.attributes.int("select_last_index", 0)? != 0;
    let mut dims: Dims = array.dims().into();
    let rows = match array.rank() {
        0 => Rows { outer: 1, length: 1, inner: 1 },
        _ => {
            if keep {
                dims[axis] = 1;
            } else {
                dims.remove(axis);
            }
            Rows::along(array.dims(), axis)
        }
    };
    if rows.length == 0 && rows.count() > 0 {
        return Err(Fault::Invalid("there is no element to choose".into()));
    }
    // NaN differs from itself.
    let is_nan = |k: &K| k.partial_cmp(k).is_none();
    let wins = |new: &K, best: &K| match largest {
        _ if is_nan(new) => !is_nan(best),
        true => new > best,
        false => new < best,
    };
    let place = |row: &[T]| {
        let mut best: Option<(usize, K)> = None;
        for (i, x) in row.iter().enumerate() {
            let new = key(*x);
            let better = match &best {
                None => true,
                Some((_, best)) if last => !wins(best, &new),
                Some((_, best)) => wins(&new, best),
            };
            if better {
                best = Some((i, new));
            }
        }
        best.map_or(0, |(i, _)| i as i64)
    };
    let places = rows.reduced(call, array.view::<T>()?, &place)?;
    one(Array::new(&dims, places))
}
