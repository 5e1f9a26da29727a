//! The standard operators: what each gives, by kin; one line of meaning and default attributes for each.

mod catalog;
mod convolution;
mod elementwise;
mod gather_scatter;
mod layout;
mod matrix;
mod ml;
mod normalization;
mod pooling;
mod quantize;
mod random;
mod recurrent;
mod reduction;
mod resize;
mod sequence;
mod signal;
mod text;
mod windows;

pub use catalog::{DefaultAttribute, attributes, default, names, since, summary};

pub(in crate::facts) use elementwise::cast_target;
pub(in crate::facts) use layout::shape_bounds;

use crate::facts::view::Operator;
use crate::facts::{Fact, dims};
use crate::ir::{Dim, ElementType, Shape, Type};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::LazyLock;

/// Facts of a node's outputs by position; what is missing is unknown.
pub(crate) type Outputs = SmallVec<[Fact; 2]>;

/// What an operator gives, from what is known of its inputs and attributes.
pub(crate) type Rule = fn(&Operator) -> Option<Outputs>;

/// Rules of the default domain. If, Loop, Scan and SequenceMap are not here: their bodies are entered elsewhere.
static RULES: LazyLock<FxHashMap<&'static str, Rule>> = LazyLock::new(|| {
    [
        convolution::RULES,
        elementwise::RULES,
        gather_scatter::RULES,
        layout::RULES,
        matrix::RULES,
        normalization::RULES,
        pooling::RULES,
        quantize::RULES,
        random::RULES,
        recurrent::RULES,
        reduction::RULES,
        resize::RULES,
        sequence::RULES,
        signal::RULES,
        text::RULES,
    ]
    .into_iter()
    .flatten()
    .copied()
    .collect()
});

static ML_RULES: LazyLock<FxHashMap<&'static str, Rule>> =
    LazyLock::new(|| ml::RULES.iter().copied().collect());

/// The rule of an operator of the default domain.
pub(crate) fn rule(op_type: &str) -> Option<Rule> {
    RULES.get(op_type).copied()
}

/// The rule of an operator of `ai.onnx.ml`.
pub(crate) fn ml_rule(op_type: &str) -> Option<Rule> {
    ML_RULES.get(op_type).copied()
}

/// A dense tensor; nothing is known when the element type is not.
pub(crate) fn tensor(element: Option<ElementType>, shape: Option<Shape>) -> Fact {
    Fact::of(element.map_or(Type::Unknown, |element| Type::Tensor { element, shape }))
}

/// The outputs of an operator with one.
pub(crate) fn one(element: Option<ElementType>, shape: Option<Shape>) -> Option<Outputs> {
    Some(SmallVec::from_iter([tensor(element, shape)]))
}

/// The outputs of an operator with several.
pub(crate) fn several(facts: impl IntoIterator<Item = Fact>) -> Option<Outputs> {
    Some(facts.into_iter().collect())
}

/// The first output is as the first input.
pub(crate) fn same_as_first(op: &Operator) -> Option<Outputs> {
    several([Fact::of(op.ty(0).clone())])
}

/// A shape of dimensions.
pub(crate) fn shape(dims: impl IntoIterator<Item = Dim>) -> Option<Shape> {
    Some(dims.into_iter().collect())
}

/// What Loop and Scan stack along a new axis.
pub(crate) fn stacked(ty: &Type, axis: i64, length: Dim) -> Fact {
    let Type::Tensor { element, shape } = ty else { return Fact::default() };
    let with_axis = || {
        let mut s = shape.clone()?;
        let at = dims::axis(axis, Some(s.len() + 1))?;
        s.insert(at, length);
        Some(s)
    };
    tensor(Some(*element), with_axis())
}

/// The element type that an attribute names by number.
pub(crate) fn element_attribute(
    op: &Operator,
    name: &str,
    default: Option<ElementType>,
) -> Option<ElementType> {
    match op.node.attribute(name) {
        None => default,
        Some(v) => i32::try_from(v.int()?).ok().filter(|code| *code > 0).map(ElementType),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_belongs_to_a_standard_operator() {
        for name in RULES.keys() {
            assert!(summary(name).is_some(), "{name}");
        }
    }

    #[test]
    fn every_standard_operator_has_a_rule() {
        let entered = ["If", "Loop", "Scan", "SequenceMap"];
        for name in catalog::names() {
            assert!(rule(name).is_some() || ml_rule(name).is_some() || entered.contains(&name), "{name}");
        }
    }
}
