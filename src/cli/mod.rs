//! The command line: one file a verb. Without a verb the window opens, where one can be opened.
//!
//! Exit status: 0 fine, 1 a true negative answer (two models differ), 2 unusable input or usage, 101 a defect of this
//! program. An error is one line on standard error. With `--json` a verb prints one JSON document on standard output;
//! its keys are documented at the verb's report type and in the README, and keep their order.

pub mod diff;
pub mod engines;
pub mod extract;
mod failure;
pub mod inspect;
pub mod optimize;
mod output;
pub mod passes;
pub mod render;
mod start;
mod terminal;
pub mod text;

use crate::engine::onnxruntime;
use crate::pipeline::config::nearest;
use clap::{CommandFactory, Parser, Subcommand};
use failure::Failure;
use std::ffi::OsString;
use std::panic;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

/// Open neural-network models as hierarchical graphs, switch optimization passes, see and undo every rewrite.
#[derive(Debug, Parser)]
#[command(name = "passlens", version, about, args_conflicts_with_subcommands = true, max_term_width = 100)]
struct CommandLine {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Model to open in the window
    model: Option<PathBuf>,
    /// Play a script (JSON lines of commands, wait_idle, shot, expect) in the window's drawing code, without a window
    #[cfg(feature = "gui")]
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    script: Option<PathBuf>,
    /// Measure frames over a model without a window, and print JSON
    #[cfg(feature = "gui")]
    #[arg(long, value_name = "MODEL", conflicts_with_all = ["model", "script"])]
    bench_frames: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Inspect(inspect::Arguments),
    Passes(passes::Arguments),
    Optimize(optimize::Arguments),
    Render(render::Arguments),
    Diff(diff::Arguments),
    Extract(extract::Arguments),
    Text(text::Arguments),
    Engines(engines::Arguments),
    /// The process that runs ONNX Runtime for another passlens
    #[command(name = onnxruntime::VERB, hide = true)]
    OnnxRuntime(engines::Process),
}

/// How a verb ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    Fine,
    /// The answer to the question is no.
    Negative,
}

/// What the program does: reads the words of the command line, runs the verb, gives the exit status.
pub fn main() -> ExitCode {
    let fault = keep_panics_quiet();
    match panic::catch_unwind(|| run(std::env::args_os())) {
        Ok(Ok(Answer::Fine)) => ExitCode::SUCCESS,
        Ok(Ok(Answer::Negative)) => ExitCode::from(1),
        Ok(Err(failure)) => {
            output::complain(&failure.to_string());
            ExitCode::from(2)
        }
        Err(_) => {
            let what = fault.lock().map(|text| text.clone()).unwrap_or_default();
            output::complain(&format!("this is a defect of passlens: {what}"));
            ExitCode::from(101)
        }
    }
}

/// Panics in passes are caught and reported where they happen: nothing is printed then. The last one's message and place
/// are kept for [`main`].
fn keep_panics_quiet() -> Arc<Mutex<String>> {
    let last = Arc::new(Mutex::new(String::new()));
    let kept = last.clone();
    panic::set_hook(Box::new(move |info| {
        if let Ok(mut text) = kept.lock() {
            *text = info.to_string();
        }
    }));
    last
}

fn run(words: impl IntoIterator<Item = OsString>) -> Result<Answer, Failure> {
    #[cfg(feature = "gui")]
    let started = std::time::Instant::now();
    let words: Vec<OsString> = words.into_iter().collect();
    let line = match CommandLine::try_parse_from(&words) {
        Ok(line) => line,
        // Help and version are answers, not errors.
        Err(error) if !error.use_stderr() => return output::print(&error.to_string()),
        Err(error) => {
            words.get(1).map(Path::new).map_or(Ok(()), no_verb)?;
            return Err(Failure::usage(&error));
        }
    };
    #[cfg(feature = "gui")]
    if let Some(path) = &line.script {
        return start::script(path);
    }
    #[cfg(feature = "gui")]
    if let Some(path) = &line.bench_frames {
        return start::bench_frames(path, started);
    }
    match line.verb {
        Some(Verb::Inspect(arguments)) => inspect::run(&arguments),
        Some(Verb::Passes(arguments)) => passes::run(&arguments),
        Some(Verb::Optimize(arguments)) => optimize::run(&arguments),
        Some(Verb::Render(arguments)) => render::run(&arguments),
        Some(Verb::Diff(arguments)) => diff::run(&arguments),
        Some(Verb::Extract(arguments)) => extract::run(&arguments),
        Some(Verb::Text(arguments)) => text::run(&arguments),
        Some(Verb::Engines(arguments)) => engines::run(&arguments),
        Some(Verb::OnnxRuntime(arguments)) => engines::serve(&arguments),
        None => {
            line.model.as_deref().map_or(Ok(()), no_verb)?;
            start::run(line.model.as_deref())
        }
    }
}

/// A first word that is neither a verb nor a file is a mistyped one of either.
fn no_verb(word: &Path) -> Result<(), Failure> {
    let command = CommandLine::command();
    let text = word.to_string_lossy();
    let verbs: Vec<&str> = command.get_subcommands().map(|verb| verb.get_name()).collect();
    if text.starts_with('-') || word.exists() || text == "help" || verbs.contains(&&*text) {
        return Ok(());
    }
    let hint = nearest(&text, verbs);
    Err(Failure::words(format!(
        "'{}' is neither a verb nor a file{hint}; see passlens --help",
        word.display()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }
}
