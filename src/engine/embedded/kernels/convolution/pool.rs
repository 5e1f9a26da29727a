//! MaxPool, AveragePool, LpPool and their global forms. A window is folded over rows first, then along the row that is
//! left: the first part runs over whole rows at once.

use super::window::{Rounding, Window};

use crate::engine::Fault;
use crate::engine::array::{Array, Element, Storage};
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::embedded::kernels::real::{Real, sum};
use crate::ir::ElementType;
use rayon::prelude::*;
use smallvec::smallvec;

/// Taps of a window at one output place along one axis.
#[derive(Clone, Copy)]
pub struct Span {
    /// Input place of the first tap that is inside.
    pub first: usize,
    /// Taps inside the input.
    pub inside: usize,
    /// Taps inside the input or its padding.
    pub padded: usize,
}

/// Spans at all output places, for each axis.
pub fn spans(window: &Window) -> [Vec<Span>; 3] {
    std::array::from_fn(|axis| {
        let (size, step) = (window.input[axis], window.dilations[axis]);
        let (begin, end) = (window.begin[axis], window.end[axis]);
        let span = |output: usize| {
            // Places are counted from the start of the padding.
            let start = output * window.strides[axis];
            let taps_below =
                |bound: usize| bound.saturating_sub(start).div_ceil(step).min(window.kernel[axis]);
            let (before, until) = (taps_below(begin), taps_below(begin + size));
            Span {
                first: (start + before * step).saturating_sub(begin),
                inside: until.saturating_sub(before),
                padded: taps_below(begin + size + end),
            }
        };
        (0..window.output[axis]).map(span).collect()
    })
}

/// Element types of pools.
pub trait Pooled: Element + Copy {
    /// What every number is larger than.
    const LOWEST: Self;
    /// The larger number; NaN when one is.
    fn larger(self, other: Self) -> Self;
    /// True of NaN.
    fn is_undefined(self) -> bool;
}

macro_rules! pooled_floats {
    ($($float:ty),*) => {
        $(impl Pooled for $float {
            const LOWEST: Self = <$float>::NEG_INFINITY;
            #[inline(always)]
            fn larger(self, other: Self) -> Self {
                if self > other || self.is_nan() { self } else { other }
            }
            fn is_undefined(self) -> bool {
                self.is_nan()
            }
        })*
    };
}
pooled_floats!(f32, f64);

macro_rules! pooled_integers {
    ($($integer:ty),*) => {
        $(impl Pooled for $integer {
            const LOWEST: Self = <$integer>::MIN;
            #[inline(always)]
            fn larger(self, other: Self) -> Self {
                self.max(other)
            }
            fn is_undefined(self) -> bool {
                false
            }
        })*
    };
}
pooled_integers!(i8, u8);

/// Sizes of a pool's input.
struct Planes {
    dims: Vec<usize>,
    window: Window,
}

impl Planes {
    fn of(call: &Call, x: &Array) -> Result<Planes, Fault> {
        let [_, _, space @ ..] = x.dims() else {
            return Err(Fault::Invalid(format!("an input of shape {:?} has no planes", x.dims())));
        };
        let kernel = call.attributes.ints("kernel_shape")?;
        let kernel = kernel.ok_or_else(|| Fault::Invalid("kernel_shape is missing".into()))?;
        let kernel: Option<Vec<usize>> = kernel.iter().map(|k| usize::try_from(*k).ok()).collect();
        let kernel = kernel.ok_or_else(|| Fault::Invalid("kernel_shape is negative".into()))?;
        let rounding = if call.attributes.int("ceil_mode", 0)? != 0 { Rounding::Up } else { Rounding::Down };
        let window = Window::new(&call.attributes, space, &kernel, rounding)?;
        // Whether such a window starts inside or at the border is told differently by the runtimes.
        let same = call.attributes.text("auto_pad", "NOTSET")?.starts_with("SAME");
        let gap = |axis: usize| {
            window.output[axis].saturating_sub(1) * window.strides[axis] + window.reach(axis)
                < window.input[axis]
        };
        if same && (0..3).any(gap) {
            return call.unsupported("auto_pad of windows that leave elements between them");
        }
        let mut dims = x.dims()[..2].to_vec();
        dims.extend_from_slice(window.output_dims());
        Ok(Planes { dims, window })
    }

