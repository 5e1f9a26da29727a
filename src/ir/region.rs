//! A part of a graph as a model of its own.

use super::attribute::{Attribute, AttributeValue};
use super::construct::Construction;
use super::ids::{GraphId, NodeId, Text, ValueId};
use super::model::{Function, GraphKind, Header, Model};
use super::node::{Declaration, Node, Producer, Value};
use super::types::Type;
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;

/// Why a region cannot be taken out.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum RegionError {
    #[error("nothing is to be computed: name at least one value to end with")]
    NoEnd,
    #[error("'{value}' is in {found}, but the region is in {wanted}")]
    OtherGraph { value: Text, found: String, wanted: String },
    #[error("'{0}' is computed from nothing: it is an input or a constant already")]
    NotComputed(Text),
    #[error("the region also needs {}; begin with {} too", .0.join(", "), if .0.len() == 1 { "it" } else { "them" })]
    Missing(Vec<String>),
    #[error("'{0}' is not needed for the values to end with")]
    NotNeeded(Text),
    #[error("the type of '{0}' is not known, so it can be neither input nor output of a model")]
    UnknownType(Text),
    #[error("node '{0}' takes an attribute from the call of its function and cannot stand alone")]
    TakesFromCall(String),
}

/// The nodes that compute `to` from `from` as a model: `from` become inputs, `to` outputs, with the types that `ty` tells;
/// initializers come along, and so do model-local functions. With an empty `from` the region begins at the graph's inputs.
///
/// # Errors
/// When something else is needed that `from` does not have, when ends are in different graphs, or a type is unknown.
pub fn extract(
    model: &Model,
    from: &[ValueId],
    to: &[ValueId],
    ty: &dyn Fn(ValueId) -> Type,
) -> Result<Model, RegionError> {
    let graph = model.value(*to.first().ok_or(RegionError::NoEnd)?).graph;
    let region = Region::find(model, graph, from, to)?;
    region.model(from, to, ty)
}

struct Region<'m> {
    model: &'m Model,
    graph: GraphId,
    nodes: BTreeSet<NodeId>,
    /// Values that come from outside: `from`, or formal inputs where nothing was said.
    inputs: BTreeSet<ValueId>,
    constants: BTreeSet<ValueId>,
}

