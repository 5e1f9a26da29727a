//! From boxes and wires to places: every open block is laid out for itself, from the innermost outward, and lines are
//! put together from their pieces. A value that crosses a block's border does so at a port of its own.

use super::layout::{self, BoxSpec, EdgeSpec, Layout, LayoutError, Pin, Request, Spacing};
use super::measure::{BAR_HEIGHT, CONTAINER_PAD, Measured};
use super::picture::{Place, Point};
use super::visible::Scenery;
use super::wires::Wire;
use crate::ir::ValueId;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

/// Width that a port takes on a border.
const PORT_WIDTH: f32 = 8.0;

/// What a box of a level stands for, from one picture to the next.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Key {
    Box(Place),
    Enters(ValueId),
    Leaves(ValueId),
}

#[derive(Debug)]
struct Kept {
    keys: Vec<Key>,
    /// Without previous places.
    request: Request,
    layout: Layout,
}

/// Layouts of levels from earlier pictures, by container (`None` is the outermost level).
#[derive(Debug, Default)]
pub(super) struct Cache {
    levels: BTreeMap<Option<Place>, Kept>,
}

/// Levels beyond this number that are no longer open are forgotten.
const MOST_LEVELS: usize = 4096;

/// Pieces of one line, from its producer to its reader: (level, edge of it) or (level, route of it).
type Pieces = SmallVec<[(u32, u32); 2]>;

/// One end of an edge of a level.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum End {
    Box(u32),
    Enters(ValueId),
    Leaves(ValueId),
}

/// An open block, or the outermost level.
#[derive(Default)]
struct Level {
    edges: Vec<(End, End, ValueId, bool)>,
    edge_index: FxHashMap<(End, End, ValueId, bool), u32>,
    enters: Vec<ValueId>,
    leaves: Vec<ValueId>,
    /// By edge: the route that it is part of.
    route_of: Vec<Option<u32>>,
    layout: Layout,
    /// Where ports are, right of the container's centre.
    port_x: FxHashMap<End, f32>,
    /// Where the level's own origin lies in its container.
    offset: Point,
}

/// Where a line begins or ends: the wires that it stands for and its points.
pub(super) struct Path {
    /// Indices of wires.
    pub(super) wires: Vec<u32>,
    pub(super) points: Vec<Point>,
}

/// Places of everything.
pub(super) struct Composed {
    /// Top left corner and size of each box.
    pub(super) places: Vec<(Point, [f32; 2])>,
    pub(super) paths: Vec<Path>,
    /// Wires that turned out too long to be lines.
    pub(super) too_long: Vec<u32>,
}

/// Gives places to all boxes. `far[w]` keeps a wire from being a line. `sizes` are those of closed boxes; of an open
/// one the width is that of its title bar.
pub(super) fn compose(
    scenery: &Scenery,
    wires: &[Wire],
    far: &[bool],
    sizes: &[Measured],
    cache: &mut Cache,
    cancel: &AtomicBool,
) -> Result<Composed, LayoutError> {
    let count = scenery.boxes.len();
    // Levels by container; the last one is the outermost.
    let mut levels: Vec<Level> = (0..=count).map(|_| Level::default()).collect();
    let pieces: Vec<Pieces> =
        wires.iter().zip(far).map(|(wire, far)| split(scenery, wire, !far, &mut levels)).collect();

    let mut size: Vec<[f32; 2]> = sizes.iter().map(|m| [m.width, m.height]).collect();
    let mut used = Vec::new();
    for at in (0..=count).rev() {
        // Containers come before their members, so inner levels are done first; the outermost is the last of all.
        let container = if at == 0 { None } else { Some(at - 1) };
        if container.is_some_and(|c| !scenery.boxes[c].is_container()) {
            continue;
        }
        let slot = container.unwrap_or(count);
        let mut level = std::mem::take(&mut levels[slot]);
        let place = container.map(|c| scenery.boxes[c].place.clone());
        let members = container.map_or(&scenery.top, |c| &scenery.boxes[c].children);
        lay_out(scenery, &mut level, &place, members, &size, &levels, cache, cancel)?;
        used.push(place);
        if let Some(c) = container {
            let bar = sizes[c].width;
            let inner = level.layout.width + 2.0 * CONTAINER_PAD;
            let width = inner.max(bar).max(80.0);
            let top = if level.enters.is_empty() { CONTAINER_PAD - 2.0 } else { 0.0 };
            let bottom = if level.leaves.is_empty() { CONTAINER_PAD } else { 0.0 };
            level.offset = Point { x: (width - level.layout.width) / 2.0, y: BAR_HEIGHT + top };
            let height = BAR_HEIGHT + top + level.layout.height + bottom;
            size[c] = [width, height.max(BAR_HEIGHT + 2.0 * CONTAINER_PAD)];
            ports(&mut level, members.len(), width);
        }
        levels[slot] = level;
    }
    cache.forget(&used);

    let mut corner = vec![Point::default(); count];
    let mut origin = vec![Point::default(); count + 1];
    for at in 0..count {
        let parent = scenery.boxes[at].parent.map_or(count, |p| p as usize);
        if parent < count {
            let offset = levels[parent].offset;
            origin[parent] = Point { x: corner[parent].x + offset.x, y: corner[parent].y + offset.y };
        }
        let siblings = if parent < count { &scenery.boxes[parent].children } else { &scenery.top };
        // Members are numbered upward, so the place in the list can be searched.
        let index = siblings.binary_search(&(at as u32)).unwrap_or(0);
        let [x, y] = levels[parent].layout.places.get(index).copied().unwrap_or_default();
        corner[at] = Point { x: origin[parent].x + x, y: origin[parent].y + y };
    }
    let (paths, too_long) = join(&levels, &origin, wires, far, &pieces);
    let places = corner.into_iter().zip(size).collect();
    Ok(Composed { places, paths, too_long })
}

