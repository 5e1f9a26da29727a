//! Is a model sound? What is checked:
//! every input and output of a node is a value that is there and visible from it (own graph or an enclosing one);
//! a value has at most one producer, and has one whenever it is read; a node comes after the producers of what it
//! reads (so the graph is acyclic); graph outputs are produced; names are unique among what is visible together (a body
//! may hide outer names as far as the file did, as long as every name still means what is read);
//! readers' lists and inputs agree; a model-local function does not call itself.

use super::ids::{GraphId, NodeId, Text, ValueId};
use super::model::{GraphKind, Model};
use super::node::{Producer, Use};
use super::patch::Touched;
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;

/// One thing that is wrong.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum Fault {
    #[error("node '{node}' reads {value:?}, which does not exist")]
    MissingInput { node: String, value: ValueId },
    #[error("node '{node}' reads '{value}', which is defined in another graph and cannot be seen from it")]
    NotVisible { node: String, value: Text },
    #[error("node '{node}' reads '{value}', which nothing produces")]
    NotProduced { node: String, value: Text },
    #[error("node '{node}' reads '{value}' before it is produced, or both are part of a cycle")]
    ReadBeforeProduced { node: String, value: Text },
    #[error("'{value}' would be removed but is still read ({by:?})")]
    RemovedButRead { value: Text, by: Use },
    #[error("output {index} of graph '{graph}' is '{value}', which nothing produces there")]
    OutputNotProduced { graph: String, index: usize, value: Text },
    #[error("'{value}' is said to be output {output} of a node that does not give it")]
    ProducerMismatch { value: Text, output: u32 },
    #[error("'{value}' is given by two nodes, '{first}' and '{second}'")]
    TwoProducers { value: Text, first: String, second: String },
    #[error("two values that can be seen together have the name '{name}'")]
    NameTaken { name: Text },
    #[error(
        "{reader} reads the '{name}' of an outer graph where its own graph has one, too: a file could not say so"
    )]
    Hidden { name: Text, reader: String },
    #[error("the readers that are listed for '{value}' are not those that read it")]
    UsesDisagree { value: Text },
    #[error("node {0:?} stands in a list of a graph that it does not belong to")]
    WrongGraph(NodeId),
    #[error("the model-local function '{0}' calls itself, directly or through others")]
    RecursiveFunction(Text),
}

/// Full check: everything, in time linear in the graph. At most 100 faults are listed.
pub fn check(model: &Model) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut uses: BTreeMap<ValueId, BTreeSet<Use>> = BTreeMap::new();
    let mut given: BTreeMap<ValueId, NodeId> = BTreeMap::new();
    for graph in model.live_graphs() {
        for (id, node) in model.nodes_of(graph) {
            if node.graph != graph {
                faults.push(Fault::WrongGraph(id));
            }
            check_node(model, id, &mut faults);
            for (index, v) in node.inputs.iter().enumerate().filter_map(|(i, v)| Some((i, (*v)?))) {
                uses.entry(v).or_default().insert(Use::Input { node: id, index: index as u32 });
            }
            for v in node.outputs.iter().flatten() {
                if let Some(first) = given.insert(*v, id) {
                    let (first, second) = (model.node_label(first), model.node_label(id));
                    faults.push(Fault::TwoProducers { value: name_of(model, *v), first, second });
                }
            }
            if faults.len() >= 100 {
                return faults;
            }
        }
        check_outputs(model, graph, &mut faults);
        for (index, port) in model.graph(graph).outputs.iter().enumerate() {
            uses.entry(port.value).or_default().insert(Use::Output { graph, index: index as u32 });
        }
    }
    let live: BTreeSet<GraphId> = model.live_graphs().into_iter().collect();
    for (id, value) in model.values().filter(|(_, v)| live.contains(&v.graph)) {
        check_producer(model, id, &mut faults);
        let listed: BTreeSet<Use> = value.uses.iter().collect();
        if listed != uses.remove(&id).unwrap_or_default() {
            faults.push(Fault::UsesDisagree { value: value.name.clone() });
        }
        check_name(model, id, &mut faults);
        if faults.len() >= 100 {
            return faults;
        }
    }
    faults.extend(recursive_function(model).map(Fault::RecursiveFunction));
    faults
}

/// The same rules around what a patch touched.
pub fn check_touched(model: &Model, touched: &Touched) -> Result<(), Fault> {
    let mut faults = Vec::new();
    for id in &touched.nodes {
        if model.get_node(*id).is_some() {
            check_node(model, *id, &mut faults);
        }
    }
    for id in &touched.produced {
        check_order_of_readers(model, *id, &mut faults);
    }
    for id in &touched.values {
        let Some(value) = model.get_value(*id) else { continue };
        check_producer(model, *id, &mut faults);
        if matches!(value.producer, Producer::Nothing)
            && let Some(u) = value.uses.iter().next()
        {
            faults.push(Fault::RemovedButRead { value: value.name.clone(), by: u });
        }
        check_name(model, *id, &mut faults);
    }
    for graph in &touched.graphs {
        check_outputs(model, *graph, &mut faults);
    }
    match faults.into_iter().next() {
        None => Ok(()),
        Some(fault) => Err(fault),
    }
}

fn name_of(model: &Model, value: ValueId) -> Text {
    model.get_value(value).map(|v| v.name.clone()).unwrap_or_else(|| value.to_string().into())
}

fn check_node(model: &Model, id: NodeId, faults: &mut Vec<Fault>) {
    let node = model.node(id);
    for v in node.inputs.iter().flatten() {
        if let Err(fault) = check_read(model, id, *v) {
            faults.push(fault);
        }
    }
    for (output, v) in node.outputs.iter().enumerate() {
        let Some(v) = v else { continue };
        let given = Producer::Node { node: id, output: output as u32 };
        if model.get_value(*v).is_none_or(|value| value.producer != given) {
            faults.push(Fault::ProducerMismatch { value: name_of(model, *v), output: output as u32 });
        }
    }
}

