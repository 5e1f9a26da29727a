//! Scopes that are left and entered again (a module that is called several times) become one block a call.

use super::flow::Role;
use super::level::{Level, Member, Work};

/// Steps after which a level is left as it is: scopes times nodes.
const BUDGET: usize = 20_000_000;

/// The members of a level with its tangled scopes split.
pub(super) fn split(work: &mut Work, level: &Level) -> Vec<Member> {
    let mut positions: Vec<u32> = level.items.iter().flat_map(|i| work.positions(i.member)).collect();
    positions.sort_unstable();
    let mut entered = vec![0u32; work.flow.len()];
    let mut inside = vec![false; work.flow.len()];
    let mut spent = 0;
    let mut members = Vec::new();
    for (i, item) in level.items.iter().enumerate() {
        let tangled = level.tangled.binary_search(&(i as u32)).is_ok();
        spent += if tangled { positions.len() } else { 0 };
        let Member::Draft(d) = item.member else {
            members.push(item.member);
            continue;
        };
        if !tangled || spent > BUDGET {
            members.push(item.member);
            continue;
        }
        let own = work.positions(item.member);
        own.iter().for_each(|at| inside[*at as usize] = true);
        let calls = count_entries(work, &positions, &inside, &mut entered);
        own.iter().for_each(|at| inside[*at as usize] = false);
        if calls <= 1 {
            members.push(item.member);
        } else {
            let name = work.drafts[d as usize].name.clone();
            for call in 1..=calls {
                if let Some(Member::Draft(piece)) = restrict(work, item.member, &entered, call, &mut members)
                {
                    if call > 1 {
                        work.drafts[piece as usize].name = format!("{name} call {call}");
                    }
                    members.push(Member::Draft(piece));
                }
            }
        }
    }
    members
}

/// Numbers each node of a scope by how often the scope has been entered on the way to it; the largest number.
/// Nodes outside carry the number of the scope's nodes before them.
fn count_entries(work: &Work, positions: &[u32], inside: &[bool], entered: &mut [u32]) -> u32 {
    let flow = work.flow;
    let mut most = 0;
    positions.iter().for_each(|at| entered[*at as usize] = 0);
    for at in positions.iter().map(|p| *p as usize) {
        let mut count = u32::from(inside[at]);
        if flow.roles[at] == Role::Main {
            for p in flow.preds[at].iter().map(|p| *p as usize).filter(|p| flow.roles[*p] == Role::Main) {
                let again = inside[at] && !inside[p] && entered[p] > 0;
                count = count.max(entered[p] + u32::from(again));
            }
        }
        entered[at] = count;
        most = most.max(if inside[at] { count } else { 0 });
    }
    // Constants and shape arithmetic go with their readers.
    for at in
        positions.iter().rev().map(|p| *p as usize).filter(|at| inside[*at] && flow.roles[*at] != Role::Main)
    {
        let readers = flow.succs[at].iter().filter(|s| inside[**s as usize]);
        entered[at] = readers.map(|s| entered[*s as usize]).min().unwrap_or(1).max(1);
    }
    most
}

/// The part of a block with the nodes of one call; a single node goes into `loose` instead.
fn restrict(
    work: &mut Work,
    member: Member,
    entered: &[u32],
    call: u32,
    loose: &mut Vec<Member>,
) -> Option<Member> {
    let Member::Draft(d) = member else { return None };
    let members = restricted(work, d, entered, call);
    let shown = members.iter().filter(|m| work.content(**m).shown > 0).count();
    if shown <= 1 {
        loose.extend(members);
        return None;
    }
    let (kind, label, name, note) = {
        let draft = &work.drafts[d as usize];
        (draft.kind.clone(), draft.label, draft.name.clone(), draft.note.clone())
    };
    Some(work.draft(kind, label, name, note, members))
}

fn restricted(work: &mut Work, draft: u32, entered: &[u32], call: u32) -> Vec<Member> {
    let inner = work.drafts[draft as usize].members.clone();
    let mut kept = Vec::new();
    for m in inner {
        match m {
            Member::Node(at) if entered[at as usize] == call => kept.push(m),
            Member::Node(_) => {}
            Member::Draft(_) => {
                if let Some(piece) = restrict(work, m, entered, call, &mut kept) {
                    kept.push(piece);
                }
            }
        }
    }
    kept
}
