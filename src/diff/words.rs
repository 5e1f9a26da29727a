//! Differences in words, the same on the command line and in the window.

use super::What;
use crate::facts::view;
use crate::ir::{Model, Text, ValueId};

/// One difference in a few words: `input 0: 'a' → 'b'`.
pub fn sentence(before: &Model, after: &Model, what: &What) -> String {
    let or_nothing = |text: &Option<String>| text.clone().unwrap_or_else(|| "nothing".into());
    let quoted = |name: &Option<Text>| match name {
        Some(name) => format!("'{name}'"),
        None => "nothing".into(),
    };
    match what {
        What::Operator { before, after } => format!("operator {before} → {after}"),
        What::Attribute { name, before, after } => {
            format!("attribute {name}: {} → {}", or_nothing(before), or_nothing(after))
        }
        What::Input { index, before, after } => {
            format!("input {index}: {} → {}", quoted(before), quoted(after))
        }
        What::Output { index, before, after } => {
            format!("output {index}: {} → {}", quoted(before), quoted(after))
        }
        What::Constant { index, before: a, after: b } => {
            let (a, b) = (described(before, *a), described(after, *b));
            let same = if a == b { ", other elements" } else { "" };
            format!("constant at input {index}: {a} → {b}{same}")
        }
        What::Graph { before, after } => format!("graph {before} → {after}"),
    }
}

/// Name and type of a constant: `'conv1.weight' float[64, 3, 7, 7]`.
fn described(model: &Model, value: ValueId) -> String {
    let name = model.get_value(value).map(|v| v.name.to_string()).unwrap_or_default();
    match view::constant(model, value) {
        Some(tensor) => format!("'{name}' {}", tensor.ty()),
        None => format!("'{name}'"),
    }
}
