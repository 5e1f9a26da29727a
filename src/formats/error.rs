//! What can go wrong with a file, in one sentence each; and what is worth saying about a file that opened.

use std::io;
use std::path::{Path, PathBuf};

use crate::ir::{NodeId, ValueId};

/// Why a file was not read or written. Each message names the file.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    #[error("{}: cannot be read: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    /// Recognised as something else than a model.
    #[error("{}: {what}", path.display())]
    NotAModel { path: PathBuf, what: String },
    /// The content cannot be a model; `place` says where.
    #[error("{}: {place}: {what}", path.display())]
    Invalid { path: PathBuf, place: String, what: String },
    /// The model cannot be written because of what it contains.
    #[error("{}: not written: {place}: {what}", path.display())]
    Unwritable { path: PathBuf, place: String, what: String },
    #[error("{}: cannot be written: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    /// What was written and read back is not the model; nothing was replaced.
    #[error("{}: not written: reading the new file back gave something else: {what}", path.display())]
    Verify { path: PathBuf, what: String },
}

impl FormatError {
    pub(super) fn read(path: &Path, source: io::Error) -> FormatError {
        FormatError::Read { path: path.to_owned(), source }
    }

    pub(super) fn write(path: &Path, source: io::Error) -> FormatError {
        FormatError::Write { path: path.to_owned(), source }
    }

    pub(super) fn not_a_model(path: &Path, what: impl Into<String>) -> FormatError {
        FormatError::NotAModel { path: path.to_owned(), what: one_line(&what.into()) }
    }
}

/// Longest part of a message that comes from a file.
const LONGEST: usize = 300;

/// Names in files may hold line breaks and be of any length; a message is one line that people can read.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len().min(LONGEST));
    for character in text.chars() {
        if line.len() >= LONGEST {
            line.push('…');
            break;
        }
        match character.is_control() {
            true => line.extend(character.escape_default()),
            false => line.push(character),
        }
    }
    line
}

/// A sentence about a part of a model, before the file's name is added.
#[derive(Debug)]
pub struct Refusal {
    pub place: String,
    pub what: String,
}

impl Refusal {
    pub fn new(place: impl Into<String>, what: impl Into<String>) -> Refusal {
        Refusal { place: place.into(), what: what.into() }
    }

    /// As the reason why `path` was not read.
    pub fn invalid(self, path: &Path) -> FormatError {
        FormatError::Invalid {
            path: path.to_owned(),
            place: one_line(&self.place),
            what: one_line(&self.what),
        }
    }

    /// As the reason why `path` was not written.
    pub fn unwritable(self, path: &Path) -> FormatError {
        FormatError::Unwritable {
            path: path.to_owned(),
            place: one_line(&self.place),
            what: one_line(&self.what),
        }
    }
}

/// How much a [`Problem`] matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; nothing is wrong.
    Note,
    /// Breaks a rule of the standard; understood all the same.
    Warning,
    /// Something is missing: the model can be looked at, not processed.
    Error,
}

/// Something worth saying about a model that opened.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    pub severity: Severity,
    /// One sentence that names its place.
    pub text: String,
    pub node: Option<NodeId>,
    pub value: Option<ValueId>,
}

impl Problem {
    /// A problem of the model as a whole.
    pub fn new(severity: Severity, text: impl Into<String>) -> Problem {
        Problem { severity, text: one_line(&text.into()), node: None, value: None }
    }

    /// With the node it is about.
    pub fn at_node(mut self, node: NodeId) -> Problem {
        self.node = Some(node);
        self
    }

    /// With the value it is about.
    pub fn at_value(mut self, value: ValueId) -> Problem {
        self.value = Some(value);
        self
    }
}
