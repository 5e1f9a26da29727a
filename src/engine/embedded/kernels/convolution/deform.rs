//! DeformConv: a convolution whose taps are moved, each at each place on its own.

use super::window::{Rounding, Window};
use crate::engine::Fault;
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::embedded::kernels::real::{Real, in_real};
use crate::engine::embedded::products::Matrix;

/// DeformConv of two spatial axes: taps between elements are interpolated linearly, what is outside counts as 0.
pub fn deform_conv(call: &mut Call) -> Result<Outputs, Fault> {
    in_real!(call, 0, deformed)
}

fn deformed<T: Real>(call: &mut Call) -> Result<Outputs, Fault> {
    let (x, filters, offsets) = (call.input(0)?, call.input(1)?, call.input(2)?);
    let (&[batch, channels, height, width], &[out_channels, per_group, kh, kw]) = (x.dims(), filters.dims())
    else {
        return call.unsupported(format!("{} axes", x.rank()));
    };
    let positive = |name: &str| -> Result<usize, Fault> {
        let number = call.attributes.int(name, 1)?;
        usize::try_from(number)
            .ok()
            .filter(|g| *g > 0)
            .ok_or_else(|| Fault::Invalid(format!("{name}={number}")))
    };
    let (groups, offset_groups) = (positive("group")?, positive("offset_group")?);
    if per_group.checked_mul(groups) != Some(channels)
        || out_channels % groups != 0
        || channels % offset_groups != 0
    {
        return Err(Fault::Invalid(format!(
            "{channels} channels and filters of {:?} do not fit {groups} groups and {offset_groups} groups of offsets",
            filters.dims()
        )));
    }
    let window = Window::new(&call.attributes, &[height, width], &[kh, kw], Rounding::Down)?;
    let [_, out_height, out_width] = window.output;
    let (taps, places) = (window.taps(), window.output_count());
    let fits =
        |dims: &[usize], each: usize| dims == [batch, offset_groups * taps * each, out_height, out_width];
    let mask = call.optional(4)?;
    if !fits(offsets.dims(), 2) || mask.is_some_and(|m| !fits(m.dims(), 1)) {
        return Err(Fault::Invalid(format!(
            "offsets of shape {:?} do not fit {taps} taps at {out_height}×{out_width} places",
            offsets.dims()
        )));
    }
    let bias = call.optional(3)?;
    if bias.is_some_and(|b| b.dims() != [out_channels]) {
        return Err(Fault::Invalid(format!("the bias is not of {out_channels} numbers")));
    }
    let bias = bias.map(T::load).transpose()?;
    let mask = mask.map(T::load).transpose()?;
    let (values, weights, offsets) = (T::load(x)?, T::load(filters)?, T::load(offsets)?);
    let dims = [batch, out_channels, out_height, out_width];
    let mut out = call.vec::<T>(&dims)?;
    let inner = per_group * taps;
    let space = call.elements(&[inner, places], size_of::<T>())?;
    let mut columns = Vec::with_capacity(space);
    let together = channels / offset_groups;
    for image in 0..batch {
        for group in 0..groups {
            columns.clear();
            for channel in group * per_group..(group + 1) * per_group {
                let plane = &values[(image * channels + channel) * height * width..][..height * width];
                let sample = |y: f64, x: f64| sample(plane, [height, width], y, x);
                for tap in 0..taps {
                    let moved = (image * offset_groups + channel / together) * taps + tap;
                    for place in 0..places {
                        let at = |axis: usize, place: usize, tap: usize| {
                            (place * window.strides[axis] + tap * window.dilations[axis]) as f64
                                - window.begin[axis] as f64
                        };
                        let y =
                            at(1, place / out_width, tap / kw) + offsets[moved * 2 * places + place].wide();
                        let x = at(2, place % out_width, tap % kw)
                            + offsets[(moved * 2 + 1) * places + place].wide();
                        let factor = mask.as_ref().map_or(1.0, |m| m[moved * places + place].wide());
                        columns.push(T::from_f64(sample(y, x) * factor));
                    }
                }
            }
            let rows = out_channels / groups;
            let filled = out.len();
            let left = Matrix::new(&weights[group * rows * inner..], rows, inner);
            T::product(&mut out, left, Matrix::new(&columns, inner, places))?;
            if let Some(bias) = &bias {
                let lines = out[filled..].chunks_mut(places.max(1)).zip(&bias[group * rows..]);
                lines.for_each(|(line, b)| line.iter_mut().for_each(|v| *v += *b));
            }
        }
    }
    let element = x.element();
    call.working_space = (space * size_of::<T>()) as u64;
    one(T::array(element, &dims, out))
}

/// A plane at a place between its elements.
fn sample<T: Real>(plane: &[T], [height, width]: [usize; 2], y: f64, x: f64) -> f64 {
    let at = |y: f64, x: f64| {
        let inside = y >= 0.0 && x >= 0.0 && y < height as f64 && x < width as f64;
        if inside { plane[y as usize * width + x as usize].wide() } else { 0.0 }
    };
    let (top, left) = (y.floor(), x.floor());
    let (down, right) = (y - top, x - left);
    let line = |y: f64| at(y, left) * (1.0 - right) + at(y, left + 1.0) * right;
    line(top) * (1.0 - down) + line(top + 1.0) * down
}
