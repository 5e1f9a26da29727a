//! Operators that move, copy, cut or count elements, and those that make tensors from shapes.

use super::{Outputs, Rule, element_attribute, one, same_as_first, several, shape, tensor};
use crate::facts::view::{Operator, of_node};
use crate::facts::{Fact, dims};
use crate::ir::{Dim, ElementType, Expr, Shape};

pub(super) const RULES: &[(&str, Rule)] = &[
    ("CenterCropPad", center_crop_pad),
    ("Concat", |op| one((0..op.node.inputs.len()).find_map(|i| op.element(i)), concat(op))),
    ("Constant", constant),
    ("ConstantOfShape", constant_of_shape),
    ("DepthToSpace", depth_to_space),
    ("Expand", |op| one(op.element(0), expand(op))),
    ("EyeLike", |op| one(element_attribute(op, "dtype", op.element(0)), op.shape(0).cloned())),
    ("Flatten", |op| one(op.element(0), flatten(op))),
    ("Pad", |op| one(op.element(0), pad(op))),
    ("Range", range),
    ("Reshape", |op| one(op.element(0), reshape(op))),
    ("ReverseSequence", same_as_first),
    ("Shape", shape_of),
    ("Size", |_| one(Some(ElementType::INT64), Some(Shape::new()))),
    ("Slice", |op| one(op.element(0), slice(op))),
    ("SpaceToDepth", space_to_depth),
    ("Split", split),
    ("Squeeze", |op| one(op.element(0), squeeze(op))),
    ("Tile", |op| one(op.element(0), tile(op))),
    ("Transpose", |op| one(op.element(0), transpose(op))),
    ("Trilu", same_as_first),
    ("Unsqueeze", |op| one(op.element(0), unsqueeze(op))),
];

fn fixed(n: i64) -> Dim {
    u64::try_from(n).map_or(Dim::Unknown, Dim::Fixed)
}

fn unknown(rank: usize) -> Shape {
    vec![Dim::Unknown; rank].into()
}

fn constant(op: &Operator) -> Option<Outputs> {
    several([Fact::of(of_node(op.node)?.ty())])
}

fn concat(op: &Operator) -> Option<Shape> {
    let axis = op.axis()?;
    let rank = (0..op.node.inputs.len()).find_map(|i| op.rank(i))?;
    let mut result = unknown(rank);
    let mut sum = Dim::Fixed(0);
    for i in 0..op.node.inputs.len() {
        let Some(s) = op.shape(i).filter(|s| s.len() == rank) else {
            sum = Dim::Unknown;
            continue;
        };
        for (at, (r, d)) in result.iter_mut().zip(s).enumerate() {
            if at != axis {
                *r = dims::same(r, d);
            }
        }
        sum = dims::add(&sum, s.get(axis)?);
    }
    *result.get_mut(axis)? = sum;
    Some(result)
}

fn constant_of_shape(op: &Operator) -> Option<Outputs> {
    let element = match op.node.attribute("value") {
        None => Some(ElementType::FLOAT),
        Some(crate::ir::AttributeValue::Tensor(t)) => Some(t.element),
        Some(_) => None,
    };
    one(element, shape_from(op, 0))
}

/// A shape that an input spells out; of unknown dimensions when only its length is known.
fn shape_from(op: &Operator, input: usize) -> Option<Shape> {
    if let Some(elements) = op.ints(input) {
        return shape(elements.into_iter().map(dims::of));
    }
    let rank = op.shape(input).filter(|s| s.len() == 1)?.first()?.fixed()?;
    (rank <= 64).then(|| unknown(rank as usize))
}

fn expand(op: &Operator) -> Option<Shape> {
    let target = shape_from(op, 1)?;
    Some(dims::broadcast_shapes([op.shape(0)?.as_slice(), &target]))
}

fn reshape(op: &Operator) -> Option<Shape> {
    op.reshape_target()
}

fn flatten(op: &Operator) -> Option<Shape> {
    let Some(s) = op.shape(0) else { return Some(unknown(2)) };
    let Some((rows, columns)) = op.axis().and_then(|axis| s.split_at_checked(axis)) else {
        return Some(unknown(2));
    };
    shape([dims::product(rows), dims::product(columns)])
}

fn pad(op: &Operator) -> Option<Shape> {
    let Some(form) = op.pad() else { return Some(unknown(op.rank(0)?)) };
    let input = op.shape(0).cloned().unwrap_or_else(|| unknown(form.begin.len()));
    let grow = |((d, b), e): ((&Dim, &Option<Expr>), &Option<Expr>)| match (b, e) {
        (Some(b), Some(e)) => dims::of(d.expr().and_then(|d| d.add(b)?.add(e))),
        _ => Dim::Unknown,
    };
    shape(input.iter().zip(&form.begin).zip(&form.end).map(grow))
}

fn range(op: &Operator) -> Option<Outputs> {
    let element = op.element(0).or(op.element(1));
    let scalar = |i| match &*op.elements(i)? {
        [e] => e.clone(),
        _ => None,
    };
    let count = || {
        let (start, limit, delta) = (scalar(0)?, scalar(1)?, scalar(2)?.as_constant()?);
        let (from, to, step) =
            if delta < 0 { (limit, start, delta.checked_neg()?) } else { (start, limit, delta) };
        let length = dims::not_negative(&to.sub(&from)?);
        if step == 0 {
            return None;
        }
        length.add(&Expr::constant(step - 1))?.floor_div(&Expr::constant(step))
    };
    one(element, shape([dims::of(count().or_else(|| float_count(op)))]))
}

