//! Convolution of each channel with its own filters, float32.
//!
//! A plane is laid out once with its padding, split into one grid for each remainder of the strides, so that every tap
//! of the window reads consecutive elements whatever the strides and dilations are. The sums then run over the whole
//! plane as one line; the few sums that straddle two rows are dropped when rows are copied out.

use super::window::Window;
use crate::engine::Fault;
use crate::engine::embedded::call::Call;
use crate::engine::embedded::vector_math::widest;
use rayon::prelude::*;
use std::mem::MaybeUninit;

/// Sums that are kept in registers together.
const LANES: usize = 64;

/// Sizes of the grids that one plane is laid out in.
struct Grids {
    /// Rows and columns of each grid.
    rows: usize,
    columns: usize,
    /// Where in the grids each tap starts to read.
    taps: Vec<usize>,
    /// Sums over the plane as one line, rounded up to whole registers.
    sums: usize,
    /// Elements of all grids.
    elements: usize,
}

impl Grids {
    fn of(window: &Window) -> Grids {
        let [_, sy, sx] = window.strides;
        let [_, dy, dx] = window.dilations;
        let [_, out_rows, out_columns] = window.output;
        let lines = |out: usize, kernel: usize, dilation: usize, stride: usize| {
            out + (kernel - 1) * dilation / stride
        };
        let rows = lines(out_rows, window.kernel[1], dy, sy);
        let columns = lines(out_columns, window.kernel[2], dx, sx);
        let mut taps = Vec::with_capacity(window.taps());
        for ky in 0..window.kernel[1] {
            for kx in 0..window.kernel[2] {
                let (y, x) = (ky * dy, kx * dx);
                let grid = (y % sy) * sx + x % sx;
                taps.push((grid * rows + y / sy) * columns + x / sx);
            }
        }
        let sums = ((out_rows - 1) * columns + out_columns).next_multiple_of(LANES);
        let elements = rows * columns * sx * sy;
        Grids { rows, columns, taps, sums, elements }
    }
}

/// Appends the convolution of one image (`planes` of `window.input`) to `out`: `filters` holds for each plane the
/// weights of its output planes, `biases` one number for each output plane.
pub fn convolve(
    call: &Call,
    out: &mut Vec<f32>,
    image: &[f32],
    window: &Window,
    filters: &[f32],
    biases: Option<&[f32]>,
) -> Result<u64, Fault> {
    let (plane, taps, out_plane) = (window.input_count(), window.taps(), window.output_count());
    let planes = image.len() / plane.max(1);
    let filled = out.len();
    let out_planes = filters.len() / taps;
    if planes == 0 || out_plane == 0 || out_planes == 0 {
        return Ok(0);
    }
    let multiplier = out_planes / planes;
    let grids = Grids::of(window);
    let space = call.elements(&[grids.elements + 2 * grids.sums], size_of::<f32>() * call.threads)?;
    let run = |scratch: &mut Scratch, index: usize, out: &mut [MaybeUninit<f32>]| {
        let plane = &image[index * plane..(index + 1) * plane];
        lay_out(&mut scratch.grids, plane, window, &grids);
        for (k, out) in out.chunks_mut(out_plane).enumerate() {
            let channel = index * multiplier + k;
            let weights = &filters[channel * taps..(channel + 1) * taps];
            let bias = biases.map_or(0.0, |b| b[channel]);
            sum(&mut scratch.sums, &scratch.grids, &grids.taps, weights, bias);
            let rows = scratch.sums.chunks(grids.columns);
            for (out, row) in out.chunks_mut(window.output[2]).zip(rows) {
                out.write_copy_of_slice(&row[..out.len()]);
            }
        }
    };
    // Taps of the last sums, which nobody reads, reach beyond the grids.
    let scratch = || Scratch { grids: vec![0.0; grids.elements + grids.sums], sums: vec![0.0; grids.sums] };
    let count = out_planes * out_plane;
    out.reserve(count);
    let room = &mut out.spare_capacity_mut()[..count];
    let each = multiplier * out_plane;
    if call.threads > 1 && count * taps > 1 << 16 {
        let chunks = room.par_chunks_mut(each).enumerate();
        chunks.for_each_init(scratch, |scratch, (index, out)| run(scratch, index, out));
    } else {
        let mut scratch = scratch();
        room.chunks_mut(each).enumerate().for_each(|(index, out)| run(&mut scratch, index, out));
    }
    // SAFETY: every chunk of `room` was written: each has `multiplier` planes of whole rows.
    unsafe { out.set_len(filled + count) };
    Ok((space * size_of::<f32>() * call.threads) as u64)
}

struct Scratch {
    grids: Vec<f32>,
    sums: Vec<f32>,
}

/// Copies a plane into the grids; what is padding in one plane is padding in all, and stays 0.
fn lay_out(out: &mut [f32], plane: &[f32], window: &Window, grids: &Grids) {
    let [_, sy, sx] = window.strides;
    let [_, top, left] = window.begin;
    let [_, _, width] = window.input;
    let reach = grids.columns * sx;
    for (y, row) in plane.chunks(width).enumerate() {
        let (phase, line) = ((y + top) % sy, (y + top) / sy);
        if line >= grids.rows {
            break;
        }
        for px in 0..sx {
            let start = ((phase * sx + px) * grids.rows + line) * grids.columns;
            let out = &mut out[start..start + grids.columns];
            // The first element of the row that falls into this grid, and the column it has there.
            let first = (px + sx - left % sx) % sx;
            let column = (first + left) / sx;
            if first + left >= reach || column >= grids.columns || first >= width {
                continue;
            }
            if sx == 1 {
                let count = row.len().min(grids.columns - column);
                out[column..column + count].copy_from_slice(&row[..count]);
            } else {
                for (o, v) in out[column..].iter_mut().zip(row[first..].iter().step_by(sx)) {
                    *o = *v;
                }
            }
        }
    }
}

/// Sums over all taps.
fn sum(out: &mut [f32], grids: &[f32], taps: &[usize], weights: &[f32], bias: f32) {
    widest(
        #[inline(always)]
        || sums(out, grids, taps, weights, bias),
    );
}

#[inline(always)]
fn sums(out: &mut [f32], grids: &[f32], taps: &[usize], weights: &[f32], bias: f32) {
    for (block, out) in out.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
        let mut acc = [bias; LANES];
        for (start, weight) in taps.iter().zip(weights) {
            let start = start + block * LANES;
            let Some(from) = grids[start..].first_chunk::<LANES>() else { continue };
            for (a, v) in acc.iter_mut().zip(from) {
                *a = weight.mul_add(*v, *a);
            }
        }
        *out = acc;
    }
}
