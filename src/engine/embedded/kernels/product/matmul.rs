//! MatMul.

use super::{PackedSide, natural, packing, with_factor};

use crate::engine::Fault;
use crate::engine::array::{Array, Dims, Storage};
use crate::engine::embedded::call::{Call, Constants, Outputs, Packing, one};
use crate::engine::embedded::kernels::real::Real;
use crate::engine::embedded::products::{self, Bias, Factor, Left, Matrix, Right};

pub fn pack(constants: &Constants) -> Option<Packing> {
    packing(constants, false)
}

/// MatMul as `numpy.matmul`: batch dimensions are broadcast, one dimension counts as a row on the left and a column on
/// the right and is taken out again.
pub fn matmul(call: &mut Call) -> Result<Outputs, Fault> {
    if let Some(side) = call.packed::<PackedSide>() {
        let right = side.as_ref().map_err(Clone::clone)?;
        let left = call.input(0)?;
        let Some((inner, outer)) = left.dims().split_last() else { return Err(scalar()) };
        if *inner != right.rows() {
            return Err(unfit(left.dims(), &[right.rows(), right.columns()]));
        }
        let rows = outer.iter().product::<usize>();
        let mut dims = Dims::from_slice(outer);
        dims.push(right.columns());
        let elements = f32::load(left)?;
        let mut out = call.vec::<f32>(&dims)?;
        let matrix = Left::Plain(Matrix::new(&elements, rows, *inner));
        products::float32(&mut out, matrix, Right::Packed(right), 1.0, Bias::None)?;
        return one(f32::array(left.element(), &dims, out));
    }
    let (a, b) = (call.input(0)?, call.input(1)?);
    if a.element() != b.element() {
        return Err(Fault::Invalid(format!("its inputs are {} and {}", a.element(), b.element())));
    }
    let array = with_factor!(
        a,
        T => multiply::<T>(call, a, b)?,
        return call.unsupported(a.element())
    );
    one(array)
}

fn multiply<T: Factor>(call: &Call, a: &Array, b: &Array) -> Result<Array, Fault> {
    let mut left = Dims::from_slice(a.dims());
    let mut right = Dims::from_slice(b.dims());
    let (row, column) = (left.len() == 1, right.len() == 1);
    if row {
        left.insert(0, 1);
    }
    if column {
        right.push(1);
    }
    let ([left_batch @ .., m, k], [right_batch @ .., below, n]) = (left.as_slice(), right.as_slice()) else {
        return Err(scalar());
    };
    if k != below {
        return Err(unfit(a.dims(), b.dims()));
    }
    let rank = left_batch.len().max(right_batch.len());
    let at = |dims: &[usize], axis: usize| (axis + dims.len()).checked_sub(rank).map_or(1, |i| dims[i]);
    let mut batch = Dims::new();
    for axis in 0..rank {
        batch.push(match (at(left_batch, axis), at(right_batch, axis)) {
            (1, d) | (d, 1) => d,
            (l, r) if l == r => l,
            _ => return Err(unfit(a.dims(), b.dims())),
        });
    }
    let mut dims = batch.clone();
    if !row {
        dims.push(*m);
    }
    if !column {
        dims.push(*n);
    }
    let mut out = call.vec::<T>(&dims)?;
    let (x, y) = (a.view::<T>()?, b.view::<T>()?);
    if right_batch.iter().product::<usize>() == 1 && right_batch.len() <= left_batch.len() {
        // All rows of all batches meet the same right side.
        let rows = left_batch.iter().product::<usize>() * m;
        T::product(&mut out, Matrix::new(x, rows, *k), Matrix::new(y, *k, *n))?;
        return Ok(Array::new(&dims, out));
    }
    let count = batch.iter().product::<usize>();
    let mut index = vec![0usize; rank];
    for _ in 0..count {
        let place = |own: &[usize]| {
            (0..rank).fold(0, |place, axis| match at(own, axis) {
                1 => place,
                d => place * d + index[axis],
            })
        };
        let l = Matrix::new(&x[place(left_batch) * m * k..], *m, *k);
        let r = Matrix::new(&y[place(right_batch) * k * n..], *k, *n);
        T::product(&mut out, l, r)?;
        for axis in (0..rank).rev() {
            index[axis] += 1;
            if index[axis] < batch[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    Ok(Array::new(&dims, out))
}

fn scalar() -> Fault {
    Fault::Invalid("a scalar is no factor of a matrix product".into())
}

fn unfit(left: &[usize], right: &[usize]) -> Fault {
    Fault::Invalid(format!("shapes {left:?} and {right:?} do not fit a matrix product"))
}
