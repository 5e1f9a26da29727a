//! Ranks: which boxes stand above which. Longest path, then sources and wide fan-outs pulled down to their first
//! reader; small levels are tightened to the least total edge length by the network simplex method.

use super::adjacency::Adjacency;
use super::topology::{Topology, readers};
use super::{LayoutError, Pin, Request, check, simplex};
use std::sync::atomic::AtomicBool;

/// Levels of at most this many boxes are ranked optimally.
const SIMPLEX_BOXES: usize = 500;
/// Weight of an edge that will be a line, against 1 for one that will be a tag.
const LINE_WEIGHT: i64 = 8;

/// One distinct pair of boxes, upper first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arc {
    pub(super) upper: u32,
    pub(super) lower: u32,
    pub(super) weight: i64,
}

/// Rank of each box, 0 at the top. Ports stand on the ranks before the first and after the last.
pub(super) fn assign(
    request: &Request,
    topology: &Topology,
    cancel: &AtomicBool,
) -> Result<Vec<u32>, LayoutError> {
    let n = request.boxes.len();
    let arcs = distinct_arcs(request, topology);
    let down = Adjacency::new(n, arcs.iter().map(|a| (a.upper, a.lower)));
    let up = Adjacency::new(n, arcs.iter().map(|a| (a.lower, a.upper)));
    let mut rank = longest_path(&topology.order, &down);
    check(cancel)?;
    pull_down(&topology.order, &up, &down, &mut rank);
    if n <= SIMPLEX_BOXES {
        simplex::tighten(&arcs, &mut rank, cancel)?;
    }
    Ok(with_ports(request, rank))
}

fn distinct_arcs(request: &Request, topology: &Topology) -> Vec<Arc> {
    let readers = readers(request);
    let free = |b: u32| request.boxes[b as usize].pin == Pin::Free;
    let is_line = |i: usize| readers[i] <= request.limits.readers && !request.edges[i].unseen;
    let mut arcs: Vec<Arc> = (0..request.edges.len())
        .map(|i| {
            let (upper, lower) = topology.ends(request, i);
            Arc { upper, lower, weight: if is_line(i) { LINE_WEIGHT } else { 1 } }
        })
        .filter(|a| a.upper != a.lower && free(a.upper) && free(a.lower))
        .collect();
    arcs.sort_unstable_by_key(|a| (a.upper, a.lower, -a.weight));
    arcs.dedup_by_key(|a| (a.upper, a.lower));
    arcs
}

fn longest_path(order: &[u32], down: &Adjacency<u32>) -> Vec<i64> {
    let mut rank = vec![0i64; order.len()];
    for &v in order {
        let below = rank[v as usize] + 1;
        for &to in down.of(v) {
            rank[to as usize] = rank[to as usize].max(below);
        }
    }
    rank
}

/// Moves a box down to its first reader where that shortens lines (more readers than inputs), or where everything
/// above it hangs on it alone, so that side chains stand beside their reader and not at the top of the picture.
fn pull_down(order: &[u32], up: &Adjacency<u32>, down: &Adjacency<u32>, rank: &mut [i64]) {
    let mut loose = vec![false; rank.len()];
    for &v in order {
        loose[v as usize] = up.of(v).iter().all(|&p| loose[p as usize] && down.of(p).len() == 1);
    }
    for &v in order.iter().rev() {
        let Some(first) = down.of(v).iter().map(|&to| rank[to as usize]).min() else { continue };
        if loose[v as usize] || down.of(v).len() > up.of(v).len() {
            rank[v as usize] = first - 1;
        }
    }
}

fn with_ports(request: &Request, rank: Vec<i64>) -> Vec<u32> {
    let pins = || request.boxes.iter().map(|b| b.pin);
    let free = || rank.iter().zip(pins()).filter(|(_, pin)| *pin == Pin::Free).map(|(r, _)| *r);
    let (first, last) = (free().min().unwrap_or(0), free().max().unwrap_or(0));
    let shift = i64::from(pins().any(|pin| pin == Pin::Top)) - first;
    rank.iter()
        .zip(pins())
        .map(|(&r, pin)| match pin {
            Pin::Free => (r + shift) as u32,
            Pin::Top => 0,
            Pin::Bottom => (last + shift + 1) as u32,
        })
        .collect()
}
