//! The first job of the window where no window can be opened: a model is opened, passes run over it, what they did is
//! printed, and pictures and a report are written to a folder.

use super::failure::{Failure, refuse_incomplete};
use super::{Answer, output};
use crate::diff;
use crate::formats;
use crate::pipeline::{Config, Options, Registry, Runner, State};
use crate::report::{Figure, Report, tables};
use crate::samples;
use crate::scene::svg::{self, Style};
use crate::scene::{Overlay, Scene, View};
use crate::session::{changes, names};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// Where pictures and report go, below the current folder.
const FOLDER: &str = "passlens-out";

/// Does it for a model file, or for the first sample. `why` there is no window is said once the model is open: should it
/// not open, that is what there is to say.
pub fn run(model: Option<&Path>, why: &str) -> Result<Answer, Failure> {
    let (name, state, problems) = open(model)?;
    output::complain(&format!("{why}; doing the same on the terminal"));
    let registry = Registry::builtin();
    let config = Config::default();
    let cancel = AtomicBool::new(false);
    let mut options = Options { stop_at: None, cancel: &cancel, progress: &mut |_| {} };
    let run = Runner::from_state(state).run(&registry, &config, &mut options);
    let last = run.last_state();
    let rows = changes::rows(&run);
    let marks = changes::marks(&diff::by_id(&run.initial.model, &last.model));
    let open = names::first_look(&run.initial.model, &run.initial.blocks);
    let picture = |state: &State, overlay: &Overlay, before: Option<&State>| {
        let view = View {
            model: &state.model,
            facts: &state.facts,
            blocks: &state.blocks,
            graph: state.model.main(),
            open: &open,
            overlay,
            before: before.map(|b| &b.model),
        };
        Scene::new()
            .picture(&view, &cancel)
            .map_err(|e| Failure::words(format!("the picture was not made: {e}")))
    };
    let plain = Overlay::default();
    let marked = Overlay { marks, badges: changes::badges(&last, &rows, None), ..Overlay::default() };
    let before = picture(&run.initial, &plain, None)?;
    let difference = picture(&last, &marked, Some(&run.initial))?;

    let folder = PathBuf::from(FOLDER);
    fs::create_dir_all(&folder).map_err(|e| Failure::write(&folder, e))?;
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        fs::write(&path, bytes).map_err(|e| Failure::write(&path, e))
    };
    let style = Style::default();
    let mut report = Report::of_run(&name, &run, &config, &problems);
    for (file, title, picture) in [("before", "Before", &before), ("difference", "What changed", &difference)]
    {
        let text = svg::svg(picture, &style);
        write(&format!("{file}.svg"), text.as_bytes())?;
        let png = svg::png(picture, &style).map_err(|e| Failure::words(format!("{file}.png: {e}")))?;
        write(&format!("{file}.png"), &png)?;
        report.figures.push(Figure { title: title.into(), svg: text });
    }
    write("report.html", report.to_html().as_bytes())?;
    write("report.md", report.to_markdown().as_bytes())?;

    let mut text = format!("{name}\n\n{}\n", tables::passes(&run).to_text(2));
    for (name, value) in &report.summary {
        text.push_str(&format!("{name}: {value}\n"));
    }
    text.push_str(&format!("Pictures and report: {}\n", folder.join("report.html").display()));
    output::print(&text)
}

fn open(model: Option<&Path>) -> Result<(String, State, Vec<String>), Failure> {
    match model {
        Some(path) => {
            let imported = formats::open(path)?;
            refuse_incomplete(path, &imported)?;
            let problems = imported.problems.iter().map(|p| p.text.clone()).collect();
            Ok((path.display().to_string(), State::new(imported.model), problems))
        }
        None => {
            let sample = samples::all().first().ok_or_else(|| Failure::words("there is no sample"))?;
            Ok((format!("{} (a built-in sample)", sample.title), State::new((sample.build)()), Vec::new()))
        }
    }
}
