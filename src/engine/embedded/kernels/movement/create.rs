//! Arrays made from numbers and shapes: Range, ConstantOfShape, EyeLike, Trilu, OneHot.

use super::words::{Word, with_word};
use super::{TOO_MANY, dimension};
use crate::engine::array::{Array, Dims, Element, Storage};
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::fault::Fault;
use crate::ir::ElementType;
use half::{bf16, f16};

/// Range. float16 and bfloat16 (opset 27) count in float32, or in float64 when `stash_type` says so.
pub fn range(call: &mut Call) -> Result<Outputs, Fault> {
    /// How many numbers there are: `max(ceil((limit - start) / delta), 0)`.
    fn count(distance: f64, delta: f64) -> Result<usize, Fault> {
        let count = (distance / delta).ceil();
        if delta == 0.0 || count.is_nan() || count > u32::MAX as f64 * 1024.0 {
            return Err(Fault::Invalid(format!("steps of {delta} over {distance} have no end")));
        }
        Ok(count.max(0.0) as usize)
    }
    fn integers(call: &Call) -> Result<(i128, i128, usize), Fault> {
        let number = |index: usize| -> Result<i128, Fault> {
            match call.input(index)?.integers()?.as_slice() {
                [one] => Ok(i128::from(*one)),
                _ => Err(Fault::Invalid(format!("input {index} is not one number"))),
            }
        };
        let (start, limit, delta) = (number(0)?, number(1)?, number(2)?);
        if delta == 0 {
            return Err(Fault::Invalid("the step is 0".into()));
        }
        let distance = if delta > 0 { limit - start } else { start - limit };
        let count = if distance <= 0 { 0 } else { (distance - 1) / delta.abs() + 1 };
        Ok((start, delta, usize::try_from(count).map_err(|_| TOO_MANY)?))
    }
    macro_rules! whole {
        ($t:ty) => {{
            let (start, delta, count) = integers(call)?;
            let mut to = call.vec::<$t>(&[count])?;
            to.extend((0..count).map(|i| (start + delta * i as i128) as $t));
            one(Array::new(&[count], to))
        }};
    }
    macro_rules! real {
        ($t:ty, $wide:ty, $to_wide:expr, $from_wide:expr) => {{
            let number =
                |index: usize| -> Result<$wide, Fault> { Ok($to_wide(call.input(index)?.single::<$t>()?)) };
            let (start, limit, delta) = (number(0)?, number(1)?, number(2)?);
            let count = count(f64::from(limit - start), f64::from(delta))?;
            let mut to = call.vec::<$t>(&[count])?;
            to.extend((0..count).map(|i| $from_wide(start + i as $wide * delta)));
            one(Array::new(&[count], to))
        }};
    }
    let stash = call.attributes.element("stash_type")?.unwrap_or(ElementType::FLOAT);
    let element = call.input(0)?.element();
    match element {
        ElementType::FLOAT => real!(f32, f32, |v| v, |v| v),
        ElementType::DOUBLE => real!(f64, f64, |v| v, |v| v),
        ElementType::FLOAT16 if stash == ElementType::DOUBLE => real!(f16, f64, f16::to_f64, f16::from_f64),
        ElementType::FLOAT16 => real!(f16, f32, f16::to_f32, f16::from_f32),
        ElementType::BFLOAT16 if stash == ElementType::DOUBLE => {
            real!(bf16, f64, bf16::to_f64, bf16::from_f64)
        }
        ElementType::BFLOAT16 => real!(bf16, f32, bf16::to_f32, bf16::from_f32),
        ElementType::INT16 => whole!(i16),
        ElementType::INT32 => whole!(i32),
        ElementType::INT64 => whole!(i64),
        other => call.unsupported(other),
    }
}

/// ConstantOfShape; a float32 zero when no value is given.
pub fn constant_of_shape(call: &mut Call) -> Result<Outputs, Fault> {
    let dims: Dims = call.input(0)?.integers()?.iter().map(|d| dimension(*d)).collect::<Result<_, _>>()?;
    let value = match call.attributes.tensor("value")? {
        Some(value) => Array::try_from(value)?,
        None => Array::scalar(0f32),
    };
    with_word!(value, W => {
        let count = call.elements(&dims, size_of::<W>())?;
        let [each] = W::of(&value)? else {
            return Err(Fault::Invalid(format!("the value has {} elements", value.len())));
        };
        one(W::array(&value, &dims, vec![each.clone(); count])?)
    })
}

