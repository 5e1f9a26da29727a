//! One graph to be shown: that of a model, or of a model after a change together with what the change took away.

use super::Mark;
use crate::blocks::{BlockId, BlockTree, Child};
use crate::ir::{Graph, GraphId, Model, Node, NodeId, OrderKey, Port, Use, Value, ValueId};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The model to be shown and, for a merged picture, the one that it came from (ids are those of one session).
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) after: &'a Model,
    pub(super) before: Option<&'a Model>,
}

/// Position, value and mark of an input or output of a graph.
pub(super) type Formal = (u32, ValueId, Mark);

impl<'a> Source<'a> {
    pub(super) fn node(&self, id: NodeId) -> Option<&'a Arc<Node>> {
        self.after.get_node(id).or_else(|| self.before?.get_node(id))
    }

    pub(super) fn value(&self, id: ValueId) -> Option<&'a Arc<Value>> {
        self.after.get_value(id).or_else(|| self.before?.get_value(id))
    }

    pub(super) fn graph(&self, id: GraphId) -> Option<&'a Arc<Graph>> {
        self.after.get_graph(id).or_else(|| self.before?.get_graph(id))
    }

    /// The model in which a value is: facts are asked there.
    pub(super) fn model_of(&self, id: ValueId) -> &'a Model {
        match self.before {
            Some(before) if self.after.get_value(id).is_none() => before,
            _ => self.after,
        }
    }

    /// True for a node that the change took away.
    pub(super) fn is_removed(&self, id: NodeId) -> bool {
        self.before.is_some() && self.after.get_node(id).is_none()
    }

    /// Formal inputs and outputs of a graph with their positions: those it has now, then those that the change took away.
    /// What kept its name is still the same.
    pub(super) fn ports(&self, graph: GraphId) -> (Vec<Formal>, Vec<Formal>) {
        let of = |list: fn(&Graph) -> &[Port]| {
            let ports = |model: &'a Model| model.get_graph(graph).map_or(&[][..], |g| list(g));
            let (now, past) = (ports(self.after), self.before.map_or(&[][..], ports));
            let known = |port: &Port, list: &[Port]| {
                let name = |v: ValueId| self.value(v).map(|v| &v.name);
                list.iter().any(|p| p.value == port.value || name(p.value) == name(port.value))
            };
            let formal = |(index, port): (usize, &Port), mark| (index as u32, port.value, mark);
            let added = |port: &Port| match self.before {
                Some(_) if !past.is_empty() && !known(port, past) => Mark::Added,
                _ => Mark::Same,
            };
            let mut found: Vec<Formal> = now.iter().enumerate().map(|p| formal(p, added(p.1))).collect();
            let gone = past.iter().enumerate().filter(|(_, port)| !known(port, now));
            found.extend(gone.map(|p| formal(p, Mark::Removed)));
            found
        };
        (of(|g| &g.inputs), of(|g| &g.outputs))
    }

    /// Nodes of a graph in order, those that are only in the model before at the places that they had.
    pub(super) fn nodes_of(&self, graph: GraphId) -> Vec<NodeId> {
        let list = |model: &'a Model| model.get_graph(graph).map(|g| &g.nodes);
        let now = list(self.after);
        let Some(before) = self.before.and_then(list) else {
            return now.map(|nodes| nodes.values().copied().collect()).unwrap_or_default();
        };
        let mut keyed: Vec<(OrderKey, NodeId)> =
            now.iter().flat_map(|nodes| nodes.iter()).map(|(key, id)| (*key, *id)).collect();
        keyed.extend(before.iter().filter(|(_, id)| self.is_removed(**id)).map(|(key, id)| (*key, *id)));
        keyed.sort_unstable();
        keyed.into_iter().map(|(_, id)| id).collect()
    }

    /// What a node reads, each value once: its inputs now, and those that the change took from it.
    pub(super) fn reads(&self, id: NodeId) -> Vec<(ValueId, Mark)> {
        let inputs = |model: &'a Model| model.get_node(id).map(|n| n.inputs.iter().flatten().copied());
        let now: Vec<ValueId> = inputs(self.after).into_iter().flatten().collect();
        let mut reads: Vec<(ValueId, Mark)> = Vec::with_capacity(now.len());
        let mut add = |value: ValueId, mark: Mark| {
            if reads.iter().all(|(v, _)| *v != value) {
                reads.push((value, mark));
            }
        };
        let Some(before) = self.before else {
            now.into_iter().for_each(|v| add(v, Mark::Same));
            return reads;
        };
        let past: Option<Vec<ValueId>> = inputs(before).map(|i| i.collect());
        for value in now {
            let mark = match &past {
                None => Mark::Added,
                Some(past) if past.contains(&value) => Mark::Same,
                Some(_) => Mark::Rewired,
            };
            add(value, mark);
        }
        for value in past.into_iter().flatten() {
            add(value, Mark::Removed);
        }
        reads
    }

    /// True for a `Constant` node that is only read by nodes: it is shown as tags there and not as a box.
    pub(super) fn is_folded(&self, node: &Node) -> bool {
        let only_read = |v: &ValueId| {
            self.value(*v)
                .is_some_and(|v| !v.uses.is_empty() && v.uses.iter().all(|u| matches!(u, Use::Input { .. })))
        };
        node.is("Constant") && node.outputs.iter().flatten().all(only_read)
    }
}

