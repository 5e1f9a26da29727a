//! Convolutions of 8-bit integers, exact in 32 bits, over any number of spatial axes.

use super::integers::{levels, products};
use super::target::Target;
use crate::engine::array::Array;
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::embedded::kernels::real::{Real, reals, single};
use crate::engine::fault::Fault;
use smallvec::SmallVec;

type Sizes = SmallVec<[usize; 3]>;

/// Sizes of a convolution.
struct Window {
    batch: usize,
    channels: usize,
    groups: usize,
    filters: usize,
    input: Sizes,
    kernel: Sizes,
    output: Sizes,
    strides: Sizes,
    dilations: Sizes,
    /// Padding before each axis.
    before: SmallVec<[i64; 3]>,
}

impl Window {
    fn of(call: &Call, data: &[usize], weight: &[usize]) -> Result<Window, Fault> {
        let invalid = |message: String| Err(Fault::Invalid(message));
        let ([batch, channels, input @ ..], [filters, per_group, kernel @ ..]) = (data, weight) else {
            return invalid(format!("shapes {data:?} and {weight:?} make no convolution"));
        };
        let groups = call.attributes.int("group", 1)?;
        let groups = usize::try_from(groups).ok().filter(|g| *g > 0);
        let Some(groups) = groups else { return invalid("group must be 1 or more".into()) };
        if input.len() != kernel.len() || input.is_empty() {
            return invalid(format!("shapes {data:?} and {weight:?} make no convolution"));
        }
        if per_group.checked_mul(groups) != Some(*channels) || filters % groups != 0 {
            return invalid(format!("{groups} groups fit neither {data:?} nor {weight:?}"));
        }
        if call
            .attributes
            .ints("kernel_shape")?
            .is_some_and(|k| !k.iter().map(|k| *k as usize).eq(kernel.iter().copied()))
        {
            return invalid(format!("kernel_shape does not fit the weight's {kernel:?}"));
        }
        let rank = input.len();
        let sizes = |name: &str| -> Result<Sizes, Fault> {
            let Some(given) = call.attributes.ints(name)? else { return Ok(smallvec::smallvec![1; rank]) };
            let sizes: Option<Sizes> =
                given.iter().map(|v| usize::try_from(*v).ok().filter(|v| *v > 0)).collect();
            match sizes {
                Some(sizes) if sizes.len() == rank => Ok(sizes),
                _ => Err(Fault::Invalid(format!("{name}={given:?} does not fit {rank} axes"))),
            }
        };
        let (strides, dilations) = (sizes("strides")?, sizes("dilations")?);
        let pads = call.attributes.ints("pads")?;
        if pads.is_some_and(|p| p.len() != 2 * rank) {
            return invalid(format!("pads={pads:?} does not fit {rank} axes"));
        }
        let auto = call.attributes.text("auto_pad", "NOTSET")?;
        let (mut before, mut output) = (SmallVec::new(), Sizes::new());
        for i in 0..rank {
            let size = input[i] as i64;
            let stride = strides[i] as i64;
            let reach =
                (kernel[i] as i64 - 1).checked_mul(dilations[i] as i64).and_then(|r| r.checked_add(1));
            let Some(reach) = reach else { return invalid("dilations are too large".into()) };
            let (start, end) = match auto {
                "NOTSET" | "" => pads.map_or((0, 0), |p| (p[i], p[i + rank])),
                "VALID" => (0, 0),
                "SAME_UPPER" | "SAME_LOWER" => {
                    let wanted = (size + stride - 1) / stride;
                    let total = ((wanted - 1) * stride + reach - size).max(0);
                    if auto == "SAME_UPPER" {
                        (total / 2, total - total / 2)
                    } else {
                        (total - total / 2, total / 2)
                    }
                }
                other => return invalid(format!("auto_pad {other:?} is unknown")),
            };
            let padded = size.checked_add(start).and_then(|n| n.checked_add(end));
            let Some(padded) = padded else { return invalid("pads are too large".into()) };
            if padded < reach || kernel[i] == 0 {
                return invalid(format!("a kernel of {reach} does not fit into {padded} on axis {}", i + 2));
            }
            before.push(start);
            output.push(((padded - reach) / stride + 1) as usize);
        }
        Ok(Window {
            batch: *batch,
            channels: *channels,
            groups,
            filters: *filters,
            input: input.into(),
            kernel: kernel.into(),
            output,
            strides,
            dilations,
            before,
        })
    }

