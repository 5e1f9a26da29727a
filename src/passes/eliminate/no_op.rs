//! When a node's result surely equals one of its inputs to the bit: one rule an operator.

use crate::facts::view;
use crate::ir::{AttributeValue, Dim, Expr, Model, Node, NodeId, Shape, ValueId};
use crate::passes::known::{self, Fill};
use crate::passes::{Blocked, Context, matching};

/// What is known of a node as a candidate.
#[derive(Clone, PartialEq, Debug)]
pub enum Verdict {
    /// It does something, or it cannot be told.
    Different,
    /// Its first output equals this input.
    Equals(ValueId),
    /// All but one condition for that holds.
    NearMiss(Blocked),
}

/// Judges a node. Results beyond the first must be unread for [`Verdict::Equals`].
pub fn judge(cx: &Context, id: NodeId) -> Verdict {
    let model = cx.model;
    let node = model.node(id);
    if !node.is_standard() || node.has_attribute_references() || node.output(0).is_none() {
        return Verdict::Different;
    }
    let same = match &*node.op_type {
        "Identity" => true,
        "Dropout" => return dropout(cx, id, node),
        "Add" | "Sub" | "Mul" | "Div" | "Pow" | "And" | "Or" | "Xor" => return with_neutral(cx, id, node),
        "Sum" | "Max" | "Min" | "Mean" => node.inputs.len() == 1,
        "Concat" => node.inputs.len() == 1,
        "Cast" => same_element(cx, node, node.int_or("to", 0)),
        "CastLike" => {
            let like = node.input(1).and_then(|v| cx.facts.ty(model, v).element());
            same_element(cx, node, like.map(|e| e.0 as i64))
        }
        "Transpose" => keeps_order(cx, node),
        "Reshape" => same_target(cx, node),
        "Flatten" => same_halves(cx, node),
        "Squeeze" => squeezes_nothing(cx, node),
        "Unsqueeze" => known::list(model, node, "axes", 1).flatten().is_some_and(|axes| axes.is_empty()),
        "Pad" => pads_nothing(model, node),
        "Slice" => takes_all(cx, node),
        "Split" => splits_into_one(model, node),
        "Expand" => expands_nothing(cx, node),
        "Tile" => tiles_once(model, node),
        "Resize" | "Upsample" => keeps_size(model, node),
        _ => false,
    };
    match node.input(0) {
        Some(source) if same => Verdict::Equals(source),
        _ => Verdict::Different,
    }
}

fn shape<'a>(cx: &'a Context, value: ValueId) -> Option<&'a Shape> {
    cx.facts.ty(cx.model, value).shape()
}

fn dropout(cx: &Context, id: NodeId, node: &Node) -> Verdict {
    let model = cx.model;
    let Some(source) = node.input(0) else { return Verdict::Different };
    if !known::infers(model, cx.facts, node) {
        let miss = matching::blocked(model, id, "the Dropout may work in training mode", id);
        return Verdict::NearMiss(miss);
    }
    let mask = node.output(1).filter(|m| !model.value(*m).uses.is_empty());
    match mask.and_then(|m| matching::other_reader(model, m, id)) {
        None => Verdict::Equals(source),
        Some(matching::OtherReader::Node(by)) => Verdict::NearMiss(matching::blocked(
            model,
            id,
            format!("the mask is read by '{}'", model.node_label(by)),
            by,
        )),
        Some(matching::OtherReader::Output) => {
            Verdict::NearMiss(matching::blocked(model, id, "the mask is an output of the graph", id))
        }
    }
}

fn same_element(cx: &Context, node: &Node, to: Option<i64>) -> bool {
    let from = node.input(0).and_then(|v| cx.facts.ty(cx.model, v).element());
    from.is_some_and(|e| e.0 != 0 && to == Some(e.0 as i64))
}

/// Operators of two operands, one of them constant and neutral. `x + 0.0` is not: it turns -0.0 into +0.0.
fn with_neutral(cx: &Context, id: NodeId, node: &Node) -> Verdict {
    let model = cx.model;
    let (Some(left), Some(right)) = (node.input(0), node.input(1)) else { return Verdict::Different };
    let commutes = matches!(&*node.op_type, "Add" | "Mul" | "And" | "Or" | "Xor");
    let sides = [(left, right, true), (right, left, commutes)];
    for (source, other, allowed) in sides {
        let Some(tensor) = view::constant(model, other).filter(|_| allowed) else { continue };
        let (Some(fill), float) = (known::fill(&tensor), tensor.element.is_float()) else { continue };
        let neutral = match (&*node.op_type, fill) {
            ("Mul" | "Div" | "And", Fill::One) => true,
            ("Or" | "Xor", Fill::Zero) => true,
            ("Add", Fill::Zero) => !float,
            ("Add", Fill::NegativeZero) | ("Sub", Fill::Zero) => true,
            // Runtimes raise 64-bit integers to a power by way of float64, which loses digits.
            ("Pow", Fill::One) => {
                let base = cx.facts.ty(model, source).element();
                base.is_some_and(known::is_computable)
            }
            _ => false,
        };
        let nearly =
            matches!((&*node.op_type, fill), ("Add", Fill::Zero) | ("Sub", Fill::NegativeZero)) && float;
        if !neutral && !nearly {
            continue;
        }
        if nearly {
            let condition = "adding +0.0 turns -0.0 into +0.0";
            return Verdict::NearMiss(matching::blocked(model, id, condition, id));
        }
        if !stays_as_large(cx, node, source, other, &tensor.dims) {
            let condition = "the constant may broadcast the result to another shape";
            return Verdict::NearMiss(matching::blocked(model, id, condition, id));
        }
        return Verdict::Equals(source);
    }
    Verdict::Different
}

