//! Two files: which node of the one is which of the other? Graph by graph, in this order: a node that gives a value of
//! the same name with the same operator; a node of the same name and operator; nodes that compute the same from the same;
//! nodes that feed the same; the only candidate beside matched neighbours; a node that gives a value of the same name with
//! another operator. Which values are the same follows from the nodes: see [`super::values`].

use super::compare::{self, Correspondence};
use super::model_wide;
use super::structure::{Hashes, shape_of};
use super::{ConstantChange, Diff, Mark, NodeChange, Rule};
use crate::facts::view;
use crate::ir::{GraphId, Model, Node, NodeId, Text, ValueId};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The difference between two models read from files.
pub fn by_matching(before: &Model, after: &Model) -> Diff {
    Matching::of(before, after).diff()
}

/// Which nodes, values and graphs of two models are the same.
pub(super) struct Matching<'m> {
    pub(super) a: &'m Model,
    pub(super) b: &'m Model,
    pub(super) nodes: FxHashMap<NodeId, (NodeId, Rule)>,
    pub(super) taken: FxHashMap<NodeId, NodeId>,
    pub(super) values: FxHashMap<ValueId, ValueId>,
    pub(super) back: FxHashMap<ValueId, ValueId>,
    /// Pairs of graphs, in the order in which they were found.
    pub(super) graphs: Vec<(GraphId, GraphId)>,
    /// Initializers of both models.
    pub(super) constants: (Initializers, Initializers),
}

/// Initializers with their names, by graph.
type Initializers = BTreeMap<GraphId, Vec<(Text, ValueId)>>;

fn initializers(model: &Model) -> Initializers {
    let mut found = Initializers::new();
    for (id, value) in model.values().filter(|(_, v)| v.constant.is_some()) {
        found.entry(value.graph).or_default().push((value.name.clone(), id));
    }
    found
}

