//! The hierarchy of one graph: scopes, then modules, repeats and parts inside whatever is still crowded.

use super::content::Class;
use super::flow::Role;
use super::joins::{self, Scale};
use super::level::{Group, Level, Member, Work};
use super::scopes::{Origin, ROOT, Scopes};
use super::tree::BlockKind;
use super::{cut, modules, side, untangle};
use std::collections::BTreeMap;

/// From this many computing nodes on that stand loose in a level, modules are looked for among them.
const LOOSE: usize = 18;
/// The same in a graph without any scopes.
const LOOSE_UNSCOPED: usize = 9;
/// A level keeps its minor modules as blocks when it would have more members than this without them.
const ROOMY: usize = 14;
/// From this many computing members on, repeated sequences of operators are looked for.
const REPEATING: usize = 26;

/// Members of a graph's own block, made of its scopes and structure.
pub(super) fn members(work: &mut Work, scopes: &Scopes) -> Vec<Member> {
    let n = scopes.scopes.len();
    let mut of_scope: Vec<Vec<Member>> = vec![Vec::new(); n];
    for (at, scope) in scopes.of.iter().enumerate() {
        of_scope[*scope as usize].push(Member::Node(at as u32));
    }
    // A scope was made after the one around it: from the last to the first, insides come before outsides.
    for s in (1..n).rev() {
        let inner = std::mem::take(&mut of_scope[s]);
        if inner.is_empty() {
            continue;
        }
        let scope = &scopes.scopes[s];
        let inner = structure(work, inner, false, scopes.origin);
        let outer = &mut of_scope[scope.parent as usize];
        match only_member(work, &inner) {
            // A box around one thing says nothing that the thing does not.
            Some(Member::Node(_)) => outer.extend(inner),
            Some(Member::Draft(d)) => {
                let rest = inner.iter().copied().filter(|m| *m != Member::Draft(d));
                rest.for_each(|m| work.absorb(d, m));
                let draft = &mut work.drafts[d as usize];
                if draft.kind == BlockKind::Scope {
                    draft.name = format!("{}/{}", scope.name, draft.name);
                } else {
                    draft.note = format!("{}, {}", draft.name, draft.note);
                    draft.name = scope.name.to_string();
                    draft.kind = BlockKind::Scope;
                    draft.label = "";
                }
                outer.push(Member::Draft(d));
            }
            None => {
                let draft =
                    work.draft(BlockKind::Scope, "", scope.name.to_string(), scope.class.to_string(), inner);
                outer.push(draft);
            }
        }
    }
    let mut top = std::mem::take(&mut of_scope[ROOT as usize]);
    // The graph itself is the box around a single outermost scope.
    while let Some(Member::Draft(d)) = only_member(work, &top) {
        top.retain(|m| *m != Member::Draft(d));
        top.append(&mut work.drafts[d as usize].members);
    }
    structure(work, top, true, scopes.origin)
}

/// The only member that is not a constant.
fn only_member(work: &Work, members: &[Member]) -> Option<Member> {
    let mut shown = members.iter().filter(|m| work.content(**m).shown > 0);
    shown.next().copied().filter(|_| shown.next().is_none())
}

/// Gives a level its structure; the members it has then.
fn structure(work: &mut Work, members: Vec<Member>, top: bool, origin: Origin) -> Vec<Member> {
    let mut level = work.level(members);
    if !level.tangled.is_empty() {
        let members = untangle::split(work, &level);
        level = work.level(members);
    }
    if let Some(group) = modules::feed_forward_scopes(&level) {
        level = work.contract(level, vec![group]);
    }
    let loose =
        level.items.iter().filter(|i| i.role == Role::Main && matches!(i.member, Member::Node(_))).count();
    let limit = if origin == Origin::Nothing && top { LOOSE_UNSCOPED } else { LOOSE };
    if loose >= limit {
        level = recognise(work, level);
    }
    if top {
        let prepared = prepared_inputs(work, &level);
        level = work.contract(level, prepared);
    }
    let members = divide(work, level, 3, 0);
    dissolve(work, members)
}