fn stays_as_large(cx: &Context, node: &Node, source: ValueId, other: ValueId, dims: &[u64]) -> bool {
    let source_shape = shape(cx, source);
    if known::opset(cx.model, node) >= 7 {
        return known::broadcasts_into(dims, source_shape.map(|s| s.as_slice()));
    }
    // Before opset 7 the second operand is fitted into the first, whose shape the result has.
    node.input(1) == Some(other) || source_shape.is_some_and(|s| fixed_equal(s, dims))
}

fn fixed_equal(shape: &[Dim], dims: &[u64]) -> bool {
    shape.len() == dims.len() && shape.iter().zip(dims).all(|(s, d)| s.fixed() == Some(*d))
}

/// A Transpose that only moves dimensions of 1 and leaves the shape as it is.
fn keeps_order(cx: &Context, node: &Node) -> bool {
    let shape = node.input(0).and_then(|v| shape(cx, v));
    let perm: Vec<i64> = match (node.attribute("perm"), shape) {
        (Some(p), _) => p.ints().map(<[i64]>::to_vec).unwrap_or_default(),
        (None, Some(s)) => (0..s.len() as i64).rev().collect(),
        (None, None) => return false,
    };
    if node.attribute("perm").is_some() && perm.is_empty() {
        return shape.is_some_and(|s| s.is_empty());
    }
    if perm.iter().enumerate().all(|(i, p)| i as i64 == *p) {
        return true;
    }
    let Some(shape) = shape.filter(|s| s.len() == perm.len()) else { return false };
    let moved: Option<Vec<(usize, &Dim)>> =
        perm.iter().map(|p| usize::try_from(*p).ok().and_then(|p| Some((p, shape.get(p)?)))).collect();
    let Some(moved) = moved else { return false };
    let large: Vec<usize> = moved.iter().filter(|(_, d)| d.fixed() != Some(1)).map(|(p, _)| *p).collect();
    large.is_sorted() && moved.iter().zip(shape).all(|((_, d), s)| d.surely_equals(s))
}

fn same_target(cx: &Context, node: &Node) -> bool {
    let Some(from) = node.input(0).and_then(|v| shape(cx, v)) else { return false };
    let target: Vec<Option<Expr>> = match (node.attribute("shape"), node.input(1)) {
        (Some(AttributeValue::Ints(s)), None) => s.iter().map(|n| Some(Expr::constant(*n))).collect(),
        (None, Some(v)) => match cx.facts.ints(cx.model, v) {
            Some(target) => target,
            None => return false,
        },
        _ => return false,
    };
    let copies_zero = node.int_or("allowzero", 0) == Some(0);
    if target.len() != from.len() {
        return false;
    }
    let mut open: Vec<usize> = Vec::new();
    for (i, (wanted, has)) in target.iter().zip(from).enumerate() {
        match wanted.as_ref().map(|e| (e, e.as_constant())) {
            Some((_, Some(0))) if copies_zero => {}
            Some((_, Some(-1))) | None => open.push(i),
            Some((e, _)) if has.expr().is_some_and(|h| h == *e) => {}
            _ => return false,
        }
    }
    // One dimension that is not known follows from the number of elements, unless there are none.
    let determined = |i: &usize| {
        from.iter().enumerate().all(|(k, d)| k == *i || d.fixed().is_some_and(|n| n != 0))
            || target.get(*i).is_some_and(|e| e.is_some())
    };
    open.len() <= 1 && open.iter().all(determined)
}

fn same_halves(cx: &Context, node: &Node) -> bool {
    let (Some(s), Some(axis)) = (node.input(0).and_then(|v| shape(cx, v)), node.int_or("axis", 1)) else {
        return false;
    };
    let [first, second] = s.as_slice() else { return false };
    match axis {
        1 | -1 => true,
        // All in one row, or all in one column: the same when that is the shape already.
        0 | -2 => first.fixed() == Some(1),
        2 => second.fixed() == Some(1),
        _ => false,
    }
}

