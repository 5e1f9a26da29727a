//! Random numbers.

use super::{Outputs, Rule, element_attribute, one};
use crate::facts::view::Operator;
use crate::ir::{Dim, ElementType};

pub(super) const RULES: &[(&str, Rule)] = &[
    ("Bernoulli", like),
    ("Multinomial", multinomial),
    ("RandomNormal", of_shape),
    ("RandomNormalLike", like),
    ("RandomUniform", of_shape),
    ("RandomUniformLike", like),
];

fn of_shape(op: &Operator) -> Option<Outputs> {
    let shape = op
        .list("shape")?
        .map(|s| s.iter().map(|n| u64::try_from(*n).map_or(Dim::Unknown, Dim::Fixed)).collect());
    one(element_attribute(op, "dtype", Some(ElementType::FLOAT)), shape)
}

fn like(op: &Operator) -> Option<Outputs> {
    one(element_attribute(op, "dtype", op.element(0)), op.shape(0).cloned())
}

fn multinomial(op: &Operator) -> Option<Outputs> {
    let samples = u64::try_from(op.int("sample_size", 1)?).map_or(Dim::Unknown, Dim::Fixed);
    let element = element_attribute(op, "dtype", Some(ElementType::INT32));
    one(element, Some([op.dim(0, 0), samples].into_iter().collect()))
}
