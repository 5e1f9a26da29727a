//! From messages to the model: names become values, bodies become graphs, and what breaks the rules is refused or noted.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::calls::Calls;
use super::external::DataFiles;
use super::extra::{self, Remainder};
use super::names::{Frame, node_place};
use super::proto::{FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto};
use super::schema::MessageKind;
use super::wire::Unknown;
use super::{field, tensors, types};
use crate::formats::error::{Problem, Refusal, Severity};
use crate::ir::tensor::Data;
use crate::ir::{
    Constant, Construction, Declaration, Function, GraphId, GraphKind, Header, Model, Node, NodeId, Producer,
    Text, Type, ValueId,
};

/// Newest IR version whose messages `proto.rs` has.
pub const NEWEST_IR: i64 = 14;

/// Problems of one kind that are listed one by one; of more, their number is said.
pub(super) const LISTED: usize = 20;

/// Builds the model. `tree` are the unknown fields of `message`; `files` finds external data.
pub fn import(
    message: ModelProto,
    tree: Unknown,
    files: &mut DataFiles,
) -> Result<(Model, Vec<Problem>), Refusal> {
    let mut importer = Importer {
        c: Construction::new(Header::default()),
        problems: Vec::new(),
        shadowed: 0,
        files,
        texts: FxHashMap::default(),
        frames: Vec::new(),
    };
    importer.model(message, tree)?;
    if importer.shadowed > LISTED {
        let more = importer.shadowed - LISTED;
        importer.problems.push(Problem::new(Severity::Warning, format!("{more} more names hide outer ones")));
    }
    Ok((importer.c.finish(), importer.problems))
}

pub(super) struct Importer<'a> {
    pub(super) c: Construction,
    pub(super) problems: Vec<Problem>,
    pub(super) shadowed: usize,
    pub(super) files: &'a mut DataFiles,
    texts: FxHashMap<Text, ()>,
    /// The graphs around what is being read, outermost first.
    pub(super) frames: Vec<Frame>,
}

