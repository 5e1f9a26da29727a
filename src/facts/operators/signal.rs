//! Fourier transforms, windows, and losses.

use super::{Outputs, Rule, element_attribute, one, several, shape, tensor};
use crate::facts::dims;
use crate::facts::view::Operator;
use crate::ir::{Dim, ElementType, Expr, Shape};

pub(super) const RULES: &[(&str, Rule)] = &[
    ("BlackmanWindow", window),
    ("DFT", |op| one(op.element(0), dft(op))),
    ("HammingWindow", window),
    ("HannWindow", window),
    ("MelWeightMatrix", mel_weights),
    ("NegativeLogLikelihoodLoss", |op| one(op.element(0), loss(op))),
    ("STFT", |op| one(op.element(0), stft(op))),
    ("SoftmaxCrossEntropyLoss", cross_entropy),
];

fn first(op: &Operator, input: usize) -> Option<Expr> {
    op.ints(input)?.first()?.clone()
}

fn window(op: &Operator) -> Option<Outputs> {
    let element = element_attribute(op, "output_datatype", Some(ElementType::FLOAT));
    one(element, shape([dims::of(first(op, 0))]))
}

/// Frequencies of a real signal of a length.
fn half(length: &Expr) -> Option<Expr> {
    length.floor_div(&Expr::constant(2))?.add(&Expr::constant(1))
}

fn mel_weights(op: &Operator) -> Option<Outputs> {
    let element = element_attribute(op, "output_datatype", Some(ElementType::FLOAT));
    let bins = first(op, 1).and_then(|length| half(&length));
    one(element, shape([dims::of(bins), dims::of(first(op, 0))]))
}

fn dft(op: &Operator) -> Option<Shape> {
    let input = op.shape(0)?;
    let onesided = op.int("onesided", 0)? != 0;
    let inverse = op.int("inverse", 0)? != 0;
    let mut result = input.clone();
    let axis = match (op.opset, op.has(2)) {
        (..20, _) => Some(op.int("axis", 1)?),
        (_, true) => op.number(2),
        (_, false) => Some(-2),
    };
    let (Some(axis), false) = (axis.and_then(|a| dims::axis(a, Some(input.len()))), onesided && inverse)
    else {
        return Some(vec![Dim::Unknown; input.len()].into());
    };
    let length = if op.has(1) { first(op, 1) } else { result.get(axis)?.expr() };
    *result.get_mut(axis)? = dims::of(if onesided { length.and_then(|l| half(&l)) } else { length });
    *result.last_mut()? = Dim::Fixed(2);
    Some(result)
}

/// Signal (batch, length, 1 or 2), frame step, window, frame length.
fn stft(op: &Operator) -> Option<Shape> {
    let onesided = op.int("onesided", 1)? != 0;
    let frame = if op.has(3) { first(op, 3) } else { op.dim(2, 0).expr() };
    let frames = || {
        let rest = op.dim(0, 1).expr()?.sub(frame.as_ref()?)?;
        rest.floor_div(&first(op, 1)?)?.add(&Expr::constant(1))
    };
    let bins = frame.as_ref().and_then(|f| if onesided { half(f) } else { Some(f.clone()) });
    shape([op.dim(0, 0), dims::of(frames()), dims::of(bins), Dim::Fixed(2)])
}

fn loss(op: &Operator) -> Option<Shape> {
    match op.text("reduction", "mean")? {
        "none" => op.shape(1).cloned(),
        "mean" | "sum" => Some(Shape::new()),
        _ => None,
    }
}

fn cross_entropy(op: &Operator) -> Option<Outputs> {
    several([tensor(op.element(0), loss(op)), tensor(op.element(0), op.shape(0).cloned())])
}
