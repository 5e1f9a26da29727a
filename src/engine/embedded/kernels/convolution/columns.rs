//! The patches of an image as columns of a matrix (im2col), a block of output places at a time.

use super::window::Window;
use crate::engine::embedded::products::Factor;
use std::ops::Range;

/// Appends to `out` the rows of one channel, one for each tap of the window: what that tap sees at the output places
/// `places` (flat, row-major); `padding` is what it sees outside of the image.
pub fn append<T: Copy>(out: &mut Vec<T>, plane: &[T], window: &Window, places: &Range<usize>, padding: T) {
    let [_, height, width] = window.input;
    let [_, out_height, out_width] = window.output;
    let stride = window.strides[2];
    for kd in 0..window.kernel[0] {
        for kh in 0..window.kernel[1] {
            for kw in 0..window.kernel[2] {
                let shift = kw * window.dilations[2];
                let (first, last) = inside(window, shift);
                let mut at = places.start;
                while at < places.end {
                    let line = at / out_width;
                    let from = at % out_width;
                    let to = out_width.min(from + places.end - at);
                    at += to - from;
                    let row = window
                        .place(0, line / out_height, kd)
                        .zip(window.place(1, line % out_height, kh))
                        .map(|(d, h)| &plane[(d * height + h) * width..][..width]);
                    let Some(row) = row else {
                        out.resize(out.len() + to - from, padding);
                        continue;
                    };
                    let (inside, outside) = (first.clamp(from, to), last.clamp(from, to));
                    out.resize(out.len() + inside - from, padding);
                    if outside > inside {
                        let start = inside * stride + shift - window.begin[2];
                        if stride == 1 {
                            out.extend_from_slice(&row[start..start + outside - inside]);
                        } else {
                            out.extend(row[start..].iter().step_by(stride).take(outside - inside));
                        }
                    }
                    out.resize(out.len() + to - outside.max(inside), padding);
                }
            }
        }
    }
}

/// Adds to a plane the rows of one channel, one for each tap of the window, at all output places: the transpose of
/// [`append`].
pub fn accumulate<T: Factor>(plane: &mut [T], rows: &[T], window: &Window) {
    let [_, height, width] = window.input;
    let [_, out_height, out_width] = window.output;
    let stride = window.strides[2];
    let mut lines = rows.chunks_exact(out_width.max(1));
    for kd in 0..window.kernel[0] {
        for kh in 0..window.kernel[1] {
            for kw in 0..window.kernel[2] {
                let shift = kw * window.dilations[2];
                let (first, last) = inside(window, shift);
                for line in 0..window.output[0] * out_height {
                    let Some(values) = lines.next() else { return };
                    let place =
                        window.place(0, line / out_height, kd).zip(window.place(1, line % out_height, kh));
                    let Some((d, h)) = place else { continue };
                    if first == last {
                        continue;
                    }
                    let start = (d * height + h) * width + first * stride + shift - window.begin[2];
                    let sums = plane[start..].iter_mut().step_by(stride);
                    for (sum, v) in sums.zip(&values[first..last]) {
                        *sum = sum.plus(*v);
                    }
                }
            }
        }
    }
}

/// Output columns first..last where a tap so many elements after the window's first is inside the image.
fn inside(window: &Window, shift: usize) -> (usize, usize) {
    let (stride, columns) = (window.strides[2], window.output[2]);
    let first = window.begin[2].saturating_sub(shift).div_ceil(stride).min(columns);
    let last = match (window.input[2] + window.begin[2]).checked_sub(shift + 1) {
        Some(reach) => (reach / stride + 1).clamp(first, columns),
        None => first,
    };
    (first, last)
}
