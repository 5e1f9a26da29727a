//! Following a patch: a worklist in the order in which nodes run, as long as something better becomes known.

use super::infer::Inference;
use super::{Fact, Facts, join, symbols};
use crate::ir::{Dim, GraphKind, Model, NodeId, OrderKey, Producer, Touched, Use, ValueId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Place of a node in the order of the whole model: keys of the nodes that hold its graph, outermost first, then its own.
type Place = Vec<OrderKey>;

/// See [`Facts::update`].
pub(super) fn follow(facts: &mut Facts, model: &Model, touched: &Touched) {
    let calls = !model.header().functions.is_empty();
    if calls || facts.facts.is_empty() {
        // What is known inside a function holds for all calls together: there is no following one of them alone.
        *facts = Facts::infer(model);
        return;
    }
    let mut work = Work { inference: Inference::new(model, facts.clone()), queue: BTreeMap::new() };
    for value in &touched.values {
        work.touch(*value, touched.produced.contains(value));
    }
    for node in &touched.nodes {
        work.push(*node, false);
    }
    // Each value improves a few times at most; a body is walked again with the node that holds it.
    let mut steps = 64 + 8 * model.id_bounds().0 as usize;
    while let Some((_, (node, replace))) = work.queue.pop_first() {
        work.visit(node, replace);
        steps -= 1;
        if steps == 0 {
            *facts = Facts::infer(model);
            return;
        }
    }
    let Inference { facts: mut done, .. } = work.inference;
    if done.problems.iter().any(|p| model.get_value(p.value).is_none()) {
        done.problems =
            done.problems.iter().filter(|p| model.get_value(p.value).is_some()).cloned().collect();
    }
    *facts = done;
}

struct Work<'m> {
    inference: Inference<'m>,
    /// Nodes to look at; `true` when facts before are not to be kept.
    queue: BTreeMap<Place, (NodeId, bool)>,
}

