//! Times of a profile (one event a node and run) given to our nodes.

use super::names::{self, Places};
use crate::engine::NodeTime;
use crate::ir::{Model, NodeId, Producer};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// An event of the profile, as far as it is used.
#[derive(Debug, Deserialize)]
struct Event {
    #[serde(default)]
    cat: String,
    #[serde(default)]
    name: String,
    /// Microseconds, as is `dur`.
    #[serde(default)]
    ts: f64,
    #[serde(default)]
    dur: f64,
    #[serde(default)]
    args: Arguments,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Arguments {
    op_name: String,
    node_index: String,
    mem_in_use_peak: Option<String>,
}

/// What was executed in one run.
#[derive(Debug, Default)]
pub struct Run {
    /// Seconds and calls by the name that the event has, in order of first execution.
    kernels: Vec<(Kernel, f64, u32)>,
    /// Most bytes that the arena had in use, where the profile says.
    pub peak_bytes: Option<u64>,
}

/// What an event is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kernel {
    name: String,
    pub operator: String,
    index: u64,
}

/// Runs of a profile, in order. `Err` says what is wrong with it.
pub fn runs(text: &[u8]) -> Result<Vec<Run>, String> {
    let events: Vec<Event> =
        serde_json::from_slice(text).map_err(|error| format!("the profile cannot be read: {error}"))?;
    let mut bounds: Vec<(f64, f64)> =
        events.iter().filter(|e| e.name == "model_run").map(|e| (e.ts, e.ts + e.dur)).collect();
    bounds.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut runs: Vec<Run> = bounds.iter().map(|_| Run::default()).collect();
    let mut places: Vec<BTreeMap<Kernel, usize>> = vec![BTreeMap::new(); runs.len()];
    let mut kernels: Vec<Event> = events.into_iter().filter(|e| e.cat == "Node").collect();
    kernels.sort_by(|a, b| a.ts.total_cmp(&b.ts));
    for event in kernels {
        let Some(name) = event.name.strip_suffix("_kernel_time") else { continue };
        // The run that began last before the event.
        let Some(at) = bounds.partition_point(|(start, _)| *start <= event.ts).checked_sub(1) else {
            continue;
        };
        let (run, places) = (&mut runs[at], &mut places[at]);
        let peak = event.args.mem_in_use_peak.as_deref().and_then(|p| p.parse::<u64>().ok());
        run.peak_bytes = run.peak_bytes.max(peak.filter(|p| *p > 0));
        let index = event.args.node_index.parse().unwrap_or_default();
        let kernel = Kernel { name: name.to_owned(), operator: event.args.op_name, index };
        let place = *places.entry(kernel.clone()).or_insert_with(|| {
            run.kernels.push((kernel, 0.0, 0));
            run.kernels.len() - 1
        });
        run.kernels[place].1 += event.dur * 1e-6;
        run.kernels[place].2 += 1;
    }
    Ok(runs)
}

/// Which of our nodes the events are about that do not carry a name of ours.
#[derive(Debug, Default)]
pub struct Attribution {
    of: BTreeMap<Kernel, NodeId>,
}

/// Events of a profile that carry no name of ours.
pub fn nameless(runs: &[Run]) -> BTreeSet<Kernel> {
    let all = runs.iter().flat_map(|run| run.kernels.iter().map(|(kernel, ..)| kernel));
    all.filter(|kernel| names::node_in(&kernel.name).is_none()).cloned().collect()
}

impl Attribution {
    /// Gives nameless events to the nodes of `model` whose values they compute. `as_run` is the graph as ONNX Runtime
    /// runs it: a nameless node there belongs to ours that gives the value it gives, else to whatever reads it.
    pub fn of(model: &Model, as_run: &Model, nameless: &BTreeSet<Kernel>) -> Attribution {
        let producer = |name: &str| {
            let value = model.find_value(model.main(), name)?;
            match model.value(value).producer {
                Producer::Node { node, .. } => Some(node),
                _ => None,
            }
        };
        let mut belongs: BTreeMap<NodeId, NodeId> = BTreeMap::new();
        let nodes: Vec<(NodeId, _)> = as_run.nodes_of(as_run.main()).collect();
        for (id, node) in nodes.iter().rev() {
            let given = node.outputs.iter().flatten();
            let by_value = || given.clone().find_map(|v| producer(&as_run.value(*v).name));
            let by_reader = || {
                let mut readers = given.clone().flat_map(|v| as_run.readers(*v));
                readers.find_map(|reader| belongs.get(&reader).copied())
            };
            let ours = names::node_in(&node.name).or_else(by_value).or_else(by_reader);
            if let Some(ours) = ours {
                belongs.insert(*id, ours);
            }
        }
        // Events without a name are called by operator and position: the k-th of an operator is the k-th in the file.
        let mut of = BTreeMap::new();
        let operators: BTreeSet<&str> = nameless.iter().map(|kernel| &*kernel.operator).collect();
        for operator in operators {
            let named = |kernel: &&Kernel| kernel.operator == operator;
            let mut events: Vec<&Kernel> = nameless.iter().filter(named).collect();
            events.sort_by_key(|kernel| kernel.index);
            let alike = nodes
                .iter()
                .filter(|(_, node)| &*node.op_type == operator && names::node_in(&node.name).is_none());
            let alike: Vec<NodeId> = alike.map(|(id, _)| *id).collect();
            // By the value's name where the event has it (`x_nchwc`), else by position.
            for (position, kernel) in events.iter().enumerate() {
                let by_name = kernel.name.strip_suffix("_nchwc").and_then(producer);
                let by_position = || match alike.len() == events.len() {
                    true => alike.get(position).and_then(|id| belongs.get(id)).copied(),
                    false => None,
                };
                if let Some(ours) = by_name.or_else(by_position) {
                    of.insert((*kernel).clone(), ours);
                }
            }
        }
        Attribution { of }
    }

