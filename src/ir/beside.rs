//! A second model put beside a first one: a copy whose nodes, values and graphs bear the ids of their counterparts in the
//! first, and new ids where there is none. What marks and draws two states of one session then does so with two files.

use super::attribute::AttributeValue;
use super::ids::{GraphId, NodeId, OrderKey, Text, ValueId};
use super::model::{Graph, GraphKind, Header, Model, Port};
use super::node::{Node, Producer, Use, Uses, Value};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Counterparts in another model, by own id; no two have the same.
#[derive(Clone, Debug, Default)]
pub struct Counterparts {
    pub nodes: BTreeMap<NodeId, NodeId>,
    pub values: BTreeMap<ValueId, ValueId>,
    pub graphs: BTreeMap<GraphId, GraphId>,
}

/// A model under the ids of another one.
#[derive(Clone, Debug)]
pub struct Beside {
    pub model: Model,
    /// The ids in `model` of everything that there was, by old id.
    pub ids: Counterparts,
}

impl Model {
    /// This model under the ids that its counterparts have in `other`; what has none gets ids that `other` never used.
    /// Nodes keep their order, and their order keys are such that both models' nodes can be listed together: a node
    /// without counterpart comes after those of `other` that stand before the next common one. A graph of `other` without
    /// counterpart is there with its inputs and outputs, but without nodes and reached from nowhere.
    pub fn beside(&self, other: &Model, counterparts: &Counterparts) -> Beside {
        let (nodes, values, graphs) = other.id_bounds();
        let own = self.id_bounds();
        let mut partners = counterparts.graphs.clone();
        partners.insert(self.main(), other.main());
        let ids = Counterparts {
            nodes: complete((0..own.0).map(NodeId), nodes, &counterparts.nodes, NodeId),
            values: complete((0..own.1).map(ValueId), values, &counterparts.values, ValueId),
            graphs: complete((0..own.2).map(GraphId), graphs, &partners, GraphId),
        };
        let mut orders: BTreeMap<NodeId, OrderKey> = BTreeMap::new();
        for (position, graph) in self.graphs.iter().enumerate() {
            let partner = partners.get(&GraphId(position as u32)).and_then(|g| other.get_graph(*g));
            let nodes: Vec<NodeId> = graph.nodes.values().copied().collect();
            let keys = match partner {
                Some(partner) => {
                    let taken = |n: &NodeId| {
                        let there = other.get_node(*counterparts.nodes.get(n)?)?;
                        partner.nodes.contains_key(&there.order).then_some(there.order)
                    };
                    among(&partner.nodes, &nodes.iter().map(taken).collect::<Vec<_>>())
                }
                None => (0..nodes.len()).map(OrderKey::at).collect(),
            };
            orders.extend(nodes.into_iter().zip(keys));
        }
        Beside { model: self.renamed(other, &ids, &orders), ids }
    }

    fn renamed(&self, other: &Model, ids: &Counterparts, orders: &BTreeMap<NodeId, OrderKey>) -> Model {
        let bound = |own: Option<u32>, other: u32| own.map_or(other, |last| other.max(last + 1)) as usize;
        let (node_bound, value_bound, graph_bound) = other.id_bounds();
        let mut nodes: Vec<Option<Arc<Node>>> =
            vec![None; bound(ids.nodes.values().max().map(|n| n.0), node_bound)];
        for (id, node) in
            self.nodes.iter().enumerate().filter_map(|(i, n)| Some((NodeId(i as u32), n.as_ref()?)))
        {
            let order = orders.get(&id).copied().unwrap_or(node.order);
            nodes[ids.nodes[&id].index()] = Some(Arc::new(ids.node(node, order)));
        }
        let mut values: Vec<Option<Arc<Value>>> =
            vec![None; bound(ids.values.values().max().map(|v| v.0), value_bound)];
        let mut value_names: imbl::OrdMap<Text, SmallVec<[ValueId; 1]>> = imbl::OrdMap::new();
        for (id, value) in self.values() {
            let id = ids.values[&id];
            value_names.entry(value.name.clone()).or_default().push(id);
            values[id.index()] = Some(Arc::new(ids.value(value)));
        }
        let mut graphs: Vec<Arc<Graph>> = other
            .graphs
            .iter()
            .map(|g| Arc::new(Graph { nodes: imbl::OrdMap::new(), ..(**g).clone() }))
            .collect();
        let fresh = bound(ids.graphs.values().max().map(|g| g.0), graph_bound);
        // Every id from the other model's bound on is given to one of this model's graphs.
        graphs.extend(std::iter::repeat_n(self.graph(self.main()).clone(), fresh - graphs.len()));
        for (i, graph) in self.graphs.iter().enumerate() {
            graphs[ids.graphs[&GraphId(i as u32)].index()] = Arc::new(ids.graph(graph, orders));
        }
        let functions = self.header.functions.iter().cloned().map(|mut f| {
            f.graph = ids.graphs[&f.graph];
            f
        });
        Model {
            header: Arc::new(Header { functions: functions.collect(), ..(*self.header).clone() }),
            nodes: nodes.into_iter().collect(),
            values: values.into_iter().collect(),
            graphs: graphs.into_iter().collect(),
            value_names,
            node_names: self.node_names.clone(),
            hiding: self.hiding.clone(),
            spoken: self.spoken.clone(),
        }
    }
}

