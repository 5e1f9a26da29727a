//! Why a verb gave up: always one line.

use crate::formats::{FormatError, Imported};
use crate::pipeline::ConfigError;
use std::path::Path;

/// Unusable input or usage, in one sentence.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("{0}")]
    Usage(String),
    #[error(transparent)]
    File(#[from] FormatError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("{file}: cannot be written: {source}")]
    Write { file: String, source: std::io::Error },
    #[error("standard output cannot be written: {0}")]
    Output(std::io::Error),
    #[error("{file}: {what}")]
    Model { file: String, what: String },
}

impl Failure {
    /// Something that is wrong with the words of the command line.
    pub fn words(text: impl Into<String>) -> Failure {
        Failure::Usage(text.into())
    }

    /// A file other than the model could not be written.
    pub fn write(path: &Path, source: std::io::Error) -> Failure {
        Failure::Write { file: path.display().to_string(), source }
    }

    /// Something that is wrong with a model.
    pub fn model(path: &Path, what: impl Into<String>) -> Failure {
        Failure::Model { file: path.display().to_string(), what: what.into() }
    }

    /// The parser's report of several paragraphs as one line: what is wrong, then its tips; the usage is left to `--help`.
    pub fn usage(error: &clap::Error) -> Failure {
        let text = error.to_string();
        let mut parts: Vec<String> = Vec::new();
        for paragraph in text.split("\n\n") {
            let joined = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
            let joined = joined.trim_start_matches("error: ").trim_start_matches("tip: ");
            let of_help = joined.starts_with("Usage:") || joined.starts_with("For more information");
            if !of_help && !joined.is_empty() {
                parts.push(joined.to_owned());
            }
        }
        Failure::Usage(format!("{}; see passlens --help", parts.join("; ")))
    }
}

/// Refuses a model whose data is missing: it can be looked at, but not processed.
pub fn refuse_incomplete(path: &Path, imported: &Imported) -> Result<(), Failure> {
    match imported.unusable() {
        Some(problem) => Err(Failure::model(path, problem.text.clone())),
        None => Ok(()),
    }
}