impl<'m> Region<'m> {
    fn find(
        model: &'m Model,
        graph: GraphId,
        from: &[ValueId],
        to: &[ValueId],
    ) -> Result<Region<'m>, RegionError> {
        let name = |v: ValueId| model.value(v).name.clone();
        for value in from.iter().chain(to) {
            let found = model.value(*value).graph;
            // A body sees the values of the graphs around it, so they may be inputs; ends must be computed here.
            let fits = if to.contains(value) {
                found == graph
            } else {
                model.enclosing_node(found, graph).is_some()
            };
            if !fits {
                let (found, wanted) = (model.graph_path(found), model.graph_path(graph));
                return Err(RegionError::OtherGraph { value: name(*value), found, wanted });
            }
        }
        let begin: BTreeSet<ValueId> = from.iter().copied().collect();
        let mut region = Region {
            model,
            graph,
            nodes: BTreeSet::new(),
            inputs: BTreeSet::new(),
            constants: BTreeSet::new(),
        };
        let mut missing: BTreeSet<ValueId> = BTreeSet::new();
        let mut queue: Vec<ValueId> = Vec::new();
        for value in to {
            match model.value(*value).node() {
                Some(_) if !begin.contains(value) => queue.push(*value),
                _ => return Err(RegionError::NotComputed(name(*value))),
            }
        }
        let mut seen: BTreeSet<ValueId> = BTreeSet::new();
        while let Some(value) = queue.pop() {
            if !seen.insert(value) {
                continue;
            }
            if begin.contains(&value) {
                region.inputs.insert(value);
                continue;
            }
            let v = model.value(value);
            match v.producer {
                Producer::Node { node, .. } if v.graph == graph => {
                    if region.nodes.insert(node) {
                        queue.extend(reads(model, node));
                    }
                }
                _ if v.constant.is_some() => drop(region.constants.insert(value)),
                Producer::Input { .. } if from.is_empty() && v.graph == graph => {
                    region.inputs.insert(value);
                }
                _ => drop(missing.insert(value)),
            }
        }
        if !missing.is_empty() {
            let mut missing: Vec<ValueId> = missing.into_iter().collect();
            missing.sort_by_key(|v| region.rank(*v));
            let described = missing.iter().map(|v| region.described(*v)).collect();
            return Err(RegionError::Missing(described));
        }
        match from.iter().find(|v| !region.inputs.contains(v)) {
            Some(unneeded) => Err(RegionError::NotNeeded(name(*unneeded))),
            None => Ok(region),
        }
    }

    /// Formal inputs by position, then the others.
    fn rank(&self, value: ValueId) -> (u32, ValueId) {
        match self.model.value(value).producer {
            Producer::Input { index } => (index, value),
            _ => (u32::MAX, value),
        }
    }

    fn described(&self, value: ValueId) -> String {
        let v = self.model.value(value);
        match v.producer {
            Producer::Input { .. } if v.graph == self.graph => {
                format!("'{}' (an input of the graph)", v.name)
            }
            _ if v.graph != self.graph => format!("'{}' (of {})", v.name, self.model.graph_path(v.graph)),
            _ => format!("'{}'", v.name),
        }
    }

    fn model(
        &self,
        from: &[ValueId],
        to: &[ValueId],
        ty: &dyn Fn(ValueId) -> Type,
    ) -> Result<Model, RegionError> {
        let old = self.model.header();
        let opsets = match self.model.root_of(self.graph) {
            GraphKind::Function(index) => {
                old.functions.get(index as usize).map_or(&old.opsets, |f| &f.opsets).clone()
            }
            _ => old.opsets.clone(),
        };
        let header = Header { functions: Vec::new(), training: Vec::new(), opsets, ..old.clone() };
        let mut copy = Copy { model: self.model, into: Construction::new(header), values: BTreeMap::new() };
        let main = copy.into.main();
        copy.into.graph_mut(main).name = self.model.graph(self.graph).name.clone();
        let typed = |value: ValueId| match ty(value) {
            Type::Unknown => Err(RegionError::UnknownType(self.model.value(value).name.clone())),
            ty => Ok(ty),
        };
        let mut inputs: Vec<ValueId> = match from.is_empty() {
            true => self.inputs.iter().copied().collect(),
            false => from.to_vec(),
        };
        if from.is_empty() {
            inputs.sort_by_key(|v| self.rank(*v));
        }
        for value in &inputs {
            let id = copy.value(*value, main, typed(*value)?);
            copy.into.add_input(main, id, Declaration::of(typed(*value)?));
        }
        for value in &self.constants {
            let source = self.model.value(*value);
            let id = copy.value(*value, main, source.ty.clone());
            copy.into.value_mut(id).constant = source.constant.clone();
            copy.into.value_mut(id).constant_position = source.constant_position;
            match source.producer {
                // A default stays one, and up to IR version 3 every initializer is listed as an input.
                Producer::Input { .. } => copy.into.add_input(main, id, Declaration::of(source.ty.clone())),
                _ => copy.into.value_mut(id).producer = Producer::Initializer,
            }
        }
        let ordered = self.model.nodes_of(self.graph).filter(|(id, _)| self.nodes.contains(id));
        for (id, node) in ordered {
            let inside_function = matches!(self.model.root_of(self.graph), GraphKind::Function(_));
            if inside_function && node.has_attribute_references() {
                return Err(RegionError::TakesFromCall(self.model.node_label(id)));
            }
            copy.node(node, main);
        }
        for value in to {
            let id = copy.existing(*value);
            copy.into.add_output(main, id, Declaration::of(typed(*value)?));
        }
        for function in &old.functions {
            copy.function(function);
        }
        Ok(copy.into.finish())
    }
}