/// Finds modules among the loose nodes of a level.
fn recognise(work: &mut Work, mut level: Level) -> Level {
    level = joins::merge(work, level, Scale::Elementwise);
    let groups = modules::finish_elementwise(work, &level);
    level = work.contract(level, groups);
    let groups = modules::convolutions(work, &level);
    level = work.contract(level, groups);
    level = joins::merge(work, level, Scale::Modules);
    let groups = modules::chains(work, &level);
    level = work.contract(level, groups);
    modules::take_followers(work, level)
}

/// Cuts what is still crowded into repeats and parts, and seats constants and shape arithmetic with their readers.
/// `times`: how often a sequence must repeat to be cut at its repeats; `depth`: how often that was done around it.
fn divide(work: &mut Work, mut level: Level, times: usize, depth: usize) -> Vec<Member> {
    if level.crowd() >= REPEATING {
        let groups = cut::repeats(work, &level, times);
        level = work.contract(level, groups);
    }
    if let Some(members) = side::seat(work, &level) {
        level = work.level(members);
    }
    // Where nothing else is done, shape arithmetic is the matter itself.
    if level.crowd() > 0 {
        let groups = side::groups(work, &level);
        level = work.contract(level, groups);
    }
    number(work, &level);
    if level.shown() > cut::CROWDED {
        let groups = cut::rows(work, &level);
        level = work.contract(level, groups);
    }
    if level.shown() > cut::CROWDED {
        let groups = cut::parts(work, &level);
        level = work.contract(level, groups);
        number(work, &level);
    }
    let members = level.members();
    members.iter().for_each(|m| refine(work, *m, depth));
    members
}

/// Divides blocks that were found, and those inside them, where they are crowded themselves.
fn refine(work: &mut Work, member: Member, depth: usize) {
    let Member::Draft(d) = member else { return };
    let draft = &work.drafts[d as usize];
    if draft.kind == BlockKind::Scope || depth >= cut::DEEPEST {
        return;
    }
    let repeated = [cut::LAYER, cut::STEP].contains(&draft.label);
    if draft.members.len() >= REPEATING {
        let inner = std::mem::take(&mut work.drafts[d as usize].members);
        let inner = work.level(inner);
        let crowded = inner.shown() > cut::CROWDED || (repeated && inner.crowd() >= REPEATING);
        if crowded {
            let members = divide(work, inner, if repeated { 2 } else { 3 }, depth + 1);
            work.drafts[d as usize].members = members;
            return;
        }
        work.drafts[d as usize].members = inner.members();
    }
    for inner in work.drafts[d as usize].members.clone() {
        refine(work, inner, depth);
    }
}

/// Numbers found blocks of the same name, from 1 in the order in which they are shown.
fn number(work: &mut Work, level: &Level) {
    let mut found: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for item in &level.items {
        if let Member::Draft(d) = item.member {
            let draft = &work.drafts[d as usize];
            if draft.name == draft.label || (draft.kind == BlockKind::Part && draft.name == cut::PART) {
                found.entry(draft.name.clone()).or_default().push(d);
            }
        }
    }
    found.retain(|_, drafts| drafts.len() > 1);
    for (name, mut drafts) in found {
        drafts.sort_by_key(|d| work.drafts[*d as usize].first);
        for (k, d) in drafts.into_iter().enumerate() {
            work.drafts[d as usize].name = format!("{name} {}", k + 1);
        }
    }
}

/// What preparing an input takes: no layers.
const PREPARING: [Option<Class>; 11] = [
    Some(Class::Layout),
    Some(Class::Transpose),
    Some(Class::Add),
    Some(Class::Sub),
    Some(Class::Mul),
    Some(Class::Div),
    Some(Class::Slice),
    Some(Class::Concat),
    Some(Class::Split),
    Some(Class::Clip),
    Some(Class::Other),
];

