//! Convolutions of 8-bit integers, exact in 32 bits, over one to three spatial axes.

use super::integers::{Levels, levels, zero_points};
use super::real::{Real, reals, single};
use super::target::Target;
use crate::engine::array::Array;
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::embedded::kernels::convolution::columns;
use crate::engine::embedded::kernels::convolution::window::{Rounding, Window};
use crate::engine::embedded::products::{Bytes, Matrix, bytes};
use crate::engine::fault::Fault;

/// Bytes of patches that are laid out at once.
const BLOCK: usize = 1 << 18;

/// Sizes of a convolution.
struct Shape {
    batch: usize,
    channels: usize,
    groups: usize,
    filters: usize,
    window: Window,
}

impl Shape {
    fn of(call: &Call, data: &[usize], weight: &[usize]) -> Result<Shape, Fault> {
        let unfit = || Fault::Invalid(format!("data of shape {data:?} does not fit filters of {weight:?}"));
        let ([batch, channels, space @ ..], [filters, per_group, kernel @ ..]) = (data, weight) else {
            return Err(unfit());
        };
        let groups = usize::try_from(call.attributes.int("group", 1)?).ok().filter(|g| *g > 0);
        let groups = groups.ok_or_else(|| Fault::Invalid("group is not positive".into()))?;
        if per_group.checked_mul(groups) != Some(*channels) || filters % groups != 0 {
            return Err(unfit());
        }
        let window = Window::new(&call.attributes, space, kernel, Rounding::Down)?;
        Ok(Shape { batch: *batch, channels: *channels, groups, filters: *filters, window })
    }

    fn dims(&self) -> Vec<usize> {
        [self.batch, self.filters].iter().chain(self.window.output_dims()).copied().collect()
    }
}

/// Sums of a convolution; the zero point of the data is also what pads it. Operands are given by their inputs: levels
/// and zero points.
fn convolved(
    call: &mut Call,
    shape: &Shape,
    data: (usize, usize),
    weight: (usize, usize),
) -> Result<Vec<i32>, Fault> {
    let count = call.elements(&shape.dims(), size_of::<i32>())?;
    let (x, w) = (levels(call.input(data.0)?)?, levels(call.input(weight.0)?)?);
    let x_zero = zero_points(call.input(data.0)?, call.optional(data.1)?)?;
    let w_zero = zero_points(call.input(weight.0)?, call.optional(weight.1)?)?;
    if x_zero.len() > 1 {
        return call.unsupported("more than one zero point of the data");
    }
    if w_zero.len() > 1 && w_zero.len() != shape.filters {
        return Err(Fault::Invalid(format!("{} zero points for {} filters", w_zero.len(), shape.filters)));
    }
    let (sums, space) = match (x, x_zero) {
        (Levels::Unsigned(x), Levels::Unsigned(zero)) => {
            sums(call, shape, count, (x, zero), (w, w_zero), |m, z| Bytes::Unsigned(m, z))?
        }
        (Levels::Signed(x), Levels::Signed(zero)) => {
            sums(call, shape, count, (x, zero), (w, w_zero), |m, z| Bytes::Signed(m, z))?
        }
        _ => return Err(Fault::Invalid("the zero point of the data has another type than the data".into())),
    };
    call.working_space = space;
    Ok(sums)
}

fn sums<T: Copy + Default>(
    call: &Call,
    shape: &Shape,
    count: usize,
    (x, x_zero): (&[T], &[T]),
    (w, w_zero): (Levels, Levels),
    right: impl for<'a> Fn(Matrix<'a, T>, &'a [T]) -> Bytes<'a>,
) -> Result<(Vec<i32>, u64), Fault> {
    let window = &shape.window;
    let (plane, places) = (window.input_count(), window.output_count());
    let (channels, rows) = (shape.channels / shape.groups, shape.filters / shape.groups);
    let depth = channels * window.taps();
    let mut out = vec![0; count];
    if count == 0 || depth == 0 {
        return Ok((out, 0));
    }
    let padding = x_zero.first().copied().unwrap_or_default();
    let block = (BLOCK / depth).next_multiple_of(64).max(256).min(places);
    let space = call.elements(&[block, depth + rows * size_of::<i32>()], 1)?;
    let (mut patches, mut part) = (Vec::new(), Vec::new());
    for image in 0..shape.batch * shape.groups {
        let group = image % shape.groups;
        let x = &x[image * channels * plane..][..channels * plane];
        let left = w.lines(group * rows, rows, depth, w_zero);
        let out = &mut out[image * rows * places..][..rows * places];
        for start in (0..places).step_by(block) {
            let range = start..places.min(start + block);
            let columns = match window.is_pointwise() && block == places {
                true => x,
                false => {
                    patches.clear();
                    for plane in x.chunks(plane.max(1)) {
                        columns::append(&mut patches, plane, window, &range, padding);
                    }
                    &patches
                }
            };
            part.clear();
            bytes(&mut part, left, right(Matrix::new(columns, depth, range.len()), x_zero))?;
            for (line, part) in out.chunks_mut(places).zip(part.chunks(range.len())) {
                line[range.clone()].copy_from_slice(part);
            }
        }
    }
    Ok((out, space as u64))
}

/// ConvInteger (10).
pub fn conv_integer(call: &mut Call) -> Result<Outputs, Fault> {
    let shape = Shape::of(call, call.input(0)?.dims(), call.input(1)?.dims())?;
    let sums = convolved(call, &shape, (0, 2), (1, 3))?;
    one(Array::new(&shape.dims(), sums))
}

/// QLinearConv (10): the sum with its bias is exact, its factor x_scale · w_scale / y_scale in float32.
pub fn qlinear_conv(call: &mut Call) -> Result<Outputs, Fault> {
    if call.wide { qlinear_conv_in::<f64>(call) } else { qlinear_conv_in::<f32>(call) }
}

fn qlinear_conv_in<R: Real>(call: &mut Call) -> Result<Outputs, Fault> {
    if call.attributes.int("channels_last", 0)? != 0 {
        return call.unsupported("channels_last");
    }
    let shape = Shape::of(call, call.input(0)?.dims(), call.input(3)?.dims())?;
    let sums = convolved(call, &shape, (0, 2), (3, 5))?;
    let x_scale = single::<R>(call.input(1)?, "the scale of the data")?;
    let y_scale = single::<R>(call.input(6)?, "the scale of the output")?;
    let w_scale = reals::<R>(call.input(4)?)?;
    if w_scale.len() != 1 && w_scale.len() != shape.filters {
        return Err(Fault::Invalid(format!("{} scales for {} filters", w_scale.len(), shape.filters)));
    }
    let bias = call.optional(8)?.map(|b| b.view::<i32>()).transpose()?;
    if bias.is_some_and(|b| b.len() != shape.filters) {
        return Err(Fault::Invalid(format!("the bias must have {} elements", shape.filters)));
    }
    let target = Target::of(call.input(7)?)?;
    let positions = shape.window.output_count();
    let levels = sums.chunks(positions.max(1)).enumerate().flat_map(|(channel, sums)| {
        let m = channel % shape.filters;
        let scale = w_scale[if w_scale.len() == 1 { 0 } else { m }];
        let factor = x_scale * scale / y_scale;
        let bias = bias.map_or(0, |b| b[m]);
        sums.iter().map(move |sum| target.level(R::int(sum.wrapping_add(bias)) * factor))
    });
    one(target.array(&shape.dims(), levels))
}
