//! Calls between model-local functions: one that calls itself could never be expanded.

use std::collections::BTreeMap;

use petgraph::graph::DiGraph;

use super::proto::NodeProto;
use crate::formats::error::Refusal;
use crate::ir::Function;

/// Which function calls which, by operator name.
#[derive(Default)]
pub struct Calls {
    declared: BTreeMap<Key, usize>,
    made: Vec<(usize, Key)>,
}

/// Name, domain, overload.
type Key = (String, String, String);

impl Calls {
    fn key(name: &str, domain: &str, overload: &str) -> Key {
        let domain = if domain == "ai.onnx" { "" } else { domain };
        (name.to_owned(), domain.to_owned(), overload.to_owned())
    }

    /// Makes function `index` known under its name.
    pub fn declare(&mut self, name: &str, domain: &str, overload: &str, index: usize) {
        self.declared.entry(Calls::key(name, domain, overload)).or_insert(index);
    }

    /// Notes what a node of function `caller` calls, and what the nodes in its bodies call.
    pub fn note(&mut self, caller: usize, node: &NodeProto) {
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        let key = Calls::key(&text(&node.op_type), &text(&node.domain), &text(&node.overload));
        self.made.push((caller, key));
        let bodies = node.attribute.iter().flat_map(|a| a.g.as_deref().into_iter().chain(&a.graphs));
        for inner in bodies.flat_map(|body| &body.node) {
            self.note(caller, inner);
        }
    }

    /// Refuses recursion; `functions` are those that were declared, by index.
    pub fn check(self, functions: &[Function]) -> Result<(), Refusal> {
        let mut graph = DiGraph::<usize, ()>::new();
        let at: Vec<_> = (0..functions.len()).map(|index| graph.add_node(index)).collect();
        for (caller, key) in &self.made {
            let callee = self.declared.get(key).and_then(|index| at.get(*index));
            if let (Some(caller), Some(callee)) = (at.get(*caller), callee) {
                graph.add_edge(*caller, *callee, ());
            }
        }
        match petgraph::algo::toposort(&graph, None) {
            Ok(_) => Ok(()),
            Err(cycle) => {
                let name = graph.node_weight(cycle.node_id()).and_then(|index| functions.get(*index));
                let name = name.map(|function| function.name.to_string()).unwrap_or_default();
                Err(Refusal::new(format!("function '{name}'"), "it calls itself, directly or through others"))
            }
        }
    }
}
