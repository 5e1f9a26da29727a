//! Models as text.

use super::attribute::{kind_text, plain_value};
use super::elements::data_text;
use super::reference::{Reference, Source, reference_text};
use super::types::type_text;
use super::write::{Notes, base64, name, pairs, quoted};
use super::{PrintOptions, lower};
use crate::ir::attribute::{Attribute, AttributeValue};
use crate::ir::ids::{GraphId, NodeId, Text, ValueId};
use crate::ir::model::{Function, Model, Port};
use crate::ir::node::{Declaration, Extra, Node};
use crate::ir::tensor::{Constant, Encoding, SparseTensor, Tensor};
use crate::ir::types::{Dim, Type};
use bytes::Bytes;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A signature or a list longer than this gets a line for each of its parts.
const WIDTH: usize = 100;

/// The text of a model.
pub fn print(model: &Model, options: &PrintOptions<'_>) -> String {
    let mut by_graph: FxHashMap<GraphId, Vec<ValueId>> = FxHashMap::default();
    for (id, value) in model.values() {
        if value.constant.is_some() || value.declaration.is_some() || options.full {
            by_graph.entry(value.graph).or_default().push(id);
        }
    }
    let learned = if options.full { lower::learned_types(model, &by_graph) } else { FxHashMap::default() };
    let source = Source::new(options);
    let left = BTreeMap::new();
    let mut printer = Printer { model, options, source, by_graph, learned, left, out: String::new() };
    printer.model_text();
    printer.out
}

struct Printer<'a> {
    model: &'a Model,
    options: &'a PrintOptions<'a>,
    source: Option<Source<'a>>,
    /// Values with something to say about them.
    by_graph: FxHashMap<GraphId, Vec<ValueId>>,
    /// Types that a reader of the text takes values to have.
    learned: FxHashMap<ValueId, Type>,
    /// What was left out, with how often.
    left: BTreeMap<&'static str, usize>,
    out: String,
}