    fn dims(&self) -> Vec<usize> {
        [self.batch, self.filters].into_iter().chain(self.output.iter().copied()).collect()
    }

    /// For each axis and output position, the input position of each kernel element, where there is one.
    fn taps(&self) -> Vec<Vec<Option<usize>>> {
        (0..self.input.len())
            .map(|i| {
                let at = move |o: usize, k: usize| {
                    let at = (o * self.strides[i] + k * self.dilations[i]) as i64 - self.before[i];
                    usize::try_from(at).ok().filter(|at| *at < self.input[i])
                };
                (0..self.output[i]).flat_map(|o| (0..self.kernel[i]).map(move |k| at(o, k))).collect()
            })
            .collect()
    }
}

/// Sums of a convolution; the zero point of the data is also what pads it.
fn convolved(
    call: &mut Call,
    window: &Window,
    data: (usize, Option<usize>),
    weight: (usize, Option<usize>),
) -> Result<Vec<i32>, Fault> {
    /// Output positions whose patches are laid out at once.
    const TILE: usize = 1024;
    let zeros = |call: &Call, operand: usize, at: Option<usize>| -> Result<Vec<i16>, Fault> {
        match at.map(|at| call.optional(at)).transpose()?.flatten() {
            None => Ok(vec![0]),
            Some(zero) if zero.element() == call.input(operand)?.element() => levels(zero),
            Some(zero) => Err(Fault::element(zero.element())),
        }
    };
    let data_zero = match zeros(call, data.0, data.1)?.as_slice() {
        [one] => *one,
        _ => return call.unsupported("more than one zero point of the data"),
    };
    let weight_zero = zeros(call, weight.0, weight.1)?;
    if weight_zero.len() != 1 && weight_zero.len() != window.filters {
        return Err(Fault::Invalid(format!(
            "{} zero points for {} filters",
            weight_zero.len(),
            window.filters
        )));
    }
    let mut out = call.zeros::<i32>(&window.dims())?;
    let per_group = window.channels / window.groups;
    let kernel: usize = window.kernel.iter().product();
    let depth = per_group * kernel;
    let positions: usize = window.output.iter().product();
    if out.is_empty() || depth == 0 {
        return Ok(out);
    }
    let x = levels(call.input(data.0)?)?;
    let mut w = levels(call.input(weight.0)?)?;
    for (m, filter) in w.chunks_exact_mut(depth).enumerate() {
        let zero = weight_zero[if weight_zero.len() == 1 { 0 } else { m }];
        filter.iter_mut().for_each(|v| *v -= zero);
    }
    let size: usize = window.input.iter().product();
    let filters = window.filters / window.groups;
    let tile = positions.min(TILE);
    call.elements(&[tile, depth], 2)?;
    call.working_space = (2 * (x.len() + w.len() + tile * depth)) as u64;
    let taps = window.taps();
    let mut patches = vec![0i16; tile * depth];
    // Offsets within a channel of the kernel's elements at one output position; none where the padding is.
    let mut offsets: Vec<Option<usize>> = vec![None; kernel];
    for image in 0..window.batch * window.groups {
        let (n, g) = (image / window.groups, image % window.groups);
        let x = &x[(n * window.channels + g * per_group) * size..][..per_group * size];
        let w = &w[g * filters * depth..][..filters * depth];
        let out = &mut out[(n * window.filters + g * filters) * positions..][..filters * positions];
        for start in (0..positions).step_by(tile) {
            let count = tile.min(positions - start);
            for (p, patch) in patches.chunks_exact_mut(depth).take(count).enumerate() {
                window.offsets(&taps, start + p, &mut offsets);
                for (channel, patch) in x.chunks_exact(size).zip(patch.chunks_exact_mut(kernel)) {
                    for (to, offset) in patch.iter_mut().zip(&offsets) {
                        *to = offset.map_or(0, |o| channel[o] - data_zero);
                    }
                }
            }
            products(w, &patches[..count * depth], depth, |m, p, sum| {
                out[m * positions + start + p] = sum;
            });
        }
    }
    Ok(out)
}

