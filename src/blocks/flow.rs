//! One graph as positions and edges: what blocks are found on. Constants and shape arithmetic are told apart from data.

use crate::ir::{GraphId, Model, NodeId, Producer, ValueId};
use smallvec::SmallVec;

/// What a node works on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Role {
    /// Data without inputs.
    Constant,
    /// Computes from constants and shapes only: the same for all data of one size.
    Side,
    /// Computes from data.
    Main,
}

/// Nodes of one graph by position in running order; bodies count as part of the node that holds them.
pub(super) struct Flow {
    pub graph: GraphId,
    pub ids: Vec<NodeId>,
    pub roles: Vec<Role>,
    /// Producers of what each node (or a body inside it) reads, each once, ascending.
    pub preds: Vec<SmallVec<[u32; 4]>>,
    /// Readers of what each node gives, each once, ascending.
    pub succs: Vec<SmallVec<[u32; 4]>>,
    /// Formal inputs without data that each node reads.
    pub inputs: Vec<SmallVec<[u32; 2]>>,
}

impl Flow {
    pub fn len(&self) -> usize {
        self.ids.len()
    }
}

/// Flows of these graphs.
pub(super) fn flows(model: &Model, graphs: &[GraphId]) -> Vec<Flow> {
    let (node_bound, _, graph_bound) = model.id_bounds();
    let mut position = vec![0u32; node_bound as usize];
    let mut place = vec![usize::MAX; graph_bound as usize];
    let mut flows: Vec<Flow> = Vec::with_capacity(graphs.len());
    for (k, graph) in graphs.iter().enumerate() {
        place[graph.index()] = k;
        let ids: Vec<NodeId> = model.graph(*graph).nodes.values().copied().collect();
        for (at, id) in ids.iter().enumerate() {
            position[id.index()] = at as u32;
        }
        let n = ids.len();
        flows.push(Flow {
            graph: *graph,
            ids,
            roles: vec![Role::Main; n],
            preds: vec![SmallVec::new(); n],
            succs: vec![SmallVec::new(); n],
            inputs: vec![SmallVec::new(); n],
        });
    }
    for graph in graphs {
        for (id, node) in model.nodes_of(*graph) {
            for value in node.inputs.iter().flatten().copied() {
                link(model, &mut flows, (&position, &place), *graph, id, value);
            }
        }
        // A body may give out a value of an outer graph directly.
        if let Some(owner) = model.owner_of(*graph) {
            for port in model.graph(*graph).outputs.iter() {
                link(model, &mut flows, (&position, &place), *graph, owner, port.value);
            }
        }
    }
    for flow in &mut flows {
        finish(model, flow);
    }
    flows
}

/// Records that `reader`, standing in `graph`, reads a value: at the node of the value's own graph that is or holds the reader.
fn link(
    model: &Model,
    flows: &mut [Flow],
    (position, place): (&[u32], &[usize]),
    graph: GraphId,
    reader: NodeId,
    value: ValueId,
) {
    let Some(v) = model.get_value(value) else { return };
    let reader = if v.graph == graph {
        reader
    } else {
        match model.enclosing_node(v.graph, graph) {
            Some(Some(holder)) => holder,
            _ => return,
        }
    };
    // The output of a body that is one of the body's own values is not read by the owner.
    if model.get_node(reader).is_none_or(|n| n.graph != v.graph) {
        return;
    }
    let Some(flow) = place.get(v.graph.index()).and_then(|k| flows.get_mut(*k)) else { return };
    let at = position[reader.index()];
    match v.producer {
        Producer::Node { node, .. } => {
            let from = position[node.index()];
            // Only forward edges: an unsound order cannot make a cycle here.
            if from < at {
                flow.preds[at as usize].push(from);
                flow.succs[from as usize].push(at);
            }
        }
        Producer::Input { index } if v.constant.is_none() => flow.inputs[at as usize].push(index),
        _ => {}
    }
}

fn finish(model: &Model, flow: &mut Flow) {
    for list in flow.preds.iter_mut().chain(flow.succs.iter_mut()) {
        list.sort_unstable();
        list.dedup();
    }
    for list in &mut flow.inputs {
        list.sort_unstable();
        list.dedup();
    }
    for at in 0..flow.len() {
        let node = model.node(flow.ids[at]);
        let captures = node
            .inputs
            .iter()
            .flatten()
            .any(|v| model.get_value(*v).is_some_and(|v| v.graph != flow.graph && v.constant.is_none()));
        let has_inputs = node.inputs.iter().flatten().next().is_some();
        let random = matches!(&*node.op_type, "RandomNormal" | "RandomUniform" | "Multinomial" | "Bernoulli");
        flow.roles[at] = if node.bodies().next().is_some() || random {
            Role::Main
        } else if !has_inputs {
            if node.is("Constant") { Role::Constant } else { Role::Main }
        } else if node.is("Shape") || node.is("Size") {
            Role::Side
        } else if captures
            || !flow.inputs[at].is_empty()
            || flow.preds[at].iter().any(|p| flow.roles[*p as usize] == Role::Main)
        {
            Role::Main
        } else {
            Role::Side
        };
    }
}
