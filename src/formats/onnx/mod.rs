//! ONNX files: message types, the wire level, import and export.

pub mod attributes;
pub mod calls;
pub mod copy;
pub mod datum;
pub mod export;
pub mod external;
pub mod extra;
pub mod field;
pub mod import;
mod names;
pub mod proto;
pub mod save;
pub mod schema;
pub mod second_reader;
pub mod sort;
pub mod spoken;
pub mod tensors;
pub mod types;
pub mod wire;

use std::path::Path;

use bytes::Bytes;
use prost::Message;

use self::external::DataFiles;
use self::proto::ModelProto;
use self::schema::MessageKind;
use super::error::FormatError;
use super::{Form, Imported, recognise};

/// Reads a model from the bytes of a file. `path` names it in messages; external data is looked for in `folder`.
pub fn read(bytes: Bytes, path: &Path, folder: Option<&Path>) -> Result<Imported, FormatError> {
    if let Some(what) = recognise::foreign(&bytes) {
        return Err(FormatError::not_a_model(path, what));
    }
    read_message(bytes, path, folder)
}

/// The same for bytes that are a `ModelProto` beyond doubt: made here from another form of the model.
pub fn read_message(bytes: Bytes, path: &Path, folder: Option<&Path>) -> Result<Imported, FormatError> {
    let damaged =
        |what: String| FormatError::not_a_model(path, format!("not an ONNX model, or damaged: {what}"));
    let tree = wire::scan(&bytes, MessageKind::Model).map_err(|error| damaged(error.to_string()))?;
    let message = ModelProto::decode(bytes).map_err(|error| damaged(error.to_string()))?;
    if message.graph.is_none() {
        return Err(damaged("it has no graph".to_owned()));
    }
    let mut files = DataFiles::new(folder);
    let (model, problems) =
        import::import(message, tree, &mut files).map_err(|refusal| refusal.invalid(path))?;
    Ok(Imported { model: spoken::with_spoken(model), problems, form: Form::Onnx })
}
