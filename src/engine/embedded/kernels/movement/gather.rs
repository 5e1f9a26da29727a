//! Reading by index: Gather, GatherElements, GatherND.

use super::view::strides;
use super::words::{Word, with_word};
use crate::engine::array::{Array, Dims, Storage};
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::fault::Fault;

/// Places in an axis from an array of indices, which may count from the end.
pub fn places(indices: &Array, length: usize) -> Result<Vec<usize>, Fault> {
    let place = |index: i64| {
        let at = if index < 0 { index.checked_add_unsigned(length as u64) } else { Some(index) };
        at.and_then(|at| usize::try_from(at).ok())
            .filter(|at| *at < length)
            .ok_or_else(|| Fault::Invalid(format!("index {index} is outside an axis of {length}")))
    };
    match indices.storage() {
        Storage::I64(v) => v.iter().map(|i| place(*i)).collect(),
        Storage::I32(v) => v.iter().map(|i| place(i64::from(*i))).collect(),
        _ => Err(Fault::element(indices.element())),
    }
}

/// Gather.
pub fn gather(call: &mut Call) -> Result<Outputs, Fault> {
    let (array, indices) = (call.input(0)?, call.input(1)?);
    let axis = call.axis(call.attributes.int("axis", 0)?, array.rank())?;
    let places = places(indices, array.dims()[axis])?;
    let (outer, inner) = (&array.dims()[..axis], &array.dims()[axis + 1..]);
    let dims: Dims = outer.iter().chain(indices.dims()).chain(inner).copied().collect();
    let width: usize = inner.iter().product();
    let outer: usize = outer.iter().product();
    let step = width * array.dims()[axis];
    with_word!(array, W => {
        let from = W::of(array)?;
        let count = call.elements(&dims, size_of::<W>())?;
        let mut to: Vec<W> = Vec::with_capacity(count);
        if count > 0 {
            for row in 0..outer {
                let from = &from[row * step..(row + 1) * step];
                if width == 1 {
                    to.extend(places.iter().map(|p| from[*p].clone()));
                } else {
                    for place in &places {
                        to.extend_from_slice(&from[place * width..(place + 1) * width]);
                    }
                }
            }
        }
        one(W::array(array, &dims, to)?)
    })
}

/// Where each element of an array of indices stands in the data, when along `axis` it says so itself and its own
/// position says it along the others (GatherElements, ScatterElements).
pub fn element_places(
    call: &Call,
    data: &[usize],
    indices: &Array,
    axis: usize,
) -> Result<Vec<usize>, Fault> {
    let dims = indices.dims();
    let fits =
        dims.len() == data.len() && dims.iter().zip(data).enumerate().all(|(a, (i, d))| a == axis || i <= d);
    if !fits {
        return Err(Fault::Invalid(format!("indices of shape {dims:?} do not fit data of shape {data:?}")));
    }
    call.elements(dims, size_of::<usize>())?;
    let mut places = places(indices, data[axis])?;
    let steps = strides(data);
    let mut at: Dims = Dims::from_elem(0, dims.len());
    for place in &mut places {
        let others = (0..dims.len()).filter(|a| *a != axis).map(|a| at[a] * steps[a] as usize).sum::<usize>();
        *place = *place * steps[axis] as usize + others;
        for a in (0..dims.len()).rev() {
            at[a] += 1;
            if at[a] < dims[a] {
                break;
            }
            at[a] = 0;
        }
    }
    Ok(places)
}

/// GatherElements.
pub fn gather_elements(call: &mut Call) -> Result<Outputs, Fault> {
    let (array, indices) = (call.input(0)?, call.input(1)?);
    let axis = call.axis(call.attributes.int("axis", 0)?, array.rank())?;
    let places = element_places(call, array.dims(), indices, axis)?;
    with_word!(array, W => {
        let from = W::of(array)?;
        call.elements(indices.dims(), size_of::<W>())?;
        one(W::array(array, indices.dims(), places.iter().map(|p| from[*p].clone()).collect())?)
    })
}

/// Where the block that each row of indices names begins; `data` are the dimensions that a row walks through.
pub fn tuple_places(indices: &[i64], data: &[usize]) -> Result<Vec<usize>, Fault> {
    let depth = data.len();
    let block = |row: &[i64]| {
        row.iter().zip(data).try_fold(0usize, |place, (index, length)| {
            let at = if *index < 0 { index.checked_add_unsigned(*length as u64) } else { Some(*index) };
            match at.and_then(|at| usize::try_from(at).ok()).filter(|at| at < length) {
                Some(at) => Ok(place * length + at),
                None => Err(Fault::Invalid(format!("index {row:?} is outside shape {data:?}"))),
            }
        })
    };
    if depth == 0 { Ok(Vec::new()) } else { indices.chunks(depth).map(block).collect() }
}

/// GatherND; `batch_dims` comes with opset 12.
pub fn gather_nd(call: &mut Call) -> Result<Outputs, Fault> {
    let (array, indices) = (call.input(0)?, call.input(1)?);
    let batch = super::dimension(call.attributes.int("batch_dims", 0)?)?;
    let refused = || {
        Fault::Invalid(format!(
            "indices of shape {:?} do not fit data of shape {:?} with {batch} batch dimensions",
            indices.dims(),
            array.dims()
        ))
    };
    let (depth, rows) = indices.dims().split_last().ok_or_else(refused)?;
    if batch > rows.len() || batch + depth > array.rank() || rows[..batch] != array.dims()[..batch] {
        return Err(refused());
    }
    let walked = &array.dims()[batch..batch + depth];
    let inner = &array.dims()[batch + depth..];
    let dims: Dims = rows.iter().chain(inner).copied().collect();
    let batches: usize = rows[..batch].iter().product();
    let each: usize = rows[batch..].iter().product();
    let width: usize = inner.iter().product();
    let step = walked.iter().product::<usize>() * width;
    let places = match depth {
        0 => vec![0; batches * each],
        _ => tuple_places(&indices.integers()?, walked)?,
    };
    with_word!(array, W => {
        let from = W::of(array)?;
        let count = call.elements(&dims, size_of::<W>())?;
        let mut to: Vec<W> = Vec::with_capacity(count);
        if count > 0 {
            for (row, place) in places.iter().enumerate() {
                let start = row / each * step + place * width;
                to.extend_from_slice(&from[start..start + width]);
            }
        }
        one(W::array(array, &dims, to)?)
    })
}
