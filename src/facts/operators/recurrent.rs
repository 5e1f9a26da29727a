//! Recurrent layers.

use super::{Outputs, Rule, several, tensor};
use crate::facts::view::Operator;
use crate::ir::Dim;

pub(super) const RULES: &[(&str, Rule)] = &[("GRU", recurrent), ("LSTM", recurrent), ("RNN", recurrent)];

fn recurrent(op: &Operator) -> Option<Outputs> {
    let hidden = match op.node.attribute("hidden_size") {
        Some(v) => Dim::Fixed(u64::try_from(v.int()?).ok()?),
        // Recurrence weights: (directions, gates × hidden, hidden).
        None => op.dim(2, 2),
    };
    let directions = match op.text("direction", "forward")? {
        "forward" | "reverse" => Dim::Fixed(1),
        "bidirectional" => Dim::Fixed(2),
        _ => Dim::Unknown,
    };
    let batch_first = op.opset >= 14 && op.int("layout", 0)? != 0;
    let (sequence, batch) = if batch_first { (1, 0) } else { (0, 1) };
    let (sequence, batch) = (op.dim(0, sequence), op.dim(0, batch));
    let (all, last) = if batch_first {
        ([batch.clone(), sequence, directions.clone(), hidden.clone()], [batch, directions, hidden])
    } else {
        ([sequence, directions.clone(), batch.clone(), hidden.clone()], [directions, batch, hidden])
    };
    let element = op.element(0);
    let last = tensor(element, Some(last.into_iter().collect()));
    several([tensor(element, Some(all.into_iter().collect())), last.clone(), last])
}
