//! Syntax to model: names get their values, graphs their places, and types are learned as a file's reader learns them.

use super::lex::At;
use super::parse::{AttributeText, FunctionText, GraphText, Item, ModelText, NodeText, ValueText};
use crate::ir::attribute::{Attribute, AttributeValue};
use crate::ir::check::{self, Fault};
use crate::ir::construct::Construction;
use crate::ir::ids::{GraphId, NodeId, Text, ValueId};
use crate::ir::model::{Function, GraphKind, Model};
use crate::ir::node::{Declaration, Node, Producer, Value};
use crate::ir::tensor::Constant;
use crate::ir::types::Type;
use rustc_hash::FxHashMap;
use std::sync::Arc;

type Result<T> = std::result::Result<T, (At, String)>;

/// The model of a parsed text.
pub(super) fn lower(text: ModelText) -> Result<Model> {
    let mut lower = Lower { c: Construction::new(text.header), frames: Vec::new() };
    let main = lower.c.main();
    lower.graph(main, text.graph, false)?;
    let mut functions = Vec::with_capacity(text.functions.len());
    let places: Vec<(Text, At)> = text.functions.iter().map(|f| (f.name.clone(), f.at)).collect();
    for (index, function) in text.functions.into_iter().enumerate() {
        functions.push(lower.function(index, function)?);
    }
    lower.c.header.functions = functions;
    let model = lower.c.finish();
    match check::check(&model).into_iter().next() {
        None => Ok(model),
        Some(Fault::RecursiveFunction(name)) => {
            let at = places.iter().find(|(n, _)| *n == name).map_or(0, |(_, at)| *at);
            Err((at, Fault::RecursiveFunction(name).to_string()))
        }
        Some(fault) => Err((0, fault.to_string())),
    }
}

/// What a name means in a graph that is being read.
#[derive(Clone, Copy)]
struct Known {
    value: ValueId,
    /// Position of the node that gives it.
    producer: Option<usize>,
}

struct Frame {
    names: FxHashMap<Text, Known>,
    /// Position of the node that is being read.
    current: usize,
}

struct Lower {
    c: Construction,
    frames: Vec<Frame>,
}

impl Lower {
    fn graph(&mut self, id: GraphId, text: GraphText, function: bool) -> Result<()> {
        let draft = self.c.graph_mut(id);
        draft.name = text.name;
        draft.doc = text.doc;
        draft.metadata = text.metadata;
        draft.annotations = text.annotations;
        draft.extra = text.extra;
        self.frames.push(Frame { names: FxHashMap::default(), current: 0 });
        let mut next_constant = 0u32;
        let mut next_declaration = 0u32;
        for mut item in text.inputs {
            let declared = item.declaration.take();
            let port = if function { Declaration::default() } else { declared.clone().unwrap_or_default() };
            let constant = item.constant.take();
            let ty = match &constant {
                Some(c) if item.declaration.is_none() && port.ty == Type::Unknown => c.ty(),
                _ => port.ty.clone(),
            };
            let value = self.define(id, &item, ty.clone(), None)?;
            let port = if constant.is_some() { Declaration { ty, ..port } } else { port };
            self.c.add_input(id, value, port);
            if let Some(constant) = constant {
                self.constant(value, constant, item.position, &mut next_constant);
            }
            if let Some(declared) = declared.filter(|_| function) {
                self.declare(id, &item, declared, &mut next_declaration);
            }
        }
        let (constants, declarations): (Vec<Item>, Vec<Item>) =
            text.items.into_iter().partition(|item| item.constant.is_some());
        for mut item in constants {
            let Some(constant) = item.constant.take() else { continue };
            let known = self.frames.last().and_then(|f| f.names.get(&item.name)).map(|known| known.value);
            let value = match known {
                Some(v) if self.c.value(v).constant.is_none() => v,
                Some(_) => return Err((item.at, format!("two initializers have the name '{}'", item.name))),
                None => self.define(id, &item, constant.ty(), None)?,
            };
            self.constant(value, constant, item.position, &mut next_constant);
            if let Some(ty) = item.value_type {
                self.c.value_mut(value).ty = ty;
            }
        }
        self.nodes(id, text.nodes)?;
        for mut item in text.outputs {
            let declared = item.declaration.take();
            let port = if function { Declaration::default() } else { declared.clone().unwrap_or_default() };
            let value = self.resolve(&item.name, item.at)?;
            self.learn(value, &port.ty);
            self.c.add_output(id, value, port);
            if let Some(declared) = declared.filter(|_| function) {
                self.declare(id, &item, declared, &mut next_declaration);
            }
        }
        for mut item in declarations {
            let known = self.frames.last().and_then(|f| f.names.get(&item.name)).copied();
            if let Some(declared) = item.declaration.take() {
                self.declare(id, &item, declared, &mut next_declaration);
            } else if known.is_none() {
                return Err((item.at, format!("nothing in this graph has the name '{}'", item.name)));
            }
            if let (Some(known), Some(ty)) = (known, item.value_type) {
                self.c.value_mut(known.value).ty = ty;
            }
        }
        self.frames.pop();
        Ok(())
    }

