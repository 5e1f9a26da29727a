//! Products of matrices, and attention made of them.

use super::{Outputs, Rule, one, same_as_first, several, shape, tensor};
use crate::facts::dims;
use crate::facts::view::Operator;
use crate::ir::{Dim, ElementType, Shape};
use std::collections::BTreeMap;

pub(super) const RULES: &[(&str, Rule)] = &[
    ("Attention", attention),
    ("Det", |op| {
        one(op.element(0), op.shape(0).and_then(|s| shape(s.get(..s.len().checked_sub(2)?)?.iter().cloned())))
    }),
    ("Einsum", |op| one((0..op.node.inputs.len()).find_map(|i| op.element(i)), einsum(op))),
    ("Gemm", |op| one(op.element(0), gemm(op))),
    ("MatMul", |op| one(op.element(0).or(op.element(1)), product(op.shape(0), op.shape(1)))),
    ("MatMulInteger", |op| one(Some(ElementType::INT32), product(op.shape(0), op.shape(1)))),
    // a, a scale, a zero point, b, b scale, b zero point, y scale, y zero point.
    ("QLinearMatMul", |op| one(op.element(7), product(op.shape(0), op.shape(3)))),
    ("RotaryEmbedding", same_as_first),
];

/// numpy's matmul.
fn product(a: Option<&Shape>, b: Option<&Shape>) -> Option<Shape> {
    let (a, b) = (a?, b?);
    let (rows, batch_a): (Option<&Dim>, &[Dim]) = match a.as_slice() {
        [] => return None,
        [_] => (None, &[]),
        [batch @ .., rows, _] => (Some(rows), batch),
    };
    let (columns, batch_b): (Option<&Dim>, &[Dim]) = match b.as_slice() {
        [] => return None,
        [_] => (None, &[]),
        [batch @ .., _, columns] => (Some(columns), batch),
    };
    let mut result = dims::broadcast_shapes([batch_a, batch_b]);
    result.extend(rows.into_iter().chain(columns).cloned());
    Some(result)
}

fn gemm(op: &Operator) -> Option<Shape> {
    let side = |input: usize, transposed: &str, plain_axis: usize| match op.int(transposed, 0) {
        Some(0) => op.dim(input, plain_axis),
        Some(_) => op.dim(input, 1 - plain_axis),
        None => Dim::Unknown,
    };
    shape([side(0, "transA", 0), side(1, "transB", 1)])
}

/// Labels to dimensions; an ellipsis leaves the shape unknown.
fn einsum(op: &Operator) -> Option<Shape> {
    let equation: String = op.text("equation", "")?.chars().filter(|c| !c.is_whitespace()).collect();
    let (inputs, output) = match equation.split_once("->") {
        Some((inputs, output)) => (inputs.to_owned(), Some(output.to_owned())),
        None => (equation.clone(), None),
    };
    if equation.contains('.') {
        return None;
    }
    let mut sizes: BTreeMap<char, Dim> = BTreeMap::new();
    let mut times_seen: BTreeMap<char, usize> = BTreeMap::new();
    for (i, labels) in inputs.split(',').enumerate() {
        let s = op.shape(i).filter(|s| s.len() == labels.chars().count());
        for (axis, label) in labels.chars().enumerate() {
            let d = s.and_then(|s| s.get(axis)).cloned().unwrap_or(Dim::Unknown);
            // Equal labels may also be broadcast from 1.
            let known = sizes.entry(label).or_insert(Dim::Fixed(1));
            *known = dims::broadcast(known, &d);
            *times_seen.entry(label).or_default() += 1;
        }
    }
    match output {
        Some(labels) => labels.chars().map(|l| sizes.get(&l).cloned()).collect(),
        // Without an arrow: labels that occur once, in alphabetical order.
        None => {
            Some(sizes.into_iter().filter(|(l, _)| times_seen.get(l) == Some(&1)).map(|(_, d)| d).collect())
        }
    }
}

/// Attention (operator set 23): queries of rank 4 (batch, heads, length, head size), or of rank 3 with heads in the last.
fn attention(op: &Operator) -> Option<Outputs> {
    let element = op.element(0);
    let heads = |name| op.int(name, 0).and_then(|n| u64::try_from(n).ok()).filter(|n| *n > 0);
    let (q, k, v) = (op.shape(0)?, op.shape(1)?, op.shape(2)?);
    // Batch, heads, length, head size of each.
    let spread = |s: &Shape, name| match s.as_slice() {
        [batch, heads, length, size] => Some([batch.clone(), heads.clone(), length.clone(), size.clone()]),
        [batch, length, all] => {
            let n = heads(name)?;
            Some([batch.clone(), Dim::Fixed(n), length.clone(), dims::exact_div(all, n)])
        }
        _ => None,
    };
    let (Some(qs), Some(ks), Some(vs)) =
        (spread(q, "q_num_heads"), spread(k, "kv_num_heads"), spread(v, "kv_num_heads"))
    else {
        return one(element, None);
    };
    let [batch, query_heads, length, _] = qs;
    let y = match q.len() {
        4 => shape([batch.clone(), query_heads.clone(), length.clone(), vs[3].clone()]),
        _ => shape([batch.clone(), length.clone(), dims::mul(&query_heads, &vs[3])]),
    };
    let grown =
        |new: &Dim, past: usize| if op.has(past) { dims::add(new, &op.dim(past, 2)) } else { new.clone() };
    let (total_k, total_v) = (grown(&ks[2], 4), grown(&vs[2], 5));
    let present_k = shape([ks[0].clone(), ks[1].clone(), total_k.clone(), ks[3].clone()]);
    let present_v = shape([vs[0].clone(), vs[1].clone(), total_v, vs[3].clone()]);
    let scores = shape([batch, query_heads, length, total_k]);
    several([
        tensor(element, y),
        tensor(op.element(1), present_k),
        tensor(op.element(2), present_v),
        tensor(element, scores),
    ])
}
