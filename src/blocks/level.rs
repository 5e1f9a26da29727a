//! One level of the hierarchy while it is being made: members, the edges between them, and grouping of members.

use super::content::{Class, Content, class_of};
use super::flow::{Flow, Role};
use super::tree::BlockKind;
use crate::facts::Facts;
use crate::ir::{Model, Node};
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Member of a block that is being made: a position of the flow, or an index among the drafts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Member {
    Node(u32),
    Draft(u32),
}

/// A block that is being made.
pub(super) struct Draft {
    pub kind: BlockKind,
    /// What it was recognised as; empty for scopes and parts.
    pub label: &'static str,
    pub name: String,
    pub note: String,
    pub members: Vec<Member>,
    pub content: Content,
    /// Position of its first computing node, else of its first node.
    pub first: u32,
}

/// Everything that making the blocks of one graph needs.
pub(super) struct Work<'a> {
    pub model: &'a Model,
    pub flow: &'a Flow,
    /// The nodes, by position: looked up once, because they are asked for again and again.
    nodes: Vec<&'a Node>,
    pub contents: Vec<Content>,
    /// Class of each node, by position.
    pub classes: Vec<Class>,
    pub drafts: Vec<Draft>,
    /// Item of the level in hand that holds a node, by position; `NONE` outside of it.
    owner: Vec<u32>,
}

const NONE: u32 = u32::MAX;

/// Members to be put into a block of their own.
pub(super) struct Group {
    pub label: &'static str,
    pub kind: BlockKind,
    pub name: String,
    pub note: String,
    /// Items of the level; at least two.
    pub items: Vec<u32>,
    /// Blocks among the items are parts of the same thing: their members go into the group directly.
    pub flat: bool,
}

impl Group {
    /// A module recognised by its operators.
    pub fn module(label: &'static str, items: Vec<u32>) -> Group {
        let kind = BlockKind::Module(label.into());
        Group { label, kind, name: label.into(), note: super::modules::FOUND.into(), items, flat: false }
    }
}

/// Items that one item is linked to; mostly few, and there are many lists.
pub(super) type Links = SmallVec<[u32; 4]>;

/// Member of a level with what is known of it.
pub(super) struct Item {
    pub member: Member,
    pub label: &'static str,
    pub role: Role,
    pub content: Content,
}

/// Members of a block in running order, with edges.
pub(super) struct Level {
    pub items: Vec<Item>,
    /// Items that each reads from, ascending; only forward edges.
    pub preds: Vec<Links>,
    pub succs: Vec<Links>,
    /// Items on cycles with others: blocks that are left and entered again.
    pub tangled: Vec<u32>,
    /// The data flow without constants, shape arithmetic, and values that many far items read.
    pub main: MainFlow,
}

/// See [`Level::main`].
#[derive(Default)]
pub(super) struct MainFlow {
    /// By item: carries data from the inputs on.
    pub active: Vec<bool>,
    /// By item: reads a formal input, or a value from outside of the level, that is not one that many far items read.
    pub fed: Vec<bool>,
    pub preds: Vec<Links>,
    pub succs: Vec<Links>,
}

