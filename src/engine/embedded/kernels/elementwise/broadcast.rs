//! Broadcasting: how the elements of several arrays meet, as runs along the innermost axis.

use crate::engine::array::Dims;
use crate::engine::fault::Fault;

/// The plan for `N` arrays of given shapes (ONNX, "Multidirectional Broadcasting"). Axes along which all arrays go on
/// evenly are taken together, so that equal shapes are one run.
pub struct Broadcast<const N: usize> {
    /// Shape of the result.
    pub dims: Dims,
    sizes: Dims,
    strides: [Dims; N],
}

impl<const N: usize> Broadcast<N> {
    /// The plan, or a fault when the shapes do not fit.
    pub fn of(shapes: [&[usize]; N]) -> Result<Broadcast<N>, Fault> {
        let rank = shapes.iter().map(|s| s.len()).max().unwrap_or(0);
        let mut dims: Dims = smallvec::smallvec![1; rank];
        for shape in &shapes {
            for (d, n) in dims.iter_mut().rev().zip(shape.iter().rev()) {
                match (*d, *n) {
                    (1, n) => *d = n,
                    (d, n) if d == n || n == 1 => {}
                    _ => return Err(Fault::Invalid(format!("shapes {shapes:?} do not broadcast"))),
                }
            }
        }
        // Innermost axis first, turned round at the end.
        let mut sizes = Dims::new();
        let mut strides: [Dims; N] = std::array::from_fn(|_| Dims::new());
        let mut steps = [1usize; N];
        for from_end in 0..rank {
            let size = dims[rank - 1 - from_end];
            if size == 1 {
                continue;
            }
            let mut here = [0; N];
            for (k, shape) in shapes.iter().enumerate() {
                let own = shape.len().checked_sub(1 + from_end).map_or(1, |axis| shape[axis]);
                if own != 1 {
                    here[k] = steps[k];
                    steps[k] = steps[k].saturating_mul(own);
                }
            }
            let goes_on = sizes.last().is_some_and(|inner: &usize| {
                (0..N).all(|k| strides[k].last().is_some_and(|s| here[k] == s.saturating_mul(*inner)))
            });
            match sizes.last_mut() {
                Some(inner) if goes_on => *inner *= size,
                _ => {
                    sizes.push(size);
                    (0..N).for_each(|k| strides[k].push(here[k]));
                }
            }
        }
        if sizes.is_empty() {
            sizes.push(1);
            strides.iter_mut().for_each(|s| s.push(0));
        }
        sizes.reverse();
        strides.iter_mut().for_each(|s| s.reverse());
        Ok(Broadcast { dims, sizes, strides })
    }

    /// Length of a whole run.
    pub fn run(&self) -> usize {
        self.sizes[self.sizes.len() - 1]
    }

    /// For each array, 1 when it goes on along a run and 0 when it stands still.
    pub fn steps(&self) -> [usize; N] {
        std::array::from_fn(|k| self.strides[k][self.sizes.len() - 1])
    }

    /// Calls `f` for each run, or part of one, of the results `start..start + count`: with the place in each array where
    /// it starts, and its length.
    pub fn runs(&self, start: usize, count: usize, mut f: impl FnMut([usize; N], usize)) {
        let outer = self.sizes.len() - 1;
        let run = self.sizes[outer];
        let mut left = count;
        if left == 0 || run == 0 {
            return;
        }
        let mut at: Dims = smallvec::smallvec![0; outer];
        let mut row = start / run;
        let mut places = [0usize; N];
        for axis in (0..outer).rev() {
            at[axis] = row % self.sizes[axis];
            row /= self.sizes[axis];
            (0..N).for_each(|k| places[k] += at[axis] * self.strides[k][axis]);
        }
        let mut skip = start % run;
        loop {
            let n = (run - skip).min(left);
            f(std::array::from_fn(|k| places[k] + skip * self.strides[k][outer]), n);
            left -= n;
            if left == 0 {
                return;
            }
            skip = 0;
            for axis in (0..outer).rev() {
                at[axis] += 1;
                (0..N).for_each(|k| places[k] += self.strides[k][axis]);
                if at[axis] < self.sizes[axis] {
                    break;
                }
                at[axis] = 0;
                (0..N).for_each(|k| places[k] -= self.sizes[axis] * self.strides[k][axis]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(a: &[usize], b: &[usize], start: usize, count: usize) -> Vec<(usize, usize)> {
        let plan = Broadcast::of([a, b]).expect("shapes broadcast");
        let steps = plan.steps();
        let mut out = Vec::new();
        plan.runs(start, count, |[i, j], n| {
            out.extend((0..n).map(|k| (i + k * steps[0], j + k * steps[1])));
        });
        out
    }

    #[test]
    fn equal_axes_are_one_run() {
        assert_eq!(Broadcast::of([&[2, 3, 4], &[2, 3, 4]]).map(|p| p.run()).ok(), Some(24));
        assert_eq!(Broadcast::of([&[2, 3, 4], &[1, 1, 1]]).map(|p| p.run()).ok(), Some(24));
        assert_eq!(Broadcast::of([&[2, 3, 4], &[3, 4]]).map(|p| p.run()).ok(), Some(12));
        assert_eq!(Broadcast::of([&[2, 3, 4], &[3, 1]]).map(|p| p.run()).ok(), Some(4));
    }

    #[test]
    fn elements_meet_as_the_standard_says_from_any_start() {
        let all = pairs(&[2, 1, 2], &[3, 1], 0, 12);
        let expected: Vec<_> =
            (0..2).flat_map(|i| (0..3).flat_map(move |j| (0..2).map(move |k| (i * 2 + k, j)))).collect();
        assert_eq!(all, expected);
        assert_eq!(pairs(&[2, 1, 2], &[3, 1], 5, 4), expected[5..9]);
        assert!(pairs(&[0, 3], &[1], 0, 0).is_empty());
        assert!(Broadcast::of([&[2], &[3]]).is_err());
        assert_eq!(Broadcast::of([&[1], &[0]]).map(|p| p.dims.to_vec()).ok(), Some(vec![0]));
    }
}
