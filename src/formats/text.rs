//! The text form as a file: read with the weights that it refers to, written so that it leads back to the same model.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use super::error::{FormatError, Problem, Refusal, Severity};
use super::{Form, Imported, SaveReport, file, recognise};
use crate::ir::text::{self, PrintOptions, Reference, Weights};
use crate::ir::{AttributeValue, Constant, Data, Model, Tensor};
use bytes::Bytes;
use std::sync::Arc;

/// True when a file's content is text that can only be the text form: no binary file, no JSON, nothing else known.
pub fn is_text(bytes: &Bytes) -> bool {
    text::looks_like_text(bytes) && recognise::foreign(bytes).is_none()
}

/// See [`is_text`].
pub fn is_text_file(path: &Path) -> Result<bool, FormatError> {
    file::read(path).map(|bytes| is_text(&bytes)).map_err(|error| FormatError::read(path, error))
}

/// Reads a model from its text form; weights by reference come from the files that it names, relative to its folder.
pub fn read(bytes: &[u8], path: &Path) -> Result<Imported, FormatError> {
    let Ok(content) = std::str::from_utf8(bytes) else {
        return Err(FormatError::not_a_model(path, "it is not UTF-8, so it is not the text form of a model"));
    };
    match parse(content, &file::folder_of(path)) {
        Ok(model) => Ok(Imported {
            problems: missing(&model),
            model: super::onnx::spoken::with_spoken(model),
            form: Form::Text,
        }),
        // Every graph has an arrow: without one this is some other text.
        Err(Refusal { place, what }) if !content.contains("=>") => {
            let what = format!("it is text, but not the text form of a model ({place}: {what})");
            Err(FormatError::not_a_model(path, what))
        }
        Err(refusal) => Err(refusal.invalid(path)),
    }
}

fn parse(content: &str, folder: &Path) -> Result<Model, Refusal> {
    let mut sources = Sources::default();
    text::parse_with(content, folder, &mut |file, reference| sources.fetch(file, reference))
        .map_err(|e| Refusal::new(format!("line {}, column {}", e.line, e.column), e.what))
}

/// Models that a text refers to, each opened once.
#[derive(Default)]
struct Sources(BTreeMap<PathBuf, Result<Model, String>>);

impl Sources {
    fn fetch(&mut self, path: &Path, reference: &Reference) -> Result<Arc<Tensor>, String> {
        // A text cannot bring weights for another: it would have to have them from somewhere else, perhaps from itself.
        let open = || {
            let bytes = file::read(path).map_err(|error| FormatError::read(path, error))?;
            super::open_data(bytes, path).map(|opened| opened.model)
        };
        let open = || open().map_err(|error: FormatError| error.to_string());
        let model = self.0.entry(path.to_owned()).or_insert_with(open).as_ref().map_err(String::clone)?;
        reference.find(model).ok_or_else(|| "that file has no such tensor".to_owned())
    }
}

/// Data that the text says is missing.
fn missing(model: &Model) -> Vec<Problem> {
    let mut problems = Vec::new();
    let problem = |what: String, tensor: &Tensor| match &tensor.data {
        Data::Missing(reason) => Some(Problem::new(Severity::Error, format!("{what}: {reason}"))),
        _ => None,
    };
    for (id, value) in model.values() {
        if let Some(Constant::Dense(tensor)) = &value.constant {
            let found = problem(format!("initializer '{}'", value.name), tensor);
            problems.extend(found.map(|p| p.at_value(id)));
        }
    }
    for id in model.all_nodes() {
        for attribute in &model.node(id).attributes {
            if let AttributeValue::Tensor(tensor) = &attribute.value {
                let what = format!("attribute '{}' of '{}'", attribute.name, model.node_label(id));
                problems.extend(problem(what, tensor).map(|p| p.at_node(id)));
            }
        }
    }
    problems
}

/// The text of a model that was read from `source`, to stand in `folder`.
pub fn print(model: &Model, source: &Path, folder: &Path, weights: Weights, full: bool) -> String {
    let named = relative(source, folder);
    let source = named.as_deref().map(|named| (named, model));
    text::print(model, &PrintOptions { weights, full, source })
}

/// Writes the full text form of a model that was read from `source`. The file replaces an existing one only after its
/// text has been parsed, its weights fetched, and the result found to print the same. Returns its size in bytes.
pub fn save(model: &Model, source: &Path, path: &Path, weights: Weights) -> Result<u64, FormatError> {
    let folder = file::folder_of(path);
    let content = print(model, source, &folder, weights, true);
    let again = parse(&content, &folder).map(|again| print(&again, source, &folder, weights, true));
    let verify = |what: String| FormatError::Verify { path: path.to_owned(), what };
    match again {
        Ok(again) if again == content => {}
        Ok(again) => {
            let differs = again.lines().zip(content.lines()).position(|(a, b)| a != b);
            return Err(verify(format!("line {} differs", differs.map_or(0, |line| line + 1))));
        }
        Err(refusal) => return Err(verify(format!("{}: {}", refusal.place, refusal.what))),
    }
    file::replace(path, content.as_bytes()).map_err(|error| FormatError::write(path, error))?;
    Ok(content.len() as u64)
}

/// Most bytes of weights that a text holds itself: in it they take several times as many.
const MOST_INLINE: u64 = 256 << 20;

/// Writes the full text form with all data in it: of a model that is in no other file.
pub fn save_alone(model: &Model, path: &Path) -> Result<SaveReport, FormatError> {
    let bytes_of = |constant: &Constant| match constant {
        Constant::Dense(tensor) => tensor.byte_count(),
        Constant::Sparse(tensor) => tensor.values.byte_count(),
    };
    let weights =
        model.values().filter_map(|(_, v)| v.constant.as_ref().map(bytes_of)).fold(0, u64::saturating_add);
    if weights > MOST_INLINE {
        let what = format!("{weights} bytes are too many for a text; name the file .onnx");
        return Err(Refusal::new("weights", what).unwritable(path));
    }
    let bytes = save(model, path, path, Weights::Inline)?;
    Ok(SaveReport { path: path.to_owned(), bytes, data_file: None, renamed: Vec::new() })
}

/// A file as seen from a folder, with `/` between names; `None` where there is no such way or a name is not Unicode.
fn relative(file: &Path, folder: &Path) -> Option<String> {
    let (file, folder) = (file.canonicalize().ok()?, folder.canonicalize().ok()?);
    let (to, from): (Vec<Component>, Vec<Component>) =
        (file.components().collect(), folder.components().collect());
    let shared = to.iter().zip(&from).take_while(|(a, b)| a == b).count();
    // Another drive.
    if shared == 0 {
        return None;
    }
    let mut names = vec![".."; from.len() - shared];
    for component in to.get(shared..)? {
        names.push(component.as_os_str().to_str()?);
    }
    Some(names.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_from_where_the_text_stands() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        std::fs::create_dir_all(at("models/deep")).unwrap();
        std::fs::create_dir_all(at("texts")).unwrap();
        std::fs::write(at("models/deep/m.onnx"), b"").unwrap();
        assert_eq!(relative(&at("models/deep/m.onnx"), &at("texts")).unwrap(), "../models/deep/m.onnx");
        assert_eq!(relative(&at("models/deep/m.onnx"), &at("models")).unwrap(), "deep/m.onnx");
        assert_eq!(relative(&at("models/deep/m.onnx"), &at("models/deep")).unwrap(), "m.onnx");
        assert_eq!(relative(&at("models/none.onnx"), &at("models")), None);
    }
}
