//! What the inspector says of a node: a card of plain data.

use super::document::Document;
use crate::facts::view;
use crate::ir::{AttributeValue, Model, NodeId, Producer, ValueId};
use crate::pipeline::State;
use std::sync::Arc;

/// An input or output.
#[derive(Clone, PartialEq, Debug)]
pub struct PortRow {
    pub value: ValueId,
    pub name: String,
    pub ty: String,
    /// Where it comes from (inputs) or who reads it (outputs).
    pub peers: Vec<(NodeId, String)>,
    /// Constant data.
    pub constant: bool,
    /// Elements of a small constant.
    pub elements: Option<String>,
}

/// An attribute, or a default that the standard gives.
#[derive(Clone, PartialEq, Debug)]
pub struct AttributeRow {
    pub name: String,
    pub value: String,
    pub is_default: bool,
}

/// A step that touched the node.
#[derive(Clone, PartialEq, Debug)]
pub struct StoryRow {
    pub step: u32,
    pub pass: Arc<str>,
    pub what: Arc<str>,
    /// "made by", "changed by", "rewired by", "removed by".
    pub verb: &'static str,
}

/// A near miss at the node.
#[derive(Clone, PartialEq, Debug)]
pub struct WhyNot {
    pub pass: Arc<str>,
    pub condition: String,
    pub blame: NodeId,
    pub blame_label: String,
}

/// All that is known of a node.
#[derive(Clone, PartialEq, Debug)]
pub struct NodeCard {
    pub node: NodeId,
    pub label: String,
    pub name: String,
    pub operator: String,
    pub domain: String,
    pub opset: Option<i64>,
    pub summary: String,
    pub graph: String,
    pub block: String,
    pub doc: String,
    pub metadata: Vec<(String, String)>,
    /// `None` for a skipped optional input.
    pub inputs: Vec<Option<PortRow>>,
    pub outputs: Vec<Option<PortRow>>,
    pub attributes: Vec<AttributeRow>,
    /// Imported nodes that it came from, when that is not just itself.
    pub origins: Vec<(NodeId, String)>,
    pub story: Vec<StoryRow>,
    pub why_not: Vec<WhyNot>,
    /// It is in the model as imported, but not at the step that is shown.
    pub removed: bool,
}

/// An attribute's value on one line; long lists are cut.
pub fn attribute_text(model: &Model, value: &AttributeValue) -> String {
    fn list<T>(items: &[T], text: impl Fn(&T) -> String) -> String {
        let shown: Vec<String> = items.iter().take(24).map(text).collect();
        let more = if items.len() > 24 { format!(", … {} in all", items.len()) } else { String::new() };
        format!("[{}{more}]", shown.join(", "))
    }
    let bytes = |b: &bytes::Bytes| match std::str::from_utf8(b) {
        Ok(text) => format!("{text:?}"),
        Err(_) => format!("{} bytes", b.len()),
    };
    match value {
        AttributeValue::Float(v) => format!("{v}"),
        AttributeValue::Int(v) => v.to_string(),
        AttributeValue::String(b) => bytes(b),
        AttributeValue::Tensor(t) => match elements(t) {
            Some(text) => format!("{} {text}", t.ty()),
            None => t.ty().to_string(),
        },
        AttributeValue::Graph(g) => format!("graph of {} nodes", model.graph(*g).nodes.len()),
        AttributeValue::Sparse(s) => {
            format!("sparse tensor of {} values", s.values.dims.first().copied().unwrap_or(0))
        }
        AttributeValue::Type(d) => d.ty.to_string(),
        AttributeValue::Floats(v) => list(v, |x| x.to_string()),
        AttributeValue::Ints(v) => list(v, |x| x.to_string()),
        AttributeValue::Strings(v) => list(v, bytes),
        AttributeValue::Tensors(v) => list(v, |t| t.ty().to_string()),
        AttributeValue::Graphs(v) => format!("{} graphs", v.len()),
        AttributeValue::Sparses(v) => format!("{} sparse tensors", v.len()),
        AttributeValue::Types(v) => list(v, |d| d.ty.to_string()),
        AttributeValue::Reference { name, .. } => format!("the call's '{name}'"),
        AttributeValue::Unknown(b) => format!("unknown kind, {} bytes", b.len()),
    }
}

