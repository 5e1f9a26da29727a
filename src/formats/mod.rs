//! Models as files: ONNX, the JSON graph, and the text form of `ir`. Nothing outside this room knows protobuf.

pub mod error;
pub mod file;
pub mod form;
pub mod json;
pub mod npz;
pub mod onnx;
pub mod recognise;
pub mod text;

use bytes::Bytes;
use std::path::{Path, PathBuf};

pub use error::{FormatError, Problem, Severity};
pub use form::Form;

use crate::ir::{Model, NodeId, Text};

/// A model that was read, and what is worth saying about it.
#[derive(Clone, Debug)]
pub struct Imported {
    pub model: Model,
    pub problems: Vec<Problem>,
    /// The form that the file has.
    pub form: Form,
}

impl Imported {
    /// The first problem because of which the model can be looked at, but not processed: data that is missing.
    pub fn unusable(&self) -> Option<&Problem> {
        self.problems.iter().find(|problem| problem.severity == Severity::Error)
    }
}

/// Where tensor data goes when a model is saved as ONNX.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DataPlacement {
    /// Tensors that came from an external file go into one; what does not fit 2 GiB with the rest does as well.
    #[default]
    AsImported,
    /// Into the model, unless it would be larger than 2 GiB.
    Inline,
    /// All but small tensors into one file beside the model.
    OneFile,
}

/// How a model is saved.
#[derive(Clone, Debug, Default)]
pub struct SaveOptions {
    pub data: DataPlacement,
    /// Gives nodes of equal name different ones (runtimes refuse equal ones). Off for a copy that changes nothing.
    pub unique_node_names: bool,
    /// The file the model was read from: its data file is not overwritten by a save under another name.
    pub source: Option<PathBuf>,
}

/// What was saved.
#[derive(Clone, Debug)]
pub struct SaveReport {
    pub path: PathBuf,
    pub bytes: u64,
    /// The external data file beside it, and its size.
    pub data_file: Option<(PathBuf, u64)>,
    pub renamed: Vec<Renamed>,
}

/// A node that has another name in the file.
#[derive(Clone, Debug)]
pub struct Renamed {
    pub node: NodeId,
    pub from: Text,
    pub to: Text,
}

/// Reads a model: ONNX, a JSON graph, or the text form, told apart by content.
pub fn open(path: &Path) -> Result<Imported, FormatError> {
    let bytes = file::read(path).map_err(|error| FormatError::read(path, error))?;
    if bytes.is_empty() {
        return Err(FormatError::not_a_model(path, "the file is empty"));
    }
    match !has_json_extension(path) && text::is_text(&bytes) {
        true => text::read(&bytes, path),
        false => open_data(bytes, path),
    }
}

/// Reads a model that has its weights itself.
fn open_data(bytes: Bytes, path: &Path) -> Result<Imported, FormatError> {
    match has_json_extension(path) || json::looks_like_json(&bytes) {
        true => json::read(&bytes, path),
        false => onnx::read(bytes, path, Some(&file::folder_of(path))),
    }
}

/// Writes a model in the form that the end of its name asks for, see [`Form::to_write`]; ONNX where it has none. An
/// existing file is replaced whole, after the new one has been read back and compared.
pub fn save(model: &Model, path: &Path, options: &SaveOptions) -> Result<SaveReport, FormatError> {
    let form = Form::to_write(path, Form::Onnx)?;
    if form != Form::Onnx && options.data == DataPlacement::OneFile {
        return Err(FormatError::Unwritable {
            path: path.to_owned(),
            place: "data in a file of its own".to_owned(),
            what: format!("a model in the {} has its data in itself; name the file .onnx", form.title()),
        });
    }
    match form {
        Form::Onnx => onnx::save::save(model, path, options),
        Form::Json => json::save(model, path, options),
        Form::Text => text::save_alone(model, path),
    }
}

fn has_json_extension(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"))
}
