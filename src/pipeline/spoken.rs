//! Patches that would leave a kept message (quantization annotation, training info) speaking of something else: no pass has
//! to know of those messages.

use crate::ir::{Edit, Model, Patch, ValueId};

/// The condition that stands in the way of a patch, if one does: it removes a value that a kept message names, gives it
/// other data, or no longer reads a constant that one names.
pub(super) fn in_the_way(model: &Model, patch: &Patch) -> Option<String> {
    let spoken = |value: ValueId| {
        let by = model.spoken_of(value)?;
        Some(format!("{by} of the model speaks of '{}'", model.get_value(value)?.name))
    };
    let constant = |value: &ValueId| model.get_value(*value).is_some_and(|v| v.constant.is_some());
    patch.edits.iter().find_map(|edit| match edit {
        Edit::RemoveValue { id } => spoken(*id),
        Edit::SetConstant { value, .. } => spoken(*value),
        Edit::ReplaceUses { of, .. } if constant(of) => spoken(*of),
        Edit::RemoveNode { id } => {
            model.get_node(*id)?.inputs.iter().flatten().filter(|v| constant(v)).find_map(|v| spoken(*v))
        }
        Edit::SetInputs { node, inputs } => {
            let lost =
                model.get_node(*node)?.inputs.iter().flatten().filter(|v| !inputs.contains(&Some(**v)));
            lost.filter(|v| constant(v)).find_map(|v| spoken(*v))
        }
        _ => None,
    })
}
