//! TopK.

use super::layout::Rows;
use crate::engine::array::{Array, Dims, Element};
use crate::engine::embedded::call::{Call, Outputs};
use crate::engine::fault::Fault;
use crate::ir::ElementType;
use half::{bf16, f16};
use smallvec::smallvec;
use std::cmp::Ordering;

/// TopK: `k` was an attribute before opset 10, `largest` came with 11. Of equal elements the one with the lower index
/// is first; NaN is above all numbers; results are sorted whether asked or not.
pub fn top_k(call: &mut Call) -> Result<Outputs, Fault> {
    let array = call.take(0)?;
    match array.element() {
        ElementType::FLOAT => chosen(call, &array, |x: f32| x),
        ElementType::DOUBLE => chosen(call, &array, |x: f64| x),
        ElementType::FLOAT16 => chosen(call, &array, f16::to_f32),
        ElementType::BFLOAT16 => chosen(call, &array, bf16::to_f32),
        ElementType::INT8 => chosen(call, &array, |x: i8| x),
        ElementType::INT16 => chosen(call, &array, |x: i16| x),
        ElementType::INT32 => chosen(call, &array, |x: i32| x),
        ElementType::INT64 => chosen(call, &array, |x: i64| x),
        ElementType::UINT8 => chosen(call, &array, |x: u8| x),
        ElementType::UINT16 => chosen(call, &array, |x: u16| x),
        ElementType::UINT32 => chosen(call, &array, |x: u32| x),
        ElementType::UINT64 => chosen(call, &array, |x: u64| x),
        other => call.unsupported(other),
    }
}

fn chosen<T: Element + Copy, K: PartialOrd>(
    call: &mut Call,
    array: &Array,
    key: impl Fn(T) -> K + Sync,
) -> Result<Outputs, Fault> {
    let axis = call.axis(call.attributes.int("axis", -1)?, array.rank())?;
    let k = match call.opset {
        ..10 => call.attributes.int("k", -1)?,
        _ => call.input(1)?.integers()?.first().copied().unwrap_or(-1),
    };
    let largest = call.attributes.int("largest", 1)? != 0;
    let length = array.dims()[axis];
    let k = usize::try_from(k).ok().filter(|k| *k <= length);
    let k =
        k.ok_or_else(|| Fault::Invalid(format!("k is not from 0 to {length}, the elements of the axis")))?;
    let mut dims: Dims = array.dims().into();
    dims[axis] = k;
    let count = call.elements(&dims, size_of::<T>() + 8)?;
    let order = |a: &K, b: &K| {
        let order = a.partial_cmp(b).unwrap_or_else(|| {
            let nan = |k: &K| k.partial_cmp(k).is_none();
            nan(a).cmp(&nan(b))
        });
        if largest { order.reverse() } else { order }
    };
    let first = |row: &[T]| -> Vec<usize> {
        let by = |a: &usize, b: &usize| -> Ordering { order(&key(row[*a]), &key(row[*b])).then(a.cmp(b)) };
        let mut places: Vec<usize> = (0..row.len()).collect();
        if k < row.len() && k > 0 {
            places.select_nth_unstable_by(k - 1, by);
        }
        places.truncate(k);
        places.sort_unstable_by(by);
        places
    };
    let from = array.view::<T>()?;
    let rows = Rows::along(array.dims(), axis);
    call.working_space = (length * size_of::<usize>() + rows.count() * (k * 8 + 24)) as u64;
    let mut plain = vec![T::default(); count];
    let mut indices = vec![0i64; count];
    if count > 0 {
        let room = call.working_space;
        let places = rows.gathered(call, from, &first);
        call.working_space += room;
        for (row, places) in places.into_iter().enumerate() {
            let (outer, inner) = (row / rows.inner, row % rows.inner);
            for (rank, place) in places.into_iter().enumerate() {
                let to = (outer * k + rank) * rows.inner + inner;
                plain[to] = from[(outer * length + place) * rows.inner + inner];
                indices[to] = place as i64;
            }
        }
    }
    let values = Array::of(array.element(), &dims, T::store(plain));
    Ok(smallvec![Some(values.into()), Some(Array::new(&dims, indices).into())])
}
