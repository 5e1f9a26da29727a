//! What `optimize` tells, for people.

use super::summary::{DryRun, Report};
use crate::cli::output::counted;
use crate::table::{Table, bytes_text, one_line, seconds_text};

/// Renamed nodes that are listed one by one.
const RENAMED_SHOWN: usize = 5;

/// Problems of the input that are listed one by one.
const PROBLEMS_SHOWN: usize = 5;

/// `passes` is the table of passes and rounds.
pub fn text(report: &Report, passes: &Table) -> String {
    let mut text = String::new();
    if !passes.is_empty() {
        text += &passes.to_text(0);
        text.push('\n');
    }
    for entry in &report.passes {
        for failure in &entry.failed {
            let site = failure.site.as_ref().map(|site| format!(" at {site}")).unwrap_or_default();
            text += &format!("{} failed{site}, undone: {}\n", entry.name, failure.message);
        }
    }
    text += &format!(
        "{} → {} nodes, {} in {}, {}\n",
        report.nodes_before,
        report.nodes_after,
        counted(report.steps.len(), "step"),
        seconds_text(report.seconds),
        stop_text(report)
    );
    if !report.blocked.is_empty() {
        let count = counted(report.blocked.len(), "near miss").replace("misss", "misses");
        text += &format!("{count} blocked by a condition; --dry-run lists them\n");
    }
    if !report.renamed.is_empty() {
        let nodes = counted(report.renamed.len(), "node");
        text += &format!("{nodes} renamed, because runtimes refuse two nodes of one name:");
        for node in report.renamed.iter().take(RENAMED_SHOWN) {
            text += &format!(" {} → {};", node.from, node.to);
        }
        let more = report.renamed.len().saturating_sub(RENAMED_SHOWN);
        text = text.trim_end_matches(';').to_owned();
        text += &if more > 0 { format!("; {more} more\n") } else { "\n".to_owned() };
    }
    for problem in report.problems.iter().take(PROBLEMS_SHOWN) {
        text += &format!("{}: {}\n", problem.severity, one_line(&problem.text));
    }
    let more = report.problems.len().saturating_sub(PROBLEMS_SHOWN);
    if more > 0 {
        text += &format!("{more} more problems of the input; inspect lists them\n");
    }
    if let Some(pass) = report.passes.first() {
        text += &format!("not verified: {}\n", pass.verification.reason);
    }
    text += &format!("{} written, {}", report.output, bytes_text(report.bytes));
    if let Some(data) = &report.data_file {
        text += &format!(" with {data}");
    }
    text.push('\n');
    if let Some(path) = &report.report {
        text += &format!("{path} written\n");
    }
    text
}

fn stop_text(report: &Report) -> String {
    let rounds = counted(report.rounds as usize, "round");
    match report.stop_reason {
        "converged" if report.rounds == 0 => "no round asked for".to_owned(),
        "converged" => format!("nothing left to do after {rounds}"),
        "round_limit" => format!("stopped at the limit of {rounds}"),
        "cycle" => format!("stopped: {} undo each other", report.cycle.join(" and ")),
        "stop_at" => "stopped at the step asked for".to_owned(),
        other => other.replace('_', " "),
    }
}

pub fn dry_run(report: &DryRun) -> String {
    let mut text = String::new();
    for pass in &report.passes {
        let near = match pass.blocked.len() {
            0 => String::new(),
            1 => ", 1 near miss".to_owned(),
            n => format!(", {n} near misses"),
        };
        text += &format!("{}: {}{near}\n", pass.name, counted(pass.sites.len(), "site"));
        let mut sites = Table::new(&["site", "what", ""]);
        for site in &pass.sites {
            let state = if site.excluded { "excluded" } else { "" };
            sites.row([site.site.to_string().into(), site.what.as_str().into(), state.into()]);
        }
        let mut blocked = Table::new(&["blocked at", "because", "to blame"]);
        for miss in &pass.blocked {
            blocked.row([
                miss.node.as_str().into(),
                miss.condition.as_str().into(),
                miss.blame.as_str().into(),
            ]);
        }
        for table in [sites, blocked].into_iter().filter(|table| !table.is_empty()) {
            text += &table.to_text(2);
        }
    }
    text += "sites that other rewrites open up are not listed; ";
    match &report.config {
        Some(file) => text + &format!("only the configuration was written: {file}\n"),
        None => text + "nothing was written\n",
    }
}