impl<'m> Matching<'m> {
    /// Matches two models.
    pub(super) fn of(before: &'m Model, after: &'m Model) -> Matching<'m> {
        let mut matching = Matching::new(before, after);
        matching.pair_graphs(before.main(), after.main());
        for function in &before.header().functions {
            let same = |f: &&crate::ir::Function| {
                f.name == function.name && f.domain == function.domain && f.overload == function.overload
            };
            if let Some(other) = after.header().functions.iter().find(same) {
                matching.pair_graphs(function.graph, other.graph);
            }
        }
        matching.settle_values();
        matching
    }

    fn new(a: &'m Model, b: &'m Model) -> Matching<'m> {
        Matching {
            a,
            b,
            nodes: FxHashMap::default(),
            taken: FxHashMap::default(),
            values: FxHashMap::default(),
            back: FxHashMap::default(),
            graphs: Vec::new(),
            constants: (initializers(a), initializers(b)),
        }
    }

    /// Matches two graphs, and the bodies of the nodes matched in them.
    fn pair_graphs(&mut self, a: GraphId, b: GraphId) {
        self.graphs.push((a, b));
        self.pair_formals(a, b);
        let left: Vec<(NodeId, &Node)> = self.a.nodes_of(a).map(|(id, n)| (id, &**n)).collect();
        let right: Vec<(NodeId, &Node)> = self.b.nodes_of(b).map(|(id, n)| (id, &**n)).collect();
        self.by_value_name(&left, &right, true);
        self.by_node_name(&left, &right);
        self.by_structure(&left, &right);
        self.by_neighbours(&left);
        self.by_value_name(&left, &right, false);
        self.by_neighbours(&left);
        for (id, node) in left {
            let Some((other, _)) = self.nodes.get(&id).copied() else { continue };
            let bodies: Vec<(Text, GraphId)> = node.bodies().map(|(n, g)| (n.clone(), g)).collect();
            let others: Vec<(Text, GraphId)> =
                self.b.node(other).bodies().map(|(n, g)| (n.clone(), g)).collect();
            for (attribute, of) in group(bodies) {
                let with = others.iter().filter(|(n, _)| *n == attribute).map(|(_, g)| *g);
                for (x, y) in of.into_iter().zip(with.collect::<Vec<_>>()) {
                    self.pair_graphs(x, y);
                }
            }
        }
    }

    /// Inputs by name, the others by position; initializers by name.
    fn pair_formals(&mut self, a: GraphId, b: GraphId) {
        let (left, right) = (self.a.graph(a).inputs.clone(), self.b.graph(b).inputs.clone());
        for port in left.iter() {
            let name = &self.a.value(port.value).name;
            if let Some(other) = right.iter().find(|p| self.b.value(p.value).name == *name) {
                self.pair_values(port.value, other.value);
            }
        }
        for (x, y) in left.iter().zip(right.iter()) {
            self.pair_values(x.value, y.value);
        }
        let right: BTreeMap<&Text, ValueId> =
            self.constants.1.get(&b).into_iter().flatten().map(|(n, id)| (n, *id)).collect();
        let left = self.constants.0.get(&a).into_iter().flatten();
        let pairs: Vec<(ValueId, ValueId)> =
            left.filter_map(|(name, value)| Some((*value, *right.get(name)?))).collect();
        pairs.into_iter().for_each(|(x, y)| self.pair_values(x, y));
    }

    pub(super) fn pair_values(&mut self, a: ValueId, b: ValueId) {
        if !self.values.contains_key(&a) && !self.back.contains_key(&b) {
            self.values.insert(a, b);
            self.back.insert(b, a);
        }
    }

    fn pair(&mut self, a: NodeId, b: NodeId, rule: Rule) {
        self.nodes.insert(a, (b, rule));
        self.taken.insert(b, a);
        let (left, right) = (self.a.node(a).clone(), self.b.node(b).clone());
        // For the time being: what is done with them is not known yet.
        for (x, y) in left.outputs.iter().zip(&right.outputs) {
            if let (Some(x), Some(y)) = (x, y) {
                self.pair_values(*x, *y);
            }
        }
        // Constants read at the same place of nodes that are the same, where their names did not tell.
        for (x, y) in left.inputs.iter().zip(&right.inputs) {
            if let (Some(x), Some(y)) = (x, y)
                && self.a.value(*x).constant.is_some()
                && self.b.value(*y).constant.is_some()
            {
                self.pair_values(*x, *y);
            }
        }
    }

    fn free(&self, a: NodeId) -> bool {
        !self.nodes.contains_key(&a)
    }

    fn by_value_name(&mut self, left: &[(NodeId, &Node)], right: &[(NodeId, &Node)], same_operator: bool) {
        let mut given: FxHashMap<&str, NodeId> = FxHashMap::default();
        for (id, node) in right {
            for value in node.outputs.iter().flatten() {
                given.insert(&self.b.value(*value).name, *id);
            }
        }
        for (id, node) in left {
            if !self.free(*id) {
                continue;
            }
            let names = node.outputs.iter().flatten().map(|v| &self.a.value(*v).name);
            let found = names.filter_map(|name| given.get(&**name)).find(|other| {
                let operator_fits = !same_operator || same_operator_as(node, self.b.node(**other));
                operator_fits && !self.taken.contains_key(other)
            });
            if let Some(other) = found {
                self.pair(*id, *other, Rule::ValueName);
            }
        }
    }

    fn by_node_name(&mut self, left: &[(NodeId, &Node)], right: &[(NodeId, &Node)]) {
        let mut named: FxHashMap<&str, Option<NodeId>> = FxHashMap::default();
        for (id, node) in right.iter().filter(|(id, n)| !n.name.is_empty() && !self.taken.contains_key(id)) {
            // A name that several have tells nothing.
            named.entry(&node.name).and_modify(|found| *found = None).or_insert(Some(*id));
        }
        let mut used: BTreeSet<&str> = BTreeSet::new();
        for (id, node) in left.iter().filter(|(id, _)| self.free(*id)).collect::<Vec<_>>() {
            let Some(Some(other)) = named.get(&*node.name).copied() else { continue };
            if used.insert(&node.name) && same_operator_as(node, self.b.node(other)) {
                self.pair(*id, other, Rule::NodeName);
            }
        }
    }

    /// Equal hashes over all that is computed before a node, then over all that is done with it; equal ones in order.
    fn by_structure(&mut self, left: &[(NodeId, &Node)], right: &[(NodeId, &Node)]) {
        for upward in [true, false] {
            let unmatched = |(id, _): &&(NodeId, &Node)| !self.taken.contains_key(id);
            if left.iter().all(|(id, _)| !self.free(*id)) || !right.iter().any(|n| unmatched(&n)) {
                return;
            }
            // What is paired has one label in both: the value of the first model.
            let own = |value: ValueId| self.values.contains_key(&value).then_some(value);
            let others = |value: ValueId| self.back.get(&value).copied();
            let (a, b) = match upward {
                true => {
                    (Hashes::from_inputs(self.a, left, &own), Hashes::from_inputs(self.b, right, &others))
                }
                false => (Hashes::to_outputs(self.a, left, &own), Hashes::to_outputs(self.b, right, &others)),
            };
            let mut waiting: FxHashMap<u64, VecDeque<NodeId>> = FxHashMap::default();
            for (id, _) in right.iter().filter(unmatched) {
                waiting.entry(b.of(*id)).or_default().push_back(*id);
            }
            let mut pairs = Vec::new();
            for (id, _) in left.iter().filter(|(id, _)| self.free(*id)) {
                pairs.extend(waiting.get_mut(&a.of(*id)).and_then(VecDeque::pop_front).map(|b| (*id, b)));
            }
            pairs.into_iter().for_each(|(x, y)| self.pair(x, y, Rule::Structure));
        }
    }

    /// Where a matched pair has one unmatched neighbour of an operator at the same place on either side, those two match.
    fn by_neighbours(&mut self, left: &[(NodeId, &Node)]) {
        let mut queue: VecDeque<NodeId> =
            left.iter().map(|(id, _)| *id).filter(|id| !self.free(*id)).collect();
        while let Some(id) = queue.pop_front() {
            let Some((other, _)) = self.nodes.get(&id).copied() else { continue };
            let (a, b) = (self.a.node(id).clone(), self.b.node(other).clone());
            for (x, y) in a.inputs.iter().zip(&b.inputs) {
                let producer = |model: &Model, v: &Option<ValueId>| {
                    let (node, output) = model.get_value((*v)?)?.node()?;
                    Some((node, output))
                };
                if let (Some((p, i)), Some((q, j))) = (producer(self.a, x), producer(self.b, y))
                    && i == j
                {
                    queue.extend(self.try_pair(p, q));
                }
            }
            for (x, y) in a.outputs.iter().zip(&b.outputs) {
                let (Some(x), Some(y)) = (x, y) else { continue };
                let of_a = self.only_readers(self.a, *x, |n| self.free(n));
                let of_b = self.only_readers(self.b, *y, |n| !self.taken.contains_key(&n));
                for (shape, reader) in of_a {
                    if let (Some(p), Some(Some(q))) = (reader, of_b.get(&shape).copied()) {
                        queue.extend(self.try_pair(p, q));
                    }
                }
            }
        }
    }

    fn try_pair(&mut self, a: NodeId, b: NodeId) -> Option<NodeId> {
        let (x, y) = (self.a.get_node(a)?, self.b.get_node(b)?);
        let together = self.graphs.contains(&(x.graph, y.graph));
        if !self.free(a) || self.taken.contains_key(&b) || !together || !same_operator_as(x, y) {
            return None;
        }
        self.pair(a, b, Rule::Structure);
        Some(a)
    }

    /// Free readers of a value by operator and the position at which they read it; `None` where there are several.
    fn only_readers(
        &self,
        model: &Model,
        value: ValueId,
        free: impl Fn(NodeId) -> bool,
    ) -> BTreeMap<u64, Option<NodeId>> {
        /// With more readers than this the value tells nothing of any of them.
        const MANY: usize = 64;
        let mut readers = BTreeMap::new();
        if model.value(value).uses.len() > MANY {
            return readers;
        }
        for id in model.readers(value).into_iter().filter(|id| free(*id)) {
            let node = model.node(id);
            let at = node.inputs.iter().position(|v| *v == Some(value)).unwrap_or(0);
            readers.entry(shape_of(node, at)).and_modify(|found| *found = None).or_insert(Some(id));
        }
        readers
    }

    pub(super) fn diff(&self) -> Diff {
        let mut diff = Diff { model: model_wide::differences(self.a, self.b), ..Diff::default() };
        for (_, rule) in self.nodes.values() {
            *diff.matched.entry(*rule).or_default() += 1;
        }
        let partner: BTreeMap<GraphId, GraphId> = self.graphs.iter().copied().collect();
        let mut done: BTreeSet<GraphId> = BTreeSet::new();
        for graph in self.a.live_graphs() {
            let other = partner.get(&graph).copied();
            done.extend(other);
            self.graph_diff(graph, other, &mut diff);
        }
        for graph in self.b.live_graphs().into_iter().filter(|g| !done.contains(g)) {
            self.b.nodes_of(graph).for_each(|(id, _)| diff.add(NodeChange::alone(id, Mark::Added)));
        }
        self.constants(&mut diff);
        diff
    }

    /// Walks two matched lists in step: a removed node comes before what stands where it was.
    fn graph_diff(&self, a: GraphId, b: Option<GraphId>, diff: &mut Diff) {
        let mut right =
            b.map(|b| self.b.nodes_of(b).map(|(id, _)| id).collect::<VecDeque<_>>()).unwrap_or_default();
        let mut later: BTreeSet<NodeId> = BTreeSet::new();
        for (id, node) in self.a.nodes_of(a) {
            let Some((other, rule)) = self.nodes.get(&id).copied() else {
                diff.add(NodeChange::alone(id, Mark::Removed));
                continue;
            };
            while let Some(next) = right.front().copied().filter(|_| !later.contains(&other)) {
                right.pop_front();
                if next == other {
                    break;
                }
                match self.taken.contains_key(&next) {
                    true => drop(later.insert(next)),
                    false => diff.add(NodeChange::alone(next, Mark::Added)),
                }
            }
            if let Some(change) = compare::nodes((self.a, self.b), (id, other), rule, self) {
                diff.add(change);
            }
            if node.name != self.b.node(other).name {
                diff.renamed.push((id, other));
            }
        }
        for id in right.into_iter().filter(|id| !self.taken.contains_key(id)) {
            diff.add(NodeChange::alone(id, Mark::Added));
        }
    }

    fn constants(&self, diff: &mut Diff) {
        let of = |model: &Model| -> Vec<ValueId> {
            model.values().filter(|(_, v)| v.constant.is_some()).map(|(id, _)| id).collect()
        };
        for value in of(self.a) {
            let other = self.values.get(&value).copied().filter(|v| self.b.value(*v).constant.is_some());
            match other {
                None => diff.constants.push(ConstantChange { before: Some(value), after: None }),
                Some(other) if !self.same_data(value, other) => {
                    diff.constants.push(ConstantChange { before: Some(value), after: Some(other) });
                }
                Some(_) => {}
            }
        }
        for value in of(self.b) {
            let other = self.back.get(&value).filter(|v| self.a.value(**v).constant.is_some());
            if other.is_none() {
                diff.constants.push(ConstantChange { before: None, after: Some(value) });
            }
        }
    }

    fn same_data(&self, a: ValueId, b: ValueId) -> bool {
        use crate::ir::Constant::{Dense, Sparse};
        match (&self.a.value(a).constant, &self.b.value(b).constant) {
            (Some(Dense(x)), Some(Dense(y))) => x.same_content(y),
            (Some(Sparse(x)), Some(Sparse(y))) => x.same_content(y),
            (None, None) => true,
            // An initializer here and a node there: the same unless that node is a Constant with other elements.
            _ => match (view::constant(self.a, a), view::constant(self.b, b)) {
                (Some(x), Some(y)) => x.same_content(&y),
                _ => true,
            },
        }
    }
}

impl Correspondence for Matching<'_> {
    fn same_value(&self, before: ValueId, after: ValueId) -> bool {
        self.values.get(&before) == Some(&after) && self.same_data(before, after)
    }

    fn gives_other(&self, before: ValueId, after: ValueId) -> bool {
        // A value without a counterpart only has another name.
        self.values.get(&before).is_some_and(|v| *v != after)
            || self.back.get(&after).is_some_and(|v| *v != before)
    }

    fn names_matter(&self) -> bool {
        false
    }
}

fn same_operator_as(a: &Node, b: &Node) -> bool {
    a.op_type == b.op_type && (a.domain == b.domain || (a.is_standard() && b.is_standard()))
}

fn group(bodies: Vec<(Text, GraphId)>) -> BTreeMap<Text, Vec<GraphId>> {
    let mut groups: BTreeMap<Text, Vec<GraphId>> = BTreeMap::new();
    bodies.into_iter().for_each(|(name, graph)| groups.entry(name).or_default().push(graph));
    groups
}
