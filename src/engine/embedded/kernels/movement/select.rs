//! Operators whose output shape depends on the values: NonZero, Compress, Unique.

use super::view::{View, strides};
use super::words::{Word, with_word};
use crate::engine::array::{Array, Dims, Element, Storage, Value, with_storage_type};
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::fault::Fault;
use crate::ir::ElementType;
use bytes::Bytes;
use half::{bf16, f16};
use std::cmp::Ordering;

/// NonZero; a scalar gives a shape of 0 by the number of elements that are not zero, as the standard says.
pub fn non_zero(call: &mut Call) -> Result<Outputs, Fault> {
    let array = call.input(0)?;
    fn set<T: Element>(array: &Array) -> Result<Vec<usize>, Fault> {
        // Zero of either sign equals the default; a NaN does not.
        let zero = T::default();
        Ok(array.view::<T>()?.iter().enumerate().filter(|(_, v)| **v != zero).map(|(i, _)| i).collect())
    }
    let small_float = array.element().bits() <= 8 && array.element().is_float();
    if small_float || array.element() == ElementType::STRING {
        return call.unsupported(array.element());
    }
    let set = with_storage_type!(array.storage(), T => set::<T>(array)?);
    let dims = [array.rank(), set.len()];
    let mut to = call.vec::<i64>(&dims)?;
    for (dim, step) in array.dims().iter().zip(strides(array.dims())) {
        to.extend(set.iter().map(|at| (at / step as usize % dim) as i64));
    }
    one(Array::new(&dims, to))
}

/// Compress.
pub fn compress(call: &mut Call) -> Result<Outputs, Fault> {
    let (array, condition) = (call.input(0)?, call.input(1)?);
    if condition.element() != ElementType::BOOL || condition.rank() != 1 {
        return Err(Fault::Invalid(format!(
            "the condition is {} {:?}",
            condition.element(),
            condition.dims()
        )));
    }
    let axis = call.attributes.optional_int("axis")?.map(|a| call.axis(a, array.rank())).transpose()?;
    let (outer, length, inner, mut dims): (usize, usize, usize, Dims) = match axis {
        None => (1, array.len(), 1, smallvec::smallvec![0]),
        Some(axis) => {
            let dims = array.dims();
            (dims[..axis].iter().product(), dims[axis], dims[axis + 1..].iter().product(), dims.into())
        }
    };
    let kept: Vec<usize> =
        condition.view::<u8>()?.iter().enumerate().filter(|(_, c)| **c != 0).map(|(i, _)| i).collect();
    if kept.last().is_some_and(|last| *last >= length) {
        return Err(Fault::Invalid(format!("the condition is true beyond the axis of {length}")));
    }
    dims[axis.unwrap_or(0)] = kept.len();
    with_word!(array, W => {
        let from = W::of(array)?;
        let mut to: Vec<W> = Vec::with_capacity(call.elements(&dims, size_of::<W>())?);
        for row in 0..outer {
            for at in &kept {
                let place = (row * length + at) * inner;
                to.extend_from_slice(&from[place..place + inner]);
            }
        }
        one(W::array(array, &dims, to)?)
    })
}

/// An order of elements in which zeros of both signs are equal, and so are NaNs, which come last (as NumPy sorts).
trait Ordered: Element {
    fn order(&self, other: &Self) -> Ordering;
}

macro_rules! ordered {
    (whole: $($t:ty)*) => {
        $(impl Ordered for $t {
            fn order(&self, other: &Self) -> Ordering {
                self.cmp(other)
            }
        })*
    };
    (float: $($t:ty)*) => {
        $(impl Ordered for $t {
            fn order(&self, other: &Self) -> Ordering {
                self.partial_cmp(other).unwrap_or_else(|| self.is_nan().cmp(&other.is_nan()))
            }
        })*
    };
}

ordered!(whole: i8 i16 i32 i64 u8 u16 u32 u64 Bytes);
ordered!(float: f32 f64 f16 bf16);

/// Unique, of the elements or of the slices along an axis.
pub fn unique(call: &mut Call) -> Result<Outputs, Fault> {
    let array = call.input(0)?;
    let sorted = call.attributes.int("sorted", 1)? != 0;
    let axis = call.attributes.optional_int("axis")?.map(|a| call.axis(a, array.rank())).transpose()?;
    // The slices one after the other, so that each is a row.
    let mut order: Vec<usize> = (0..array.rank()).collect();
    let rows = match axis {
        Some(axis) => {
            order.remove(axis);
            order.insert(0, axis);
            let view = View::dense(array.dims()).permuted(&order);
            view.copy(call, array, &view.dims)?
        }
        None => array.clone().reshaped(&[array.len()]),
    };
    let count = rows.dims()[0];
    let width: usize = rows.dims()[1..].iter().product();
    macro_rules! groups {
        ($($variant:ident $t:ty,)*) => {
            match rows.storage() {
                $(Storage::$variant(_) => groups::<$t>(rows.view::<$t>()?, count, width, sorted),)*
                _ => return call.unsupported(rows.element()),
            }
        };
    }
    let small_float = rows.element().bits() < 8 || (rows.element().bits() == 8 && rows.element().is_float());
    if small_float && rows.element() != ElementType::BOOL {
        return call.unsupported(rows.element());
    }
    let groups = groups!(
        F32 f32, F64 f64, F16 f16, BF16 bf16, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64,
        Strings Bytes,
    );
    let mut inverse = vec![0i64; count];
    for (number, group) in groups.iter().enumerate() {
        for row in group {
            inverse[*row] = number as i64;
        }
    }
    let first: Vec<usize> = groups.iter().map(|g| g[0]).collect();
    let mut dims: Dims = rows.dims().into();
    dims[0] = first.len();
    let mut values = with_word!(rows, W => {
        let from = W::of(&rows)?;
        let mut to: Vec<W> = Vec::with_capacity(first.len() * width);
        for row in &first {
            to.extend_from_slice(&from[row * width..(row + 1) * width]);
        }
        W::array(&rows, &dims, to)?
    });
    if let Some(axis) = axis {
        let mut back: Vec<usize> = (1..order.len()).collect();
        back.insert(axis, 0);
        let view = View::dense(&dims).permuted(&back);
        values = view.copy(call, &values, &view.dims)?;
    }
    let counts = groups.iter().map(|g| g.len() as i64).collect();
    let integers = |v: Vec<i64>| Some(Value::Array(Array::ints(v)));
    Ok(smallvec::smallvec![
        Some(Value::Array(values)),
        integers(first.iter().map(|r| *r as i64).collect()),
        integers(inverse),
        integers(counts),
    ])
}

/// Equal rows together, each group in order of rows; groups in order of their values or of their first rows.
fn groups<T: Ordered>(elements: &[T], count: usize, width: usize, sorted: bool) -> Vec<Vec<usize>> {
    let row = |at: usize| &elements[at * width..(at + 1) * width];
    let order = |a: usize, b: usize| {
        row(a).iter().zip(row(b)).map(|(a, b)| a.order(b)).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
    };
    let mut rows: Vec<usize> = (0..count).collect();
    rows.sort_by(|a, b| order(*a, *b));
    let mut groups: Vec<Vec<usize>> =
        rows.chunk_by(|a, b| order(*a, *b).is_eq()).map(<[usize]>::to_vec).collect();
    if !sorted {
        groups.sort_by_key(|g| g[0]);
    }
    groups
}
