//! Single nodes and patches as text that people read: large data is only named.

use super::attribute::{kind_text, plain_value};
use super::elements::numbers;
use super::print::{head_text, names_text, tensor_type};
use super::types::type_text;
use super::write::name;
use crate::ir::attribute::{Attribute, AttributeValue};
use crate::ir::ids::{GraphId, NodeId, OrderKey, ValueId};
use crate::ir::model::Model;
use crate::ir::node::Use;
use crate::ir::patch::{Edit, Patch};
use crate::ir::tensor::{Constant, Data, Tensor};
use std::collections::{BTreeMap, BTreeSet};

/// Data up to this many elements is shown.
const SHOWN: u64 = 8;

/// A node on one line, as in the text form; bodies are counted and large data is left out (`{…}`).
/// Empty for a node that is not in the model.
pub fn node_line(model: &Model, id: NodeId) -> String {
    let Some(node) = model.get_node(id) else { return String::new() };
    let list: Vec<String> = node.attributes.iter().map(|a| attribute_line(model, a)).collect();
    let attributes = if list.is_empty() { String::new() } else { format!(" <{}>", list.join(", ")) };
    format!("{}{attributes} ({})", head_text(model, node), names_text(model, &node.inputs))
}

fn attribute_line(model: &Model, attribute: &Attribute) -> String {
    let list = |items: Vec<String>| format!("[{}]", items.join(", "));
    let body = |g: &GraphId| match model.get_graph(*g).map_or(0, |g| g.nodes.len()) {
        1 => "{1 node}".to_owned(),
        n => format!("{{{n} nodes}}"),
    };
    let value = match &attribute.value {
        AttributeValue::Tensor(t) => tensor_line(t),
        AttributeValue::Tensors(t) => list(t.iter().map(|t| tensor_line(t)).collect()),
        AttributeValue::Sparse(s) => tensor_line(&s.values),
        AttributeValue::Sparses(s) => list(s.iter().map(|s| tensor_line(&s.values)).collect()),
        AttributeValue::Type(d) => type_text(&d.ty),
        AttributeValue::Types(d) => list(d.iter().map(|d| type_text(&d.ty)).collect()),
        AttributeValue::Graph(g) => body(g),
        AttributeValue::Graphs(g) => list(g.iter().map(body).collect()),
        value => plain_value(value).unwrap_or_default(),
    };
    format!("{}: {} = {value}", name(&attribute.name), kind_text(&attribute.value))
}

fn tensor_line(t: &Tensor) -> String {
    format!("{} {}", tensor_type(t), data_line(t))
}

fn data_line(t: &Tensor) -> String {
    let shown = t.element_count().filter(|n| *n <= SHOWN).and_then(|n| match &t.data {
        Data::Bytes(bytes) => numbers(t.element, n as usize, bytes),
        Data::Strings(strings) => Some(strings.iter().map(|s| super::write::text_or_bytes(s)).collect()),
        Data::Missing(_) => None,
    });
    match shown {
        Some(list) => format!("{{{}}}", list.join(", ")),
        None => "{…}".to_owned(),
    }
}

fn constant_line(constant: &Constant, called: &str) -> String {
    match constant {
        Constant::Dense(t) => format!("{} {} = {}", tensor_type(t), name(called), data_line(t)),
        Constant::Sparse(s) => {
            let ty = crate::ir::Type::Sparse {
                element: s.values.element,
                shape: Some(s.dims.iter().map(|d| crate::ir::Dim::Fixed(*d)).collect()),
            };
            format!("{} {} = {{…}}", type_text(&ty), name(called))
        }
    }
}

/// What a patch does, as lines that begin with `-` (was there before), `+` (is there after) or `@` (the graph that the
/// following lines are in, where it is not the main one). The ids of the patch must be real ones ([`Patch::resolve`]).
pub fn patch_text(before: &Model, after: &Model, patch: &Patch) -> String {
    let mut change = Change { before, after, graphs: BTreeMap::new() };
    let (nodes, values, outputs) = touched(before, patch);
    for id in nodes {
        change.node(id);
    }
    for id in values {
        change.value(id);
    }
    for (graph, index) in outputs {
        change.output(graph, index);
    }
    change.finish()
}

