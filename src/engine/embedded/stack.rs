//! One slice of an array, and many put together along a new axis.

use crate::engine::array::{Array, Dims, Element, with_storage_type};
use crate::engine::fault::Fault;
use crate::ir::Type;

/// The slice at an index of an axis, without that axis.
pub fn slice_along(array: &Array, axis: usize, index: usize) -> Result<Array, Fault> {
    let dims = array.dims();
    let inner: usize = dims[axis + 1..].iter().product();
    let length = dims[axis];
    let mut rest: Dims = dims.into();
    rest.remove(axis);
    let storage = with_storage_type!(array.storage(), T => {
        let from = array.view::<T>()?;
        let mut out = Vec::with_capacity(rest.iter().product());
        for block in from.chunks_exact((inner * length).max(1)) {
            out.extend_from_slice(&block[index * inner..(index + 1) * inner]);
        }
        T::store(out)
    });
    Ok(Array::of(array.element(), &rest, storage))
}

/// Arrays of one shape along a new axis. Of no arrays: an empty one of the declared type, in which dimensions that are
/// not known are 0.
pub fn stack_along(list: &[Array], axis: usize, declared: &Type, room: u64) -> Result<Array, Fault> {
    let Some(first) = list.first() else {
        let element =
            declared.element().ok_or_else(|| Fault::Invalid("no iteration, and no declared type".into()))?;
        let mut dims: Dims = declared
            .shape()
            .map(|s| s.iter().map(|d| d.fixed().map_or(0, |d| d as usize)).collect())
            .unwrap_or_default();
        dims.insert(axis.min(dims.len()), 0);
        let empty = crate::ir::Tensor::new(element, dims.iter().map(|d| *d as u64), bytes::Bytes::new());
        return match element {
            crate::ir::ElementType::STRING => Ok(Array::new::<bytes::Bytes>(&dims, Vec::new())),
            _ => Array::try_from(&empty),
        };
    };
    if let Some(other) = list.iter().find(|a| a.dims() != first.dims() || a.element() != first.element()) {
        return Err(Fault::Invalid(format!(
            "iterations gave {}{:?} and {}{:?}",
            first.element(),
            first.dims(),
            other.element(),
            other.dims()
        )));
    }
    let needed = (first.bytes() as u64).saturating_mul(list.len() as u64);
    if needed > room {
        return Err(Fault::TooLarge { needed, limit: room });
    }
    let mut dims: Dims = first.dims().into();
    dims.insert(axis, list.len());
    let inner: usize = first.dims()[axis..].iter().product();
    let outer: usize = first.dims()[..axis].iter().product();
    let storage = with_storage_type!(first.storage(), T => {
        let views: Vec<&[T]> = list.iter().map(|a| a.view::<T>()).collect::<Result<_, _>>()?;
        let mut out = Vec::with_capacity(dims.iter().product());
        for block in 0..outer {
            for view in &views {
                out.extend_from_slice(&view[block * inner..(block + 1) * inner]);
            }
        }
        T::store(out)
    });
    Ok(Array::of(first.element(), &dims, storage))
}
