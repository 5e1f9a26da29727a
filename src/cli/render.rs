//! `render`: the picture that the window would show, as SVG or PNG.

use super::failure::Failure;
use super::{Answer, output};
use crate::blocks::{self, BlockTree};
use crate::facts::Facts;
use crate::formats;
use crate::ir::Model;
use crate::pipeline::config::nearest;
use crate::scene::svg::{self, Style};
use crate::scene::{BoxKind, Item, Overlay, Picture, PictureBox, Place, Scene, View};
use crate::session::names;
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
    let model = formats::open(&arguments.model)?.model;
    let facts = Facts::infer(&model);
    let blocks = blocks::build(&model, &facts);
    let mut open = names::first_look(&model, &blocks);
    for name in &arguments.open {
        let place = named(&model, &blocks, name).map_err(Failure::words)?;
        open.extend(names::enclosing(&model, &blocks, &place));
        open.insert(place);
    }
    let document = Document { model, facts, blocks };
    let picture =
        draw(&document, open, arguments.all).map_err(|what| Failure::model(&arguments.model, what))?;
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
    };
    match arguments.json {
        true => output::print_json(&report),
        false => output::print(&format!(
            "{}: {} boxes, {}, {:.0} × {:.0} points\n",
            report.file,
            report.boxes,
            output::counted(report.lines, "line"),
            report.width,
            report.height
        )),
    }
}

struct Document {
    model: Model,
    facts: Facts,
    blocks: BlockTree,
}

/// The picture; with `all`, what is closed in it is opened until nothing is.
fn draw(document: &Document, mut open: BTreeSet<Place>, all: bool) -> Result<Picture, String> {
    let Document { model, facts, blocks } = document;
    let overlay = Overlay::default();
    let mut scene = Scene::new();
    loop {
        let graph = model.main();
        let view = View { model, facts, blocks, graph, open: &open, overlay: &overlay, before: None };
        let picture = scene.picture(&view, &AtomicBool::new(false)).map_err(|error| error.to_string())?;
        if picture.boxes.len() > MOST_BOXES {
            return Err(format!("a picture of more than {MOST_BOXES} boxes is not drawn; open less of it"));
        }
        let closed = |b: &&PictureBox| all && matches!(b.kind, BoxKind::ClosedBlock | BoxKind::ClosedNode);
        let found: Vec<Place> = picture.boxes.iter().filter(closed).map(|b| b.place.clone()).collect();
        if found.is_empty() {
            return Ok(picture);
        }
        open.extend(found);
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
