//! Cutting a level along its running order: into repeats of one sequence of operators, or into parts of even size.

use super::content::Class;
use super::flow::Role;
use super::level::{Group, Level, Member, Work};
use super::modules::FOUND;
use super::tree::BlockKind;
use rustc_hash::{FxHashMap, FxHasher};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

pub(super) const LAYER: &str = "layer";
pub(super) const STEP: &str = "step";
pub(super) const PART: &str = "part";
pub(super) const LSTM_CELL: &str = "LSTM cell";
pub(super) const GRU_CELL: &str = "GRU cell";

/// A level with more boxes than this is cut into parts.
pub(super) const CROWDED: usize = 44;
/// A level is divided at most this often, one into the other.
pub(super) const DEEPEST: usize = 5;
/// Aimed-for number of members when a level is cut.
const BRANCHING: f64 = 24.0;
/// From this many nodes of one operator in a row on, a crowded level shows them as one.
const ROW: usize = 8;
/// Distances between equal operators that are tried as the length of a repeat.
const CANDIDATES: usize = 12;

/// Sequence of a level's items with what crosses the borders between them.
struct Sequence {
    items: Vec<u32>,
    labels: Vec<u64>,
    /// By place in the sequence: the place of the last reader.
    last: Vec<usize>,
    /// Items that read nothing of the level's main flow: where a step takes up its input.
    begins: Vec<bool>,
}

impl Sequence {
    /// By border (before the element of that place): values from before it that are read at or after it. Values that
    /// live longer than `longest` elements do not count: they cross borders wherever those are.
    fn crossing(&self, longest: usize) -> Vec<u32> {
        let mut change = vec![0i64; self.items.len() + 2];
        for (k, last) in self.last.iter().enumerate().filter(|(k, last)| **last > *k && *last - k <= longest)
        {
            change[k + 1] += 1;
            change[last + 1] -= 1;
        }
        let mut now = 0i64;
        let sums = change.iter().take(self.items.len() + 1).map(|c| {
            now += c;
            now.max(0) as u32
        });
        sums.collect()
    }
}

fn sequence(work: &Work, level: &Level, wanted: impl Fn(&super::level::Item) -> bool) -> Sequence {
    let items: Vec<u32> =
        (0..level.items.len() as u32).filter(|i| wanted(&level.items[*i as usize])).collect();
    let mut place = vec![u32::MAX; level.items.len()];
    for (k, i) in items.iter().enumerate() {
        place[*i as usize] = k as u32;
    }
    let last = |i: u32| {
        // What only reads a value that many read is not part of the main flow, but its result crosses borders all the same.
        let succs = if level.main.active[i as usize] { &level.main.succs } else { &level.succs };
        let places = succs[i as usize].iter().map(|s| place[*s as usize]);
        places.filter(|p| *p != u32::MAX).max().unwrap_or(0) as usize
    };
    Sequence {
        labels: items.iter().map(|i| kind_of(work, level, *i)).collect(),
        last: items.iter().map(|i| last(*i)).collect(),
        begins: items.iter().map(|i| level.main.preds[*i as usize].is_empty()).collect(),
        items,
    }
}

/// Hash of what an item is: operator, module, or the operators in a scope.
fn kind_of(work: &Work, level: &Level, item: u32) -> u64 {
    let item = &level.items[item as usize];
    let mut h = FxHasher::default();
    match item.member {
        Member::Node(at) => work.node(at).op_type.hash(&mut h),
        Member::Draft(_) if !item.label.is_empty() => item.label.hash(&mut h),
        member => {
            let mut positions = work.positions(member);
            positions.retain(|at| work.flow.roles[*at as usize] == Role::Main);
            positions.sort_unstable();
            for at in positions {
                work.node(at).op_type.hash(&mut h);
            }
        }
    }
    h.finish()
}

/// Stretches of the sequence in which every element equals the one `period` further on, each at least `times` periods.
fn runs(labels: &[u64], period: usize, times: usize) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut start = 0;
    for k in 0..=labels.len() {
        let goes_on = k + period < labels.len() && labels[k] == labels[k + period];
        if !goes_on {
            let end = (k + period).min(labels.len());
            if k > start && end - start >= times * period {
                found.push((start, end));
            }
            start = k + 1;
        }
    }
    found
}

