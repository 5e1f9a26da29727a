//! What the numbers of a weight look like: range, mean, spread, histogram.

use crate::ir::Tensor;
use serde::Serialize;

/// Bars of a histogram.
pub const BARS: usize = 40;

/// Statistics over the finite elements of a tensor.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Statistics {
    pub count: usize,
    pub finite: usize,
    pub nan: usize,
    pub infinite: usize,
    pub zero: usize,
    pub min: f64,
    pub max: f64,
    pub mean: f64,
    /// Standard deviation of the population.
    pub std: f64,
    /// [`BARS`] equal steps from `min` to `max`; empty when there is nothing finite.
    pub histogram: Vec<u32>,
    /// The first elements as text, exact for integers.
    pub first: Vec<String>,
}

impl Statistics {
    /// Of a tensor with numbers; `None` for strings, missing data and types without an obvious number.
    pub fn of(tensor: &Tensor) -> Option<Statistics> {
        let values = tensor.approximate()?;
        let mut s = Statistics {
            count: values.len(),
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            ..Default::default()
        };
        let (mut mean, mut squares) = (0.0f64, 0.0f64);
        for v in &values {
            if v.is_nan() {
                s.nan += 1;
            } else if v.is_infinite() {
                s.infinite += 1;
            } else {
                s.finite += 1;
                s.zero += (*v == 0.0) as usize;
                s.min = s.min.min(*v);
                s.max = s.max.max(*v);
                // Welford's update: one pass without cancellation (Knuth, TAOCP vol. 2, 4.2.2).
                let delta = v - mean;
                mean += delta / s.finite as f64;
                squares += delta * (v - mean);
            }
        }
        if s.finite == 0 {
            (s.min, s.max) = (f64::NAN, f64::NAN);
            (s.mean, s.std) = (f64::NAN, f64::NAN);
        } else {
            (s.mean, s.std) = (mean, (squares / s.finite as f64).sqrt());
            let width = (s.max - s.min) / BARS as f64;
            s.histogram = vec![0; if width > 0.0 && width.is_finite() { BARS } else { 1 }];
            let last = s.histogram.len() - 1;
            for v in values.iter().filter(|v| v.is_finite()) {
                let bar = if last == 0 { 0 } else { (((v - s.min) / width) as usize).min(last) };
                s.histogram[bar] += 1;
            }
        }
        s.first = match tensor.integers() {
            Some(exact) => exact.iter().take(16).map(i64::to_string).collect(),
            None => values.iter().take(16).map(|v| format!("{:?}", *v as f32)).collect(),
        };
        Some(s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_of_ordinary_and_odd_numbers() {
        let s = Statistics::of(&Tensor::from_f32(&[5], &[1.0, 2.0, 3.0, f32::NAN, f32::INFINITY])).unwrap();
        assert_eq!((s.count, s.finite, s.nan, s.infinite), (5, 3, 1, 1));
        assert_eq!((s.min, s.max, s.mean), (1.0, 3.0, 2.0));
        assert!((s.std - (2.0f64 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!(s.histogram.iter().sum::<u32>(), 3);
        let exact = Statistics::of(&Tensor::ints(&[9007199254740993])).unwrap();
        assert_eq!(exact.first, ["9007199254740993"]);
        let empty = Statistics::of(&Tensor::from_f32(&[0], &[])).unwrap();
        assert!(empty.mean.is_nan() && empty.histogram.is_empty());
    }
}
