//! Field numbers of the messages that import and export handle field by field, by the names of `onnx.proto`.

/// `ModelProto`.
pub mod model {
    pub const IR_VERSION: u32 = 1;
    pub const PRODUCER_NAME: u32 = 2;
    pub const PRODUCER_VERSION: u32 = 3;
    pub const DOMAIN: u32 = 4;
    pub const MODEL_VERSION: u32 = 5;
    pub const DOC_STRING: u32 = 6;
    pub const GRAPH: u32 = 7;
    pub const OPSET_IMPORT: u32 = 8;
    pub const METADATA_PROPS: u32 = 14;
    pub const TRAINING_INFO: u32 = 20;
    pub const FUNCTIONS: u32 = 25;
    pub const CONFIGURATION: u32 = 26;
}

/// `GraphProto`.
pub mod graph {
    pub const NODE: u32 = 1;
    pub const NAME: u32 = 2;
    pub const INITIALIZER: u32 = 5;
    pub const DOC_STRING: u32 = 10;
    pub const INPUT: u32 = 11;
    pub const OUTPUT: u32 = 12;
    pub const VALUE_INFO: u32 = 13;
    pub const QUANTIZATION_ANNOTATION: u32 = 14;
    pub const SPARSE_INITIALIZER: u32 = 15;
    pub const METADATA_PROPS: u32 = 16;
}

/// `NodeProto`.
pub mod node {
    pub const NAME: u32 = 3;
    pub const OP_TYPE: u32 = 4;
    pub const ATTRIBUTE: u32 = 5;
    pub const DOC_STRING: u32 = 6;
    pub const DOMAIN: u32 = 7;
    pub const OVERLOAD: u32 = 8;
    pub const METADATA_PROPS: u32 = 9;
    pub const DEVICE_CONFIGURATIONS: u32 = 10;
}

/// `FunctionProto`.
pub mod function {
    pub const NAME: u32 = 1;
    pub const NODE: u32 = 7;
    pub const DOC_STRING: u32 = 8;
    pub const OPSET_IMPORT: u32 = 9;
    pub const DOMAIN: u32 = 10;
    pub const ATTRIBUTE_PROTO: u32 = 11;
    pub const VALUE_INFO: u32 = 12;
    pub const OVERLOAD: u32 = 13;
    pub const METADATA_PROPS: u32 = 14;
}

/// `ValueInfoProto`.
pub mod value_info {
    pub const NAME: u32 = 1;
    pub const TYPE: u32 = 2;
    pub const METADATA_PROPS: u32 = 4;
}

/// `SparseTensorProto`.
pub mod sparse {
    pub const VALUES: u32 = 1;
    pub const INDICES: u32 = 2;
}

/// `TensorProto`.
pub mod tensor {
    pub const DATA_TYPE: u32 = 2;
    pub const SEGMENT: u32 = 3;
    pub const NAME: u32 = 8;
    pub const RAW_DATA: u32 = 9;
    pub const DOC_STRING: u32 = 12;
    pub const EXTERNAL_DATA: u32 = 13;
    pub const DATA_LOCATION: u32 = 14;
    pub const METADATA_PROPS: u32 = 16;
}

/// `AttributeProto`.
pub mod attribute {
    pub const NAME: u32 = 1;
    pub const F: u32 = 2;
    pub const I: u32 = 3;
    pub const S: u32 = 4;
    pub const T: u32 = 5;
    pub const G: u32 = 6;
    pub const TENSORS: u32 = 10;
    pub const GRAPHS: u32 = 11;
    pub const DOC_STRING: u32 = 13;
    pub const TP: u32 = 14;
    pub const TYPE_PROTOS: u32 = 15;
    pub const TYPE: u32 = 20;
    pub const REF_ATTR_NAME: u32 = 21;
    pub const SPARSE_TENSOR: u32 = 22;
    pub const SPARSE_TENSORS: u32 = 23;
}

#[cfg(test)]
mod tests {
    use super::super::schema::{MessageKind, fields};

    /// The numbers here are those of the schema: compares name and number of every constant written above.
    #[test]
    fn numbers_are_those_of_the_schema() {
        let mut message = MessageKind::Model;
        let mut seen = 0;
        for line in include_str!("field.rs").lines().take_while(|line| !line.starts_with("#[cfg(test)]")) {
            if let Some(module) = line.strip_prefix("pub mod ") {
                message = match module.trim_end_matches(" {") {
                    "model" => MessageKind::Model,
                    "graph" => MessageKind::Graph,
                    "node" => MessageKind::Node,
                    "function" => MessageKind::Function,
                    "value_info" => MessageKind::ValueInfo,
                    "sparse" => MessageKind::SparseTensor,
                    "tensor" => MessageKind::Tensor,
                    "attribute" => MessageKind::Attribute,
                    other => panic!("module {other} is of no message"),
                };
            } else if let Some(constant) = line.trim().strip_prefix("pub const ") {
                let (name, number) = constant.split_once(": u32 = ").expect("a constant");
                let number: u32 = number.trim_end_matches(';').parse().expect("a number");
                let known = fields(message).iter().find(|field| field.number == number);
                assert_eq!(
                    known.map(|field| field.name.to_uppercase()),
                    Some(name.to_owned()),
                    "{message:?}"
                );
                seen += 1;
            }
        }
        assert!(seen > 50, "{seen} constants");
    }
}
