//! Pooling of regions: RoiAlign, MaxRoiPool.

use super::Real;
use crate::engine::array::{Array, Storage};
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::fault::Fault;
use half::f16;

/// Samples along one side of a bin above which a region is taken for a mistake.
const MOST_SAMPLES: f64 = 65536.0;

/// Runs code for arrays of float32, float64, or float16 (computed in float32, rounded once).
fn with_real(
    call: &mut Call,
    arrays: &[usize],
    single: fn(&Call) -> Result<Array, Fault>,
    double: fn(&Call) -> Result<Array, Fault>,
) -> Result<Outputs, Fault> {
    match call.input(0)?.storage() {
        Storage::F32(_) => one(single(call)?),
        Storage::F64(_) => one(double(call)?),
        Storage::F16(_) => {
            for index in arrays {
                let array = call.input(*index)?;
                let wide: Vec<f32> = array.view::<f16>()?.iter().map(|v| v.to_f32()).collect();
                call.inputs[*index] = Some(Array::new(array.dims(), wide).into());
            }
            let result = single(call)?;
            let narrow: Vec<f16> = result.view::<f32>()?.iter().map(|v| f16::from_f32(*v)).collect();
            one(Array::new(result.dims(), narrow))
        }
        _ => call.unsupported(call.input(0)?.element()),
    }
}

/// RoiAlign; regions are shifted by half a pixel since opset 16 unless the attribute says otherwise.
pub fn roi_align(call: &mut Call) -> Result<Outputs, Fault> {
    with_real(call, &[0, 1], aligned::<f32>, aligned::<f64>)
}

/// One sample along an axis: two places and the share of the second; `None` outside the map.
type Sample<T> = Option<(usize, usize, T)>;

/// Where the samples of all bins lie along one axis.
fn samples<T: Real>(start: T, bin: T, bins: usize, each: usize, length: usize) -> Vec<Sample<T>> {
    let number = |n: usize| T::from_f64(n as f64);
    let (zero, one) = (T::default(), T::from_f64(1.0));
    let mut all = Vec::with_capacity(bins * each);
    for at in 0..bins {
        for sample in 0..each {
            let x = start + number(at) * bin + (number(sample) + T::from_f64(0.5)) * bin / number(each);
            all.push(if x < zero - one || x > number(length) || x.partial_cmp(&x).is_none() {
                None
            } else {
                let x = if x < zero { zero } else { x };
                let low = x.to_f64() as usize;
                match low + 1 < length {
                    true => Some((low, low + 1, x - number(low))),
                    false => Some((length - 1, length - 1, zero)),
                }
            });
        }
    }
    all
}

