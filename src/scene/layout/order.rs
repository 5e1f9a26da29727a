//! Order inside the rows: depth-first start, barycenter sweeps, swaps of neighbours, the best by counted crossings.

use super::levels::{Levels, Link};
use super::{LayoutError, check};
use std::sync::atomic::AtomicBool;

/// Above this many items fewer sweeps are made.
const LARGE: usize = 20_000;
/// Rows longer than this are not improved by swapping neighbours, nor are graphs of more items than `SWAP_ITEMS`.
const SWAP_ROW: usize = 60;
const SWAP_ITEMS: usize = 8_000;

/// Reorders the rows. Boxes that have a previous place keep their order among each other; all else moves freely.
pub(super) fn reduce_crossings(
    levels: &mut Levels,
    previous: &[Option<f32>],
    cancel: &AtomicBool,
) -> Result<(), LayoutError> {
    let kept: Vec<bool> = (0..levels.items())
        .map(|item| previous.get(item).is_some_and(|p| p.is_some_and(f32::is_finite)))
        .collect();
    depth_first(levels);
    restore_kept(levels, previous, &kept);
    let sweeps = if levels.items() > LARGE { 4 } else { 10 };
    let mut scratch = Scratch::default();
    let mut best = (crossings(levels, &mut scratch), levels.order.clone());
    let mut without_gain = 0;
    for sweep in 0..sweeps {
        if best.0 == 0 || without_gain == 4 {
            break;
        }
        check(cancel)?;
        let downward = sweep % 2 == 0;
        let rows = levels.rows();
        for k in 1..rows {
            let r = if downward { k } else { rows - 1 - k };
            sort_by_barycenter(levels, r, downward, sweep % 4 >= 2, &kept, &mut scratch);
        }
        if levels.items() <= SWAP_ITEMS {
            swap_neighbours(levels, &kept, &mut scratch);
        }
        let count = crossings(levels, &mut scratch);
        if count < best.0 {
            best = (count, levels.order.clone());
            without_gain = 0;
        } else {
            without_gain += 1;
        }
    }
    levels.order = best.1;
    for r in 0..levels.rows() {
        renumber(levels, r);
    }
    Ok(())
}

#[derive(Default)]
struct Scratch {
    keyed: Vec<(f32, u32)>,
    fixed: Vec<(usize, u32)>,
    lower: Vec<u32>,
    tree: Vec<u32>,
    a: Vec<u32>,
    b: Vec<u32>,
}

fn renumber(levels: &mut Levels, row: usize) {
    for (position, at) in levels.range(row).enumerate() {
        levels.position[levels.order[at] as usize] = position as u32;
    }
}

/// Items get their place in their row in the order in which a depth-first walk from the top meets them.
fn depth_first(levels: &mut Levels) {
    let items = levels.items() as u32;
    let mut seen = vec![false; items as usize];
    let mut next: Vec<u32> = levels.start.clone();
    let mut stack: Vec<u32> = Vec::new();
    let mut roots: Vec<u32> = (0..items).filter(|&v| levels.up.of(v).is_empty()).collect();
    roots.extend((0..items).filter(|&v| !levels.up.of(v).is_empty()));
    for root in roots {
        stack.push(root);
        while let Some(v) = stack.pop() {
            if std::mem::replace(&mut seen[v as usize], true) {
                continue;
            }
            levels.put(v, &mut next);
            stack.extend(levels.down.of(v).iter().rev().map(|l| l.item).filter(|&w| !seen[w as usize]));
        }
    }
}

/// Puts the kept boxes of each row into their previous order, on the slots that kept boxes have.
fn restore_kept(levels: &mut Levels, previous: &[Option<f32>], kept: &[bool]) {
    if !kept.contains(&true) {
        return;
    }
    let x = |v: u32| previous.get(v as usize).copied().flatten().unwrap_or(0.0);
    for r in 0..levels.rows() {
        let slots: Vec<usize> = levels.range(r).filter(|&at| kept[levels.order[at] as usize]).collect();
        let mut items: Vec<u32> = slots.iter().map(|&at| levels.order[at]).collect();
        items.sort_by(|&a, &b| x(a).total_cmp(&x(b)).then(a.cmp(&b)));
        for (at, item) in slots.into_iter().zip(items) {
            levels.order[at] = item;
        }
        renumber(levels, r);
    }
}

/// Mean place of an item's neighbours in the row that was just done.
fn barycenter(levels: &Levels, links: &[Link]) -> f32 {
    let sum: f32 = links
        .iter()
        .map(|l| levels.position[l.item as usize] as f32 + l.other_x / levels.width[l.item as usize].max(1.0))
        .sum();
    sum / links.len() as f32
}

