//! `text`: the text form of a model; from a text form, the model.

use super::failure::{Failure, refuse_incomplete};
use super::{Answer, output};
use crate::formats::{self, Form, SaveOptions};
use crate::ir::text::Weights;
use clap::{Args, ValueEnum};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Print a model as text, or make the model that a text describes
///
/// On standard output the text is for reading: it leaves out what it names in its last line, and shows data of more than
/// 16 elements by reference. A file written with -o loses nothing, and leads back to the same model as long as the model
/// stays where it is (with --weights inline, also without it). Text that is made of text has all its data in it.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Model (.onnx, .json), or its text form: told apart by content
    model: PathBuf,
    /// File to write; its ending says what: .onnx, .json (the JSON graph), .txt (the text form). Needed for a text form
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Leave nothing out on standard output either
    #[arg(long)]
    full: bool,
    /// Where data goes
    #[arg(long, value_enum, default_value_t = Place::Small)]
    weights: Place,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Where data goes in a text.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Place {
    /// All in the text
    Inline,
    /// Up to 16 elements in the text, the rest by reference to the model's file
    Small,
    /// All by reference
    Reference,
}

impl Place {
    fn weights(self) -> Weights {
        match self {
            Place::Inline => Weights::Inline,
            Place::Small => Weights::Small(16),
            Place::Reference => Weights::Reference,
        }
    }
}

/// The JSON document of `text`.
#[derive(Debug, Serialize)]
pub struct Report {
    /// `text` when the text form was made, `model` when ONNX or the JSON graph was.
    pub made: &'static str,
    pub input: String,
    /// The file that was written.
    pub output: Option<String>,
    /// Size of the text or of the file.
    pub bytes: u64,
    pub nodes: usize,
    /// The text itself, when no file was named.
    pub text: Option<String>,
}

pub fn run(arguments: &Arguments) -> Result<Answer, Failure> {
    let is_text = formats::text::is_text_file(&arguments.model)?;
    let otherwise = if is_text { Form::Onnx } else { Form::Text };
    let wanted = arguments.output.as_deref().map(|path| Form::to_write(path, otherwise)).transpose()?;
    let report = match (is_text, wanted) {
        (false, None | Some(Form::Text)) => to_text(arguments)?,
        _ => to_model(arguments)?,
    };
    match (&report.output, &report.text) {
        _ if arguments.json => output::print_json(&report),
        (Some(file), _) => {
            let nodes = output::counted(report.nodes, "node");
            output::print(&format!("{file}: the {}, {nodes}, {} bytes\n", report.made, report.bytes))
        }
        (None, text) => output::print(text.as_deref().unwrap_or_default()),
    }
}

fn to_text(arguments: &Arguments) -> Result<Report, Failure> {
    let input = &arguments.model;
    let model = formats::open(input)?.model;
    let weights = arguments.weights.weights();
    let (bytes, text) = match &arguments.output {
        Some(path) => {
            refuse_to_replace(input, path)?;
            (formats::text::save(&model, input, path, weights)?, None)
        }
        None => {
            let text = formats::text::print(&model, input, Path::new("."), weights, arguments.full);
            (text.len() as u64, Some(text))
        }
    };
    Ok(Report { made: "text", text, ..Report::new(arguments, bytes, model.node_count()) })
}

fn to_model(arguments: &Arguments) -> Result<Report, Failure> {
    let input = &arguments.model;
    // First: whether it is one is more than where its model goes.
    let imported = formats::open(input)?;
    let Some(path) = &arguments.output else {
        return Err(Failure::words(format!(
            "'{}' is a text form: name the model to write with -o FILE.onnx",
            input.display()
        )));
    };
    refuse_to_replace(input, path)?;
    refuse_incomplete(input, &imported)?;
    let options = SaveOptions { source: Some(input.clone()), ..SaveOptions::default() };
    let saved = formats::save(&imported.model, path, &options)?;
    let made = if Form::to_write(path, Form::Onnx)? == Form::Text { "text" } else { "model" };
    Ok(Report { made, ..Report::new(arguments, saved.bytes, imported.model.node_count()) })
}

/// A text refers to its model and is refused as its own replacement; so is a model in place of its text.
fn refuse_to_replace(input: &Path, output: &Path) -> Result<(), Failure> {
    match (input.canonicalize(), output.canonicalize()) {
        (Ok(a), Ok(b)) if a == b => {
            Err(Failure::words(format!("'{}' would replace itself", input.display())))
        }
        _ => Ok(()),
    }
}

impl Report {
    fn new(arguments: &Arguments, bytes: u64, nodes: usize) -> Report {
        Report {
            made: "",
            input: arguments.model.display().to_string(),
            output: arguments.output.as_ref().map(|path| path.display().to_string()),
            bytes,
            nodes,
            text: None,
        }
    }
}