/// Nodes, values with data, and graph outputs that a patch may have changed.
fn touched(
    before: &Model,
    patch: &Patch,
) -> (BTreeSet<NodeId>, BTreeSet<ValueId>, BTreeSet<(GraphId, usize)>) {
    let (mut nodes, mut values, mut outputs) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for edit in &patch.edits {
        match edit {
            Edit::AddValue { id, .. } | Edit::RemoveValue { id } => {
                values.insert(*id);
            }
            Edit::SetConstant { value, .. } | Edit::SetType { value, .. } => {
                values.insert(*value);
            }
            Edit::AddNode { id, .. } | Edit::RemoveNode { id } => {
                nodes.insert(*id);
            }
            Edit::SetOperator { node, .. }
            | Edit::SetAttribute { node, .. }
            | Edit::SetInputs { node, .. }
            | Edit::SetOutputs { node, .. }
            | Edit::MoveNode { node, .. } => {
                nodes.insert(*node);
            }
            Edit::ReplaceUses { of, uses, .. } => {
                let all = || before.get_value(*of).map(|v| v.uses.iter().collect()).unwrap_or_default();
                for u in uses.clone().unwrap_or_else(all) {
                    match u {
                        Use::Input { node, .. } => drop(nodes.insert(node)),
                        Use::Output { graph, index } => drop(outputs.insert((graph, index as usize))),
                    }
                }
            }
            Edit::SetGraphOutput { graph, index, .. } => {
                outputs.insert((*graph, *index));
            }
        }
    }
    (nodes, values, outputs)
}

/// Lines of a change, by graph; initializers first, then nodes in order, then outputs.
struct Change<'m> {
    before: &'m Model,
    after: &'m Model,
    graphs: BTreeMap<GraphId, Vec<(Place, char, String)>>,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Initializer(ValueId),
    Node(OrderKey, NodeId),
    Output(usize),
}

impl Change<'_> {
    fn add(&mut self, graph: GraphId, place: Place, sign: char, line: String) {
        self.graphs.entry(graph).or_default().push((place, sign, line));
    }

    fn node(&mut self, id: NodeId) {
        let (old, new) = (node_line(self.before, id), node_line(self.after, id));
        let (was, is) = (self.before.get_node(id), self.after.get_node(id));
        let moved = matches!((was, is), (Some(a), Some(b)) if (a.graph, a.order) != (b.graph, b.order));
        if old == new && !moved {
            return;
        }
        // A changed node stands where it is now, so that both of its lines are together.
        let place = |a: Option<&std::sync::Arc<crate::ir::Node>>,
                     b: Option<&std::sync::Arc<crate::ir::Node>>| {
            a.or(b).map(|n| (n.graph, n.order))
        };
        let stays = matches!((was, is), (Some(a), Some(b)) if a.graph == b.graph);
        let old_place = if stays { place(is, was) } else { place(was, is) };
        if let (Some(_), Some((graph, order))) = (was, old_place) {
            self.add(graph, Place::Node(order, id), '-', old);
        }
        if let (Some(_), Some((graph, order))) = (is, place(is, was)) {
            self.add(graph, Place::Node(order, id), '+', new);
        }
    }

    fn value(&mut self, id: ValueId) {
        let line = |model: &Model| {
            let value = model.get_value(id)?;
            Some((value.graph, constant_line(value.constant.as_ref()?, &value.name)))
        };
        let (old, new) = (line(self.before), line(self.after));
        let constant = |model: &Model| model.get_value(id).and_then(|v| v.constant.clone());
        let same = match (constant(self.before), constant(self.after)) {
            (Some(Constant::Dense(a)), Some(Constant::Dense(b))) => a.same_content(&b),
            (Some(Constant::Sparse(a)), Some(Constant::Sparse(b))) => a.same_content(&b),
            _ => false,
        };
        if same && old == new {
            return;
        }
        for (sign, line) in [('-', old), ('+', new)] {
            if let Some((graph, line)) = line {
                self.add(graph, Place::Initializer(id), sign, line);
            }
        }
    }

    fn output(&mut self, graph: GraphId, index: usize) {
        let line = |model: &Model| {
            let port = model.get_graph(graph)?.outputs.get(index)?;
            Some(format!("output {index}: {}", name(&model.get_value(port.value)?.name)))
        };
        let (old, new) = (line(self.before), line(self.after));
        if old != new {
            for (sign, line) in [('-', old), ('+', new)] {
                if let Some(line) = line {
                    self.add(graph, Place::Output(index), sign, line);
                }
            }
        }
    }

    fn finish(self) -> String {
        let mut out = String::new();
        for (graph, mut lines) in self.graphs {
            // Stable: of one thing the removed line stays before the added one.
            lines.sort_by(|a, b| a.0.cmp(&b.0));
            if graph != self.after.main() {
                let model = if self.after.get_graph(graph).is_some() { self.after } else { self.before };
                out.push_str(&format!("@ {}\n", model.graph_path(graph)));
            }
            for (_, sign, line) in lines {
                out.push_str(&format!("{sign} {line}\n"));
            }
        }
        out
    }
}
