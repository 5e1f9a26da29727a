//! Strided views of a buffer and the copy that makes one dense: the one loop behind Transpose, Slice, Expand and others.

use super::words::{Word, with_word};
use crate::engine::array::Array;
use crate::engine::embedded::call::Call;
use crate::engine::fault::Fault;
use rayon::prelude::*;
use smallvec::SmallVec;

/// Elements above which a copy is shared between threads.
const PARALLEL: usize = 1 << 17;

/// Which elements of a buffer, in which order: along each axis so many, so many places apart. A step may be 0 (the same
/// element again) or negative. All elements lie inside the buffer; who makes a view sees to that.
#[derive(Clone, Debug)]
pub struct View {
    pub dims: SmallVec<[usize; 6]>,
    pub steps: SmallVec<[isize; 6]>,
    pub start: isize,
}

/// Places between neighbours along each axis of a dense array.
pub fn strides(dims: &[usize]) -> SmallVec<[isize; 6]> {
    let mut steps: SmallVec<[isize; 6]> = SmallVec::from_elem(1, dims.len());
    for axis in (1..dims.len()).rev() {
        // A dimension of 0 makes every step unused; 1 keeps the product from hiding what lies before it.
        steps[axis - 1] = steps[axis] * dims[axis].max(1) as isize;
    }
    steps
}

impl View {
    /// All of a dense array in order.
    pub fn dense(dims: &[usize]) -> View {
        View { dims: dims.into(), steps: strides(dims), start: 0 }
    }

    /// The same elements with the axes in another order.
    pub fn permuted(&self, order: &[usize]) -> View {
        View {
            dims: order.iter().map(|a| self.dims[*a]).collect(),
            steps: order.iter().map(|a| self.steps[*a]).collect(),
            start: self.start,
        }
    }

    /// The dense array that shows this view of an array's elements, in the shape `dims`.
    pub fn copy(&self, call: &Call, array: &Array, dims: &[usize]) -> Result<Array, Fault> {
        with_word!(array, W => {
            call.elements(dims, size_of::<W>())?;
            W::array(array, dims, self.elements(W::of(array)?))
        })
    }

    /// The elements in order.
    pub fn elements<W: Word>(&self, from: &[W]) -> Vec<W> {
        let merged = self.merged();
        let count: usize = merged.dims.iter().product();
        if count == 0 {
            return Vec::new();
        }
        if count >= PARALLEL && rayon::current_num_threads() > 1 && merged.dims[0] > 1 {
            let each = count / merged.dims[0];
            let parts = merged.dims[0].min(4 * rayon::current_num_threads());
            let rows = merged.dims[0].div_ceil(parts);
            let mut to = vec![W::default(); count];
            to.par_chunks_mut(rows * each).enumerate().for_each(|(part, to)| {
                let mut view = merged.clone();
                view.dims[0] = to.len() / each;
                view.start += (part * rows) as isize * view.steps[0];
                view.fill(from, to);
            });
            return to;
        }
        if let (Some(1), Some(last)) = (merged.steps.last(), merged.dims.last().copied()) {
            // Rows of neighbours: appended without writing zeros first.
            let mut to = Vec::with_capacity(count);
            merged.each_row(|start, _| to.extend_from_slice(&from[start as usize..start as usize + last]));
            return to;
        }
        let mut to = vec![W::default(); count];
        merged.fill(from, &mut to);
        to
    }

    /// Neighbouring axes that are walked as one joined into one, axes of one element left out. At least one axis stays.
    fn merged(&self) -> View {
        let mut dims: SmallVec<[usize; 6]> = SmallVec::new();
        let mut steps: SmallVec<[isize; 6]> = SmallVec::new();
        for (dim, step) in self.dims.iter().zip(&self.steps).filter(|(d, _)| **d != 1) {
            match (dims.last_mut(), steps.last_mut()) {
                (Some(outer), Some(outer_step)) if *outer_step == *step * *dim as isize => {
                    *outer *= *dim;
                    *outer_step = *step;
                }
                _ => {
                    dims.push(*dim);
                    steps.push(*step);
                }
            }
        }
        if dims.is_empty() {
            dims.push(1);
            steps.push(1);
        }
        View { dims, steps, start: self.start }
    }

    /// Calls with the place of the first element of each row along the last axis, and the row's number.
    fn each_row(&self, mut row: impl FnMut(isize, usize)) {
        let outer = self.dims.len() - 1;
        let rows: usize = self.dims[..outer].iter().product();
        let mut at: SmallVec<[usize; 6]> = SmallVec::from_elem(0, outer);
        let mut place = self.start;
        for number in 0..rows {
            row(place, number);
            for axis in (0..outer).rev() {
                at[axis] += 1;
                place += self.steps[axis];
                if at[axis] < self.dims[axis] {
                    break;
                }
                place -= self.steps[axis] * self.dims[axis] as isize;
                at[axis] = 0;
            }
        }
    }

