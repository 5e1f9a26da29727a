//! Values on their own, as ONNX's test data holds them: `TensorProto`, `SequenceProto` and `OptionalProto` files.

use super::external::DataFiles;
use super::proto::TensorProto;
use super::schema::MessageKind;
use super::tensors::read_tensor;
use super::wire;
use crate::ir::{Tensor, Type};
use bytes::Bytes;
use prost::Message;

/// A value from a file.
#[derive(Clone, Debug)]
pub enum Datum {
    Tensor(Box<Tensor>),
    Sequence(Vec<Datum>),
    Optional(Option<Box<Datum>>),
}

/// A value of a type from the bytes of its message. `Err` says what is wrong with it.
pub fn read(bytes: Bytes, ty: &Type) -> Result<Datum, String> {
    match ty {
        Type::Sequence(_) => {
            SequenceProto::decode(bytes).map_err(|e| format!("not a SequenceProto: {e}"))?.datum()
        }
        Type::Optional(inner) if bytes.is_empty() => match **inner {
            Type::Unknown => Err("an optional of unknown type".into()),
            _ => Ok(Datum::Optional(None)),
        },
        Type::Optional(_) => {
            OptionalProto::decode(bytes).map_err(|e| format!("not an OptionalProto: {e}"))?.datum()
        }
        Type::Map { .. } => Err("maps are not read from files".into()),
        _ => {
            let tree =
                wire::scan(&bytes, MessageKind::Tensor).map_err(|e| format!("not a TensorProto: {e}"))?;
            let message = TensorProto::decode(bytes).map_err(|e| format!("not a TensorProto: {e}"))?;
            Ok(Datum::Tensor(Box::new(read_tensor(message, tree, &mut DataFiles::new(None))?)))
        }
    }
}

/// `onnx.SequenceProto` (onnx-data.proto).
#[derive(Clone, PartialEq, Message)]
struct SequenceProto {
    #[prost(message, repeated, tag = "3")]
    tensors: Vec<TensorProto>,
    #[prost(message, repeated, tag = "5")]
    sequences: Vec<SequenceProto>,
    #[prost(message, repeated, tag = "7")]
    optionals: Vec<OptionalProto>,
}

/// `onnx.OptionalProto` (onnx-data.proto).
#[derive(Clone, PartialEq, Message)]
struct OptionalProto {
    #[prost(message, optional, tag = "3")]
    tensor: Option<TensorProto>,
    #[prost(message, optional, tag = "5")]
    sequence: Option<SequenceProto>,
}

fn tensor(message: TensorProto) -> Result<Datum, String> {
    let tensor = read_tensor(message, wire::Unknown::default(), &mut DataFiles::new(None))?;
    Ok(Datum::Tensor(Box::new(tensor)))
}

impl SequenceProto {
    fn datum(self) -> Result<Datum, String> {
        let tensors = self.tensors.into_iter().map(tensor);
        let sequences = self.sequences.into_iter().map(SequenceProto::datum);
        let optionals = self.optionals.into_iter().map(OptionalProto::datum);
        Ok(Datum::Sequence(tensors.chain(sequences).chain(optionals).collect::<Result<_, _>>()?))
    }
}

impl OptionalProto {
    fn datum(self) -> Result<Datum, String> {
        let inner = match (self.tensor, self.sequence) {
            (Some(message), _) => Some(tensor(message)?),
            (None, Some(sequence)) => Some(sequence.datum()?),
            (None, None) => None,
        };
        Ok(Datum::Optional(inner.map(Box::new)))
    }
}
