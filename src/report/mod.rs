//! A run as a document to send around: the same tables as on screen, as Markdown, HTML in one file, or JSON.

mod html;
mod markdown;
pub mod tables;

use crate::pipeline::{Config, Run, StopReason};
use crate::table::Table;
use serde_json::{Map, Value, json};

/// A table with a heading.
#[derive(Clone, PartialEq, Debug)]
pub struct Section {
    pub title: &'static str,
    /// What to say when the table is empty.
    pub empty: &'static str,
    pub table: Table,
}

/// A picture with a heading.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    pub title: String,
    /// An SVG document.
    pub svg: String,
}

/// What a report says.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    pub title: String,
    /// Names and values, most important first.
    pub summary: Vec<(&'static str, String)>,
    pub sections: Vec<Section>,
    /// The pipeline's state, as a file that gives the same result again.
    pub configuration: String,
    /// Only HTML shows them.
    pub figures: Vec<Figure>,
}

impl Report {
    /// The report of a run over the model `name`; `problems` are what the readers found wrong with the file.
    pub fn of_run(name: &str, run: &Run, config: &Config, problems: &[String]) -> Report {
        let last = run.last_state();
        let (before, after) = (run.initial.model.node_count(), last.model.node_count());
        let mut listed = Table::new(&["problem"]);
        problems.iter().for_each(|p| listed.row([p.as_str().into()]));
        let mut unmatched = Table::new(&["exclusion", "what it fits not"]);
        run.unmatched
            .iter()
            .for_each(|u| unmatched.row([u.exclusion.as_str().into(), u.text.as_str().into()]));
        let section = |title, empty, table| Section { title, empty, table };
        Report {
            title: format!("passlens: {name}"),
            summary: vec![
                ("Nodes", format!("{before} before, {after} after")),
                ("Rewrites", format!("{} in {} rounds", run.steps.len(), run.rounds)),
                ("Stopped", stop_text(&run.stop)),
                ("Verified", "not run: this version has no engine to run models with".into()),
            ],
            sections: vec![
                section("Passes", "no pass ran", tables::passes(run)),
                section(
                    "Operators",
                    "the model has no nodes",
                    tables::operators(&run.initial.model, &last.model),
                ),
                section("Rewrites", "nothing was rewritten", tables::steps(run)),
                section("Near misses", "no pass came close to a further rewrite", tables::near_misses(run)),
                section("Rolled back", "nothing failed", tables::failures(run)),
                section("Exclusions without effect", "all of them fitted something", unmatched),
                section("Problems of the file", "none were found", listed),
            ],
            configuration: config.to_toml(),
            figures: Vec::new(),
        }
    }

    /// As Markdown, without figures.
    pub fn to_markdown(&self) -> String {
        markdown::write(self)
    }

    /// As one HTML file with everything in it.
    pub fn to_html(&self) -> String {
        html::write(self)
    }

    /// As JSON: `title`, `summary`, a key a section (in lower case, with underscores), `configuration`.
    pub fn to_json(&self) -> Value {
        let key = |title: &str| title.to_lowercase().replace(' ', "_");
        let mut out = Map::new();
        out.insert("title".into(), json!(self.title));
        let summary = self.summary.iter().map(|(k, v)| (key(k), json!(v))).collect::<Map<String, Value>>();
        out.insert("summary".into(), Value::Object(summary));
        for section in &self.sections {
            out.insert(key(section.title), section.table.to_json());
        }
        out.insert("configuration".into(), json!(self.configuration));
        Value::Object(out)
    }
}

/// Why a run stopped, for people.
pub fn stop_text(stop: &StopReason) -> String {
    match stop {
        StopReason::Converged => "a whole round changed nothing".into(),
        StopReason::RoundLimit => "the number of rounds was used up; more rounds may find more".into(),
        StopReason::Cycle { passes } => {
            format!("these passes undo each other: {}; switch one of them off", passes.join(", "))
        }
        StopReason::StopAt => "the step that was asked for was reached".into(),
        StopReason::Cancelled => "cancelled".into(),
    }
}
