//! Regions between a value that branches and the node where its branches meet again, innermost first.

use super::content::{Class, Content};
use super::flow::Role;
use super::level::{Level, Links, MainFlow, Member, Work};
use super::modules::{self, Join};
use super::tree::BlockKind;
use smallvec::SmallVec;

/// Regions with more items than this are not looked at: what they hold is grouped in other ways.
const LARGEST: usize = 400;
/// The same for spelled-out activations and normalisations.
const LARGEST_SMALL: usize = 16;

/// Which regions are wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scale {
    /// Activations and normalisations spelled out in elementwise operators.
    Elementwise,
    /// Attention, residuals, branches.
    Modules,
}

/// Immediate dominator of each item along the main flow; `None` where only the inputs dominate. Items stand in running
/// order, so one walk is enough: what dominates an item is where the ways up from all that it reads meet.
fn dominators(flow: &MainFlow) -> Vec<Option<u32>> {
    let mut dominators: Vec<Option<u32>> = vec![None; flow.active.len()];
    for (i, preds) in flow.preds.iter().enumerate() {
        // What reads an input besides can be reached around everything else.
        if flow.active[i] && !flow.fed[i] {
            let meet = |a: Option<u32>, b: &u32| common(&dominators, a?, *b);
            dominators[i] = preds.iter().skip(1).fold(preds.first().copied(), meet);
        }
    }
    dominators
}

/// The nearest item that dominates both or is one of them; a dominator stands before what it dominates.
fn common(dominators: &[Option<u32>], mut a: u32, mut b: u32) -> Option<u32> {
    while a != b {
        if a > b {
            a = dominators[a as usize]?;
        } else {
            b = dominators[b as usize]?;
        }
    }
    Some(a)
}

/// Items that were merged so far: each group is known by its last item, through which alone data leaves it.
struct Merged {
    of: Vec<u32>,
    members: Vec<SmallVec<[Member; 2]>>,
    content: Vec<Content>,
    /// Where data enters: producers outside of the group.
    entries: Vec<Links>,
    labels: Vec<&'static str>,
}

impl Merged {
    fn find(&mut self, mut i: u32) -> u32 {
        while self.of[i as usize] != i {
            let up = self.of[self.of[i as usize] as usize];
            self.of[i as usize] = up;
            i = up;
        }
        i
    }
}

/// Finds the regions of a level and puts those that are recognised into blocks; the new level.
pub(super) fn merge(work: &mut Work, level: Level, scale: Scale) -> Level {
    let n = level.items.len();
    let flow = &level.main;
    let idom = dominators(flow);
    let mut merged = Merged {
        of: (0..n as u32).collect(),
        members: level.items.iter().map(|i| SmallVec::from_slice(&[i.member])).collect(),
        content: level.items.iter().map(|i| i.content).collect(),
        entries: flow.preds.clone(),
        labels: level.items.iter().map(|i| i.label).collect(),
    };
    let mut stamp = vec![u32::MAX; n];
    let mut found = false;
    for j in 0..n as u32 {
        if flow.preds[j as usize].len() < 2 || is_scope(work, level.items[j as usize].member) {
            continue;
        }
        let Some(region) = region(work, &level, &mut merged, &mut stamp, j, idom[j as usize], scale) else {
            continue;
        };
        found |= close(work, &level, &mut merged, region, scale);
    }
    if !found {
        return level;
    }
    // The members of a merged item have moved to its group, or into a block there.
    work.level(merged.members.into_iter().flatten().collect())
}

fn is_scope(work: &Work, member: Member) -> bool {
    matches!(member, Member::Draft(d) if work.drafts[d as usize].kind == BlockKind::Scope)
}

struct Region {
    fork: Option<u32>,
    join: u32,
    /// Groups inside, the join first.
    groups: Vec<u32>,
}

