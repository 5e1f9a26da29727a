//! Resize and Upsample: what each output coordinate shows of an axis. The loops are in `resample`.

use super::dimension;
use super::resample::{Taps, nearest, resampled};
use crate::engine::array::{Array, Dims};
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::fault::Fault;

/// How an axis is read between its places.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Nearest(Rounding),
    Linear,
    /// With the coefficient `a` of Keys' kernel ("Cubic Convolution Interpolation for Digital Image Processing", 1981).
    Cubic(f64),
}

#[derive(Clone, Copy, PartialEq)]
enum Rounding {
    PreferFloor,
    PreferCeil,
    Floor,
    Ceil,
    /// Before opset 11: down where the axis grows, up where it shrinks.
    Inward,
}

/// From an output coordinate to one of the input.
#[derive(Clone, Copy, PartialEq)]
enum Coordinates {
    HalfPixel,
    HalfPixelSymmetric,
    PytorchHalfPixel,
    AlignCorners,
    Asymmetric,
    CropAndResize,
}

/// What is asked of every axis.
struct Plan {
    mode: Mode,
    coordinates: Coordinates,
    antialias: bool,
    exclude_outside: bool,
    extrapolation: f32,
}

/// One axis: its length now and then, and the part of it that is shown.
struct Axis {
    length: usize,
    wanted: usize,
    scale: f64,
    roi: (f64, f64),
}

/// Upsample (opset 1: two scales by name; 7: an attribute; 9: an input).
pub fn upsample(call: &mut Call) -> Result<Outputs, Fault> {
    let rank = call.input(0)?.rank();
    let scales = if call.has(1) {
        floats(call.input(1)?)?
    } else if let Some(scales) = call.attributes.floats("scales")? {
        scales.to_vec()
    } else {
        if rank != 4 {
            return Err(Fault::Invalid(format!("rank {rank} where an image of rank 4 is needed")));
        }
        vec![
            1.0,
            1.0,
            call.attributes.float("height_scale", 1.0)?,
            call.attributes.float("width_scale", 1.0)?,
        ]
    };
    asymmetric(call, &scales)
}

/// Resize.
pub fn resize(call: &mut Call) -> Result<Outputs, Fault> {
    if call.opset < 11 {
        let scales = floats(call.input(1)?)?;
        return asymmetric(call, &scales);
    }
    let attributes = call.attributes;
    let mode = match attributes.text("mode", "nearest")? {
        "nearest" => Mode::Nearest(match attributes.text("nearest_mode", "round_prefer_floor")? {
            "round_prefer_floor" => Rounding::PreferFloor,
            "round_prefer_ceil" => Rounding::PreferCeil,
            "floor" => Rounding::Floor,
            "ceil" => Rounding::Ceil,
            other => {
                return Err(Fault::Invalid(format!("nearest_mode {other} is not one the standard knows")));
            }
        }),
        "linear" => Mode::Linear,
        "cubic" => Mode::Cubic(f64::from(attributes.float("cubic_coeff_a", -0.75)?)),
        other => return Err(Fault::Invalid(format!("mode {other} is not one the standard knows"))),
    };
    let coordinates = match attributes.text("coordinate_transformation_mode", "half_pixel")? {
        "half_pixel" => Coordinates::HalfPixel,
        "half_pixel_symmetric" => Coordinates::HalfPixelSymmetric,
        "pytorch_half_pixel" => Coordinates::PytorchHalfPixel,
        "align_corners" => Coordinates::AlignCorners,
        "asymmetric" => Coordinates::Asymmetric,
        "tf_crop_and_resize" => Coordinates::CropAndResize,
        other => return call.unsupported(format_args!("coordinate_transformation_mode {other}")),
    };
    let plan = Plan {
        mode,
        coordinates,
        antialias: attributes.int("antialias", 0)? != 0 && !matches!(mode, Mode::Nearest(_)),
        exclude_outside: attributes.int("exclude_outside", 0)? != 0,
        extrapolation: attributes.float("extrapolation_value", 0.0)?,
    };
    let axes = axes(call, &plan)?;
    carry_out(call, &plan, &axes)
}

/// The resize of opset 10 and of Upsample: coordinates are divided by the scales.
fn asymmetric(call: &mut Call, scales: &[f32]) -> Result<Outputs, Fault> {
    let mode = match call.attributes.text("mode", "nearest")? {
        "nearest" => Mode::Nearest(Rounding::Inward),
        "linear" | "bilinear" => Mode::Linear,
        other => return Err(Fault::Invalid(format!("mode {other} is not one the standard knows"))),
    };
    let coordinates = Coordinates::Asymmetric;
    let plan = Plan { mode, coordinates, antialias: false, exclude_outside: false, extrapolation: 0.0 };
    let dims = call.input(0)?.dims();
    if scales.len() != dims.len() {
        return Err(Fault::Invalid(format!("{} scales are given for rank {}", scales.len(), dims.len())));
    }
    let axes =
        dims.iter().zip(scales).map(|(d, s)| scaled(*d, *s, (0.0, 1.0))).collect::<Result<Vec<_>, _>>()?;
    carry_out(call, &plan, &axes)
}

