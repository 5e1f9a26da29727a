//! `engines`: which engines there are, where they were found, how to get one; and the process that runs ONNX Runtime.

use super::failure::Failure;
use super::{Answer, output};
use crate::engine::onnxruntime::{self, Choice, OnnxRuntime};
use crate::engine::{Embedded, Engine};
use crate::table::Table;
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;

/// List the engines that can run models, and how to get those that are missing
#[derive(Debug, Args)]
pub struct Arguments {
    /// ONNX Runtime's library; else it is looked for (ORT_DYLIB_PATH, beside the program, Python, the system)
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The JSON document of `engines`.
#[derive(Debug, Serialize)]
pub struct Report {
    pub engines: Vec<Entry>,
}

/// One engine.
#[derive(Debug, Serialize)]
pub struct Entry {
    /// As `--engine` takes it.
    pub name: String,
    pub available: bool,
    pub version: Option<String>,
    /// The library.
    pub place: Option<String>,
    /// How it was found.
    pub from: Option<String>,
    /// Execution providers that can be chosen: `--engine onnxruntime:all,cuda`.
    pub providers: Vec<String>,
    /// Why it is not there, and how to get it; else what it is.
    pub note: String,
}

/// What the hidden verb is called with.
#[derive(Debug, Args)]
pub struct Process {
    #[arg(long)]
    library: PathBuf,
    /// Bytes of addresses
    #[arg(long)]
    memory: Option<u64>,
}

pub fn run(arguments: &Arguments) -> Result<Answer, Failure> {
    let embedded = Embedded::new().describe();
    let runtime = OnnxRuntime::new(Choice { library: arguments.library.clone(), ..Choice::default() });
    let entry = |name: &str, note: &str| Entry {
        name: name.into(),
        available: true,
        version: None,
        place: None,
        from: None,
        providers: Vec::new(),
        note: note.into(),
    };
    let own = Entry {
        version: Some(embedded.version),
        ..entry("embedded", "part of the program; runs the graph node by node")
    };
    let levels = "in a process of its own; onnxruntime:basic, :extended and :all let it optimize first";
    let theirs = match runtime.found() {
        Ok(found) => Entry {
            version: Some(found.version.clone()),
            place: Some(found.library.display().to_string()),
            from: Some(found.from.clone()),
            providers: found.providers.clone(),
            ..entry("onnxruntime", levels)
        },
        Err(error) => Entry { available: false, ..entry("onnxruntime", &error.to_string()) },
    };
    let program = entry("cmd:PROGRAM", "your own: PROGRAM MODEL.onnx INPUTS.npz OUTPUTS.npz TIMES.json");
    let report = Report { engines: vec![own, theirs, program] };
    match arguments.json {
        true => output::print_json(&report),
        false => output::print(&text(&report)),
    }
}

fn text(report: &Report) -> String {
    let mut table = Table::new(&["engine", "there", "version", "what it is"]);
    let mut places = String::new();
    for engine in &report.engines {
        table.row([
            engine.name.as_str().into(),
            if engine.available { "yes" } else { "no" }.into(),
            engine.version.as_deref().unwrap_or_default().into(),
            engine.note.as_str().into(),
        ]);
        if let (Some(place), Some(from)) = (&engine.place, &engine.from) {
            places += &format!("\n{}: {place}, found by {from}\n", engine.name);
            places += &format!("  execution providers: {}\n", engine.providers.join(", "));
        }
    }
    table.to_text(0) + &places
}

/// The process that runs ONNX Runtime: answers on standard output until its input ends.
pub fn serve(arguments: &Process) -> Result<Answer, Failure> {
    onnxruntime::serve(&arguments.library, arguments.memory).map(|()| Answer::Fine).map_err(Failure::words)
}