/// Loose nodes that only prepare formal inputs (a mask made from token flags, say), in blocks called after the inputs.
fn prepared_inputs(work: &Work, level: &Level) -> Vec<Group> {
    let has_scope = level.items.iter().any(|i| matches!(i.member, Member::Draft(_)) && i.content.main > 0);
    if !has_scope {
        return Vec::new();
    }
    let n = level.items.len();
    let mut prepares = vec![false; n];
    let mut part: Vec<usize> = (0..n).collect();
    for i in 0..n {
        let mains: Vec<usize> = level.preds[i]
            .iter()
            .map(|p| *p as usize)
            .filter(|p| level.items[*p].role == Role::Main)
            .collect();
        prepares[i] = level.items[i].role == Role::Main
            && matches!(level.items[i].member, Member::Node(at) if !mains.is_empty() || !work.flow.inputs[at as usize].is_empty())
            && PREPARING.contains(&work.class(&level.items[i]))
            && mains.iter().all(|p| prepares[*p]);
        if prepares[i] {
            let root = mains.iter().map(|p| part[*p]).chain([i]).min().unwrap_or(i);
            let joined: Vec<usize> = mains.iter().map(|p| part[*p]).collect();
            part[i] = root;
            part[..i].iter_mut().filter(|p| joined.contains(p)).for_each(|p| *p = root);
        }
    }
    let mut parts: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    for i in (0..n).filter(|i| prepares[*i]) {
        parts.entry(part[i]).or_default().push(i as u32);
    }
    parts.retain(|_, items| items.len() > 2);
    parts.into_values().map(|items| prepared(work, level, items)).collect()
}

fn prepared(work: &Work, level: &Level, items: Vec<u32>) -> Group {
    let mut inputs: Vec<u32> = items
        .iter()
        .flat_map(|i| work.positions(level.items[*i as usize].member))
        .flat_map(|at| work.flow.inputs[at as usize].to_vec())
        .collect();
    inputs.sort_unstable();
    inputs.dedup();
    let ports = &work.model.graph(work.flow.graph).inputs;
    let name = match inputs.as_slice() {
        [one] => {
            ports.get(*one as usize).and_then(|p| work.model.get_value(p.value)).map(|v| v.name.to_string())
        }
        _ => None,
    };
    Group {
        label: "",
        kind: BlockKind::Region,
        name: name.unwrap_or_else(|| "inputs".into()),
        note: "prepares inputs".into(),
        items,
        flat: false,
    }
}

/// Puts the members of minor modules back where the level stays readable with them.
fn dissolve(work: &mut Work, members: Vec<Member>) -> Vec<Member> {
    for m in &members {
        if let Member::Draft(d) = *m
            && matches!(
                work.drafts[d as usize].kind,
                BlockKind::Module(_) | BlockKind::Part | BlockKind::Region
            )
        {
            let inner = std::mem::take(&mut work.drafts[d as usize].members);
            work.drafts[d as usize].members = dissolve(work, inner);
        }
    }
    let minor = |work: &Work, m: &Member| match m {
        Member::Draft(d) => modules::is_minor(work.drafts[*d as usize].label),
        Member::Node(_) => false,
    };
    let size = |work: &Work, m: &Member| match m {
        Member::Draft(d) if minor(work, m) => {
            work.drafts[*d as usize].members.iter().filter(|m| work.content(**m).shown > 0).count()
        }
        m => usize::from(work.content(*m).shown > 0),
    };
    let roomy = members.iter().map(|m| size(work, m)).sum::<usize>() <= ROOMY;
    let mut out = Vec::with_capacity(members.len());
    for m in members {
        match m {
            Member::Draft(d)
                if minor(work, &m) && (roomy || work.drafts[d as usize].label == modules::CENTRED) =>
            {
                out.append(&mut work.drafts[d as usize].members);
            }
            m => out.push(m),
        }
    }
    out
}