/// A counterpart for each id: the given one, or the next that is free.
fn complete<T: Ord + Copy>(
    own: impl Iterator<Item = T>,
    mut free: u32,
    known: &BTreeMap<T, T>,
    id: impl Fn(u32) -> T,
) -> BTreeMap<T, T> {
    own.map(|x| {
        let new = known.get(&x).copied().unwrap_or_else(|| {
            free += 1;
            id(free - 1)
        });
        (x, new)
    })
    .collect()
}

/// Keys for a list of nodes of which some have a counterpart in `others`: as many as can keep that one's key, the others
/// come between.
fn among(others: &imbl::OrdMap<OrderKey, NodeId>, nodes: &[Option<OrderKey>]) -> Vec<OrderKey> {
    let mut keys = Vec::with_capacity(nodes.len());
    let kept = longest_ascent(nodes);
    let mut start = 0;
    for stop in kept.iter().copied().chain([nodes.len()]) {
        let count = (stop - start) as u128;
        let end = nodes.get(stop).copied().flatten();
        let low = match end {
            Some(end) => others.range(..end).next_back(),
            None => others.iter().next_back(),
        };
        // What was numbered before ends below every key that stands before `end`, or at the last one that was kept.
        let low = low.map_or(0, |(key, _)| key.0).max(keys.last().map_or(0, |k: &OrderKey| k.0));
        let step = end.map_or(OrderKey::STRIDE, |end| (end.0 - low) / (count + 1));
        if step == 0 {
            return (0..nodes.len()).map(OrderKey::at).collect();
        }
        keys.extend((1..=count).map(|k| OrderKey(low + k * step)));
        keys.extend(end);
        start = stop + 1;
    }
    keys
}

/// Positions of a longest ascending choice of the keys.
fn longest_ascent(keys: &[Option<OrderKey>]) -> Vec<usize> {
    // By length: the position whose key ends an ascent of that length lowest; and what comes before each position.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; keys.len()];
    for (position, key) in keys.iter().enumerate().filter(|(_, key)| key.is_some()) {
        let length = ends.partition_point(|end| keys[*end] < *key);
        before[position] = length.checked_sub(1).map(|l| ends[l]);
        match ends.get_mut(length) {
            Some(end) => *end = position,
            None => ends.push(position),
        }
    }
    let mut ascent: Vec<usize> = std::iter::successors(ends.last().copied(), |p| before[*p]).collect();
    ascent.reverse();
    ascent
}

impl Counterparts {
    fn node(&self, node: &Node, order: OrderKey) -> Node {
        let mut node = node.clone();
        node.graph = self.graphs[&node.graph];
        node.order = order;
        for value in node.inputs.iter_mut().chain(&mut node.outputs).flatten() {
            *value = self.values[value];
        }
        for attribute in &mut node.attributes {
            match &mut attribute.value {
                AttributeValue::Graph(graph) => *graph = self.graphs[graph],
                AttributeValue::Graphs(graphs) => *graphs = graphs.iter().map(|g| self.graphs[g]).collect(),
                _ => {}
            }
        }
        node
    }