impl Printer<'_> {
    fn full(&self) -> bool {
        self.options.full
    }

    fn leave_out(&mut self, what: &'static str, count: usize) {
        if count > 0 {
            *self.left.entry(what).or_default() += count;
        }
    }

    fn line(&mut self, indent: usize, text: &str) {
        self.out.extend(std::iter::repeat_n("   ", indent));
        self.out.push_str(text);
        self.out.push('\n');
    }

    /// Documentation, metadata and kept bytes, where they are printed.
    fn about(&mut self, notes: &mut Notes, doc: &str, metadata: &[(Text, Text)], extra: &Option<Arc<Extra>>) {
        if self.full() {
            notes.doc(doc);
            notes.metadata(metadata);
            notes.extra(extra);
        } else {
            self.leave_out("documentation", usize::from(!doc.is_empty()));
            self.leave_out("metadata", metadata.len());
            self.leave_out("kept bytes", extra.iter().count());
        }
    }

    fn model_text(&mut self) {
        let model = self.model;
        let header = model.header();
        let mut notes = Notes::default();
        notes.add("ir_version", header.ir_version);
        notes.add("opset_import", opsets_text(&header.opsets));
        let texts = [
            ("producer_name", &header.producer_name),
            ("producer_version", &header.producer_version),
            ("domain", &header.domain),
        ];
        for (key, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
            notes.add(key, quoted(text));
        }
        if header.model_version != 0 {
            notes.add("model_version", header.model_version);
        }
        self.about(&mut notes, &header.doc, &header.metadata, &header.extra);
        for (key, list) in [("training_info", &header.training), ("configuration", &header.configurations)] {
            if !self.full() {
                self.leave_out("kept messages", list.len());
            } else if !list.is_empty() {
                notes.add(key, bytes_list(list));
            }
        }
        self.entries(notes);
        self.graph(model.main(), 0, "", "", "\n");
        for function in &header.functions {
            self.out.push('\n');
            self.function(function);
        }
        if !self.left.is_empty() {
            let left: Vec<String> = self.left.iter().map(|(what, count)| format!("{count} {what}")).collect();
            self.out.push_str(&format!("# Left out (a full print has all): {}.\n", left.join(", ")));
        }
    }

    /// `<…>` with an entry a line.
    fn entries(&mut self, notes: Notes) {
        self.line(0, "<");
        let entries = notes.entries();
        let last = entries.len().saturating_sub(1);
        for (i, entry) in entries.iter().enumerate() {
            self.line(1, &format!("{entry}{}", if i == last { "" } else { "," }));
        }
        self.line(0, ">");
    }

    fn function(&mut self, function: &Function) {
        let graph = self.model.graph(function.graph).clone();
        let mut notes = Notes::default();
        notes.add("domain", quoted(&function.domain));
        if !function.overload.is_empty() {
            notes.add("overload", quoted(&function.overload));
        }
        notes.add("opset_import", opsets_text(&function.opsets));
        self.about(&mut notes, &graph.doc, &graph.metadata, &function.extra);
        self.entries(notes);
        let mut attributes: Vec<String> = function.attributes.iter().map(|a| name(a)).collect();
        for attribute in &function.defaults {
            attributes.push(self.attribute(attribute, None));
        }
        let attributes =
            if attributes.is_empty() { String::new() } else { format!(" <{}>", attributes.join(", ")) };
        self.graph(function.graph, 0, &name(&function.name), &attributes, "\n");
    }

    /// A graph from its name to its closing brace, which `end` follows. The first line is not indented: something may
    /// stand before it. `called` and `attributes` are a function's.
    fn graph(&mut self, id: GraphId, indent: usize, called: &str, attributes: &str, end: &str) {
        let graph = self.model.graph(id).clone();
        let function = !called.is_empty();
        let mut notes = Notes::default();
        if function {
            if self.full() && name(&graph.name) != called {
                notes.add("graph_name", quoted(&graph.name));
            }
            self.about(&mut notes, "", &[], &graph.extra);
        } else {
            self.about(&mut notes, &graph.doc, &graph.metadata, &graph.extra);
        }
        if !self.full() {
            self.leave_out("kept messages", graph.annotations.len());
        } else if !graph.annotations.is_empty() {
            let list = graph.annotations.iter().map(|(n, bytes)| format!("{}: {}", quoted(n), base64(bytes)));
            notes.add("quantization_annotation", format!("[{}]", list.collect::<Vec<_>>().join(", ")));
        }
        let called = if function { called.to_owned() } else { name(&graph.name) };
        self.out.push_str(&format!("{called}{}{attributes} ", notes.text()));
        self.ports(&graph.inputs, indent, called.len());
        self.out.push_str(" => ");
        self.ports(&graph.outputs, indent, 0);
        let items = self.items(id);
        if items.is_empty() {
            self.out.push_str(" {\n");
        } else {
            self.out.push('\n');
            self.line(indent, "<");
            let last = items.len() - 1;
            for (i, item) in items.iter().enumerate() {
                self.line(indent + 1, &format!("{item}{}", if i == last { "" } else { "," }));
            }
            self.line(indent, ">");
            self.line(indent, "{");
        }
        for node in graph.nodes.values() {
            self.node(*node, indent + 1);
        }
        self.out.extend(std::iter::repeat_n("   ", indent));
        self.out.push('}');
        self.out.push_str(end);
    }

    fn ports(&mut self, ports: &[Port], indent: usize, used: usize) {
        let list: Vec<String> = ports
            .iter()
            .map(|port| {
                let ty = match &port.declaration.ty {
                    Type::Unknown => String::new(),
                    ty => format!("{} ", type_text(ty)),
                };
                let notes = self.declaration_notes(&port.declaration, port.declaration.position, 0);
                format!("{ty}{}{}", name(&self.model.value(port.value).name), notes.text())
            })
            .collect();
        if used + list.iter().map(|p| p.len() + 2).sum::<usize>() <= WIDTH {
            self.out.push_str(&format!("({})", list.join(", ")));
            return;
        }
        self.out.push_str("(\n");
        let last = list.len().saturating_sub(1);
        for (i, port) in list.iter().enumerate() {
            self.line(indent + 1, &format!("{port}{}", if i == last { "" } else { "," }));
        }
        self.out.extend(std::iter::repeat_n("   ", indent));
        self.out.push(')');
    }

    fn declaration_notes(&mut self, d: &Declaration, position: u32, expected: u32) -> Notes {
        let mut notes = Notes::default();
        if self.full() {
            if let Some(doc) = &d.doc {
                notes.add("doc_string", quoted(doc));
            }
            if let Some(raw) = &d.raw {
                notes.add("type_proto", base64(raw));
            }
            if position != expected {
                notes.add("position", position);
            }
        } else {
            self.leave_out("documentation", usize::from(d.doc.as_ref().is_some_and(|doc| !doc.is_empty())));
            self.leave_out("kept bytes", d.raw.iter().count());
        }
        self.about(&mut notes, "", &d.metadata, &d.extra);
        notes
    }

    /// What stands between outputs and nodes: initializers, then declared types, each in file order.
    fn items(&mut self, id: GraphId) -> Vec<String> {
        let model = self.model;
        let values = self.by_graph.get(&id).cloned().unwrap_or_default();
        let mut constants: Vec<(u32, ValueId)> = values
            .iter()
            .filter(|v| model.value(**v).constant.is_some())
            .map(|v| (model.value(*v).constant_position, *v))
            .collect();
        constants.sort();
        let mut items = Vec::new();
        let mut expected = 0u32;
        for (position, value) in constants {
            items.push(self.initializer(id, value, position, expected));
            expected = position.saturating_add(1);
        }
        let strays = model.graph(id).stray_declarations.clone();
        let mut declared: Vec<(u32, bool, Text, Arc<Declaration>)> =
            strays.iter().map(|(n, d)| (d.position, true, n.clone(), d.clone())).collect();
        for value in values.iter().map(|v| model.value(*v)) {
            if let Some(d) = &value.declaration {
                declared.push((d.position, false, value.name.clone(), d.clone()));
            }
        }
        declared.sort_by_key(|(position, stray, ..)| (*position, *stray));
        if !self.full() {
            self.leave_out("declared types", declared.len());
            return items;
        }
        let mut expected = 0u32;
        for (position, stray, n, d) in declared {
            let mut notes = self.declaration_notes(&d, position, expected);
            expected = position.saturating_add(1);
            let known = model.find_value(id, &n).is_some_and(|v| model.value(v).graph == id);
            if stray && known {
                notes.add("stray", true);
            }
            items.push(format!("{} {}{}", type_text(&d.ty), name(&n), notes.text()));
        }
        for id in values {
            let value = model.value(id);
            if value.ty != *self.learned.get(&id).unwrap_or(&Type::Unknown) {
                let mut notes = Notes::default();
                notes.add("value_type", type_text(&value.ty));
                items.push(format!("{}{}", name(&value.name), notes.text()));
            }
        }
        items
    }

    fn initializer(&mut self, graph: GraphId, id: ValueId, position: u32, expected: u32) -> String {
        let value = self.model.value(id).clone();
        let mut notes = Notes::default();
        if position != expected && self.full() {
            notes.add("position", position);
        }
        let place = Reference {
            graph: self.model.graph_path(graph).into(),
            value: value.name.clone(),
            attribute: None,
            indices: None,
        };
        match &value.constant {
            Some(Constant::Dense(t)) => {
                if self.full() && !t.name.is_empty() {
                    notes.add("tensor_name", quoted(&t.name));
                }
                let data = self.data(t, Some(&place), &mut notes);
                format!("{} {}{} = {data}", tensor_type(t), name(&value.name), notes.text())
            }
            Some(Constant::Sparse(s)) => {
                self.about(&mut notes, "", &[], &s.extra);
                let data = self.sparse_data(s, Some(&place));
                format!("{} {}{} = {data}", sparse_type(s), name(&value.name), notes.text())
            }
            None => String::new(),
        }
    }

    /// Data of a tensor, inline or by reference; what else is to be said about it goes to the notes.
    fn data(&mut self, t: &Tensor, place: Option<&Reference>, notes: &mut Notes) -> String {
        let reference = place.and_then(|p| reference_text(t, p, self.options.weights, self.source.as_ref()));
        self.about(notes, &t.doc, &t.metadata, &None);
        // A reference brings the encoding of its file along.
        let usual = reference.as_ref().map_or(Encoding::Raw, |(_, encoding)| encoding.clone());
        if t.encoding != usual {
            match &t.encoding {
                _ if !self.full() => self.leave_out("ways of storage", 1),
                Encoding::Raw => notes.add("encoding", "raw"),
                Encoding::Typed => notes.add("encoding", "typed"),
                Encoding::External(entries) => notes.add("external_data", pairs(entries)),
            }
        }
        self.about(notes, "", &[], &t.extra);
        reference.map(|(reference, _)| reference).unwrap_or_else(|| data_text(t))
    }

    /// A tensor from its type to its data.
    fn tensor(&mut self, t: &Tensor, place: Option<&Reference>) -> String {
        let mut notes = Notes::default();
        let data = self.data(t, place, &mut notes);
        let called = if t.name.is_empty() { String::new() } else { format!(" {}", name(&t.name)) };
        // ONNX's syntax has data in braces right here, and all else after an equals sign.
        let equals = if data.starts_with('{') { "" } else { "= " };
        format!("{}{called}{} {equals}{data}", tensor_type(t), notes.text())
    }

    fn sparse_data(&mut self, s: &SparseTensor, place: Option<&Reference>) -> String {
        let part = |indices| place.map(|p| Reference { indices: Some(indices), ..p.clone() });
        let values = self.tensor(&s.values, part(false).as_ref());
        let indices = self.tensor(&s.indices, part(true).as_ref());
        format!("({values}, {indices})")
    }

    fn node(&mut self, id: NodeId, indent: usize) {
        let node = self.model.node(id).clone();
        self.out.extend(std::iter::repeat_n("   ", indent));
        self.out.push_str(&head_text(self.model, &node));
        let with_bodies = node.bodies().next().is_some();
        let inputs = format!(" ({})", names_text(self.model, &node.inputs));
        let place = |attribute: &Attribute, model: &Model| {
            let output = node.outputs.iter().flatten().next()?;
            Some(Reference {
                graph: model.graph_path(node.graph).into(),
                value: model.value(*output).name.clone(),
                attribute: Some((attribute.name.clone(), 0)),
                indices: None,
            })
        };
        if with_bodies {
            self.out.push_str(&inputs);
            self.out.push_str(" <\n");
            let last = node.attributes.len() - 1;
            for (i, attribute) in node.attributes.iter().enumerate() {
                let end = if i == last { "\n" } else { ",\n" };
                self.out.extend(std::iter::repeat_n("   ", indent + 1));
                if attribute.value.graphs().is_empty() {
                    let text = self.attribute(attribute, place(attribute, self.model).as_ref());
                    self.out.push_str(&text);
                    self.out.push_str(end);
                } else {
                    self.bodies(attribute, indent + 1, end);
                }
            }
            self.out.extend(std::iter::repeat_n("   ", indent));
            self.out.push('>');
        } else {
            if !node.attributes.is_empty() {
                let place = |a: &Attribute| place(a, self.model);
                let places: Vec<Option<Reference>> = node.attributes.iter().map(place).collect();
                let list: Vec<String> =
                    node.attributes.iter().zip(&places).map(|(a, p)| self.attribute(a, p.as_ref())).collect();
                self.out.push_str(&format!(" <{}>", list.join(", ")));
            }
            self.out.push_str(&inputs);
        }
        let mut notes = Notes::default();
        self.about(&mut notes, &node.doc, &node.metadata, &node.extra);
        self.out.push_str(&notes.text());
        if !self.full() {
            self.out.push_str(&types_comment(self.model, &node));
        }
        self.out.push('\n');
    }

    fn bodies(&mut self, attribute: &Attribute, indent: usize, end: &str) {
        let list = matches!(attribute.value, AttributeValue::Graphs(_));
        let mut notes = Notes::default();
        self.about(&mut notes, &attribute.doc, &[], &attribute.extra);
        let kind = kind_text(&attribute.value);
        let open = if list { "[" } else { "" };
        self.out.push_str(&format!("{}{}: {kind} = {open}", name(&attribute.name), notes.text()));
        let bodies = attribute.value.graphs();
        for (i, body) in bodies.iter().enumerate() {
            let end = match (i + 1 == bodies.len(), list) {
                (false, _) => ", ".to_owned(),
                (true, true) => format!("]{end}"),
                (true, false) => end.to_owned(),
            };
            self.graph(*body, indent, "", "", &end);
        }
    }

    /// An attribute without graphs.
    fn attribute(&mut self, attribute: &Attribute, place: Option<&Reference>) -> String {
        let mut notes = Notes::default();
        self.about(&mut notes, &attribute.doc, &[], &attribute.extra);
        let at = |index: usize| {
            let (name, _) = place?.attribute.clone()?;
            Some(Reference { attribute: Some((name, index as u32)), ..place?.clone() })
        };
        let value = match &attribute.value {
            AttributeValue::Tensor(t) => self.tensor(t, place),
            AttributeValue::Sparse(s) => format!("{} {}", self.sparse_head(s), self.sparse_data(s, place)),
            AttributeValue::Type(d) => self.type_value(d),
            AttributeValue::Tensors(list) => {
                let list = list.iter().enumerate().map(|(i, t)| self.tensor(t, at(i).as_ref()));
                format!("[{}]", list.collect::<Vec<_>>().join(", "))
            }
            AttributeValue::Sparses(list) => {
                let list = list.iter().enumerate();
                let list = list
                    .map(|(i, s)| format!("{} {}", self.sparse_head(s), self.sparse_data(s, at(i).as_ref())));
                format!("[{}]", list.collect::<Vec<_>>().join(", "))
            }
            AttributeValue::Types(list) => {
                let list: Vec<String> = list.iter().map(|d| self.type_value(d)).collect();
                format!("[{}]", list.join(", "))
            }
            value => plain_value(value).unwrap_or_else(|| "[]".to_owned()),
        };
        format!("{}{}: {} = {value}", name(&attribute.name), notes.text(), kind_text(&attribute.value))
    }

    fn sparse_head(&mut self, s: &SparseTensor) -> String {
        let mut notes = Notes::default();
        self.about(&mut notes, "", &[], &s.extra);
        format!("{}{}", sparse_type(s), notes.text())
    }

    fn type_value(&mut self, d: &Declaration) -> String {
        let notes = self.declaration_notes(d, d.position, 0);
        format!("{}{}", type_text(&d.ty), notes.text())
    }
}

