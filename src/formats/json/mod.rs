//! The JSON graph: a model as one JSON document, with the messages and field names of ONNX, and nothing lost.
//!
//! ```json
//! {
//!  "format": "passlens-graph",
//!  "version": 1,
//!  "model": {
//!   "ir_version": 8,
//!   "graph": {
//!    "node": [
//!     {"input": ["x", "w"], "output": ["y"], "name": "dense", "op_type": "MatMul"}
//!    ],
//!    "initializer": [
//!     {"dims": [1, 2], "data_type": "FLOAT", "name": "w", "raw_data": "AAAAPwAAgL8="}
//!    ]
//!   }
//!  }
//! }
//! ```
//!
//! `model` is a `ModelProto`; <https://github.com/onnx/onnx/blob/main/onnx/onnx.proto> says what its fields mean. A message
//! is an object, a repeated field an array. A field that is not set has no key; one set to its default value has.
//!
//! | in ONNX | in JSON |
//! | --- | --- |
//! | text | string |
//! | integer | number (all 64 bits: beyond 2^53 some readers round) |
//! | float, double | number, or `"NaN"`, `"Infinity"`, `"-Infinity"`; any other NaN by its bits, `"0x7fa00001"` |
//! | `raw_data` | base64 string (RFC 4648, padded): the elements little-endian, row-major |
//! | other bytes | string where they are UTF-8, else `{"base64": "…"}` |
//! | attribute type, element type, data location | name as in `onnx.proto` (`"INTS"`, `"FLOAT"`, `"EXTERNAL"`); a number where the name is not known |
//! | fields of newer schemas | `unknown_fields` of their message: base64 of the protobuf fields |
//!
//! Weights are always inline: external data is read in on writing. `version` changes when a reader of this version would
//! misread a document; new keys that ONNX brings do not change it.

mod read;
mod write;

pub use read::to_protobuf;
pub use write::from_message;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use bytes::Bytes;
use prost::Message;

use super::error::FormatError;
use super::file::NewFile;
use super::onnx::export::{Exported, export};
use super::onnx::external::Inline;
use super::onnx::proto::attribute_proto::AttributeType;
use super::onnx::proto::tensor_proto::{DataLocation, DataType};
use super::onnx::save::unique_names;
use super::onnx::schema::MessageKind;
use super::{Form, Imported, Renamed, SaveOptions, SaveReport, file, onnx};
use crate::ir::{Model, NodeId, Text};

/// Value of the key `format`.
pub const FORMAT: &str = "passlens-graph";

/// Value of the key `version`.
pub const VERSION: u64 = 1;

/// True when the bytes look like JSON.
pub fn looks_like_json(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().first() == Some(&b'{')
}

/// Reads a JSON graph; `path` names it in messages.
pub fn read(bytes: &[u8], path: &Path) -> Result<Imported, FormatError> {
    let protobuf = to_protobuf(bytes)
        .map_err(|error| FormatError::not_a_model(path, format!("not a JSON graph, or damaged: {error}")))?;
    let imported = onnx::read_message(protobuf.into(), path, None)?;
    Ok(Imported { form: Form::Json, ..imported })
}

/// Writes a model as a JSON graph to `path`; read back and compared before an existing file is replaced.
pub fn save(model: &Model, path: &Path, options: &SaveOptions) -> Result<SaveReport, FormatError> {
    let renamed = if options.unique_node_names { unique_names(model) } else { BTreeMap::new() };
    let exported = export(model, &mut Inline, &renamed).map_err(|refusal| refusal.unwritable(path))?;
    let failed = |error: io::Error| FormatError::write(path, error);
    let mut beside = NewFile::beside(path).map_err(failed)?;
    let mut out = io::BufWriter::new(&mut beside);
    from_message(&exported, &mut out).and_then(|()| out.flush()).map_err(failed)?;
    drop(out);
    beside.file().sync_all().map_err(failed)?;
    let written = file::read(beside.path()).map_err(failed)?;
    let bytes = written.len() as u64;
    verify(&written, path, &exported).map_err(|what| FormatError::Verify { path: path.to_owned(), what })?;
    beside.put_in_place().map_err(failed)?;
    let renamed =
        renamed.into_iter().map(|(node, to)| Renamed { node, from: model.node(node).name.clone(), to });
    Ok(SaveReport { path: path.to_owned(), bytes, data_file: None, renamed: renamed.collect() })
}

fn verify(written: &Bytes, path: &Path, exported: &Exported) -> Result<(), String> {
    let again = read(written, path).map_err(|error| error.to_string())?;
    let none: BTreeMap<NodeId, Text> = BTreeMap::new();
    let again = export(&again.model, &mut Inline, &none).map_err(|refusal| refusal.what)?;
    match again.unknown == exported.unknown
        && again.message.encode_to_vec() == exported.message.encode_to_vec()
    {
        true => Ok(()),
        false => Err("the model in it is another one".to_owned()),
    }
}

/// The fields whose numbers are written as names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Names {
    Attribute,
    Element,
    Location,
}

fn names_of(message: MessageKind, field: &str) -> Option<Names> {
    match (message, field) {
        (MessageKind::Attribute, "type") => Some(Names::Attribute),
        (MessageKind::Tensor, "data_type")
        | (MessageKind::TypeTensor | MessageKind::TypeSparseTensor, "elem_type") => Some(Names::Element),
        (MessageKind::TypeMap, "key_type") => Some(Names::Element),
        (MessageKind::Tensor, "data_location") => Some(Names::Location),
        _ => None,
    }
}

impl Names {
    fn name(self, number: u64) -> Option<&'static str> {
        let number = i32::try_from(number).ok()?;
        match self {
            Names::Attribute => AttributeType::try_from(number).ok().map(|kind| kind.as_str_name()),
            Names::Element => DataType::try_from(number).ok().map(|kind| kind.as_str_name()),
            Names::Location => DataLocation::try_from(number).ok().map(|kind| kind.as_str_name()),
        }
    }

    fn number(self, name: &str) -> Option<i32> {
        match self {
            Names::Attribute => AttributeType::from_str_name(name).map(i32::from),
            Names::Element => DataType::from_str_name(name).map(i32::from),
            Names::Location => DataLocation::from_str_name(name).map(i32::from),
        }
    }
}
