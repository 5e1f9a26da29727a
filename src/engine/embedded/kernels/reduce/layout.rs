//! Which elements belong together: axes to reduce, as rows of elements with what stands before and behind them.

use crate::engine::array::{Dims, Element};
use crate::engine::embedded::call::Call;
use crate::engine::fault::Fault;
use rayon::prelude::*;

/// Elements `[outer, rows, inner]`, of which those along the middle belong together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rows {
    pub outer: usize,
    pub length: usize,
    pub inner: usize,
}

/// Elements from which on threads are used.
const MANY: usize = 1 << 16;
/// Columns that are laid out as rows at a time, and elements they may have together.
const COLUMNS: usize = 16;
const LAID_OUT: usize = 1 << 16;

impl Rows {
    /// Along one axis.
    pub fn along(dims: &[usize], axis: usize) -> Rows {
        Rows {
            outer: dims[..axis].iter().product(),
            length: dims[axis],
            inner: dims[axis + 1..].iter().product(),
        }
    }

    /// Number of rows.
    pub fn count(&self) -> usize {
        self.outer * self.inner
    }

    /// Calls `f` with each row of outer index `o`, laid out one element after the other, and its inner index.
    fn each<T: Copy>(&self, elements: &[T], o: usize, mut f: impl FnMut(usize, &[T])) {
        let block = &elements[o * self.length * self.inner..][..self.length * self.inner];
        if self.inner == 1 {
            return f(0, block);
        }
        let step = (LAID_OUT / self.length.max(1)).clamp(1, COLUMNS);
        let mut laid_out: Vec<T> = Vec::with_capacity(step * self.length);
        for from in (0..self.inner).step_by(step) {
            let width = step.min(self.inner - from);
            laid_out.clear();
            for column in from..from + width {
                laid_out.extend(block.iter().skip(column).step_by(self.inner));
            }
            for (k, row) in (from..from + width).zip(rows_of(&laid_out, self.length, width)) {
                f(k, row);
            }
        }
    }

    /// An element for each row, in order.
    pub fn reduced<T: Element + Copy, U: Element>(
        &self,
        call: &mut Call,
        elements: &[T],
        f: &(dyn Fn(&[T]) -> U + Sync),
    ) -> Result<Vec<U>, Fault> {
        call.elements(&[self.outer, self.inner], size_of::<U>())?;
        Ok(self.gathered(call, elements, f))
    }

    /// What `f` makes of each row, in order.
    pub fn gathered<T: Copy + Sync, U: Send>(
        &self,
        call: &mut Call,
        elements: &[T],
        f: &(dyn Fn(&[T]) -> U + Sync),
    ) -> Vec<U> {
        if self.inner != 1 {
            call.working_space = (LAID_OUT.max(self.length) * size_of::<T>() * call.threads) as u64;
        }
        let block = |o: usize, out: &mut Vec<U>| self.each(elements, o, |_, row| out.push(f(row)));
        if call.threads > 1 && elements.len() >= MANY && self.outer > 1 {
            let share = self.outer.div_ceil(call.threads * 4);
            let parts: Vec<Vec<U>> = (0..self.outer.div_ceil(share))
                .into_par_iter()
                .map(|part| {
                    let mut out = Vec::with_capacity(share * self.inner);
                    (part * share..((part + 1) * share).min(self.outer)).for_each(|o| block(o, &mut out));
                    out
                })
                .collect();
            return parts.into_iter().flatten().collect();
        }
        let mut out = Vec::with_capacity(self.count());
        (0..self.outer).for_each(|o| block(o, &mut out));
        out
    }

    /// Changes each row in place.
    pub fn change<T: Element + Copy>(
        &self,
        call: &mut Call,
        elements: &mut [T],
        f: &(dyn Fn(&mut [T]) + Sync),
    ) {
        let block = self.length * self.inner;
        if block == 0 {
            return;
        }
        if self.inner != 1 {
            call.working_space = (LAID_OUT.max(self.length) * size_of::<T>() * call.threads) as u64;
        }
        let change = |part: &mut [T]| match self.inner {
            1 => f(part),
            inner => columns(part, self.length, inner, f),
        };
        if call.threads > 1 && elements.len() >= MANY {
            elements
                .par_chunks_mut(block)
                .with_min_len(MANY.div_ceil(block).min(self.outer))
                .for_each(change);
        } else {
            elements.chunks_mut(block).for_each(change);
        }
    }
}

/// Rows of a length, which may be 0.
fn rows_of<T>(elements: &[T], length: usize, count: usize) -> impl Iterator<Item = &[T]> {
    (0..count).map(move |i| &elements[i * length..][..length])
}

