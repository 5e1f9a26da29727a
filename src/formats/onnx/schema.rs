//! Which fields each ONNX message of `proto.rs` has, by number: what the unknown-field scan of `wire.rs` needs to know.
//! A test holds this list against `proto.rs`.

/// A message type of the ONNX schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    Model,
    Attribute,
    ValueInfo,
    Node,
    IntIntListEntry,
    NodeDeviceConfiguration,
    ShardingSpec,
    ShardedDim,
    SimpleShardedDim,
    TrainingInfo,
    DeviceConfiguration,
    StringStringEntry,
    TensorAnnotation,
    Graph,
    Tensor,
    TensorSegment,
    SparseTensor,
    TensorShape,
    TensorShapeDimension,
    Type,
    TypeTensor,
    TypeSequence,
    TypeMap,
    TypeOptional,
    TypeSparseTensor,
    TypeOpaque,
    OperatorSetId,
    Function,
}

/// How the value of a field is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    Varint,
    Fixed32,
    Fixed64,
    Text,
    Bytes,
    Message(MessageKind),
}

/// One field of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    pub number: u32,
    pub name: &'static str,
    pub kind: FieldKind,
    pub repeated: bool,
}

const fn one(number: u32, name: &'static str, kind: FieldKind) -> Field {
    Field { number, name, kind, repeated: false }
}

const fn many(number: u32, name: &'static str, kind: FieldKind) -> Field {
    Field { number, name, kind, repeated: true }
}

