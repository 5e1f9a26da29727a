//! How two changes of shape in a row can be said as one.

use crate::ir::{Dim, Expr, Model, Node, NodeId, Shape, ValueId};
use crate::passes::{Context, known, matching};

/// Two changes of shape in a row: `source` → first → `middle` → second → `result`.
pub struct Step {
    pub first: NodeId,
    pub source: ValueId,
    pub middle: ValueId,
    pub result: ValueId,
}

/// What the second one becomes once it reads the source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Plan {
    /// Nothing: the result has the source's shape.
    Cancel,
    /// Itself: its target does not depend on the shape between.
    Keep,
    /// Itself with other axes (Squeeze after Squeeze, Unsqueeze after Unsqueeze).
    Axes(Vec<i64>),
    /// A Reshape to this target.
    Target { shape: Vec<i64>, allow_zero: bool },
}

/// The two that end in a node, when it and the node before it only change the shape.
pub fn step(model: &Model, second: NodeId) -> Option<Step> {
    let node = model.get_node(second).filter(|n| changes_shape(n))?;
    let (middle, result) = (node.input(0)?, node.output(0)?);
    let (first, before) = matching::producer(model, middle, node.graph).filter(|(_, n)| changes_shape(n))?;
    Some(Step { first, source: before.input(0)?, middle, result })
}

fn changes_shape(node: &Node) -> bool {
    node.is_standard()
        && matches!(&*node.op_type, "Reshape" | "Squeeze" | "Unsqueeze" | "Flatten")
        && !node.has_attribute_references()
}

/// The two as one, or the condition that fails.
pub fn plan(cx: &Context, second: NodeId, step: &Step) -> Result<Plan, &'static str> {
    let model = cx.model;
    let (a, b) = (model.node(step.first), model.node(second));
    let shape = |v: ValueId| cx.facts.ty(model, v).shape();
    let (source, middle, result) = (shape(step.source), shape(step.middle), shape(step.result));
    let target = if b.is("Reshape") { reading(cx, b, source, middle) } else { Reading::Relative };
    if target == Reading::Uncertain {
        return Err("the target shape is computed, and a 0 in it would copy a dimension");
    }
    if let (Some(from), Some(to)) = (source, result)
        && from.len() == to.len()
        && from.iter().zip(to).all(|(f, t)| f.surely_equals(t))
    {
        return Ok(Plan::Cancel);
    }
    if let Some(plan) = by_axes(model, a, b, middle.map(|s| s.len()), result.map(|s| s.len())) {
        return Ok(plan);
    }
    if target == Reading::Absolute {
        return Ok(Plan::Keep);
    }
    if known::opset(model, b) < 5 {
        return Err("before opset 5 a Reshape has no shape input");
    }
    let result = result.ok_or("the shape of the result is not known")?;
    as_target(result, source, known::opset(model, b))
}

/// Squeeze and Unsqueeze in a row, by their axes alone, whatever the shape.
fn by_axes(
    model: &Model,
    a: &Node,
    b: &Node,
    middle_rank: Option<usize>,
    result_rank: Option<usize>,
) -> Option<Plan> {
    let axes = |node: &Node| known::list(model, node, "axes", 1).flatten().filter(|list| !list.is_empty());
    match (&*a.op_type, &*b.op_type) {
        // Both count in the shape between, or both in the one around it: equal lists name equal places.
        ("Unsqueeze", "Squeeze") | ("Squeeze", "Unsqueeze") => {
            let rank = if a.is("Unsqueeze") { middle_rank } else { result_rank };
            let (mut x, mut y) = (axes(a)?, axes(b)?);
            x.sort_unstable();
            y.sort_unstable();
            let known = |axes: &[i64]| positions(axes, Some(rank?));
            (x == y || known(&x).is_some_and(|p| Some(p) == known(&y))).then_some(Plan::Cancel)
        }
        ("Unsqueeze", "Unsqueeze") => {
            let (early, late) = (positions(&axes(a)?, middle_rank)?, positions(&axes(b)?, result_rank)?);
            Some(Plan::Axes(spread(early, late)?))
        }
        ("Squeeze", "Squeeze") => {
            let (early, late) = (axes(a)?, axes(b)?);
            let source_rank = middle_rank.map(|r| r + early.len());
            Some(Plan::Axes(spread(positions(&late, middle_rank)?, positions(&early, source_rank)?)?))
        }
        _ => None,
    }
}

