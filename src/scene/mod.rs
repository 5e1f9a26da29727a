//! From a model and its blocks to a picture: what is open, where everything goes.

mod compose;
mod describe;
pub mod family;
pub mod font;
pub mod layout;
pub mod measure;
mod overlay;
mod paint;
pub mod palette;
pub mod picture;
mod source;
pub mod svg;
pub mod system_fonts;
mod visible;
mod wires;

#[cfg(test)]
mod tests;

pub use layout::LayoutError;
pub use overlay::Overlay;
pub use picture::{BoxKind, Family, Far, Item, Line, Mark, Picture, PictureBox, Place, Point, Rect, Tag};

use crate::blocks::BlockTree;
use crate::facts::Facts;
use crate::ir::{Graph, GraphId, Model};
use source::{Members, Source};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A value with more visible readers than this is a tag at each of them.
const MOST_READERS: usize = 8;
/// Where more values than this cross the border of an open block, inputs and outputs of the graph are not drawn to it.
const MOST_CROSSINGS: usize = 12;

/// What a picture is of.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub model: &'a Model,
    pub facts: &'a Facts,
    pub blocks: &'a BlockTree,
    /// The graph on display; mostly the main graph.
    pub graph: GraphId,
    /// Blocks and nodes that are open; entries that are not (or no longer) to be seen do no harm.
    pub open: &'a BTreeSet<Place>,
    pub overlay: &'a Overlay,
    /// For a merged picture: the model before the change, of the same session. What is only in it is shown as removed.
    pub before: Option<&'a Model>,
}

/// Makes pictures of one document, one after the other; keeps what stays the same where it was.
#[derive(Debug, Default)]
pub struct Scene {
    cache: compose::Cache,
    members: BTreeMap<GraphId, CachedMembers>,
}

#[derive(Debug)]
struct CachedMembers {
    graphs: (Option<Arc<Graph>>, Option<Arc<Graph>>),
    /// Number of nodes that rewrites put into blocks: it grows when the tree changes.
    created: usize,
    members: Arc<Members>,
}

impl Scene {
    pub fn new() -> Scene {
        Scene::default()
    }

    /// The picture of a view. Levels that are as they were in an earlier picture keep their layout; in those that
    /// are not, boxes that stay keep their order. Fails only when cancelled.
    pub fn picture(&mut self, view: &View, cancel: &AtomicBool) -> Result<Picture, LayoutError> {
        let source = Source { after: view.model, before: view.before };
        let created = view.blocks.created().count();
        let cached = &mut self.members;
        let mut members_of = |graph: GraphId| members(cached, &source, view.blocks, created, graph);
        let scenery = visible::collect(source, view.blocks, view.graph, view.open, &mut members_of);
        let wires = wires::collect(&source, &scenery);
        let mut far = wires::widely_read(&wires.wires, MOST_READERS);
        wires::crowded(&scenery, &wires.wires, MOST_CROSSINGS, &mut far);
        // A line that turns out too long becomes a tag, for which its reader needs room: laid out again, ranks and so
        // the set of long lines stay the same, so the second or third round finds none.
        let known = paint::Known { source, facts: view.facts, blocks: view.blocks, overlay: view.overlay };
        let mut rounds = 0;
        loop {
            rounds += 1;
            let words = paint::words(&known, &scenery, &wires, &far);
            let composed = compose::compose(&scenery, &wires.wires, &far, &words.1, &mut self.cache, cancel)?;
            if composed.too_long.is_empty() || rounds == 4 {
                return Ok(paint::picture(&known, &scenery, &wires, &far, words, composed));
            }
            for &wire in &composed.too_long {
                far[wire as usize] = true;
            }
        }
    }
}

fn members(
    cached: &mut BTreeMap<GraphId, CachedMembers>,
    source: &Source,
    blocks: &BlockTree,
    created: usize,
    graph: GraphId,
) -> Arc<Members> {
    let graphs = (source.after.get_graph(graph), source.before.and_then(|b| b.get_graph(graph)));
    let same = |a: &Option<Arc<Graph>>, b: Option<&Arc<Graph>>| match (a, b) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b),
        (None, None) => true,
        _ => false,
    };
    if let Some(known) = cached.get(&graph)
        && known.created == created
        && same(&known.graphs.0, graphs.0)
        && same(&known.graphs.1, graphs.1)
    {
        return known.members.clone();
    }
    let members = Arc::new(Members::new(source, blocks, graph));
    let graphs = (graphs.0.cloned(), graphs.1.cloned());
    cached.insert(graph, CachedMembers { graphs, created, members: members.clone() });
    members
}

/// How far the camera must move with the content so that a box's title stays where it is on the screen after it was
/// opened or closed; `None` when one of the pictures does not have it.
pub fn shift_of(before: &Picture, after: &Picture, place: &Place) -> Option<Point> {
    let (old, new) = (before.find(place)?, after.find(place)?);
    let title = |b: &PictureBox| Point { x: b.rect.min.x, y: b.rect.min.y };
    let (old, new) = (title(before.boxes.get(old as usize)?), title(after.boxes.get(new as usize)?));
    Some(Point { x: new.x - old.x, y: new.y - old.y })
}
