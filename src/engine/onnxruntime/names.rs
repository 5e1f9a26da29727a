//! Names that nodes get while ONNX Runtime has them: unique, and found again in what it makes of them.
//!
//! It refuses two nodes of one name, calls nodes of a function `_inlfunc_FUNCTION_NAME` and those of later calls
//! `_inlfunc_FUNCTION_token_K_NAME`, and fused nodes by the first one's name with something added.

use crate::engine::CallPath;
use crate::ir::{GraphId, Model, NodeId, Text};
use std::collections::BTreeMap;

/// The name of a node.
pub fn name_of(node: NodeId) -> Text {
    format!("#{}#", node.0).into()
}

/// Names of all nodes of a model.
pub fn all(model: &Model) -> BTreeMap<NodeId, Text> {
    model.all_nodes().into_iter().map(|node| (node, name_of(node))).collect()
}

/// The first node that a name speaks of.
pub fn node_in(name: &str) -> Option<NodeId> {
    let mut rest = name;
    while let Some((_, after)) = rest.split_once('#') {
        if let Some((number, _)) = after.split_once('#')
            && !number.is_empty()
            && number.bytes().all(|b| b.is_ascii_digit())
        {
            return number.parse().ok().map(NodeId);
        }
        rest = after;
    }
    None
}

/// A text of ONNX Runtime's with our names replaced by what people call the nodes.
pub fn readable(text: &str, model: &Model) -> String {
    let mut parts = text.split('#').peekable();
    let mut out = parts.next().unwrap_or_default().to_owned();
    while let Some(part) = parts.next() {
        let node = part.parse().ok().map(NodeId).filter(|id| model.get_node(*id).is_some());
        match (node, parts.peek()) {
            (Some(node), Some(_)) => {
                out += &model.node_label(node);
                out += parts.next().unwrap_or_default();
            }
            _ => {
                out.push('#');
                out += part;
            }
        }
    }
    out
}

/// Where in a run each node stands.
#[derive(Debug, Default)]
pub struct Places {
    /// The path of a node that is reached in one way; of a function called several times there is none, since events
    /// do not say of which call they are.
    paths: BTreeMap<NodeId, CallPath>,
    nowhere: CallPath,
}

impl Places {
    /// All nodes of a model.
    pub fn of(model: &Model) -> Places {
        let mut places = Places::default();
        let mut visits = BTreeMap::new();
        places.visit(model, model.main(), &CallPath::new(), &mut visits);
        places
    }

    /// Nodes of If, Loop, Scan and calls around a node.
    pub fn path(&self, node: NodeId) -> &CallPath {
        self.paths.get(&node).unwrap_or(&self.nowhere)
    }

    /// Graphs are visited twice at most: the second visit says that there are several ways to them.
    fn visit(&mut self, model: &Model, graph: GraphId, path: &CallPath, visits: &mut BTreeMap<GraphId, u32>) {
        let count = visits.entry(graph).or_default();
        *count += 1;
        let several = *count > 1;
        if *count > 2 {
            return;
        }
        for (id, node) in model.nodes_of(graph) {
            match several {
                true => self.paths.insert(id, CallPath::new()),
                false => self.paths.insert(id, path.clone()),
            };
            let called = model.function_of(node).map(|function| function.graph);
            for inner in node.bodies().map(|(_, body)| body).chain(called) {
                let mut inside = if several { CallPath::new() } else { path.clone() };
                inside.push(id);
                self.visit(model, inner, &inside, visits);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_found_in_the_names_that_the_runtime_makes() {
        for (name, node) in [
            ("#12#", Some(12)),
            ("_inlfunc_F_token_3_#57#", Some(57)),
            ("#4#/MatMulAddFusion", Some(4)),
            ("a#b#7#", Some(7)),
            ("HardSigmoid_3", None),
            ("##", None),
            ("#99999999999#", None),
        ] {
            assert_eq!(node_in(name), node.map(NodeId), "{name}");
        }
    }
}