    fn constant(&mut self, value: ValueId, constant: Constant, position: Option<u32>, next: &mut u32) {
        let position = position.unwrap_or(*next);
        *next = position.saturating_add(1);
        let v = self.c.value_mut(value);
        v.constant = Some(constant);
        v.constant_position = position;
        if matches!(v.producer, Producer::Nothing) {
            v.producer = Producer::Initializer;
        }
    }

    fn declare(&mut self, graph: GraphId, item: &Item, mut declared: Declaration, next: &mut u32) {
        declared.position = item.position.unwrap_or(*next);
        *next = declared.position.saturating_add(1);
        let known = self.frames.last().and_then(|f| f.names.get(&item.name)).map(|known| known.value);
        match known {
            Some(v) if !item.stray && self.c.value(v).declaration.is_none() => {
                self.learn(v, &declared.ty);
                self.c.value_mut(v).declaration = Some(Arc::new(declared));
            }
            _ => {
                let strays = &mut self.c.graph_mut(graph).stray_declarations;
                strays.push((item.name.clone(), Arc::new(declared)));
            }
        }
    }

    fn learn(&mut self, value: ValueId, ty: &Type) {
        let v = self.c.value_mut(value);
        if v.ty == Type::Unknown {
            v.ty = ty.clone();
        }
    }

    fn define(&mut self, graph: GraphId, item: &Item, ty: Type, producer: Option<usize>) -> Result<ValueId> {
        self.define_name(graph, &item.name, item.at, ty, producer)
    }

    fn define_name(
        &mut self,
        graph: GraphId,
        name: &Text,
        at: At,
        ty: Type,
        producer: Option<usize>,
    ) -> Result<ValueId> {
        if name.is_empty() {
            return Err((at, "an input or initializer needs a name".to_owned()));
        }
        let value = self.c.add_value(Value::new(graph, name.clone(), ty));
        let known = Known { value, producer };
        match self.frames.last_mut().and_then(|f| f.names.insert(name.clone(), known)) {
            Some(_) => Err((at, format!("two values of this graph have the name '{name}'"))),
            None => Ok(value),
        }
    }

    /// The value that a name means here: of the innermost graph that has it.
    fn resolve(&self, name: &Text, at: At) -> Result<ValueId> {
        for frame in self.frames.iter().rev() {
            match frame.names.get(name) {
                Some(Known { producer: Some(p), .. }) if *p >= frame.current => {
                    return Err((at, format!("'{name}' is read before the node that gives it")));
                }
                Some(known) => return Ok(known.value),
                None => {}
            }
        }
        Err((at, format!("nothing gives '{name}'")))
    }

    fn nodes(&mut self, graph: GraphId, nodes: Vec<NodeText>) -> Result<()> {
        let mut outputs = Vec::with_capacity(nodes.len());
        for (position, node) in nodes.iter().enumerate() {
            let mut ids: smallvec::SmallVec<[Option<ValueId>; 2]> = Default::default();
            for (at, name) in &node.outputs {
                ids.push(match name.is_empty() {
                    true => None,
                    false => Some(self.define_name(graph, name, *at, Type::Unknown, Some(position))?),
                });
            }
            outputs.push(ids);
        }
        let count = nodes.len();
        for (position, (text, outputs)) in nodes.into_iter().zip(outputs).enumerate() {
            self.set_current(position);
            let id = self.c.reserve_node();
            let mut node = Node::new(graph, &text.op_type);
            node.name = text.name;
            node.domain = text.domain;
            node.overload = text.overload;
            node.doc = text.doc;
            node.metadata = text.metadata;
            node.extra = text.extra;
            node.outputs = outputs;
            for (at, name) in &text.inputs {
                node.inputs.push(if name.is_empty() { None } else { Some(self.resolve(name, *at)?) });
            }
            for attribute in text.attributes {
                node.attributes.push(self.attribute(id, attribute)?);
            }
            self.c.set_node(id, node);
        }
        self.set_current(count);
        Ok(())
    }