impl Importer<'_> {
    fn model(&mut self, message: ModelProto, mut tree: Unknown) -> Result<(), Refusal> {
        let unknown_fields = !tree.is_empty();
        let mut rest = Remainder::new(&mut tree);
        let mut header = Header {
            ir_version: rest.int(field::model::IR_VERSION, message.ir_version, true),
            opsets: rest.opsets(field::model::OPSET_IMPORT, &message.opset_import, &mut tree),
            producer_name: rest.text(field::model::PRODUCER_NAME, &message.producer_name, false).into(),
            producer_version: rest
                .text(field::model::PRODUCER_VERSION, &message.producer_version, false)
                .into(),
            domain: rest.text(field::model::DOMAIN, &message.domain, false).into(),
            model_version: rest.int(field::model::MODEL_VERSION, message.model_version, false),
            doc: rest.text(field::model::DOC_STRING, &message.doc_string, false).into(),
            metadata: rest.pairs(field::model::METADATA_PROPS, &message.metadata_props, &mut tree),
            ..Header::default()
        };
        for (index, training) in message.training_info.iter().enumerate() {
            let tree = tree.take(field::model::TRAINING_INFO, index);
            header.training.push(extra::encode(training, MessageKind::TrainingInfo, &tree));
        }
        for (index, configuration) in message.configuration.iter().enumerate() {
            let tree = tree.take(field::model::CONFIGURATION, index);
            header.configurations.push(extra::encode(configuration, MessageKind::DeviceConfiguration, &tree));
        }
        header.extra = rest.finish();
        self.note_header(&header, unknown_fields);
        let Some(graph) = message.graph else {
            return Err(Refusal::new("model", "it has no graph; is it a model at all?"));
        };
        let main = self.c.main();
        self.graph(main, graph, tree.take(field::model::GRAPH, 0), "main".to_owned())?;
        let mut calls = Calls::default();
        for (index, function) in message.functions.into_iter().enumerate() {
            let tree = tree.take(field::model::FUNCTIONS, index);
            let function = self.function(index, function, tree, &mut calls)?;
            header.functions.push(function);
        }
        calls.check(&header.functions)?;
        self.note_opsets(&header);
        self.c.header = header;
        Ok(())
    }

    fn note_header(&mut self, header: &Header, unknown_fields: bool) {
        let mut note = |severity, text: String| self.problems.push(Problem::new(severity, text));
        if header.ir_version > NEWEST_IR {
            let text =
                format!("IR version {} is newer than {NEWEST_IR}, the newest known here", header.ir_version);
            note(Severity::Warning, text);
        } else if header.ir_version < 1 {
            note(Severity::Warning, "the model does not say its IR version".to_owned());
        }
        if unknown_fields {
            let text =
                "the file has fields that are newer than this program: kept as they are and written back";
            note(Severity::Note, text.to_owned());
        }
    }

    /// Domains that are used without a version of their operators being stated.
    fn note_opsets(&mut self, header: &Header) {
        let standard = |domain: &str| matches!(domain, "" | "ai.onnx");
        let same = |a: &str, b: &str| a == b || standard(a) && standard(b);
        let mut missing: BTreeMap<Text, NodeId> = BTreeMap::new();
        for index in 0.. {
            let id = NodeId(index);
            let Some(node) = self.c.node(id) else { break };
            let opsets = match self.root(node.graph) {
                Some(function) => header.functions.get(function as usize).map(|f| f.opsets.as_slice()),
                None => Some(header.opsets.as_slice()),
            };
            if !opsets.unwrap_or_default().iter().any(|(domain, _)| same(domain, &node.domain)) {
                missing.entry(node.domain.clone()).or_insert(id);
            }
        }
        for (domain, node) in missing {
            let domain = if standard(&domain) {
                "the standard operators".to_owned()
            } else {
                format!("domain '{domain}'")
            };
            let text = format!("no opset import states the version of {domain}");
            self.problems.push(Problem::new(Severity::Warning, text).at_node(node));
        }
    }

    /// The function that a graph belongs to.
    fn root(&self, mut graph: GraphId) -> Option<u32> {
        loop {
            match &self.c.graph(graph).kind {
                GraphKind::Main => return None,
                GraphKind::Function(index) => return Some(*index),
                GraphKind::Body { owner, .. } => graph = self.c.node(*owner)?.graph,
            }
        }
    }

    /// Fills graph `id`; `label` names it in messages.
    pub(super) fn graph(
        &mut self,
        id: GraphId,
        message: GraphProto,
        mut tree: Unknown,
        label: String,
    ) -> Result<(), Refusal> {
        let mut rest = Remainder::new(&mut tree);
        let metadata = rest.pairs(field::graph::METADATA_PROPS, &message.metadata_props, &mut tree);
        let mut annotations = Vec::new();
        for (index, annotation) in message.quantization_annotation.iter().enumerate() {
            let name = self.text(annotation.tensor_name.as_deref().unwrap_or_default());
            let tree = tree.take(field::graph::QUANTIZATION_ANNOTATION, index);
            annotations.push((name, extra::encode(annotation, MessageKind::TensorAnnotation, &tree)));
        }
        let draft = self.c.graph_mut(id);
        draft.name = rest.text(field::graph::NAME, &message.name, false).into();
        draft.doc = rest.text(field::graph::DOC_STRING, &message.doc_string, false).into();
        draft.extra = rest.finish();
        draft.metadata = metadata;
        draft.annotations = annotations;
        self.enter(label, message.node.len());
        for (index, info) in message.input.iter().enumerate() {
            let name = info.name.as_deref().unwrap_or_default();
            if name.is_empty() {
                return Err(self.refuse(format!("input {index}"), "it has no name"));
            }
            let declaration = types::read_declaration(info, tree.take(field::graph::INPUT, index), 0);
            let value = self.define(id, name, declaration.ty.clone(), None)?;
            self.c.add_input(id, value, declaration);
        }
        for (index, tensor) in message.initializer.into_iter().enumerate() {
            self.initializer(id, index, tensor, tree.take(field::graph::INITIALIZER, index))?;
        }
        for (index, mut tensor) in message.sparse_initializer.into_iter().enumerate() {
            let name = tensor.values.as_mut().and_then(|values| values.name.take()).unwrap_or_default();
            let place = format!("sparse initializer '{name}'");
            let read =
                tensors::read_sparse(tensor, tree.take(field::graph::SPARSE_INITIALIZER, index), self.files);
            let tensor = read.map_err(|what| self.refuse(place.as_str(), what))?;
            for part in [&tensor.values, &tensor.indices] {
                self.note_missing(None, &place, &part.data);
            }
            self.constant(id, index, &name, Constant::Sparse(tensor.into()))?;
        }
        self.nodes(id, message.node, &mut tree, field::graph::NODE)?;
        for (index, info) in message.output.iter().enumerate() {
            let name = info.name.as_deref().unwrap_or_default();
            let declaration = types::read_declaration(info, tree.take(field::graph::OUTPUT, index), 0);
            self.output(id, index, name, declaration)?;
        }
        for (index, info) in message.value_info.iter().enumerate() {
            let declaration =
                types::read_declaration(info, tree.take(field::graph::VALUE_INFO, index), index as u32);
            self.declare(id, info.name.as_deref().unwrap_or_default(), declaration);
        }
        self.leave(id)
    }

    fn function(
        &mut self,
        index: usize,
        message: FunctionProto,
        mut tree: Unknown,
        calls: &mut Calls,
    ) -> Result<Function, Refusal> {
        let mut rest = Remainder::new(&mut tree);
        let name = self.text(rest.text(field::function::NAME, &message.name, true));
        let domain = self.text(rest.text(field::function::DOMAIN, &message.domain, true));
        let overload = self.text(rest.text(field::function::OVERLOAD, &message.overload, false));
        let doc = rest.text(field::function::DOC_STRING, &message.doc_string, false).into();
        let metadata = rest.pairs(field::function::METADATA_PROPS, &message.metadata_props, &mut tree);
        let opsets = rest.opsets(field::function::OPSET_IMPORT, &message.opset_import, &mut tree);
        let extra = rest.finish();
        let graph = self.c.add_graph(GraphKind::Function(index as u32));
        let draft = self.c.graph_mut(graph);
        draft.name = name.clone();
        draft.doc = doc;
        draft.metadata = metadata;
        calls.declare(&name, &domain, &overload, index);
        for node in &message.node {
            calls.note(index, node);
        }
        self.enter(format!("function {name}"), message.node.len());
        for (index, input) in message.input.iter().enumerate() {
            if input.is_empty() {
                return Err(self.refuse(format!("input {index}"), "it has no name"));
            }
            let value = self.define(graph, input, Type::Unknown, None)?;
            self.c.add_input(graph, value, Declaration::default());
        }
        self.nodes(graph, message.node, &mut tree, field::function::NODE)?;
        for (index, output) in message.output.iter().enumerate() {
            self.output(graph, index, output, Declaration::default())?;
        }
        for (index, info) in message.value_info.iter().enumerate() {
            let declaration =
                types::read_declaration(info, tree.take(field::function::VALUE_INFO, index), index as u32);
            self.declare(graph, info.name.as_deref().unwrap_or_default(), declaration);
        }
        let mut defaults = Vec::new();
        for (index, attribute) in message.attribute_proto.into_iter().enumerate() {
            let place = format!("default of attribute '{}'", attribute.name.as_deref().unwrap_or_default());
            defaults.push(self.attribute(
                None,
                graph,
                attribute,
                tree.take(field::function::ATTRIBUTE_PROTO, index),
                &place,
            )?);
        }
        self.leave(graph)?;
        let attributes = message.attribute.iter().map(|name| self.text(name)).collect();
        Ok(Function { name, domain, overload, graph, attributes, defaults, opsets, extra })
    }

    fn nodes(
        &mut self,
        graph: GraphId,
        nodes: Vec<NodeProto>,
        tree: &mut Unknown,
        number: u32,
    ) -> Result<(), Refusal> {
        // All outputs first: a reader may stand before its producer, and is sorted behind it later.
        let mut outputs: Vec<Vec<Option<ValueId>>> = Vec::with_capacity(nodes.len());
        for (position, node) in nodes.iter().enumerate() {
            let mut ids = Vec::with_capacity(node.output.len());
            for name in &node.output {
                ids.push(match name.is_empty() {
                    true => None,
                    false => {
                        Some(self.define(graph, name, Type::Unknown, Some((position as u32, &nodes)))?)
                    }
                });
            }
            outputs.push(ids);
        }
        for (position, (node, outputs)) in nodes.into_iter().zip(outputs).enumerate() {
            if let Some(frame) = self.frames.last_mut() {
                frame.current = position as u32;
            }
            self.node(graph, position, node, outputs, tree.take(number, position))?;
        }
        if let Some(frame) = self.frames.last_mut() {
            frame.current = u32::MAX;
        }
        Ok(())
    }

    fn node(
        &mut self,
        graph: GraphId,
        position: usize,
        message: NodeProto,
        outputs: Vec<Option<ValueId>>,
        mut tree: Unknown,
    ) -> Result<(), Refusal> {
        let place = node_place(position, &message);
        let id = self.c.reserve_node();
        let mut rest = Remainder::new(&mut tree);
        let mut node = Node::new(graph, "");
        node.name = self.text(rest.text(field::node::NAME, &message.name, false));
        node.op_type = self.text(rest.text(field::node::OP_TYPE, &message.op_type, true));
        node.domain = self.text(rest.text(field::node::DOMAIN, &message.domain, false));
        node.overload = self.text(rest.text(field::node::OVERLOAD, &message.overload, false));
        node.doc = self.text(rest.text(field::node::DOC_STRING, &message.doc_string, false));
        node.metadata = rest.pairs(field::node::METADATA_PROPS, &message.metadata_props, &mut tree);
        for (index, configuration) in message.device_configurations.iter().enumerate() {
            rest.keep(
                field::node::DEVICE_CONFIGURATIONS,
                configuration,
                MessageKind::NodeDeviceConfiguration,
                tree.take(field::node::DEVICE_CONFIGURATIONS, index),
            );
        }
        node.extra = rest.finish();
        node.outputs = outputs.into();
        for (index, name) in message.input.iter().enumerate() {
            node.inputs.push(match name.is_empty() {
                true => None,
                false => match self.resolve(name) {
                    Some(value) => Some(value),
                    None => {
                        return Err(
                            self.refuse(place, format!("input {index} is '{name}', which nothing produces"))
                        );
                    }
                },
            });
        }
        for (index, attribute) in message.attribute.into_iter().enumerate() {
            node.attributes.push(self.attribute(
                Some(id),
                graph,
                attribute,
                tree.take(field::node::ATTRIBUTE, index),
                &place,
            )?);
        }
        self.c.set_node(id, node);
        Ok(())
    }

    fn initializer(
        &mut self,
        graph: GraphId,
        index: usize,
        mut tensor: TensorProto,
        tree: Unknown,
    ) -> Result<(), Refusal> {
        let name = tensor.name.take().unwrap_or_default();
        let read = tensors::read_tensor(tensor, tree, self.files);
        let tensor = read.map_err(|what| self.refuse(format!("initializer '{name}'"), what))?;
        let missing = match &tensor.data {
            Data::Missing(reason) => Some(format!("initializer '{name}': {reason}")),
            _ => None,
        };
        let value = self.constant(graph, index, &name, tensor.into())?;
        if let Some(text) = missing {
            self.problems.push(Problem::new(Severity::Error, text).at_value(value));
        }
        Ok(())
    }

    /// Gives a value constant data: an input of that name, or a new value.
    fn constant(
        &mut self,
        graph: GraphId,
        index: usize,
        name: &str,
        constant: Constant,
    ) -> Result<ValueId, Refusal> {
        if name.is_empty() {
            return Err(self.refuse(format!("initializer {index}"), "it has no name"));
        }
        let known = self.frames.last().and_then(|frame| frame.names.get(name)).map(|known| known.value);
        let id = match known {
            Some(id) if self.c.value(id).constant.is_none() => id,
            Some(_) => {
                return Err(self.refuse(format!("initializer '{name}'"), "two initializers have this name"));
            }
            None => {
                let id = self.define(graph, name, constant.ty(), None)?;
                self.c.value_mut(id).producer = Producer::Initializer;
                id
            }
        };
        let value = self.c.value_mut(id);
        value.constant = Some(constant);
        value.constant_position = index as u32;
        Ok(id)
    }

    fn output(
        &mut self,
        graph: GraphId,
        index: usize,
        name: &str,
        declaration: Declaration,
    ) -> Result<(), Refusal> {
        let Some(value) = self.resolve(name) else {
            return Err(
                self.refuse(format!("output {index}"), format!("it is '{name}', which nothing produces"))
            );
        };
        self.learn_type(value, &declaration);
        self.c.add_output(graph, value, declaration);
        Ok(())
    }

    fn declare(&mut self, graph: GraphId, name: &str, declaration: Declaration) {
        let known = self.frames.last().and_then(|frame| frame.names.get(name)).map(|known| known.value);
        match known {
            Some(value) if self.c.value(value).declaration.is_none() => {
                self.learn_type(value, &declaration);
                self.c.value_mut(value).declaration = Some(declaration.into());
            }
            _ => {
                let name = self.text(name);
                self.c.graph_mut(graph).stray_declarations.push((name, declaration.into()));
            }
        }
    }

    fn learn_type(&mut self, value: ValueId, declaration: &Declaration) {
        let value = self.c.value_mut(value);
        if value.ty == Type::Unknown {
            value.ty = declaration.ty.clone();
        }
    }

    /// A problem of a tensor in an attribute whose data could not be had.
    pub(super) fn note_missing(&mut self, node: Option<NodeId>, place: &str, data: &Data) {
        if let Data::Missing(reason) = data {
            let mut problem = Problem::new(Severity::Error, format!("{place}: {reason}"));
            problem.node = node;
            self.problems.push(problem);
        }
    }

    /// The shared text of a name: operators, domains and exporter scopes repeat by the thousand.
    pub(super) fn text(&mut self, text: &str) -> Text {
        if let Some((known, ())) = self.texts.get_key_value(text) {
            return known.clone();
        }
        let new: Text = text.into();
        self.texts.insert(new.clone(), ());
        new
    }
}