fn floats(array: &Array) -> Result<Vec<f32>, Fault> {
    let values = array.approximate().ok_or_else(|| Fault::element(array.element()))?;
    Ok(values.into_iter().map(|v| v as f32).collect())
}

/// An axis scaled by a factor. The product is rounded as float32, as ONNX's shape inference does.
fn scaled(length: usize, scale: f32, roi: (f64, f64)) -> Result<Axis, Fault> {
    let wanted = (length as f32 * scale).floor();
    if scale <= 0.0 || !(0.0..1e15).contains(&wanted) {
        return Err(Fault::Invalid(format!("an axis of {length} cannot be scaled by {scale}")));
    }
    Ok(Axis { length, wanted: wanted as usize, scale: f64::from(scale), roi })
}

/// Every axis of the input, with what scales, sizes, roi and the policy say of it.
fn axes(call: &Call, plan: &Plan) -> Result<Vec<Axis>, Fault> {
    let dims = call.input(0)?.dims();
    let rank = dims.len();
    let given = |index: usize| call.optional(index).map(|a| a.filter(|a| !a.is_empty()));
    let named: Vec<usize> = match call.attributes.ints("axes")? {
        Some(axes) => axes.iter().map(|a| call.axis(*a, rank)).collect::<Result<_, _>>()?,
        None => (0..rank).collect(),
    };
    let count = named.len();
    let mut rois = vec![(0.0, 1.0); rank];
    if plan.coordinates == Coordinates::CropAndResize {
        let roi = given(1)?.and_then(Array::approximate).unwrap_or_default();
        if roi.len() != 2 * count {
            return Err(Fault::Invalid(format!("a roi of {} numbers is given for {count} axes", roi.len())));
        }
        for (at, axis) in named.iter().enumerate() {
            rois[*axis] = (roi[at], roi[count + at]);
        }
    }
    let mut axes: Vec<Axis> = dims
        .iter()
        .zip(&rois)
        .map(|(d, roi)| Axis { length: *d, wanted: *d, scale: 1.0, roi: *roi })
        .collect();
    match (given(2)?, given(3)?) {
        (Some(scales), None) if scales.len() == count => {
            for (axis, scale) in named.iter().zip(floats(scales)?) {
                axes[*axis] = scaled(dims[*axis], scale, rois[*axis])?;
            }
        }
        (None, Some(sizes)) if sizes.len() == count => {
            let sizes = sizes.integers()?.iter().map(|s| dimension(*s)).collect::<Result<Vec<_>, _>>()?;
            if let Some((axis, _)) = named.iter().zip(&sizes).find(|(a, s)| dims[**a] == 0 && **s > 0) {
                return Err(Fault::Invalid(format!("axis {axis} is empty and cannot be made longer")));
            }
            let scale = |(axis, size): (&usize, &usize)| *size as f64 / dims[*axis].max(1) as f64;
            let scales = named.iter().zip(&sizes).map(scale);
            let common = match call.attributes.text("keep_aspect_ratio_policy", "stretch")? {
                "stretch" => None,
                "not_larger" => scales.clone().reduce(f64::min),
                "not_smaller" => scales.clone().reduce(f64::max),
                other => return Err(Fault::Invalid(format!("keep_aspect_ratio_policy is {other}"))),
            };
            for ((axis, size), scale) in named.iter().zip(&sizes).zip(scales) {
                let length = dims[*axis];
                let (scale, wanted) = match common {
                    Some(common) => (common, (common * length as f64 + 0.5) as usize),
                    None => (scale, *size),
                };
                axes[*axis] = Axis { length, wanted, scale, roi: rois[*axis] };
            }
        }
        _ => {
            return Err(Fault::Invalid(format!(
                "either scales or sizes must be given, one for each of {count} axes"
            )));
        }
    }
    Ok(axes)
}