    /// Folds every window of every plane: `fold` over what `of` makes of each element, from `start`; `end` gets the sum
    /// and the taps inside the input and inside its padding.
    fn fold<T: Element + Copy>(
        &self,
        call: &Call,
        x: &[T],
        start: T,
        fold: impl Fn(T, T) -> T + Sync,
        of: impl Fn(T) -> T + Sync,
        end: impl Fn(T, usize, usize) -> T + Sync,
    ) -> Result<Vec<T>, Fault> {
        let window = &self.window;
        let (plane, out_plane) = (window.input_count(), window.output_count());
        let mut out = call.zeros::<T>(&self.dims)?;
        if out.is_empty() {
            return Ok(out);
        }
        let [depths, heights, widths] = spans(window);
        let [_, height, width] = window.input;
        let step = window.dilations;
        let run = |line: &mut Vec<T>, index: usize, out: &mut [T]| {
            let plane = &x[index * plane..(index + 1) * plane];
            let places = depths.iter().flat_map(|d| heights.iter().map(move |h| (d, h)));
            for ((d, h), out) in places.zip(out.chunks_mut(widths.len())) {
                let mut rows =
                    (0..d.inside).flat_map(|i| (0..h.inside).map(move |j| (i, j))).map(|(i, j)| {
                        let row = (d.first + i * step[0]) * height + h.first + j * step[1];
                        &plane[row * width..(row + 1) * width]
                    });
                line.clear();
                match rows.next() {
                    Some(row) => line.extend(row.iter().map(|v| fold(start, of(*v)))),
                    None => line.resize(width, start),
                }
                for row in rows {
                    line.iter_mut().zip(row).for_each(|(sum, v)| *sum = fold(*sum, of(*v)));
                }
                let (inside, padded) = (d.inside * h.inside, d.padded * h.padded);
                for (o, w) in out.iter_mut().zip(&widths) {
                    let taps = line[w.first.min(width)..].iter().step_by(step[2]).take(w.inside);
                    *o = end(taps.fold(start, |sum, v| fold(sum, *v)), inside * w.inside, padded * w.padded);
                }
            }
        };
        if call.threads > 1 && x.len() > 1 << 16 {
            let planes = out.par_chunks_mut(out_plane).enumerate();
            planes.for_each_init(Vec::new, |line, (index, out)| run(line, index, out));
        } else {
            let mut line = Vec::new();
            out.chunks_mut(out_plane).enumerate().for_each(|(index, out)| run(&mut line, index, out));
        }
        Ok(out)
    }
}

/// MaxPool (all opsets): NaN comes through, ties go to the first; `Indices` count over the whole tensor.
pub fn max_pool(call: &mut Call) -> Result<Outputs, Fault> {
    fn typed<T: Pooled>(call: &Call, planes: &Planes, x: &[T]) -> Result<(Vec<T>, Option<Array>), Fault> {
        if !call.wants(1) {
            let largest = planes.fold(call, x, T::LOWEST, T::larger, |v| v, |v, _, _| v)?;
            return Ok((largest, None));
        }
        let (largest, places) = largest_with_places(call, planes, x)?;
        Ok((largest, Some(Array::new(&planes.dims, places))))
    }
    let x = call.input(0)?;
    let planes = Planes::of(call, x)?;
    let dims = &planes.dims;
    let (y, indices) = match x.storage() {
        Storage::F64(v) => typed(call, &planes, v).map(|(y, i)| (Array::new(dims, y), i))?,
        Storage::I8(v) => typed(call, &planes, v).map(|(y, i)| (Array::new(dims, y), i))?,
        Storage::U8(v) if x.element() == ElementType::UINT8 => {
            typed(call, &planes, v).map(|(y, i)| (Array::new(dims, y), i))?
        }
        _ => {
            let v = f32::load(x)?;
            typed(call, &planes, &v).map(|(y, i)| (f32::array(x.element(), dims, y), i))?
        }
    };
    Ok(smallvec![Some(y.into()), indices.map(Into::into)])
}

fn largest_with_places<T: Pooled>(
    call: &Call,
    planes: &Planes,
    x: &[T],
) -> Result<(Vec<T>, Vec<i64>), Fault> {
    let window = &planes.window;
    let mut values = call.vec::<T>(&planes.dims)?;
    let mut places = call.vec::<i64>(&planes.dims)?;
    let column_major = call.attributes.int("storage_order", 0)? != 0;
    let [depths, heights, widths] = spans(window);
    let [depth, height, width] = window.input;
    let step = window.dilations;
    let plane = window.input_count();
    let count = planes.dims[..2].iter().product::<usize>();
    for index in 0..count {
        let first = index * plane;
        for d in &depths {
            for h in &heights {
                for w in &widths {
                    let mut best: Option<(T, usize)> = None;
                    for i in 0..d.inside {
                        for j in 0..h.inside {
                            for k in 0..w.inside {
                                let (d, h, w) =
                                    (d.first + i * step[0], h.first + j * step[1], w.first + k * step[2]);
                                let value = x[first + (d * height + h) * width + w];
                                // Only what is larger, or NaN after numbers, takes the place of what came before.
                                if best.is_none_or(|(b, _)| !b.is_undefined() && b.larger(value) != b) {
                                    let place = match column_major {
                                        true => d + depth * (h + height * w),
                                        false => (d * height + h) * width + w,
                                    };
                                    best = Some((value, first + place));
                                }
                            }
                        }
                    }
                    let (value, place) = best.unwrap_or((T::LOWEST, first));
                    values.push(value);
                    places.push(place as i64);
                }
            }
        }
    }
    Ok((values, places))
}

