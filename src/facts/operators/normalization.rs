//! Normalizations.

use super::{Outputs, Rule, element_attribute, same_as_first, several, tensor};
use crate::facts::Fact;
use crate::facts::view::Operator;
use crate::ir::{Dim, ElementType, Shape};

pub(super) const RULES: &[(&str, Rule)] = &[
    ("BatchNormalization", batch),
    ("GroupNormalization", same_as_first),
    ("InstanceNormalization", same_as_first),
    ("LRN", same_as_first),
    ("LayerNormalization", layer),
    ("LpNormalization", same_as_first),
    ("MeanVarianceNormalization", same_as_first),
    ("RMSNormalization", rms),
];

fn batch(op: &Operator) -> Option<Outputs> {
    // Mean and variance after the first output, and their saved forms (before operator set 14).
    let statistics = |input: usize| {
        let channels = op.shape(input).cloned().or_else(|| Some([op.dim(0, 1)].into_iter().collect()));
        tensor(op.element(input).or(op.element(0)), channels)
    };
    several([Fact::of(op.ty(0).clone()), statistics(3), statistics(4), statistics(3), statistics(4)])
}

fn layer(op: &Operator) -> Option<Outputs> {
    let stash = element_attribute(op, "stash_type", Some(ElementType::FLOAT));
    let statistics: Option<Shape> = op.shape(0).zip(op.axis()).map(|(s, axis)| {
        s.iter().enumerate().map(|(i, d)| if i < axis { d.clone() } else { Dim::Fixed(1) }).collect()
    });
    several([Fact::of(op.ty(0).clone()), tensor(stash, statistics.clone()), tensor(stash, statistics)])
}

fn rms(op: &Operator) -> Option<Outputs> {
    // The result has the scale's element type.
    several([tensor(op.element(1), op.shape(0).cloned())])
}