/// Label, outputs and operator of a node, up to its attributes.
pub(super) fn head_text(model: &Model, node: &Node) -> String {
    let label = if node.name.is_empty() { String::new() } else { format!("[{}] ", name(&node.name)) };
    let outputs = names_text(model, &node.outputs);
    let space = if outputs.is_empty() { "" } else { " " };
    let mut operator = String::new();
    if !node.domain.is_empty() {
        let plain = node.domain.split('.').all(super::write::is_identifier);
        operator = if plain { format!("{}.", node.domain) } else { format!("{}.", quoted(&node.domain)) };
    }
    operator.push_str(&name(&node.op_type));
    if !node.overload.is_empty() {
        operator.push_str(&format!(":{}", name(&node.overload)));
    }
    format!("{label}{outputs}{space}= {operator}")
}

/// Names of values, `""` for those that are skipped.
pub(super) fn names_text(model: &Model, values: &[Option<ValueId>]) -> String {
    let one = |v: &Option<ValueId>| match v {
        Some(v) => model.get_value(*v).map(|v| name(&v.name)).unwrap_or_else(|| quoted(&v.to_string())),
        None => "\"\"".to_owned(),
    };
    values.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Declared types of a node's outputs, where any is known.
fn types_comment(model: &Model, node: &Node) -> String {
    let values = node.outputs.iter().flatten().filter_map(|v| model.get_value(*v));
    let types: Vec<&Type> = values.map(|v| &v.ty).collect();
    if types.iter().all(|t| matches!(t, Type::Unknown)) {
        return String::new();
    }
    format!("  # {}", types.into_iter().map(type_text).collect::<Vec<_>>().join(", "))
}

/// Type of a tensor as it stands before its data.
pub(super) fn tensor_type(t: &Tensor) -> String {
    type_text(&t.ty())
}

fn sparse_type(s: &SparseTensor) -> String {
    let shape = Some(s.dims.iter().map(|d| Dim::Fixed(*d)).collect());
    type_text(&Type::Sparse { element: s.values.element, shape })
}

fn opsets_text(opsets: &[(Text, i64)]) -> String {
    let list: Vec<String> = opsets.iter().map(|(d, v)| format!("{} : {v}", quoted(d))).collect();
    format!("[{}]", list.join(", "))
}

fn bytes_list(list: &[Bytes]) -> String {
    format!("[{}]", list.iter().map(|b| base64(b)).collect::<Vec<_>>().join(", "))
}
