//! ConvTranspose and Col2Im: what a window spreads over an image is added up.

use super::columns;
use super::window::Window;
use crate::engine::Fault;
use crate::engine::array::{Array, Dims, Storage};
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::embedded::kernels::product::{natural, with_factor};
use crate::engine::embedded::kernels::real::{Real, in_real};
use crate::engine::embedded::products::{Factor, Matrix};

/// ConvTranspose of one to three spatial axes (all opsets; float types).
pub fn conv_transpose(call: &mut Call) -> Result<Outputs, Fault> {
    in_real!(call, 0, transposed)
}

fn transposed<T: Real>(call: &mut Call) -> Result<Outputs, Fault> {
    let (x, filters) = (call.input(0)?, call.input(1)?);
    let unfit = || {
        Fault::Invalid(format!(
            "an input of shape {:?} does not fit filters of {:?}",
            x.dims(),
            filters.dims()
        ))
    };
    let ([batch, channels, space @ ..], [from, per_group, kernel @ ..]) = (x.dims(), filters.dims()) else {
        return Err(unfit());
    };
    let groups = usize::try_from(call.attributes.int("group", 1)?).ok().filter(|g| *g > 0);
    let groups = groups.ok_or_else(|| Fault::Invalid("group is not positive".into()))?;
    if from != channels || channels % groups != 0 {
        return Err(unfit());
    }
    let window = spread(call, space, kernel)?;
    let out_channels = per_group.checked_mul(groups).ok_or_else(unfit)?;
    let mut dims = Dims::from_slice(&[*batch, out_channels]);
    dims.extend_from_slice(&window.input[3 - window.rank..]);
    let bias = call.optional(2)?;
    if let Some(b) = bias
        && b.dims() != [out_channels]
    {
        return Err(Fault::Invalid(format!(
            "the bias has shape {:?} where there are {out_channels} channels",
            b.dims()
        )));
    }
    let bias = bias.map(T::load).transpose()?;
    let (values, weights) = (T::load(x)?, T::load(filters)?);
    let (plane, out_plane) = (window.output_count(), window.input_count());
    let (inner, rows) = (channels / groups, per_group * window.taps());
    let mut out = call.zeros::<T>(&dims)?;
    let space = call.elements(&[rows, plane], size_of::<T>())?;
    let mut spreads = Vec::with_capacity(space);
    if out.is_empty() {
        return one(T::array(x.element(), &dims, out));
    }
    for (index, out) in out.chunks_mut(per_group * out_plane).enumerate() {
        let group = index % groups;
        let left = Matrix::new(&weights[group * inner * rows..], inner, rows).transposed();
        let right = Matrix::new(&values[index * inner * plane..], inner, plane);
        spreads.clear();
        T::product(&mut spreads, left, right)?;
        for (k, out) in out.chunks_mut(out_plane).enumerate() {
            if let Some(bias) = &bias {
                out.fill(bias[group * per_group + k]);
            }
            let each = window.taps() * plane;
            columns::accumulate(out, &spreads[k * each..(k + 1) * each], &window);
        }
    }
    let element = x.element();
    call.working_space = (space * size_of::<T>()) as u64;
    one(T::array(element, &dims, out))
}