fn sort_by_barycenter(
    levels: &mut Levels,
    row: usize,
    downward: bool,
    ties_from_right: bool,
    kept: &[bool],
    scratch: &mut Scratch,
) {
    let range = levels.range(row);
    if range.len() < 2 {
        return;
    }
    scratch.keyed.clear();
    scratch.fixed.clear();
    let mut floor = f32::NEG_INFINITY;
    for (position, at) in range.clone().enumerate() {
        let v = levels.order[at];
        let links = if downward { levels.up.of(v) } else { levels.down.of(v) };
        let is_kept = kept[v as usize];
        if links.is_empty() && !is_kept {
            scratch.fixed.push((position, v));
            continue;
        }
        let mut key = if links.is_empty() { floor } else { barycenter(levels, links) };
        if is_kept {
            // Kept boxes never overtake each other: a key below that of the one before is raised to it.
            key = key.max(floor);
            floor = key;
        }
        scratch.keyed.push((key, v));
    }
    if ties_from_right && !scratch.keyed.iter().any(|&(_, v)| kept[v as usize]) {
        scratch.keyed.reverse();
    }
    scratch.keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Items without neighbours stay at their place, the sorted ones fill the rest.
    let mut keyed = scratch.keyed.iter().map(|k| k.1);
    let mut fixed = scratch.fixed.iter().peekable();
    for (position, at) in range.enumerate() {
        let stays = fixed.next_if(|(p, _)| *p == position).map(|f| f.1);
        if let Some(v) = stays.or_else(|| keyed.next()) {
            levels.order[at] = v;
        }
    }
    renumber(levels, row);
}

/// Number of crossings between neighbouring rows, counted with a Fenwick tree.
fn crossings(levels: &Levels, scratch: &mut Scratch) -> u64 {
    (1..levels.rows()).map(|r| crossings_above(levels, r, scratch)).sum()
}

fn crossings_above(levels: &Levels, row: usize, scratch: &mut Scratch) -> u64 {
    let width = levels.range(row).len();
    if width < 2 || levels.range(row - 1).len() < 2 {
        return 0;
    }
    scratch.lower.clear();
    for &v in levels.in_row(row - 1) {
        let from = scratch.lower.len();
        scratch.lower.extend(levels.down.of(v).iter().map(|l| levels.position[l.item as usize]));
        scratch.lower[from..].sort_unstable();
    }
    scratch.tree.clear();
    scratch.tree.resize(width + 1, 0);
    let mut total = 0u64;
    for (before, &position) in scratch.lower.iter().enumerate() {
        // Segments to the left that end at this place or left of it do not cross this one.
        let mut not_crossing = 0u32;
        let mut i = position as usize + 1;
        while i > 0 {
            not_crossing += scratch.tree[i];
            i &= i - 1;
        }
        total += before as u64 - u64::from(not_crossing);
        let mut i = position as usize + 1;
        while i <= width {
            scratch.tree[i] += 1;
            i += i & i.wrapping_neg();
        }
    }
    total
}

/// Swaps neighbours in a row as long as that takes crossings away.
fn swap_neighbours(levels: &mut Levels, kept: &[bool], scratch: &mut Scratch) {
    for _ in 0..4 {
        let mut improved = false;
        for r in 0..levels.rows() {
            let range = levels.range(r);
            if range.len() > SWAP_ROW {
                continue;
            }
            for at in range.start..range.end.saturating_sub(1) {
                let (left, right) = (levels.order[at], levels.order[at + 1]);
                if kept[left as usize] && kept[right as usize] {
                    continue;
                }
                if swap_gain(levels, left, right, scratch) > 0 {
                    levels.order.swap(at, at + 1);
                    levels.position.swap(left as usize, right as usize);
                    improved = true;
                }
            }
        }
        if !improved {
            break;
        }
    }
}

/// Crossings between the lines of two neighbours as they stand, less those after a swap.
fn swap_gain(levels: &Levels, left: u32, right: u32, scratch: &mut Scratch) -> i64 {
    let mut gain = 0i64;
    for (a, b) in [(levels.up.of(left), levels.up.of(right)), (levels.down.of(left), levels.down.of(right))] {
        if a.is_empty() || b.is_empty() {
            continue;
        }
        for (links, out) in [(a, &mut scratch.a), (b, &mut scratch.b)] {
            out.clear();
            out.extend(links.iter().map(|l| levels.position[l.item as usize]));
            out.sort_unstable();
        }
        gain += inversions(&scratch.a, &scratch.b) - inversions(&scratch.b, &scratch.a);
    }
    gain
}

/// Pairs with the entry of `left` greater than that of `right`; both sorted.
fn inversions(left: &[u32], right: &[u32]) -> i64 {
    let (mut count, mut below) = (0i64, 0usize);
    for &x in left {
        while right.get(below).is_some_and(|&y| y < x) {
            below += 1;
        }
        count += below as i64;
    }
    count
}

#[cfg(test)]
pub(super) fn count_crossings(levels: &Levels) -> u64 {
    crossings(levels, &mut Scratch::default())
}