/// The period under which most of a sequence repeats.
fn period(labels: &[u64], times: usize) -> Option<usize> {
    let mut gaps: BTreeMap<usize, usize> = BTreeMap::new();
    // Operators in company repeat where the operators alone come several times within one repeat.
    for company in [1, 2, 4] {
        let mut last: FxHashMap<&[u64], usize> = FxHashMap::default();
        for (k, labels) in labels.windows(company).enumerate() {
            if let Some(before) = last.insert(labels, k) {
                *gaps.entry(k - before).or_default() += k - before;
            }
        }
    }
    let mut candidates: Vec<(usize, usize)> =
        gaps.into_iter().filter(|(gap, _)| *gap >= 2 && gap * times <= labels.len()).collect();
    candidates.sort_by_key(|(gap, cover)| (std::cmp::Reverse(*cover), *gap));
    let cover = |p: usize| -> usize { runs(labels, p, times).iter().map(|(s, e)| (e - s) / p * p).sum() };
    let best =
        candidates.iter().take(CANDIDATES).map(|(gap, _)| (cover(*gap), std::cmp::Reverse(*gap))).max()?;
    // Half of the sequence must be explained.
    (best.0 * 2 >= labels.len()).then_some(best.1.0)
}

/// Groups of a level whose operators repeat in sequence at least `times` times: layers, or steps of an unrolled recurrence.
pub(super) fn repeats(work: &Work, level: &Level, times: usize) -> Vec<Group> {
    let seq = sequence(work, level, |i| i.role == Role::Main);
    let Some(period) = period(&seq.labels, times) else { return Vec::new() };
    let mut borders: Vec<(usize, usize)> = Vec::new();
    let crossing = seq.crossing(period * 2);
    for (start, end) in runs(&seq.labels, period, times) {
        let shift = best_shift(&seq, &crossing, start, end, period);
        let mut at = start + shift;
        while at + period <= end {
            borders.push((at, at + period));
            at += period;
        }
    }
    // What is left between, before and after, when it is about one repeat long, is one that differs.
    let mut all = Vec::new();
    let mut at = 0;
    for (start, end) in borders.iter().copied().chain(std::iter::once((seq.items.len(), seq.items.len()))) {
        let gap = start.saturating_sub(at);
        let inner = at > 0 && start < seq.items.len();
        if gap * 2 >= period
            && (gap * 2 <= period * 3 || (inner && gap <= 2 * period))
            && (inner || similar(&seq, at, start, &borders))
        {
            all.push((at, start));
        }
        if end > start {
            all.push((start, end));
        }
        at = end;
    }
    all.retain(|(s, e)| e - s >= 2);
    if all.len() < 2 {
        return Vec::new();
    }
    let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
    let names: Vec<&'static str> = all.iter().map(|r| name_of(level, &seq, *r)).collect();
    // One odd first step is called like the others.
    let common =
        names.iter().copied().max_by_key(|n| names.iter().filter(|m| m == &n).count()).unwrap_or(LAYER);
    all.iter()
        .map(|(s, e)| {
            let number = numbers.entry(common).or_default();
            *number += 1;
            Group {
                label: common,
                kind: BlockKind::Module(common.into()),
                name: format!("{common} {number}"),
                note: FOUND.into(),
                items: seq.items[*s..*e].to_vec(),
                flat: false,
            }
        })
        .collect()
}

/// Whether a leftover stretch shares most of its operators with the repeats.
fn similar(seq: &Sequence, start: usize, end: usize, borders: &[(usize, usize)]) -> bool {
    let Some((s, e)) = borders.first().copied() else { return false };
    let known: std::collections::BTreeSet<u64> = seq.labels[s..e].iter().copied().collect();
    let same = seq.labels[start..end].iter().filter(|l| known.contains(l)).count();
    same * 4 >= (end - start) * 3
}

/// Where within a run the borders cross fewest values.
fn best_shift(seq: &Sequence, crossing: &[u32], start: usize, end: usize, period: usize) -> usize {
    let spare = (end - start) % period;
    let whole = (end - start) / period;
    let cost = |shift: usize| {
        let mut crossed: Vec<u32> = (0..whole)
            .map(|k| start + shift + k * period)
            .filter(|b| *b < end && *b > 0)
            .map(|b| crossing[b])
            .collect();
        crossed.sort_unstable();
        crossed.get(crossed.len() / 2).copied().unwrap_or(0)
    };
    let begins = |shift: usize| whole >= 4 && seq.begins.get(start + shift).copied().unwrap_or(false);
    // A shift past the spare elements costs one repeat: only a cleaner border is worth that, and only among many.
    let shifts = if whole >= 4 { period } else { spare + 1 };
    (0..shifts).min_by_key(|s| (cost(*s), !begins(*s), *s > spare, *s)).unwrap_or(0)
}

