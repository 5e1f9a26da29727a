//! Coordinates. Across: four runs after Brandes and Köpf (2001), each compacted over a graph of aligned blocks, and
//! the mean of the two middle results. Down: rows one below the other.

use super::adjacency::Adjacency;
use super::levels::{Levels, Link};
use super::{LayoutError, Spacing, check};
use std::sync::atomic::AtomicBool;

/// Which neighbours a run aligns items with, and which side it packs to.
#[derive(Clone, Copy)]
struct Run {
    with_upper: bool,
    to_left: bool,
}

/// Centre of each item (boxes and bends), the leftmost edge at 0. Items of a row never overlap.
pub(super) fn horizontal(
    levels: &Levels,
    spacing: &Spacing,
    cancel: &AtomicBool,
) -> Result<Vec<f32>, LayoutError> {
    let conflicts = conflicts(levels);
    let mut runs: Vec<Vec<f32>> = Vec::with_capacity(4);
    for with_upper in [true, false] {
        for to_left in [true, false] {
            check(cancel)?;
            runs.push(aligned(levels, spacing, &conflicts, Run { with_upper, to_left }));
        }
    }
    let extent = |xs: &[f32]| {
        let (mut low, mut high) = (f32::INFINITY, f32::NEG_INFINITY);
        for (x, width) in xs.iter().zip(&levels.width) {
            low = low.min(x - width / 2.0);
            high = high.max(x + width / 2.0);
        }
        if low > high { (0.0, 0.0) } else { (low, high) }
    };
    let extents: Vec<(f32, f32)> = runs.iter().map(|xs| extent(xs)).collect();
    let narrowest =
        extents.iter().copied().min_by(|a, b| (a.1 - a.0).total_cmp(&(b.1 - b.0))).unwrap_or_default();
    for (k, xs) in runs.iter_mut().enumerate() {
        // Left-packed runs share the narrowest one's left edge, right-packed ones its right edge.
        let shift = if k % 2 == 0 { narrowest.0 - extents[k].0 } else { narrowest.1 - extents[k].1 };
        xs.iter_mut().for_each(|x| *x += shift);
    }
    // Order statistics keep every distance that all four runs keep, so nothing overlaps in the mean either.
    let mut centres: Vec<f32> = (0..levels.items())
        .map(|item| {
            let mut four = [runs[0][item], runs[1][item], runs[2][item], runs[3][item]];
            four.sort_unstable_by(f32::total_cmp);
            (four[1] + four[2]) / 2.0
        })
        .collect();
    let left = extent(&centres).0;
    centres.iter_mut().for_each(|x| *x -= left);
    Ok(centres)
}

/// Segments that cross a stretch between two bends: long lines are kept straight, so these must not be aligned.
fn conflicts(levels: &Levels) -> Vec<bool> {
    let mut conflicts = vec![false; levels.segments];
    for r in 1..levels.rows() {
        let row = levels.in_row(r);
        let (mut left, mut scanned) = (0u32, 0usize);
        for (i, &v) in row.iter().enumerate() {
            let above = if levels.is_bend(v) {
                levels
                    .up
                    .of(v)
                    .iter()
                    .find(|l| levels.is_bend(l.item))
                    .map(|l| levels.position[l.item as usize])
            } else {
                None
            };
            if above.is_none() && i + 1 < row.len() {
                continue;
            }
            let right = above.unwrap_or(u32::MAX);
            for &w in &row[scanned..=i] {
                for link in levels.up.of(w) {
                    let at = levels.position[link.item as usize];
                    let inner = levels.is_bend(w) && levels.is_bend(link.item);
                    if (at < left || at > right) && !inner {
                        conflicts[link.segment as usize] = true;
                    }
                }
            }
            scanned = i + 1;
            left = above.unwrap_or(left);
        }
    }
    conflicts
}

/// One run: items are aligned with their median neighbour into blocks, and the blocks are packed.
fn aligned(levels: &Levels, spacing: &Spacing, conflicts: &[bool], run: Run) -> Vec<f32> {
    let items = levels.items();
    let rows = levels.rows();
    let sign = if run.to_left { 1.0f32 } else { -1.0 };
    let mirrored = |item: u32| {
        let position = levels.position[item as usize];
        if run.to_left { position } else { u32::MAX - position }
    };
    let mut root: Vec<u32> = (0..items as u32).collect();
    let mut shift = vec![0.0f32; items];
    let mut row_items: Vec<u32> = Vec::new();
    let mut neighbours: Vec<Link> = Vec::new();
    for k in 1..rows {
        let r = if run.with_upper { k } else { rows - 1 - k };
        mirrored_row(levels, r, run, &mut row_items);
        let mut last: Option<u32> = None;
        for &v in &row_items {
            neighbours.clear();
            neighbours.extend_from_slice(if run.with_upper { levels.up.of(v) } else { levels.down.of(v) });
            if neighbours.is_empty() {
                continue;
            }
            neighbours.sort_unstable_by_key(|l| (mirrored(l.item), l.segment));
            for link in candidates(levels, run, v, &neighbours).into_iter().flatten() {
                let at = mirrored(link.item);
                if last.is_none_or(|last| last < at) && !conflicts[link.segment as usize] {
                    root[v as usize] = root[link.item as usize];
                    shift[v as usize] = shift[link.item as usize] + sign * (link.other_x - link.own_x);
                    last = Some(at);
                    break;
                }
            }
        }
    }
    let mut apart: Vec<(u32, (u32, f32))> = Vec::with_capacity(items);
    for r in 0..rows {
        mirrored_row(levels, r, run, &mut row_items);
        for pair in row_items.windows(2) {
            let (u, v) = (pair[0], pair[1]);
            let gap = if levels.is_bend(u) || levels.is_bend(v) { spacing.lines } else { spacing.boxes };
            let widths = (levels.width[u as usize] + levels.width[v as usize]) / 2.0;
            let distance = widths + gap + shift[u as usize] - shift[v as usize];
            apart.push((root[u as usize], (root[v as usize], distance)));
        }
    }
    let x = pack(items, &root, &apart);
    (0..items).map(|i| sign * (x[root[i] as usize] + shift[i])).collect()
}