/// The window of a transposed convolution: it stands on the *output* of the operator, once for each element of the
/// operator's input.
fn spread(call: &Call, space: &[usize], kernel: &[usize]) -> Result<Window, Fault> {
    let attributes = &call.attributes;
    let mut window = Window::before_output(attributes, space, kernel)?;
    let rank = window.rank;
    let list = |name: &str| -> Result<Option<&[i64]>, Fault> {
        Ok(attributes.ints(name)?.filter(|list| !list.is_empty()))
    };
    let added = list("output_padding")?;
    // Some exporters give batch and channels as well.
    let wanted = list("output_shape")?.map(|w| if w.len() == rank + 2 { &w[2..] } else { w });
    if added.is_some_and(|a| a.len() != rank) || wanted.is_some_and(|w| w.len() != rank) {
        return Err(Fault::Invalid(
            "output_padding or output_shape has not as many axes as the input".into(),
        ));
    }
    let auto = attributes.text("auto_pad", "NOTSET")?;
    let at = |list: Option<&[i64]>, axis: usize| -> Result<Option<usize>, Fault> {
        let Some(list) = list else { return Ok(None) };
        let size = list.get((axis + rank).wrapping_sub(3)).copied().unwrap_or(i64::from(axis + rank < 3));
        let small = usize::try_from(size).ok().filter(|s| *s <= 1 << 31);
        small.map(Some).ok_or_else(|| Fault::Invalid(format!("a size of {size} in {list:?}")))
    };
    for axis in 3 - rank..3 {
        let size = window.input[axis];
        let stride = window.strides[axis];
        let full = size.saturating_sub(1) * stride + window.reach(axis) + at(added, axis)?.unwrap_or(0);
        let given = at(wanted, axis)?;
        let wanted = match auto {
            "SAME_UPPER" | "SAME_LOWER" => Some(given.unwrap_or(size * stride)),
            _ => given,
        };
        if auto.starts_with("SAME") && given.is_none() && size * stride > full {
            // The standard gives input · stride, ONNX Runtime only what the windows reach.
            return call.unsupported("auto_pad of windows that leave gaps in the output");
        }
        let output = match (wanted, auto) {
            (Some(output), _) => {
                let padding = full.saturating_sub(output);
                let smaller = padding / 2;
                let before = if auto == "SAME_UPPER" { smaller } else { padding - smaller };
                (window.begin[axis], window.end[axis]) = (before, padding - before);
                output
            }
            (None, "VALID") => {
                (window.begin[axis], window.end[axis]) = (0, 0);
                full
            }
            (None, "NOTSET" | "") => {
                full.checked_sub(window.begin[axis] + window.end[axis]).ok_or_else(|| {
                    Fault::Invalid(format!(
                        "padding {} and {} is more than the {full} elements that there are",
                        window.begin[axis], window.end[axis]
                    ))
                })?
            }
            (None, other) => return Err(Fault::Invalid(format!("auto_pad={other} is not known"))),
        };
        window.output[axis] = size;
        window.input[axis] = output;
    }
    Ok(window)
}

/// Col2Im: adds up blocks of one to three spatial axes (numbers of every type, integers with wrap-around).
pub fn col2im(call: &mut Call) -> Result<Outputs, Fault> {
    let x = call.input(0)?;
    let sizes = |index: usize| -> Result<Vec<usize>, Fault> {
        let sizes = call.input(index)?.integers()?;
        let sizes: Option<Vec<usize>> = sizes.iter().map(|s| usize::try_from(*s).ok()).collect();
        sizes.ok_or_else(|| Fault::Invalid(format!("input {index} has negative sizes")))
    };
    let (image, block) = (sizes(1)?, sizes(2)?);
    let window = Window::new(&call.attributes, &image, &block, super::window::Rounding::Down)?;
    let &[batch, rows, places] = x.dims() else {
        return Err(Fault::Invalid(format!("an input of shape {:?} where three axes are needed", x.dims())));
    };
    let taps = window.taps();
    if rows % taps != 0 || places != window.output_count() {
        return Err(Fault::Invalid(format!(
            "an input of shape {:?} does not fit {taps} elements at {} places",
            x.dims(),
            window.output_count()
        )));
    }
    let mut dims = Dims::from_slice(&[batch, rows / taps]);
    dims.extend_from_slice(&image);
    if matches!(x.storage(), Storage::F16(_) | Storage::BF16(_)) {
        let sums = add_up(call, &f32::load(x)?, &dims, &window)?;
        return one(f32::array(x.element(), &dims, sums));
    }
    one(with_factor!(
        x,
        T => Array::new(&dims, add_up(call, x.view::<T>()?, &dims, &window)?),
        return call.unsupported(x.element())
    ))
}

fn add_up<T: Factor>(call: &Call, values: &[T], dims: &[usize], window: &Window) -> Result<Vec<T>, Fault> {
    let mut out = call.zeros::<T>(dims)?;
    let each = window.taps() * window.output_count();
    let planes = out.chunks_mut(window.input_count().max(1)).zip(values.chunks(each.max(1)));
    planes.for_each(|(plane, rows)| columns::accumulate(plane, rows, window));
    Ok(out)
}
