//! Matrix products of every element type: the only file that names the libraries behind them (rten-gemm for float32 and
//! bytes, matrixmultiply for float64). All products give the same bits on one thread and on many.

use crate::engine::array::Element;
use crate::engine::fault::Fault;
use half::{bf16, f16};
use rayon::prelude::*;
use rten_gemm::{
    BiasVector, GemmExecutor, GemmInputA, GemmInputB, GemmUninitOptions, PackedAMatrix, PackedBMatrix,
};
use rten_tensor::NdTensorView;
use std::mem::MaybeUninit;

/// Columns of a vector-matrix product that are computed together, whatever the number of threads: the last columns
/// of such a block are summed in another way than the others.
const VECTOR_BLOCK: usize = 128;

/// Elements of a slice, seen as a matrix.
#[derive(Clone, Copy)]
pub struct Matrix<'a, T> {
    data: &'a [T],
    rows: usize,
    columns: usize,
    row_step: usize,
    column_step: usize,
}

impl<'a, T> Matrix<'a, T> {
    /// A row-major matrix; `data` has at least its elements.
    pub fn new(data: &'a [T], rows: usize, columns: usize) -> Matrix<'a, T> {
        Matrix { data: &data[..rows * columns], rows, columns, row_step: columns, column_step: 1 }
    }

    /// A matrix whose rows start `step` elements after one another; `data` has at least its elements.
    pub fn strided(data: &'a [T], rows: usize, columns: usize, step: usize) -> Matrix<'a, T> {
        assert!(step >= columns && (rows == 0 || (rows - 1) * step + columns <= data.len()));
        Matrix { data, rows, columns, row_step: step, column_step: 1 }
    }

    /// The same elements with rows and columns exchanged.
    pub fn transposed(self) -> Matrix<'a, T> {
        Matrix {
            rows: self.columns,
            columns: self.rows,
            row_step: self.column_step,
            column_step: self.row_step,
            ..self
        }
    }

    /// The matrix, or its transpose.
    pub fn transposed_if(self, transposed: bool) -> Matrix<'a, T> {
        if transposed { self.transposed() } else { self }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The columns from one on.
    pub fn columns_from(self, start: usize) -> Matrix<'a, T> {
        let end = self.columns;
        self.column_block(start, end)
    }

    fn column_block(self, start: usize, end: usize) -> Matrix<'a, T> {
        let data = self.data.get(start * self.column_step..).unwrap_or(&[]);
        Matrix { data, columns: end - start, ..self }
    }

    fn with<U>(self, data: &'a [U]) -> Matrix<'a, U> {
        let Matrix { rows, columns, row_step, column_step, .. } = self;
        Matrix { data, rows, columns, row_step, column_step }
    }
}

impl<T: Copy> Matrix<'_, T> {
    #[inline]
    fn at(&self, row: usize, column: usize) -> T {
        self.data[row * self.row_step + column * self.column_step]
    }

    fn library(&self) -> Result<rten_tensor::Matrix<'_, T>, Fault> {
        let shape = [self.rows, self.columns];
        if self.rows == 0 || self.columns == 0 {
            return Ok(NdTensorView::from_data(shape, &self.data[..0]));
        }
        // A single row or column may have any step, and the library would take some for an overlap.
        let steps = match (self.rows, self.columns) {
            (_, 1) if self.row_step == 1 => [1, self.rows],
            (1, _) if self.column_step == 1 => [self.columns, 1],
            _ => [self.row_step, self.column_step],
        };
        let last = (self.rows - 1) * steps[0] + (self.columns - 1) * steps[1];
        NdTensorView::from_data_with_strides(shape, &self.data[..=last], steps).map_err(internal)
    }
}

/// A left matrix of a float32 product in the library's own form.
pub struct PackedLeft(PackedAMatrix<f32>);

/// A right matrix of a float32 product in the library's own form.
pub struct PackedRight(PackedBMatrix<f32>);

impl PackedLeft {
    /// The packed form of a matrix that is not empty.
    pub fn new(matrix: Matrix<f32>) -> Result<PackedLeft, Fault> {
        if matrix.rows == 0 || matrix.columns == 0 {
            return Err(internal("an empty matrix is not packed"));
        }
        let view = matrix.library()?;
        Ok(PackedLeft(FLOAT32.with(|gemm| gemm.prepack_a(view))))
    }

