//! A report as Markdown.

use super::Report;
use crate::table::{Table, one_line};

pub(super) fn write(report: &Report) -> String {
    let mut out = format!("# {}\n\n", text(&report.title));
    for (name, value) in &report.summary {
        out.push_str(&format!("- {name}: {}\n", text(value)));
    }
    for section in &report.sections {
        out.push_str(&format!("\n## {}\n\n", section.title));
        if section.table.is_empty() {
            out.push_str(&format!("_{}_\n", section.empty));
        } else {
            out.push_str(&table(&section.table));
        }
    }
    out.push_str(&format!("\n## Pipeline\n\n```toml\n{}```\n", report.configuration));
    out
}

fn table(table: &Table) -> String {
    let names: Vec<String> = table.columns.iter().map(|c| text(&c.name)).collect();
    let rules: Vec<&str> = table.columns.iter().map(|c| if c.right { "---:" } else { "---" }).collect();
    let mut out = format!("| {} |\n| {} |\n", names.join(" | "), rules.join(" | "));
    for row in &table.rows {
        let cells: Vec<String> =
            row.cells.iter().zip(&table.columns).map(|(c, column)| text(&c.to_text(column.unit))).collect();
        out.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    out
}

/// Names come from files: what Markdown would take for markup is escaped, and a field stays on its line.
fn text(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    for c in one_line(raw).chars() {
        if matches!(c, '|' | '*' | '_' | '`' | '<' | '[' | ']' | '\\' | '#') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
