//! Two nodes that are the same one: in what do they differ?

use super::{Mark, NodeChange, Rule, What};
use crate::facts::view;
use crate::ir::{Attribute, AttributeValue, Model, Node, NodeId, Text, ValueId, shape_text};
use std::sync::Arc;

/// Elements of a list that are written out.
const SHOWN: usize = 8;

/// Knows which values and graphs of two models are the same.
pub trait Correspondence {
    /// True when the two values are the same one; equal constants are told apart or not as the kind of comparison has it.
    fn same_value(&self, before: ValueId, after: ValueId) -> bool;

    /// True when a node that gave the one gives another value now that it gives the other.
    fn gives_other(&self, before: ValueId, after: ValueId) -> bool;

    /// Differences of names, of values and nodes, say something.
    fn names_matter(&self) -> bool;
}

/// The difference of two nodes; `None` when there is none.
pub fn nodes(
    models: (&Model, &Model),
    ids: (NodeId, NodeId),
    rule: Rule,
    known: &dyn Correspondence,
) -> Option<NodeChange> {
    let (a, b) = (models.0.get_node(ids.0)?, models.1.get_node(ids.1)?);
    let mut what = Vec::new();
    if a.op_type != b.op_type
        || a.is_standard() != b.is_standard()
        || other_domain(a, b)
        || a.overload != b.overload
    {
        what.push(What::Operator { before: operator(a), after: operator(b) });
    }
    attributes(a, b, &mut what);
    inputs(models, a, b, known, &mut what);
    outputs(models, a, b, known, &mut what);
    let graphs = (models.0.graph_path(a.graph), models.1.graph_path(b.graph));
    if known.names_matter() && a.graph != b.graph {
        what.push(What::Graph { before: graphs.0, after: graphs.1 });
    }
    if what.is_empty() {
        return None;
    }
    let mark = if what.iter().all(What::is_rewiring) { Mark::Rewired } else { Mark::Changed };
    Some(NodeChange { before: Some(ids.0), after: Some(ids.1), mark, rule: Some(rule), what })
}

fn other_domain(a: &Node, b: &Node) -> bool {
    a.domain != b.domain && !(a.is_standard() && b.is_standard())
}

/// Operator with its domain, where that is not the standard's.
pub fn operator(node: &Node) -> String {
    if node.is_standard() { node.op_type.to_string() } else { format!("{}:{}", node.domain, node.op_type) }
}

fn attributes(a: &Node, b: &Node, what: &mut Vec<What>) {
    for old in &a.attributes {
        let new = b.attributes.iter().find(|n| n.name == old.name);
        if new.is_some_and(|new| same_but_for_graphs(old, new)) {
            continue;
        }
        what.push(What::Attribute {
            name: old.name.clone(),
            before: Some(value_text(&old.value)),
            after: new.map(|new| value_text(&new.value)),
        });
    }
    for new in b.attributes.iter().filter(|n| !a.attributes.iter().any(|o| o.name == n.name)) {
        let after = Some(value_text(&new.value));
        what.push(What::Attribute { name: new.name.clone(), before: None, after });
    }
}

/// Bodies are compared node by node, not here.
fn same_but_for_graphs(a: &Attribute, b: &Attribute) -> bool {
    match (&a.value, &b.value) {
        (AttributeValue::Graph(_), AttributeValue::Graph(_)) => true,
        (AttributeValue::Graphs(a), AttributeValue::Graphs(b)) => a.len() == b.len(),
        _ => a.same(b),
    }
}

fn inputs(models: (&Model, &Model), a: &Node, b: &Node, known: &dyn Correspondence, what: &mut Vec<What>) {
    for index in 0..a.inputs.len().max(b.inputs.len()) {
        let (before, after) = (a.input(index), b.input(index));
        match (before, after) {
            (None, None) => {}
            (Some(x), Some(y)) if known.same_value(x, y) => {}
            (Some(x), Some(y)) => {
                let data = (view::constant(models.0, x), view::constant(models.1, y));
                match data {
                    // Another constant with the same elements: what is read is the same.
                    (Some(old), Some(new)) if Arc::ptr_eq(&old, &new) || old.same_content(&new) => {}
                    (Some(_), Some(_)) => what.push(What::Constant { index, before: x, after: y }),
                    _ => what.push(input(models, index, before, after)),
                }
            }
            _ => what.push(input(models, index, before, after)),
        }
    }
}

fn input(models: (&Model, &Model), index: usize, before: Option<ValueId>, after: Option<ValueId>) -> What {
    What::Input { index, before: name(models.0, before), after: name(models.1, after) }
}

fn outputs(models: (&Model, &Model), a: &Node, b: &Node, known: &dyn Correspondence, what: &mut Vec<What>) {
    for index in 0..a.outputs.len().max(b.outputs.len()) {
        let (before, after) = (a.output(index), b.output(index));
        let differs = match (before, after) {
            (None, None) => false,
            (Some(x), Some(y)) => known.gives_other(x, y),
            _ => true,
        };
        if differs {
            let (before, after) = (name(models.0, before), name(models.1, after));
            what.push(What::Output { index, before, after });
        }
    }
}

fn name(model: &Model, value: Option<ValueId>) -> Option<Text> {
    value.and_then(|v| model.get_value(v)).map(|v| v.name.clone())
}

/// An attribute's value in a few words.
pub fn value_text(value: &AttributeValue) -> String {
    let list = |texts: Vec<String>, length: usize| match length > SHOWN {
        true => format!("[{}, … {length} in all]", texts.join(", ")),
        false => format!("[{}]", texts.join(", ")),
    };
    let bytes = |b: &bytes::Bytes| format!("{:?}", String::from_utf8_lossy(b));
    match value {
        AttributeValue::Float(v) => format!("{v:?}"),
        AttributeValue::Int(v) => v.to_string(),
        AttributeValue::String(v) => bytes(v),
        AttributeValue::Floats(v) => list(v.iter().take(SHOWN).map(|v| format!("{v:?}")).collect(), v.len()),
        AttributeValue::Ints(v) => list(v.iter().take(SHOWN).map(i64::to_string).collect(), v.len()),
        AttributeValue::Strings(v) => list(v.iter().take(SHOWN).map(bytes).collect(), v.len()),
        AttributeValue::Tensor(t) => tensor_text(t),
        AttributeValue::Tensors(t) => format!("{} tensors", t.len()),
        AttributeValue::Sparse(s) => {
            format!("sparse tensor of {} elements", s.values.dims.iter().product::<u64>())
        }
        AttributeValue::Sparses(s) => format!("{} sparse tensors", s.len()),
        AttributeValue::Type(d) => d.ty.to_string(),
        AttributeValue::Types(d) => format!("{} types", d.len()),
        AttributeValue::Graph(_) => "a graph".into(),
        AttributeValue::Graphs(g) => format!("{} graphs", g.len()),
        AttributeValue::Reference { name, .. } => format!("the caller's '{name}'"),
        AttributeValue::Unknown(_) => "of an unknown kind".into(),
    }
}

fn tensor_text(tensor: &crate::ir::Tensor) -> String {
    let dims: Vec<crate::ir::Dim> = tensor.dims.iter().map(|d| (*d).into()).collect();
    let ty = format!("{}{}", tensor.element, if dims.is_empty() { String::new() } else { shape_text(&dims) });
    match tensor.element_count() {
        Some(n) if n <= SHOWN as u64 => match (tensor.integers(), tensor.approximate()) {
            (Some(v), _) => format!("{ty} {v:?}"),
            (None, Some(v)) => format!("{ty} {v:?}"),
            _ => ty,
        },
        _ => ty,
    }
}
