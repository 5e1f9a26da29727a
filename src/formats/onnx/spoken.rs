//! Names of values in messages that are kept unread: quantization annotations and training info.

use std::collections::BTreeMap;

use super::extra;
use super::proto::{AttributeProto, GraphProto, NodeProto, TensorAnnotation, TrainingInfoProto};
use super::schema::MessageKind;
use crate::ir::{Model, Text};

/// What a value is called for that a quantization annotation names.
const ANNOTATION: &str = "a quantization annotation";
/// What a value is called for that the training info names.
const TRAINING: &str = "the training info";

/// The model with what its kept messages speak of; messages that cannot be read speak of nothing.
pub fn with_spoken(model: Model) -> Model {
    let mut spoken: BTreeMap<Text, Text> = BTreeMap::new();
    for raw in &model.header().training {
        let Some((training, _)) = extra::decode::<TrainingInfoProto>(raw, MessageKind::TrainingInfo) else {
            continue;
        };
        let mut note = |name: &str| note(&mut spoken, name, TRAINING);
        for binding in training.initialization_binding.iter().chain(&training.update_binding) {
            [&binding.key, &binding.value].into_iter().flatten().for_each(|name| note(name));
        }
        // The algorithm reads values of the model by their names.
        for graph in training.initialization.iter().chain(&training.algorithm) {
            names_in(graph, &mut note);
        }
    }
    for graph in model.live_graphs() {
        for (tensor, raw) in model.graph(graph).annotations.iter() {
            note(&mut spoken, tensor, ANNOTATION);
            let Some((annotation, _)) = extra::decode::<TensorAnnotation>(raw, MessageKind::TensorAnnotation)
            else {
                continue;
            };
            let parameters =
                annotation.quant_parameter_tensor_names.iter().filter_map(|entry| entry.value.as_deref());
            parameters.for_each(|name| note(&mut spoken, name, ANNOTATION));
        }
    }
    match spoken.is_empty() {
        true => model,
        false => model.with_spoken(spoken),
    }
}

fn note(spoken: &mut BTreeMap<Text, Text>, name: &str, by: &str) {
    if !name.is_empty() {
        spoken.entry(name.into()).or_insert_with(|| by.into());
    }
}

/// Every name that a graph reads or gives: which of them are its own does not matter here.
fn names_in(graph: &GraphProto, note: &mut dyn FnMut(&str)) {
    graph.output.iter().filter_map(|output| output.name.as_deref()).for_each(&mut *note);
    graph.node.iter().for_each(|node| names_of(node, note));
}

fn names_of(node: &NodeProto, note: &mut dyn FnMut(&str)) {
    node.input.iter().for_each(|name| note(name));
    node.attribute.iter().for_each(|attribute: &AttributeProto| {
        attribute
            .g
            .iter()
            .map(|graph| &**graph)
            .chain(&attribute.graphs)
            .for_each(|graph| names_in(graph, note));
    });
}
