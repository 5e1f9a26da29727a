//! Taking out a node whose result equals one of its inputs, whoever reads the result.
//!
//! Readers of the result read the input instead. Where the result is an output of the graph, its name has to stay: then
//! the node that gives the input gives it under the output's name. That cannot be done for a graph input, an initializer,
//! a value of an outer graph, or a value that is an output itself: some node has to stay between the two.

use super::matching::{self, blocked};
use super::operators;
use super::{Blocked, Context};
use crate::ir::{NodeId, PatchBuilder, Producer, Use, ValueId};

/// How a result can be replaced by an input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Route {
    /// Readers of the result read the input.
    Rewire,
    /// The input's producer gives the result at this output; readers of the input read the result.
    HandOver { producer: NodeId, output: usize },
}

/// The way to put `source` in the place of `result`, or why there is none. `node` gives the result, directly or as the
/// last of several nodes that go.
pub fn route(cx: &Context, node: NodeId, result: ValueId, source: ValueId) -> Result<Route, Blocked> {
    let model = cx.model;
    let no = |condition: String, blame: NodeId| Err(blocked(model, node, condition, blame));
    let (Some(from), Some(to)) = (model.get_value(result), model.get_value(source)) else {
        return no("the value is gone".into(), node);
    };
    for value in [result, source] {
        if let Some(condition) = matching::spoken_of(model, value) {
            return no(condition, node);
        }
    }
    if !from.uses.is_output() {
        return Ok(Route::Rewire);
    }
    let foreign = from.uses.iter().any(|u| matches!(u, Use::Output { graph, .. } if graph != from.graph));
    if foreign {
        return no(format!("'{}' is an output of an inner graph", from.name), node);
    }
    let between = |what: &str| format!("'{}' is an output of the graph and '{}' {what}", from.name, to.name);
    match to.producer {
        _ if to.graph != from.graph => no(between("belongs to an outer graph"), node),
        _ if to.uses.is_output() => no(between("is one, too"), node),
        Producer::Node { node: producer, output } => match model.get_node(producer) {
            Some(p) if operators::is_known(p) || model.function_of(p).is_some() => {
                Ok(Route::HandOver { producer, output: output as usize })
            }
            _ => no(between("is given by an operator that is not known"), producer),
        },
        Producer::Input { .. } => no(between("an input: a node has to stay between them"), node),
        Producer::Initializer => no(between("an initializer: a node has to stay between them"), node),
        Producer::Nothing => no("the value is gone".into(), node),
    }
}

/// Writes the replacement and the removal of `node`, after [`route`] said how.
pub fn replace(p: &mut PatchBuilder, route: Route, node: NodeId, result: ValueId, source: ValueId) {
    let model = p.model();
    match route {
        Route::Rewire => {
            p.replace_uses(result, source);
            p.remove_node(node);
        }
        Route::HandOver { producer, output } => {
            p.remove_node(node);
            if let Some(giver) = model.get_node(producer) {
                let mut outputs = giver.outputs.clone();
                if let Some(slot) = outputs.get_mut(output) {
                    *slot = Some(result);
                }
                p.set_outputs(producer, outputs);
            }
            p.replace_uses(source, result);
        }
    }
}
