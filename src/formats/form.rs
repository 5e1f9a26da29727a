//! The forms in which a model is written down, and how a file's name tells which is wanted.

use super::error::FormatError;
use std::path::Path;

/// A form in which a model is written down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    Onnx,
    /// The JSON graph.
    Json,
    /// The text form of `ir`.
    Text,
}

/// Endings and what they ask for.
const ENDINGS: &[(&str, Form)] =
    &[("onnx", Form::Onnx), ("pb", Form::Onnx), ("json", Form::Json), ("txt", Form::Text)];

impl Form {
    /// One word for JSON: `onnx`, `json`, `text`.
    pub fn name(self) -> &'static str {
        match self {
            Form::Onnx => "onnx",
            Form::Json => "json",
            Form::Text => "text",
        }
    }

    /// What people call it.
    pub fn title(self) -> &'static str {
        match self {
            Form::Onnx => "ONNX",
            Form::Json => "JSON graph",
            Form::Text => "text form",
        }
    }

    /// The form that the end of a file's name asks for; `otherwise` where it has none. An ending that says something
    /// else is refused: a model under it would be found by nobody.
    pub fn to_write(path: &Path, otherwise: Form) -> Result<Form, FormatError> {
        let Some(ending) = path.extension() else { return Ok(otherwise) };
        let known = ENDINGS.iter().find(|(known, _)| ending.eq_ignore_ascii_case(known));
        known.map(|(_, form)| *form).ok_or_else(|| FormatError::Unwritable {
            path: path.to_owned(),
            place: format!("its ending is '.{}'", ending.to_string_lossy()),
            what: "a model is written as .onnx, as .json (the JSON graph) or as .txt (the text form)"
                .to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_says_the_form() {
        let form = |name: &str| Form::to_write(Path::new(name), Form::Onnx);
        assert_eq!(form("a/m.onnx").unwrap(), Form::Onnx);
        assert_eq!(form("m.JSON").unwrap(), Form::Json);
        assert_eq!(form("m.txt").unwrap(), Form::Text);
        assert_eq!(form("folder.d/model").unwrap(), Form::Onnx);
        assert_eq!(Form::to_write(Path::new("model"), Form::Text).unwrap(), Form::Text);
        let error = form("m.svg").unwrap_err().to_string();
        assert!(error.starts_with("m.svg: not written: its ending is '.svg'"), "{error}");
    }
}