impl Window {
    fn offsets(&self, taps: &[Vec<Option<usize>>], position: usize, offsets: &mut [Option<usize>]) {
        let rank = self.input.len();
        let mut at: Sizes = smallvec::smallvec![0; rank];
        let mut rest = position;
        for i in (0..rank).rev() {
            at[i] = rest % self.output[i];
            rest /= self.output[i];
        }
        for (k, offset) in offsets.iter_mut().enumerate() {
            let (mut rest, mut stride, mut sum) = (k, 1, Some(0));
            for i in (0..rank).rev() {
                let tap = taps[i][at[i] * self.kernel[i] + rest % self.kernel[i]];
                rest /= self.kernel[i];
                sum = sum.zip(tap).map(|(s, t)| s + t * stride);
                stride *= self.input[i];
            }
            *offset = sum;
        }
    }
}

/// ConvInteger (10).
pub fn conv_integer(call: &mut Call) -> Result<Outputs, Fault> {
    let window = Window::of(call, call.input(0)?.dims(), call.input(1)?.dims())?;
    let sums = convolved(call, &window, (0, Some(2)), (1, Some(3)))?;
    one(Array::new(&window.dims(), sums))
}

/// QLinearConv (10): the sum with its bias is exact, its factor x_scale · w_scale / y_scale in float32.
pub fn qlinear_conv(call: &mut Call) -> Result<Outputs, Fault> {
    if call.wide { qlinear_conv_in::<f64>(call) } else { qlinear_conv_in::<f32>(call) }
}

fn qlinear_conv_in<R: Real>(call: &mut Call) -> Result<Outputs, Fault> {
    if call.attributes.int("channels_last", 0)? != 0 {
        return call.unsupported("channels_last");
    }
    let window = Window::of(call, call.input(0)?.dims(), call.input(3)?.dims())?;
    let sums = convolved(call, &window, (0, Some(2)), (3, Some(5)))?;
    let x_scale = single::<R>(call.input(1)?, "the scale of the data")?;
    let y_scale = single::<R>(call.input(6)?, "the scale of the output")?;
    let w_scale = reals::<R>(call.input(4)?)?;
    if w_scale.len() != 1 && w_scale.len() != window.filters {
        return Err(Fault::Invalid(format!("{} scales for {} filters", w_scale.len(), window.filters)));
    }
    let bias = call.optional(8)?.map(|b| b.view::<i32>()).transpose()?;
    if bias.is_some_and(|b| b.len() != window.filters) {
        return Err(Fault::Invalid(format!("the bias must have {} elements", window.filters)));
    }
    let target = Target::of(call.input(7)?)?;
    let positions: usize = window.output.iter().product();
    let levels = sums.chunks(positions.max(1)).enumerate().flat_map(|(channel, sums)| {
        let m = channel % window.filters;
        let scale = w_scale[if w_scale.len() == 1 { 0 } else { m }];
        let factor = x_scale * scale / y_scale;
        let bias = bias.map_or(0, |b| b[m]);
        sums.iter().map(move |sum| target.level(R::int(sum.wrapping_add(bias)) * factor))
    });
    one(target.array(&window.dims(), levels))
}
