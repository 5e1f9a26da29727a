//! Pooling, also over regions of interest.

use super::windows::Windows;
use super::{Outputs, Rule, one, several, tensor};
use crate::facts::dims;
use crate::facts::view::Operator;
use crate::ir::{Dim, ElementType, Shape};

pub(super) const RULES: &[(&str, Rule)] = &[
    ("AveragePool", pool),
    ("GlobalAveragePool", global),
    ("GlobalLpPool", global),
    ("GlobalMaxPool", global),
    ("LpPool", pool),
    ("MaxPool", max_pool),
    ("MaxRoiPool", max_roi_pool),
    ("MaxUnpool", max_unpool),
    ("RoiAlign", roi_align),
];

fn pooled(op: &Operator) -> Option<Shape> {
    let input = op.shape(0)?;
    let axes = input.len().checked_sub(2)?;
    let w = Windows::of(op, None).filter(|w| w.kernel.len() == axes);
    let spatial =
        input.iter().skip(2).enumerate().map(|(i, d)| w.as_ref().map_or(Dim::Unknown, |w| w.count(i, d)));
    Some(input.iter().take(2).cloned().chain(spatial).collect())
}

fn pool(op: &Operator) -> Option<Outputs> {
    one(op.element(0), pooled(op))
}

fn max_pool(op: &Operator) -> Option<Outputs> {
    let shape = pooled(op);
    several([tensor(op.element(0), shape.clone()), tensor(Some(ElementType::INT64), shape)])
}

fn global(op: &Operator) -> Option<Outputs> {
    let shape = op
        .shape(0)
        .map(|s| s.iter().enumerate().map(|(i, d)| if i < 2 { d.clone() } else { Dim::Fixed(1) }).collect());
    one(op.element(0), shape)
}

fn max_unpool(op: &Operator) -> Option<Outputs> {
    let shape = || {
        let input = op.shape(0)?;
        if op.has(2) {
            let rank = op.dim(2, 0).fixed()?;
            let given = op.ints(2).map(|s| s.into_iter().map(dims::of).collect::<Shape>());
            return Some(given.unwrap_or_else(|| vec![Dim::Unknown; rank.min(64) as usize].into()));
        }
        let w = Windows::of(op, None)?;
        let spatial = input.iter().skip(2).enumerate().map(|(i, d)| {
            let count = || {
                let stride = *w.strides.get(i)?;
                let pads = w.begin.get(i)?.checked_add(*w.end.get(i)?)?;
                let rest = w.kernel.get(i)?.checked_sub(stride)?.checked_sub(pads)?;
                Some(dims::plus(&dims::times(d, u64::try_from(stride).ok()?), rest))
            };
            count().unwrap_or(Dim::Unknown)
        });
        Some(input.iter().take(2).cloned().chain(spatial).collect())
    };
    one(op.element(0), shape())
}

fn max_roi_pool(op: &Operator) -> Option<Outputs> {
    let size = op.list("pooled_shape")??.iter().map(|n| u64::try_from(*n).map_or(Dim::Unknown, Dim::Fixed));
    one(op.element(0), Some([op.dim(1, 0), op.dim(0, 1)].into_iter().chain(size).collect()))
}

fn roi_align(op: &Operator) -> Option<Outputs> {
    let size = |name| op.int(name, 1).and_then(|n| u64::try_from(n).ok()).map_or(Dim::Unknown, Dim::Fixed);
    let shape = [op.dim(1, 0), op.dim(0, 1), size("output_height"), size("output_width")];
    one(op.element(0), Some(shape.into_iter().collect()))
}
