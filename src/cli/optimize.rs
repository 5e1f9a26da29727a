//! `optimize`: runs the pipeline over a model and saves the result.

mod human;
mod provenance;
mod summary;

use super::failure::{Failure, refuse_incomplete};
use super::{Answer, output};
use crate::formats::file::NewFile;
use crate::formats::{self, DataPlacement, Form, Problem, SaveOptions};
use crate::ir::check;
use crate::passes::Blocked;
use crate::pipeline::key::NotAKey;
use crate::pipeline::{
    Config, Event, ListedSite, Options, Registry, Runner, Seen, SiteKey, State, Unmatched, unmatched,
};
use crate::report;
use clap::{Args, ValueEnum};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

pub use summary::{DryRun, Report};

/// Run passes over a model and save the result
#[derive(Debug, Args)]
pub struct Arguments {
    /// Model to optimize
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// File to write: .onnx, .json (the JSON graph) or .txt (the text form); an existing one is replaced whole
    #[arg(short, long, value_name = "OUT", required_unless_present = "dry_run")]
    output: Option<PathBuf>,
    /// Run this pass and no other (repeatable)
    #[arg(long, value_name = "PASS")]
    only: Vec<String>,
    /// Leave this pass out, also when --only names it (repeatable)
    #[arg(long, value_name = "PASS")]
    without: Vec<String>,
    /// At most so many rounds; 0 opens and saves, nothing else
    #[arg(long, value_name = "N", value_parser = whole, allow_negative_numbers = true)]
    rounds: Option<u32>,
    /// Stop after this step; --save-config keeps it
    #[arg(long, value_name = "STEP", value_parser = whole, allow_negative_numbers = true)]
    stop_at: Option<u32>,
    /// Leave this site as it is; --dry-run lists the keys, and a key that fits nothing is said (repeatable)
    #[arg(long, value_name = "KEY")]
    exclude: Vec<String>,
    /// Risky passes run too
    #[arg(long)]
    aggressive: bool,
    /// List sites and near misses of each pass; change nothing, and write nothing but what --save-config names
    #[arg(long, conflicts_with_all = ["report", "log"])]
    dry_run: bool,
    /// Pipeline state to start from, as the window saves it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Write the pipeline state that was used
    #[arg(long, value_name = "FILE")]
    save_config: Option<PathBuf>,
    /// Do not compare outputs before and after
    #[arg(long)]
    no_verify: bool,
    /// Write a report: .html, .md or .json
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Write the log, one JSON line an event
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Write origins and steps of nodes into their metadata
    #[arg(long)]
    provenance: bool,
    /// Where tensor data goes
    #[arg(long, value_enum, default_value_t = Data::AsImported)]
    data: Data,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Where tensor data goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Data {
    /// Into the model file
    Inline,
    /// Into one file beside it
    File,
    /// As it was in the input
    AsImported,
}

impl Data {
    fn placement(self) -> DataPlacement {
        match self {
            Data::Inline => DataPlacement::Inline,
            Data::File => DataPlacement::OneFile,
            Data::AsImported => DataPlacement::AsImported,
        }
    }
}

fn whole(text: &str) -> Result<u32, &'static str> {
    text.parse().map_err(|_| "it must be a whole number from 0 on")
}

/// No file that is written may be another one that is written or read; only the model may replace its input.
fn refuse_one_file_twice(arguments: &Arguments) -> Result<(), Failure> {
    let data = arguments.output.as_deref().map(|path| {
        let mut name = path.as_os_str().to_owned();
        name.push(".data");
        PathBuf::from(name)
    });
    let named = [
        ("IN", Some(arguments.input.as_path())),
        ("-o", arguments.output.as_deref()),
        ("the data file", data.as_deref()),
        ("--config", arguments.config.as_deref()),
        ("--log", arguments.log.as_deref()),
        ("--report", arguments.report.as_deref()),
        ("--save-config", arguments.save_config.as_deref()),
    ];
    let same = |a: &Path, b: &Path| {
        let whole = |p: &Path| p.canonicalize().or_else(|_| std::path::absolute(p)).ok();
        whole(a).is_some_and(|a| whole(b) == Some(a))
    };
    let given: Vec<(&str, &Path)> =
        named.into_iter().filter_map(|(what, path)| Some((what, path?))).collect();
    for (i, (first, a)) in given.iter().enumerate() {
        for (second, b) in &given[i + 1..] {
            let replaced =
                (*first, *second) == ("IN", "-o") || (*first, *second) == ("--config", "--save-config");
            if !replaced && same(a, b) {
                let text = format!(
                    "{first} and {second} are the same file, {}; give them different names",
                    b.display()
                );
                return Err(Failure::words(text));
            }
        }
    }
    for (what, path) in given.iter().filter(|(what, _)| matches!(*what, "--log" | "--save-config")) {
        if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("onnx")) {
            let text = format!("{what} {}: that is a model's name; choose another ending", path.display());
            return Err(Failure::words(text));
        }
    }
    Ok(())
}