fn check_read(model: &Model, id: NodeId, v: ValueId) -> Result<(), Fault> {
    let node = model.node(id);
    let label = || model.node_label(id);
    let value = model.get_value(v).ok_or_else(|| Fault::MissingInput { node: label(), value: v })?;
    let through = model
        .enclosing_node(value.graph, node.graph)
        .ok_or_else(|| Fault::NotVisible { node: label(), value: value.name.clone() })?;
    match value.producer {
        Producer::Nothing => Err(Fault::NotProduced { node: label(), value: value.name.clone() }),
        Producer::Node { node: producer, .. } => {
            let reader = through.unwrap_or(id);
            let before = match (model.get_node(producer), model.get_node(reader)) {
                (Some(p), Some(r)) => p.order < r.order,
                _ => false,
            };
            if before {
                Ok(())
            } else {
                Err(Fault::ReadBeforeProduced { node: label(), value: value.name.clone() })
            }
        }
        Producer::Input { .. } | Producer::Initializer => Ok(()),
    }
}

fn check_order_of_readers(model: &Model, v: ValueId, faults: &mut Vec<Fault>) {
    let Some(value) = model.get_value(v) else { return };
    for u in value.uses.iter() {
        if let Use::Input { node, .. } = u
            && model.get_node(node).is_some()
            && let Err(fault) = check_read(model, node, v)
        {
            faults.push(fault);
            return;
        }
    }
}

fn check_producer(model: &Model, v: ValueId, faults: &mut Vec<Fault>) {
    let Some(value) = model.get_value(v) else { return };
    if let Producer::Node { node, output } = value.producer
        && model.get_node(node).is_none_or(|n| n.output(output as usize) != Some(v))
    {
        faults.push(Fault::ProducerMismatch { value: value.name.clone(), output });
    }
}

fn check_outputs(model: &Model, graph: GraphId, faults: &mut Vec<Fault>) {
    for (index, port) in model.graph(graph).outputs.iter().enumerate() {
        let produced = model.get_value(port.value).is_some_and(|v| {
            !matches!(v.producer, Producer::Nothing) && model.enclosing_node(v.graph, graph).is_some()
        });
        if !produced {
            let value = name_of(model, port.value);
            faults.push(Fault::OutputNotProduced { graph: model.graph_path(graph), index, value });
        }
    }
}

/// One graph is the other, or inside it.
fn together(model: &Model, a: GraphId, b: GraphId) -> bool {
    model.enclosing_node(a, b).is_some() || model.enclosing_node(b, a).is_some()
}

/// True when one of these values is in a graph inside that of another.
pub(super) fn hides(model: &Model, values: &[ValueId]) -> bool {
    let graphs: BTreeSet<GraphId> = values.iter().filter_map(|v| Some(model.get_value(*v)?.graph)).collect();
    // Outward from each: siblings by the thousand may have values of one name.
    graphs.iter().any(|graph| {
        let mut at = *graph;
        while let Some(owner) = model.owner_of(at).and_then(|owner| model.get_node(owner)) {
            at = owner.graph;
            if graphs.contains(&at) {
                return true;
            }
        }
        false
    })
}

fn check_name(model: &Model, v: ValueId, faults: &mut Vec<Fault>) {
    let Some(value) = model.get_value(v) else { return };
    let Some(named) = model.value_names.get(&value.name) else { return };
    if named.len() < 2 {
        return;
    }
    let tolerated = model.hiding.contains(&value.name);
    let clash = named.iter().filter(|other| **other > v).any(|other| {
        let other = model.get_value(*other);
        other.is_some_and(|o| match tolerated {
            true => o.graph == value.graph,
            false => together(model, o.graph, value.graph),
        })
    });
    if clash {
        faults.push(Fault::NameTaken { name: value.name.clone() });
    } else if tolerated {
        faults.extend(named.iter().find_map(|v| hidden(model, *v)));
    }
}

/// A reader for which the name of a value means another value.
fn hidden(model: &Model, v: ValueId) -> Option<Fault> {
    let value = model.get_value(v)?;
    let reader = value.uses.iter().find_map(|u| {
        let (graph, reader) = match u {
            Use::Input { node, .. } => (model.get_node(node)?.graph, format!("'{}'", model.node_label(node))),
            Use::Output { graph, .. } => (graph, format!("an output of {}", model.graph_path(graph))),
        };
        (model.find_value(graph, &value.name) != Some(v)).then_some(reader)
    })?;
    Some(Fault::Hidden { name: value.name.clone(), reader })
}

/// A function on a cycle of calls, if there is one.
fn recursive_function(model: &Model) -> Option<Text> {
    let functions = &model.header().functions;
    let mut calls = petgraph::graph::DiGraph::<usize, ()>::new();
    let at: Vec<_> = (0..functions.len()).map(|i| calls.add_node(i)).collect();
    for graph in model.live_graphs() {
        let GraphKind::Function(caller) = model.root_of(graph) else { continue };
        for (_, node) in model.nodes_of(graph) {
            let callee =
                model.function_of(node).and_then(|f| functions.iter().position(|g| std::ptr::eq(f, g)));
            if let (Some(from), Some(to)) = (at.get(caller as usize), callee.and_then(|c| at.get(c))) {
                calls.add_edge(*from, *to, ());
            }
        }
    }
    petgraph::algo::toposort(&calls, None).err().map(|cycle| functions[calls[cycle.node_id()]].name.clone())
}
