//! Gemm.

use super::{PackedSide, natural, packing, with_factor};

use crate::engine::Fault;
use crate::engine::array::{Array, Element, Storage};
use crate::engine::embedded::call::{Call, Constants, Outputs, Packing, one};
use crate::engine::embedded::kernels::real::Real;
use crate::engine::embedded::products::{self, Bias, Factor, Left, Matrix, Right};
use crate::ir::ElementType;

pub fn pack(constants: &Constants) -> Option<Packing> {
    packing(constants, constants.attributes.int("transB", 0).ok()? != 0)
}

/// Gemm: `alpha · A' · B' + beta · C`. C is broadcast to the result (before opset 7 only when the attribute `broadcast`
/// says so; C that needs none fits either way) and may be left out since opset 11.
pub fn gemm(call: &mut Call) -> Result<Outputs, Fault> {
    let alpha = call.attributes.float("alpha", 1.0)?;
    let beta = call.attributes.float("beta", 1.0)?;
    let left_turned = call.attributes.int("transA", 0)? != 0;
    let right_turned = call.attributes.int("transB", 0)? != 0;
    let a = call.input(0)?;
    let &[rows, columns] = a.dims() else { return Err(rank(0, a)) };
    let (m, k) = if left_turned { (columns, rows) } else { (rows, columns) };
    let packed = match call.packed::<PackedSide>() {
        Some(side) => Some(side.as_ref().map_err(Clone::clone)?),
        None => None,
    };
    let (below, n) = match packed {
        Some(p) => (p.rows(), p.columns()),
        None => {
            let b = call.input(1)?;
            let &[r, c] = b.dims() else { return Err(rank(1, b)) };
            if right_turned { (c, r) } else { (r, c) }
        }
    };
    if k != below {
        return Err(Fault::Invalid(format!("its inner dimensions are {k} and {below}")));
    }
    let c = call.optional(2)?;
    let steps = c.map(|c| Addend::of(c, m, n)).transpose()?;
    let dims = [m, n];
    let single_precision =
        matches!(a.element(), ElementType::FLOAT | ElementType::FLOAT16 | ElementType::BFLOAT16);
    if single_precision {
        let x = f32::load(a)?;
        let left = Left::Plain(Matrix::new(&x, rows, columns).transposed_if(left_turned));
        let y;
        let right = match packed {
            Some(p) => Right::Packed(p),
            None => {
                y = f32::load(call.input(1)?)?;
                let (r, c) = if right_turned { (n, k) } else { (k, n) };
                Right::Plain(Matrix::new(&y, r, c).transposed_if(right_turned))
            }
        };
        let addend = c.map(f32::load).transpose()?;
        let mut out = call.vec::<f32>(&dims)?;
        let (bias, rest) = match (&addend, steps) {
            (Some(z), Some(Addend { row: 0, column: 1 })) if beta == 1.0 => (Bias::Row(z), None),
            (Some(z), Some(Addend { row: 1, column: 0 })) if beta == 1.0 => (Bias::Column(z), None),
            (Some(z), Some(steps)) => (Bias::None, Some((z, steps))),
            _ => (Bias::None, None),
        };
        products::float32(&mut out, left, right, alpha, bias)?;
        if let Some((z, steps)) = rest {
            steps.add(&mut out, n, |place| beta * z[place], Factor::plus);
        }
        return one(f32::array(a.element(), &dims, out));
    }
    if a.element() != call.input(1)?.element() {
        return Err(Fault::Invalid(format!(
            "its inputs are {} and {}",
            a.element(),
            call.input(1)?.element()
        )));
    }
    let turned = (left_turned, right_turned);
    if let Storage::F64(_) = a.storage() {
        let mut out = plain::<f64>(call, turned)?;
        if alpha != 1.0 {
            out.iter_mut().for_each(|v| *v *= f64::from(alpha));
        }
        if let (Some(c), Some(steps)) = (c, steps) {
            let z = c.view::<f64>()?;
            steps.add(&mut out, n, |place| f64::from(beta) * z[place], Factor::plus);
        }
        return one(Array::new(&dims, out));
    }
    if alpha != 1.0 || (c.is_some() && beta != 1.0) {
        return call.unsupported(format!("{} with alpha {alpha} and beta {beta}", a.element()));
    }
    let array = with_factor!(
        a,
        T => {
            let mut out = plain::<T>(call, turned)?;
            if let (Some(c), Some(steps)) = (c, steps) {
                let z = c.view::<T>()?;
                steps.add(&mut out, n, |place| z[place], T::plus);
            }
            Array::new(&dims, out)
        },
        return call.unsupported(a.element())
    );
    one(array)
}

fn rank(index: usize, array: &Array) -> Fault {
    Fault::Invalid(format!("input {index} has shape {:?} where a matrix is needed", array.dims()))
}

fn plain<T: Factor>(call: &Call, turned: (bool, bool)) -> Result<Vec<T>, Fault> {
    fn matrix<T: Element>(array: &Array, turned: bool) -> Result<Matrix<'_, T>, Fault> {
        let &[rows, columns] = array.dims() else { return Err(Fault::element(array.element())) };
        Ok(Matrix::new(array.view::<T>()?, rows, columns).transposed_if(turned))
    }
    let left = matrix::<T>(call.input(0)?, turned.0)?;
    let right = matrix::<T>(call.input(1)?, turned.1)?;
    let mut out = call.vec::<T>(&[left.rows(), right.columns()])?;
    T::product(&mut out, left, right)?;
    Ok(out)
}

/// How far C moves for a step to the next row and column of the result: 0 where it is broadcast.
#[derive(Clone, Copy)]
struct Addend {
    row: usize,
    column: usize,
}

impl Addend {
    fn of(c: &Array, m: usize, n: usize) -> Result<Addend, Fault> {
        let (rows, columns) = match *c.dims() {
            [] => (1, 1),
            [columns] => (1, columns),
            [rows, columns] => (rows, columns),
            _ => return Err(rank(2, c)),
        };
        if (rows != 1 && rows != m) || (columns != 1 && columns != n) {
            return Err(Fault::Invalid(format!("C has shape {:?} where the result is {m}×{n}", c.dims())));
        }
        let column = usize::from(columns != 1);
        Ok(Addend { row: if rows == 1 { 0 } else { columns }, column })
    }

    fn add<T: Copy>(self, out: &mut [T], n: usize, term: impl Fn(usize) -> T, plus: impl Fn(T, T) -> T) {
        for (row, line) in out.chunks_mut(n.max(1)).enumerate() {
            for (column, sum) in line.iter_mut().enumerate() {
                *sum = plus(*sum, term(row * self.row + column * self.column));
            }
        }
    }
}