/// What an item is to be aligned with, best first: a box with the only box among its neighbours, so that a chain stays
/// straight and the lines that skip parts of it go around; else with the medians.
fn candidates(levels: &Levels, run: Run, item: u32, neighbours: &[Link]) -> [Option<Link>; 3] {
    let only_box = |links: &[Link]| {
        let mut boxes = links.iter().filter(|l| !levels.is_bend(l.item));
        boxes.next().filter(|_| boxes.next().is_none()).copied()
    };
    let bend = levels.is_bend(item);
    // A bend leaves a box alone that has a box to be aligned with.
    let taken = |link: &Link| {
        let across = if run.with_upper { levels.down.of(link.item) } else { levels.up.of(link.item) };
        bend && !levels.is_bend(link.item) && only_box(across).is_some()
    };
    let median = |m: usize| neighbours.get(m).filter(|link| !taken(link)).copied();
    let only = if bend { None } else { only_box(neighbours) };
    [only, median((neighbours.len() - 1) / 2), median(neighbours.len() / 2)]
}

fn mirrored_row(levels: &Levels, row: usize, run: Run, out: &mut Vec<u32>) {
    out.clear();
    if run.to_left {
        out.extend_from_slice(levels.in_row(row));
    } else {
        out.extend(levels.in_row(row).iter().rev());
    }
}

/// Least coordinate of each block that keeps the distances, then everything as far right as its right neighbours let.
fn pack(items: usize, root: &[u32], apart: &[(u32, (u32, f32))]) -> Vec<f32> {
    let right = Adjacency::new(items, apart.iter().copied());
    let mut waits = vec![0u32; items];
    for &(_, (b, _)) in apart {
        waits[b as usize] += 1;
    }
    let mut order: Vec<u32> =
        (0..items as u32).filter(|&b| root[b as usize] == b && waits[b as usize] == 0).collect();
    let mut x = vec![0.0f32; items];
    let mut done = 0;
    while let Some(&a) = order.get(done) {
        done += 1;
        for &(b, distance) in right.of(a) {
            x[b as usize] = x[b as usize].max(x[a as usize] + distance);
            waits[b as usize] -= 1;
            if waits[b as usize] == 0 {
                order.push(b);
            }
        }
    }
    for &a in order.iter().rev() {
        let room =
            right.of(a).iter().map(|&(b, distance)| x[b as usize] - distance).fold(f32::INFINITY, f32::min);
        if room.is_finite() {
            x[a as usize] = x[a as usize].max(room);
        }
    }
    x
}

/// Coordinates from top to bottom.
pub(super) struct Vertical {
    /// Top of each box.
    pub(super) top: Vec<f32>,
    /// Top and bottom of each row.
    pub(super) rows: Vec<(f32, f32)>,
}

/// From this height on the boxes of a row stand at its top, points; in lower rows they stand in the middle.
const TALL_ROW: f32 = 160.0;

/// Stacks the rows. Where lines run far sideways the gap is wider, so that they do not lie flat.
pub(super) fn vertical(
    levels: &Levels,
    spacing: &Spacing,
    heights: &[f32],
    is_port: &[bool],
    centres: &[f32],
) -> Vertical {
    let boxes_of = |r: usize| levels.in_row(r).iter().filter(|&&v| !levels.is_bend(v)).map(|&v| v as usize);
    let mut rows = Vec::with_capacity(levels.rows());
    let mut top = vec![0.0f32; levels.boxes as usize];
    let mut y = 0.0f32;
    let mut after_ports = false;
    for r in 0..levels.rows() {
        let ports = boxes_of(r).any(|b| is_port[b]);
        if r > 0 {
            let sideways = levels
                .in_row(r)
                .iter()
                .flat_map(|&v| levels.up.of(v).iter().map(move |l| (v, l)))
                .map(|(v, l)| (centres[v as usize] + l.own_x - centres[l.item as usize] - l.other_x).abs())
                .fold(0.0f32, f32::max);
            let base = if ports || after_ports { spacing.rows * 0.6 } else { spacing.rows };
            y += base + (0.07 * sideways).min(spacing.rows * 1.5);
        }
        after_ports = ports;
        let height = boxes_of(r).map(|b| heights[b]).fold(0.0f32, f32::max);
        for b in boxes_of(r) {
            top[b] = if height > TALL_ROW { y } else { y + (height - heights[b]) / 2.0 };
        }
        rows.push((y, y + height));
        y += height;
    }
    Vertical { top, rows }
}
