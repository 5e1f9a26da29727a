//! Operators of com.microsoft that work on levels one by one: each is computed on the numbers that the levels stand for
//! and brought back to levels.

use super::real::{Real, single};
use super::target::Target;
use crate::engine::array::{Array, Storage};
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::embedded::kernels::standard;
use crate::engine::fault::Fault;
use crate::ir::ElementType;

/// Runs `$f::<R>(call)` in the precision of the run.
macro_rules! in_precision {
    ($f:ident, $call:expr) => {
        if $call.wide { $f::<f64>($call) } else { $f::<f32>($call) }
    };
}

/// Scale and zero point of an 8-bit operand.
struct Scale<R> {
    zero: i32,
    scale: R,
}

impl<R: Real> Scale<R> {
    /// From the inputs at `scale` and `zero_point` of an operand; without a zero point it is 0.
    fn of(call: &Call, scale: usize, zero_point: usize, element: ElementType) -> Result<Scale<R>, Fault> {
        let zero = match call.optional(zero_point)? {
            None => 0,
            Some(z) if z.element() != element => {
                return Err(Fault::Invalid(format!(
                    "a zero point is {} where its operand is {element}",
                    z.element()
                )));
            }
            Some(z) => match z.storage() {
                Storage::U8(_) => i32::from(z.single::<u8>()?),
                Storage::I8(_) => i32::from(z.single::<i8>()?),
                _ => return Err(Fault::element(element)),
            },
        };
        Ok(Scale { zero, scale: single::<R>(call.input(scale)?, "a scale")? })
    }

    /// The numbers that the 256 patterns stand for.
    fn numbers(&self, element: ElementType) -> [R; 256] {
        std::array::from_fn(|p| R::int(level(element, p as u8) - self.zero) * self.scale)
    }
}

/// The integer of a bit pattern.
fn level(element: ElementType, pattern: u8) -> i32 {
    if element == ElementType::INT8 { i32::from(pattern as i8) } else { i32::from(pattern) }
}

/// Bit patterns of an int8 or uint8 array.
fn patterns(array: &Array) -> Result<&[u8], Fault> {
    match array.storage() {
        Storage::U8(v) if array.element() == ElementType::UINT8 => Ok(v),
        Storage::I8(v) => Ok(bytemuck::cast_slice(v)),
        _ => Err(Fault::element(array.element())),
    }
}

/// The type and zero point of the output: those of its zero point, or the operand's type at 0.
fn target(call: &Call, zero_point: usize, element: ElementType) -> Result<Target, Fault> {
    call.optional(zero_point)?.map_or_else(|| Target::zero(element), Target::of)
}

/// A function of one operand, by way of a table of all levels.
fn mapped<R: Real>(call: &Call, f: impl Fn(R) -> R) -> Result<Outputs, Fault> {
    let x = call.input(0)?;
    let from = Scale::<R>::of(call, 1, 2, x.element())?;
    let y_scale = single::<R>(call.input(3)?, "the scale of the output")?;
    let target = target(call, 4, x.element())?;
    let table = from.numbers(x.element()).map(|v| target.level(f(v) / y_scale));
    call.elements(x.dims(), 1)?;
    one(target.array(x.dims(), patterns(x)?.iter().map(|p| table[usize::from(*p)])))
}

/// QLinearSigmoid (com.microsoft 1).
pub fn sigmoid(call: &mut Call) -> Result<Outputs, Fault> {
    fn run<R: Real>(call: &Call) -> Result<Outputs, Fault> {
        let one = R::of(1.0);
        mapped(call, |x: R| one / (one + (-x).exp()))
    }
    in_precision!(run, call)
}

/// QLinearLeakyRelu (com.microsoft 1).
pub fn leaky_relu(call: &mut Call) -> Result<Outputs, Fault> {
    fn run<R: Real>(call: &Call) -> Result<Outputs, Fault> {
        let alpha = R::of(f64::from(call.attributes.float("alpha", 0.01)?));
        mapped(call, |x: R| if x >= R::of(0.0) { x } else { alpha * x })
    }
    in_precision!(run, call)
}

