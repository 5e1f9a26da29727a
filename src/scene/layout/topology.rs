//! Direction of the edges: cycles between boxes are broken, edges that are not lines are told apart.

use super::adjacency::Adjacency;
use super::{Pin, Request};

/// A topological order of the boxes and, for each edge, whether it runs against it.
pub(super) struct Topology {
    /// Boxes, producers first.
    pub(super) order: Vec<u32>,
    /// By edge: runs against the order because it closes a cycle.
    pub(super) reversed: Vec<bool>,
}

impl Topology {
    /// Lifting edges to blocks can make cycles. Inside a strongly connected component the edges that run against
    /// the index order are reversed, since the index is the position of a block's first member; no others are.
    pub(super) fn new(request: &Request) -> Self {
        let n = request.boxes.len();
        let edges = &request.edges;
        let against = |from: u32, to: u32| {
            request.boxes[from as usize].pin == Pin::Bottom || request.boxes[to as usize].pin == Pin::Top
        };
        if edges.iter().all(|e| e.from <= e.to && !against(e.from, e.to)) {
            return Self { order: (0..n as u32).collect(), reversed: vec![false; edges.len()] };
        }
        let down = Adjacency::new(n, edges.iter().filter(|e| e.from != e.to).map(|e| (e.from, e.to)));
        let component = strong_components(n, &down);
        let reversed: Vec<bool> = edges
            .iter()
            .map(|e| {
                let cyclic = component[e.from as usize] == component[e.to as usize];
                against(e.from, e.to) || (cyclic && e.from > e.to)
            })
            .collect();
        let ends = |i: usize| {
            let e = &edges[i];
            if reversed[i] { (e.to, e.from) } else { (e.from, e.to) }
        };
        let pairs = (0..edges.len()).map(ends).filter(|(a, b)| a != b);
        let down = Adjacency::new(n, pairs.clone());
        let mut waits = vec![0u32; n];
        for (_, to) in pairs {
            waits[to as usize] += 1;
        }
        let mut ready: std::collections::BinaryHeap<std::cmp::Reverse<u32>> =
            (0..n as u32).filter(|&v| waits[v as usize] == 0).map(std::cmp::Reverse).collect();
        let mut order = Vec::with_capacity(n);
        while let Some(std::cmp::Reverse(v)) = ready.pop() {
            order.push(v);
            for &to in down.of(v) {
                waits[to as usize] -= 1;
                if waits[to as usize] == 0 {
                    ready.push(std::cmp::Reverse(to));
                }
            }
        }
        Self { order, reversed }
    }

    /// The upper and the lower end of an edge.
    pub(super) fn ends(&self, request: &Request, edge: usize) -> (u32, u32) {
        let e = &request.edges[edge];
        if self.reversed[edge] { (e.to, e.from) } else { (e.from, e.to) }
    }
}

/// Tarjan's strongly connected components with an own stack; the result numbers them by box.
fn strong_components(n: usize, down: &Adjacency<u32>) -> Vec<u32> {
    const NONE: u32 = u32::MAX;
    let mut index = vec![NONE; n];
    let mut low = vec![0u32; n];
    let mut component = vec![NONE; n];
    let (mut next_index, mut next_component) = (0u32, 0u32);
    let mut open: Vec<u32> = Vec::new();
    let mut calls: Vec<(u32, u32)> = Vec::new();
    for root in 0..n as u32 {
        if index[root as usize] != NONE {
            continue;
        }
        calls.push((root, 0));
        while let Some((v, child)) = calls.pop() {
            let vi = v as usize;
            if child == 0 {
                index[vi] = next_index;
                low[vi] = next_index;
                next_index += 1;
                open.push(v);
            }
            if let Some(&w) = down.of(v).get(child as usize) {
                calls.push((v, child + 1));
                let wi = w as usize;
                if index[wi] == NONE {
                    calls.push((w, 0));
                } else if component[wi] == NONE {
                    low[vi] = low[vi].min(index[wi]);
                }
                continue;
            }
            if low[vi] == index[vi] {
                while let Some(w) = open.pop() {
                    component[w as usize] = next_component;
                    if w == v {
                        break;
                    }
                }
                next_component += 1;
            }
            if let Some(&(parent, _)) = calls.last() {
                let p = parent as usize;
                low[p] = low[p].min(low[vi]);
            }
        }
    }
    component
}

/// By edge: how many distinct boxes read its value.
pub(super) fn readers(request: &Request) -> Vec<u32> {
    let mut by_value: Vec<u32> = (0..request.edges.len() as u32)
        .filter(|&i| request.edges[i as usize].from != request.edges[i as usize].to)
        .collect();
    let key = |i: u32| {
        let e = &request.edges[i as usize];
        (e.from, e.value, e.to)
    };
    by_value.sort_unstable_by_key(|&i| (key(i), i));
    let mut readers = vec![0u32; request.edges.len()];
    for run in by_value.chunk_by(|&a, &b| (key(a).0, key(a).1) == (key(b).0, key(b).1)) {
        let distinct = 1 + run.windows(2).filter(|w| key(w[0]).2 != key(w[1]).2).count() as u32;
        for &i in run {
            readers[i as usize] = distinct;
        }
    }
    readers
}

/// By edge: whether it becomes a line. Values of many readers, edges over many ranks and the inputs of a box that
/// gathers very many do not.
pub(super) fn drawn_edges(request: &Request, topology: &Topology, rank: &[u32]) -> Vec<bool> {
    let readers = readers(request);
    let mut drawn: Vec<bool> = (0..request.edges.len())
        .map(|i| {
            let (upper, lower) = topology.ends(request, i);
            let pinned = [upper, lower].iter().any(|&b| request.boxes[b as usize].pin != Pin::Free);
            let span = rank[lower as usize].saturating_sub(rank[upper as usize]);
            upper != lower
                && !request.edges[i].unseen
                && readers[i] <= request.limits.readers
                && (span <= request.limits.span || (pinned && span <= 2 * request.limits.span))
        })
        .collect();
    let mut arrives: Vec<(u32, u32)> = (0..drawn.len())
        .filter(|&i| drawn[i])
        .map(|i| topology.ends(request, i))
        .map(|(upper, lower)| (lower, upper))
        .collect();
    arrives.sort_unstable();
    arrives.dedup();
    let gathers: Vec<u32> = arrives
        .chunk_by(|a, b| a.0 == b.0)
        .filter(|run| run.len() > request.limits.inputs as usize)
        .map(|run| run[0].0)
        .collect();
    if !gathers.is_empty() {
        for (i, drawn) in drawn.iter_mut().enumerate() {
            *drawn &= gathers.binary_search(&topology.ends(request, i).1).is_err();
        }
    }
    drawn
}
