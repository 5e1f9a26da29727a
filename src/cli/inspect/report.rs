//! What `inspect` tells, as data.

use super::outline::{self, Outline};
use crate::blocks::BlockTree;
use crate::facts::Facts;
use crate::formats::{Form, Imported, Problem, Severity};
use crate::ir::{AttributeValue, Constant, ElementType, GraphId, Model, Producer, ValueId, check};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The JSON document of `inspect`.
#[derive(Debug, Serialize)]
pub struct Report {
    pub file: String,
    /// `onnx`, `json` or `text`.
    pub format: &'static str,
    /// The same for people.
    #[serde(skip)]
    pub(super) form: Form,
    pub ir_version: i64,
    pub producer: Producing,
    pub opsets: Vec<Opset>,
    pub graph: String,
    pub inputs: Vec<Formal>,
    pub outputs: Vec<Formal>,
    /// Nodes of all graphs.
    pub nodes: usize,
    /// The main graph, bodies and functions, in the order in which they stand in the file.
    pub graphs: Vec<GraphEntry>,
    pub functions: Vec<FunctionEntry>,
    /// Operators of all graphs, the most frequent first.
    pub operators: Vec<OperatorEntry>,
    /// Initializers and tensors in attributes, by element type, the largest first.
    pub weights: Vec<WeightEntry>,
    /// Elements of all initializers and of what Constant nodes hold.
    pub parameters: u64,
    /// Those of them that Constant nodes hold.
    pub parameters_in_constants: u64,
    /// Bytes of all initializers and tensors in attributes.
    pub bytes: u64,
    pub metadata: BTreeMap<String, String>,
    /// Values whose type is known at least by element type and rank, among all that nodes give.
    pub known_types: Share,
    pub blocks: Outline,
    pub problems: Vec<ProblemEntry>,
}

/// Who wrote the model.
#[derive(Debug, Serialize)]
pub struct Producing {
    pub name: String,
    pub version: String,
}

/// An operator set in force.
#[derive(Debug, Serialize)]
pub struct Opset {
    /// `ai.onnx` for the standard one.
    pub domain: String,
    pub version: i64,
}

/// An input or output of the main graph.
#[derive(Debug, Serialize)]
pub struct Formal {
    pub name: String,
    /// `float[batch, 3, 224, 224]`: as declared, or better.
    #[serde(rename = "type")]
    pub ty: String,
    /// An input with a value that is used when the caller gives none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<bool>,
}

/// One graph.
#[derive(Debug, Serialize)]
pub struct GraphEntry {
    /// `main`, `main/If_3.then_branch`, `function Gelu`.
    pub path: String,
    pub nodes: usize,
}

/// A model-local function.
#[derive(Debug, Serialize)]
pub struct FunctionEntry {
    pub domain: String,
    pub name: String,
    pub nodes: usize,
    /// Nodes that call it.
    pub calls: usize,
}

/// How often an operator occurs.
#[derive(Debug, Serialize)]
pub struct OperatorEntry {
    /// `ai.onnx` for the standard one.
    pub domain: String,
    pub operator: String,
    pub count: usize,
}

/// Constant data of one element type.
#[derive(Debug, Serialize)]
pub struct WeightEntry {
    pub element: String,
    pub tensors: usize,
    pub elements: u64,
    pub bytes: u64,
}

/// So many of so many.
#[derive(Debug, Serialize)]
pub struct Share {
    pub known: usize,
    pub of: usize,
}

/// Something that is not right, or worth knowing.
#[derive(Debug, Serialize)]
pub struct ProblemEntry {
    /// `note`, `warning` or `error`.
    pub severity: &'static str,
    pub text: String,
}

