//! Exact products of 8-bit integers with zero points: sums wrap in 32 bits, as the standard allows.

use super::shapes::Shapes;
use crate::engine::array::{Array, Storage};
use crate::engine::embedded::call::Call;
use crate::engine::embedded::products::{Bytes, Matrix, bytes};
use crate::engine::fault::Fault;
use crate::ir::ElementType;

/// Elements of an int8 or uint8 array.
#[derive(Clone, Copy)]
pub enum Levels<'a> {
    Unsigned(&'a [u8]),
    Signed(&'a [i8]),
}

/// Elements of an int8 or uint8 array.
pub fn levels(array: &Array) -> Result<Levels<'_>, Fault> {
    match array.storage() {
        Storage::U8(v) if array.element() == ElementType::UINT8 => Ok(Levels::Unsigned(v)),
        Storage::I8(v) => Ok(Levels::Signed(v)),
        _ => Err(Fault::element(array.element())),
    }
}

/// Zero points of an operand, of its type; none when they are not given.
pub fn zero_points<'a>(operand: &Array, zero: Option<&'a Array>) -> Result<Levels<'a>, Fault> {
    match zero {
        Some(zero) if zero.element() != operand.element() => Err(Fault::Invalid(format!(
            "a zero point is {} where its operand is {}",
            zero.element(),
            operand.element()
        ))),
        Some(zero) => levels(zero),
        None if operand.element() == ElementType::INT8 => Ok(Levels::Signed(&[])),
        None => Ok(Levels::Unsigned(&[])),
    }
}

impl<'a> Levels<'a> {
    /// Number of elements.
    pub fn len(self) -> usize {
        match self {
            Levels::Unsigned(v) => v.len(),
            Levels::Signed(v) => v.len(),
        }
    }

    fn slice(self, from: usize, count: usize) -> Levels<'a> {
        match self {
            Levels::Unsigned(v) => Levels::Unsigned(&v[from..from + count]),
            Levels::Signed(v) => Levels::Signed(&v[from..from + count]),
        }
    }

    /// Rows of a matrix, from one on, with zero points of the same type: none, one for all rows of the matrix or one for
    /// each.
    pub fn lines(self, from: usize, rows: usize, columns: usize, zeros: Levels<'a>) -> Bytes<'a> {
        let zeros = if zeros.len() > 1 { zeros.slice(from, rows) } else { zeros };
        self.slice(from * columns, rows * columns).matrix(rows, columns, zeros)
    }

    /// Zero points of one matrix of a batch, each with so many lines.
    fn of_matrix(self, matrix: usize, lines: usize) -> Levels<'a> {
        match self.len() {
            0 | 1 => self,
            count if count == lines => self,
            _ => self.slice(matrix * lines, lines),
        }
    }

    /// A matrix with zero points of the same type.
    fn matrix(self, rows: usize, columns: usize, zeros: Levels<'a>) -> Bytes<'a> {
        match (self, zeros) {
            (Levels::Unsigned(v), Levels::Unsigned(z)) => Bytes::Unsigned(Matrix::new(v, rows, columns), z),
            (Levels::Unsigned(v), Levels::Signed(_)) => Bytes::Unsigned(Matrix::new(v, rows, columns), &[]),
            (Levels::Signed(v), Levels::Signed(z)) => Bytes::Signed(Matrix::new(v, rows, columns), z),
            (Levels::Signed(v), Levels::Unsigned(_)) => Bytes::Signed(Matrix::new(v, rows, columns), &[]),
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
        check_lines(shape, batch, lines, left, what)?;
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

/// Whether a parameter of a matrix operand is one for all, one a line, or one a line of every matrix.
fn check_lines(shape: &[usize], batch: &[usize], lines: usize, left: bool, what: &str) -> Result<(), Fault> {
    let fits = match (shape, left) {
        _ if shape.iter().all(|d| *d == 1) => true,
        ([count], _) => *count == lines,
        ([lead @ .., rows, 1], true) => lead == batch && *rows == lines,
        ([lead @ .., 1, columns], false) => lead == batch && *columns == lines,
        _ => false,
    };
    match fits {
        true => Ok(()),
        false => Err(Fault::Invalid(format!("{what} has shape {shape:?} for {lines} rows or columns"))),
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
    let mut out = call.vec::<i32>(&shapes.dims)?;
    let (left_zero, right_zero) = (zero_points(left.0, left.1)?, zero_points(right.0, right.1)?);
    let shape = |zero: Option<&Array>| zero.map_or(vec![1], |z| z.dims().to_vec());
    let left_shape = shape(left.1);
    let right_shape = shape(right.1);
    check_lines(&left_shape, &shapes.left_batch, rows, true, "a zero point")?;
    check_lines(&right_shape, &shapes.right_batch, columns, false, "a zero point")?;
    let (left, right) = (levels(left.0)?, levels(right.0)?);
    let matrices: usize = shapes.batch.iter().product();
    // One matrix on the right and one zero point on the left: all rows are those of one product.
    if right.len() == depth * columns && left_zero.len() <= 1 && left.len() == matrices * rows * depth {
        let right_zero = if right_zero.len() > 1 { right_zero.slice(0, columns) } else { right_zero };
        let left = left.matrix(matrices * rows, depth, left_zero);
        bytes(&mut out, left, right.matrix(depth, columns, right_zero))?;
        return Ok(out);
    }
    for i in 0..matrices {
        let l = shapes.matrix(&shapes.left_batch, i);
        let r = shapes.matrix(&shapes.right_batch, i);
        let left_matrix = left.slice(l * rows * depth, rows * depth);
        let right_matrix = right.slice(r * depth * columns, depth * columns);
        bytes(
            &mut out,
            left_matrix.matrix(rows, depth, left_zero.of_matrix(l, rows)),
            right_matrix.matrix(depth, columns, right_zero.of_matrix(r, columns)),
        )?;
    }
    Ok(out)
}
