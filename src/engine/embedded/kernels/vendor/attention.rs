//! Scaled dot-product attention over heads that are laid out one after the other.

use super::activations::softmax;
use crate::engine::embedded::call::Call;
use crate::engine::embedded::kernels::real::Real;
use crate::engine::embedded::products::Matrix;
use crate::engine::fault::Fault;

/// Sizes of an attention.
#[derive(Clone, Copy)]
pub struct Sizes {
    pub batch: usize,
    /// Heads of the queries.
    pub heads: usize,
    /// Heads of keys and values; each serves `heads / groups` heads of the queries.
    pub groups: usize,
    pub queries: usize,
    pub keys: usize,
    /// Elements of a head of a query and of a key.
    pub width: usize,
    /// Elements of a head of a value.
    pub value_width: usize,
}

/// What keeps a position.
pub struct Row<'a, T> {
    pub batch: usize,
    pub head: usize,
    pub query: usize,
    /// A score for each key.
    pub scores: &'a mut [T],
}

/// The attention of queries (batch, heads, queries, width) to keys (batch, groups, keys, width) with values (batch, groups,
/// keys, value width), as (batch, queries, heads · value width). `adjust` changes the scaled scores of a row before their
/// softmax.
pub fn attend<T: Real>(
    call: &mut Call,
    sizes: Sizes,
    (queries, keys, values): (&[T], &[T], &[T]),
    scale: T,
    adjust: impl Fn(Row<T>),
) -> Result<Vec<T>, Fault> {
    let Sizes { batch, heads, groups, queries: rows, keys: columns, width, value_width } = sizes;
    let mut out = call.zeros::<T>(&[batch, rows, heads, value_width])?;
    let space = call.elements(&[rows, columns + value_width], size_of::<T>())? * size_of::<T>();
    call.working_space = call.working_space.max(space as u64);
    let (mut scores, mut mixed) = (Vec::new(), Vec::new());
    let stride = heads * value_width;
    for (b, h) in (0..batch).flat_map(|b| (0..heads).map(move |h| (b, h))) {
        let group = b * groups + h / (heads / groups).max(1);
        let q = Matrix::new(&queries[(b * heads + h) * rows * width..], rows, width);
        let k = Matrix::new(&keys[group * columns * width..], columns, width);
        let v = Matrix::new(&values[group * columns * value_width..], columns, value_width);
        scores.clear();
        T::product(&mut scores, q, k.transposed())?;
        for (i, row) in scores.chunks_mut(columns.max(1)).enumerate() {
            row.iter_mut().for_each(|s| *s *= scale);
            adjust(Row { batch: b, head: h, query: i, scores: row });
            softmax(row);
        }
        mixed.clear();
        T::product(&mut mixed, Matrix::new(&scores, rows, columns), v)?;
        for (i, row) in mixed.chunks(value_width.max(1)).enumerate() {
            out[(b * rows + i) * stride + h * value_width..][..value_width].copy_from_slice(row);
        }
    }
    Ok(out)
}

/// From (batch, length, heads · width), of which a row is `stride` long and the heads begin at `offset`, to
/// (batch, heads, length, width), plus a bias.
pub fn split_heads<T: Real>(
    rows: &[T],
    (batch, length): (usize, usize),
    (heads, width): (usize, usize),
    (stride, offset): (usize, usize),
    bias: Option<&[T]>,
) -> Vec<T> {
    let mut out = Vec::with_capacity(batch * length * heads * width);
    for b in 0..batch {
        for h in 0..heads {
            for i in 0..length {
                let row = &rows[(b * length + i) * stride + offset + h * width..][..width];
                match bias {
                    Some(bias) => {
                        out.extend(row.iter().zip(&bias[h * width..][..width]).map(|(v, b)| *v + *b));
                    }
                    None => out.extend_from_slice(row),
                }
            }
        }
    }
    out
}

/// States of before with new ones behind them, head by head: (heads, length, width) each.
pub fn joined<T: Real>(
    past: &[T],
    new: &[T],
    heads: usize,
    (before, after): (usize, usize),
    width: usize,
) -> Vec<T> {
    let mut out = Vec::with_capacity(heads * (before + after) * width);
    for h in 0..heads {
        out.extend_from_slice(&past[h * before * width..][..before * width]);
        out.extend_from_slice(&new[h * after * width..][..after * width]);
    }
    out
}
