//! Sequences and optionals.

use super::{Outputs, Rule, element_attribute, one, several};
use crate::facts::view::Operator;
use crate::facts::{Fact, dims, join};
use crate::ir::{AttributeValue, Dim, ElementType, Shape, Type};

pub(super) const RULES: &[(&str, Rule)] = &[
    ("ConcatFromSequence", concat),
    ("Optional", optional),
    ("OptionalGetElement", get_element),
    ("OptionalHasElement", |_| one(Some(ElementType::BOOL), Some(Shape::new()))),
    ("SequenceAt", at),
    ("SequenceConstruct", construct),
    ("SequenceEmpty", empty),
    ("SequenceErase", super::same_as_first),
    ("SequenceInsert", insert),
    ("SequenceLength", |_| one(Some(ElementType::INT64), Some(Shape::new()))),
    ("SplitToSequence", split),
];

fn of(ty: Type) -> Option<Outputs> {
    several([Fact::of(ty)])
}

fn sequence_of(ty: Type) -> Option<Outputs> {
    match ty {
        Type::Unknown => None,
        ty => of(Type::Sequence(Box::new(ty))),
    }
}

/// Type of the elements of the first input.
fn inner<'a>(op: &Operator<'a>) -> Option<&'a Type> {
    match op.ty(0) {
        Type::Sequence(ty) => Some(ty),
        _ => None,
    }
}

fn at(op: &Operator) -> Option<Outputs> {
    of(inner(op)?.clone())
}

fn construct(op: &Operator) -> Option<Outputs> {
    let joined = (0..op.node.inputs.len()).map(|i| op.ty(i).clone()).reduce(|a, b| join::types(&a, &b))?;
    sequence_of(joined)
}

fn empty(op: &Operator) -> Option<Outputs> {
    let element = element_attribute(op, "dtype", Some(ElementType::FLOAT))?;
    sequence_of(Type::Tensor { element, shape: None })
}

fn insert(op: &Operator) -> Option<Outputs> {
    sequence_of(join::types(inner(op)?, op.ty(1)))
}

fn concat(op: &Operator) -> Option<Outputs> {
    let Type::Tensor { element, shape } = inner(op)? else { return None };
    let stacked = op.int("new_axis", 0)? != 0;
    let s = || {
        let mut s = shape.clone()?;
        let axis = op.node.attribute("axis")?.int()?;
        if stacked {
            let at = dims::axis(axis, Some(s.len() + 1))?;
            s.insert(at, Dim::Unknown);
        } else {
            let at = dims::axis(axis, Some(s.len()))?;
            *s.get_mut(at)? = Dim::Unknown;
        }
        Some(s)
    };
    one(Some(*element), s())
}

fn split(op: &Operator) -> Option<Outputs> {
    let element = op.element(0)?;
    let s = || {
        let mut s = op.shape(0)?.clone();
        let axis = op.axis()?;
        let slot = s.get_mut(axis)?;
        if op.has(1) {
            let (size, whole) = (op.number(1).filter(|_| op.rank(1) == Some(0)), slot.fixed());
            // Every part has the size asked for when it divides the whole.
            let even =
                size.zip(whole).and_then(|(n, w)| u64::try_from(n).ok().filter(|n| *n > 0 && w % n == 0));
            *slot = even.map_or(Dim::Unknown, Dim::Fixed);
        } else if op.int("keepdims", 1)? != 0 {
            *slot = Dim::Fixed(1);
        } else {
            s.remove(axis);
        }
        Some(s)
    };
    sequence_of(Type::Tensor { element, shape: s() })
}

fn optional(op: &Operator) -> Option<Outputs> {
    if op.has(0) {
        return match op.ty(0) {
            Type::Unknown => None,
            ty => of(Type::Optional(Box::new(ty.clone()))),
        };
    }
    match op.node.attribute("type") {
        Some(AttributeValue::Type(declaration)) => of(Type::Optional(Box::new(declaration.ty.clone()))),
        _ => None,
    }
}

fn get_element(op: &Operator) -> Option<Outputs> {
    match op.ty(0) {
        Type::Optional(ty) => of((**ty).clone()),
        // From operator set 18 on, what is not optional is passed through.
        ty => of(ty.clone()),
    }
}
