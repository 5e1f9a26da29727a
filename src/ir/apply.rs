//! Applying a patch: each edit with its inverse, then the checks around what was touched; all of it or nothing.

use super::attribute::Attribute;
use super::check::{self, Fault};
use super::ids::{GraphId, NodeId, OrderKey, Text, ValueId};
use super::model::{Graph, Model, Port};
use super::node::{Node, Producer, Use, Value};
use super::patch::{Edit, Patch, PatchError, Touched};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Model {
    /// Applies a patch: all of it, checked around what it touched, or nothing. Returns the inverse, which restores
    /// ids, order and every list exactly, and what was touched.
    pub fn apply(&mut self, patch: &Patch) -> Result<(Patch, Touched), PatchError> {
        let before = self.clone();
        let mut work = Application { model: self, inverse: Vec::new(), touched: Touched::default() };
        let done = patch.edits.iter().try_for_each(|e| work.edit(e));
        let Application { inverse, touched, .. } = work;
        let done = done.and_then(|()| check::check_touched(self, &touched).map_err(PatchError::Fault));
        match done {
            Ok(()) => {
                let edits = inverse.into_iter().rev().collect();
                Ok((Patch { edits, reads: patch.reads.clone() }, touched))
            }
            Err(e) => {
                *self = before;
                Err(e)
            }
        }
    }
}

/// Empties a place of an arena; empty places at its end are dropped, so that an undone patch leaves exactly what was.
fn vacate<T: Clone>(arena: &mut imbl::Vector<Option<T>>, index: usize) {
    arena.set(index, None);
    while matches!(arena.last(), Some(None)) {
        arena.pop_back();
    }
}

/// A patch halfway through.
struct Application<'m> {
    model: &'m mut Model,
    inverse: Vec<Edit>,
    touched: Touched,
}