/// Changes the columns of a matrix.
fn columns<T: Copy>(matrix: &mut [T], length: usize, inner: usize, f: &(dyn Fn(&mut [T]) + Sync)) {
    let step = (LAID_OUT / length).clamp(1, COLUMNS);
    let mut laid_out: Vec<T> = Vec::with_capacity(step * length);
    for from in (0..inner).step_by(step) {
        let width = step.min(inner - from);
        laid_out.clear();
        for column in from..from + width {
            laid_out.extend(matrix.iter().skip(column).step_by(inner));
        }
        laid_out.chunks_mut(length).for_each(f);
        for (column, row) in (from..from + width).zip(laid_out.chunks(length)) {
            matrix.iter_mut().skip(column).step_by(inner).zip(row).for_each(|(to, x)| *to = *x);
        }
    }
}

/// Axes to reduce: rows of elements in memory, or the order of axes that makes them so.
pub struct Reduction {
    /// Shape of the result.
    pub dims: Dims,
    pub rows: Rows,
    /// Sizes and strides of the axes in the order in which the elements must be laid out first: those kept, then those
    /// reduced; `None` when they lie right already.
    pub order: Option<Vec<(usize, usize)>>,
}

impl Reduction {
    /// Over the axes for which `reduced` says so.
    pub fn over(dims: &[usize], reduced: &[bool], keep: bool) -> Reduction {
        let result = dims.iter().zip(reduced).filter(|(_, r)| keep || !**r);
        let result: Dims = result.map(|(d, r)| if *r { 1 } else { *d }).collect();
        // Neighbours that are both kept or both reduced are one axis.
        let mut groups: Vec<(usize, bool)> = Vec::with_capacity(dims.len());
        for (d, r) in dims.iter().zip(reduced).filter(|(d, _)| **d != 1) {
            match groups.last_mut() {
                Some((size, same)) if same == r => *size *= d,
                _ => groups.push((*d, *r)),
            }
        }
        let rows = match groups.as_slice() {
            [] => Some((1, 1, 1)),
            [(k, false)] => Some((*k, 1, 1)),
            [(r, true)] => Some((1, *r, 1)),
            [(k, false), (r, true)] => Some((*k, *r, 1)),
            [(r, true), (k, false)] => Some((1, *r, *k)),
            [(k, false), (r, true), (i, false)] => Some((*k, *r, *i)),
            _ => None,
        };
        if let Some((outer, length, inner)) = rows {
            return Reduction { dims: result, rows: Rows { outer, length, inner }, order: None };
        }
        let mut strides = vec![1; groups.len()];
        for i in (1..groups.len()).rev() {
            strides[i - 1] = strides[i] * groups[i].0;
        }
        let axes = || groups.iter().zip(&strides).map(|((size, r), stride)| (*size, *stride, *r));
        let kept = axes().filter(|(.., r)| !r).map(|(size, stride, _)| (size, stride));
        let gone = axes().filter(|(.., r)| *r).map(|(size, stride, _)| (size, stride));
        let outer = kept.clone().map(|(size, _)| size).product();
        let length = gone.clone().map(|(size, _)| size).product();
        Reduction {
            dims: result,
            rows: Rows { outer, length, inner: 1 },
            order: Some(kept.chain(gone).collect()),
        }
    }

    /// The elements laid out as rows.
    pub fn laid_out<T: Element + Copy>(&self, call: &Call, elements: &[T]) -> Result<Option<Vec<T>>, Fault> {
        let Some(order) = &self.order else { return Ok(None) };
        let mut out = call.vec::<T>(&[elements.len()])?;
        if elements.is_empty() {
            return Ok(Some(out));
        }
        let (last, before) = match order.split_last() {
            Some((last, before)) => (*last, before),
            None => ((1, 1), &order[..]),
        };
        let mut at = vec![0usize; before.len()];
        let mut place = 0;
        'rows: loop {
            out.extend(elements[place..].iter().step_by(last.1).take(last.0));
            for (index, (size, stride)) in at.iter_mut().zip(before).rev() {
                *index += 1;
                place += stride;
                if *index < *size {
                    continue 'rows;
                }
                *index = 0;
                place -= size * stride;
            }
            return Ok(Some(out));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_that_lie_together_are_rows() {
        let over = |dims: &[usize], reduced: &[bool]| Reduction::over(dims, reduced, false);
        let rows = |outer, length, inner| Rows { outer, length, inner };
        assert_eq!(over(&[2, 3, 4], &[false, true, true]).rows, rows(2, 12, 1));
        assert_eq!(over(&[2, 3, 4], &[true, false, false]).rows, rows(1, 2, 12));
        assert_eq!(over(&[2, 1, 4], &[true, false, true]).rows, rows(1, 8, 1));
        let split = over(&[2, 3, 4], &[true, false, true]);
        assert_eq!((split.rows, split.dims.to_vec()), (rows(3, 8, 1), vec![3]));
        assert_eq!(split.order, Some(vec![(3, 4), (2, 12), (4, 1)]));
    }
}