    fn set_current(&mut self, position: usize) {
        if let Some(frame) = self.frames.last_mut() {
            frame.current = position;
        }
    }

    fn attribute(&mut self, owner: NodeId, text: AttributeText) -> Result<Attribute> {
        let value = match text.value {
            ValueText::Plain(value) => value,
            ValueText::Graph(body) => AttributeValue::Graph(self.body(owner, &text.name, 0, *body)?),
            ValueText::Graphs(bodies) => {
                let mut ids = Vec::with_capacity(bodies.len());
                for (index, body) in bodies.into_iter().enumerate() {
                    ids.push(self.body(owner, &text.name, index as u32, body)?);
                }
                AttributeValue::Graphs(ids.into())
            }
        };
        Ok(Attribute { name: text.name, value, doc: text.doc, extra: text.extra })
    }

    fn body(&mut self, owner: NodeId, attribute: &Text, index: u32, body: GraphText) -> Result<GraphId> {
        let id = self.c.add_graph(GraphKind::Body { owner, attribute: attribute.clone(), index });
        self.graph(id, body, false)?;
        Ok(id)
    }

    fn function(&mut self, index: usize, text: FunctionText) -> Result<Function> {
        let graph = self.c.add_graph(GraphKind::Function(index as u32));
        self.graph(graph, text.graph, true)?;
        let mut defaults = Vec::with_capacity(text.defaults.len());
        for default in text.defaults {
            match default.value {
                ValueText::Plain(value) => {
                    let (name, doc, extra) = (default.name, default.doc, default.extra);
                    defaults.push(Attribute { name, value, doc, extra });
                }
                _ => {
                    return Err((
                        default.at,
                        "the default of a function's attribute cannot be a graph".to_owned(),
                    ));
                }
            }
        }
        Ok(Function {
            name: text.name,
            domain: text.domain,
            overload: text.overload,
            graph,
            attributes: text.attributes,
            defaults,
            opsets: text.opsets,
            extra: text.extra,
        })
    }
}

/// Types that [`lower`] would give the values of a model, so that only others need to be printed.
pub(super) fn learned_types(
    model: &Model,
    by_graph: &FxHashMap<GraphId, Vec<ValueId>>,
) -> FxHashMap<ValueId, Type> {
    let mut learned = FxHashMap::default();
    let functions = model.header().functions.iter().map(|f| f.graph);
    for root in std::iter::once(model.main()).chain(functions) {
        learn_graph(model, root, by_graph, &mut learned);
    }
    learned
}

fn learn_graph(
    model: &Model,
    id: GraphId,
    by_graph: &FxHashMap<GraphId, Vec<ValueId>>,
    learned: &mut FxHashMap<ValueId, Type>,
) {
    let graph = model.graph(id);
    let learn = |learned: &mut FxHashMap<ValueId, Type>, value: ValueId, ty: &Type| {
        let known = learned.entry(value).or_default();
        if *known == Type::Unknown {
            *known = ty.clone();
        }
    };
    for port in graph.inputs.iter() {
        learned.insert(port.value, port.declaration.ty.clone());
    }
    let values = by_graph.get(&id).map(Vec::as_slice).unwrap_or_default();
    for value in values {
        let v = model.value(*value);
        if let (Producer::Initializer, Some(constant)) = (v.producer, &v.constant) {
            learned.insert(*value, constant.ty());
        }
    }
    for (_, node) in model.nodes_of(id) {
        for (_, body) in node.bodies() {
            learn_graph(model, body, by_graph, learned);
        }
    }
    for port in graph.outputs.iter() {
        learn(learned, port.value, &port.declaration.ty);
    }
    let mut declared: Vec<(u32, ValueId)> =
        values.iter().filter_map(|v| Some((model.value(*v).declaration.as_ref()?.position, *v))).collect();
    declared.sort();
    for (_, value) in declared {
        if let Some(d) = &model.value(value).declaration {
            learn(learned, value, &d.ty);
        }
    }
}