/// Length of a range of numbers that are not whole, as runtimes count it: the difference in the type of the elements,
/// the quotient in float64.
fn float_count(op: &Operator) -> Option<Expr> {
    let scalar = |i| op.tensor(i)?.as_f32()?.first().copied();
    let (start, limit, delta) = (scalar(0)?, scalar(1)?, scalar(2)?);
    let count = (f64::from(limit - start) / f64::from(delta)).ceil();
    // Beyond 2^53 (and for NaN) there is no telling.
    (count.abs() < 9e15).then(|| Expr::constant((count as i64).max(0)))
}

fn shape_of(op: &Operator) -> Option<Outputs> {
    let length = || {
        let rank = op.rank(0)? as i64;
        let (start, end) = shape_bounds(op, rank)?;
        Some(fixed((end - start).max(0)))
    };
    one(Some(ElementType::INT64), shape([length().unwrap_or(Dim::Unknown)]))
}

/// First and last-but-one dimension that Shape gives (operator set 15).
pub(in crate::facts) fn shape_bounds(op: &Operator, rank: i64) -> Option<(i64, i64)> {
    let bound = |n: i64| if n < 0 { n.saturating_add(rank) } else { n }.clamp(0, rank);
    Some((bound(op.int("start", 0)?), bound(op.int("end", rank)?)))
}

fn slice(op: &Operator) -> Option<Shape> {
    let input = op.shape(0)?;
    let Some(form) = op.slice() else { return Some(unknown(input.len())) };
    let mut result = input.clone();
    for (((axis, start), end), step) in form.axes.iter().zip(&form.starts).zip(&form.ends).zip(&form.steps) {
        let slot = result.get_mut(*axis)?;
        *slot = match (start, end, step) {
            (Some(start), Some(end), Some(step)) => dims::sliced(slot, start, end, *step),
            _ => Dim::Unknown,
        };
    }
    Some(result)
}

fn split(op: &Operator) -> Option<Outputs> {
    let sizes = op.split();
    let part = |i: usize| {
        let mut s = op.shape(0)?.clone();
        let axis = op.axis()?;
        let size = sizes.as_ref().and_then(|l| l.get(i)).cloned().unwrap_or(Dim::Unknown);
        *s.get_mut(axis)? = size;
        Some(s)
    };
    several((0..op.node.outputs.len()).map(|i| tensor(op.element(0), part(i))))
}

fn squeeze(op: &Operator) -> Option<Shape> {
    let input = op.shape(0)?;
    let axes = op.axes()?;
    let kept = input.iter().enumerate().filter(|(i, _)| !axes.contains(&(*i as i64)));
    shape(kept.map(|(_, d)| d.clone()))
}

fn unsqueeze(op: &Operator) -> Option<Shape> {
    let input = op.shape(0)?;
    let axes = op.axes()?;
    let mut rest = input.iter();
    let rank = input.len().checked_add(axes.len())?;
    (0..rank)
        .map(|i| if axes.contains(&(i as i64)) { Some(Dim::Fixed(1)) } else { rest.next().cloned() })
        .collect()
}

fn tile(op: &Operator) -> Option<Shape> {
    let input = op.shape(0)?;
    if op.opset < 6 {
        // One repeat along one axis, both inputs.
        let (count, axis) = (op.ints(1)?, op.number(2)?);
        let mut result = input.clone();
        let slot = result.get_mut(dims::axis(axis, Some(input.len()))?)?;
        *slot = dims::mul(slot, &dims::of(count.into_iter().next()?));
        return Some(result);
    }
    let Some(repeats) = op.ints(1) else { return Some(unknown(input.len())) };
    shape(input.iter().zip(repeats).map(|(d, r)| dims::mul(d, &dims::of(r))))
}

fn transpose(op: &Operator) -> Option<Shape> {
    let perm = op.perm()?;
    let Some(input) = op.shape(0) else { return Some(unknown(perm.len())) };
    perm.iter().map(|p| input.get(*p).cloned()).collect()
}

fn block(op: &Operator) -> Option<u64> {
    u64::try_from(op.int("blocksize", 0)?).ok().filter(|b| *b > 0)
}

fn depth_to_space(op: &Operator) -> Option<Outputs> {
    let s = || {
        let b = block(op)?;
        let [n, c, h, w] = op.shape(0)?.as_slice() else { return None };
        let depth = dims::exact_div(c, b.checked_mul(b)?);
        shape([n.clone(), depth, dims::times(h, b), dims::times(w, b)])
    };
    one(op.element(0), s())
}

fn space_to_depth(op: &Operator) -> Option<Outputs> {
    let s = || {
        let b = block(op)?;
        let [n, c, h, w] = op.shape(0)?.as_slice() else { return None };
        shape([n.clone(), dims::times(c, b.checked_mul(b)?), dims::exact_div(h, b), dims::exact_div(w, b)])
    };
    one(op.element(0), s())
}

fn center_crop_pad(op: &Operator) -> Option<Outputs> {
    let s = || {
        let input = op.shape(0)?;
        let axes: Vec<usize> = match op.list("axes")? {
            Some(axes) => axes.iter().map(|a| dims::axis(*a, Some(input.len()))).collect::<Option<_>>()?,
            None => (0..input.len()).collect(),
        };
        let mut result = input.clone();
        let target = op.ints(1);
        for (k, axis) in axes.iter().enumerate() {
            *result.get_mut(*axis)? = dims::of(target.as_ref().and_then(|t| t.get(k)?.clone()));
        }
        Some(result)
    };
    one(op.element(0), s())
}