    /// Writes the elements in order; `to` has as many. The view is merged.
    fn fill<W: Word>(&self, from: &[W], to: &mut [W]) {
        let last = self.dims.len() - 1;
        let (width, step) = (self.dims[last], self.steps[last]);
        match step {
            1 => self.each_row(|start, row| {
                to[row * width..(row + 1) * width]
                    .clone_from_slice(&from[start as usize..start as usize + width]);
            }),
            0 => self
                .each_row(|start, row| to[row * width..(row + 1) * width].fill(from[start as usize].clone())),
            _ => match self.steps.iter().position(|s| *s == 1) {
                Some(axis) if self.dims[axis] >= 4 && width >= 4 => self.fill_tiles(axis, from, to),
                _ => self.each_row(|start, row| {
                    let mut place = start;
                    for to in &mut to[row * width..(row + 1) * width] {
                        *to = from[place as usize].clone();
                        place += step;
                    }
                }),
            },
        }
    }

    /// As [`View::fill`] where `axis`, not the last one, runs over neighbours: in square tiles, so that neither reading
    /// nor writing jumps a cache line an element.
    fn fill_tiles<W: Word>(&self, axis: usize, from: &[W], to: &mut [W]) {
        const TILE: usize = 16;
        let last = self.dims.len() - 1;
        let (width, step) = (self.dims[last], self.steps[last]);
        let height = self.dims[axis];
        let to_steps = strides(&self.dims);
        // Every other axis, outside the two of the tile.
        let outer: SmallVec<[usize; 6]> = (0..last).filter(|a| *a != axis).collect();
        let mut planes = self.permuted(&outer);
        planes.dims.push(1);
        planes.steps.push(1);
        let to_planes: SmallVec<[isize; 6]> = outer.iter().map(|a| to_steps[*a]).collect();
        let to_step = to_steps[axis] as usize;
        planes.each_row(|start, number| {
            let mut rest = number;
            let mut to_start = 0;
            for (dim, to_step) in planes.dims[..outer.len()].iter().zip(&to_planes).rev() {
                to_start += (rest % dim) * *to_step as usize;
                rest /= dim;
            }
            for rows in (0..height).step_by(TILE) {
                let rows = rows..(rows + TILE).min(height);
                for columns in (0..width).step_by(TILE) {
                    let end = (columns + TILE).min(width);
                    for row in rows.clone() {
                        let to = &mut to[to_start + row * to_step..][columns..end];
                        let mut place = start + row as isize + columns as isize * step;
                        for to in to {
                            *to = from[place as usize].clone();
                            place += step;
                        }
                    }
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The elements one by one, from the definition.
    fn plain(view: &View, from: &[u32]) -> Vec<u32> {
        let count: usize = view.dims.iter().product();
        (0..count)
            .map(|mut number| {
                let mut place = view.start;
                for (dim, step) in view.dims.iter().zip(&view.steps).rev() {
                    place += (number % dim) as isize * step;
                    number /= dim;
                }
                from[place as usize]
            })
            .collect()
    }

    #[test]
    fn every_order_of_axes_is_copied_as_defined() {
        let dims = [5, 1, 7, 18, 3];
        let from: Vec<u32> = (0..dims.iter().product::<usize>() as u32).collect();
        let dense = View::dense(&dims);
        for order in [[4, 3, 2, 1, 0], [0, 2, 1, 3, 4], [3, 0, 4, 2, 1], [2, 3, 4, 0, 1], [0, 1, 2, 4, 3]] {
            let view = dense.permuted(&order);
            assert_eq!(view.elements(&from), plain(&view, &from), "{order:?}");
        }
    }

    #[test]
    fn repeated_backward_and_shared_copies_are_as_defined() {
        let from: Vec<u32> = (0..600_000).collect();
        let backward =
            View { dims: [1000, 300].as_slice().into(), steps: [600, -2].as_slice().into(), start: 599 };
        assert_eq!(backward.elements(&from), plain(&backward, &from));
        let repeated =
            View { dims: [3, 4, 5].as_slice().into(), steps: [0, 7, 0].as_slice().into(), start: 2 };
        assert_eq!(repeated.elements(&from), plain(&repeated, &from));
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        let view = View::dense(&[600, 1000]).permuted(&[1, 0]);
        assert_eq!(pool.install(|| view.elements(&from)), plain(&view, &from));
    }
}
