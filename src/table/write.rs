//! A table as aligned text for a terminal, as tab- or comma-separated values, and as JSON.

use super::{Cell, Column, Table, Unit, bytes_text, number_text, seconds_text};
use serde_json::{Map, Value};

impl Table {
    /// Aligned columns, two spaces apart, with a line of headings; every line is indented by `indent` spaces.
    pub fn to_text(&self, indent: usize) -> String {
        let headings: Vec<String> = self.columns.iter().map(|c| c.name.to_string()).collect();
        let lines = self.rows.iter().map(|row| self.texts(&row.cells));
        let lines: Vec<Vec<String>> = std::iter::once(headings).chain(lines).collect();
        let width = |i: usize| lines.iter().filter_map(|l| Some(columns_of(l.get(i)?))).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let mut out = String::new();
        for line in &lines {
            let mut text = " ".repeat(indent);
            for (i, ((field, column), width)) in line.iter().zip(&self.columns).zip(&widths).enumerate() {
                if i > 0 {
                    text.push_str("  ");
                }
                let gap = " ".repeat(width.saturating_sub(columns_of(field)));
                match column.right {
                    true => text.extend([gap.as_str(), field]),
                    false => text.extend([field, gap.as_str()]),
                }
            }
            out.push_str(text.trim_end());
            out.push('\n');
        }
        out
    }

    /// Tab-separated values with a line of headings; tabs and line ends in a field become spaces.
    pub fn to_tsv(&self) -> String {
        self.separated("\t", |field| field.replace(['\t', '\n', '\r'], " "))
    }

    /// Comma-separated values with a line of headings (RFC 4180).
    pub fn to_csv(&self) -> String {
        self.separated(",", |field| match field.contains([',', '"', '\n', '\r']) {
            true => format!("\"{}\"", field.replace('"', "\"\"")),
            false => field,
        })
    }

    /// A list of objects, one a row; numbers are plain and in the column's unit.
    pub fn to_json(&self) -> Value {
        let object = |cells: &[Cell]| {
            let fields = self.columns.iter().zip(cells).map(|(c, cell)| (c.key(), cell.to_json()));
            Value::Object(fields.collect::<Map<String, Value>>())
        };
        Value::Array(self.rows.iter().map(|row| object(&row.cells)).collect())
    }

    fn texts(&self, cells: &[Cell]) -> Vec<String> {
        self.columns.iter().zip(cells).map(|(column, cell)| cell.to_text(column.unit)).collect()
    }

    fn separated(&self, separator: &str, quote: impl Fn(String) -> String) -> String {
        let headings: Vec<String> = self.columns.iter().map(|c| quote(c.key())).collect();
        let mut out = headings.join(separator) + "\n";
        for row in &self.rows {
            let fields: Vec<String> = row.cells.iter().map(|cell| quote(cell.plain())).collect();
            out.push_str(&fields.join(separator));
            out.push('\n');
        }
        out
    }
}

impl Column {
    /// Name for machines, with the unit: `time_s`.
    pub fn key(&self) -> String {
        let name = self.name.replace(' ', "_");
        match self.unit {
            Unit::None => name,
            Unit::Bytes => format!("{name}_bytes"),
            Unit::Seconds => format!("{name}_s"),
        }
    }
}

impl Cell {
    /// For people.
    pub fn to_text(&self, unit: Unit) -> String {
        match (self, unit) {
            (Cell::Empty, _) => String::new(),
            (Cell::Text(text), _) => one_line(text),
            (Cell::Integer(n), Unit::Bytes) if *n >= 0 => bytes_text(*n as u64),
            (Cell::Number(n), Unit::Bytes) if *n >= 0.0 => bytes_text(*n as u64),
            (Cell::Integer(n), Unit::Seconds) => seconds_text(*n as f64),
            (Cell::Number(n), Unit::Seconds) => seconds_text(*n),
            (Cell::Integer(n), _) => n.to_string(),
            (Cell::Number(n), _) => number_text(*n),
        }
    }

    fn plain(&self) -> String {
        match self {
            Cell::Empty => String::new(),
            Cell::Text(text) => text.clone(),
            Cell::Integer(n) => n.to_string(),
            Cell::Number(n) => n.to_string(),
        }
    }

    fn to_json(&self) -> Value {
        match self {
            Cell::Empty => Value::Null,
            Cell::Text(text) => Value::String(text.clone()),
            Cell::Integer(n) => Value::from(*n),
            Cell::Number(n) => Value::from(*n),
        }
    }
}

/// Control characters of foreign names would tear a table apart, or steer a terminal.
pub fn one_line(text: &str) -> String {
    match text.chars().any(char::is_control) {
        true => text.chars().flat_map(printable).collect(),
        false => text.to_owned(),
    }
}

fn printable(c: char) -> Vec<char> {
    if c.is_control() { c.escape_default().collect() } else { vec![c] }
}

/// Places that a text takes on a terminal: wide East Asian characters take two, combining marks none.
fn columns_of(text: &str) -> usize {
    text.chars().map(columns_of_char).sum()
}

fn columns_of_char(c: char) -> usize {
    match c as u32 {
        0x0300..=0x036F | 0x200B..=0x200F | 0xFE00..=0xFE0F => 0,
        0x1100..=0x115F
        | 0x2E80..=0x303E
        | 0x3041..=0xA4CF
        | 0xAC00..=0xD7A3
        | 0xF900..=0xFAFF
        | 0xFE30..=0xFE6F
        | 0xFF00..=0xFF60
        | 0xFFE0..=0xFFE6
        | 0x1F300..=0x1FAFF
        | 0x20000..=0x3FFFD => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        let mut table = Table::new(&["node", "#count", "#size:bytes", "#time:s"]);
        table.row(["conv, \"first\"".into(), 3usize.into(), 14_300_000u64.into(), 0.0034.into()]);
        table.row(["層\t1".into(), 12usize.into(), 10u64.into(), Cell::Empty]);
        table
    }

    #[test]
    fn columns_are_aligned_and_units_are_written_out() {
        let expected = "  node           count     size    time\n  \
                        conv, \"first\"      3  14.3 MB  3.4 ms\n  \
                        層\\t1             12     10 B\n";
        assert_eq!(sample().to_text(2), expected);
    }

    #[test]
    fn fields_for_machines_are_quoted_and_keys_name_their_unit() {
        let table = sample();
        assert_eq!(
            table.to_csv().lines().take(2).collect::<Vec<_>>(),
            ["node,count,size_bytes,time_s", "\"conv, \"\"first\"\"\",3,14300000,0.0034"]
        );
        assert_eq!(table.to_tsv().lines().nth(2), Some("層 1\t12\t10\t"));
        assert_eq!(table.to_json()[1]["size_bytes"], 10);
        assert!(table.to_json()[1]["time_s"].is_null());
    }

    #[test]
    fn numbers_keep_what_matters() {
        let texts: Vec<String> =
            [0.0, 1.0, 0.25, 1234.5678, 1e-7, 3e9, f64::NAN].map(number_text).into_iter().collect();
        assert_eq!(texts, ["0", "1", "0.25", "1234.6", "1.000e-7", "3.000e9", "NaN"]);
        assert_eq!([999, 1000, 999_950].map(bytes_text), ["999 B", "1.0 kB", "1.0 MB"]);
    }
}
