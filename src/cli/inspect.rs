//! `inspect`: what a model is, without running it.

mod human;
mod outline;
mod report;

use super::failure::Failure;
use super::{Answer, output};
use crate::facts::Facts;
use crate::formats;
use clap::Args;
use std::path::PathBuf;

pub use report::{ProblemEntry, Report};

/// Say what a model is: inputs and outputs, operators, weights, blocks, problems
#[derive(Debug, Args)]
pub struct Arguments {
    /// Model to look at
    model: PathBuf,
    /// Show all blocks and all nodes
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<Answer, Failure> {
    let imported = formats::open(&arguments.model)?;
    let facts = Facts::infer(&imported.model);
    let blocks = crate::blocks::build(&imported.model, &facts);
    let report = Report::new(&arguments.model, &imported, &facts, &blocks, arguments.all);
    match arguments.json {
        true => output::print_json(&report),
        false => output::print(&human::text(&report)),
    }
}
