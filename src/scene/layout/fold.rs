//! Ranks become rows: a rank of too many boxes is folded into several rows of a grid.

use super::arrange::Line;
use super::components::Part;
use super::{Pin, Request};

/// Row of each box of the part, dense from 0. Lines still go downward.
///
/// Inside a folded rank, boxes that nobody reads come first and boxes without inputs last, so that neither has lines
/// through the rows between; the rest keep graph order.
pub(super) fn rows(request: &Request, rank: &[u32], part: &Part, lines: &[Line]) -> Vec<u32> {
    let n = part.boxes.len();
    let (mut has_input, mut has_reader) = (vec![false; n], vec![false; n]);
    for line in lines {
        has_reader[line.upper as usize] = true;
        has_input[line.lower as usize] = true;
    }
    let rank_of = |k: u32| rank[part.boxes[k as usize] as usize];
    let class = |k: u32| match (has_input[k as usize], has_reader[k as usize]) {
        (true, false) => 0,
        (false, true) => 2,
        _ => 1,
    };
    let mut by_rank: Vec<u32> = (0..n as u32).collect();
    by_rank.sort_unstable_by_key(|&k| (rank_of(k), class(k), k));
    let mut rows = vec![0u32; n];
    let mut next = 0u32;
    for run in by_rank.chunk_by(|&a, &b| rank_of(a) == rank_of(b)) {
        let ports = run.iter().any(|&k| request.boxes[part.boxes[k as usize] as usize].pin != Pin::Free);
        let folds = if ports { 1 } else { run.len().div_ceil(request.limits.row.max(1) as usize) };
        let per_row = run.len().div_ceil(folds);
        for row in run.chunks(per_row) {
            for &k in row {
                rows[k as usize] = next;
            }
            next += 1;
        }
    }
    rows
}
