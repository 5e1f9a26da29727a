//! The patches of an image as columns of a matrix (im2col), a block of output places at a time.

use super::window::Window;
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
                // Output columns whose tap is inside the image: first..last.
                let first = window.begin[2].saturating_sub(shift).div_ceil(stride).min(out_width);
                let last = match (width + window.begin[2]).checked_sub(shift + 1) {
                    Some(reach) => (reach / stride + 1).clamp(first, out_width),
                    None => first,
                };
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
