//! What is written about the standard operators: meaning, versions, default attributes. The tables are files in
//! `assets/`, one line an entry.

use crate::ir::AttributeValue;
use bytes::Bytes;
use rustc_hash::FxHashMap;
use std::sync::LazyLock;

struct Entry {
    since: Vec<i64>,
    summary: &'static str,
}

/// A default of an attribute and the operator-set versions in which it holds.
#[derive(Clone, Debug)]
pub struct DefaultAttribute {
    pub attribute: &'static str,
    pub from: i64,
    /// The last version, `None` when it still holds.
    pub to: Option<i64>,
    pub value: AttributeValue,
}

/// Operators by name; names are unique over the two domains (`ai.onnx`, `ai.onnx.ml`).
static ENTRIES: LazyLock<FxHashMap<&'static str, Entry>> = LazyLock::new(|| {
    let rows = include_str!("../../../assets/operator_summaries.tsv").lines().skip(1);
    rows.filter_map(|row| {
        let mut cells = row.split('\t').skip(1);
        let name = cells.next()?;
        let since = cells.next()?.split(',').filter_map(|v| v.parse().ok()).collect();
        Some((name, Entry { since, summary: cells.next()? }))
    })
    .collect()
});

static DEFAULTS: LazyLock<FxHashMap<&'static str, Vec<DefaultAttribute>>> = LazyLock::new(|| {
    let mut all: FxHashMap<&'static str, Vec<DefaultAttribute>> = FxHashMap::default();
    for row in include_str!("../../../assets/operator_defaults.tsv").lines().skip(1) {
        if let Some((operator, default)) = parse_default(row) {
            all.entry(operator).or_default().push(default);
        }
    }
    all
});

fn parse_default(row: &'static str) -> Option<(&'static str, DefaultAttribute)> {
    let mut cells = row.split('\t').skip(1);
    let (operator, attribute) = (cells.next()?, cells.next()?);
    let (from, to) = (cells.next()?.parse().ok()?, cells.next()?.parse().ok());
    let (kind, text) = (cells.next()?, cells.next()?);
    let bytes = |s: &'static str| Bytes::from_static(s.as_bytes());
    let value = match kind {
        "int" => AttributeValue::Int(text.parse().ok()?),
        "float" => AttributeValue::Float(text.parse().ok()?),
        "string" => AttributeValue::String(bytes(text)),
        "ints" => AttributeValue::Ints(text.split(',').map(str::parse).collect::<Result<_, _>>().ok()?),
        "floats" => AttributeValue::Floats(text.split(',').map(str::parse).collect::<Result<_, _>>().ok()?),
        "strings" => AttributeValue::Strings(text.split(',').map(bytes).collect()),
        _ => return None,
    };
    Some((operator, DefaultAttribute { attribute, from, to, value }))
}

/// What an operator of `ai.onnx` or `ai.onnx.ml` does, in one line without a full stop.
pub fn summary(op_type: &str) -> Option<&'static str> {
    ENTRIES.get(op_type).map(|e| e.summary)
}

/// Operator-set versions in which an operator changed, the first first; empty for an unknown one.
pub fn since(op_type: &str) -> &'static [i64] {
    ENTRIES.get(op_type).map_or(&[], |e| &e.since)
}

/// Names of all operators, sorted.
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<&str> = ENTRIES.keys().copied().collect();
    names.sort_unstable();
    names
}

/// Attributes that an operator has by default in an operator-set version, by name. Those whose default depends on the
/// input (all axes, say) are not among them.
pub fn attributes(op_type: &str, opset: i64) -> impl Iterator<Item = &'static DefaultAttribute> {
    let all = DEFAULTS.get(op_type).map_or(&[][..], |d| d.as_slice());
    all.iter().filter(move |d| d.from <= opset && d.to.is_none_or(|to| opset <= to))
}

/// Default of one attribute of an operator in an operator-set version.
pub fn default(op_type: &str, attribute: &str, opset: i64) -> Option<&'static AttributeValue> {
    attributes(op_type, opset).find(|d| d.attribute == attribute).map(|d| &d.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_tables_is_read() {
        let lines = include_str!("../../../assets/operator_summaries.tsv").lines().count() - 1;
        assert_eq!(ENTRIES.len(), lines);
        assert!(ENTRIES.values().all(|e| !e.since.is_empty() && !e.summary.ends_with('.')));
        let lines = include_str!("../../../assets/operator_defaults.tsv").lines().count() - 1;
        assert_eq!(DEFAULTS.values().map(Vec::len).sum::<usize>(), lines);
    }

    #[test]
    fn defaults_follow_the_operator_set() {
        assert_eq!(default("Softmax", "axis", 12).and_then(AttributeValue::int), Some(1));
        assert_eq!(default("Softmax", "axis", 13).and_then(AttributeValue::int), Some(-1));
        assert_eq!(default("Gemm", "alpha", 13).and_then(AttributeValue::float), Some(1.0));
        assert_eq!(default("Conv", "auto_pad", 1).and_then(AttributeValue::text), Some("NOTSET"));
        assert!(default("Conv", "kernel_shape", 11).is_none());
        assert_eq!(since("Dropout").first(), Some(&1));
    }
}