/// AveragePool (all opsets): padding counts when `count_include_pad` says so, what lies beyond it never.
pub fn average_pool(call: &mut Call) -> Result<Outputs, Fault> {
    let x = call.input(0)?;
    let planes = Planes::of(call, x)?;
    let padding = call.attributes.int("count_include_pad", 0)? != 0;
    let count = |inside: usize, padded: usize| if padding { padded } else { inside };
    let y = match x.storage() {
        Storage::F64(v) => {
            let mean = |sum, inside, padded| sum / count(inside, padded) as f64;
            Array::new(&planes.dims, planes.fold(call, v, 0.0, |a, b| a + b, |v| v, mean)?)
        }
        _ => {
            let mean = |sum, inside, padded| sum / count(inside, padded) as f32;
            let y = planes.fold(call, &f32::load(x)?, 0.0, |a, b| a + b, |v| v, mean)?;
            f32::array(x.element(), &planes.dims, y)
        }
    };
    one(y)
}

/// LpPool (all opsets; before opset 2 `p` is a float).
pub fn lp_pool(call: &mut Call) -> Result<Outputs, Fault> {
    let x = call.input(0)?;
    let planes = Planes::of(call, x)?;
    let p = exponent(call)?;
    let y = match x.storage() {
        Storage::F64(v) => {
            let root = |sum: f64, _, _| sum.powf(1.0 / p);
            let y = planes.fold(call, v, 0.0, |a, b| a + b, |v| v.abs().powf(p), root)?;
            Array::new(&planes.dims, y)
        }
        _ => {
            let p = p as f32;
            let root = |sum: f32, _, _| sum.powf(1.0 / p);
            let y = planes.fold(call, &f32::load(x)?, 0.0, |a, b| a + b, |v| v.abs().powf(p), root)?;
            f32::array(x.element(), &planes.dims, y)
        }
    };
    one(y)
}

fn exponent(call: &Call) -> Result<f64, Fault> {
    let p = match call.opset {
        ..2 => f64::from(call.attributes.float("p", 2.0)?),
        _ => call.attributes.int("p", 2)? as f64,
    };
    if p > 0.0 { Ok(p) } else { Err(Fault::Invalid(format!("p={p} is not positive"))) }
}

/// GlobalMaxPool.
pub fn global_max_pool(call: &mut Call) -> Result<Outputs, Fault> {
    global(
        call,
        |plane| plane.iter().fold(f64::LOWEST, |a, b| a.larger(*b)),
        |plane| plane.iter().fold(f32::LOWEST, |a, b| a.larger(*b)),
    )
}

/// GlobalAveragePool.
pub fn global_average_pool(call: &mut Call) -> Result<Outputs, Fault> {
    global(
        call,
        |plane| plane.iter().sum::<f64>() / plane.len() as f64,
        |plane| (sum(plane, |v| v) / plane.len() as f64) as f32,
    )
}

/// GlobalLpPool (all opsets; before opset 2 `p` is a float).
pub fn global_lp_pool(call: &mut Call) -> Result<Outputs, Fault> {
    let p = exponent(call)?;
    global(
        call,
        |plane| plane.iter().map(|v| v.abs().powf(p)).sum::<f64>().powf(1.0 / p),
        |plane| plane.iter().map(|v| f64::from(v.abs()).powf(p)).sum::<f64>().powf(1.0 / p) as f32,
    )
}

/// One number for each plane.
fn global(
    call: &mut Call,
    double: impl Fn(&[f64]) -> f64,
    float: impl Fn(&[f32]) -> f32,
) -> Result<Outputs, Fault> {
    let x = call.input(0)?;
    let [batch, channels, space @ ..] = x.dims() else {
        return Err(Fault::Invalid(format!("an input of shape {:?} has no planes", x.dims())));
    };
    let plane = space.iter().product::<usize>();
    if plane == 0 {
        return Err(Fault::Invalid(format!("planes of shape {space:?} are empty")));
    }
    let mut dims = vec![*batch, *channels];
    dims.resize(x.rank(), 1);
    one(match x.storage() {
        Storage::F64(v) => Array::new(&dims, v.chunks(plane).map(double).collect::<Vec<_>>()),
        _ => f32::array(x.element(), &dims, f32::load(x)?.chunks(plane).map(float).collect()),
    })
}