fn aligned<T: Real>(call: &Call) -> Result<Array, Fault> {
    let (maps, rois) = (call.input(0)?, call.input(1)?);
    let batches = call.input(2)?.integers()?;
    let attributes = call.attributes;
    let default = if call.opset < 16 { "output_half_pixel" } else { "half_pixel" };
    let half_pixel = match attributes.text("coordinate_transformation_mode", default)? {
        "half_pixel" => true,
        "output_half_pixel" => false,
        other => return Err(Fault::Invalid(format!("coordinate_transformation_mode is {other}"))),
    };
    let maximum = match attributes.text("mode", "avg")? {
        "avg" => false,
        "max" => true,
        other => return Err(Fault::Invalid(format!("mode {other} is neither avg nor max"))),
    };
    let size = |name: &str| -> Result<usize, Fault> {
        usize::try_from(attributes.int(name, 1)?)
            .ok()
            .filter(|n| *n > 0)
            .ok_or_else(|| Fault::Invalid(format!("{name} is not positive")))
    };
    let (out_height, out_width) = (size("output_height")?, size("output_width")?);
    let ratio = attributes.int("sampling_ratio", 0)?.max(0);
    let scale = T::from_f64(f64::from(attributes.float("spatial_scale", 1.0)?));
    let refused = || Fault::Invalid(format!("regions {:?} do not fit maps {:?}", rois.dims(), maps.dims()));
    let ([map_count, channels, height, width], [count, 4]) = (maps.dims(), rois.dims()) else {
        return Err(refused());
    };
    let known = |b: &i64| (0..*map_count as i64).contains(b);
    if batches.len() != *count || !batches.iter().all(known) || height * width == 0 {
        return Err(refused());
    }
    let dims = [*count, *channels, out_height, out_width];
    let mut to = call.zeros::<T>(&dims)?;
    let maps = maps.view::<T>()?;
    let plane = out_height * out_width;
    for (at, roi) in rois.view::<T>()?.chunks_exact(4).enumerate() {
        let offset = T::from_f64(if half_pixel { 0.5 } else { 0.0 });
        let edge = |i: usize| roi[i] * scale - offset;
        let (left, top) = (edge(0), edge(1));
        let side = |length: T| {
            // Without the shift, a region is at least one pixel wide.
            if !half_pixel && length < T::from_f64(1.0) { T::from_f64(1.0) } else { length }
        };
        let bin = |length: T, bins: usize| side(length) / T::from_f64(bins as f64);
        let (bin_height, bin_width) = (bin(edge(3) - top, out_height), bin(edge(2) - left, out_width));
        let each = |bin: T| -> Result<usize, Fault> {
            let each = if ratio > 0 { ratio as f64 } else { bin.to_f64().ceil() };
            if each > MOST_SAMPLES {
                return Err(Fault::Invalid(format!("region {at} would need {each} samples along a bin")));
            }
            Ok(each as usize)
        };
        let (rows, columns) = (each(bin_height)?, each(bin_width)?);
        call.elements(&[out_height, rows], size_of::<Sample<T>>())?;
        call.elements(&[out_width, columns], size_of::<Sample<T>>())?;
        let ys = samples(top, bin_height, out_height, rows, *height);
        let xs = samples(left, bin_width, out_width, columns, *width);
        let samples_of_bin = T::from_f64((rows * columns).max(1) as f64);
        for channel in 0..*channels {
            let map = &maps[(batches[at] as usize * channels + channel) * height * width..][..height * width];
            let to = &mut to[(at * channels + channel) * plane..][..plane];
            for (number, to) in to.iter_mut().enumerate() {
                let (bin_y, bin_x) = (number / out_width, number % out_width);
                let mut sum = T::default();
                let mut most: Option<T> = None;
                for y in &ys[bin_y * rows..(bin_y + 1) * rows] {
                    for x in &xs[bin_x * columns..(bin_x + 1) * columns] {
                        let parts = match (y, x) {
                            (Some((y0, y1, ly)), Some((x0, x1, lx))) => {
                                let (hy, hx) = (T::from_f64(1.0) - *ly, T::from_f64(1.0) - *lx);
                                [
                                    hy * hx * map[y0 * width + x0],
                                    hy * *lx * map[y0 * width + x1],
                                    *ly * hx * map[y1 * width + x0],
                                    *ly * *lx * map[y1 * width + x1],
                                ]
                            }
                            _ => [T::default(); 4],
                        };
                        if maximum {
                            // The standard's maximum is of the weighted neighbours, not of their sums.
                            for part in parts {
                                most = Some(most.map_or(part, |m| super::larger(m, part)));
                            }
                        } else {
                            sum = sum + (parts[0] + parts[1] + parts[2] + parts[3]);
                        }
                    }
                }
                *to = if maximum { most.unwrap_or_default() } else { sum / samples_of_bin };
            }
        }
    }
    Ok(Array::new(&dims, to))
}

/// MaxRoiPool.
pub fn max_roi_pool(call: &mut Call) -> Result<Outputs, Fault> {
    with_real(call, &[0, 1], pooled::<f32>, pooled::<f64>)
}

fn pooled<T: Real>(call: &Call) -> Result<Array, Fault> {
    let (maps, rois) = (call.input(0)?, call.input(1)?);
    let refused = || Fault::Invalid(format!("regions {:?} do not fit maps {:?}", rois.dims(), maps.dims()));
    let (Some(&[out_height, out_width]), [map_count, channels, height, width], [count, 5]) =
        (call.attributes.ints("pooled_shape")?, maps.dims(), rois.dims())
    else {
        return Err(refused());
    };
    let size = |n: i64| usize::try_from(n).ok().filter(|n| *n > 0).ok_or_else(refused);
    let (out_height, out_width) = (size(out_height)?, size(out_width)?);
    let scale = f64::from(call.attributes.float("spatial_scale", 1.0)?);
    let dims = [*count, *channels, out_height, out_width];
    let mut to: Vec<T> = call.vec(&dims)?;
    let maps = maps.view::<T>()?;
    for roi in rois.view::<T>()?.chunks_exact(5) {
        let batch = roi[0].to_f64();
        if !(0.0..*map_count as f64).contains(&batch) {
            return Err(refused());
        }
        let edge = |i: usize| (roi[i] * T::from_f64(scale)).to_f64().round();
        // Which rows or columns a bin covers, cut at the map.
        let span = |start: f64, end: f64, bin: usize, bins: usize, length: usize| {
            let size = T::from_f64((end - start + 1.0).max(1.0)) / T::from_f64(bins as f64);
            let at = |n: usize| (T::from_f64(n as f64) * size).to_f64();
            let cut = |x: f64| (x + start).clamp(0.0, length as f64) as usize;
            cut(at(bin).floor())..cut(at(bin + 1).ceil())
        };
        for channel in 0..*channels {
            let map = &maps[(batch as usize * channels + channel) * height * width..][..height * width];
            for bin_y in 0..out_height {
                let rows = span(edge(2), edge(4), bin_y, out_height, *height);
                for bin_x in 0..out_width {
                    let columns = span(edge(1), edge(3), bin_x, out_width, *width);
                    let cells = rows.clone().flat_map(|y| columns.clone().map(move |x| map[y * width + x]));
                    to.push(cells.reduce(super::larger).unwrap_or_default());
                }
            }
        }
    }
    Ok(Array::new(&dims, to))
}
