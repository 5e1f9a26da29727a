//! No verb: the window, or where none can be opened the same first job on the terminal.

use super::failure::Failure;
use super::{Answer, output, terminal};
use std::path::Path;

/// Opens the window, with a model if one is named.
pub fn run(model: Option<&Path>) -> Result<Answer, Failure> {
    output::complain("this build has no window (feature `gui`); doing the same on the terminal");
    terminal::run(model)
}