/// QLinearSoftmax (com.microsoft 1): rounded to nearest like all others (ONNX Runtime rounds down); along one axis, or over all from `axis` on when `opset` is before 13.
pub fn softmax(call: &mut Call) -> Result<Outputs, Fault> {
    fn run<R: Real>(call: &Call) -> Result<Outputs, Fault> {
        let x = call.input(0)?;
        let from = Scale::<R>::of(call, 1, 2, x.element())?;
        let y_scale = single::<R>(call.input(3)?, "the scale of the output")?;
        let target = target(call, 4, x.element())?;
        let axis = call.axis(call.attributes.int("axis", -1)?, x.rank())?;
        let coerced = call.attributes.int("opset", 13)? < 13;
        let (length, inner) = match coerced {
            true => (x.dims()[axis..].iter().product::<usize>(), 1),
            false => (x.dims()[axis], x.dims()[axis + 1..].iter().product::<usize>()),
        };
        let (levels, element) = (patterns(x)?, x.element());
        let mut out = vec![0; call.elements(x.dims(), 4)?];
        if length * inner > 0 {
            // The zero point and the largest level cancel: only differences of levels matter.
            let powers: [R; 256] = std::array::from_fn(|d| (-(R::int(d as i32) * from.scale)).exp());
            let mut sums = vec![R::of(0.0); inner];
            let mut most = vec![0; inner];
            for (x, out) in levels.chunks_exact(length * inner).zip(out.chunks_exact_mut(length * inner)) {
                let number = |i: usize| level(element, x[i]);
                for k in 0..inner {
                    most[k] = (0..length).map(|i| number(i * inner + k)).max().unwrap_or_default();
                    let each = (0..length).map(|i| powers[(most[k] - number(i * inner + k)) as usize]);
                    sums[k] = each.fold(R::of(0.0), |sum, v| sum + v);
                    for i in 0..length {
                        let power = powers[(most[k] - number(i * inner + k)) as usize];
                        out[i * inner + k] = target.level(power / sums[k] / y_scale);
                    }
                }
            }
        }
        one(target.array(x.dims(), out.into_iter()))
    }
    in_precision!(run, call)
}

/// QLinearAdd (com.microsoft 1), broadcasting.
pub fn add(call: &mut Call) -> Result<Outputs, Fault> {
    fn run<R: Real>(call: &Call) -> Result<Outputs, Fault> {
        let y_scale = single::<R>(call.input(6)?, "the scale of the output")?;
        combined::<R, _>(call, |a, b| {
            let (a_factor, b_factor) = (a.scale / y_scale, b.scale / y_scale);
            let (a_zero, b_zero) = (a.zero, b.zero);
            move |a: i32, b: i32| R::int(a - a_zero) * a_factor + R::int(b - b_zero) * b_factor
        })
    }
    in_precision!(run, call)
}

/// QLinearMul (com.microsoft 1), broadcasting.
pub fn mul(call: &mut Call) -> Result<Outputs, Fault> {
    fn run<R: Real>(call: &Call) -> Result<Outputs, Fault> {
        let y_scale = single::<R>(call.input(6)?, "the scale of the output")?;
        combined::<R, _>(call, |a, b| {
            let factor = a.scale * b.scale / y_scale;
            let (a_zero, b_zero) = (a.zero, b.zero);
            move |a: i32, b: i32| R::int((a - a_zero) * (b - b_zero)) * factor
        })
    }
    in_precision!(run, call)
}

