//! Origins and steps of nodes as `metadata_props` in the saved model.

use crate::ir::{Edit, Model, NodeId, Patch, PatchError, Text};
use crate::pipeline::{Run, State};
use std::collections::BTreeMap;

/// Key of the imported nodes that a node comes from: a JSON list of names.
pub const ORIGINS: &str = "passlens.origins";

/// Key of the steps that made or touched a node: a JSON list of `number site-key`.
pub const STEPS: &str = "passlens.steps";

/// The model with origins and steps of each node that a step touched in the node's metadata. A node that came with such
/// entries from an earlier run gets the new ones in their place.
pub fn written(state: &State, run: &Run) -> Result<Model, PatchError> {
    let keys: BTreeMap<u32, String> = run.steps.iter().map(|s| (s.number, s.key.to_string())).collect();
    let imported = &run.initial.model;
    let mut patch = Patch::default();
    for (id, steps) in state.provenance.touched() {
        let Some(node) = state.model.get_node(id) else { continue };
        let steps: Vec<String> = steps.iter().filter_map(|n| Some(format!("{n} {}", keys.get(n)?))).collect();
        if steps.is_empty() {
            continue;
        }
        let origins = state.provenance.origins(id);
        let origins: Vec<String> = origins.iter().map(|n: &NodeId| imported.node_label(*n)).collect();
        let mut node = (**node).clone();
        node.metadata.retain(|(key, _)| &**key != ORIGINS && &**key != STEPS);
        node.metadata.push((ORIGINS.into(), json(&origins)));
        node.metadata.push((STEPS.into(), json(&steps)));
        patch.edits.push(Edit::RemoveNode { id });
        patch.edits.push(Edit::AddNode { id, node });
    }
    let mut model = state.model.clone();
    model.apply(&patch)?;
    Ok(model)
}

fn json(list: &[String]) -> Text {
    serde_json::Value::from(list).to_string().into()
}