    /// Times of a run by node, in order of first execution. What belongs to no node is left out: it is the difference
    /// between the run's time and the sum.
    pub fn times(&self, run: &Run, places: &Places) -> Vec<NodeTime> {
        let mut order: Vec<NodeId> = Vec::new();
        let mut sums: BTreeMap<NodeId, (f64, u32)> = BTreeMap::new();
        for (kernel, seconds, calls) in &run.kernels {
            let named = names::node_in(&kernel.name);
            let Some(node) = named.or_else(|| self.of.get(kernel).copied()) else { continue };
            let sum = sums.entry(node).or_insert_with(|| {
                order.push(node);
                (0.0, 0)
            });
            sum.0 += seconds;
            // Parts of an expanded operator are calls of the one node.
            sum.1 = if named.is_some() { sum.1 + calls } else { sum.1.max(*calls) };
        }
        // The event of an If or Loop covers what its bodies did.
        let all: Vec<(NodeId, f64)> = sums.iter().map(|(node, (seconds, _))| (*node, *seconds)).collect();
        for (node, seconds) in all {
            let around = places.path(node).iter().rev().find(|outer| sums.contains_key(outer)).copied();
            if let Some(sum) = around.and_then(|outer| sums.get_mut(&outer)) {
                sum.0 = (sum.0 - seconds).max(0.0);
            }
        }
        let time = |node: NodeId| {
            let (seconds, calls) = sums.get(&node).copied().unwrap_or_default();
            NodeTime { path: places.path(node).clone(), node, seconds, calls }
        };
        order.into_iter().map(time).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, ts: u64, dur: u64, op: &str, index: &str) -> serde_json::Value {
        serde_json::json!({"cat": if op.is_empty() {"Session"} else {"Node"}, "name": name, "ts": ts, "dur": dur,
            "args": {"op_name": op, "node_index": index, "mem_in_use_peak": "4096"}})
    }

    #[test]
    fn events_are_summed_by_run_and_bodies_taken_out_of_their_owner() {
        let model = crate::ir::text::parse(
            "<ir_version: 8, opset_import: [\"\" : 17]> g (bool c, float[2] x) => (float[2] y) {
                y = If (c) <then_branch = t () => (float[2] a) { a = Relu (x) },
                           else_branch = e () => (float[2] b) { b = Neg (x) }> }",
            std::path::Path::new("."),
        )
        .unwrap();
        let all = model.all_nodes();
        let name = |op: &str| {
            let id = all.iter().find(|id| &*model.node(**id).op_type == op).unwrap();
            (*id, format!("{}_kernel_time", names::name_of(*id)))
        };
        let ((choice, choice_name), (relu, relu_name)) = (name("If"), name("Relu"));
        let text = serde_json::json!([
            event("model_run", 0, 100, "", ""),
            event(&choice_name, 1, 90, "If", "0"),
            event("model_run", 200, 100, "", ""),
            event(&relu_name, 210, 30, "Relu", "0"),
            event(&relu_name, 250, 10, "Relu", "0"),
            event(&choice_name, 205, 70, "If", "0"),
        ]);
        let runs = runs(text.to_string().as_bytes()).unwrap();
        assert_eq!(runs.len(), 2);
        assert!(nameless(&runs).is_empty());
        assert_eq!(runs[1].peak_bytes, Some(4096));
        let times = Attribution::default().times(&runs[1], &Places::of(&model));
        let rounded: Vec<_> = times
            .iter()
            .map(|t| (t.node, t.path.to_vec(), (t.seconds * 1e6).round() as u64, t.calls))
            .collect();
        assert_eq!(rounded, [(choice, vec![], 30, 1), (relu, vec![choice], 40, 2)]);
    }
}