/// A Squeeze without axes takes out every dimension of 1; so none may be able to be 1.
fn squeezes_nothing(cx: &Context, node: &Node) -> bool {
    let Some(axes) = known::list(cx.model, node, "axes", 1) else { return false };
    let from = node.input(0).and_then(|v| shape(cx, v));
    axes.is_none_or(|a| a.is_empty())
        && from.is_some_and(|s| s.iter().all(|d| d.fixed().is_some_and(|n| n != 1)))
}

fn pads_nothing(model: &Model, node: &Node) -> bool {
    let name = if known::opset(model, node) < 2 { "paddings" } else { "pads" };
    let pads = known::list(model, node, name, 1).flatten();
    pads.is_some_and(|pads| pads.iter().all(|n| *n == 0))
}

/// From here on an end means "to the end" whatever the size: no tensor has as many elements along one axis.
const FAR: i64 = i32::MAX as i64;

fn takes_all(cx: &Context, node: &Node) -> bool {
    let model = cx.model;
    let fixed = |attribute: &str, input: usize| known::list(model, node, attribute, input);
    let Some(Some(starts)) = fixed("starts", 1) else { return false };
    let (Some(axes), Some(steps)) = (fixed("axes", 3), fixed("steps", 4)) else { return false };
    let ends: Vec<Option<Expr>> = match (node.attribute("ends"), node.input(2)) {
        (Some(AttributeValue::Ints(e)), None) => e.iter().map(|n| Some(Expr::constant(*n))).collect(),
        (None, Some(v)) => match cx.facts.ints(cx.model, v) {
            Some(ends) => ends,
            None => return false,
        },
        _ => return false,
    };
    let from = node.input(0).and_then(|v| shape(cx, v));
    let axes = axes.unwrap_or_else(|| (0..starts.len() as i64).collect());
    if ends.len() != starts.len() || axes.len() != starts.len() {
        return false;
    }
    steps.is_none_or(|s| s.iter().all(|n| *n == 1))
        && starts.iter().all(|s| *s == 0)
        && axes.iter().zip(ends).all(|(axis, end)| {
            let Some(end) = end else { return false };
            let dim = from.and_then(|s| dim_at(s, *axis));
            match (end.as_constant(), dim) {
                (Some(n), _) if n >= FAR => true,
                (Some(n), Some(Dim::Fixed(d))) => u64::try_from(n).is_ok_and(|n| n >= *d),
                (_, Some(d)) => d.expr().is_some_and(|d| d == end),
                _ => false,
            }
        })
}

fn dim_at(shape: &Shape, axis: i64) -> Option<&Dim> {
    let at = if axis < 0 { axis.checked_add(shape.len() as i64)? } else { axis };
    shape.get(usize::try_from(at).ok()?)
}

fn splits_into_one(model: &Model, node: &Node) -> bool {
    let sizes = known::list(model, node, "split", 1);
    node.outputs.len() == 1
        && node.int_or("num_outputs", 1) == Some(1)
        && sizes.is_some_and(|s| s.is_none_or(|s| s.len() == 1))
}

fn expands_nothing(cx: &Context, node: &Node) -> bool {
    let (Some(from), Some(target)) =
        (node.input(0).and_then(|v| shape(cx, v)), node.input(1).and_then(|v| cx.facts.ints(cx.model, v)))
    else {
        return false;
    };
    target.len() <= from.len()
        && target.iter().rev().zip(from.iter().rev()).all(|(wanted, has)| match wanted {
            Some(e) => e.as_constant() == Some(1) || has.expr().is_some_and(|h| h == *e),
            None => false,
        })
}

fn tiles_once(model: &Model, node: &Node) -> bool {
    let repeats = node.input(1).and_then(|v| known::constant_ints(model, v));
    known::opset(model, node) >= 6 && repeats.is_some_and(|r| r.iter().all(|n| *n == 1))
}

/// Scaling by exactly 1 with the nearest neighbour: other modes weigh neighbours by zero, which NaN survives.
fn keeps_size(model: &Model, node: &Node) -> bool {
    let text = |name: &str, default: &'static str| match node.attribute(name) {
        None => Some(default.to_owned()),
        Some(a) => a.text().map(str::to_owned),
    };
    let upsample = &*node.op_type == "Upsample";
    let version = known::opset(model, node);
    let scales = match (node.attribute("scales"), upsample || version < 11) {
        (Some(AttributeValue::Floats(s)), _) => Some(s.to_vec()),
        (None, true) => node.input(1).and_then(|v| view::constant(model, v)?.as_f32()),
        (None, false) => node.input(2).and_then(|v| view::constant(model, v)?.as_f32()),
        _ => None,
    };
    let centred = upsample
        || version < 11
        || text("coordinate_transformation_mode", "half_pixel")
            .is_some_and(|m| matches!(&*m, "half_pixel" | "asymmetric" | "pytorch_half_pixel"));
    text("mode", "nearest").as_deref() == Some("nearest")
        && centred
        && scales.is_some_and(|s| !s.is_empty() && s.iter().all(|x| *x == 1.0))
}
