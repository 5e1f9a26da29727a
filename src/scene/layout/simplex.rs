//! Network simplex for ranks: least sum of weighted edge lengths (Gansner, Koutsofios, North, Vo 1993, section 2).

use super::adjacency::Adjacency;
use super::rank::Arc;
use super::{LayoutError, check};
use std::sync::atomic::AtomicBool;

const NONE: u32 = u32::MAX;

/// A spanning forest of tight arcs, rooted, with post-order numbers to answer "is below".
struct Forest {
    /// By box: the arc to its parent, or `NONE` for a root.
    parent_arc: Vec<u32>,
    /// Boxes, parents before children.
    preorder: Vec<u32>,
    low: Vec<u32>,
    limit: Vec<u32>,
}

/// Improves feasible ranks until they are optimal or the step limit is reached; ranks stay feasible throughout.
/// Parts that no arc connects begin at rank 0 each.
pub(super) fn tighten(arcs: &[Arc], rank: &mut [i64], cancel: &AtomicBool) -> Result<(), LayoutError> {
    let n = rank.len();
    let incident = Adjacency::new(
        n,
        (0..arcs.len() as u32).flat_map(|i| [(arcs[i as usize].upper, i), (arcs[i as usize].lower, i)]),
    );
    let mut in_tree = vec![false; arcs.len()];
    tight_forest(arcs, &incident, rank, &mut in_tree);
    let mut start = 0usize;
    for _ in 0..4 * n + 16 {
        check(cancel)?;
        let forest = root_forest(arcs, &incident, &in_tree, n);
        place_by_forest(arcs, &forest, rank);
        let cut = cut_values(arcs, &incident, &in_tree, &forest);
        // Searching on from where the last one was found spreads the exchanges and avoids going in circles.
        let leaving = (0..arcs.len()).map(|k| (start + k) % arcs.len()).find(|&i| in_tree[i] && cut[i] < 0);
        let Some(leaving) = leaving else { break };
        start = leaving + 1;
        let Some(entering) = entering_arc(arcs, rank, &in_tree, &forest, leaving) else { break };
        in_tree[leaving] = false;
        in_tree[entering] = true;
    }
    let forest = root_forest(arcs, &incident, &in_tree, n);
    place_by_forest(arcs, &forest, rank);
    level_parts(arcs, &forest, rank);
    Ok(())
}

fn slack(arcs: &[Arc], rank: &[i64], arc: usize) -> i64 {
    rank[arcs[arc].lower as usize] - rank[arcs[arc].upper as usize] - 1
}

/// Grows a tree over tight arcs from each part's first box; where it gets stuck the tree is moved by the least slack.
fn tight_forest(arcs: &[Arc], incident: &Adjacency<u32>, rank: &mut [i64], in_tree: &mut [bool]) {
    let n = rank.len();
    let mut tree_of = vec![NONE; n];
    for root in 0..n as u32 {
        if tree_of[root as usize] != NONE {
            continue;
        }
        tree_of[root as usize] = root;
        let mut members = vec![root];
        let mut grown = 0;
        loop {
            while grown < members.len() {
                let v = members[grown];
                grown += 1;
                for &i in incident.of(v) {
                    let arc = arcs[i as usize];
                    let other = if arc.upper == v { arc.lower } else { arc.upper };
                    if tree_of[other as usize] == NONE && slack(arcs, rank, i as usize) == 0 {
                        tree_of[other as usize] = root;
                        in_tree[i as usize] = true;
                        members.push(other);
                    }
                }
            }
            let nearest = members
                .iter()
                .flat_map(|&v| incident.of(v))
                .filter(|&&i| {
                    let arc = arcs[i as usize];
                    tree_of[arc.upper as usize] == NONE || tree_of[arc.lower as usize] == NONE
                })
                .min_by_key(|&&i| (slack(arcs, rank, i as usize), i));
            let Some(&nearest) = nearest else { break };
            let gap = slack(arcs, rank, nearest as usize);
            let shift = if tree_of[arcs[nearest as usize].lower as usize] == NONE { gap } else { -gap };
            for &v in &members {
                rank[v as usize] += shift;
            }
            grown = 0;
        }
    }
}