/// EyeLike.
pub fn eye_like(call: &mut Call) -> Result<Outputs, Fault> {
    let like = call.input(0)?;
    let [rows, columns] = *like.dims() else {
        return Err(Fault::Invalid(format!("shape {:?} is not of rank 2", like.dims())));
    };
    let offset = call.attributes.int("k", 0)?;
    let element = match call.attributes.element("dtype")?.unwrap_or(like.element()) {
        element if call.wide && element.is_float() => ElementType::DOUBLE,
        element => element,
    };
    macro_rules! eye {
        ($t:ty, $one:expr) => {{
            let mut to = call.zeros::<$t>(&[rows, columns])?;
            for row in 0..rows {
                if let Some(column) =
                    offset.checked_add_unsigned(row as u64).and_then(|c| usize::try_from(c).ok())
                    && column < columns
                {
                    to[row * columns + column] = $one;
                }
            }
            one(Array::of(element, &[rows, columns], Element::store(to)))
        }};
    }
    match element {
        ElementType::FLOAT => eye!(f32, 1.0),
        ElementType::DOUBLE => eye!(f64, 1.0),
        ElementType::FLOAT16 => eye!(f16, f16::ONE),
        ElementType::BFLOAT16 => eye!(bf16, bf16::ONE),
        ElementType::INT8 => eye!(i8, 1),
        ElementType::INT16 => eye!(i16, 1),
        ElementType::INT32 => eye!(i32, 1),
        ElementType::INT64 => eye!(i64, 1),
        ElementType::UINT8 | ElementType::BOOL => eye!(u8, 1),
        ElementType::UINT16 => eye!(u16, 1),
        ElementType::UINT32 => eye!(u32, 1),
        ElementType::UINT64 => eye!(u64, 1),
        other => call.unsupported(other),
    }
}

/// Trilu: what is on the other side of the diagonal `k` becomes zero.
pub fn trilu(call: &mut Call) -> Result<Outputs, Fault> {
    let upper = call.attributes.int("upper", 1)? != 0;
    let offset = match call.optional(1)? {
        Some(k) => k.single::<i64>()?,
        None => 0,
    };
    let array = call.input(0)?;
    let [.., rows, columns] = *array.dims() else {
        return Err(Fault::Invalid(format!("shape {:?} has less than two axes", array.dims())));
    };
    if array.is_empty() {
        return one(call.take(0)?);
    }
    let array = call.take(0)?;
    call.elements(array.dims(), array.bytes() / array.len())?;
    with_word!(array, W => {
        one(W::edited(array, |to| {
            for (row, to) in to.chunks_mut(columns).enumerate() {
                // First column that is on or above the diagonal in the upper form, above it in the lower one.
                let edge = offset.saturating_add_unsigned((row % rows) as u64);
                let edge = if upper { edge } else { edge.saturating_add(1) };
                let edge = edge.clamp(0, columns as i64) as usize;
                if upper { to[..edge].fill(W::default()) } else { to[edge..].fill(W::default()) }
            }
        })?)
    })
}

/// OneHot; indices may count from the end since opset 11, and those outside are "off" everywhere.
pub fn one_hot(call: &mut Call) -> Result<Outputs, Fault> {
    let (indices, values) = (call.input(0)?, call.input(2)?);
    let depth = match numbers(call.input(1)?)?.as_slice() {
        [depth] if *depth > 0 => dimension(*depth)?,
        other => return Err(Fault::Invalid(format!("the depth is {other:?}"))),
    };
    let rank = indices.rank();
    let axis = call.axis(call.attributes.int("axis", -1)?, rank + 1)?;
    let mut dims: Dims = indices.dims().into();
    dims.insert(axis, depth);
    let places: Vec<Option<usize>> = numbers(indices)?
        .into_iter()
        .map(|i| {
            let at = if i < 0 { i.checked_add_unsigned(depth as u64) } else { Some(i) };
            at.and_then(|at| usize::try_from(at).ok()).filter(|at| *at < depth)
        })
        .collect();
    let inner: usize = indices.dims()[axis..].iter().product();
    with_word!(values, W => {
        let [off, on] = W::of(values)? else {
            return Err(Fault::Invalid(format!("there are {} values where two are needed", values.len())));
        };
        let count = call.elements(&dims, size_of::<W>())?;
        let mut to = vec![off.clone(); count];
        for (at, place) in places.iter().enumerate() {
            if let Some(place) = place {
                to[(at / inner * depth + place) * inner + at % inner] = on.clone();
            }
        }
        one(W::array(values, &dims, to)?)
    })
}

/// Elements of any number type as int64, fractions cut off.
fn numbers(array: &Array) -> Result<Vec<i64>, Fault> {
    match array.storage() {
        Storage::U64(v) => Ok(v.iter().map(|v| i64::try_from(*v).unwrap_or(i64::MAX)).collect()),
        Storage::F32(_) | Storage::F64(_) | Storage::F16(_) | Storage::BF16(_) => {
            let values = array.approximate().unwrap_or_default();
            Ok(values.into_iter().map(|v| if v.is_nan() { i64::MAX } else { v as i64 }).collect())
        }
        _ => array.integers(),
    }
}