impl<'a> Work<'a> {
    pub fn new(model: &'a Model, facts: &Facts, flow: &'a Flow) -> Work<'a> {
        let nodes: Vec<&Node> = flow.ids.iter().map(|id| &**model.node(*id)).collect();
        let classes: Vec<Class> = nodes.iter().map(|node| class_of(node)).collect();
        let contents = super::content::contents(model, facts, flow, &classes);
        Work { model, flow, nodes, contents, classes, drafts: Vec::new(), owner: vec![NONE; flow.len()] }
    }

    pub fn node(&self, position: u32) -> &'a Node {
        self.nodes[position as usize]
    }

    /// Class of a member that is one node.
    pub fn class(&self, item: &Item) -> Option<Class> {
        match item.member {
            Member::Node(at) => Some(self.classes[at as usize]),
            Member::Draft(_) => None,
        }
    }

    /// The node that a member is.
    pub fn only_node(&self, member: Member) -> Option<&'a Node> {
        match member {
            Member::Node(at) => Some(self.node(at)),
            Member::Draft(_) => None,
        }
    }

    /// Positions of all nodes in a member.
    pub fn positions(&self, member: Member) -> Vec<u32> {
        let mut found = Vec::new();
        self.visit(member, |at| found.push(at));
        found
    }

    /// Calls for the position of each node in a member.
    pub fn visit(&self, member: Member, mut call: impl FnMut(u32)) {
        let mut stack: SmallVec<[Member; 16]> = SmallVec::from_slice(&[member]);
        while let Some(m) = stack.pop() {
            match m {
                Member::Node(at) => call(at),
                Member::Draft(d) => stack.extend(self.drafts[d as usize].members.iter().copied()),
            }
        }
    }

    pub fn content(&self, member: Member) -> Content {
        match member {
            Member::Node(at) => self.contents[at as usize],
            Member::Draft(d) => self.drafts[d as usize].content,
        }
    }

    pub fn first(&self, member: Member) -> u32 {
        match member {
            Member::Node(at) => at,
            Member::Draft(d) => self.drafts[d as usize].first,
        }
    }

    /// Orders members of a block: computing ones say where it stands, weights and constants may be listed anywhere.
    fn rank(&self, member: Member) -> (u8, u32) {
        let content = self.content(member);
        let rank = if content.main > 0 {
            0
        } else if content.shown > 0 {
            1
        } else {
            2
        };
        (rank, self.first(member))
    }

    /// Makes a block of these members.
    pub fn draft(
        &mut self,
        kind: BlockKind,
        label: &'static str,
        name: String,
        note: String,
        members: Vec<Member>,
    ) -> Member {
        let mut content = Content::NOTHING;
        for m in &members {
            content.add(&self.content(*m));
        }
        let first = members.iter().map(|m| self.rank(*m)).min().map_or(0, |(_, first)| first);
        self.drafts.push(Draft { kind, label, name, note, members, content, first });
        Member::Draft(self.drafts.len() as u32 - 1)
    }

    /// Adds a member to a block that was made before; blocks around it must be told by the caller.
    pub fn absorb(&mut self, draft: u32, member: Member) {
        let (content, added, own) =
            (self.content(member), self.rank(member), self.rank(Member::Draft(draft)));
        let into = &mut self.drafts[draft as usize];
        into.members.push(member);
        into.content.add(&content);
        into.first = added.min(own).1;
    }

    fn item(&self, member: Member) -> Item {
        let content = self.content(member);
        let label = match member {
            Member::Node(_) => "",
            Member::Draft(d) => self.drafts[d as usize].label,
        };
        let role = match member {
            Member::Node(at) => self.flow.roles[at as usize],
            Member::Draft(_) if content.main > 0 => Role::Main,
            Member::Draft(_) if content.shown > 0 => Role::Side,
            Member::Draft(_) => Role::Constant,
        };
        Item { member, label, role, content }
    }

    /// The level of these members.
    pub fn level(&mut self, mut members: Vec<Member>) -> Level {
        members.sort_by_key(|m| self.first(*m));
        // Nodes of all members, and where each member's begin.
        let mut positions: Vec<u32> = Vec::with_capacity(members.len());
        let mut begins: Vec<usize> = Vec::with_capacity(members.len() + 1);
        for member in &members {
            begins.push(positions.len());
            self.visit(*member, |at| positions.push(at));
        }
        begins.push(positions.len());
        let own = |i: usize| &positions[begins[i]..begins[i + 1]];
        let n = members.len();
        for i in 0..n {
            own(i).iter().for_each(|at| self.owner[*at as usize] = i as u32);
        }
        let mut succs: Vec<Links> = vec![Links::new(); n];
        for (i, list) in succs.iter_mut().enumerate() {
            for at in own(i) {
                let to = self.flow.succs[*at as usize].iter().map(|s| self.owner[*s as usize]);
                list.extend(to.filter(|o| *o != NONE && *o != i as u32));
            }
            list.sort_unstable();
            list.dedup();
        }
        let (order, tangled) = running_order(&succs);
        let mut place = vec![0u32; n];
        for (k, i) in order.iter().enumerate() {
            place[*i as usize] = k as u32;
        }
        let items: Vec<Item> = order.iter().map(|i| self.item(members[*i as usize])).collect();
        let mut forward: Vec<Links> = vec![Links::new(); n];
        let mut preds: Vec<Links> = vec![Links::new(); n];
        for (i, list) in succs.iter().enumerate() {
            let from = place[i];
            for to in list.iter().map(|s| place[*s as usize]).filter(|to| *to > from) {
                forward[from as usize].push(to);
            }
        }
        for (from, list) in forward.iter_mut().enumerate() {
            list.sort_unstable();
            for to in list.iter() {
                preds[*to as usize].push(from as u32);
            }
        }
        let inputs = self.input_readers(&positions, &place);
        positions.iter().for_each(|at| self.owner[*at as usize] = NONE);
        let mut tangled: Vec<u32> = tangled.iter().map(|i| place[*i as usize]).collect();
        tangled.sort_unstable();
        let main = main_flow(&items, &preds, &forward, &inputs);
        Level { items, preds, succs: forward, tangled, main }
    }

    /// Items of the level that read each formal input or a value from outside of the level, ascending.
    fn input_readers(&self, positions: &[u32], place: &[u32]) -> Vec<Vec<u32>> {
        let mut readers: std::collections::BTreeMap<(bool, u32), Vec<u32>> = Default::default();
        for at in positions.iter().filter(|at| self.flow.roles[**at as usize] == Role::Main) {
            let reader = place[self.owner[*at as usize] as usize];
            for input in &self.flow.inputs[*at as usize] {
                readers.entry((true, *input)).or_default().push(reader);
            }
            for p in &self.flow.preds[*at as usize] {
                if self.owner[*p as usize] == NONE && self.flow.roles[*p as usize] == Role::Main {
                    readers.entry((false, *p)).or_default().push(reader);
                }
            }
        }
        let mut lists: Vec<Vec<u32>> = readers.into_values().collect();
        for list in &mut lists {
            list.sort_unstable();
            list.dedup();
        }
        lists
    }

    /// Puts groups of a level's items into blocks of their own; the new level.
    pub fn contract(&mut self, level: Level, groups: Vec<Group>) -> Level {
        if groups.is_empty() {
            return level;
        }
        let mut taken = vec![false; level.items.len()];
        let mut members = Vec::new();
        for group in groups {
            debug_assert!(group.items.iter().all(|i| !taken[*i as usize]), "groups do not overlap");
            let mut inner = Vec::with_capacity(group.items.len());
            for i in &group.items {
                taken[*i as usize] = true;
                match level.items[*i as usize].member {
                    Member::Draft(d) if group.flat => inner.append(&mut self.drafts[d as usize].members),
                    member => inner.push(member),
                }
            }
            members.push(self.draft(group.kind, group.label, group.name, group.note, inner));
        }
        let rest = level.items.iter().enumerate().filter(|(i, _)| !taken[*i]).map(|(_, item)| item.member);
        members.extend(rest);
        self.level(members)
    }
}

