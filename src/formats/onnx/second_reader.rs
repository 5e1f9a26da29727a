//! The independent second reader: what we wrote is read again by onnx-protobuf and compared field by field with what our
//! own reader sees. This file is the only one that knows onnx-protobuf. Its schema ends at IR version 10: fields that are
//! newer are left to our own reader.

use bytes::Bytes;
use onnx_protobuf as theirs;
use protobuf::{EnumOrUnknown, Message, MessageField};

use super::proto;

/// Compares `ours`, as our reader sees the file, with the file as onnx-protobuf reads it. `Err` names the first difference.
pub fn compare(file: &[u8], ours: &proto::ModelProto) -> Result<(), String> {
    let model = theirs::ModelProto::parse_from_bytes(file)
        .map_err(|error| format!("a second reader cannot read it ({error})"))?;
    ours.same(&model).map_err(|mut path| {
        path.reverse();
        format!("two readers see different values at {}", path.join("."))
    })
}

/// Field names from the differing field outward.
type Path = Vec<String>;

/// Same content in the types of the two readers; a field that is left out equals its default there.
trait Same<Theirs> {
    fn same(&self, theirs: &Theirs) -> Result<(), Path>;
}

fn equal(same: bool) -> Result<(), Path> {
    if same { Ok(()) } else { Err(Path::new()) }
}

macro_rules! messages {
    ($($($name:ident)::+ { $($field:ident $(as $other:ident)?),* })*) => {$(
        impl Same<theirs::$($name)::+> for proto::$($name)::+ {
            fn same(&self, theirs: &theirs::$($name)::+) -> Result<(), Path> {
                $(self.$field.same(&messages!(@field theirs, $field $($other)?)).map_err(|mut path| {
                    path.push(stringify!($field).to_owned());
                    path
                })?;)*
                Ok(())
            }
        }
    )*};
    (@field $theirs:ident, $field:ident) => { $theirs.$field };
    (@field $theirs:ident, $field:ident $other:ident) => { $theirs.$other };
}