fn combined<R: Real, F: Fn(i32, i32) -> R>(
    call: &Call,
    function: impl Fn(&Scale<R>, &Scale<R>) -> F,
) -> Result<Outputs, Fault> {
    let (a, b) = (call.input(0)?, call.input(3)?);
    let element = a.element();
    let (a_scale, b_scale) = (Scale::of(call, 1, 2, element)?, Scale::of(call, 4, 5, b.element())?);
    let target = target(call, 7, element)?;
    let function = function(&a_scale, &b_scale);
    let rank = a.rank().max(b.rank());
    let padded = |dims: &[usize]| -> Vec<usize> {
        std::iter::repeat_n(1, rank - dims.len()).chain(dims.iter().copied()).collect()
    };
    let (a_dims, b_dims) = (padded(a.dims()), padded(b.dims()));
    let mut dims = Vec::with_capacity(rank);
    for (x, y) in a_dims.iter().zip(&b_dims) {
        dims.push(match (*x, *y) {
            (x, y) if x == y => x,
            (1, y) => y,
            (x, 1) => x,
            _ => {
                return Err(Fault::Invalid(format!(
                    "shapes {:?} and {:?} do not broadcast",
                    a.dims(),
                    b.dims()
                )));
            }
        });
    }
    let mut out = Vec::with_capacity(call.elements(&dims, 4)?);
    let (a_levels, b_levels) = (patterns(a)?, patterns(b)?);
    let (a_strides, b_strides) = (strides(&a_dims), strides(&b_dims));
    let (last, lead) = match dims.split_last() {
        Some((last, lead)) => (*last, lead),
        None => (1, &[][..]),
    };
    let steps = |s: &[usize]| s.last().copied().unwrap_or(0);
    let (a_step, b_step) = (steps(&a_strides), steps(&b_strides));
    let mut at = vec![0; lead.len()];
    for _ in 0..lead.iter().product::<usize>() {
        let start = |s: &[usize]| at.iter().zip(s).map(|(i, s)| i * s).sum::<usize>();
        let (a_start, b_start) = (start(&a_strides), start(&b_strides));
        out.extend((0..last).map(|k| {
            let x = level(element, a_levels[a_start + k * a_step]);
            let y = level(b.element(), b_levels[b_start + k * b_step]);
            target.level(function(x, y))
        }));
        for axis in (0..lead.len()).rev() {
            at[axis] += 1;
            if at[axis] < lead[axis] {
                break;
            }
            at[axis] = 0;
        }
    }
    one(target.array(&dims, out.into_iter()))
}

/// Distances of neighbours along each axis; 0 where the axis is repeated.
fn strides(dims: &[usize]) -> Vec<usize> {
    let mut strides = vec![0; dims.len()];
    let mut stride = 1;
    for (i, d) in dims.iter().enumerate().rev() {
        strides[i] = if *d == 1 { 0 } else { stride };
        stride *= d;
    }
    strides
}

/// QLinearConcat (com.microsoft 1): each operand brought to the scale of the output.
pub fn concat(call: &mut Call) -> Result<Outputs, Fault> {
    fn run<R: Real>(call: &Call) -> Result<Outputs, Fault> {
        let y_scale = single::<R>(call.input(0)?, "the scale of the output")?;
        let target = Target::of(call.input(1)?)?;
        let count = call.inputs.len().saturating_sub(2) / 3;
        let first = call.input(2)?;
        let Some(axis) = call.attributes.optional_int("axis")? else {
            return Err(Fault::Invalid("attribute axis is missing".into()));
        };
        let axis = call.axis(axis, first.rank())?;
        let mut dims = first.dims().to_vec();
        dims[axis] = 0;
        let mut parts = Vec::with_capacity(count);
        for i in 0..count {
            let x = call.input(2 + 3 * i)?;
            let fits = x.rank() == dims.len()
                && x.dims().iter().zip(&dims).enumerate().all(|(k, (a, b))| k == axis || a == b);
            if !fits {
                return Err(Fault::Invalid(format!("shape {:?} does not fit {:?}", x.dims(), first.dims())));
            }
            dims[axis] += x.dims()[axis];
            let from = Scale::<R>::of(call, 3 + 3 * i, 4 + 3 * i, x.element())?;
            let same = from.scale == y_scale && target.is(x.element(), from.zero);
            let table = from.numbers(x.element());
            let table: [i32; 256] = std::array::from_fn(|p| match same {
                true => level(x.element(), p as u8),
                false => target.level(table[p] / y_scale),
            });
            let run: usize = x.dims()[axis..].iter().product();
            parts.push((patterns(x)?, run, table));
        }
        let outer: usize = dims[..axis].iter().product();
        let mut out = Vec::with_capacity(call.elements(&dims, 4)?);
        for o in 0..outer {
            for (levels, run, table) in &parts {
                out.extend(levels[o * run..(o + 1) * run].iter().map(|p| table[usize::from(*p)]));
            }
        }
        one(target.array(&dims, out.into_iter()))
    }
    in_precision!(run, call)
}