impl Work<'_> {
    fn known(&self, value: ValueId) -> Option<&Arc<Fact>> {
        self.inference.facts.facts.get(value.index())?.as_ref()
    }

    /// A value whose readers, declaration or, where `produced` says so, producer or data may have changed.
    fn touch(&mut self, value: ValueId, produced: bool) {
        let model = self.inference.model;
        let Some(v) = model.get_value(value) else {
            if self.known(value).is_some() {
                self.inference.facts.facts.set(value.index(), None);
            }
            return;
        };
        match v.producer {
            Producer::Node { node, .. } => self.push(node, false),
            Producer::Input { .. } if v.graph != model.main() => {
                if let Some(owner) = model.owner_of(v.graph) {
                    self.push(owner, false);
                }
            }
            Producer::Input { .. } | Producer::Initializer => {
                let before = self.known(value).cloned();
                self.inference.source(value);
                let same = before.as_ref().is_some_and(|b| Some(b) == self.known(value));
                // Data of the same type may still be other data: what reads it is looked at anew. A value that
                // only got or lost readers has nothing new for the others, which may be very many.
                if before.is_some() && (!same || produced && v.constant.is_some()) {
                    self.push_readers(value, !same);
                }
            }
            Producer::Nothing => {}
        }
    }

    fn push(&mut self, node: NodeId, replace: bool) {
        let model = self.inference.model;
        let Some(n) = model.get_node(node) else { return };
        let mut place = vec![n.order];
        let mut graph = n.graph;
        while let Some(GraphKind::Body { owner, .. }) = model.get_graph(graph).map(|g| &g.kind) {
            // A body whose owner is gone belongs to nothing that runs.
            let Some(owner) = model.get_node(*owner) else { return };
            place.push(owner.order);
            graph = owner.graph;
        }
        place.reverse();
        let entry = self.queue.entry(place).or_insert((node, replace));
        entry.1 |= replace;
    }

    fn push_readers(&mut self, value: ValueId, replace: bool) {
        let model = self.inference.model;
        let Some(v) = model.get_value(value) else { return };
        for u in v.uses.iter() {
            match u {
                Use::Input { node, .. } => self.push(node, replace),
                Use::Output { graph, .. } => {
                    if let Some(owner) = model.owner_of(graph) {
                        self.push(owner, replace);
                    }
                }
            }
        }
    }

    fn visit(&mut self, id: NodeId, replace: bool) {
        let model = self.inference.model;
        let Some(node) = model.get_node(id) else { return };
        let facts = self.inference.evaluate(node, None);
        let mut facts = facts.into_iter();
        for output in &node.outputs {
            let fact = facts.next().unwrap_or_default();
            let Some(value) = *output else { continue };
            let new = self.inference.completed(value, fact);
            let Some(old) = self.known(value).cloned() else {
                self.inference.store(value, new);
                self.push_readers(value, replace);
                continue;
            };
            if new == *old {
                continue;
            }
            if replace || join::contradict(&old.ty, &new.ty) {
                self.inference.store(value, new);
                self.push_readers(value, true);
                continue;
            }
            let made_up = |d: &Dim| matches!(d, Dim::Symbolic(e) if e.as_symbol().is_some_and(|s| symbols::is_placeholder(s)));
            if let Some(better) = join::improved(&old, &new, &made_up) {
                self.inference.store(value, better);
                self.push_readers(value, false);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Builder, Edit, ElementType, Patch, Type};

    fn text(facts: &Facts, model: &Model, value: ValueId) -> String {
        facts.ty(model, value).to_string()
    }

    /// An operator that nobody knows, read by a chain.
    fn mystery() -> (Model, NodeId, ValueId) {
        let mut b = Builder::new("chain", 17);
        let x = b.input("x", ElementType::FLOAT, &["n".into(), 4.into()]);
        let m = b.op("Mystery", &[x]).one();
        let r = b.op("Relu", &[m]).one();
        let y = b.op("Transpose", &[r]).one();
        b.output(y);
        let model = b.finish().unwrap();
        let first = model.nodes_of(model.main()).next().unwrap().0;
        (model, first, y)
    }

    fn apply(model: &mut Model, facts: &mut Facts, edit: Edit) -> Patch {
        let (inverse, touched) = model.apply(&Patch { edits: vec![edit], reads: Vec::new() }).unwrap();
        facts.update(model, &touched);
        inverse
    }

    #[test]
    fn what_becomes_known_travels_down() {
        let (mut model, node, y) = mystery();
        let mut facts = Facts::infer(&model);
        assert_eq!(text(&facts, &model, y), "unknown");
        let known =
            Edit::SetOperator { node, domain: "".into(), op_type: "Tanh".into(), overload: "".into() };
        apply(&mut model, &mut facts, known);
        assert_eq!(text(&facts, &model, y), "float[4, n]");
    }

    #[test]
    fn readers_of_a_constant_are_looked_at_again_for_new_data_only() {
        let mut b = Builder::new("hub", 17);
        let x = b.input("x", ElementType::FLOAT, &[4.into()]);
        let hub = b.constant("hub", crate::ir::Tensor::from_f32(&[1], &[2.0]));
        for _ in 0..5 {
            let y = b.op("Mul", &[x, hub]).one();
            b.output(y);
        }
        let model = b.finish().unwrap();
        let queued = |produced: bool| {
            let inference = Inference::new(&model, Facts::infer(&model));
            let mut work = Work { inference, queue: BTreeMap::new() };
            work.touch(hub, produced);
            work.queue.len()
        };
        assert_eq!((queued(false), queued(true)), (0, 5));
    }

    #[test]
    fn another_input_type_replaces_what_was_known_and_back() {
        let (mut model, node, y) = mystery();
        let mut facts = Facts::infer(&model);
        let known =
            Edit::SetOperator { node, domain: "".into(), op_type: "Tanh".into(), overload: "".into() };
        apply(&mut model, &mut facts, known);
        let x = model.graph(model.main()).inputs[0].value;
        let ty = Type::tensor(ElementType::FLOAT, [8.into(), 4.into()]);
        let inverse = apply(&mut model, &mut facts, Edit::SetType { value: x, ty, declaration: None });
        assert_eq!(text(&facts, &model, y), "float[4, 8]");
        let (_, touched) = model.apply(&inverse).unwrap();
        facts.update(&model, &touched);
        assert_eq!(text(&facts, &model, y), "float[4, n]");
    }
}
