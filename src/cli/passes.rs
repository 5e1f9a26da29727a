//! `passes`: which passes there are; one pass with an example of what it does.

use super::failure::Failure;
use super::{Answer, output};
use crate::passes::{PassInfo, Risk, ShapeMode, Stage};
use crate::pipeline::{Registry, config::nearest};
use crate::table::Table;
use clap::Args;
use serde::Serialize;

/// List the passes in their order of run; with a name, one pass and what it does
#[derive(Debug, Args)]
pub struct Arguments {
    /// One pass
    name: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The JSON document of `passes`.
#[derive(Debug, Serialize)]
pub struct Report {
    /// In order of run.
    pub passes: Vec<Entry>,
}

/// One pass.
#[derive(Debug, Serialize)]
pub struct Entry {
    pub name: &'static str,
    /// `eliminate`, `fold`, `fuse`, `layout` or `clean`.
    pub stage: Stage,
    /// `exact`, `rounding`, `lossy` or `risky`.
    pub risk: Risk,
    /// `static`, `symbolic` or `any`: which shapes it can work with.
    pub shapes: ShapeMode,
    pub default_on: bool,
    /// One sentence.
    pub summary: &'static str,
    /// Passes that should run before it.
    pub after: &'static [&'static str],
    /// A small graph in the text form, before and after.
    pub example_before: &'static str,
    pub example_after: &'static str,
}

impl Entry {
    fn of(info: &PassInfo) -> Entry {
        Entry {
            name: info.name,
            stage: info.stage,
            risk: info.risk,
            shapes: info.shapes,
            default_on: info.default_on,
            summary: info.summary,
            after: info.after,
            example_before: info.example_before,
            example_after: info.example_after,
        }
    }
}

pub fn run(arguments: &Arguments) -> Result<Answer, Failure> {
    let registry = Registry::builtin();
    let report = match &arguments.name {
        None => Report { passes: registry.iter().map(|pass| Entry::of(pass.info())).collect() },
        Some(name) => match registry.get(name) {
            Some(pass) => Report { passes: vec![Entry::of(pass.info())] },
            None => {
                let hint = nearest(name, registry.iter().map(|pass| pass.info().name));
                return Err(Failure::words(format!("unknown pass '{name}'{hint}")));
            }
        },
    };
    if arguments.json {
        return output::print_json(&report);
    }
    match (&arguments.name, report.passes.as_slice()) {
        (Some(_), [pass]) => output::print(&one(pass)),
        _ => output::print(&list(&report.passes)),
    }
}

fn list(passes: &[Entry]) -> String {
    let mut table = Table::new(&["pass", "stage", "risk", "shapes", "on", "what it does"]);
    for pass in passes {
        table.row([
            pass.name.into(),
            pass.stage.name().into(),
            pass.risk.name().into(),
            shapes(pass.shapes).into(),
            if pass.default_on { "yes" } else { "no" }.into(),
            pass.summary.into(),
        ]);
    }
    table.to_text(0)
}

fn one(pass: &Entry) -> String {
    let on = if pass.default_on { "on by default" } else { "off by default" };
    let mut text = format!(
        "{}\n  {}\n  stage {}, risk {}, shapes {}, {on}\n",
        pass.name,
        pass.summary,
        pass.stage.name(),
        pass.risk.name(),
        shapes(pass.shapes)
    );
    if !pass.after.is_empty() {
        text += &format!("  runs after {}\n", pass.after.join(", "));
    }
    for (title, example) in [("before", pass.example_before), ("after", pass.example_after)] {
        if !example.trim().is_empty() {
            text += &format!("\n{title}\n");
            for line in example.trim_matches('\n').lines() {
                text += format!("  {line}").trim_end();
                text.push('\n');
            }
        }
    }
    text
}

fn shapes(mode: ShapeMode) -> &'static str {
    match mode {
        ShapeMode::Static => "static",
        ShapeMode::Symbolic => "symbolic",
        ShapeMode::Any => "any",
    }
}