/// Elements of a tensor of at most 16, exactly for integers.
pub fn elements(tensor: &crate::ir::Tensor) -> Option<String> {
    if tensor.element_count()? > 16 {
        return None;
    }
    let texts: Vec<String> = match tensor.integers() {
        Some(v) => v.iter().map(i64::to_string).collect(),
        None => tensor.approximate()?.iter().map(|v| format!("{}", *v as f32)).collect(),
    };
    Some(if tensor.dims.is_empty() { texts.concat() } else { format!("[{}]", texts.join(", ")) })
}

/// The card of a node as shown at a step, or as imported when it is gone there.
pub fn node_card(document: &Document, shown: &State, node: NodeId) -> Option<NodeCard> {
    let removed = shown.model.get_node(node).is_none();
    let state: &State = if removed { &document.initial } else { shown };
    let model = &state.model;
    let n = model.get_node(node)?;
    let port = |v: ValueId, input: bool| {
        let value = model.value(v);
        let constant = view::constant(model, v);
        let peers = match (input, value.producer) {
            (true, Producer::Node { node, .. }) => vec![node],
            (true, _) => Vec::new(),
            (false, _) => model.readers(v),
        };
        PortRow {
            value: v,
            name: value.name.to_string(),
            ty: state.facts.ty(model, v).to_string(),
            peers: peers.into_iter().map(|n| (n, model.node_label(n))).collect(),
            elements: constant.as_ref().and_then(|t| elements(t)),
            constant: constant.is_some() || value.constant.is_some(),
        }
    };
    let mut attributes: Vec<AttributeRow> = n
        .attributes
        .iter()
        .map(|a| AttributeRow {
            name: a.name.to_string(),
            value: attribute_text(model, &a.value),
            is_default: false,
        })
        .collect();
    let opset = model.opset(n.graph, &n.domain);
    if n.is_standard() {
        for default in crate::facts::operators::attributes(&n.op_type, opset.unwrap_or(0)) {
            if n.attribute(default.attribute).is_none() {
                let (name, value) = (default.attribute.to_string(), attribute_text(model, &default.value));
                attributes.push(AttributeRow { name, value, is_default: true });
            }
        }
    }
    let origins = state.provenance.origins(node);
    let origins = match origins.as_slice() {
        [only] if *only == node => Vec::new(),
        _ => origins.iter().map(|o| (*o, document.initial.model.node_label(*o))).collect(),
    };
    let mut story: Vec<StoryRow> = Vec::new();
    for c in document.changes().iter() {
        let verb = if c.added.contains(&node) {
            "made by"
        } else if c.removed.contains(&node) {
            "removed by"
        } else if c.changed.contains(&node) {
            "changed by"
        } else if c.rewired.contains(&node) {
            "rewired by"
        } else {
            continue;
        };
        story.push(StoryRow { step: c.step, pass: c.pass.clone(), what: c.what.clone(), verb });
    }
    let mut why_not: Vec<WhyNot> = Vec::new();
    for run in document.run().into_iter().flat_map(|r| r.passes.iter()) {
        for b in run.blocked.iter().filter(|b| b.anchor == node || b.blame == node) {
            let condition = b.condition.to_string();
            if why_not.iter().all(|w| w.pass != run.pass || w.condition != condition) {
                let blame_label = run.after.model.node_label(b.blame);
                why_not.push(WhyNot { pass: run.pass.clone(), condition, blame: b.blame, blame_label });
            }
        }
    }
    Some(NodeCard {
        node,
        label: model.node_label(node),
        name: n.name.to_string(),
        operator: n.op_type.to_string(),
        domain: if n.is_standard() { "ai.onnx".into() } else { n.domain.to_string() },
        opset,
        summary: match model.function_of(n) {
            Some(f) => format!("model-local function of {} nodes", model.graph(f.graph).nodes.len()),
            None if n.is_standard() => crate::facts::operators::summary(&n.op_type).unwrap_or("").to_owned(),
            None => "operator of a foreign domain: shown and carried, never touched".into(),
        },
        graph: model.graph_path(n.graph),
        block: document.block_path(state, node),
        doc: n.doc.to_string(),
        metadata: n.metadata.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect(),
        inputs: n.inputs.iter().map(|v| v.map(|v| port(v, true))).collect(),
        outputs: n.outputs.iter().map(|v| v.map(|v| port(v, false))).collect(),
        attributes,
        origins,
        story,
        why_not,
        removed,
    })
}