impl ProblemEntry {
    pub(in crate::cli) fn of(problem: &Problem) -> ProblemEntry {
        let severity = match problem.severity {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        ProblemEntry { severity, text: problem.text.clone() }
    }
}

impl Report {
    pub(super) fn new(
        path: &Path,
        imported: &Imported,
        facts: &Facts,
        blocks: &BlockTree,
        all: bool,
    ) -> Report {
        let model = &imported.model;
        let header = model.header();
        let graphs = model.live_graphs();
        let main = model.graph(model.main());
        let weights = weights(model, &graphs);
        let in_constants = elements_in_constants(model, &graphs);
        Report {
            file: path.display().to_string(),
            format: imported.form.name(),
            form: imported.form,
            ir_version: header.ir_version,
            producer: Producing {
                name: header.producer_name.to_string(),
                version: header.producer_version.to_string(),
            },
            opsets: header.opsets.iter().map(|(d, v)| Opset { domain: domain(d), version: *v }).collect(),
            graph: main.name.to_string(),
            inputs: main
                .inputs
                .iter()
                .filter(|port| !model.is_constant_input(port.value))
                .map(|port| formal(model, facts, port.value))
                .collect(),
            outputs: main.outputs.iter().map(|port| formal(model, facts, port.value)).collect(),
            nodes: graphs.iter().map(|g| model.graph(*g).nodes.len()).sum(),
            graphs: graphs
                .iter()
                .map(|g| GraphEntry { path: model.graph_path(*g), nodes: model.graph(*g).nodes.len() })
                .collect(),
            functions: functions(model, &graphs),
            operators: operators(model, &graphs),
            bytes: weights.entries.iter().map(|w| w.bytes).sum(),
            parameters: weights.parameters.saturating_add(in_constants),
            parameters_in_constants: in_constants,
            weights: weights.entries,
            metadata: header.metadata.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect(),
            known_types: known_types(model, facts, &graphs),
            blocks: outline::of(model, blocks, all),
            problems: problems(imported, facts),
        }
    }
}

fn domain(domain: &str) -> String {
    if domain.is_empty() { "ai.onnx".to_owned() } else { domain.to_owned() }
}

fn formal(model: &Model, facts: &Facts, value: ValueId) -> Formal {
    let v = model.value(value);
    let with_default = matches!(v.producer, Producer::Input { .. }) && v.constant.is_some();
    Formal {
        name: v.name.to_string(),
        ty: facts.ty(model, value).to_string(),
        default: with_default.then_some(true),
    }
}

fn operators(model: &Model, graphs: &[GraphId]) -> Vec<OperatorEntry> {
    let mut counts: BTreeMap<(String, &str), usize> = BTreeMap::new();
    for (_, node) in graphs.iter().flat_map(|g| model.nodes_of(*g)) {
        *counts.entry((domain(&node.domain), &node.op_type)).or_default() += 1;
    }
    let mut entries: Vec<OperatorEntry> = counts
        .into_iter()
        .map(|((domain, operator), count)| OperatorEntry { domain, operator: operator.to_owned(), count })
        .collect();
    // The sort is stable: equally frequent ones stay in alphabetical order.
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.count));
    entries
}

fn functions(model: &Model, graphs: &[GraphId]) -> Vec<FunctionEntry> {
    let functions = &model.header().functions;
    let mut calls = vec![0usize; functions.len()];
    for (_, node) in graphs.iter().flat_map(|g| model.nodes_of(*g)) {
        let called = model.function_of(node);
        if let Some(at) = called.and_then(|f| functions.iter().position(|g| std::ptr::eq(f, g))) {
            calls[at] += 1;
        }
    }
    let entry = |(function, calls): (&crate::ir::Function, usize)| FunctionEntry {
        domain: domain(&function.domain),
        name: function.name.to_string(),
        nodes: model.graph(function.graph).nodes.len(),
        calls,
    };
    functions.iter().zip(calls).map(entry).collect()
}

/// Tensors of a model.
struct Tensors {
    entries: Vec<WeightEntry>,
    /// Elements of all initializers.
    parameters: u64,
}