/// Both lists as places of the larger shape: `inner` counts what `outer` leaves of it.
fn spread(inner: Vec<i64>, outer: Vec<i64>) -> Option<Vec<i64>> {
    let last = *inner.last()? + outer.len() as i64;
    let left: Vec<i64> = (0..=last).filter(|i| !outer.contains(i)).collect();
    let mut all = outer;
    for i in inner {
        all.push(*left.get(usize::try_from(i).ok()?)?);
    }
    all.sort_unstable();
    Some(all)
}

/// Axes from the front, sorted; negative ones need the rank that they count from. `None` when one occurs twice.
fn positions(axes: &[i64], rank: Option<usize>) -> Option<Vec<i64>> {
    let rank = rank.map(|r| r as i64);
    let mut list: Vec<i64> = axes
        .iter()
        .map(|a| if *a < 0 { a.checked_add(rank?) } else { Some(*a) })
        .map(|a| a.filter(|a| (0..=1024).contains(a) && rank.is_none_or(|r| *a < r)))
        .collect::<Option<_>>()?;
    list.sort_unstable();
    let distinct = list.windows(2).all(|w| w.first() != w.last());
    distinct.then_some(list)
}

/// How the target of a Reshape is meant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// The same on the source as on the shape between.
    Absolute,
    /// A 0 in it copies a dimension of the shape between; what comes out is known.
    Relative,
    /// An element is computed and may be 0 at some size, where it would copy something else.
    Uncertain,
}

fn reading(cx: &Context, node: &Node, source: Option<&Shape>, middle: Option<&Shape>) -> Reading {
    let elements: Option<Vec<Option<Expr>>> = match (node.attribute("shape"), node.input(1)) {
        (Some(a), None) => a.ints().map(|s| s.iter().map(|n| Some(Expr::constant(*n))).collect()),
        (None, Some(v)) => cx.facts.ints(cx.model, v),
        _ => None,
    };
    if node.int_or("allowzero", 0) == Some(1) && node.input(1).is_some() {
        return Reading::Absolute;
    }
    let (Some(elements), Some(0)) = (elements, node.int_or("allowzero", 0)) else {
        return Reading::Uncertain;
    };
    let dim = |shape: Option<&Shape>, i: usize| shape.and_then(|s| s.get(i)).cloned().unwrap_or(Dim::Unknown);
    let mut reading = Reading::Absolute;
    for (i, element) in elements.iter().enumerate() {
        let (from, between) = (dim(source, i), dim(middle, i));
        if from.surely_equals(&between) {
            continue;
        }
        // Where a dimension is a multiple of the element, both are 0 together, and the copy is the element.
        let vanishes = |d: &Dim, e: &Expr| d.expr().is_some_and(|d| d.exact_div(e).is_some());
        match element.as_ref().map(|e| (e, e.as_constant())) {
            Some((_, Some(0))) => reading = Reading::Relative,
            Some((_, Some(_))) => {}
            Some((e, None)) if vanishes(&between, e) => {
                if !vanishes(&from, e) {
                    reading = Reading::Relative;
                }
            }
            _ => return Reading::Uncertain,
        }
    }
    reading
}

/// A target that gives the result's shape from the source at every size.
fn as_target(result: &[Dim], source: Option<&Shape>, opset: i64) -> Result<Plan, &'static str> {
    if result.iter().any(|d| d.fixed() == Some(0)) {
        let shape: Option<Vec<i64>> = result.iter().map(|d| i64::try_from(d.fixed()?).ok()).collect();
        return match shape {
            Some(shape) if opset >= 14 => Ok(Plan::Target { shape, allow_zero: true }),
            _ => Err("the result has no elements, and its shape cannot be written as a target"),
        };
    }
    let mut shape = Vec::with_capacity(result.len());
    let (mut copied, mut open) = (0usize, 0usize);
    for (i, dim) in result.iter().enumerate() {
        let same = source.and_then(|s| s.get(i)).is_some_and(|s| s.surely_equals(dim));
        match dim.fixed().and_then(|n| i64::try_from(n).ok()) {
            Some(n) => shape.push(n),
            None if same => {
                shape.push(0);
                copied += 1;
            }
            None => {
                shape.push(-1);
                open += 1;
            }
        }
    }
    match (open, copied) {
        (0, _) | (1, 0) => Ok(Plan::Target { shape, allow_zero: false }),
        // With a dimension of 0 beside it, -1 has no answer.
        (1, _) => Err("one dimension would have to be worked out beside others that may be 0"),
        _ => Err("more than one dimension of the result is not fixed"),
    }
}