/// The known fields of a message, ascending by number.
pub fn fields(message: MessageKind) -> &'static [Field] {
    use FieldKind::{Bytes, Fixed32, Fixed64, Message, Text, Varint};
    use MessageKind::*;
    match message {
        Model => {
            const {
                &[
                    one(1, "ir_version", Varint),
                    one(2, "producer_name", Text),
                    one(3, "producer_version", Text),
                    one(4, "domain", Text),
                    one(5, "model_version", Varint),
                    one(6, "doc_string", Text),
                    one(7, "graph", Message(Graph)),
                    many(8, "opset_import", Message(OperatorSetId)),
                    many(14, "metadata_props", Message(StringStringEntry)),
                    many(20, "training_info", Message(TrainingInfo)),
                    many(25, "functions", Message(Function)),
                    many(26, "configuration", Message(DeviceConfiguration)),
                ]
            }
        }
        Attribute => {
            const {
                &[
                    one(1, "name", Text),
                    one(2, "f", Fixed32),
                    one(3, "i", Varint),
                    one(4, "s", Bytes),
                    one(5, "t", Message(Tensor)),
                    one(6, "g", Message(Graph)),
                    many(7, "floats", Fixed32),
                    many(8, "ints", Varint),
                    many(9, "strings", Bytes),
                    many(10, "tensors", Message(Tensor)),
                    many(11, "graphs", Message(Graph)),
                    one(13, "doc_string", Text),
                    one(14, "tp", Message(Type)),
                    many(15, "type_protos", Message(Type)),
                    one(20, "type", Varint),
                    one(21, "ref_attr_name", Text),
                    one(22, "sparse_tensor", Message(SparseTensor)),
                    many(23, "sparse_tensors", Message(SparseTensor)),
                ]
            }
        }
        ValueInfo => {
            const {
                &[
                    one(1, "name", Text),
                    one(2, "type", Message(Type)),
                    one(3, "doc_string", Text),
                    many(4, "metadata_props", Message(StringStringEntry)),
                ]
            }
        }
        Node => {
            const {
                &[
                    many(1, "input", Text),
                    many(2, "output", Text),
                    one(3, "name", Text),
                    one(4, "op_type", Text),
                    many(5, "attribute", Message(Attribute)),
                    one(6, "doc_string", Text),
                    one(7, "domain", Text),
                    one(8, "overload", Text),
                    many(9, "metadata_props", Message(StringStringEntry)),
                    many(10, "device_configurations", Message(NodeDeviceConfiguration)),
                ]
            }
        }
        IntIntListEntry => const { &[one(1, "key", Varint), many(2, "value", Varint)] },
        NodeDeviceConfiguration => {
            const {
                &[
                    one(1, "configuration_id", Text),
                    many(2, "sharding_spec", Message(ShardingSpec)),
                    one(3, "pipeline_stage", Varint),
                ]
            }
        }
        ShardingSpec => {
            const {
                &[
                    one(1, "tensor_name", Text),
                    many(2, "device", Varint),
                    many(3, "index_to_device_group_map", Message(IntIntListEntry)),
                    many(4, "sharded_dim", Message(ShardedDim)),
                ]
            }
        }
        ShardedDim => {
            const { &[one(1, "axis", Varint), many(2, "simple_sharding", Message(SimpleShardedDim))] }
        }
        SimpleShardedDim => {
            const { &[one(1, "dim_value", Varint), one(2, "dim_param", Text), one(3, "num_shards", Varint)] }
        }
        TrainingInfo => {
            const {
                &[
                    one(1, "initialization", Message(Graph)),
                    one(2, "algorithm", Message(Graph)),
                    many(3, "initialization_binding", Message(StringStringEntry)),
                    many(4, "update_binding", Message(StringStringEntry)),
                ]
            }
        }
        DeviceConfiguration => {
            const { &[one(1, "name", Text), one(2, "num_devices", Varint), many(3, "device", Text)] }
        }
        StringStringEntry => const { &[one(1, "key", Text), one(2, "value", Text)] },
        TensorAnnotation => {
            const {
                &[
                    one(1, "tensor_name", Text),
                    many(2, "quant_parameter_tensor_names", Message(StringStringEntry)),
                ]
            }
        }
        Graph => {
            const {
                &[
                    many(1, "node", Message(Node)),
                    one(2, "name", Text),
                    many(5, "initializer", Message(Tensor)),
                    one(10, "doc_string", Text),
                    many(11, "input", Message(ValueInfo)),
                    many(12, "output", Message(ValueInfo)),
                    many(13, "value_info", Message(ValueInfo)),
                    many(14, "quantization_annotation", Message(TensorAnnotation)),
                    many(15, "sparse_initializer", Message(SparseTensor)),
                    many(16, "metadata_props", Message(StringStringEntry)),
                ]
            }
        }
        Tensor => {
            const {
                &[
                    many(1, "dims", Varint),
                    one(2, "data_type", Varint),
                    one(3, "segment", Message(TensorSegment)),
                    many(4, "float_data", Fixed32),
                    many(5, "int32_data", Varint),
                    many(6, "string_data", Bytes),
                    many(7, "int64_data", Varint),
                    one(8, "name", Text),
                    one(9, "raw_data", Bytes),
                    many(10, "double_data", Fixed64),
                    many(11, "uint64_data", Varint),
                    one(12, "doc_string", Text),
                    many(13, "external_data", Message(StringStringEntry)),
                    one(14, "data_location", Varint),
                    many(16, "metadata_props", Message(StringStringEntry)),
                ]
            }
        }
        TensorSegment => const { &[one(1, "begin", Varint), one(2, "end", Varint)] },
        SparseTensor => {
            const {
                &[
                    one(1, "values", Message(Tensor)),
                    one(2, "indices", Message(Tensor)),
                    many(3, "dims", Varint),
                ]
            }
        }
        TensorShape => const { &[many(1, "dim", Message(TensorShapeDimension))] },
        TensorShapeDimension => {
            const { &[one(1, "dim_value", Varint), one(2, "dim_param", Text), one(3, "denotation", Text)] }
        }
        Type => {
            const {
                &[
                    one(1, "tensor_type", Message(TypeTensor)),
                    one(4, "sequence_type", Message(TypeSequence)),
                    one(5, "map_type", Message(TypeMap)),
                    one(6, "denotation", Text),
                    one(7, "opaque_type", Message(TypeOpaque)),
                    one(8, "sparse_tensor_type", Message(TypeSparseTensor)),
                    one(9, "optional_type", Message(TypeOptional)),
                ]
            }
        }
        TypeTensor => const { &[one(1, "elem_type", Varint), one(2, "shape", Message(TensorShape))] },
        TypeSequence => const { &[one(1, "elem_type", Message(Type))] },
        TypeMap => const { &[one(1, "key_type", Varint), one(2, "value_type", Message(Type))] },
        TypeOptional => const { &[one(1, "elem_type", Message(Type))] },
        TypeSparseTensor => const { &[one(1, "elem_type", Varint), one(2, "shape", Message(TensorShape))] },
        TypeOpaque => const { &[one(1, "domain", Text), one(2, "name", Text)] },
        OperatorSetId => const { &[one(1, "domain", Text), one(2, "version", Varint)] },
        Function => {
            const {
                &[
                    one(1, "name", Text),
                    many(4, "input", Text),
                    many(5, "output", Text),
                    many(6, "attribute", Text),
                    many(7, "node", Message(Node)),
                    one(8, "doc_string", Text),
                    many(9, "opset_import", Message(OperatorSetId)),
                    one(10, "domain", Text),
                    many(11, "attribute_proto", Message(Attribute)),
                    many(12, "value_info", Message(ValueInfo)),
                    one(13, "overload", Text),
                    many(14, "metadata_props", Message(StringStringEntry)),
                ]
            }
        }
    }
}