/// The pieces of a wire, from its producer to its reader: (level, edge). A wire that is no line has one, for the order.
fn split(scenery: &Scenery, wire: &Wire, line: bool, levels: &mut [Level]) -> Pieces {
    let outermost = scenery.boxes.len() as u32;
    let parent = |b: u32| scenery.boxes[b as usize].parent;
    let depth = |b: u32| scenery.boxes[b as usize].depth;
    let (mut from, mut to) = (wire.from, wire.to);
    let mut pieces: Pieces = SmallVec::new();
    let mut into: Pieces = SmallVec::new();
    let mut at_from = End::Box(from);
    let mut at_to = End::Box(to);
    loop {
        let (up, down) = (parent(from), parent(to));
        if up == down {
            break;
        }
        if depth(from) >= depth(to) {
            let Some(container) = up else { return pieces };
            if line {
                let edge =
                    levels[container as usize].edge(at_from, End::Leaves(wire.value), wire.value, true);
                pieces.push((container, edge));
            }
            from = container;
            at_from = End::Box(from);
        } else {
            let Some(container) = down else { return pieces };
            if line {
                let edge = levels[container as usize].edge(End::Enters(wire.value), at_to, wire.value, true);
                into.push((container, edge));
            }
            to = container;
            at_to = End::Box(to);
        }
    }
    if from != to {
        let level = parent(from).unwrap_or(outermost);
        pieces.push((level, levels[level as usize].edge(at_from, at_to, wire.value, line)));
    }
    pieces.extend(into.into_iter().rev());
    pieces
}

impl Level {
    fn edge(&mut self, from: End, to: End, value: ValueId, line: bool) -> u32 {
        if let Some(&known) = self.edge_index.get(&(from, to, value, line)) {
            return known;
        }
        if from == End::Enters(value) && !self.enters.contains(&value) {
            self.enters.push(value);
        }
        if to == End::Leaves(value) && !self.leaves.contains(&value) {
            self.leaves.push(value);
        }
        let index = self.edges.len() as u32;
        self.edges.push((from, to, value, line));
        self.edge_index.insert((from, to, value, line), index);
        index
    }
}