/// QLinearGlobalAveragePool (com.microsoft 1): the sum is exact.
pub fn global_average_pool(call: &mut Call) -> Result<Outputs, Fault> {
    fn run<R: Real>(call: &Call) -> Result<Outputs, Fault> {
        let x = call.input(0)?;
        if x.rank() < 3 {
            return Err(Fault::Invalid(format!("shape {:?} has no axes to pool over", x.dims())));
        }
        let from = Scale::<R>::of(call, 1, 2, x.element())?;
        let y_scale = single::<R>(call.input(3)?, "the scale of the output")?;
        let target = target(call, 4, x.element())?;
        let last = call.attributes.int("channels_last", 0)? != 0;
        let (batch, channels) = (x.dims()[0], if last { x.dims()[x.rank() - 1] } else { x.dims()[1] });
        let size = match x.len().checked_div(batch * channels) {
            Some(size) if size > 0 => size,
            _ => return call.unsupported("no elements"),
        };
        let levels = patterns(x)?;
        let factor = from.scale / (y_scale * R::int(size as i32));
        let means = (0..batch * channels).map(|i| {
            let (n, c) = (i / channels, i % channels);
            let at = |k: usize| if last { (n * size + k) * channels + c } else { i * size + k };
            let sum: i64 = (0..size).map(|k| i64::from(level(x.element(), levels[at(k)]))).sum();
            target.level(R::of((sum - size as i64 * i64::from(from.zero)) as f64) * factor)
        });
        let mut dims = vec![1; x.rank()];
        dims[0] = batch;
        dims[if last { x.rank() - 1 } else { 1 }] = channels;
        one(target.array(&dims, means))
    }
    in_precision!(run, call)
}

/// QLinearAveragePool (com.microsoft 1): AveragePool of the numbers that the levels stand for.
pub fn average_pool(call: &mut Call) -> Result<Outputs, Fault> {
    fn run<R: Real>(call: &mut Call) -> Result<Outputs, Fault> {
        if call.attributes.int("channels_last", 0)? != 0 {
            return call.unsupported("channels_last");
        }
        let x = call.input(0)?;
        let element = x.element();
        let from = Scale::<R>::of(call, 1, 2, element)?;
        let y_scale = single::<R>(call.input(3)?, "the scale of the output")?;
        let target = target(call, 4, element)?;
        let table = from.numbers(element);
        let mut numbers = call.vec::<R>(x.dims())?;
        numbers.extend(patterns(x)?.iter().map(|p| table[usize::from(*p)]));
        let space = numbers.len() * size_of::<R>();
        let numbers = Array::new(x.dims(), numbers);
        call.inputs = smallvec::smallvec![Some(numbers.into())];
        call.opset = 22;
        let Some(kernel) = standard("AveragePool") else { return call.unsupported("any type") };
        let pooled = (kernel.run)(call)?.into_iter().next().flatten();
        let Some(pooled) = pooled else { return Err(Fault::Invalid("AveragePool gave nothing".into())) };
        let pooled = pooled.into_array()?;
        call.working_space += (2 * space) as u64;
        let levels = pooled.view::<R>()?.iter().map(|v| target.level(*v / y_scale));
        one(target.array(pooled.dims(), levels))
    }
    in_precision!(run, call)
}