fn carry_out(call: &mut Call, plan: &Plan, axes: &[Axis]) -> Result<Outputs, Fault> {
    let array = call.input(0)?;
    let dims: Dims = axes.iter().map(|a| a.wanted).collect();
    call.elements(&dims, 8)?;
    if !dims.contains(&0) && array.is_empty() {
        return Err(Fault::Invalid(format!("shape {:?} has nothing to show as {dims:?}", array.dims())));
    }
    if axes.iter().all(|a| plan.leaves(a)) {
        return one(call.take(0)?);
    }
    if dims.contains(&0) {
        return one(super::words::empty(array, &dims)?);
    }
    let outside: Vec<Vec<bool>> = axes.iter().map(|a| plan.outside(a)).collect();
    if let Mode::Nearest(rounding) = plan.mode {
        let place = |axis: &Axis, x: f64| {
            let place = match rounding {
                Rounding::PreferFloor => (x - 0.5).ceil(),
                Rounding::PreferCeil => (x + 0.5).floor(),
                Rounding::Floor => x.floor(),
                Rounding::Ceil => x.ceil(),
                Rounding::Inward => {
                    if axis.scale < 1.0 {
                        x.ceil()
                    } else {
                        x.floor()
                    }
                }
            };
            place.clamp(0.0, (axis.length - 1) as f64) as usize
        };
        let sources = axes
            .iter()
            .zip(&outside)
            .map(|(axis, outside)| match plan.leaves(axis) {
                true => (0..axis.length).map(Some).collect(),
                false => (0..axis.wanted)
                    .map(|at| (!outside[at]).then(|| place(axis, plan.coordinate(axis, at as f64))))
                    .collect(),
            })
            .collect::<Vec<_>>();
        return one(nearest(call, array, &sources, plan.extrapolation)?);
    }
    let taps = axes.iter().map(|axis| (!plan.leaves(axis)).then(|| plan.taps(axis))).collect::<Vec<_>>();
    let array = call.take(0)?;
    one(resampled(call, array, &taps, &outside, plan.extrapolation)?)
}

impl Plan {
    /// True when the axis stays as it is.
    fn leaves(&self, axis: &Axis) -> bool {
        let whole = self.coordinates != Coordinates::CropAndResize || axis.roi == (0.0, 1.0);
        axis.length == axis.wanted && (axis.scale - 1.0).abs() < 1e-9 && whole
    }

    /// Which outputs show what lies outside the input (tf_crop_and_resize only).
    fn outside(&self, axis: &Axis) -> Vec<bool> {
        let crops = self.coordinates == Coordinates::CropAndResize && !self.leaves(axis);
        let last = axis.length as f64 - 1.0;
        (0..axis.wanted)
            .map(|at| crops && !(0.0..=last).contains(&self.coordinate(axis, at as f64)))
            .collect()
    }

    /// The input coordinate of an output coordinate. What the standard calls the resized length is not rounded.
    fn coordinate(&self, axis: &Axis, at: f64) -> f64 {
        let length = axis.length as f64;
        let resized = axis.scale * length;
        let half_pixel = (at + 0.5) / axis.scale - 0.5;
        match self.coordinates {
            Coordinates::HalfPixel => half_pixel,
            Coordinates::HalfPixelSymmetric => {
                length / 2.0 * (1.0 - axis.wanted as f64 / resized) + half_pixel
            }
            Coordinates::PytorchHalfPixel if resized == 1.0 => -0.5,
            Coordinates::PytorchHalfPixel => half_pixel,
            Coordinates::AlignCorners if resized == 1.0 => 0.0,
            Coordinates::AlignCorners => at * (length - 1.0) / (resized - 1.0),
            Coordinates::Asymmetric => at / axis.scale,
            Coordinates::CropAndResize => {
                let (start, end) = axis.roi;
                let inside = if resized == 1.0 {
                    (end - start) * (length - 1.0) / 2.0
                } else {
                    at * (end - start) * (length - 1.0) / (resized - 1.0)
                };
                inside + start * (length - 1.0)
            }
        }
    }

    /// Places and weights of every output along an axis. Beyond the ends the last element goes on, or, with
    /// `exclude_outside`, the weights there are given to the others.
    fn taps(&self, axis: &Axis) -> Taps {
        // Antialiasing widens the kernel where the axis shrinks, so that every element counts.
        let shrink = if self.antialias { axis.scale.min(1.0) } else { 1.0 };
        let radius = if self.mode == Mode::Linear { 1.0 } else { 2.0 };
        let reach = (radius / shrink).ceil().min(2.0 * axis.length as f64 + 2.0) as i64;
        let kernel = |distance: f64| {
            let x = distance.abs();
            match self.mode {
                Mode::Cubic(a) if x <= 1.0 => ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0,
                Mode::Cubic(a) if x < 2.0 => ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a,
                Mode::Cubic(_) => 0.0,
                _ => (1.0 - x).max(0.0),
            }
        };
        let mut taps = Taps { each: 2 * reach as usize, places: Vec::new(), weights: Vec::new() };
        for at in 0..axis.wanted {
            let x = self.coordinate(axis, at as f64);
            let floor = x.floor();
            let first = taps.weights.len();
            for offset in 1 - reach..=reach {
                let place = floor as i64 + offset;
                let inside = (0..axis.length as i64).contains(&place);
                let weight = kernel((offset as f64 - (x - floor)) * shrink);
                taps.weights.push(if self.exclude_outside && !inside { 0.0 } else { weight });
                taps.places.push(place.clamp(0, axis.length as i64 - 1) as usize);
            }
            let weights = &mut taps.weights[first..];
            let sum: f64 = weights.iter().sum();
            if (self.antialias || self.exclude_outside) && sum != 0.0 {
                weights.iter_mut().for_each(|w| *w /= sum);
            }
        }
        taps
    }
}
