//! The tables of a run.

use crate::ir::Model;
use crate::pipeline::Run;
use crate::table::{Link, Table};
use std::collections::BTreeMap;

/// A row a pass and round.
pub fn passes(run: &Run) -> Table {
    let columns = [
        "pass",
        "#round",
        "#sites",
        "#declined",
        "#near misses",
        "#left out",
        "#failed",
        "#before",
        "#after",
        "#time:s",
    ];
    let mut table = Table::new(&columns);
    for p in &run.passes {
        table.row([
            (&*p.pass).into(),
            p.round.into(),
            p.steps.len().into(),
            p.declined.into(),
            p.blocked.len().into(),
            p.excluded.len().into(),
            p.failures.len().into(),
            p.nodes_before.into(),
            p.nodes_after.into(),
            p.seconds.into(),
        ]);
    }
    table
}

/// A row an operator, with its number in all live graphs before and after.
pub fn operators(before: &Model, after: &Model) -> Table {
    let mut counts: BTreeMap<String, (i64, i64)> = BTreeMap::new();
    let name = |n: &crate::ir::Node| {
        if n.is_standard() { n.op_type.to_string() } else { format!("{}:{}", n.domain, n.op_type) }
    };
    for id in before.all_nodes() {
        counts.entry(name(before.node(id))).or_default().0 += 1;
    }
    for id in after.all_nodes() {
        counts.entry(name(after.node(id))).or_default().1 += 1;
    }
    let mut table = Table::new(&["operator", "#before", "#after", "#change"]);
    for (operator, (b, a)) in counts {
        table.row([operator.into(), b.into(), a.into(), (a - b).into()]);
    }
    table
}

/// A row a step.
pub fn steps(run: &Run) -> Table {
    let mut table = Table::new(&["#step", "#round", "site", "what", "#nodes"]);
    for s in &run.steps {
        let e = &s.effects;
        let nodes = e.added.iter().chain(&e.changed).chain(&e.removed).map(|n| Link::Node(n.0));
        let cells = [
            s.number.into(),
            s.round.into(),
            s.key.to_string().into(),
            (&*s.what).into(),
            s.node_change.into(),
        ];
        table.linked_row(cells, std::iter::once(Link::Step(s.number)).chain(nodes));
    }
    table
}

/// A row a near miss of the last time that each pass ran.
pub fn near_misses(run: &Run) -> Table {
    let mut last = BTreeMap::new();
    for (i, p) in run.passes.iter().enumerate() {
        last.insert(p.pass.clone(), i);
    }
    let mut table = Table::new(&["pass", "node", "condition that failed", "because of"]);
    for p in run.passes.iter().enumerate().filter(|(i, p)| last.get(&p.pass) == Some(i)).map(|(_, p)| p) {
        for b in &p.blocked {
            let label = |n| p.after.model.node_label(n);
            let cells =
                [(&*p.pass).into(), label(b.anchor).into(), (&*b.condition).into(), label(b.blame).into()];
            table.linked_row(cells, [Link::Node(b.anchor.0), Link::Node(b.blame.0)]);
        }
    }
    table
}

/// A row a site that was rolled back.
pub fn failures(run: &Run) -> Table {
    let mut table = Table::new(&["pass", "#round", "site", "reason"]);
    for p in &run.passes {
        for f in &p.failures {
            let site = f.key.as_ref().map(|k| k.to_string()).unwrap_or_default();
            table.row([(&*p.pass).into(), p.round.into(), site.into(), f.message.as_str().into()]);
        }
    }
    table
}
