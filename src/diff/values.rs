//! Two files: which value of the one is which of the other, once their nodes are matched? A value is what its readers
//! read: where a Conv takes in the normalization behind it and gives that one's value, the readers of the value read what
//! they read before. So a value of the same name is the same one when the same nodes give it or the same nodes read it;
//! what is left goes by the nodes that give it.

use super::matching::Matching;
use crate::ir::{GraphId, NodeId, Use, ValueId};
use std::collections::BTreeMap;

impl Matching<'_> {
    /// Pairs the values that nodes give anew, after all nodes have been matched.
    pub(super) fn settle_values(&mut self) {
        let pairs: BTreeMap<NodeId, NodeId> = self.nodes.iter().map(|(a, (b, _))| (*a, *b)).collect();
        for a in pairs.keys() {
            for value in self.a.node(*a).outputs.clone().into_iter().flatten() {
                if let Some(other) = self.values.remove(&value) {
                    self.back.remove(&other);
                }
            }
        }
        for (a, b) in self.graphs.clone() {
            let given = self.b.nodes_of(b).flat_map(|(_, n)| n.outputs.iter().flatten().copied());
            let initializers = self.constants.1.get(&b).into_iter().flatten().map(|(_, id)| *id);
            for value in given.chain(initializers).collect::<Vec<_>>() {
                if let Some(namesake) = self.namesake(a, value).filter(|u| self.is_same(*u, value)) {
                    self.pair_values(namesake, value);
                }
            }
        }
        for (a, b) in pairs {
            let (left, right) = (self.a.node(a).clone(), self.b.node(b).clone());
            for (x, y) in left.outputs.iter().zip(&right.outputs) {
                if let (Some(x), Some(y)) = (x, y) {
                    self.pair_values(*x, *y);
                }
            }
        }
    }

    /// The value of that name in the other graph, when neither has found its counterpart yet.
    fn namesake(&self, graph: GraphId, value: ValueId) -> Option<ValueId> {
        let named = self.a.values_named(&self.b.value(value).name);
        let found = *named.iter().find(|u| self.a.get_value(**u).is_some_and(|u| u.graph == graph))?;
        (!self.values.contains_key(&found) && !self.back.contains_key(&value)).then_some(found)
    }

    /// Two values of one name are given by the same node, or read in one place at least by the same one.
    fn is_same(&self, a: ValueId, b: ValueId) -> bool {
        let (left, right) = (self.a.value(a), self.b.value(b));
        if let (Some((p, i)), Some((q, j))) = (left.node(), right.node())
            && i == j
            && self.taken.get(&q) == Some(&p)
        {
            return true;
        }
        right.uses.iter().any(|u| match u {
            Use::Input { node, index } => {
                let reader = self.taken.get(&node).and_then(|n| self.a.get_node(*n));
                reader.is_some_and(|n| n.input(index as usize) == Some(a))
            }
            Use::Output { graph, index } => {
                let other = self.graphs.iter().find(|(_, b)| *b == graph).map(|(a, _)| *a);
                let port = other.and_then(|g| self.a.get_graph(g)?.outputs.get(index as usize));
                port.is_some_and(|p| p.value == a)
            }
        })
    }
}