/// Elements that Constant nodes hold, whichever attribute they are spelt with.
fn elements_in_constants(model: &Model, graphs: &[GraphId]) -> u64 {
    let count = |value: &AttributeValue| match value {
        AttributeValue::Tensor(tensor) => tensor.element_count().unwrap_or(0),
        AttributeValue::Sparse(tensor) => tensor.values.element_count().unwrap_or(0),
        AttributeValue::Floats(list) => list.len() as u64,
        AttributeValue::Ints(list) => list.len() as u64,
        AttributeValue::Strings(list) => list.len() as u64,
        AttributeValue::Float(_) | AttributeValue::Int(_) | AttributeValue::String(_) => 1,
        _ => 0,
    };
    let constants = graphs.iter().flat_map(|g| model.nodes_of(*g)).filter(|(_, node)| node.is("Constant"));
    let values = constants.flat_map(|(_, node)| node.attributes.iter());
    values.map(|attribute| count(&attribute.value)).fold(0, u64::saturating_add)
}

/// Tensors by element type, and the number of elements of all initializers.
fn weights(model: &Model, graphs: &[GraphId]) -> Tensors {
    let mut sums: BTreeMap<ElementType, (usize, u64, u64)> = BTreeMap::new();
    let mut add = |element: ElementType, elements: u64, bytes: u64| {
        let sum = sums.entry(element).or_default();
        *sum = (sum.0 + 1, sum.1.saturating_add(elements), sum.2.saturating_add(bytes));
    };
    let live: BTreeSet<GraphId> = graphs.iter().copied().collect();
    let mut parameters = 0u64;
    for (_, value) in model.values().filter(|(_, v)| live.contains(&v.graph)) {
        match &value.constant {
            Some(Constant::Dense(t)) => {
                let elements = t.element_count().unwrap_or(0);
                parameters = parameters.saturating_add(elements);
                add(t.element, elements, t.byte_count());
            }
            Some(Constant::Sparse(t)) => {
                let elements = t.values.element_count().unwrap_or(0);
                parameters = parameters.saturating_add(elements);
                add(t.values.element, elements, t.values.byte_count());
            }
            None => {}
        }
    }
    for (_, node) in graphs.iter().flat_map(|g| model.nodes_of(*g)) {
        for attribute in &node.attributes {
            if let AttributeValue::Tensor(t) = &attribute.value {
                add(t.element, t.element_count().unwrap_or(0), t.byte_count());
            }
        }
    }
    let mut entries: Vec<WeightEntry> = sums
        .into_iter()
        .map(|(element, (tensors, elements, bytes))| WeightEntry {
            element: element.name(),
            tensors,
            elements,
            bytes,
        })
        .collect();
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.bytes));
    Tensors { entries, parameters }
}

fn known_types(model: &Model, facts: &Facts, graphs: &[GraphId]) -> Share {
    let mut share = Share { known: 0, of: 0 };
    for (_, node) in graphs.iter().flat_map(|g| model.nodes_of(*g)) {
        for value in node.outputs.iter().flatten() {
            let ty = facts.ty(model, *value);
            share.of += 1;
            share.known += usize::from(
                ty.element().is_none_or(|_| ty.rank().is_some()) && *ty != crate::ir::Type::Unknown,
            );
        }
    }
    share
}

/// What import, the checks of the graph and inference found, in that order; nothing twice.
fn problems(imported: &Imported, facts: &Facts) -> Vec<ProblemEntry> {
    let imported_ones = imported.problems.iter().map(ProblemEntry::of);
    let faults = check::check(&imported.model);
    let faults = faults.iter().map(|f| ProblemEntry { severity: "error", text: f.to_string() });
    let facts = facts.problems();
    let facts = facts.iter().map(|p| ProblemEntry { severity: "warning", text: p.message.to_string() });
    let mut seen = BTreeSet::new();
    imported_ones.chain(faults).chain(facts).filter(|p| seen.insert(p.text.clone())).collect()
}
