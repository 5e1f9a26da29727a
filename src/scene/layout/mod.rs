//! Layered layout of one level of a graph, top to bottom: boxes with sizes and edges in, places and routed lines out.
//! Pure geometry on flat arrays; knows nothing of models or windows. One open block is one request.

mod adjacency;
mod arrange;
mod components;
mod fold;
mod levels;
mod order;
mod place;
mod rank;
mod route;
mod simplex;
mod topology;

#[cfg(test)]
mod tests;

use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is to be laid out. Box indices are the tie-breaker everywhere, so they should follow graph order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    pub boxes: Vec<BoxSpec>,
    pub edges: Vec<EdgeSpec>,
    pub spacing: Spacing,
    pub limits: Limits,
}

/// One box of a level.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BoxSpec {
    /// Points.
    pub width: f32,
    /// Points.
    pub height: f32,
    /// Where its centre was before (points); boxes that have one keep their left-to-right order.
    pub previous: Option<f32>,
    pub pin: Pin,
}

/// Whether a box is a port on the border of the level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pin {
    /// An ordinary box, ranked by its edges.
    #[default]
    Free,
    /// Stands above everything else.
    Top,
    /// Stands below everything else.
    Bottom,
}

/// One value going from a box to a box.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EdgeSpec {
    pub from: u32,
    pub to: u32,
    /// Names the value: edges of one value share a trunk, and its readers are counted.
    pub value: u32,
    /// Where the line leaves, right of the centre of `from` (points); the centre when not given.
    pub from_x: Option<f32>,
    /// Where the line arrives, right of the centre of `to` (points); near the centre when not given.
    pub to_x: Option<f32>,
    /// Not a line whatever the limits say: it only keeps `to` below `from`, and is no stub either.
    pub unseen: bool,
}

/// Distances in points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spacing {
    /// Between two boxes of a row.
    pub boxes: f32,
    /// Between a line and a line or box beside it.
    pub lines: f32,
    /// Between two rows, at least.
    pub rows: f32,
}

impl Default for Spacing {
    fn default() -> Self {
        Self { boxes: 24.0, lines: 14.0, rows: 34.0 }
    }
}

/// What is too much to be drawn as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A value read by more boxes than this is not routed.
    pub readers: u32,
    /// The inputs of a box that more boxes than this feed are not routed.
    pub inputs: u32,
    /// An edge over more ranks than this is not routed.
    pub span: u32,
    /// A rank of more boxes than this is folded into rows of a grid.
    pub row: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { readers: 8, inputs: 32, span: 30, row: 12 }
    }
}

/// Places and lines, origin at the top left, y downward, points.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    pub width: f32,
    pub height: f32,
    /// Top left corner of each box of the request.
    pub places: Vec<[f32; 2]>,
    /// Row of each box, 0 at the top.
    pub rows: Vec<u32>,
    pub routes: Vec<Route>,
    /// Edges (indices into the request) that are too long or too many to be lines: the caller shows them as tags.
    pub stubs: Vec<u32>,
}

/// One routed line; parallel edges are one line.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// The edges it stands for (indices into the request); their number is the line's count.
    pub edges: SmallVec<[u32; 1]>,
    /// From the producer to the reader; y never decreases, or never increases when `upward`.
    pub points: Vec<[f32; 2]>,
    /// The edge closes a cycle between boxes and runs against the flow.
    pub upward: bool,
}

/// Why there is no layout.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    #[error("the layout was cancelled")]
    Cancelled,
    #[error("edge {edge} of the layout request names box {index}, but there are {boxes} boxes")]
    NoSuchBox { edge: usize, index: u32, boxes: usize },
}

/// Lays out one level. Deterministic; every loop over the graph is iterative and looks at `cancel`.
///
/// Edges from a box to itself are neither routed nor returned as stubs.
pub fn layout(request: &Request, cancel: &AtomicBool) -> Result<Layout, LayoutError> {
    for (edge, e) in request.edges.iter().enumerate() {
        for index in [e.from, e.to] {
            if index as usize >= request.boxes.len() {
                return Err(LayoutError::NoSuchBox { edge, index, boxes: request.boxes.len() });
            }
        }
    }
    let topology = topology::Topology::new(request);
    check(cancel)?;
    let rank = rank::assign(request, &topology, cancel)?;
    let drawn = topology::drawn_edges(request, &topology, &rank);
    let parts = components::split(request, &topology, &rank, &drawn);
    let mut arranged = Vec::with_capacity(parts.parts.len());
    for part in &parts.parts {
        arranged.push(arrange::arrange(request, &topology, &rank, part, &parts.local, cancel)?);
    }
    Ok(components::assemble(request, parts, arranged))
}

/// Stops the work when the caller no longer wants it.
fn check(cancel: &AtomicBool) -> Result<(), LayoutError> {
    if cancel.load(Ordering::Relaxed) { Err(LayoutError::Cancelled) } else { Ok(()) }
}