/// Lays out one level, or takes the layout from before when nothing is different.
#[allow(clippy::too_many_arguments)] // all of it is the state of one walk
fn lay_out(
    scenery: &Scenery,
    level: &mut Level,
    place: &Option<Place>,
    members: &[u32],
    size: &[[f32; 2]],
    levels: &[Level],
    cache: &mut Cache,
    cancel: &AtomicBool,
) -> Result<(), LayoutError> {
    let mut request = Request { spacing: Spacing::default(), ..Request::default() };
    let mut keys = Vec::with_capacity(members.len());
    let mut index: FxHashMap<End, u32> = FxHashMap::default();
    for &m in members {
        let [width, height] = size[m as usize];
        index.insert(End::Box(m), request.boxes.len() as u32);
        request.boxes.push(BoxSpec { width, height, ..BoxSpec::default() });
        keys.push(Key::Box(scenery.boxes[m as usize].place.clone()));
    }
    let ports = level.enters.iter().map(|v| (End::Enters(*v), Key::Enters(*v), Pin::Top));
    let ports = ports.chain(level.leaves.iter().map(|v| (End::Leaves(*v), Key::Leaves(*v), Pin::Bottom)));
    for (end, key, pin) in ports {
        index.insert(end, request.boxes.len() as u32);
        request.boxes.push(BoxSpec { width: PORT_WIDTH, pin, ..BoxSpec::default() });
        keys.push(key);
    }
    let port_of = |end: End, port: End| match end {
        End::Box(b) => levels[b as usize].port_x.get(&port).copied(),
        _ => Some(0.0),
    };
    for &(from, to, value, line) in &level.edges {
        request.edges.push(EdgeSpec {
            from: index[&from],
            to: index[&to],
            value: value.0,
            from_x: if line { port_of(from, End::Leaves(value)) } else { None },
            to_x: if line { port_of(to, End::Enters(value)) } else { None },
            unseen: !line,
        });
    }
    level.layout = match cache.levels.get_mut(place) {
        Some(kept) if kept.request == request => {
            kept.keys = keys;
            kept.layout.clone()
        }
        kept => {
            let mut guided = request.clone();
            if let Some(kept) = kept {
                let old: BTreeMap<&Key, f32> = kept
                    .keys
                    .iter()
                    .enumerate()
                    .map(|(k, key)| (key, kept.layout.places[k][0] + kept.request.boxes[k].width / 2.0))
                    .collect();
                for (spec, key) in guided.boxes.iter_mut().zip(&keys) {
                    spec.previous = old.get(key).copied();
                }
            }
            let layout = layout::layout(&guided, cancel)?;
            cache.levels.insert(place.clone(), Kept { keys, request, layout: layout.clone() });
            layout
        }
    };
    level.route_of = vec![None; level.edges.len()];
    for (r, route) in level.layout.routes.iter().enumerate() {
        for &edge in &route.edges {
            level.route_of[edge as usize] = Some(r as u32);
        }
    }
    Ok(())
}

/// Where the ports of a laid out level lie on its container's border.
fn ports(level: &mut Level, members: usize, width: f32) {
    let ends =
        level.enters.iter().map(|v| End::Enters(*v)).chain(level.leaves.iter().map(|v| End::Leaves(*v)));
    level.port_x = ends
        .enumerate()
        .map(|(k, end)| {
            let x = level.layout.places[members + k][0] + PORT_WIDTH / 2.0;
            (end, x + level.offset.x - width / 2.0)
        })
        .collect();
}

impl Cache {
    fn forget(&mut self, used: &[Option<Place>]) {
        if self.levels.len() > MOST_LEVELS {
            let used: std::collections::BTreeSet<&Option<Place>> = used.iter().collect();
            self.levels.retain(|place, _| used.contains(place));
        }
    }
}

/// Puts the pieces of each wire together; wires along the same pieces are one line.
fn join(
    levels: &[Level],
    origin: &[Point],
    wires: &[Wire],
    far: &[bool],
    pieces: &[Pieces],
) -> (Vec<Path>, Vec<u32>) {
    let mut too_long = Vec::new();
    // Pieces as (level, route), with the marks that keep unlike lines apart.
    let mut along: Vec<(Pieces, u32)> = Vec::with_capacity(wires.len());
    for (w, pieces) in pieces.iter().enumerate().filter(|(w, pieces)| !far[*w] && !pieces.is_empty()) {
        let routes: Option<Pieces> = pieces
            .iter()
            .map(|&(level, edge)| Some((level, levels[level as usize].route_of[edge as usize]?)))
            .collect();
        match routes {
            Some(routes) => along.push((routes, w as u32)),
            None => too_long.push(w as u32),
        }
    }
    let key = |entry: &(Pieces, u32)| {
        let wire = &wires[entry.1 as usize];
        (wire.from, wire.to, wire.mark)
    };
    along.sort_by(|a, b| key(a).cmp(&key(b)).then_with(|| a.cmp(b)));
    let paths = along
        .chunk_by(|a, b| key(a) == key(b) && a.0 == b.0)
        .map(|run| {
            let mut points: Vec<Point> = Vec::new();
            for &(level, route) in &run[0].0 {
                let level_origin = origin[level as usize];
                for &[x, y] in &levels[level as usize].layout.routes[route as usize].points {
                    push(&mut points, Point { x: x + level_origin.x, y: y + level_origin.y });
                }
            }
            Path { wires: run.iter().map(|(_, w)| *w).collect(), points }
        })
        .collect();
    (paths, too_long)
}

/// Appends a point; on a vertical stretch the last one moves instead.
fn push(points: &mut Vec<Point>, point: Point) {
    if let [.., before, last] = points.as_mut_slice()
        && (before.x - last.x).abs() < 0.01
        && (last.x - point.x).abs() < 0.01
    {
        *last = point;
        return;
    }
    points.push(point);
}
