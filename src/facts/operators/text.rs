//! Strings, and decoding of files.

use super::{Outputs, Rule, one, several, tensor};
use crate::facts::dims;
use crate::facts::view::Operator;
use crate::ir::{Dim, ElementType, Shape};

pub(super) const RULES: &[(&str, Rule)] = &[
    ("ImageDecoder", |_| one(Some(ElementType::UINT8), Some(vec![Dim::Unknown; 3].into()))),
    ("RegexFullMatch", |op| one(Some(ElementType::BOOL), op.shape(0).cloned())),
    ("StringConcat", concat),
    ("StringNormalizer", normalize),
    ("StringSplit", split),
    ("TfIdfVectorizer", tf_idf),
];

fn concat(op: &Operator) -> Option<Outputs> {
    let shape = op.shape(0).zip(op.shape(1)).map(|(a, b)| dims::broadcast_shapes([a.as_slice(), b]));
    one(Some(ElementType::STRING), shape)
}

/// Words may fall away.
fn normalize(op: &Operator) -> Option<Outputs> {
    let shape = match op.rank(0) {
        Some(1) => Some([Dim::Unknown].into_iter().collect()),
        Some(2) => Some([Dim::Fixed(1), Dim::Unknown].into_iter().collect()),
        _ => None,
    };
    one(Some(ElementType::STRING), shape)
}

fn split(op: &Operator) -> Option<Outputs> {
    let parts: Option<Shape> = op.shape(0).map(|s| s.iter().cloned().chain([Dim::Unknown]).collect());
    several([
        tensor(Some(ElementType::STRING), parts),
        tensor(Some(ElementType::INT64), op.shape(0).cloned()),
    ])
}

fn tf_idf(op: &Operator) -> Option<Outputs> {
    let largest = op.list("ngram_indexes")??.iter().max().copied()?;
    let columns = u64::try_from(largest.checked_add(1)?).ok()?;
    let shape = op.shape(0).and_then(|s| match s.as_slice() {
        [_] => Some([Dim::Fixed(columns)].into_iter().collect()),
        [rows, _] => Some([rows.clone(), Dim::Fixed(columns)].into_iter().collect()),
        _ => None,
    });
    one(Some(ElementType::FLOAT), shape)
}
