//! From the model to messages: what import kept is put back, everything else is written in the usual form.

use std::collections::BTreeMap;

use super::external::Placement;
use super::extra::{self, Kept};
use super::proto::{
    DeviceConfigurationProto, FunctionProto, GraphProto, ModelProto, NodeProto, TensorAnnotation,
    TensorProto, TrainingInfoProto,
};
use super::schema::MessageKind;
use super::wire::Unknown;
use super::{field, tensors, types};
use crate::formats::error::Refusal;
use crate::ir::{Constant, Declaration, Function, Graph, GraphId, Model, NodeId, Text, Value, ValueId};

/// A model as messages: `unknown` are the fields that `message` cannot hold.
pub struct Exported {
    pub message: ModelProto,
    pub unknown: Unknown,
}

/// Writes `model` as messages. `renamed` are nodes that get another name in the file.
pub fn export(
    model: &Model,
    placement: &mut dyn Placement,
    renamed: &BTreeMap<NodeId, Text>,
) -> Result<Exported, Refusal> {
    let mut values: BTreeMap<GraphId, Vec<ValueId>> = BTreeMap::new();
    for (id, value) in model.values() {
        if value.constant.is_some() || value.declaration.is_some() {
            values.entry(value.graph).or_default().push(id);
        }
    }
    Exporter { model, placement, renamed, values }.model()
}

pub(super) struct Exporter<'a> {
    model: &'a Model,
    pub(super) placement: &'a mut dyn Placement,
    renamed: &'a BTreeMap<NodeId, Text>,
    /// Values with data or a declaration, by graph.
    values: BTreeMap<GraphId, Vec<ValueId>>,
}