/// Everything between a fork and a join, when data enters only from the fork and leaves only through the join.
fn region(
    work: &Work,
    level: &Level,
    merged: &mut Merged,
    stamp: &mut [u32],
    join: u32,
    fork: Option<u32>,
    scale: Scale,
) -> Option<Region> {
    let limit = if scale == Scale::Elementwise { LARGEST_SMALL } else { LARGEST };
    if let Some(f) = fork
        && merged.find(f) != f
    {
        return None;
    }
    stamp[join as usize] = join;
    let mut groups = vec![join];
    let mut stack = level.main.preds[join as usize].clone();
    while let Some(p) = stack.pop() {
        let g = merged.find(p);
        if Some(g) == fork || stamp[g as usize] == join {
            continue;
        }
        if is_scope(work, level.items[g as usize].member) || groups.len() >= limit {
            return None;
        }
        stamp[g as usize] = join;
        groups.push(g);
        stack.extend(merged.entries[g as usize].iter().copied());
    }
    for g in groups.iter().skip(1) {
        for s in &level.succs[*g as usize] {
            if level.items[*s as usize].role == Role::Main && stamp[merged.find(*s) as usize] != join {
                return None;
            }
        }
    }
    // A Split belongs to the branches that it makes.
    if let Some(f) = fork
        && work.class(&level.items[f as usize]) == Some(Class::Split)
        && level.main.succs[f as usize].iter().all(|s| stamp[merged.find(*s) as usize] == join)
    {
        groups.push(f);
    }
    Some(Region { fork, join, groups })
}

/// Merges a region when it is wanted; true when it became a block.
fn close(work: &mut Work, level: &Level, merged: &mut Merged, region: Region, scale: Scale) -> bool {
    let mut content = Content::NOTHING;
    for g in &region.groups {
        content.add(&merged.content[*g as usize]);
    }
    let join_preds = &level.main.preds[region.join as usize];
    let shortcut = region.fork.is_some_and(|f| {
        join_preds.contains(&f)
            || join_preds.iter().any(|p| {
                let g = merged.find(*p) as usize;
                merged.entries[g].as_slice() == [f]
                    && merged.content[g].of(Class::Conv) + merged.content[g].of(Class::MatMul) <= 1
            })
    });
    let labels = region.groups.iter().map(|g| merged.labels[*g as usize]).filter(|l| !l.is_empty()).collect();
    let Some(class) = work.class(&level.items[region.join as usize]) else { return false };
    let join = Join { class, content, labels, shortcut };
    let label = match scale {
        Scale::Elementwise => modules::elementwise(work, &join, &region.groups, level),
        Scale::Modules => modules::joined(&join),
    };
    if label.is_none() && (scale == Scale::Elementwise || region.fork.is_none()) {
        return false;
    }
    let exit = region.join as usize;
    let with_fork = region.fork.filter(|f| region.groups.contains(f));
    let entries = match (with_fork, region.fork) {
        (Some(f), _) => merged.entries[f as usize].clone(),
        (None, Some(f)) => Links::from_slice(&[f]),
        (None, None) => Links::new(),
    };
    // The longest list takes up the others, so that nested regions are not moved again and again.
    let longest = region.groups.iter().copied().max_by_key(|g| merged.members[*g as usize].len());
    let longest = longest.unwrap_or(region.join) as usize;
    let mut members = std::mem::take(&mut merged.members[longest]).into_vec();
    for g in &region.groups {
        members.extend(merged.members[*g as usize].drain(..));
        merged.of[*g as usize] = region.join;
    }
    merged.content[exit] = content;
    merged.entries[exit] = entries;
    merged.labels[exit] = label.unwrap_or("");
    merged.members[exit] = match label {
        Some(label) => {
            let kind = BlockKind::Module(label.into());
            let draft = work.draft(kind, label, label.into(), modules::FOUND.into(), members);
            SmallVec::from_slice(&[draft])
        }
        None => members.into(),
    };
    label.is_some()
}