/// The known field with this number.
pub fn field(message: MessageKind, number: u32) -> Option<&'static Field> {
    fields(message).iter().find(|field| field.number == number)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{MessageKind, fields};

    /// The schema and the generated types name the same fields: compares all (struct, tag) pairs written in `proto.rs`.
    #[test]
    fn schema_lists_the_fields_of_the_generated_types() {
        let mut generated = BTreeSet::new();
        let mut current = String::new();
        let mut modules: Vec<(usize, String)> = Vec::new(); // indentation, name
        let mut in_oneof = false;
        for line in include_str!("proto.rs").lines() {
            let text = line.trim();
            let indentation = line.len() - text.len();
            if let Some(rest) = text.strip_prefix("pub mod ") {
                modules.push((indentation, camel(rest.trim_end_matches(" {"))));
            } else if text == "}" && modules.last().is_some_and(|(opened, _)| *opened == indentation) {
                modules.pop();
            } else if let Some(rest) = text.strip_prefix("pub struct ") {
                let name = rest.trim_end_matches(" {").trim_end_matches(" {}");
                let outer: String = modules.iter().map(|(_, name)| name.as_str()).collect();
                current = format!("{outer}{name}").replace("Proto", "");
                in_oneof = false;
            } else if text.contains("::prost::Oneof") {
                in_oneof = true;
            } else if text.starts_with("#[prost(") && !in_oneof {
                let (_, tags) = text.split_once("tag").expect("a prost attribute has a tag");
                for tag in tags.split('"').nth(1).expect("quoted tags").split(',') {
                    generated.insert((current.clone(), tag.trim().parse::<u32>().expect("a number")));
                }
            }
        }
        let mut listed = BTreeSet::new();
        for message in ALL {
            for field in fields(*message) {
                listed.insert((format!("{message:?}"), field.number));
            }
        }
        assert_eq!(listed, generated);
        assert!(generated.len() > 100, "{} fields", generated.len());
    }

    fn camel(snake: &str) -> String {
        snake.split('_').map(|word| word[..1].to_uppercase() + &word[1..]).collect()
    }

    use MessageKind::*;
    const ALL: &[MessageKind] = &[
        Model,
        Attribute,
        ValueInfo,
        Node,
        IntIntListEntry,
        NodeDeviceConfiguration,
        ShardingSpec,
        ShardedDim,
        SimpleShardedDim,
        TrainingInfo,
        DeviceConfiguration,
        StringStringEntry,
        TensorAnnotation,
        Graph,
        Tensor,
        TensorSegment,
        SparseTensor,
        TensorShape,
        TensorShapeDimension,
        Type,
        TypeTensor,
        TypeSequence,
        TypeMap,
        TypeOptional,
        TypeSparseTensor,
        TypeOpaque,
        OperatorSetId,
        Function,
    ];
}