fn root_forest(arcs: &[Arc], incident: &Adjacency<u32>, in_tree: &[bool], n: usize) -> Forest {
    let mut forest = Forest {
        parent_arc: vec![NONE; n],
        preorder: Vec::with_capacity(n),
        low: vec![0; n],
        limit: vec![0; n],
    };
    let mut seen = vec![false; n];
    let mut stack: Vec<(u32, u32)> = Vec::new();
    let mut next = 0u32;
    for root in 0..n as u32 {
        if seen[root as usize] {
            continue;
        }
        seen[root as usize] = true;
        forest.preorder.push(root);
        forest.low[root as usize] = next;
        stack.push((root, 0));
        while let Some((v, child)) = stack.pop() {
            let Some(&i) = incident.of(v).get(child as usize) else {
                forest.limit[v as usize] = next;
                next += 1;
                continue;
            };
            stack.push((v, child + 1));
            if !in_tree[i as usize] {
                continue;
            }
            let arc = arcs[i as usize];
            let other = if arc.upper == v { arc.lower } else { arc.upper };
            if !seen[other as usize] {
                seen[other as usize] = true;
                forest.parent_arc[other as usize] = i;
                forest.preorder.push(other);
                forest.low[other as usize] = next;
                stack.push((other, 0));
            }
        }
    }
    forest
}

/// Every tree arc is tight: ranks follow from the roots'.
fn place_by_forest(arcs: &[Arc], forest: &Forest, rank: &mut [i64]) {
    for &v in &forest.preorder {
        let i = forest.parent_arc[v as usize];
        if i != NONE {
            let arc = arcs[i as usize];
            rank[v as usize] =
                if arc.lower == v { rank[arc.upper as usize] + 1 } else { rank[arc.lower as usize] - 1 };
        }
    }
}

/// By tree arc: weight of the arcs that cross its cut in its own direction, less those against it.
fn cut_values(arcs: &[Arc], incident: &Adjacency<u32>, in_tree: &[bool], forest: &Forest) -> Vec<i64> {
    let mut cut = vec![0i64; arcs.len()];
    for &v in forest.preorder.iter().rev() {
        let own = forest.parent_arc[v as usize];
        if own == NONE {
            continue;
        }
        let leaves_v = arcs[own as usize].upper == v;
        let mut value = arcs[own as usize].weight;
        for &i in incident.of(v) {
            if i == own {
                continue;
            }
            let same_way = (arcs[i as usize].upper == v) == leaves_v;
            let weight = arcs[i as usize].weight - if in_tree[i as usize] { cut[i as usize] } else { 0 };
            value += if same_way { weight } else { -weight };
        }
        cut[own as usize] = value;
    }
    cut
}

/// The arc of least slack that crosses the cut of `leaving` the other way round.
fn entering_arc(
    arcs: &[Arc],
    rank: &[i64],
    in_tree: &[bool],
    forest: &Forest,
    leaving: usize,
) -> Option<usize> {
    let arc = arcs[leaving];
    let child_is_upper = forest.parent_arc[arc.upper as usize] == leaving as u32;
    let child = if child_is_upper { arc.upper } else { arc.lower } as usize;
    let below = |v: u32| (forest.low[child]..=forest.limit[child]).contains(&forest.limit[v as usize]);
    (0..arcs.len())
        .filter(|&i| !in_tree[i])
        .filter(|&i| below(arcs[i].upper) != child_is_upper && below(arcs[i].lower) == child_is_upper)
        .min_by_key(|&i| (slack(arcs, rank, i), i))
}

/// Lets every connected part begin at rank 0.
fn level_parts(arcs: &[Arc], forest: &Forest, rank: &mut [i64]) {
    let mut root = vec![0u32; rank.len()];
    let mut least = vec![i64::MAX; rank.len()];
    for &v in &forest.preorder {
        let i = forest.parent_arc[v as usize];
        root[v as usize] = if i == NONE {
            v
        } else {
            let arc = arcs[i as usize];
            root[if arc.lower == v { arc.upper } else { arc.lower } as usize]
        };
        let r = root[v as usize] as usize;
        least[r] = least[r].min(rank[v as usize]);
    }
    for (v, r) in rank.iter_mut().enumerate() {
        *r -= least[root[v] as usize];
    }
}
