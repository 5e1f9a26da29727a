//! Lines through their bends, and where they touch the boxes.

use super::Route;
use super::arrange::{Arranged, Line};
use super::levels::Levels;
use super::place::Vertical;

/// Distance between lines that arrive at one box from the same side, points.
const ARRIVAL_STEP: f32 = 10.0;
/// Nothing arrives closer than this to a box's corner.
const CORNER: f32 = 8.0;

/// Puts boxes and lines into the part's result.
pub(super) fn finish(
    levels: &Levels,
    lines: &[Line],
    vertical: &Vertical,
    centres: &[f32],
    heights: &[f32],
    stubs: Vec<u32>,
) -> Arranged {
    let boxes = levels.boxes as usize;
    let arrivals = arrivals(levels, lines, centres);
    let routes: Vec<Route> = lines
        .iter()
        .enumerate()
        .map(|(l, line)| {
            let (u, v) = (line.upper as usize, line.lower as usize);
            let mut points = Vec::with_capacity(4);
            let x = centres[u] + line.upper_x.unwrap_or(0.0);
            let bottom = vertical.top[u] + heights[u];
            push(&mut points, [x, bottom]);
            push(&mut points, [x, vertical.rows[levels.row[u] as usize].1.max(bottom)]);
            for bend in levels.bends(l, levels.row[u], levels.row[v]) {
                let (top, bottom) = vertical.rows[levels.row[bend as usize] as usize];
                push(&mut points, [centres[bend as usize], top]);
                push(&mut points, [centres[bend as usize], bottom]);
            }
            let x = arrivals[l];
            push(&mut points, [x, vertical.rows[levels.row[v] as usize].0.min(vertical.top[v])]);
            push(&mut points, [x, vertical.top[v]]);
            if line.reversed {
                points.reverse();
            }
            Route { edges: line.edges.clone(), points, upward: line.reversed }
        })
        .collect();
    let (mut width, mut height) = (0.0f32, 0.0f32);
    for (centre, own) in centres.iter().zip(&levels.width) {
        width = width.max(centre + own / 2.0);
    }
    for &(_, bottom) in &vertical.rows {
        height = height.max(bottom);
    }
    Arranged {
        width,
        height,
        places: (0..boxes).map(|b| [centres[b] - levels.width[b] / 2.0, vertical.top[b]]).collect(),
        rows: levels.row[..boxes].to_vec(),
        routes,
        stubs,
    }
}

/// Appends a point; on a straight stretch the last one moves instead.
fn push(points: &mut Vec<[f32; 2]>, point: [f32; 2]) {
    if let [.., before, last] = points.as_mut_slice()
        && before[0] == last[0]
        && last[0] == point[0]
    {
        *last = point;
        return;
    }
    if points.last() != Some(&point) {
        points.push(point);
    }
}

/// By line: x of its lower end. Lines from straight above arrive at the centre, those from the sides beside it in the
/// order in which they come, so that each arrow head is seen. Lines of one trunk arrive together.
fn arrivals(levels: &Levels, lines: &[Line], centres: &[f32]) -> Vec<f32> {
    let last_item = |l: usize| {
        let line = &lines[l];
        levels.bends(l, levels.row[line.upper as usize], levels.row[line.lower as usize]).next_back()
    };
    let mut x: Vec<f32> =
        lines.iter().map(|line| centres[line.lower as usize] + line.lower_x.unwrap_or(0.0)).collect();
    // (box, side, distance, bend or none, line): sorting brings each side's lines together, nearest first.
    let mut arriving: Vec<(u32, bool, f32, Option<u32>, usize)> = Vec::new();
    for (l, line) in lines.iter().enumerate().filter(|(_, line)| line.lower_x.is_none()) {
        let bend = last_item(l);
        let from = bend.map_or_else(
            || centres[line.upper as usize] + line.upper_x.unwrap_or(0.0),
            |bend| centres[bend as usize],
        );
        let sideways = from - centres[line.lower as usize];
        if sideways.abs() > 1.0 {
            arriving.push((line.lower, sideways > 0.0, sideways.abs(), bend, l));
        }
    }
    arriving.sort_by(|a, b| {
        (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2)).then((a.3, a.4).cmp(&(b.3, b.4)))
    });
    for side in arriving.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        let together = |a: &(u32, bool, f32, Option<u32>, usize),
                        b: &(u32, bool, f32, Option<u32>, usize)| {
            a.3.is_some() && a.3 == b.3
        };
        let count = side.chunk_by(together).count();
        let half = levels.width[side[0].0 as usize] / 2.0;
        let step = ARRIVAL_STEP.min((half - CORNER).max(0.0) / count as f32);
        for (k, group) in side.chunk_by(together).enumerate() {
            let (lower, to_right, distance, ..) = group[0];
            let offset = (step * (k + 1) as f32).min(distance);
            for &(.., l) in group {
                x[l] = centres[lower as usize] + if to_right { offset } else { -offset };
            }
        }
    }
    x
}
