//! MaxUnpool.

use super::window::Window;
use crate::engine::Fault;
use crate::engine::array::with_storage_type;
use crate::engine::array::{Array, Dims, Element};
use crate::engine::embedded::call::{Call, Outputs, one};

/// MaxUnpool: indices count over the shape that the attributes give; in an `output_shape` that is larger, the result
/// stands at the start of every axis.
pub fn max_unpool(call: &mut Call) -> Result<Outputs, Fault> {
    let (x, indices) = (call.input(0)?, call.input(1)?.integers()?);
    let [batch, channels, space @ ..] = x.dims() else {
        return Err(Fault::Invalid(format!("an input of shape {:?} has no planes", x.dims())));
    };
    if indices.len() != x.len() {
        return Err(Fault::Invalid(format!("{} indices for {} elements", indices.len(), x.len())));
    }
    let kernel = call.attributes.ints("kernel_shape")?;
    let kernel: Option<Vec<usize>> =
        kernel.and_then(|k| k.iter().map(|k| usize::try_from(*k).ok()).collect());
    let kernel = kernel.ok_or_else(|| Fault::Invalid("kernel_shape is missing or negative".into()))?;
    let window = Window::before_output(&call.attributes, space, &kernel)?;
    let mut inferred = Dims::from_slice(&[*batch, *channels]);
    for axis in 3 - window.rank..3 {
        let full = window.input[axis].saturating_sub(1) * window.strides[axis] + window.kernel[axis];
        let size = full.checked_sub(window.begin[axis] + window.end[axis]);
        inferred.push(size.ok_or_else(|| Fault::Invalid("pads are more than there is".into()))?);
    }
    let dims = match call.optional(2)? {
        None => inferred.clone(),
        Some(shape) => {
            let shape = shape.integers()?;
            let dims: Option<Dims> = shape.iter().map(|d| usize::try_from(*d).ok()).collect();
            let larger = |d: &Dims| d.len() == inferred.len() && d.iter().zip(&inferred).all(|(d, i)| d >= i);
            dims.filter(larger)
                .ok_or_else(|| Fault::Invalid(format!("output_shape {shape:?} does not hold {inferred:?}")))?
        }
    };
    let count = call.elements(&inferred, 1)?;
    let places = indices.iter().map(|index| {
        let place = usize::try_from(*index).ok().filter(|i| *i < count);
        let mut place =
            place.ok_or_else(|| Fault::Invalid(format!("index {index} is not within {count}")))?;
        // The same place in the shape of the output.
        let (mut moved, mut step) = (0, 1);
        for (own, size) in inferred.iter().zip(&dims).rev() {
            moved += place % own * step;
            place /= own;
            step *= size;
        }
        Ok(moved)
    });
    let places = places.collect::<Result<Vec<usize>, Fault>>()?;
    let storage = with_storage_type!(x.storage(), T => T::store(placed::<T>(call, x, &dims, &places)?));
    one(Array::of(x.element(), &dims, storage))
}

fn placed<T: Element>(call: &Call, x: &Array, dims: &[usize], places: &[usize]) -> Result<Vec<T>, Fault> {
    let mut out = call.zeros::<T>(dims)?;
    for (place, value) in places.iter().zip(x.view::<T>()?) {
        out[*place] = value.clone();
    }
    Ok(out)
}
