//! A report as one HTML file: no scripts, no links to elsewhere, readable light, dark and in print.

use super::Report;
use crate::table::Table;

const STYLE: &str = "
:root { color-scheme: light dark; --text: #1f2328; --weak: #59636e; --line: #d1d9e0; --back: #ffffff; --head: #f6f8fa; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6edf3; --weak: #9198a1; --line: #3d444d; --back: #16181c; --head: #21262d; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back); margin: 2rem auto; max-width: 72rem;
  padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1rem; } dt { color: var(--weak); } dd { margin: 0; }
.scroll { overflow: auto; max-height: 32rem; border: 1px solid var(--line); border-radius: 6px; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
th { position: sticky; top: 0; background: var(--head); } .n { text-align: right; font-variant-numeric: tabular-nums; }
p.empty { color: var(--weak); } pre { background: var(--head); padding: .8rem; border-radius: 6px; overflow: auto; }
figure { margin: 1rem 0; } figure svg { max-width: 100%; height: auto; border: 1px solid var(--line); border-radius: 6px; }
";

pub(super) fn write(report: &Report) -> String {
    let mut out = String::from("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    out.push_str(&format!(
        "<title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n",
        text(&report.title)
    ));
    out.push_str(&format!("<h1>{}</h1>\n<dl>\n", text(&report.title)));
    for (name, value) in &report.summary {
        out.push_str(&format!("<dt>{name}</dt><dd>{}</dd>\n", text(value)));
    }
    out.push_str("</dl>\n");
    for figure in &report.figures {
        let title = text(&figure.title);
        out.push_str(&format!(
            "<h2>{title}</h2>\n<figure>\n{}\n</figure>\n",
            without_declaration(&figure.svg)
        ));
    }
    for section in &report.sections {
        out.push_str(&format!("<h2>{}</h2>\n", section.title));
        if section.table.is_empty() {
            out.push_str(&format!("<p class=\"empty\">{}</p>\n", section.empty));
        } else {
            out.push_str(&table(&section.table));
        }
    }
    out.push_str(&format!(
        "<h2>Pipeline</h2>\n<pre>{}</pre>\n</body>\n</html>\n",
        text(&report.configuration)
    ));
    out
}

fn table(table: &Table) -> String {
    let class = |right: bool| if right { " class=\"n\"" } else { "" };
    let mut out = String::from("<div class=\"scroll\"><table>\n<thead><tr>");
    for c in &table.columns {
        out.push_str(&format!("<th{}>{}</th>", class(c.right), text(&c.name)));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        out.push_str("<tr>");
        for (cell, c) in row.cells.iter().zip(&table.columns) {
            out.push_str(&format!("<td{}>{}</td>", class(c.right), text(&cell.to_text(c.unit))));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table></div>\n");
    out
}

/// Inside HTML an SVG element stands without the XML declaration of its file.
fn without_declaration(svg: &str) -> &str {
    svg.find("<svg").map_or("", |at| &svg[at..])
}

/// Names come from files and are shown, not obeyed.
fn text(raw: &str) -> String {
    raw.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Section;

    #[test]
    fn names_from_files_are_text() {
        let mut t = Table::new(&["node"]);
        t.row(["<script>alert(1)</script>".into()]);
        let report = Report {
            title: "a & b".into(),
            summary: vec![],
            sections: vec![Section { title: "Passes", empty: "none", table: t }],
            configuration: "version = 1\n".into(),
            figures: vec![],
        };
        let html = report.to_html();
        assert!(html.contains("&lt;script&gt;") && !html.contains("<script>") && html.contains("a &amp; b"));
        let markdown = report.to_markdown();
        assert!(markdown.contains("\\<script>"), "{markdown}");
    }
}
