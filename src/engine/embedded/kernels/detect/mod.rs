//! Operators of object detectors: boxes that overlap, regions of feature maps.

mod regions;

use crate::engine::array::{Array, Element, Storage};
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::fault::Fault;
use std::cmp::Ordering;

kernels! {
    "MaxRoiPool" => Kernel::plain(regions::max_roi_pool),
    "NonMaxSuppression" => Kernel::plain(non_max_suppression),
    "RoiAlign" => Kernel::plain(regions::roi_align),
}

/// Floats that boxes are compared in.
pub trait Real:
    Element
    + Copy
    + PartialOrd
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::Div<Output = Self>
{
    /// From an attribute or a small number.
    fn from_f64(value: f64) -> Self;
    /// Widened.
    fn to_f64(self) -> f64;
}

impl Real for f32 {
    fn from_f64(value: f64) -> f32 {
        value as f32
    }
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
}

impl Real for f64 {
    fn from_f64(value: f64) -> f64 {
        value
    }
    fn to_f64(self) -> f64 {
        self
    }
}

/// NonMaxSuppression.
fn non_max_suppression(call: &mut Call) -> Result<Outputs, Fault> {
    match call.input(0)?.storage() {
        Storage::F32(_) => suppressed::<f32>(call),
        Storage::F64(_) => suppressed::<f64>(call),
        _ => call.unsupported(call.input(0)?.element()),
    }
}

/// A box by its corners.
#[derive(Clone, Copy)]
struct Corners<T> {
    low: [T; 2],
    high: [T; 2],
}

fn smaller<T: PartialOrd>(a: T, b: T) -> T {
    if b < a { b } else { a }
}

fn larger<T: PartialOrd>(a: T, b: T) -> T {
    if b > a { b } else { a }
}

impl<T: Real> Corners<T> {
    /// From two opposite corners in either order, or from centre and size.
    fn of(box4: &[T], centre: bool) -> Corners<T> {
        let [a, b, c, d] = [box4[0], box4[1], box4[2], box4[3]];
        if centre {
            let two = T::from_f64(2.0);
            let (width, height) = (c / two, d / two);
            Corners { low: [a - width, b - height], high: [a + width, b + height] }
        } else {
            Corners { low: [smaller(a, c), smaller(b, d)], high: [larger(a, c), larger(b, d)] }
        }
    }

    fn area(&self) -> T {
        (self.high[0] - self.low[0]) * (self.high[1] - self.low[1])
    }

    /// True when intersection over union exceeds the threshold; boxes without area never do.
    fn overlaps(&self, other: &Corners<T>, threshold: T) -> bool {
        let zero = T::default();
        let side = |axis: usize| {
            smaller(self.high[axis], other.high[axis]) - larger(self.low[axis], other.low[axis])
        };
        let (width, height) = (side(0), side(1));
        if !(width > zero && height > zero) {
            return false;
        }
        let shared = width * height;
        let (mine, theirs) = (self.area(), other.area());
        let union = mine + theirs - shared;
        shared > zero && mine > zero && theirs > zero && union > zero && shared / union > threshold
    }
}

fn suppressed<T: Real>(call: &Call) -> Result<Outputs, Fault> {
    let (boxes, scores) = (call.input(0)?, call.input(1)?);
    let refused = || {
        Fault::Invalid(format!("boxes {:?} and scores {:?} do not fit together", boxes.dims(), scores.dims()))
    };
    let ([batches, count, 4], [score_batches, classes, score_count]) = (boxes.dims(), scores.dims()) else {
        return Err(refused());
    };
    if batches != score_batches || count != score_count {
        return Err(refused());
    }
    let centre = call.attributes.int("center_point_box", 0)? != 0;
    let first = |index: usize| -> Result<Option<f64>, Fault> {
        Ok(call.optional(index)?.and_then(Array::approximate).and_then(|v| v.first().copied()))
    };
    // Left out, no box is asked for.
    let most = match call.optional(2)? {
        Some(most) => most.integers()?.first().copied().unwrap_or(0).max(0) as usize,
        None => 0,
    };
    let overlap = T::from_f64(first(3)?.unwrap_or(0.0));
    let least = first(4)?.map(T::from_f64);
    let (boxes, scores) = (boxes.view::<T>()?, scores.view::<T>()?);
    let mut selected: Vec<i64> = Vec::new();
    for batch in 0..*batches {
        let corners: Vec<Corners<T>> = boxes[batch * count * 4..(batch + 1) * count * 4]
            .chunks_exact(4)
            .map(|b| Corners::of(b, centre))
            .collect();
        for class in 0..*classes {
            let scores = &scores[(batch * classes + class) * count..][..*count];
            let mut candidates: Vec<usize> =
                (0..*count).filter(|i| least.is_none_or(|least| scores[*i] > least)).collect();
            // Best first, the lower index of equals; NaN last.
            candidates.sort_by(|a, b| {
                let nan = |i: usize| scores[i].partial_cmp(&scores[i]).is_none();
                scores[*b].partial_cmp(&scores[*a]).unwrap_or_else(|| match (nan(*a), nan(*b)) {
                    (true, false) => Ordering::Greater,
                    (false, true) => Ordering::Less,
                    _ => Ordering::Equal,
                })
            });
            let mut kept: Vec<usize> = Vec::new();
            for at in candidates {
                if kept.len() >= most {
                    break;
                }
                if !kept.iter().any(|k| corners[at].overlaps(&corners[*k], overlap)) {
                    kept.push(at);
                    selected.extend([batch as i64, class as i64, at as i64]);
                }
            }
        }
    }
    call.elements(&[selected.len()], 8)?;
    one(Array::new(&[selected.len() / 3, 3], selected))
}

#[cfg(test)]
mod tests {
    use super::Corners;

    #[test]
    fn corners_may_come_in_any_order_and_empty_boxes_suppress_nothing() {
        let flipped = Corners::of(&[1.0f32, 1.0, 0.0, 0.0], false);
        assert!(flipped.overlaps(&Corners::of(&[0.5, 0.5, 1.0, 1.0], true), 0.99));
        let empty = Corners::of(&[0.5f32, 0.5, 0.5, 0.5], false);
        assert!(!flipped.overlaps(&empty, 0.0));
        assert!(!empty.overlaps(&empty, 0.0));
    }
}