    /// Bytes that the packed form holds, about: the library pads each side to its tiles.
    pub fn bytes(&self) -> usize {
        self.0.rows() * self.0.cols() * size_of::<f32>()
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.0.rows()
    }
}

impl PackedRight {
    /// The packed form of a matrix that is not empty.
    pub fn new(matrix: Matrix<f32>) -> Result<PackedRight, Fault> {
        if matrix.rows == 0 || matrix.columns == 0 {
            return Err(internal("an empty matrix is not packed"));
        }
        let view = matrix.library()?;
        Ok(PackedRight(FLOAT32.with(|gemm| gemm.prepack_b(view))))
    }

    /// Bytes that the packed form holds, about: the library pads each side to its tiles.
    pub fn bytes(&self) -> usize {
        self.0.rows() * self.0.cols() * size_of::<f32>()
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.0.rows()
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.0.cols()
    }
}

/// Left side of a float32 product.
#[derive(Clone, Copy)]
pub enum Left<'a> {
    Plain(Matrix<'a, f32>),
    Packed(&'a PackedLeft),
}

/// Right side of a float32 product.
#[derive(Clone, Copy)]
pub enum Right<'a> {
    Plain(Matrix<'a, f32>),
    Packed(&'a PackedRight),
}

/// What is added to a float32 product.
#[derive(Clone, Copy)]
pub enum Bias<'a> {
    None,
    /// One number for each column.
    Row(&'a [f32]),
    /// One number for each row.
    Column(&'a [f32]),
}

thread_local! {
    // The library's executors cannot be shared between threads; making one asks the processor what it can do.
    static FLOAT32: GemmExecutor<f32> = GemmExecutor::new();
    static BYTES: GemmExecutor<u8, i8, i32> = GemmExecutor::new();
}

fn internal(error: impl std::fmt::Display) -> Fault {
    Fault::Invalid(format!("a matrix product could not be set up: {error}"))
}

/// Appends `scale · left · right + bias`, row-major, to `out`. With room reserved nothing is written twice.
pub fn float32(out: &mut Vec<f32>, left: Left, right: Right, scale: f32, bias: Bias) -> Result<(), Fault> {
    let (rows, inner) = match left {
        Left::Plain(m) => (m.rows, m.columns),
        Left::Packed(p) => (p.0.rows(), p.0.cols()),
    };
    let columns = match right {
        Right::Plain(m) => m.columns,
        Right::Packed(p) => p.0.cols(),
    };
    let count = rows * columns;
    let filled = out.len();
    out.reserve(count);
    if inner == 0 {
        // Some releases of the library skip the bias of an empty sum.
        for row in 0..rows {
            match bias {
                Bias::None => out.resize(filled + (row + 1) * columns, 0.0),
                Bias::Row(b) => out.extend_from_slice(b),
                Bias::Column(b) => out.resize(filled + (row + 1) * columns, b[row]),
            }
        }
        return Ok(());
    }
    let room = &mut out.spare_capacity_mut()[..count];
    match (left, right) {
        (Left::Plain(l), Right::Plain(r)) if rows == 1 => vector(room, l, r, scale, bias)?,
        (Left::Plain(l), Right::Plain(r)) if columns == 1 => {
            let bias = match bias {
                Bias::None => Bias::None,
                Bias::Row(b) => Bias::Column(b),
                Bias::Column(b) => Bias::Row(b),
            };
            vector(room, r.transposed(), l.transposed(), scale, bias)?;
        }
        _ => general(room, left, right, scale, bias)?,
    }
    // SAFETY: the library has written all `count` elements, or an error was returned above.
    unsafe { out.set_len(filled + count) };
    Ok(())
}

fn general(
    out: &mut [MaybeUninit<f32>],
    left: Left,
    right: Right,
    scale: f32,
    bias: Bias,
) -> Result<(), Fault> {
    let left = match left {
        Left::Plain(ref m) => GemmInputA::Unpacked(m.library()?),
        Left::Packed(p) => GemmInputA::Packed(&p.0),
    };
    let right = match right {
        Right::Plain(ref m) => GemmInputB::Unpacked(m.library()?),
        Right::Packed(p) => GemmInputB::Packed(&p.0),
    };
    let bias = match bias {
        Bias::None => None,
        Bias::Row(b) => Some(BiasVector::Row(b)),
        Bias::Column(b) => Some(BiasVector::Column(b)),
    };
    let options = GemmUninitOptions { alpha: scale, bias, a_quant: None, b_quant: None };
    FLOAT32.with(|gemm| gemm.gemm_uninit(out, left, right, options).map(|_| ())).map_err(internal)
}

/// A product with one row.
fn vector(
    out: &mut [MaybeUninit<f32>],
    left: Matrix<f32>,
    right: Matrix<f32>,
    scale: f32,
    bias: Bias,
) -> Result<(), Fault> {
    let block = |(index, out): (usize, &mut [MaybeUninit<f32>])| {
        let start = index * VECTOR_BLOCK;
        let end = start + out.len();
        let bias = match bias {
            Bias::Row(b) => Bias::Row(&b[start..end]),
            other => other,
        };
        general(out, Left::Plain(left), Right::Plain(right.column_block(start, end)), scale, bias)
    };
    if rayon::current_num_threads() > 1 && left.columns * right.columns > 1 << 16 {
        out.par_chunks_mut(VECTOR_BLOCK).enumerate().try_for_each(block)
    } else {
        out.chunks_mut(VECTOR_BLOCK).enumerate().try_for_each(block)
    }
}

/// Element types that have products: float64 and integers in their own arithmetic, integers with wrap-around,
/// float16 and bfloat16 summed in float32 and rounded once.
pub trait Factor: Element + Copy {
    /// Appends `left · right`, row-major, to `out`.
    fn product(out: &mut Vec<Self>, left: Matrix<Self>, right: Matrix<Self>) -> Result<(), Fault>;

    /// A sum in the same arithmetic.
    fn plus(self, other: Self) -> Self;
}

impl Factor for f32 {
    fn product(out: &mut Vec<f32>, left: Matrix<f32>, right: Matrix<f32>) -> Result<(), Fault> {
        float32(out, Left::Plain(left), Right::Plain(right), 1.0, Bias::None)
    }

    fn plus(self, other: Self) -> Self {
        self + other
    }
}

impl Factor for f64 {
    fn product(out: &mut Vec<f64>, left: Matrix<f64>, right: Matrix<f64>) -> Result<(), Fault> {
        if left.columns != right.rows {
            return Err(internal("the inner dimensions differ"));
        }
        let filled = out.len();
        out.resize(filled + left.rows * right.columns, 0.0);
        if left.rows == 0 || right.columns == 0 || left.columns == 0 {
            return Ok(());
        }
        let last = |m: &Matrix<f64>| (m.rows - 1) * m.row_step + (m.columns - 1) * m.column_step;
        assert!(last(&left) < left.data.len() && last(&right) < right.data.len());
        let step = |n: usize| n as isize;
        // SAFETY: the steps stay inside the slices, as asserted, and `out` has rows × columns elements from `filled` on.
        unsafe {
            matrixmultiply::dgemm(
                left.rows,
                left.columns,
                right.columns,
                1.0,
                left.data.as_ptr(),
                step(left.row_step),
                step(left.column_step),
                right.data.as_ptr(),
                step(right.row_step),
                step(right.column_step),
                0.0,
                out[filled..].as_mut_ptr(),
                step(right.columns),
                1,
            );
        }
        Ok(())
    }

    fn plus(self, other: Self) -> Self {
        self + other
    }
}

macro_rules! half_factors {
    ($($half:ty),*) => {
        $(impl Factor for $half {
            fn product(out: &mut Vec<$half>, left: Matrix<$half>, right: Matrix<$half>) -> Result<(), Fault> {
                let widened = |m: &Matrix<$half>| -> Vec<f32> { m.data.iter().map(|v| v.to_f32()).collect() };
                let (l, r) = (widened(&left), widened(&right));
                let mut wide = Vec::new();
                f32::product(&mut wide, left.with(&l), right.with(&r))?;
                out.extend(wide.into_iter().map(<$half>::from_f32));
                Ok(())
            }

            fn plus(self, other: Self) -> Self {
                self + other
            }
        })*
    };
}
half_factors!(f16, bf16);

macro_rules! integer_factors {
    ($($integer:ty),*) => {
        $(impl Factor for $integer {
            fn product(
                out: &mut Vec<$integer>,
                left: Matrix<$integer>,
                right: Matrix<$integer>,
            ) -> Result<(), Fault> {
                let filled = out.len();
                out.resize(filled + left.rows * right.columns, 0);
                if right.columns == 0 {
                    return Ok(());
                }
                for (row, sums) in out[filled..].chunks_mut(right.columns).enumerate() {
                    for k in 0..left.columns {
                        let l = left.at(row, k);
                        for (column, sum) in sums.iter_mut().enumerate() {
                            *sum = sum.wrapping_add(l.wrapping_mul(right.at(k, column)));
                        }
                    }
                }
                Ok(())
            }

            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
        })*
    };
}
integer_factors!(i8, i16, i32, i64, u8, u16, u32, u64);

/// A matrix of bytes with zero points: none at all (0), one for all, or one for each row of a left matrix and for each
/// column of a right one.
#[derive(Clone, Copy)]
pub enum Bytes<'a> {
    Unsigned(Matrix<'a, u8>, &'a [u8]),
    Signed(Matrix<'a, i8>, &'a [i8]),
}

impl Bytes<'_> {
    fn shape(&self) -> (usize, usize) {
        match self {
            Bytes::Unsigned(m, _) => (m.rows, m.columns),
            Bytes::Signed(m, _) => (m.rows, m.columns),
        }
    }
}

/// One zero point for each of `count`.
fn spread<T: Copy + Default>(zero: &[T], count: usize) -> Result<Vec<T>, Fault> {
    match zero {
        [] => Ok(vec![T::default(); count]),
        [one] => Ok(vec![*one; count]),
        many if many.len() == count => Ok(many.to_vec()),
        many => {
            Err(Fault::Invalid(format!("{} zero points are given where there are {count} lines", many.len())))
        }
    }
}

/// Appends the product of `left - zero points` and `right - zero points` to `out`, exact in int32 with wrap-around.
pub fn bytes(out: &mut Vec<i32>, left: Bytes, right: Bytes) -> Result<(), Fault> {
    let ((rows, inner), (below, columns)) = (left.shape(), right.shape());
    if inner != below {
        return Err(internal("the inner dimensions differ"));
    }
    let count = rows * columns;
    let filled = out.len();
    if inner == 0 || count == 0 {
        out.resize(filled + count, 0);
        return Ok(());
    }
    // The library multiplies unsigned by signed: moving a side and its zero points by 128 changes no difference.
    let (left_data, left_zero): (Vec<u8>, Vec<u8>);
    let l = match left {
        Bytes::Unsigned(m, zero) => {
            left_zero = spread(zero, rows)?;
            m
        }
        Bytes::Signed(m, zero) => {
            left_zero = spread(zero, rows)?.into_iter().map(|z| z as u8 ^ 0x80).collect();
            left_data = m.data.iter().map(|v| *v as u8 ^ 0x80).collect();
            m.with(&left_data)
        }
    };
    let (right_data, right_zero): (Vec<i8>, Vec<i8>);
    let r = match right {
        Bytes::Signed(m, zero) => {
            right_zero = spread(zero, columns)?;
            m
        }
        Bytes::Unsigned(m, zero) => {
            right_zero = spread(zero, columns)?.into_iter().map(|z| (z ^ 0x80) as i8).collect();
            right_data = m.data.iter().map(|v| (*v ^ 0x80) as i8).collect();
            m.with(&right_data)
        }
    };
    if BYTES.with(GemmExecutor::may_saturate) {
        plain_bytes(out, l, r, &left_zero, &right_zero);
        return Ok(());
    }
    out.reserve(count);
    let (a, b) = (GemmInputA::Unpacked(l.library()?), GemmInputB::Unpacked(r.library()?));
    let room = &mut out.spare_capacity_mut()[..count];
    BYTES
        .with(|gemm| gemm.gemm_uninit(room, a, b, GemmUninitOptions::default()).map(|_| ()))
        .map_err(internal)?;
    // SAFETY: the library has written all `count` elements, or an error was returned above.
    unsafe { out.set_len(filled + count) };
    take_off_zero_points(&mut out[filled..], l, r, &left_zero, &right_zero);
    Ok(())
}

/// Makes the product of bytes that of bytes minus zero points:
/// Σ (l - z)(r - y) = Σ l·r - z·Σ r - y·Σ l + inner·z·y.
///
/// The library could do this as well, but its release 0.27.0 was seen to take the wrong zero points for all but the
/// first tile when they differ from line to line.
fn take_off_zero_points(
    sums: &mut [i32],
    left: Matrix<u8>,
    right: Matrix<i8>,
    left_zero: &[u8],
    right_zero: &[i8],
) {
    let has_left = left_zero.iter().any(|z| *z != 0);
    let has_right = right_zero.iter().any(|z| *z != 0);
    if !has_left && !has_right {
        return;
    }
    let inner = left.columns as i32;
    let column_sums: Vec<i32> = match has_left {
        true => (0..right.columns)
            .map(|c| (0..right.rows).fold(0i32, |sum, k| sum.wrapping_add(i32::from(right.at(k, c)))))
            .collect(),
        false => vec![0; right.columns],
    };
    for (row, line) in sums.chunks_mut(right.columns).enumerate() {
        let z = i32::from(left_zero[row]);
        let row_sum = match has_right {
            true => (0..left.columns).fold(0i32, |sum, k| sum.wrapping_add(i32::from(left.at(row, k)))),
            false => 0,
        };
        let common = inner.wrapping_mul(z).wrapping_sub(row_sum);
        for ((sum, column_sum), y) in line.iter_mut().zip(&column_sums).zip(right_zero) {
            let part = i32::from(*y).wrapping_mul(common).wrapping_sub(z.wrapping_mul(*column_sum));
            *sum = sum.wrapping_add(part);
        }
    }
}

/// The exact path for processors whose byte products saturate in 16 bits.
fn plain_bytes(out: &mut Vec<i32>, left: Matrix<u8>, right: Matrix<i8>, left_zero: &[u8], right_zero: &[i8]) {
    let filled = out.len();
    out.resize(filled + left.rows * right.columns, 0);
    let mut line = vec![0i32; right.columns];
    for k in 0..left.columns {
        for (column, (v, zero)) in line.iter_mut().zip(right_zero).enumerate() {
            *v = i32::from(right.at(k, column)) - i32::from(*zero);
        }
        for (row, sums) in out[filled..].chunks_mut(right.columns).enumerate() {
            let l = i32::from(left.at(row, k)) - i32::from(left_zero[row]);
            for (sum, v) in sums.iter_mut().zip(&line) {
                *sum = sum.wrapping_add(l.wrapping_mul(*v));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(count: usize, seed: u64) -> impl Iterator<Item = u64> {
        let mut state = seed;
        (0..count).map(move |_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state >> 33
        })
    }

    const SIZES: [(usize, usize, usize); 9] = [
        (1, 1, 1),
        (1, 300, 17),
        (5, 3, 1),
        (7, 65, 33),
        (64, 257, 31),
        (3, 0, 4),
        (0, 3, 4),
        (2, 1030, 130),
        (1, 40, 400),
    ];

    #[test]
    fn float32_products_agree_with_float64_in_every_form() {
        for (m, k, n) in SIZES {
            let a: Vec<f32> = noise(m * k, 1).map(|v| v as f32 / (1u64 << 30) as f32 - 1.0).collect();
            let b: Vec<f32> = noise(k * n, 2).map(|v| v as f32 / (1u64 << 30) as f32 - 1.0).collect();
            let wide = |v: &[f32]| -> Vec<f64> { v.iter().map(|v| f64::from(*v)).collect() };
            let (wa, wb) = (wide(&a), wide(&b));
            let mut right = Vec::new();
            f64::product(&mut right, Matrix::new(&wa, m, k), Matrix::new(&wb, k, n)).unwrap();
            let flipped: Vec<f32> = (0..k * n).map(|i| b[(i % k) * n + i / k]).collect();
            let (l, r) = (Matrix::new(&a, m, k), Matrix::new(&b, k, n));
            let (pl, pr) = (PackedLeft::new(l), PackedRight::new(r));
            assert_eq!((pl.is_ok(), pr.is_ok()), (m * k > 0, k * n > 0));
            let left_side = pl.as_ref().map_or(Left::Plain(l), Left::Packed);
            let right_side = pr.as_ref().map_or(Right::Plain(r), Right::Packed);
            let turned = Matrix::new(&flipped, n, k).transposed();
            let row: Vec<f32> = (0..n).map(|i| i as f32).collect();
            let column: Vec<f32> = (0..m).map(|i| i as f32).collect();
            for left in [Left::Plain(l), left_side] {
                for right_side in [Right::Plain(r), right_side, Right::Plain(turned)] {
                    for bias in [Bias::None, Bias::Row(&row), Bias::Column(&column)] {
                        let mut ours = vec![9.0];
                        float32(&mut ours, left, right_side, 2.0, bias).unwrap();
                        assert_eq!(ours.len(), m * n + 1);
                        for (i, v) in ours[1..].iter().enumerate() {
                            let added = match bias {
                                Bias::None => 0.0,
                                Bias::Row(b) => b[i % n],
                                Bias::Column(b) => b[i / n],
                            };
                            let wanted = 2.0 * right[i] + f64::from(added);
                            assert!(
                                (f64::from(*v) - wanted).abs() < 1e-3,
                                "{m}x{k}x{n} at {i}: {v} {wanted}"
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn threads_do_not_change_float32_products() {
        for (m, k, n) in [(1, 700, 1003), (1003, 700, 1), (130, 700, 259)] {
            let a: Vec<f32> = noise(m * k, 3).map(|v| v as f32 / (1u64 << 31) as f32).collect();
            let b: Vec<f32> = noise(k * n, 4).map(|v| v as f32 / (1u64 << 31) as f32).collect();
            let run = |threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| {
                    let mut out = Vec::new();
                    f32::product(&mut out, Matrix::new(&a, m, k), Matrix::new(&b, k, n)).unwrap();
                    out
                })
            };
            let one = run(1);
            assert!((2..6).all(|threads| run(threads) == one), "{m}x{k}x{n}");
        }
    }

    #[test]
    fn products_of_bytes_are_exact_with_any_zero_points() {
        for (m, k, n) in SIZES {
            let a: Vec<u8> = noise(m * k, 5).map(|v| v as u8).collect();
            let b: Vec<u8> = noise(k * n, 6).map(|v| v as u8).collect();
            let (sa, sb): (Vec<i8>, Vec<i8>) =
                (a.iter().map(|v| *v as i8).collect(), b.iter().map(|v| *v as i8).collect());
            let za: Vec<u8> = noise(m, 7).map(|v| v as u8).collect();
            let zb: Vec<u8> = noise(n, 8).map(|v| v as u8).collect();
            let (sza, szb): (Vec<i8>, Vec<i8>) =
                (za.iter().map(|v| *v as i8).collect(), zb.iter().map(|v| *v as i8).collect());
            let lefts = [
                Bytes::Unsigned(Matrix::new(&a, m, k), &za),
                Bytes::Signed(Matrix::new(&sa, m, k), &sza),
                Bytes::Signed(Matrix::new(&sa, m, k), &[]),
                Bytes::Unsigned(Matrix::new(&a, m, k), &[200]),
            ];
            let rights = [
                Bytes::Unsigned(Matrix::new(&b, k, n), &zb),
                Bytes::Signed(Matrix::new(&sb, k, n), &szb),
                Bytes::Unsigned(Matrix::new(&b, k, n), &[]),
                Bytes::Signed(Matrix::new(&sb, k, n), &[-128]),
            ];
            let number = |side: &Bytes, row: usize, column: usize, line: usize| match side {
                Bytes::Unsigned(m, z) => {
                    i32::from(m.at(row, column))
                        - i32::from(z.get(line).or(z.first()).copied().unwrap_or_default())
                }
                Bytes::Signed(m, z) => {
                    i32::from(m.at(row, column))
                        - i32::from(z.get(line).or(z.first()).copied().unwrap_or_default())
                }
            };
            for left in &lefts {
                for right in &rights {
                    let mut ours = Vec::new();
                    bytes(&mut ours, *left, *right).unwrap();
                    let sum = |i: usize, j: usize| {
                        (0..k).map(|q| number(left, i, q, i) * number(right, q, j, j)).sum::<i32>()
                    };
                    let wanted: Vec<i32> = (0..m * n).map(|i| sum(i / n, i % n)).collect();
                    assert!(ours == wanted, "{m}x{k}x{n}");
                }
            }
        }
    }
}