impl Application<'_> {
    fn node(&mut self, id: NodeId) -> Result<&mut Node, PatchError> {
        self.touched.nodes.insert(id);
        let slot = self.model.nodes.get_mut(id.index()).and_then(Option::as_mut);
        slot.map(Arc::make_mut).ok_or(PatchError::NoNode(id))
    }

    fn value(&mut self, id: ValueId) -> Result<&mut Value, PatchError> {
        self.touched.values.insert(id);
        let slot = self.model.values.get_mut(id.index()).and_then(Option::as_mut);
        slot.map(Arc::make_mut).ok_or(PatchError::NoValue(id))
    }

    fn graph(&mut self, id: GraphId) -> Result<&mut Graph, PatchError> {
        self.model.graphs.get_mut(id.index()).map(Arc::make_mut).ok_or(PatchError::NoGraph(id))
    }

    fn edit(&mut self, edit: &Edit) -> Result<(), PatchError> {
        let inverse = match edit {
            Edit::AddValue { id, value } => self.add_value(*id, value)?,
            Edit::RemoveValue { id } => self.remove_value(*id)?,
            Edit::AddNode { id, node } => self.add_node(*id, node)?,
            Edit::RemoveNode { id } => self.remove_node(*id)?,
            Edit::SetOperator { node, domain, op_type, overload } => {
                let n = self.node(*node)?;
                Edit::SetOperator {
                    node: *node,
                    domain: std::mem::replace(&mut n.domain, domain.clone()),
                    op_type: std::mem::replace(&mut n.op_type, op_type.clone()),
                    overload: std::mem::replace(&mut n.overload, overload.clone()),
                }
            }
            Edit::SetAttribute { node, position, attribute, replace } => {
                self.set_attribute(*node, *position, attribute.clone(), *replace)?
            }
            Edit::SetInputs { node, inputs } => {
                let old = std::mem::replace(&mut self.node(*node)?.inputs, inputs.clone());
                self.uses_of_inputs(*node, &old, false)?;
                self.uses_of_inputs(*node, inputs, true)?;
                Edit::SetInputs { node: *node, inputs: old }
            }
            Edit::SetOutputs { node, outputs } => {
                let old = std::mem::replace(&mut self.node(*node)?.outputs, outputs.clone());
                self.release_outputs(*node, &old)?;
                self.claim_outputs(*node, outputs)?;
                Edit::SetOutputs { node: *node, outputs: old }
            }
            Edit::ReplaceUses { of, with, uses } => self.replace_uses(*of, *with, uses.as_deref())?,
            Edit::SetConstant { value, constant } => {
                self.touched.produced.insert(*value);
                let v = self.value(*value)?;
                let old = std::mem::replace(&mut v.constant, constant.clone());
                v.producer = match (v.producer, &v.constant) {
                    (Producer::Nothing, Some(_)) => Producer::Initializer,
                    (Producer::Initializer, None) => Producer::Nothing,
                    (p, _) => p,
                };
                Edit::SetConstant { value: *value, constant: old }
            }
            Edit::SetType { value, ty, declaration } => {
                let v = self.value(*value)?;
                Edit::SetType {
                    value: *value,
                    ty: std::mem::replace(&mut v.ty, ty.clone()),
                    declaration: std::mem::replace(&mut v.declaration, declaration.clone()),
                }
            }
            Edit::MoveNode { node, graph, order } => self.move_node(*node, *graph, *order)?,
            Edit::SetGraphOutput { graph, index, value } => {
                let (graph, index) = (*graph, *index);
                self.touched.graphs.insert(graph);
                let g = self.graph(graph)?;
                let mut ports: Vec<Port> = g.outputs.to_vec();
                let port = ports.get_mut(index).ok_or(PatchError::NoOutput { graph, index })?;
                let old = std::mem::replace(&mut port.value, *value);
                g.outputs = ports.into();
                let u = Use::Output { graph, index: index as u32 };
                self.value(old)?.uses.remove(u);
                self.value(*value)?.uses.insert(u);
                Edit::SetGraphOutput { graph, index, value: old }
            }
        };
        self.inverse.push(inverse);
        Ok(())
    }

    fn add_value(&mut self, id: ValueId, value: &Value) -> Result<Edit, PatchError> {
        if id.is_placeholder() {
            return Err(PatchError::Placeholder);
        }
        if self.model.get_value(id).is_some() {
            return Err(PatchError::ValueExists(id));
        }
        let mut value = value.clone();
        value.uses = Default::default();
        value.producer = if value.constant.is_some() { Producer::Initializer } else { Producer::Nothing };
        if self.model.get_graph(value.graph).is_none() {
            return Err(PatchError::NoGraph(value.graph));
        }
        let named = self.model.value_names.entry(value.name.clone()).or_default();
        if let Err(at) = named.binary_search(&id) {
            named.insert(at, id);
        }
        while self.model.values.len() <= id.index() {
            self.model.values.push_back(None);
        }
        self.model.values.set(id.index(), Some(Arc::new(value)));
        self.touched.values.insert(id);
        Ok(Edit::RemoveValue { id })
    }

    fn remove_value(&mut self, id: ValueId) -> Result<Edit, PatchError> {
        let value = (**self.model.get_value(id).ok_or(PatchError::NoValue(id))?).clone();
        if let Some(named) = self.model.value_names.get_mut(&value.name) {
            named.retain(|v| *v != id);
            if named.is_empty() {
                self.model.value_names.remove(&value.name);
            }
        }
        if let Some(u) = value.uses.iter().next() {
            return Err(PatchError::Fault(Fault::RemovedButRead { value: value.name.clone(), by: u }));
        }
        vacate(&mut self.model.values, id.index());
        self.touched.values.insert(id);
        Ok(Edit::AddValue { id, value })
    }

    fn add_node(&mut self, id: NodeId, node: &Node) -> Result<Edit, PatchError> {
        if id.is_placeholder() {
            return Err(PatchError::Placeholder);
        }
        if self.model.get_node(id).is_some() {
            return Err(PatchError::NodeExists(id));
        }
        self.enlist(id, node.graph, node.order)?;
        while self.model.nodes.len() <= id.index() {
            self.model.nodes.push_back(None);
        }
        self.model.nodes.set(id.index(), Some(Arc::new(node.clone())));
        self.touched.nodes.insert(id);
        self.count_name(&node.name, true);
        self.uses_of_inputs(id, &node.inputs, true)?;
        self.claim_outputs(id, &node.outputs)?;
        self.uses_of_bodies(node, true)?;
        Ok(Edit::RemoveNode { id })
    }

    fn remove_node(&mut self, id: NodeId) -> Result<Edit, PatchError> {
        let node = (**self.model.get_node(id).ok_or(PatchError::NoNode(id))?).clone();
        self.touched.nodes.insert(id);
        self.uses_of_bodies(&node, false)?;
        self.uses_of_inputs(id, &node.inputs, false)?;
        self.release_outputs(id, &node.outputs)?;
        self.graph(node.graph)?.nodes.remove(&node.order);
        self.count_name(&node.name, false);
        vacate(&mut self.model.nodes, id.index());
        Ok(Edit::AddNode { id, node })
    }

    fn move_node(&mut self, id: NodeId, graph: GraphId, order: OrderKey) -> Result<Edit, PatchError> {
        let node = self.node(id)?;
        let old = (std::mem::replace(&mut node.graph, graph), std::mem::replace(&mut node.order, order));
        let outputs = node.outputs.clone();
        self.graph(old.0)?.nodes.remove(&old.1);
        self.enlist(id, graph, order)?;
        for v in outputs.into_iter().flatten() {
            self.value(v)?.graph = graph;
            self.touched.produced.insert(v);
        }
        Ok(Edit::MoveNode { node: id, graph: old.0, order: old.1 })
    }

    fn enlist(&mut self, id: NodeId, graph: GraphId, order: OrderKey) -> Result<(), PatchError> {
        match self.graph(graph)?.nodes.insert(order, id) {
            None => Ok(()),
            Some(_) => Err(PatchError::PlaceTaken(graph)),
        }
    }

    fn set_attribute(
        &mut self,
        node: NodeId,
        position: usize,
        attribute: Option<Attribute>,
        replace: bool,
    ) -> Result<Edit, PatchError> {
        let n = self.node(node)?;
        let length = n.attributes.len();
        let missing = PatchError::NoAttribute { node, position };
        match attribute {
            Some(a) if replace => {
                let slot = n.attributes.get_mut(position).ok_or(missing)?;
                let old = std::mem::replace(slot, a);
                Ok(Edit::SetAttribute { node, position, attribute: Some(old), replace: true })
            }
            Some(a) if position <= length => {
                n.attributes.insert(position, a);
                Ok(Edit::SetAttribute { node, position, attribute: None, replace: false })
            }
            None if position < length => {
                let old = n.attributes.remove(position);
                Ok(Edit::SetAttribute { node, position, attribute: Some(old), replace: false })
            }
            _ => Err(missing),
        }
    }

    fn replace_uses(&mut self, of: ValueId, with: ValueId, uses: Option<&[Use]>) -> Result<Edit, PatchError> {
        let all: Vec<Use> = match uses {
            Some(list) => list.to_vec(),
            None => self.model.get_value(of).ok_or(PatchError::NoValue(of))?.uses.iter().collect(),
        };
        for u in &all {
            match *u {
                Use::Input { node, index } => {
                    if let Some(slot) = self.node(node)?.inputs.get_mut(index as usize) {
                        *slot = Some(with);
                    }
                }
                Use::Output { graph, index } => {
                    self.touched.graphs.insert(graph);
                    let g = self.graph(graph)?;
                    let mut ports: Vec<Port> = g.outputs.to_vec();
                    if let Some(port) = ports.get_mut(index as usize) {
                        port.value = with;
                    }
                    g.outputs = ports.into();
                }
            }
            self.value(of)?.uses.remove(*u);
            self.value(with)?.uses.insert(*u);
        }
        Ok(Edit::ReplaceUses { of: with, with: of, uses: Some(all) })
    }

    fn uses_of_inputs(
        &mut self,
        node: NodeId,
        inputs: &[Option<ValueId>],
        add: bool,
    ) -> Result<(), PatchError> {
        for (index, value) in inputs.iter().enumerate() {
            if let Some(v) = value {
                self.set_use(*v, Use::Input { node, index: index as u32 }, add)?;
            }
        }
        Ok(())
    }

    fn set_use(&mut self, value: ValueId, u: Use, add: bool) -> Result<(), PatchError> {
        let uses = &mut self.value(value)?.uses;
        if add {
            uses.insert(u)
        } else {
            uses.remove(u)
        }
        Ok(())
    }

    /// Whatever the bodies of a node read from outside is read, or no longer read.
    fn uses_of_bodies(&mut self, node: &Node, add: bool) -> Result<(), PatchError> {
        let mut open: Vec<GraphId> = node.bodies().map(|(_, g)| g).collect();
        let mut inside: BTreeSet<GraphId> = BTreeSet::new();
        let mut reads: Vec<(ValueId, Use)> = Vec::new();
        while let Some(graph) = open.pop() {
            inside.insert(graph);
            let g = self.model.get_graph(graph).ok_or(PatchError::NoGraph(graph))?;
            for (index, port) in g.outputs.iter().enumerate() {
                reads.push((port.value, Use::Output { graph, index: index as u32 }));
            }
            for (id, inner) in self.model.nodes_of(graph) {
                open.extend(inner.bodies().map(|(_, g)| g));
                for (index, value) in inner.inputs.iter().enumerate() {
                    if let Some(v) = value {
                        reads.push((*v, Use::Input { node: id, index: index as u32 }));
                    }
                }
            }
        }
        for (value, u) in reads {
            let outside = self.model.get_value(value).is_none_or(|v| !inside.contains(&v.graph));
            if outside {
                self.set_use(value, u, add)?;
            }
        }
        Ok(())
    }

    fn claim_outputs(&mut self, node: NodeId, outputs: &[Option<ValueId>]) -> Result<(), PatchError> {
        for (output, value) in outputs.iter().enumerate() {
            if let Some(v) = value {
                self.value(*v)?.producer = Producer::Node { node, output: output as u32 };
                self.touched.produced.insert(*v);
            }
        }
        Ok(())
    }

    fn release_outputs(&mut self, node: NodeId, outputs: &[Option<ValueId>]) -> Result<(), PatchError> {
        for v in outputs.iter().flatten() {
            let value = self.value(*v)?;
            if matches!(value.producer, Producer::Node { node: n, .. } if n == node) {
                value.producer = Producer::Nothing;
            }
        }
        Ok(())
    }

    fn count_name(&mut self, name: &Text, add: bool) {
        if name.is_empty() {
            return;
        }
        let count = self.model.node_names.entry(name.clone()).or_default();
        *count = if add { *count + 1 } else { count.saturating_sub(1) };
        if *count == 0 {
            self.model.node_names.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::builder::Builder;
    use super::super::patch_builder::PatchBuilder;
    use super::super::types::ElementType;
    use super::*;

    fn chain() -> Model {
        let mut b = Builder::new("chain", 17);
        let x = b.input("x", ElementType::FLOAT, &["n".into()]);
        let a = b.op("Identity", &[x]).named("skip").one();
        let y = b.op("Relu", &[a]).named("act").one();
        b.output(y);
        b.finish().unwrap()
    }

    #[test]
    fn a_patch_and_its_inverse_restore_everything() {
        let model = chain();
        let (skip, node) = model.nodes_of(model.main()).next().unwrap();
        let mut p = PatchBuilder::new(&model);
        p.replace_uses(node.output(0).unwrap(), node.input(0).unwrap());
        p.remove_node(skip);
        let patch = p.finish();
        let mut after = model.clone();
        let (inverse, touched) = after.apply(&patch).unwrap();
        assert_eq!(after.node_count(), 1);
        assert!(check::check(&after).is_empty());
        assert!(touched.nodes.contains(&skip));
        after.apply(&inverse).unwrap();
        assert_eq!(format!("{after:?}"), format!("{model:?}"));
    }

    #[test]
    fn a_patch_that_leaves_a_dangling_input_changes_nothing() {
        let model = chain();
        let (skip, _) = model.nodes_of(model.main()).next().unwrap();
        let mut p = PatchBuilder::new(&model);
        p.remove_node(skip);
        let mut after = model.clone();
        let error = after.apply(&p.finish()).unwrap_err();
        assert!(matches!(error, PatchError::Fault(Fault::RemovedButRead { .. })), "{error}");
        assert_eq!(format!("{after:?}"), format!("{model:?}"));
    }

    #[test]
    fn a_patch_that_makes_a_cycle_is_refused() {
        let model = chain();
        let mut nodes = model.nodes_of(model.main());
        let (skip, _) = nodes.next().unwrap();
        let (_, act) = nodes.next().unwrap();
        let mut p = PatchBuilder::new(&model);
        p.set_inputs(skip, [act.output(0)]);
        let error = model.clone().apply(&p.finish()).unwrap_err();
        assert!(matches!(error, PatchError::Fault(Fault::ReadBeforeProduced { .. })), "{error}");
    }
}
