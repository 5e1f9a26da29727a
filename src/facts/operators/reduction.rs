//! Reductions over axes.

use super::{Outputs, Rule, one};
use crate::facts::view::Operator;
use crate::ir::{Dim, ElementType, Shape};

pub(super) const RULES: &[(&str, Rule)] = &[
    ("ArgMax", arg),
    ("ArgMin", arg),
    ("ReduceL1", reduce),
    ("ReduceL2", reduce),
    ("ReduceLogSum", reduce),
    ("ReduceLogSumExp", reduce),
    ("ReduceMax", reduce),
    ("ReduceMean", reduce),
    ("ReduceMin", reduce),
    ("ReduceProd", reduce),
    ("ReduceSum", reduce),
    ("ReduceSumSquare", reduce),
];

fn reduced(op: &Operator) -> Option<Shape> {
    let input = op.shape(0)?;
    let keep = op.int("keepdims", 1)? != 0;
    let Some(axes) = op.axes() else {
        // Which axes go is not known; how many stay is, when they are kept as ones.
        return keep.then(|| input.iter().map(one_or_unknown).collect());
    };
    let reduced = |i: usize| axes.contains(&(i as i64));
    let kept = input.iter().enumerate().filter(|(i, _)| keep || !reduced(*i));
    Some(kept.map(|(i, d)| if reduced(i) { Dim::Fixed(1) } else { d.clone() }).collect())
}

fn one_or_unknown(d: &Dim) -> Dim {
    if *d == Dim::Fixed(1) { Dim::Fixed(1) } else { Dim::Unknown }
}

fn reduce(op: &Operator) -> Option<Outputs> {
    one(op.element(0), reduced(op))
}

fn arg(op: &Operator) -> Option<Outputs> {
    one(Some(ElementType::INT64), reduced(op))
}
