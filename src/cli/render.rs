//! `render`: the picture that the window would show, as SVG or PNG.

use super::failure::Failure;
use super::{Answer, output};
use crate::blocks::BlockTree;
use crate::diff::{Diff, Mark};
use crate::formats;
use crate::ir::Model;
use crate::pipeline::State;
use crate::pipeline::config::nearest;
use crate::scene::svg::{self, Style};
use crate::scene::{BoxKind, Item, Overlay, Picture, PictureBox, Place, Scene, View};
use crate::session::comparison::{self, Comparison};
use crate::session::{changes, names};
use clap::Args;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// Draw a model to an SVG or PNG file, without a window
#[derive(Debug, Args)]
pub struct Arguments {
    /// Model to draw
    model: PathBuf,
    /// Picture to write; its ending says which kind, .svg or .png
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Draw this second model into the same picture, with what it adds, removes, changes and rewires marked
    #[arg(long, value_name = "MODEL")]
    diff: Option<PathBuf>,
    /// Open this block (its path, as inspect prints it) or node with bodies; can be given several times
    #[arg(long, value_name = "BLOCK")]
    open: Vec<String>,
    /// Open everything
    #[arg(long)]
    all: bool,
    /// Fit the picture into this many pixels; without it one point is one pixel
    #[arg(long, value_name = "WxH", value_parser = size)]
    size: Option<(u32, u32)>,
    /// Light on dark
    #[arg(long)]
    dark: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The JSON document of `render`.
#[derive(Debug, Serialize)]
pub struct Report {
    pub file: String,
    /// Size of the content, points.
    pub width: f32,
    pub height: f32,
    pub boxes: usize,
    pub lines: usize,
    /// Values that are tags at their readers and not lines.
    pub far_values: usize,
    /// With `--diff`: how many nodes of each mark there are, in blocks that are closed too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<Counts>,
}

/// Numbers of nodes by mark.
#[derive(Debug, Serialize)]
pub struct Counts {
    pub added: usize,
    pub removed: usize,
    pub changed: usize,
    pub rewired: usize,
}

impl Counts {
    fn of(diff: &Diff) -> Counts {
        let [added, removed, changed, rewired] =
            [Mark::Added, Mark::Removed, Mark::Changed, Mark::Rewired].map(|mark| diff.count(mark));
        Counts { added, removed, changed, rewired }
    }
}

/// A picture has no more boxes than this: nobody can look at more, and the file would be hundreds of megabytes.
const MOST_BOXES: usize = 250_000;

fn size(text: &str) -> Result<(u32, u32), String> {
    let sides = text.split_once(['x', 'X', '×']).and_then(|(w, h)| Some((w.parse().ok()?, h.parse().ok()?)));
    match sides {
        Some((w @ 1..=16_000, h @ 1..=16_000)) => Ok((w, h)),
        _ => Err("a size is two numbers of 1 to 16000, such as 1600x1000".into()),
    }
}

pub fn run(arguments: &Arguments) -> Result<Answer, Failure> {
    let ending = arguments.output.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase);
    let vector = match ending.as_deref() {
        Some("svg") => true,
        Some("png") => false,
        _ => {
            let file = arguments.output.display();
            return Err(Failure::words(format!("'{file}' must end with .svg or .png")));
        }
    };
    let drawn = Drawn::open(arguments)?;
    let mut open = drawn.first_look();
    for name in &arguments.open {
        let (state, place) = drawn.named(name).map_err(Failure::words)?;
        open.extend(names::enclosing(&state.model, &state.blocks, &place));
        open.insert(place);
    }
    let picture =
        drawn.picture(open, arguments.all).map_err(|what| Failure::model(&arguments.model, what))?;
    let style = Style { dark: arguments.dark, size: arguments.size };
    let bytes = match vector {
        true => svg::svg(&picture, &style).into_bytes(),
        false => {
            svg::png(&picture, &style).map_err(|error| Failure::model(&arguments.model, error.to_string()))?
        }
    };
    formats::file::replace(&arguments.output, &bytes)
        .map_err(|error| Failure::write(&arguments.output, error))?;
    let report = Report {
        file: arguments.output.display().to_string(),
        width: picture.bounds.width(),
        height: picture.bounds.height(),
        boxes: picture.boxes.len(),
        lines: picture.lines.len(),
        far_values: picture.far.len(),
        diff: drawn.before.as_ref().map(|(_, diff)| Counts::of(diff)),
    };
    match arguments.json {
        true => output::print_json(&report),
        false => {
            let marked = report.diff.as_ref().map_or_else(String::new, |n| {
                let Counts { added, removed, changed, rewired } = n;
                format!("; {added} added, {removed} removed, {changed} changed, {rewired} rewired")
            });
            output::print(&format!(
                "{}: {} boxes, {}, {:.0} × {:.0} points{marked}\n",
                report.file,
                report.boxes,
                output::counted(report.lines, "line"),
                report.width,
                report.height
            ))
        }
    }
}

