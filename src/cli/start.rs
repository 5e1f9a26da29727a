//! No verb: the window, or where none can be opened the same first job on the terminal. Also what is driven through the
//! window's drawing code without a window.

use super::failure::Failure;
#[cfg(feature = "gui")]
use super::output;
use super::{Answer, terminal};
use std::path::Path;

/// Opens the window, with a model if one is named.
#[cfg(feature = "gui")]
pub fn run(model: Option<&Path>) -> Result<Answer, Failure> {
    match crate::gui::run(model, crate::pipeline::Registry::builtin()) {
        Ok(crate::gui::Opened::Closed | crate::gui::Opened::Restarted(0)) => Ok(Answer::Fine),
        Ok(crate::gui::Opened::Restarted(status)) => {
            Err(Failure::words(format!("the window's process ended with status {status}")))
        }
        Err(no_window) => terminal::run(model, &no_window.to_string()),
    }
}

/// Without the window, the same on the terminal.
#[cfg(not(feature = "gui"))]
pub fn run(model: Option<&Path>) -> Result<Answer, Failure> {
    terminal::run(model, "this build has no window (feature `gui`)")
}

/// Plays a script of commands and pictures.
#[cfg(feature = "gui")]
pub fn script(path: &Path) -> Result<Answer, Failure> {
    let played = crate::gui::script::play_file(path, crate::pipeline::Registry::builtin());
    played.map(|()| Answer::Fine).map_err(|error| Failure::words(error.to_string()))
}

/// Measures frames over a model, as JSON.
#[cfg(feature = "gui")]
pub fn bench_frames(path: &Path, started: std::time::Instant) -> Result<Answer, Failure> {
    let report = crate::gui::bench::run(path, crate::pipeline::Registry::builtin(), started);
    let report = report.map_err(|error| Failure::words(format!("{}: {error}", path.display())))?;
    let text = serde_json::to_string_pretty(&report).map_err(|error| Failure::words(error.to_string()))?;
    output::print(&format!("{text}\n"))
}
