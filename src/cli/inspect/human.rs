//! What `inspect` tells, for people.

use super::report::{Formal, Report};
use crate::cli::output::counted;
use crate::table::{Table, bytes_text, one_line};

/// Operators that are listed one by one.
const OPERATORS: usize = 24;

/// Problems that are listed one by one.
const PROBLEMS: usize = 20;

pub fn text(report: &Report) -> String {
    let mut text = format!("{}\n", one_line(&report.file));
    let opsets: Vec<String> = report.opsets.iter().map(|o| format!("{} {}", o.domain, o.version)).collect();
    let producer = match (report.producer.name.as_str(), report.producer.version.as_str()) {
        ("", _) => "unknown producer".to_owned(),
        (name, "") => name.to_owned(),
        (name, version) => format!("{name} {version}"),
    };
    let form = report.form.title();
    let line = format!("  {form}, IR version {}, {}, {producer}", report.ir_version, opsets.join(", "));
    text += &(one_line(&line) + "\n");
    let in_constants = match report.parameters_in_constants {
        0 => String::new(),
        n if n == report.parameters => " (in Constant nodes)".to_owned(),
        n => format!(" ({} of them in Constant nodes)", amount_text(n)),
    };
    text += &format!(
        "  {}, {} parameters{in_constants}, {}\n",
        counted(report.nodes, "node"),
        amount_text(report.parameters),
        bytes_text(report.bytes)
    );
    for (title, list) in [("inputs", &report.inputs), ("outputs", &report.outputs)] {
        text += &format!("\n{title}\n");
        text += &formals(list).to_text(2);
    }
    text += "\noperators\n";
    text += &operators(report);
    if !report.weights.is_empty() {
        let mut table = Table::new(&["element type", "#tensors", "#elements", "#size:bytes"]);
        for entry in &report.weights {
            let cells = [entry.tensors.into(), entry.elements.into(), entry.bytes.into()];
            table.row([entry.element.as_str().into()].into_iter().chain(cells));
        }
        text += "\nweights\n";
        text += &table.to_text(2);
    }
    if !report.functions.is_empty() {
        let mut table = Table::new(&["function", "domain", "#nodes", "#calls"]);
        for f in &report.functions {
            table.row([f.name.as_str().into(), f.domain.as_str().into(), f.nodes.into(), f.calls.into()]);
        }
        text += "\nfunctions\n";
        text += &table.to_text(2);
    }
    text += &blocks(report);
    let share = &report.known_types;
    text += &format!("\ntypes known for {} of {}\n", share.known, counted(share.of, "value"));
    match report.problems.len() {
        0 => text += "no problems\n",
        n => {
            text += &format!("{}\n", counted(n, "problem"));
            for problem in report.problems.iter().take(PROBLEMS) {
                text += &format!("  {}: {}\n", problem.severity, one_line(&problem.text));
            }
            if n > PROBLEMS {
                text += &format!("  {} more; --json lists all\n", n - PROBLEMS);
            }
        }
    }
    text
}

fn formals(list: &[Formal]) -> Table {
    let mut table = Table::new(&["name", "type", ""]);
    for formal in list {
        let note = if formal.default.is_some() { "has a default" } else { "" };
        table.row([formal.name.as_str().into(), formal.ty.as_str().into(), note.into()]);
    }
    table
}

fn operators(report: &Report) -> String {
    let mut table = Table::new(&["operator", "#count"]);
    for entry in report.operators.iter().take(OPERATORS) {
        let name = match entry.domain.as_str() {
            "ai.onnx" => entry.operator.clone(),
            domain => format!("{domain}:{}", entry.operator),
        };
        table.row([name.into(), entry.count.into()]);
    }
    let rest = report.operators.iter().skip(OPERATORS);
    let (kinds, nodes) = rest.fold((0usize, 0usize), |(k, n), e| (k + 1, n + e.count));
    let more =
        if kinds > 0 { format!("  {kinds} more, {}\n", counted(nodes, "node")) } else { String::new() };
    table.to_text(2) + &more
}

fn blocks(report: &Report) -> String {
    let outline = &report.blocks;
    let borders = if outline.clear { "clear borders" } else { "no clear borders" };
    let levels = counted(outline.depth as usize, "level");
    let mut text = format!("\nblocks: {}, {levels}, {borders} ({})\n", outline.count, one_line(&outline.why));
    let mut table = Table::new(&["block", "#times", "#nodes", "kind", "note"]);
    for line in &outline.outline {
        let times = if line.times == 1 { "".into() } else { format!("{} ×", line.times).into() };
        table.row([
            format!("{}{}", "  ".repeat(line.level as usize), line.name).into(),
            times,
            line.nodes.into(),
            line.kind.as_str().into(),
            line.note.as_str().into(),
        ]);
    }
    text += &table.to_text(2);
    if outline.left_out > 0 {
        text += &format!("  {} more; --all shows everything\n", counted(outline.left_out, "line"));
    }
    text
}

/// A large count as people say it: `3.6 M`.
fn amount_text(n: u64) -> String {
    match n as f64 {
        _ if n < 10_000 => n.to_string(),
        f if f < 1e6 => format!("{:.1} k", f / 1e3),
        f if f < 1e9 => format!("{:.1} M", f / 1e6),
        f => format!("{:.2} G", f / 1e9),
    }
}
