//! A plain table: columns with units, rows with links to nodes and steps. Every list that people see is one, on the
//! command line and in the window.

mod write;

pub use write::one_line;

use std::borrow::Cow;

/// What the numbers of a column count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// No unit: texts, counts.
    None,
    Bytes,
    Seconds,
}

/// A column.
#[derive(Clone, PartialEq, Debug)]
pub struct Column {
    /// Heading; in JSON, with underscores for spaces, the key.
    pub name: Cow<'static, str>,
    pub unit: Unit,
    /// Numbers stand right, so that their places are below each other.
    pub right: bool,
}

/// One field.
#[derive(Clone, PartialEq, Debug)]
pub enum Cell {
    Empty,
    Text(String),
    Integer(i64),
    Number(f64),
}

/// What a row is about; the numbers are those of the ids, which are plain here because this room knows no graph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Link {
    Node(u32),
    Step(u32),
}

/// One line.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Row {
    pub cells: Vec<Cell>,
    pub links: Vec<Link>,
}

/// Columns and rows.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Table {
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
}

impl Table {
    /// A table without rows; a name that begins with `#` is a column of numbers, and a unit may follow it:
    /// `"node"`, `"#count"`, `"#size:bytes"`, `"#time:s"`.
    pub fn new(columns: &[&'static str]) -> Table {
        let column = |text: &&'static str| {
            let right = text.starts_with('#');
            let text = text.trim_start_matches('#');
            let (name, unit) = match text.rsplit_once(':') {
                Some((name, "bytes")) => (name, Unit::Bytes),
                Some((name, "s")) => (name, Unit::Seconds),
                _ => (text, Unit::None),
            };
            Column { name: name.into(), unit, right }
        };
        Table { columns: columns.iter().map(column).collect(), rows: Vec::new() }
    }

    /// Adds a row that is about nothing in particular. Cells beyond the columns are dropped, missing ones are empty.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.linked_row(cells, []);
    }

    /// Adds a row with what it is about.
    pub fn linked_row(
        &mut self,
        cells: impl IntoIterator<Item = Cell>,
        links: impl IntoIterator<Item = Link>,
    ) {
        let mut cells: Vec<Cell> = cells.into_iter().collect();
        cells.resize(self.columns.len(), Cell::Empty);
        self.rows.push(Row { cells, links: links.into_iter().collect() });
    }

    /// True without rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl From<usize> for Cell {
    fn from(n: usize) -> Cell {
        Cell::Integer(i64::try_from(n).unwrap_or(i64::MAX))
    }
}

impl From<u64> for Cell {
    fn from(n: u64) -> Cell {
        Cell::Integer(i64::try_from(n).unwrap_or(i64::MAX))
    }
}

impl From<u32> for Cell {
    fn from(n: u32) -> Cell {
        Cell::Integer(n.into())
    }
}

impl From<i64> for Cell {
    fn from(n: i64) -> Cell {
        Cell::Integer(n)
    }
}

impl From<f64> for Cell {
    fn from(n: f64) -> Cell {
        Cell::Number(n)
    }
}

/// Bytes as people read them: `512 B`, `14.3 MB` (powers of ten).
pub fn bytes_text(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut amount = bytes as f64 / 1000.0;
    let mut unit = 0;
    while amount >= 999.5 && unit + 1 < UNITS.len() {
        amount /= 1000.0;
        unit += 1;
    }
    let digits = if amount < 99.95 { 1 } else { 0 };
    format!("{amount:.digits$} {}", UNITS[unit])
}

/// A time as people read it: `12 µs`, `3.4 ms`, `2.10 s`.
pub fn seconds_text(seconds: f64) -> String {
    match seconds {
        s if !s.is_finite() => "-".to_owned(),
        s if s < 1e-3 => format!("{:.0} µs", s * 1e6),
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}

/// A number with at most five significant digits, without needless zeros.
pub fn number_text(n: f64) -> String {
    if n == 0.0 || !n.is_finite() {
        return format!("{n}");
    }
    let magnitude = n.abs();
    if !(1e-4..1e6).contains(&magnitude) {
        return format!("{n:.3e}");
    }
    let digits = (4 - magnitude.log10().floor() as i32).clamp(0, 8) as usize;
    let text = format!("{n:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
