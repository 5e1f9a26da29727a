//! No verb: the window.

use super::failure::Failure;
use super::{Answer, output};
use std::path::Path;

/// Opens the window, with a model if one is named.
pub fn run(model: Option<&Path>) -> Result<Answer, Failure> {
    match model {
        Some(path) => Err(Failure::words(format!("'{}' is no verb; see passlens --help", path.display()))),
        None => output::print("passlens --help lists the verbs\n"),
    }
}
