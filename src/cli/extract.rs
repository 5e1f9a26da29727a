//! `extract`: a region of a model as a model of its own.

use super::Answer;
use super::failure::{Failure, refuse_incomplete};
use super::output::{self, counted};
use crate::facts::Facts;
use crate::formats::{self, SaveOptions};
use crate::ir::{Model, ValueId, check, region};
use crate::pipeline::config::nearest;
use crate::table::{bytes_text, one_line};
use clap::Args;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Write a region as a model of its own
#[derive(Debug, Args)]
pub struct Arguments {
    /// Model to take the region from
    model: PathBuf,
    /// File to write: .onnx, .json (the JSON graph) or .txt (the text form); an existing one is replaced whole
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Values to begin with, which become inputs; without any, the inputs of the graph
    #[arg(long, value_name = "VALUE", num_args = 1..)]
    from: Vec<String>,
    /// Values to end with, which become outputs
    #[arg(long, value_name = "VALUE", num_args = 1.., required = true)]
    to: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The JSON document of `extract`.
#[derive(Debug, Serialize)]
pub struct Report {
    pub input: String,
    pub output: String,
    pub nodes: usize,
    pub inputs: Vec<Formal>,
    pub outputs: Vec<Formal>,
    /// Size of what was written, in bytes.
    pub bytes: u64,
}

/// An input or output of the new model.
#[derive(Debug, Serialize)]
pub struct Formal {
    pub name: String,
    #[serde(rename = "type")]
    pub ty: String,
}

pub fn run(arguments: &Arguments) -> Result<Answer, Failure> {
    let path = &arguments.model;
    let imported = formats::open(path)?;
    refuse_incomplete(path, &imported)?;
    let model = imported.model;
    let facts = Facts::infer(&model);
    let find = |names: &[String]| -> Result<Vec<ValueId>, Failure> {
        let mut found: Vec<ValueId> = Vec::new();
        for name in names {
            let value = value_named(&model, path, name)?;
            if !found.contains(&value) {
                found.push(value);
            }
        }
        Ok(found)
    };
    let (from, to) = (find(&arguments.from)?, find(&arguments.to)?);
    let ty = |value| facts.ty(&model, value).clone();
    let region =
        region::extract(&model, &from, &to, &ty).map_err(|error| Failure::model(path, error.to_string()))?;
    if let Some(fault) = check::check(&region).first() {
        return Err(Failure::model(path, format!("the region does not stand alone: {fault}")));
    }
    let options =
        SaveOptions { unique_node_names: true, source: Some(path.clone()), ..SaveOptions::default() };
    let saved = formats::save(&region, &arguments.output, &options)?;
    let main = region.graph(region.main());
    let formals = |ports: &[crate::ir::Port]| -> Vec<Formal> {
        let formal = |port: &crate::ir::Port| Formal {
            name: region.value(port.value).name.to_string(),
            ty: port.declaration.ty.to_string(),
        };
        ports.iter().filter(|port| !region.is_constant_input(port.value)).map(formal).collect()
    };
    let report = Report {
        input: path.display().to_string(),
        output: saved.path.display().to_string(),
        nodes: region.node_count(),
        inputs: formals(&main.inputs),
        outputs: formals(&main.outputs),
        bytes: saved.bytes + saved.data_file.map_or(0, |(_, bytes)| bytes),
    };
    match arguments.json {
        true => output::print_json(&report),
        false => output::print(&text(&report)),
    }
}

/// A value by name: of the main graph, or else the only one of that name in the other graphs.
fn value_named(model: &Model, path: &Path, name: &str) -> Result<ValueId, Failure> {
    if let Some(value) = model.find_value(model.main(), name) {
        return Ok(value);
    }
    match model.values_named(name) {
        [value] => Ok(*value),
        [] => {
            let names: Vec<&str> = model.values().map(|(_, v)| &*v.name).collect();
            let hint = nearest(name, names);
            Err(Failure::model(path, format!("there is no value '{name}'{hint}")))
        }
        several => {
            let graphs: Vec<String> =
                several.iter().map(|v| model.graph_path(model.value(*v).graph)).collect();
            Err(Failure::model(path, format!("'{name}' is a value of {}", graphs.join(" and of "))))
        }
    }
}

fn text(report: &Report) -> String {
    let list = |formals: &[Formal]| -> String {
        let texts: Vec<String> = formals.iter().map(|f| format!("{} {}", f.name, f.ty)).collect();
        one_line(&texts.join(", "))
    };
    format!(
        "{} from {} to {}\n{} written, {}\n",
        counted(report.nodes, "node"),
        list(&report.inputs),
        list(&report.outputs),
        report.output,
        bytes_text(report.bytes)
    )
}