/// Everything that a node reads: its inputs, and what its bodies take from outside.
fn reads(model: &Model, node: NodeId) -> Vec<ValueId> {
    let mut found: Vec<ValueId> = model.node(node).inputs.iter().flatten().copied().collect();
    for (_, body) in model.node(node).bodies() {
        captured(model, body, body, &mut found);
    }
    found
}

/// Values that `graph`, or a body in it, reads and that are defined outside `outermost`.
fn captured(model: &Model, graph: GraphId, outermost: GraphId, found: &mut Vec<ValueId>) {
    let outside = |v: ValueId| model.enclosing_node(outermost, model.value(v).graph).is_none();
    for (_, node) in model.nodes_of(graph) {
        found.extend(node.inputs.iter().flatten().copied().filter(|v| outside(*v)));
        for (_, body) in node.bodies() {
            captured(model, body, outermost, found);
        }
    }
    found.extend(model.graph(graph).outputs.iter().map(|p| p.value).filter(|v| outside(*v)));
}

/// Copies nodes, values and graphs into another construction.
struct Copy<'m> {
    model: &'m Model,
    into: Construction,
    values: BTreeMap<ValueId, ValueId>,
}

impl Copy<'_> {
    fn value(&mut self, value: ValueId, graph: GraphId, ty: Type) -> ValueId {
        let id = self.into.add_value(Value::new(graph, self.model.value(value).name.clone(), ty));
        self.values.insert(value, id);
        id
    }

    /// The copy of a value. In a sound model it is there, since producers are copied before readers; else it gets a copy
    /// that nothing produces, which a check of the result then names.
    fn existing(&mut self, value: ValueId) -> ValueId {
        match self.values.get(&value) {
            Some(copy) => *copy,
            None => self.value(value, self.into.main(), Type::Unknown),
        }
    }

    fn node(&mut self, source: &Node, graph: GraphId) {
        let id = self.into.reserve_node();
        let mut node = Node { graph, ..source.clone() };
        for input in node.inputs.iter_mut().flatten() {
            *input = self.existing(*input);
        }
        for output in node.outputs.iter_mut().flatten() {
            let old = self.model.value(*output);
            let (ty, declaration) = (old.ty.clone(), old.declaration.clone());
            let new = self.value(*output, graph, ty);
            self.into.value_mut(new).declaration = declaration;
            *output = new;
        }
        for attribute in &mut node.attributes {
            self.attribute(attribute, id);
        }
        self.into.set_node(id, node);
    }

    fn attribute(&mut self, attribute: &mut Attribute, owner: NodeId) {
        let name = attribute.name.clone();
        let mut body = |source: GraphId, index: u32| {
            let kind = GraphKind::Body { owner, attribute: name.clone(), index };
            self.graph(source, kind)
        };
        match &mut attribute.value {
            AttributeValue::Graph(graph) => *graph = body(*graph, 0),
            AttributeValue::Graphs(graphs) => {
                let copies: Vec<GraphId> =
                    graphs.iter().enumerate().map(|(index, graph)| body(*graph, index as u32)).collect();
                *graphs = copies.into();
            }
            _ => {}
        }
    }

    /// A graph with everything in it.
    fn graph(&mut self, source: GraphId, kind: GraphKind) -> GraphId {
        let old = self.model.graph(source).clone();
        let graph = self.into.add_graph(kind);
        let draft = self.into.graph_mut(graph);
        draft.name = old.name.clone();
        draft.doc = old.doc.clone();
        draft.metadata = old.metadata.clone();
        draft.annotations = old.annotations.to_vec();
        draft.stray_declarations = old.stray_declarations.to_vec();
        draft.extra = old.extra.clone();
        for port in old.inputs.iter() {
            let value = self.model.value(port.value).clone();
            let id = self.value(port.value, graph, value.ty.clone());
            self.into.value_mut(id).constant = value.constant.clone();
            self.into.value_mut(id).constant_position = value.constant_position;
            self.into.value_mut(id).declaration = value.declaration.clone();
            self.into.add_input(graph, id, (*port.declaration).clone());
        }
        let model = self.model;
        let initializers = model
            .values()
            .filter(|(_, v)| v.graph == source && v.producer == Producer::Initializer)
            .map(|(id, v)| (id, v.clone()));
        for (value, old) in initializers {
            let id = self.value(value, graph, old.ty.clone());
            let copy = self.into.value_mut(id);
            copy.constant = old.constant.clone();
            copy.constant_position = old.constant_position;
            copy.declaration = old.declaration.clone();
            copy.producer = Producer::Initializer;
        }
        for (_, node) in model.nodes_of(source) {
            self.node(node, graph);
        }
        for port in old.outputs.iter() {
            let id = self.existing(port.value);
            self.into.add_output(graph, id, (*port.declaration).clone());
        }
        graph
    }

    fn function(&mut self, source: &Function) {
        let index = self.into.header.functions.len() as u32;
        let graph = self.graph(source.graph, GraphKind::Function(index));
        self.into.header.functions.push(Function { graph, ..source.clone() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Builder, ElementType, Tensor, check::check};

    fn typed(model: &Model) -> impl Fn(ValueId) -> Type + '_ {
        |v| match &model.value(v).ty {
            Type::Unknown => Type::tensor(ElementType::FLOAT, [2.into()]),
            ty => ty.clone(),
        }
    }

    fn sample() -> Model {
        let mut b = Builder::new("sample", 17);
        let x = b.input("x", ElementType::FLOAT, &[2.into()]);
        let mask = b.input("mask", ElementType::BOOL, &[]);
        let w = b.constant("w", Tensor::from_f32(&[2], &[1.0, 2.0]));
        let a = b.op("Relu", &[x]).named("a").one();
        let c = b.op("Mul", &[a, w]).named("c").one();
        let d = b
            .op("If", &[mask])
            .named("d")
            .body("then_branch", |b| {
                let t = b.op("Neg", &[c]).named("inner").one();
                b.output(t);
            })
            .body("else_branch", |b| {
                let e = b.op("Abs", &[a]).named("other").one();
                b.output(e);
            })
            .one();
        b.output(d);
        b.finish().unwrap()
    }

    #[test]
    fn a_region_takes_constants_and_captured_values_along() {
        let model = sample();
        let value = |name: &str| model.find_value(model.main(), name).unwrap();
        let (a, mask, d) = (value("a_output_0"), value("mask"), value("d_output_0"));
        let region = extract(&model, &[a, mask], &[d], &typed(&model)).unwrap();
        assert!(check(&region).is_empty(), "{:?}", check(&region));
        let names: Vec<String> = region.nodes_of(region.main()).map(|(_, n)| n.name.to_string()).collect();
        assert_eq!(names, ["c", "d"]);
        assert_eq!(region.node_count(), 4);
        let inputs: Vec<Text> =
            region.graph(region.main()).inputs.iter().map(|p| region.value(p.value).name.clone()).collect();
        assert_eq!(inputs, ["a_output_0".into(), "mask".into()]);
        let w = region.find_value(region.main(), "w").unwrap();
        assert!(region.dense_initializer(w).is_some());
    }

    #[test]
    fn what_is_missing_is_named() {
        let model = sample();
        let value = |name: &str| model.find_value(model.main(), name).unwrap();
        let error =
            extract(&model, &[value("c_output_0")], &[value("d_output_0")], &typed(&model)).unwrap_err();
        let inputs = vec!["'x' (an input of the graph)".into(), "'mask' (an input of the graph)".into()];
        assert_eq!(error, RegionError::Missing(inputs));
        let whole = extract(&model, &[], &[value("d_output_0")], &typed(&model)).unwrap();
        assert_eq!(whole.node_count(), model.node_count());
        let unneeded = extract(&model, &[value("mask"), value("x")], &[value("c_output_0")], &typed(&model));
        assert_eq!(unneeded.unwrap_err(), RegionError::NotNeeded("mask".into()));
    }
}
