//! Convolutions.

use super::windows::{Auto, Windows};
use super::{Outputs, Rule, one};
use crate::facts::dims;
use crate::facts::view::Operator;
use crate::ir::{Dim, ElementType, Shape};

pub(super) const RULES: &[(&str, Rule)] = &[
    ("Col2Im", col2im),
    ("Conv", |op| one(op.element(0), convolved(op, 1))),
    ("ConvInteger", |op| one(Some(ElementType::INT32), convolved(op, 1))),
    ("ConvTranspose", |op| one(op.element(0), transposed(op))),
    ("DeformConv", |op| one(op.element(0), convolved(op, 1))),
    // x, x scale, x zero point, w, w scale, w zero point, y scale, y zero point, bias.
    ("QLinearConv", |op| one(op.element(7), convolved(op, 3))),
];

/// Extent of the kernel from the weights' shape.
fn kernel(op: &Operator, weights: usize) -> Option<Vec<i64>> {
    op.shape(weights)?.get(2..)?.iter().map(|d| i64::try_from(d.fixed()?).ok()).collect()
}

fn convolved(op: &Operator, weights: usize) -> Option<Shape> {
    let input = op.shape(0)?;
    let axes = input.len().checked_sub(2)?;
    let head = [op.dim(0, 0), op.dim(weights, 0)];
    let spatial: Vec<Dim> = match Windows::of(op, kernel(op, weights)) {
        Some(w) if w.kernel.len() == axes => {
            input.iter().skip(2).enumerate().map(|(i, d)| w.count(i, d)).collect()
        }
        _ => vec![Dim::Unknown; axes],
    };
    Some(head.into_iter().chain(spatial).collect())
}

fn transposed(op: &Operator) -> Option<Shape> {
    let input = op.shape(0)?;
    let axes = input.len().checked_sub(2)?;
    let groups = u64::try_from(op.int("group", 1)?).ok()?;
    let head = [op.dim(0, 0), dims::times(&op.dim(1, 1), groups)];
    let spatial = (0..axes).map(|i| transposed_dim(op, i, &op.dim(0, i + 2)).unwrap_or(Dim::Unknown));
    Some(head.into_iter().chain(spatial).collect())
}

fn transposed_dim(op: &Operator, axis: usize, input: &Dim) -> Option<Dim> {
    if let Some(given) = op.list("output_shape")?
        && !given.is_empty()
    {
        // Some exporters give all dimensions, batch and channels first.
        let axes = op.rank(0)?.checked_sub(2)?;
        let spatial = given.get(given.len().checked_sub(axes)?..)?;
        return Some(Dim::Fixed(u64::try_from(*spatial.get(axis)?).ok().filter(|n| *n > 0)?));
    }
    let w = Windows::of(op, kernel(op, 1))?;
    let extra = op.list("output_padding")?.and_then(|p| p.get(axis).copied()).unwrap_or(0);
    let (stride, span) = (*w.strides.get(axis)?, w.span(axis)?);
    if w.auto == Auto::Same {
        // Runtimes differ when the kernel is narrower than the stride or more is asked for.
        return (extra == 0 && span >= stride).then(|| dims::times(input, stride as u64));
    }
    let pads = w.begin.get(axis)?.checked_add(*w.end.get(axis)?)?;
    let rest = span.checked_sub(stride)?.checked_add(extra)?.checked_sub(pads)?;
    let grown = dims::times(input, stride as u64);
    Some(dims::plus(&grown, rest))
}

fn col2im(op: &Operator) -> Option<Outputs> {
    let shape = || {
        let block: u64 =
            op.numbers(2)?.iter().try_fold(1u64, |p, n| p.checked_mul(u64::try_from(*n).ok()?))?;
        let image = op.ints(1)?.into_iter().map(dims::of);
        let channels = dims::exact_div(&op.dim(0, 1), block);
        Some([op.dim(0, 0), channels].into_iter().chain(image).collect())
    };
    one(op.element(0), shape())
}
