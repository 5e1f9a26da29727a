//! Two things known of one value: what holds in either case, what both give together, and where they contradict.

use super::{Elements, Fact};
use crate::ir::{Dim, ElementType, Shape, Type};

/// What holds whichever of two types a value has.
pub fn types(a: &Type, b: &Type) -> Type {
    match (a, b) {
        (Type::Tensor { element: x, shape: s }, Type::Tensor { element: y, shape: t }) if x == y => {
            Type::Tensor { element: *x, shape: s.as_ref().zip(t.as_ref()).and_then(|(s, t)| shapes(s, t)) }
        }
        (Type::Sequence(a), Type::Sequence(b)) => wrapped(types(a, b), Type::Sequence),
        (Type::Optional(a), Type::Optional(b)) => wrapped(types(a, b), Type::Optional),
        _ if a == b => a.clone(),
        _ => Type::Unknown,
    }
}

fn wrapped(inner: Type, wrap: fn(Box<Type>) -> Type) -> Type {
    if inner == Type::Unknown { Type::Unknown } else { wrap(Box::new(inner)) }
}

fn shapes(a: &Shape, b: &Shape) -> Option<Shape> {
    let either = |(a, b): (&Dim, &Dim)| if a.surely_equals(b) { a.clone() } else { Dim::Unknown };
    (a.len() == b.len()).then(|| a.iter().zip(b).map(either).collect())
}

/// What holds whichever of two facts is true.
pub fn facts(a: &Fact, b: &Fact) -> Fact {
    let elements = a.elements.as_ref().zip(b.elements.as_ref()).and_then(|(a, b)| elements(a, b));
    Fact { ty: types(&a.ty, &b.ty), elements }
}

fn elements(a: &Elements, b: &Elements) -> Option<Elements> {
    (a.len() == b.len())
        .then(|| a.iter().zip(b.iter()).map(|(a, b)| if a == b { a.clone() } else { None }).collect())
}

/// The first type, with what it leaves open taken from a second that is said of the same value. Dimensions of the
/// second that are names are taken only when `names` allows them.
pub fn filled(known: Type, other: &Type, names: &dyn Fn(&Dim) -> bool) -> Type {
    let usable = |d: &Dim| match d {
        Dim::Symbolic(_) if !names(d) => Dim::Unknown,
        d => d.clone(),
    };
    match (known, other) {
        (Type::Unknown, Type::Tensor { element, .. } | Type::Sparse { element, .. })
            if *element == ElementType::UNDEFINED =>
        {
            Type::Unknown
        }
        (Type::Unknown, Type::Tensor { element, shape }) => {
            Type::Tensor { element: *element, shape: shape.as_ref().map(|s| s.iter().map(usable).collect()) }
        }
        (Type::Unknown, Type::Sequence(ty)) => wrapped(filled(Type::Unknown, ty, names), Type::Sequence),
        (Type::Unknown, Type::Optional(ty)) => wrapped(filled(Type::Unknown, ty, names), Type::Optional),
        (Type::Unknown, other) => other.clone(),
        (Type::Tensor { element, shape: None }, Type::Tensor { element: e, shape: Some(s) })
            if element == *e =>
        {
            Type::Tensor { element, shape: Some(s.iter().map(usable).collect()) }
        }
        (Type::Tensor { element, shape: Some(mut s) }, Type::Tensor { element: e, shape: Some(t) })
            if element == *e && s.len() == t.len() =>
        {
            for (d, o) in s.iter_mut().zip(t) {
                if *d == Dim::Unknown {
                    *d = usable(o);
                }
            }
            Type::Tensor { element, shape: Some(s) }
        }
        (Type::Sequence(a), Type::Sequence(b)) => Type::Sequence(Box::new(filled(*a, b, names))),
        (Type::Optional(a), Type::Optional(b)) => Type::Optional(Box::new(filled(*a, b, names))),
        (known, _) => known,
    }
}

/// True when not both types can be right.
pub fn contradict(a: &Type, b: &Type) -> bool {
    match (a, b) {
        (Type::Unknown, _) | (_, Type::Unknown) => false,
        (Type::Tensor { element: ElementType::UNDEFINED, .. }, _)
        | (_, Type::Tensor { element: ElementType::UNDEFINED, .. }) => false,
        (Type::Tensor { element: x, shape: s }, Type::Tensor { element: y, shape: t }) => {
            let differ = |a: &Dim, b: &Dim| matches!((a, b), (Dim::Fixed(a), Dim::Fixed(b)) if a != b);
            x != y
                || s.as_ref()
                    .zip(t.as_ref())
                    .is_some_and(|(s, t)| s.len() != t.len() || s.iter().zip(t).any(|(a, b)| differ(a, b)))
        }
        (Type::Sequence(a), Type::Sequence(b)) | (Type::Optional(a), Type::Optional(b)) => contradict(a, b),
        // An optional input may be declared by the type of what it holds.
        (Type::Optional(_), _) | (_, Type::Optional(_)) => false,
        (Type::Sparse { .. } | Type::Opaque { .. }, _) | (_, Type::Sparse { .. } | Type::Opaque { .. }) => {
            false
        }
        _ => std::mem::discriminant(a) != std::mem::discriminant(b),
    }
}

/// How much is known of one dimension.
fn weight(d: &Dim, placeholder: &dyn Fn(&Dim) -> bool) -> u8 {
    match d {
        Dim::Fixed(_) => 3,
        Dim::Unknown => 0,
        d if placeholder(d) => 1,
        Dim::Symbolic(_) => 2,
    }
}

/// Both facts are true of a value: the old one, improved by what the new one knows better, or `None` when it knows
/// nothing better. `placeholder` tells names that were made up for dimensions that are not known.
pub fn improved(old: &Fact, new: &Fact, placeholder: &dyn Fn(&Dim) -> bool) -> Option<Fact> {
    let mut better = false;
    let ty = match (&old.ty, &new.ty) {
        (Type::Unknown, t) => {
            better = *t != Type::Unknown;
            t.clone()
        }
        (Type::Tensor { shape: None, .. }, Type::Tensor { shape: Some(_), .. }) => {
            better = true;
            new.ty.clone()
        }
        (Type::Tensor { element, shape: Some(s) }, Type::Tensor { shape: Some(t), .. })
            if s.len() == t.len() =>
        {
            let best = s.iter().zip(t).map(|(old, new)| {
                let improves = weight(new, placeholder) > weight(old, placeholder);
                better |= improves;
                if improves { new.clone() } else { old.clone() }
            });
            Type::Tensor { element: *element, shape: Some(best.collect()) }
        }
        (old, _) => old.clone(),
    };
    let elements = match (&old.elements, &new.elements) {
        (None, Some(new)) => {
            better = true;
            Some(new.clone())
        }
        (Some(old), Some(new)) if old.len() == new.len() => {
            let number = |e: &Option<crate::ir::Expr>| {
                e.as_ref().map_or(0, |e| 1 + u8::from(e.as_constant().is_some()))
            };
            if old.iter().zip(new.iter()).any(|(o, n)| number(n) > number(o)) {
                better = true;
                let best = |(o, n): (&Option<_>, &Option<_>)| {
                    if number(n) > number(o) { n.clone() } else { o.clone() }
                };
                Some(old.iter().zip(new.iter()).map(best).collect())
            } else {
                Some(old.clone())
            }
        }
        (old, _) => old.clone(),
    };
    better.then_some(Fact { ty, elements })
}