impl Exporter<'_> {
    fn model(mut self) -> Result<Exported, Refusal> {
        let header = self.model.header();
        let mut kept = Kept::<ModelProto>::of(&header.extra, MessageKind::Model);
        let mut message = ModelProto {
            ir_version: kept.int(field::model::IR_VERSION, header.ir_version, true),
            opset_import: kept.opsets(field::model::OPSET_IMPORT, &header.opsets, |m| &mut m.opset_import),
            producer_name: kept.text(field::model::PRODUCER_NAME, &header.producer_name, false),
            producer_version: kept.text(field::model::PRODUCER_VERSION, &header.producer_version, false),
            domain: kept.text(field::model::DOMAIN, &header.domain, false),
            model_version: kept.int(field::model::MODEL_VERSION, header.model_version, false),
            doc_string: kept.text(field::model::DOC_STRING, &header.doc, false),
            metadata_props: kept
                .pairs(field::model::METADATA_PROPS, &header.metadata, |m| &mut m.metadata_props),
            ..ModelProto::default()
        };
        let (graph, tree) = self.graph(self.model.main())?;
        message.graph = Some(graph);
        kept.tree.put(field::model::GRAPH, 0, tree);
        for (index, raw) in header.training.iter().enumerate() {
            let (training, tree) = extra::decode::<TrainingInfoProto>(raw, MessageKind::TrainingInfo)
                .ok_or_else(|| {
                    Refusal::new(format!("training info {index}"), "the bytes kept of it are damaged")
                })?;
            message.training_info.push(training);
            kept.tree.put(field::model::TRAINING_INFO, index, tree);
        }
        for (index, raw) in header.configurations.iter().enumerate() {
            let (configuration, tree) = extra::decode::<DeviceConfigurationProto>(
                raw,
                MessageKind::DeviceConfiguration,
            )
            .ok_or_else(|| {
                Refusal::new(format!("device configuration {index}"), "the bytes kept of it are damaged")
            })?;
            message.configuration.push(configuration);
            kept.tree.put(field::model::CONFIGURATION, index, tree);
        }
        for (index, function) in header.functions.iter().enumerate() {
            let (function, tree) = self.function(function)?;
            message.functions.push(function);
            kept.tree.put(field::model::FUNCTIONS, index, tree);
        }
        Ok(Exported { message, unknown: kept.tree })
    }

    /// The message for a graph that a model or an attribute holds.
    pub(super) fn graph(&mut self, id: GraphId) -> Result<(GraphProto, Unknown), Refusal> {
        let model = self.model;
        let Some(graph) = model.get_graph(id) else {
            return Err(Refusal::new("model", format!("graph {id} is not there")));
        };
        let mut kept = Kept::<GraphProto>::of(&graph.extra, MessageKind::Graph);
        let mut message = GraphProto {
            name: kept.text(field::graph::NAME, &graph.name, false),
            doc_string: kept.text(field::graph::DOC_STRING, &graph.doc, false),
            metadata_props: kept
                .pairs(field::graph::METADATA_PROPS, &graph.metadata, |m| &mut m.metadata_props),
            ..GraphProto::default()
        };
        for (index, port) in graph.inputs.iter().enumerate() {
            let (info, tree) = types::write_declaration(&model.value(port.value).name, &port.declaration);
            message.input.push(info);
            kept.tree.put(field::graph::INPUT, index, tree);
        }
        for (index, port) in graph.outputs.iter().enumerate() {
            let (info, tree) = types::write_declaration(&model.value(port.value).name, &port.declaration);
            message.output.push(info);
            kept.tree.put(field::graph::OUTPUT, index, tree);
        }
        self.initializers(id, &mut message, &mut kept.tree)?;
        for (index, node) in graph.nodes.values().enumerate() {
            let (node, tree) = self.node(*node)?;
            message.node.push(node);
            kept.tree.put(field::graph::NODE, index, tree);
        }
        for (index, (name, declaration)) in self.declarations(id, graph).into_iter().enumerate() {
            let (info, tree) = types::write_declaration(&name, declaration);
            message.value_info.push(info);
            kept.tree.put(field::graph::VALUE_INFO, index, tree);
        }
        for (index, (tensor, raw)) in graph.annotations.iter().enumerate() {
            let (annotation, tree) = extra::decode::<TensorAnnotation>(raw, MessageKind::TensorAnnotation)
                .ok_or_else(|| {
                    Refusal::new(format!("annotation of '{tensor}'"), "the bytes kept of it are damaged")
                })?;
            message.quantization_annotation.push(annotation);
            kept.tree.put(field::graph::QUANTIZATION_ANNOTATION, index, tree);
        }
        Ok((message, kept.tree))
    }

    fn initializers(
        &mut self,
        graph: GraphId,
        message: &mut GraphProto,
        tree: &mut Unknown,
    ) -> Result<(), Refusal> {
        let mut initializers: Vec<(u32, ValueId, &Value, &Constant)> = Vec::new();
        for id in self.values.get(&graph).into_iter().flatten() {
            let value = self.model.value(*id);
            if let Some(constant) = &value.constant {
                initializers.push((value.constant_position, *id, value, constant));
            }
        }
        initializers.sort_by_key(|(position, id, ..)| (*position, *id));
        for (_, _, value, constant) in initializers {
            let refuse = |what: String| Refusal::new(format!("initializer '{}'", value.name), what);
            match constant {
                Constant::Dense(tensor) => {
                    let (tensor, unknown) = tensors::write_tensor(tensor, self.placement).map_err(refuse)?;
                    tree.put(field::graph::INITIALIZER, message.initializer.len(), unknown);
                    message.initializer.push(TensorProto { name: Some(value.name.to_string()), ..tensor });
                }
                Constant::Sparse(tensor) => {
                    let written = tensors::write_sparse(tensor, Some(&value.name), self.placement);
                    let (tensor, unknown) = written.map_err(refuse)?;
                    tree.put(field::graph::SPARSE_INITIALIZER, message.sparse_initializer.len(), unknown);
                    message.sparse_initializer.push(tensor);
                }
            }
        }
        Ok(())
    }

    /// Declarations of a graph's values and of names without a value, in file order.
    fn declarations<'m>(&self, id: GraphId, graph: &'m Graph) -> Vec<(Text, &'m Declaration)>
    where
        Self: 'm,
    {
        let mut listed: Vec<(Text, &Declaration)> = graph
            .stray_declarations
            .iter()
            .map(|(name, declaration)| (name.clone(), &**declaration))
            .collect();
        for value in self.values.get(&id).into_iter().flatten().map(|id| self.model.value(*id)) {
            if let Some(declaration) = &value.declaration {
                listed.push((value.name.clone(), declaration));
            }
        }
        listed.sort_by_key(|(_, declaration)| declaration.position);
        listed
    }

    fn node(&mut self, id: NodeId) -> Result<(NodeProto, Unknown), Refusal> {
        let node = self.model.node(id);
        let mut kept = Kept::<NodeProto>::of(&node.extra, MessageKind::Node);
        let name = |value: &Option<ValueId>| match value {
            Some(value) => self.model.value(*value).name.to_string(),
            None => String::new(),
        };
        let mut message = NodeProto {
            input: node.inputs.iter().map(name).collect(),
            output: node.outputs.iter().map(name).collect(),
            name: kept.text(field::node::NAME, self.renamed.get(&id).unwrap_or(&node.name), false),
            op_type: kept.text(field::node::OP_TYPE, &node.op_type, true),
            domain: kept.text(field::node::DOMAIN, &node.domain, false),
            overload: kept.text(field::node::OVERLOAD, &node.overload, false),
            doc_string: kept.text(field::node::DOC_STRING, &node.doc, false),
            metadata_props: kept
                .pairs(field::node::METADATA_PROPS, &node.metadata, |m| &mut m.metadata_props),
            device_configurations: std::mem::take(&mut kept.fields.device_configurations),
            attribute: Vec::with_capacity(node.attributes.len()),
        };
        for (index, attribute) in node.attributes.iter().enumerate() {
            let (attribute, tree) = self.attribute(attribute).map_err(|refusal| {
                let place = format!("{} of node '{}'", refusal.place, self.model.node_label(id));
                if refusal.place.starts_with("attribute") { Refusal { place, ..refusal } } else { refusal }
            })?;
            message.attribute.push(attribute);
            kept.tree.put(field::node::ATTRIBUTE, index, tree);
        }
        Ok((message, kept.tree))
    }

    fn function(&mut self, function: &Function) -> Result<(FunctionProto, Unknown), Refusal> {
        let model = self.model;
        let graph = model.graph(function.graph);
        let mut kept = Kept::<FunctionProto>::of(&function.extra, MessageKind::Function);
        let name = |value: ValueId| model.value(value).name.to_string();
        let mut message = FunctionProto {
            name: kept.text(field::function::NAME, &function.name, true),
            domain: kept.text(field::function::DOMAIN, &function.domain, true),
            overload: kept.text(field::function::OVERLOAD, &function.overload, false),
            doc_string: kept.text(field::function::DOC_STRING, &graph.doc, false),
            metadata_props: kept
                .pairs(field::function::METADATA_PROPS, &graph.metadata, |m| &mut m.metadata_props),
            opset_import: kept
                .opsets(field::function::OPSET_IMPORT, &function.opsets, |m| &mut m.opset_import),
            input: graph.inputs.iter().map(|port| name(port.value)).collect(),
            output: graph.outputs.iter().map(|port| name(port.value)).collect(),
            attribute: function.attributes.iter().map(Text::to_string).collect(),
            ..FunctionProto::default()
        };
        for (index, attribute) in function.defaults.iter().enumerate() {
            let (attribute, tree) = self.attribute(attribute)?;
            message.attribute_proto.push(attribute);
            kept.tree.put(field::function::ATTRIBUTE_PROTO, index, tree);
        }
        for (index, node) in graph.nodes.values().enumerate() {
            let (node, tree) = self.node(*node)?;
            message.node.push(node);
            kept.tree.put(field::function::NODE, index, tree);
        }
        for (index, (name, declaration)) in self.declarations(function.graph, graph).into_iter().enumerate() {
            let (info, tree) = types::write_declaration(&name, declaration);
            message.value_info.push(info);
            kept.tree.put(field::function::VALUE_INFO, index, tree);
        }
        Ok((message, kept.tree))
    }
}