pub fn run(arguments: &Arguments) -> Result<Answer, Failure> {
    refuse_one_file_twice(arguments)?;
    let registry = Registry::builtin();
    let config = configure(arguments, &registry)?;
    let form = arguments.report.as_deref().map(ReportForm::of).transpose()?;
    // Before any work: a name that cannot be is no reason to run passes first.
    arguments.output.as_deref().map(|path| Form::to_write(path, Form::Onnx)).transpose()?;
    let (state, problems) = open(&arguments.input)?;
    if arguments.dry_run {
        return dry_run(arguments, &registry, &config, &state);
    }
    // The parser has seen to it that there is one.
    let output = arguments.output.as_deref().ok_or_else(|| Failure::words("-o OUT is missing"))?;
    let cancel = AtomicBool::new(false);
    let mut options = Options { stop_at: None, cancel: &cancel, progress: &mut |_| {} };
    let run = Runner::from_state(state).run(&registry, &config, &mut options);
    let last = run.last_state();
    if let Some(fault) = check::check(&last.model).first() {
        return Err(Failure::model(&arguments.input, format!("the optimized graph is not sound: {fault}")));
    }
    let model = match arguments.provenance {
        true => provenance::written(&last, &run).map_err(|fault| {
            Failure::model(&arguments.input, format!("provenance cannot be written: {fault}"))
        })?,
        false => last.model.clone(),
    };
    // Small files are prepared first, so that what can fail has failed before the model is in its place.
    let log = arguments.log.as_deref().map(|path| prepare(path, &log_text(&run.log))).transpose()?;
    let recipe = arguments.save_config.as_deref();
    let recipe = recipe.map(|path| prepare(path, &config.to_toml())).transpose()?;
    let report = arguments.report.as_deref().zip(form).map(|(path, form)| {
        let name = arguments.input.display().to_string();
        let problems: Vec<String> = problems.iter().map(|problem| problem.text.clone()).collect();
        prepare(path, &form.text(&report::Report::of_run(&name, &run, &config, &problems)))
    });
    let report = report.transpose()?;
    let save = SaveOptions {
        data: arguments.data.placement(),
        unique_node_names: config.rounds > 0,
        source: Some(arguments.input.clone()),
    };
    let saved = formats::save(&model, output, &save)?;
    for prepared in [log, recipe, report].into_iter().flatten() {
        prepared.put_in_place()?;
    }
    let report_path = arguments.report.as_deref();
    let off = arguments.no_verify;
    let summary = Report::new(&arguments.input, &saved, report_path, &run, &problems, &registry, off);
    say_unmatched(&run.unmatched);
    match arguments.json {
        true => output::print_json(&summary),
        false => output::print(&human::text(&summary, &report::tables::passes(&run))),
    }
}

/// The configuration file, if any, and then what the command line says.
fn configure(arguments: &Arguments, registry: &Registry) -> Result<Config, Failure> {
    let mut config = match &arguments.config {
        Some(path) => Config::load(path, registry)?,
        None => Config::default(),
    };
    Config::check_names(registry, arguments.only.iter().chain(&arguments.without))?;
    if !arguments.only.is_empty() {
        config.set_only(&arguments.only);
    }
    arguments.without.iter().for_each(|name| config.set_pass(name, false));
    for key in &arguments.exclude {
        let refused = |error: String| Failure::words(format!("--exclude: {error}"));
        let key: SiteKey = key.parse().map_err(|error: NotAKey| refused(error.to_string()))?;
        Config::check_names(registry, [&key.pass.to_string()]).map_err(|error| refused(error.to_string()))?;
        config.exclude.insert(key);
    }
    for name in arguments.only.iter().filter(|name| arguments.without.contains(name)) {
        output::remark(&format!("--only and --without both name {name}: it does not run"));
    }
    config.rounds = arguments.rounds.unwrap_or(config.rounds);
    config.stop_at = arguments.stop_at.or(config.stop_at);
    config.aggressive |= arguments.aggressive;
    Ok(config)
}

