//! One connected part from ranks to places: lines merged, rows folded, crossings reduced, coordinates given.

use super::components::Part;
use super::levels::Levels;
use super::topology::Topology;
use super::{LayoutError, Pin, Request, Route, check, fold, order, place, route};
use smallvec::SmallVec;
use std::sync::atomic::AtomicBool;

/// A merged line between two boxes of the part (local indices).
pub(super) struct Line {
    pub(super) upper: u32,
    pub(super) lower: u32,
    /// Fixed places right of the boxes' centres, where the request gave them.
    pub(super) upper_x: Option<f32>,
    pub(super) lower_x: Option<f32>,
    /// Value of the first edge; lines of one value from one place share a trunk.
    pub(super) value: u32,
    pub(super) edges: SmallVec<[u32; 1]>,
    pub(super) reversed: bool,
}

/// A part with coordinates of its own, by local box index.
pub(super) struct Arranged {
    pub(super) width: f32,
    pub(super) height: f32,
    pub(super) places: Vec<[f32; 2]>,
    pub(super) rows: Vec<u32>,
    pub(super) routes: Vec<Route>,
    pub(super) stubs: Vec<u32>,
}

pub(super) fn arrange(
    request: &Request,
    topology: &Topology,
    rank: &[u32],
    part: &Part,
    local: &[u32],
    cancel: &AtomicBool,
) -> Result<Arranged, LayoutError> {
    check(cancel)?;
    let mut lines = merge(request, topology, part, local);
    let rows = fold::rows(request, rank, part, &lines);
    // Folding lengthens lines; what has become far too long is a stub as well.
    let mut stubs = Vec::new();
    let fan_in = fan_in(part.boxes.len(), &lines);
    lines.retain(|line| {
        let span = rows[line.lower as usize] - rows[line.upper as usize];
        let keep = span <= 2 * request.limits.span || fan_in[line.lower as usize] > request.limits.readers;
        if !keep {
            stubs.extend(line.edges.iter().copied());
        }
        keep
    });
    let mut levels = Levels::new(request, part, &rows, &lines, &fan_in);
    let previous: Vec<Option<f32>> = part.boxes.iter().map(|&b| request.boxes[b as usize].previous).collect();
    order::reduce_crossings(&mut levels, &previous, cancel)?;
    let centres = place::horizontal(&levels, &request.spacing, cancel)?;
    let heights: Vec<f32> = part.boxes.iter().map(|&b| request.boxes[b as usize].height.max(0.0)).collect();
    let is_port: Vec<bool> = part.boxes.iter().map(|&b| request.boxes[b as usize].pin != Pin::Free).collect();
    let vertical = place::vertical(&levels, &request.spacing, &heights, &is_port, &centres);
    Ok(route::finish(&levels, &lines, &vertical, &centres, &heights, stubs))
}

/// Number of lines that arrive at each box.
fn fan_in(boxes: usize, lines: &[Line]) -> Vec<u32> {
    let mut fan_in = vec![0u32; boxes];
    for line in lines {
        fan_in[line.lower as usize] += 1;
    }
    fan_in
}

/// Edges between the same places of the same boxes become one line.
pub(super) fn merge(request: &Request, topology: &Topology, part: &Part, local: &[u32]) -> Vec<Line> {
    let bits = |x: Option<f32>| x.map_or(u32::MAX, f32::to_bits);
    let key = |&i: &u32| {
        let e = &request.edges[i as usize];
        let (upper, lower) = topology.ends(request, i as usize);
        (
            local[upper as usize],
            local[lower as usize],
            topology.reversed[i as usize],
            bits(e.from_x),
            bits(e.to_x),
        )
    };
    let mut edges = part.edges.clone();
    edges.sort_by_key(key);
    edges
        .chunk_by(|a, b| key(a) == key(b))
        .map(|run| {
            let first = &request.edges[run[0] as usize];
            let (upper, lower, reversed, ..) = key(&run[0]);
            let (upper_x, lower_x) =
                if reversed { (first.to_x, first.from_x) } else { (first.from_x, first.to_x) };
            Line { upper, lower, upper_x, lower_x, value: first.value, edges: run.into(), reversed }
        })
        .collect()
}
