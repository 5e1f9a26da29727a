//! Exact products of 8-bit integers with zero points: sums wrap in 32 bits, as the standard allows.

use crate::engine::array::{Array, Storage};
use crate::engine::embedded::call::Call;
use crate::engine::fault::Fault;
use crate::ir::ElementType;

/// Levels of an int8 or uint8 array as integers.
pub fn levels(array: &Array) -> Result<Vec<i16>, Fault> {
    match array.storage() {
        Storage::U8(v) if array.element() == ElementType::UINT8 => {
            Ok(v.iter().map(|v| i16::from(*v)).collect())
        }
        Storage::I8(v) => Ok(v.iter().map(|v| i16::from(*v)).collect()),
        _ => Err(Fault::element(array.element())),
    }
}

/// Rows of a left matrix times rows of a right one (that is, its columns): `put` gets row, column and the sum.
pub fn products(left: &[i16], right: &[i16], depth: usize, mut put: impl FnMut(usize, usize, i32)) {
    /// Right rows that stay in the nearest cache while the left ones pass.
    const CACHED: usize = 1 << 16;
    if depth == 0 {
        return;
    }
    let block = (CACHED / depth).max(1);
    for (b, right) in right.chunks(block * depth).enumerate() {
        for (i, left) in left.chunks_exact(depth).enumerate() {
            for (j, right) in right.chunks_exact(depth).enumerate() {
                let terms = left.iter().zip(right).map(|(l, r)| i32::from(*l) * i32::from(*r));
                put(i, b * block + j, terms.fold(0, i32::wrapping_add));
            }
        }
    }
}

/// A parameter of a matrix operand: one for all, one a row (left) or column (right), or one for each in every matrix of
/// the batch.
pub struct PerLine<T> {
    values: Vec<T>,
    lines: usize,
}

impl<T: Copy> PerLine<T> {
    /// `lines` is the number of rows (left) or columns (right).
    pub fn of(
        values: Vec<T>,
        shape: &[usize],
        batch: &[usize],
        lines: usize,
        left: bool,
        what: &str,
    ) -> Result<PerLine<T>, Fault> {
        let per_matrix = match (shape, left) {
            ([lead @ .., rows, 1], true) => lead == batch && *rows == lines,
            ([lead @ .., 1, columns], false) => lead == batch && *columns == lines,
            _ => false,
        };
        let fits = values.len() == 1 || (shape.len() == 1 && values.len() == lines) || per_matrix;
        if !fits {
            return Err(Fault::Invalid(format!("{what} has shape {shape:?} for {lines} rows or columns")));
        }
        Ok(PerLine { values, lines })
    }

    /// The parameter of a line of a matrix of the operand's batch.
    pub fn at(&self, matrix: usize, line: usize) -> T {
        match self.values.len() {
            1 => self.values[0],
            n if n == self.lines => self.values[line],
            _ => self.values[matrix * self.lines + line],
        }
    }
}

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

/// The product of two operands with their zero points, exact in 32 bits.
pub fn product(
    call: &Call,
    shapes: &Shapes,
    left: (&Array, Option<&Array>),
    right: (&Array, Option<&Array>),
) -> Result<Vec<i32>, Fault> {
    let Shapes { rows, depth, columns, .. } = *shapes;
    let mut out = call.zeros::<i32>(&shapes.dims)?;
    if out.is_empty() {
        return Ok(out);
    }
    let left_zero = zero_point(left, &shapes.left_batch, rows, true)?;
    let right_zero = zero_point(right, &shapes.right_batch, columns, false)?;
    let mut left = levels(left.0)?;
    for (line, row) in left.chunks_exact_mut(depth.max(1)).enumerate() {
        let zero = left_zero.at(line / rows, line % rows);
        row.iter_mut().for_each(|v| *v -= zero);
    }
    let plain = levels(right.0)?;
    let mut right = vec![0; plain.len()];
    let size = depth * columns;
    for (matrix, (to, from)) in
        right.chunks_exact_mut(size.max(1)).zip(plain.chunks_exact(size.max(1))).enumerate()
    {
        for (j, to) in to.chunks_exact_mut(depth.max(1)).enumerate() {
            let zero = right_zero.at(matrix, j);
            for (k, to) in to.iter_mut().enumerate() {
                *to = from[k * columns + j] - zero;
            }
        }
    }
    for (i, out) in out.chunks_exact_mut(rows * columns).enumerate() {
        let l = shapes.matrix(&shapes.left_batch, i) * rows * depth;
        let r = shapes.matrix(&shapes.right_batch, i) * size;
        products(&left[l..l + rows * depth], &right[r..r + size], depth, |i, j, sum| {
            out[i * columns + j] = sum;
        });
    }
    Ok(out)
}

fn zero_point(
    (operand, zero): (&Array, Option<&Array>),
    batch: &[usize],
    lines: usize,
    left: bool,
) -> Result<PerLine<i16>, Fault> {
    let Some(zero) = zero else { return PerLine::of(vec![0], &[], batch, lines, left, "") };
    if zero.element() != operand.element() {
        let (zero, operand) = (zero.element(), operand.element());
        return Err(Fault::Invalid(format!("a zero point is {zero} where its operand is {operand}")));
    }
    PerLine::of(levels(zero)?, zero.dims(), batch, lines, left, "a zero point")
}