/// A model that can be processed, with what is known of it, and what its reader found worth saying.
fn open(path: &Path) -> Result<(State, Vec<Problem>), Failure> {
    let imported = formats::open(path)?;
    refuse_incomplete(path, &imported)?;
    match check::check(&imported.model).first() {
        Some(fault) => Err(Failure::model(path, fault.to_string())),
        None => Ok((State::new(imported.model), imported.problems)),
    }
}

/// Exclusions that are listed in the line about them.
const UNMATCHED_SHOWN: usize = 4;

/// Exclusions that fit nothing are no error, but nobody writes one for that.
fn say_unmatched(unmatched: &[Unmatched]) {
    if unmatched.is_empty() {
        return;
    }
    let texts: Vec<&str> = unmatched.iter().take(UNMATCHED_SHOWN).map(|u| &*u.text).collect();
    let more = match unmatched.len() - texts.len() {
        0 => String::new(),
        n => format!("; {n} more"),
    };
    output::remark(&format!("exclusions without effect: {}{more}", texts.join("; ")));
}

/// Sites and near misses of one pass.
struct Listing {
    pass: &'static str,
    stage: crate::passes::Stage,
    sites: Vec<ListedSite>,
    blocked: Vec<Blocked>,
}

fn dry_run(
    arguments: &Arguments,
    registry: &Registry,
    config: &Config,
    state: &State,
) -> Result<Answer, Failure> {
    let cancel = AtomicBool::new(false);
    let mut listings = Vec::new();
    for pass in registry.plan(config).into_iter().filter(|pass| config.is_on(&**pass)) {
        let info = pass.info();
        let (sites, blocked) = Runner::preview(state, &*pass, &cancel)
            .map_err(|failure| Failure::model(&arguments.input, failure.message))?;
        listings.push(Listing { pass: info.name, stage: info.stage, sites, blocked });
    }
    let seen = Seen {
        passes: listings.iter().map(|listing| listing.pass).collect(),
        sites: listings.iter().flat_map(|listing| listing.sites.iter().map(|site| &site.key)).collect(),
        blocks: &state.blocks,
        reach: " in the model as it is; other rewrites may open it up",
    };
    let unmatched = unmatched(config, &seen);
    let recipe = arguments.save_config.as_deref();
    if let Some(path) = recipe {
        prepare(path, &config.to_toml())?.put_in_place()?;
    }
    say_unmatched(&unmatched);
    let report = DryRun::new(&arguments.input, state, &listings, config, unmatched, recipe);
    match arguments.json {
        true => output::print_json(&report),
        false => output::print(&human::dry_run(&report)),
    }
}

/// How a report is written, by the end of its file's name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReportForm {
    Html,
    Markdown,
    Json,
}

impl ReportForm {
    fn of(path: &Path) -> Result<ReportForm, Failure> {
        match path.extension().and_then(|end| end.to_str()) {
            Some("html" | "htm") => Ok(ReportForm::Html),
            Some("md") => Ok(ReportForm::Markdown),
            Some("json") => Ok(ReportForm::Json),
            _ => {
                let file = path.display();
                Err(Failure::words(format!("--report {file}: the name must end in .html, .md or .json")))
            }
        }
    }

    fn text(self, report: &report::Report) -> String {
        match self {
            ReportForm::Html => report.to_html(),
            ReportForm::Markdown => report.to_markdown(),
            ReportForm::Json => format!("{:#}\n", report.to_json()),
        }
    }
}

fn log_text(events: &[Event]) -> String {
    let lines = events.iter().filter_map(|event| serde_json::to_string(event).ok());
    lines.map(|line| line + "\n").collect()
}

/// A text file that is written, but does not have its name yet.
struct Prepared {
    file: NewFile,
    path: PathBuf,
}

fn prepare(path: &Path, text: &str) -> Result<Prepared, Failure> {
    let written = NewFile::beside(path).and_then(|mut file| file.write_all(text.as_bytes()).map(|()| file));
    let file = written.map_err(|error| Failure::write(path, error))?;
    Ok(Prepared { file, path: path.to_owned() })
}

impl Prepared {
    fn put_in_place(self) -> Result<(), Failure> {
        let Prepared { file, path } = self;
        file.put_in_place().map_err(|error| Failure::write(&path, error))
    }
}