    fn value(&self, value: &Value) -> Value {
        let mut uses = Uses::default();
        for u in value.uses.iter() {
            uses.insert(match u {
                Use::Input { node, index } => Use::Input { node: self.nodes[&node], index },
                Use::Output { graph, index } => Use::Output { graph: self.graphs[&graph], index },
            });
        }
        let producer = match value.producer {
            Producer::Node { node, output } => Producer::Node { node: self.nodes[&node], output },
            other => other,
        };
        Value { graph: self.graphs[&value.graph], producer, uses, ..value.clone() }
    }

    fn graph(&self, graph: &Graph, orders: &BTreeMap<NodeId, OrderKey>) -> Graph {
        let ports = |ports: &[Port]| -> Arc<[Port]> {
            let port = |p: &Port| Port { value: self.values[&p.value], declaration: p.declaration.clone() };
            ports.iter().map(port).collect()
        };
        let kind = match &graph.kind {
            GraphKind::Body { owner, attribute, index } => {
                GraphKind::Body { owner: self.nodes[owner], attribute: attribute.clone(), index: *index }
            }
            kind => kind.clone(),
        };
        let place =
            |(key, id): (&OrderKey, &NodeId)| (orders.get(id).copied().unwrap_or(*key), self.nodes[id]);
        Graph {
            kind,
            inputs: ports(&graph.inputs),
            outputs: ports(&graph.outputs),
            nodes: graph.nodes.iter().map(place).collect(),
            ..graph.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Builder, ElementType};

    fn chain(operators: &[&str]) -> Model {
        let mut b = Builder::new("chain", 17);
        let mut at = b.input("x", ElementType::FLOAT, &[2.into()]);
        for (k, operator) in operators.iter().enumerate() {
            at = b.op(operator, &[at]).named(&format!("{operator}{k}")).one();
        }
        b.output_as(at, "y", ElementType::FLOAT, &[2.into()]);
        b.finish().unwrap()
    }

    #[test]
    fn order_keys_of_both_models_fit_together() {
        let key = |k: usize| Some(OrderKey::at(k));
        assert_eq!(longest_ascent(&[key(3), key(0), None, key(1), key(2)]), [1, 3, 4]);
        let others: imbl::OrdMap<OrderKey, NodeId> =
            (0..5).map(|k| (OrderKey::at(k), NodeId(k as u32))).collect();
        // Two new nodes stand where two of the other are gone, one stands at the end, and one there that was the second.
        let keys = among(&others, &[key(0), None, None, key(3), key(4), None, key(1)]);
        assert!(keys.windows(2).all(|w| w[0] < w[1]), "{keys:?}");
        assert_eq!([keys[0], keys[3], keys[4]], [0, 3, 4].map(OrderKey::at));
        assert!(keys[1] > OrderKey::at(2) && keys[5] > OrderKey::at(4));
        assert_eq!(among(&others, &[]), []);
    }

    #[test]
    fn a_model_beside_another_is_the_same_model_under_other_ids() {
        let (a, b) = (chain(&["Relu", "Tanh"]), chain(&["Relu", "Neg", "Tanh"]));
        let at = |m: &Model, k: usize| m.nodes_of(m.main()).nth(k).unwrap().0;
        let counterparts = Counterparts {
            nodes: [(at(&b, 0), at(&a, 0)), (at(&b, 2), at(&a, 1))].into(),
            values: [(b.find_value(b.main(), "x").unwrap(), a.find_value(a.main(), "x").unwrap())].into(),
            graphs: [(b.main(), a.main())].into(),
        };
        let beside = b.beside(&a, &counterparts);
        let model = &beside.model;
        assert!(crate::ir::check::check(model).is_empty(), "{:?}", crate::ir::check::check(model));
        let text = |m: &Model| crate::ir::text::print(m, &Default::default());
        assert_eq!(text(model), text(&b));
        let nodes: Vec<NodeId> = model.nodes_of(model.main()).map(|(id, _)| id).collect();
        assert_eq!(nodes, [at(&a, 0), NodeId(a.id_bounds().0), at(&a, 1)]);
        let order = |m: &Model, n: NodeId| m.node(n).order;
        assert_eq!(order(model, nodes[2]), order(&a, nodes[2]));
    }
}
