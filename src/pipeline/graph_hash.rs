//! A hash of what a model computes, without ids and names: two rounds with the same hash are a cycle.

use crate::ir::{AttributeValue, Constant, Data, GraphId, Model, Producer, Tensor, ValueId};
use std::collections::HashMap;
use xxhash_rust::xxh3::Xxh3;

/// Merkle hash over operators, attributes and producers of all live graphs.
pub fn graph_hash(model: &Model) -> u128 {
    let mut values: HashMap<ValueId, u128> = HashMap::new();
    let mut all = Xxh3::new();
    let functions = model.header().functions.iter().map(|f| f.graph);
    for graph in std::iter::once(model.main()).chain(functions) {
        all.update(&of_graph(model, graph, &mut values).to_le_bytes());
    }
    // Equal constants that became one change no node, but are progress.
    let initializers = model.values().filter(|(_, v)| v.producer == Producer::Initializer).count();
    all.update(&(initializers as u64).to_le_bytes());
    all.digest128()
}

fn of_graph(model: &Model, graph: GraphId, values: &mut HashMap<ValueId, u128>) -> u128 {
    let mut all = Xxh3::new();
    for (id, node) in model.nodes_of(graph) {
        let mut h = Xxh3::new();
        for text in [&node.domain, &node.op_type, &node.overload] {
            h.update(text.as_bytes());
            h.update(&[0]);
        }
        for input in &node.inputs {
            let read = input.map(|v| of_value(model, v, values)).unwrap_or(0);
            h.update(&read.to_le_bytes());
        }
        let mut attributes: Vec<_> = node.attributes.iter().collect();
        attributes.sort_by(|a, b| a.name.cmp(&b.name));
        for a in attributes {
            h.update(a.name.as_bytes());
            of_attribute(model, &a.value, values, &mut h);
        }
        // A random operator written twice is two draws: its place tells them apart where nothing else does.
        if node.inputs.is_empty() && node.op_type.starts_with("Random") {
            h.update(&id.0.to_le_bytes());
        }
        let digest = h.digest128();
        for (i, v) in node.outputs.iter().enumerate() {
            if let Some(v) = v {
                values.insert(*v, digest.wrapping_add(1 + i as u128));
            }
        }
        all.update(&digest.to_le_bytes());
    }
    for port in model.graph(graph).outputs.iter() {
        all.update(&of_value(model, port.value, values).to_le_bytes());
    }
    all.digest128()
}

fn of_value(model: &Model, id: ValueId, values: &HashMap<ValueId, u128>) -> u128 {
    if let Some(h) = values.get(&id) {
        return *h;
    }
    let mut h = Xxh3::new();
    if let Some(value) = model.get_value(id) {
        if let Producer::Input { index } = value.producer {
            h.update(&[1]);
            h.update(&value.graph.0.to_le_bytes());
            h.update(&index.to_le_bytes());
        }
        match &value.constant {
            Some(Constant::Dense(t)) => of_tensor(t, &mut h),
            Some(Constant::Sparse(s)) => {
                of_tensor(&s.values, &mut h);
                of_tensor(&s.indices, &mut h);
            }
            None => {}
        }
    }
    h.digest128()
}

/// Large data by type, size and both ends: enough to tell rounds apart without reading gigabytes.
fn of_tensor(tensor: &Tensor, h: &mut Xxh3) {
    const END: usize = 4096;
    h.update(&tensor.element.0.to_le_bytes());
    for d in &tensor.dims {
        h.update(&d.to_le_bytes());
    }
    match &tensor.data {
        Data::Bytes(b) if b.len() <= 2 * END => h.update(b),
        Data::Bytes(b) => {
            h.update(&b[..END]);
            h.update(&b[b.len() - END..]);
        }
        Data::Strings(list) => list.iter().for_each(|s| h.update(s)),
        Data::Missing(_) => {}
    }
}

fn of_attribute(model: &Model, value: &AttributeValue, values: &mut HashMap<ValueId, u128>, h: &mut Xxh3) {
    match value {
        AttributeValue::Tensor(t) => of_tensor(t, h),
        AttributeValue::Tensors(list) => list.iter().for_each(|t| of_tensor(t, h)),
        AttributeValue::Graph(_) | AttributeValue::Graphs(_) => {
            for g in value.graphs() {
                h.update(&of_graph(model, *g, values).to_le_bytes());
            }
        }
        other => h.update(format!("{other:?}").as_bytes()),
    }
}
