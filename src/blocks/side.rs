//! Where constants and shape arithmetic sit: with their readers, else together in a block of their own.

use super::flow::Role;
use super::level::{Group, Level, Member, Work};
use super::tree::BlockKind;
use rustc_hash::FxHashMap;

/// Labels of blocks of shape arithmetic, and of weights in preparation.
const WEIGHTS: &str = "weights";
const SHAPES: &str = "shapes";

const NOWHERE: u32 = u32::MAX;

/// Moves loose nodes that are not part of the main flow into the innermost found block that holds all of their readers;
/// the members that the level has then, when there is such a block.
pub(super) fn seat(work: &mut Work, level: &Level) -> Option<Vec<Member>> {
    let found =
        |m: &Member| matches!(m, Member::Draft(d) if work.drafts[*d as usize].kind != BlockKind::Scope);
    if !level.items.iter().any(|i| found(&i.member)) {
        return None;
    }
    // Blocks of this level, found ones opened: the block around each node and block.
    let mut home: FxHashMap<u32, u32> = FxHashMap::default();
    let mut outer: FxHashMap<u32, u32> = FxHashMap::default();
    let mut stack: Vec<(Member, u32)> = level.items.iter().map(|i| (i.member, NOWHERE)).collect();
    while let Some((member, around)) = stack.pop() {
        match member {
            Member::Node(at) => {
                home.insert(at, around);
            }
            Member::Draft(d) if work.drafts[d as usize].kind == BlockKind::Scope => {
                work.positions(member).into_iter().for_each(|at| {
                    home.insert(at, around);
                });
                outer.insert(d, around);
            }
            Member::Draft(d) => {
                outer.insert(d, around);
                stack.extend(work.drafts[d as usize].members.iter().map(|m| (*m, d)));
            }
        }
    }
    let path = |mut at: u32, outer: &FxHashMap<u32, u32>| {
        let mut path = vec![at];
        while at != NOWHERE {
            at = outer.get(&at).copied().unwrap_or(NOWHERE);
            path.push(at);
        }
        path
    };
    let mut rest = Vec::new();
    for (i, item) in level.items.iter().enumerate().rev() {
        let Member::Node(at) = item.member else {
            rest.push(item.member);
            continue;
        };
        let loose = item.role != Role::Main || !level.main.active[i];
        let mut common: Option<Vec<u32>> = None;
        if loose {
            for reader in &work.flow.succs[at as usize] {
                let around = path(home.get(reader).copied().unwrap_or(NOWHERE), &outer);
                common = Some(match common {
                    None => around,
                    Some(c) => c.into_iter().filter(|d| around.contains(d)).collect(),
                });
            }
        }
        let seat = common.and_then(|c| c.first().copied()).unwrap_or(NOWHERE);
        if seat == NOWHERE {
            rest.push(item.member);
            continue;
        }
        home.insert(at, seat);
        work.absorb(seat, item.member);
        let content = work.content(item.member);
        for d in path(seat, &outer).into_iter().skip(1).filter(|d| *d != NOWHERE) {
            work.drafts[d as usize].content.add(&content);
        }
    }
    Some(rest)
}

/// Shape arithmetic and weights in preparation that no single block reads, as blocks of their own.
pub(super) fn groups(work: &Work, level: &Level) -> Vec<Group> {
    let n = level.items.len();
    let is_side =
        |i: u32| level.items[i as usize].role == Role::Side && level.items[i as usize].label.is_empty();
    // Connected pieces of side items.
    let mut piece = vec![NOWHERE; n];
    let mut pieces: Vec<Vec<u32>> = Vec::new();
    for start in (0..n as u32).filter(|i| is_side(*i)) {
        if piece[start as usize] != NOWHERE {
            continue;
        }
        let id = pieces.len() as u32;
        let mut found = Vec::new();
        let mut stack = vec![start];
        piece[start as usize] = id;
        while let Some(i) = stack.pop() {
            found.push(i);
            for next in level.preds[i as usize].iter().chain(&level.succs[i as usize]) {
                if is_side(*next) && piece[*next as usize] == NOWHERE {
                    piece[*next as usize] = id;
                    stack.push(*next);
                }
            }
        }
        found.sort_unstable();
        pieces.push(found);
    }
    let main = |i: &&u32| level.items[**i as usize].role == Role::Main;
    let mut first: Vec<u32> = Vec::new();
    let mut groups = Vec::new();
    for items in pieces {
        let fed = items.iter().flat_map(|i| level.preds[*i as usize].iter().filter(main)).max();
        let read = items.iter().flat_map(|i| level.succs[*i as usize].iter().filter(main)).min();
        match (fed, read) {
            (None, _) => first.extend(items),
            // Only where no reader comes before what is read: the block must not be left and entered again.
            (Some(fed), read) if items.len() > 2 && read.is_none_or(|r| r > fed) => {
                groups.push(group(work, level, items))
            }
            _ => {}
        }
    }
    if first.len() > 2 {
        first.sort_unstable();
        groups.push(group(work, level, first));
    }
    groups
}

fn group(work: &Work, level: &Level, items: Vec<u32>) -> Group {
    let measures = |i: &u32| {
        let positions = work.positions(level.items[*i as usize].member);
        positions.iter().any(|at| matches!(&*work.node(*at).op_type, "Shape" | "Size"))
    };
    let label = if items.iter().any(measures) { SHAPES } else { WEIGHTS };
    Group {
        label,
        kind: BlockKind::Region,
        name: label.into(),
        note: "does not depend on data".into(),
        items,
        flat: false,
    }
}
