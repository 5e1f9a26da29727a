//! Operators that pick or place elements by index, or by what they contain.

use super::{Outputs, Rule, one, same_as_first, several, shape, tensor};
use crate::facts::dims;
use crate::facts::view::Operator;
use crate::ir::{Dim, ElementType, Expr, Shape};

pub(super) const RULES: &[(&str, Rule)] = &[
    ("Compress", compress),
    ("Gather", gather),
    ("GatherElements", |op| one(op.element(0), op.shape(1).cloned())),
    ("GatherND", gather_nd),
    ("NonMaxSuppression", |_| one(Some(ElementType::INT64), shape([Dim::Unknown, Dim::Fixed(3)]))),
    ("NonZero", non_zero),
    ("OneHot", one_hot),
    ("Scatter", same_as_first),
    ("ScatterElements", same_as_first),
    ("ScatterND", same_as_first),
    ("TensorScatter", same_as_first),
    ("TopK", top_k),
    ("Unique", unique),
];

fn gather(op: &Operator) -> Option<Outputs> {
    let s = || {
        let (data, indices) = (op.shape(0)?, op.shape(1)?);
        let axis = op.axis()?;
        let (before, after) = (data.get(..axis)?, data.get(axis + 1..)?);
        shape(before.iter().chain(indices).chain(after).cloned())
    };
    one(op.element(0), s())
}

fn gather_nd(op: &Operator) -> Option<Outputs> {
    let s = || {
        let (data, indices) = (op.shape(0)?, op.shape(1)?);
        let batch = usize::try_from(op.int("batch_dims", 0)?).ok()?;
        let (depth, lead) = indices.split_last()?;
        let taken = batch.checked_add(usize::try_from(depth.fixed()?).ok()?)?;
        shape(lead.iter().chain(data.get(taken..)?).cloned())
    };
    one(op.element(0), s())
}

fn compress(op: &Operator) -> Option<Outputs> {
    let s = || {
        if op.node.attribute("axis").is_none() {
            return shape([Dim::Unknown]);
        }
        let mut s = op.shape(0)?.clone();
        *s.get_mut(op.axis()?)? = Dim::Unknown;
        Some(s)
    };
    one(op.element(0), s())
}

fn non_zero(op: &Operator) -> Option<Outputs> {
    // For a scalar, runtimes do not agree on the first dimension.
    let rank = op.rank(0).filter(|r| *r > 0).map_or(Dim::Unknown, |r| Dim::Fixed(r as u64));
    let count = || {
        let zero = Expr::constant(0);
        let elements = op.elements(0)?;
        let is_set = |e: &Option<Expr>| dims::equal(e.as_ref()?, &zero).map(|z| u64::from(!z));
        elements.iter().map(is_set).sum::<Option<u64>>()
    };
    one(Some(ElementType::INT64), shape([rank, count().map_or(Dim::Unknown, Dim::Fixed)]))
}

fn one_hot(op: &Operator) -> Option<Outputs> {
    let s = || {
        let mut s: Shape = op.shape(0)?.clone();
        let depth = op.elements(1).and_then(|d| d.first().cloned().flatten());
        let axis = op.axis()?;
        if axis > s.len() {
            return None;
        }
        s.insert(axis, dims::of(depth));
        Some(s)
    };
    one(op.element(2), s())
}

fn top_k(op: &Operator) -> Option<Outputs> {
    let s = || {
        let mut s = op.shape(0)?.clone();
        let slot = s.get_mut(op.axis()?)?;
        *slot = if op.opset < 10 {
            u64::try_from(op.int("k", -1)?).map_or(Dim::Unknown, Dim::Fixed)
        } else {
            dims::of(op.ints(1).and_then(|k| k.first().cloned().flatten()))
        };
        Some(s)
    };
    several([tensor(op.element(0), s()), tensor(Some(ElementType::INT64), s())])
}

fn unique(op: &Operator) -> Option<Outputs> {
    let s = || {
        if op.node.attribute("axis").is_none() {
            return shape([Dim::Unknown]);
        }
        let mut s = op.shape(0)?.clone();
        *s.get_mut(op.axis()?)? = Dim::Unknown;
        Some(s)
    };
    let list = || tensor(Some(ElementType::INT64), shape([Dim::Unknown]));
    several([tensor(op.element(0), s()), list(), list(), list()])
}