/// What is in each block of one graph now, in order of first nodes; blocks whose nodes are all gone are not listed.
#[derive(Debug, Default)]
pub(super) struct Members {
    of_block: BTreeMap<BlockId, Vec<Child>>,
    /// All nodes in a block and in those inside it, also those that are shown as tags.
    counts: BTreeMap<BlockId, u32>,
    /// Members of the graph's own block.
    pub(super) top: Vec<Child>,
}

impl Members {
    pub(super) fn new(source: &Source, blocks: &BlockTree, graph: GraphId) -> Members {
        let mut of_block: FxHashMap<BlockId, Vec<Child>> = FxHashMap::default();
        let mut counts: FxHashMap<BlockId, u32> = FxHashMap::default();
        let mut top = Vec::new();
        for id in source.nodes_of(graph) {
            let Some(node) = source.node(id) else { continue };
            let own = |b: &BlockId| blocks.get(*b).is_some_and(|b| b.graph == graph && b.parent.is_some());
            let mut block = blocks.block_of(id).filter(own);
            for around in block.into_iter().flat_map(|b| blocks.ancestors(b)) {
                *counts.entry(around).or_default() += 1;
            }
            if source.is_folded(node) {
                continue;
            }
            let mut child = Child::Node(id);
            loop {
                let Some(b) = block else {
                    top.push(child);
                    break;
                };
                let members = of_block.entry(b).or_default();
                members.push(child);
                if members.len() > 1 {
                    break;
                }
                // The block's first member: the block itself takes its place in the one around it.
                child = Child::Block(b);
                block = blocks.get(b).and_then(|b| b.parent).filter(own);
            }
        }
        Members { of_block: of_block.into_iter().collect(), counts: counts.into_iter().collect(), top }
    }

    pub(super) fn of(&self, block: BlockId) -> &[Child] {
        self.of_block.get(&block).map_or(&[], Vec::as_slice)
    }

    /// Number of all nodes in a block.
    pub(super) fn count(&self, block: BlockId) -> u32 {
        self.counts.get(&block).copied().unwrap_or_default()
    }

    /// All nodes inside a block that are boxes, in its order.
    pub(super) fn nodes(&self, block: BlockId) -> Vec<NodeId> {
        let mut nodes = Vec::new();
        let mut stack: Vec<Child> = vec![Child::Block(block)];
        while let Some(child) = stack.pop() {
            match child {
                Child::Node(id) => nodes.push(id),
                Child::Block(b) => stack.extend(self.of(b).iter().rev().copied()),
            }
        }
        nodes
    }
}