messages! {
    ModelProto { ir_version, opset_import, producer_name, producer_version, domain, model_version, doc_string, graph, metadata_props, training_info, functions }
    GraphProto { node, name, initializer, sparse_initializer, doc_string, input, output, value_info, quantization_annotation, metadata_props }
    NodeProto { input, output, name, op_type, domain, overload, attribute, doc_string, metadata_props }
    AttributeProto { name, ref_attr_name, doc_string, r#type as type_, f, i, s, t, g, sparse_tensor, tp, floats, ints, strings, tensors, graphs, sparse_tensors, type_protos }
    ValueInfoProto { name, r#type as type_, doc_string, metadata_props }
    TrainingInfoProto { initialization, algorithm, initialization_binding, update_binding }
    StringStringEntryProto { key, value }
    TensorAnnotation { tensor_name, quant_parameter_tensor_names }
    TensorProto { dims, data_type, segment, float_data, int32_data, string_data, int64_data, name, doc_string, raw_data, external_data, data_location, double_data, uint64_data, metadata_props }
    tensor_proto::Segment { begin, end }
    SparseTensorProto { values, indices, dims }
    TensorShapeProto { dim }
    type_proto::Tensor { elem_type, shape }
    type_proto::SparseTensor { elem_type, shape }
    type_proto::Sequence { elem_type }
    type_proto::Optional { elem_type }
    type_proto::Map { key_type, value_type }
    OperatorSetIdProto { domain, version }
    FunctionProto { name, input, output, attribute, attribute_proto, node, doc_string, opset_import, domain, overload, value_info, metadata_props }
}

impl Same<theirs::tensor_shape_proto::Dimension> for proto::tensor_shape_proto::Dimension {
    fn same(&self, theirs: &theirs::tensor_shape_proto::Dimension) -> Result<(), Path> {
        use proto::tensor_shape_proto::dimension::Value as Ours;
        use theirs::tensor_shape_proto::dimension::Value as Theirs;
        self.denotation.same(&theirs.denotation)?;
        equal(match (&self.value, &theirs.value) {
            (None, None) => true,
            (Some(Ours::DimValue(a)), Some(Theirs::DimValue(b))) => a == b,
            (Some(Ours::DimParam(a)), Some(Theirs::DimParam(b))) => a == b,
            _ => false,
        })
    }
}

impl Same<theirs::TypeProto> for proto::TypeProto {
    fn same(&self, theirs: &theirs::TypeProto) -> Result<(), Path> {
        use proto::type_proto::Value as Ours;
        use theirs::type_proto::Value as Theirs;
        self.denotation.same(&theirs.denotation)?;
        match (&self.value, &theirs.value) {
            // Opaque types are newer than the second reader.
            (None | Some(Ours::OpaqueType(_)), None) => Ok(()),
            (Some(Ours::TensorType(a)), Some(Theirs::TensorType(b))) => a.same(b),
            (Some(Ours::SparseTensorType(a)), Some(Theirs::SparseTensorType(b))) => a.same(b),
            (Some(Ours::SequenceType(a)), Some(Theirs::SequenceType(b))) => a.same(b),
            (Some(Ours::OptionalType(a)), Some(Theirs::OptionalType(b))) => a.same(b),
            (Some(Ours::MapType(a)), Some(Theirs::MapType(b))) => a.same(b),
            _ => Err(Path::new()),
        }
    }
}

impl<A: Same<B>, B> Same<Vec<B>> for Vec<A> {
    fn same(&self, theirs: &Vec<B>) -> Result<(), Path> {
        equal(self.len() == theirs.len())?;
        for (index, (a, b)) in self.iter().zip(theirs).enumerate() {
            a.same(b).map_err(|mut path| {
                path.push(format!("[{index}]"));
                path
            })?;
        }
        Ok(())
    }
}

impl<A: Same<B>, B> Same<MessageField<B>> for Option<A> {
    fn same(&self, theirs: &MessageField<B>) -> Result<(), Path> {
        match (self, theirs.as_ref()) {
            (Some(a), Some(b)) => a.same(b),
            (a, b) => equal(a.is_none() && b.is_none()),
        }
    }
}

impl<A: Same<B>, B> Same<B> for Box<A> {
    fn same(&self, theirs: &B) -> Result<(), Path> {
        self.as_ref().same(theirs)
    }
}

impl<E: protobuf::Enum> Same<EnumOrUnknown<E>> for Option<i32> {
    fn same(&self, theirs: &EnumOrUnknown<E>) -> Result<(), Path> {
        equal(self.unwrap_or_default() == theirs.value())
    }
}

impl Same<Vec<u8>> for Option<Bytes> {
    fn same(&self, theirs: &Vec<u8>) -> Result<(), Path> {
        equal(self.as_deref().unwrap_or_default() == theirs.as_slice())
    }
}

impl Same<Vec<u8>> for Bytes {
    fn same(&self, theirs: &Vec<u8>) -> Result<(), Path> {
        equal(self == theirs)
    }
}

/// Numbers and text, alone or optional; floats by their bits.
macro_rules! scalars {
    ($($scalar:ty => $as_compared:expr;)*) => {$(
        impl Same<$scalar> for $scalar {
            fn same(&self, theirs: &$scalar) -> Result<(), Path> {
                let compared = $as_compared;
                equal(compared(self) == compared(theirs))
            }
        }

        impl Same<$scalar> for Option<$scalar> {
            fn same(&self, theirs: &$scalar) -> Result<(), Path> {
                match self {
                    Some(ours) => ours.same(theirs),
                    None => <$scalar>::default().same(theirs),
                }
            }
        }
    )*};
}

scalars! {
    i32 => |v: &i32| *v;
    i64 => |v: &i64| *v;
    u64 => |v: &u64| *v;
    f32 => |v: &f32| v.to_bits();
    f64 => |v: &f64| v.to_bits();
    String => String::as_str;
}