impl Level {
    pub fn members(&self) -> Vec<Member> {
        self.items.iter().map(|i| i.member).collect()
    }

    /// Items that compute from data.
    pub fn crowd(&self) -> usize {
        self.items.iter().filter(|i| i.role == Role::Main).count()
    }

    /// Items that are drawn as boxes.
    pub fn shown(&self) -> usize {
        self.items.iter().filter(|i| i.role != Role::Constant).count()
    }

    /// The only item that reads this one's data.
    pub fn only_succ(&self, item: u32) -> Option<u32> {
        match self.main.succs.get(item as usize)?.as_slice() {
            [one] => Some(*one),
            _ => None,
        }
    }

    /// The only item whose data this one reads.
    pub fn only_pred(&self, item: u32) -> Option<u32> {
        match self.main.preds.get(item as usize)?.as_slice() {
            [one] => Some(*one),
            _ => None,
        }
    }

    /// The next item of an unbranched chain.
    pub fn next_in_chain(&self, item: u32) -> Option<u32> {
        self.only_succ(item).filter(|s| self.only_pred(*s) == Some(item))
    }
}

/// Items by running order, the earliest first wherever there is a choice, and the items that stand on cycles.
fn running_order(succs: &[Links]) -> (Vec<u32>, Vec<u32>) {
    let n = succs.len();
    let mut waiting = vec![0u32; n];
    for to in succs.iter().flatten() {
        waiting[*to as usize] += 1;
    }
    let mut ready: BinaryHeap<Reverse<u32>> =
        (0..n as u32).filter(|i| waiting[*i as usize] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(n);
    let mut done = vec![false; n];
    let mut next_stuck = 0usize;
    let mut stuck = false;
    while order.len() < n {
        let i = match ready.pop() {
            Some(Reverse(i)) => i,
            None => {
                // Only cycles are left: go on with the earliest.
                stuck = true;
                while done[next_stuck] {
                    next_stuck += 1;
                }
                next_stuck as u32
            }
        };
        if std::mem::replace(&mut done[i as usize], true) {
            continue;
        }
        order.push(i);
        for to in &succs[i as usize] {
            waiting[*to as usize] -= 1;
            if waiting[*to as usize] == 0 && !done[*to as usize] {
                ready.push(Reverse(*to));
            }
        }
    }
    let tangled = if stuck { on_cycles(succs) } else { Vec::new() };
    (order, tangled)
}

fn on_cycles(succs: &[Links]) -> Vec<u32> {
    let mut graph = petgraph::graph::DiGraph::<(), ()>::with_capacity(succs.len(), succs.len());
    let at: Vec<_> = succs.iter().map(|_| graph.add_node(())).collect();
    for (from, list) in succs.iter().enumerate() {
        for to in list {
            graph.add_edge(at[from], at[*to as usize], ());
        }
    }
    let parts = petgraph::algo::kosaraju_scc(&graph);
    parts.into_iter().filter(|p| p.len() > 1).flatten().map(|i| i.index() as u32).collect()
}

/// A value with this many readers, spread over [`FAR`] of a level, is not part of the level's main flow.
const MANY_READERS: usize = 5;
const FAR: f32 = 0.3;
/// Levels smaller than this are looked at whole.
const SMALL: usize = 24;

fn main_flow(items: &[Item], preds: &[Links], succs: &[Links], inputs: &[Vec<u32>]) -> MainFlow {
    let n = items.len();
    let is_main = |i: &u32| items[*i as usize].role == Role::Main;
    let far = |readers: &[u32], many: usize| {
        let span = readers.last().unwrap_or(&0) - readers.first().unwrap_or(&0);
        n > SMALL && readers.len() >= many && span as f32 > FAR * n as f32
    };
    let mut fed = vec![false; n];
    let mut sourced = vec![false; n];
    for readers in inputs {
        let distant = far(readers, 3);
        for r in readers {
            sourced[*r as usize] = true;
            fed[*r as usize] |= !distant;
        }
    }
    // When all inputs are such, the flow begins where they are read first.
    if !fed.contains(&true) {
        inputs.iter().filter_map(|r| r.first()).for_each(|r| fed[*r as usize] = true);
    }
    let mut flow =
        MainFlow { active: vec![false; n], fed, preds: vec![Links::new(); n], succs: vec![Links::new(); n] };
    for i in 0..n {
        if items[i].role != Role::Main {
            continue;
        }
        // Data from nowhere (random numbers, say) starts a flow too.
        let begins = !sourced[i] && !preds[i].iter().any(is_main);
        if !(flow.fed[i] || begins || !flow.preds[i].is_empty()) {
            continue;
        }
        flow.active[i] = true;
        let readers: Links = succs[i].iter().copied().filter(is_main).collect();
        if !far(&readers, MANY_READERS) {
            for r in &readers {
                flow.preds[*r as usize].push(i as u32);
            }
            flow.succs[i] = readers;
        }
    }
    flow
}
