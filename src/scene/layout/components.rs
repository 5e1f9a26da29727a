//! Wide levels that fall apart are laid out part by part and packed onto shelves.

use super::arrange::Arranged;
use super::topology::Topology;
use super::{Layout, Pin, Request};

/// Two parts share a shelf when neither is more than this many times as high as the other.
const UNLIKE: f32 = 4.0;

/// Boxes and lines that are laid out together.
#[derive(Default)]
pub(super) struct Part {
    /// Indices into the request, ascending.
    pub(super) boxes: Vec<u32>,
    /// Edges to be drawn, indices into the request, ascending.
    pub(super) edges: Vec<u32>,
}

/// The parts, and by box its index inside its part.
pub(super) struct Parts {
    pub(super) parts: Vec<Part>,
    pub(super) local: Vec<u32>,
    pub(super) stubs: Vec<u32>,
}

/// One part for everything, unless some rank is too wide for a row and the drawn edges leave it unconnected.
/// When it is split, lines from and to ports become stubs: a port has one border, the parts have many.
pub(super) fn split(request: &Request, topology: &Topology, rank: &[u32], drawn: &[bool]) -> Parts {
    let n = request.boxes.len();
    let free = |b: u32| request.boxes[b as usize].pin == Pin::Free;
    let undrawn = |i: &u32| {
        let e = &request.edges[*i as usize];
        !drawn[*i as usize] && !e.unseen && e.from != e.to
    };
    let all = || 0..request.edges.len() as u32;
    let whole = || Parts {
        parts: vec![Part {
            boxes: (0..n as u32).collect(),
            edges: all().filter(|&i| drawn[i as usize]).collect(),
        }],
        local: (0..n as u32).collect(),
        stubs: all().filter(undrawn).collect(),
    };
    let mut width = vec![0u32; rank.iter().max().map_or(0, |&r| r as usize + 1)];
    for b in (0..n as u32).filter(|&b| free(b)) {
        width[rank[b as usize] as usize] += 1;
    }
    if width.iter().all(|&w| w <= request.limits.row) {
        return whole();
    }

    let inner = |i: &u32| {
        let (upper, lower) = topology.ends(request, *i as usize);
        drawn[*i as usize] && free(upper) && free(lower)
    };
    let mut parent: Vec<u32> = (0..n as u32).collect();
    for i in all().filter(inner) {
        let (a, b) = topology.ends(request, i as usize);
        let (a, b) = (root(&mut parent, a), root(&mut parent, b));
        // The smaller index stays the root, so that parts are numbered by their first box.
        parent[a.max(b) as usize] = a.min(b);
    }
    let mut part_of = vec![u32::MAX; n];
    let mut first_rank: Vec<(u32, u32)> = Vec::new();
    for b in (0..n as u32).filter(|&b| free(b)) {
        let r = root(&mut parent, b) as usize;
        if part_of[r] == u32::MAX {
            part_of[r] = first_rank.len() as u32;
            first_rank.push((u32::MAX, r as u32));
        }
        part_of[b as usize] = part_of[r];
        let least = &mut first_rank[part_of[r] as usize].0;
        *least = (*least).min(rank[b as usize]);
    }
    if first_rank.len() < 2 {
        return whole();
    }
    let mut by_rank: Vec<u32> = (0..first_rank.len() as u32).collect();
    by_rank.sort_unstable_by_key(|&p| first_rank[p as usize]);
    let mut shown_at = vec![0u32; by_rank.len()];
    for (at, &p) in by_rank.iter().enumerate() {
        shown_at[p as usize] = at as u32;
    }
    let mut parts: Vec<Part> = by_rank.iter().map(|_| Part::default()).collect();
    let mut local = vec![0u32; n];
    for b in (0..n as u32).filter(|&b| free(b)) {
        let part = &mut parts[shown_at[part_of[b as usize] as usize] as usize];
        local[b as usize] = part.boxes.len() as u32;
        part.boxes.push(b);
    }
    for i in all().filter(inner) {
        let upper = topology.ends(request, i as usize).0;
        parts[shown_at[part_of[upper as usize] as usize] as usize].edges.push(i);
    }
    let stubs = all().filter(|i| undrawn(i) || (drawn[*i as usize] && !inner(i))).collect();
    Parts { parts, local, stubs }
}

fn root(parent: &mut [u32], mut v: u32) -> u32 {
    while parent[v as usize] != v {
        parent[v as usize] = parent[parent[v as usize] as usize];
        v = parent[v as usize];
    }
    v
}

/// Packs the parts left to right onto shelves of about the shape of a page and puts everything into one result.
pub(super) fn assemble(request: &Request, parts: Parts, arranged: Vec<Arranged>) -> Layout {
    let gap = request.spacing.boxes * 1.5;
    let area: f32 = arranged.iter().map(|a| (a.width + gap) * (a.height + gap)).sum();
    let widest = arranged.iter().map(|a| a.width).fold(0.0, f32::max);
    let shelf_width = widest.max((area * 1.5).sqrt());
    let mut layout = Layout {
        places: vec![[0.0, 0.0]; request.boxes.len()],
        rows: vec![0; request.boxes.len()],
        stubs: parts.stubs,
        ..Layout::default()
    };
    // Shelves as runs of parts, each with its width and height. Parts of very unlike height do not share one.
    let mut shelves: Vec<(std::ops::Range<usize>, f32, f32)> = Vec::new();
    for (k, part) in arranged.iter().enumerate() {
        match shelves.last_mut() {
            Some((run, width, height))
                if *width + gap + part.width <= shelf_width
                    && *height <= UNLIKE * part.height
                    && part.height <= UNLIKE * *height =>
            {
                run.end = k + 1;
                *width += gap + part.width;
                *height = height.max(part.height);
            }
            _ => shelves.push((k..k + 1, part.width, part.height)),
        }
    }
    layout.width = shelves.iter().map(|s| s.1).fold(0.0, f32::max);
    let mut arranged: Vec<Option<Arranged>> = arranged.into_iter().map(Some).collect();
    let (mut y, mut first_row) = (0.0f32, 0);
    for (run, width, height) in shelves {
        let mut x = (layout.width - width) / 2.0;
        let mut shelf_rows = 0;
        for k in run {
            let Some(arranged) = arranged[k].take() else { continue };
            for (k, &b) in parts.parts[k].boxes.iter().enumerate() {
                let place = arranged.places[k];
                layout.places[b as usize] = [place[0] + x, place[1] + y];
                layout.rows[b as usize] = first_row + arranged.rows[k];
                shelf_rows = shelf_rows.max(arranged.rows[k] + 1);
            }
            for mut route in arranged.routes {
                for point in &mut route.points {
                    point[0] += x;
                    point[1] += y;
                }
                layout.routes.push(route);
            }
            layout.stubs.extend(arranged.stubs);
            x += arranged.width + gap;
        }
        layout.height = y + height;
        y += height + gap;
        first_row += shelf_rows;
    }
    layout.stubs.sort_unstable();
    layout
}