fn name_of(level: &Level, seq: &Sequence, (start, end): (usize, usize)) -> &'static str {
    let mut content = super::content::Content::NOTHING;
    for i in &seq.items[start..end] {
        content.add(&level.items[*i as usize].content);
    }
    let (s, t, m) = (content.of(Class::Sigmoid), content.of(Class::Tanh), content.of(Class::Mul));
    let cell = content.has(Class::MatMul) && !content.has(Class::Softmax) && !content.has(Class::Norm);
    if cell && s == 3 && t == 2 && m >= 3 {
        LSTM_CELL
    } else if cell && s == 2 && t == 1 && m >= 2 {
        GRU_CELL
    } else if cell && s >= 2 && t >= 1 {
        STEP
    } else {
        LAYER
    }
}

/// Groups long rows of loose nodes of one operator, as collecting the results of many steps gives.
pub(super) fn rows(work: &Work, level: &Level) -> Vec<Group> {
    let op = |i: u32| work.only_node(level.items[i as usize].member).map(|n| &n.op_type);
    let shown: Vec<u32> =
        (0..level.items.len() as u32).filter(|i| level.items[*i as usize].role != Role::Constant).collect();
    let rows = shown.chunk_by(|a, b| op(*a).is_some() && op(*a) == op(*b));
    let rows = rows.filter(|row| row.len() >= ROW && row.len() < shown.len());
    rows.map(|row| Group {
        label: "",
        kind: BlockKind::Region,
        name: format!("{} ×{}", op(row[0]).map_or("", |o| o), row.len()),
        note: "one operator in a row".into(),
        items: row.to_vec(),
        flat: false,
    })
    .collect()
}

/// Cuts a level with too many members into parts of even size, at borders that few values cross.
pub(super) fn parts(work: &Work, level: &Level) -> Vec<Group> {
    let seq = sequence(work, level, |i| i.role != Role::Constant);
    let n = seq.items.len();
    // As many levels as it takes, each with about as many parts.
    let depth = ((n as f64).ln() / BRANCHING.ln()).ceil().max(2.0);
    let size = (n as f64).powf((depth - 1.0) / depth).ceil() as usize;
    let count = n.div_ceil(size.max(1)).max(2);
    let crossing = seq.crossing(n);
    let mut cuts = vec![0];
    for k in 1..count {
        let ideal = n * k / count;
        let slack = (n / count / 5).max(1);
        let low = (ideal.saturating_sub(slack)).max(cuts.last().copied().unwrap_or(0) + 2);
        let best = (low..=(ideal + slack).min(n - 2)).min_by_key(|c| (crossing[*c], c.abs_diff(ideal)));
        cuts.extend(best);
    }
    cuts.push(n);
    let mut groups: Vec<Group> = Vec::new();
    for pair in cuts.windows(2) {
        let items = seq.items[pair[0]..pair[1]].to_vec();
        if items.len() < 2 {
            continue;
        }
        let name = stretch_name(work, level, &items).unwrap_or_else(|| PART.into());
        let note = mostly(work, level, &items);
        groups.push(Group { label: "", kind: BlockKind::Part, name, note, items, flat: false });
    }
    groups
}

/// `steps 9–16` for a stretch of numbered alike modules.
fn stretch_name(work: &Work, level: &Level, items: &[u32]) -> Option<String> {
    let numbered: Vec<(&str, &str)> = items
        .iter()
        .filter_map(|i| match level.items[*i as usize].member {
            Member::Draft(d) => {
                let draft = &work.drafts[d as usize];
                let split = draft.name.trim_end_matches(|c: char| c.is_ascii_digit());
                let number = &draft.name[split.len()..];
                (!number.is_empty()).then_some((split, number))
            }
            Member::Node(_) => None,
        })
        .collect();
    let (stem, first) = *numbered.first()?;
    let (_, last) = *numbered.last()?;
    let alike = numbered.iter().filter(|(s, _)| *s == stem).count();
    if alike < 2 || alike != numbered.len() || alike * 2 < items.len() {
        return None;
    }
    let stem = stem.trim_end_matches(['.', '_', ' ']);
    let plural = if stem.ends_with('s') { "" } else { "s" };
    Some(format!("{stem}{plural} {first}–{last}"))
}

/// The operators that a stretch mostly consists of.
fn mostly(work: &Work, level: &Level, items: &[u32]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for i in items {
        for at in work.positions(level.items[*i as usize].member) {
            if work.flow.roles[at as usize] != Role::Constant {
                *counts.entry(&work.node(at).op_type).or_default() += 1;
            }
        }
    }
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(op, count)| (std::cmp::Reverse(*count), *op));
    let top: Vec<&str> = counts.iter().take(3).map(|(op, _)| *op).collect();
    format!("mostly {}", top.join(", "))
}
