//! Shapes of matrix products that behave like numpy.matmul.

use crate::engine::fault::Fault;

/// Shapes of a product that behaves like numpy.matmul.
pub struct Shapes {
    pub rows: usize,
    pub depth: usize,
    pub columns: usize,
    /// Batch dimensions of the left operand, of the right one, and of the result.
    pub left_batch: Vec<usize>,
    pub right_batch: Vec<usize>,
    pub batch: Vec<usize>,
    /// Dimensions of the result.
    pub dims: Vec<usize>,
}

impl Shapes {
    /// From the dimensions of the operands; a fault when they do not fit.
    pub fn of(left: &[usize], right: &[usize]) -> Result<Shapes, Fault> {
        let misfit = || Fault::Invalid(format!("shapes {left:?} and {right:?} cannot be multiplied"));
        let (left_batch, rows, depth) = match left {
            [] => return Err(misfit()),
            [depth] => (&[][..], 1, *depth),
            [batch @ .., rows, depth] => (batch, *rows, *depth),
        };
        let (right_batch, inner, columns) = match right {
            [] => return Err(misfit()),
            [inner] => (&[][..], *inner, 1),
            [batch @ .., inner, columns] => (batch, *inner, *columns),
        };
        if inner != depth {
            return Err(misfit());
        }
        let rank = left_batch.len().max(right_batch.len());
        let mut batch = Vec::with_capacity(rank);
        for i in 0..rank {
            let of = |dims: &[usize]| (i + dims.len()).checked_sub(rank).map_or(1, |k| dims[k]);
            batch.push(match (of(left_batch), of(right_batch)) {
                (a, b) if a == b => a,
                (1, b) => b,
                (a, 1) => a,
                _ => return Err(misfit()),
            });
        }
        let mut dims = batch.clone();
        if left.len() > 1 {
            dims.push(rows);
        }
        if right.len() > 1 {
            dims.push(columns);
        }
        let (left_batch, right_batch) = (left_batch.to_vec(), right_batch.to_vec());
        Ok(Shapes { rows, depth, columns, left_batch, right_batch, batch, dims })
    }

    /// Which matrix of an operand belongs to a matrix of the result.
    pub fn matrix(&self, operand_batch: &[usize], result: usize) -> usize {
        let mut rest = result;
        let (mut index, mut stride) = (0, 1);
        for i in 0..self.batch.len() {
            let axis = self.batch.len() - 1 - i;
            let at = rest % self.batch[axis];
            rest /= self.batch[axis];
            if let Some(k) = operand_batch.len().checked_sub(1 + i) {
                if operand_batch[k] != 1 {
                    index += at * stride;
                }
                stride *= operand_batch[k];
            }
        }
        index
    }
}