/// What is drawn: a model, or a second one together with the first.
struct Drawn {
    state: State,
    /// The first model and in what the second differs.
    before: Option<(State, Diff)>,
}

impl Drawn {
    fn open(arguments: &Arguments) -> Result<Drawn, Failure> {
        let state = State::new(formats::open(&arguments.model)?.model);
        let Some(other) = &arguments.diff else { return Ok(Drawn { state, before: None }) };
        let (second, diff) = Comparison::beside(&state, &formats::open(other)?.model);
        Ok(Drawn { state: second, before: Some((state, diff)) })
    }

    fn first_look(&self) -> BTreeSet<Place> {
        match &self.before {
            Some((before, _)) => comparison::first_look(before, &self.state),
            None => names::first_look(&self.state.model, &self.state.blocks),
        }
    }

    /// A block or node by name, with the model that has it.
    fn named(&self, name: &str) -> Result<(&State, Place), String> {
        let found = named(&self.state.model, &self.state.blocks, name).map(|place| (&self.state, place));
        match (&self.before, found) {
            (Some((before, _)), Err(unknown)) => {
                let place = named(&before.model, &before.blocks, name).map_err(|_| unknown)?;
                Ok((before, place))
            }
            (_, found) => found,
        }
    }

    /// The picture; with `all`, what is closed in it is opened until nothing is.
    fn picture(&self, mut open: BTreeSet<Place>, all: bool) -> Result<Picture, String> {
        let State { model, facts, blocks, .. } = &self.state;
        let marks = self.before.as_ref().map(|(_, diff)| changes::marks(diff)).unwrap_or_default();
        let overlay = Overlay { marks, ..Overlay::default() };
        let before = self.before.as_ref().map(|(before, _)| &before.model);
        let mut scene = Scene::new();
        loop {
            let view =
                View { model, facts, blocks, graph: model.main(), open: &open, overlay: &overlay, before };
            let picture = scene.picture(&view, &AtomicBool::new(false)).map_err(|error| error.to_string())?;
            if picture.boxes.len() > MOST_BOXES {
                return Err(format!(
                    "a picture of more than {MOST_BOXES} boxes is not drawn; open less of it"
                ));
            }
            let closed =
                |b: &&PictureBox| all && matches!(b.kind, BoxKind::ClosedBlock | BoxKind::ClosedNode);
            let found: Vec<Place> = picture.boxes.iter().filter(closed).map(|b| b.place.clone()).collect();
            if found.is_empty() {
                return Ok(picture);
            }
            open.extend(found);
        }
    }
}

/// The block of a path, in the main graph first; else the node of that name.
fn named(model: &Model, blocks: &BlockTree, name: &str) -> Result<Place, String> {
    let graphs = model.live_graphs();
    let place = |graph, item| Place { calls: names::calls_to(model, graph), item };
    if let Some((graph, block)) = graphs.iter().find_map(|g| Some((*g, blocks.find(*g, name)?))) {
        return Ok(place(graph, Item::Block(block)));
    }
    if let Some((graph, node)) = graphs.iter().find_map(|g| Some((*g, names::node(model, *g, name).ok()?))) {
        return Ok(place(graph, Item::Node(node)));
    }
    let hint = nearest(name, blocks.iter().map(|(id, _)| blocks.path(id)).filter(|path| !path.is_empty()));
    Err(format!("there is no block or node '{name}'{hint}"))
}
