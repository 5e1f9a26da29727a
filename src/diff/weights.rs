//! How far two constants are apart, in numbers.

use crate::ir::Tensor;
use serde::Serialize;

/// Two tensors of equal element count, element by element.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Distance {
    pub elements: u64,
    /// Elements that are not equal; NaN equals NaN.
    pub differing: u64,
    /// Largest absolute difference of finite elements.
    pub largest: f64,
    /// Mean absolute difference of finite elements.
    pub mean: f64,
    /// Norm of the difference relative to the norm of the first; `None` when that is zero.
    pub relative: Option<f64>,
}

/// The distance of two tensors; `None` for other shapes, strings, missing data and types without an obvious number.
pub fn distance(before: &Tensor, after: &Tensor) -> Option<Distance> {
    if before.dims != after.dims {
        return None;
    }
    let (a, b) = (before.approximate()?, after.approximate()?);
    let mut distance =
        Distance { elements: a.len() as u64, differing: 0, largest: 0.0, mean: 0.0, relative: None };
    let (mut sum, mut squares, mut norm, mut finite) = (0.0f64, 0.0f64, 0.0f64, 0u64);
    for (x, y) in a.iter().zip(&b) {
        distance.differing += u64::from(!(x == y || (x.is_nan() && y.is_nan())));
        if !x.is_finite() || !y.is_finite() {
            continue;
        }
        let gap = (x - y).abs();
        finite += 1;
        distance.largest = distance.largest.max(gap);
        sum += gap;
        squares += gap * gap;
        norm += x * x;
    }
    if finite > 0 {
        distance.mean = sum / finite as f64;
    }
    distance.relative = (norm > 0.0).then(|| (squares / norm).sqrt());
    Some(distance)
}
