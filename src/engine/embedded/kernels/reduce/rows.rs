//! What each reduction makes of one row, for each type of element.

use crate::engine::array::Element;
use crate::engine::embedded::kernels::elementwise::number::{Half, Integer};
use crate::engine::embedded::vector_math::{self, widest};
use half::{bf16, f16};

/// A reduction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Sum,
    Mean,
    Max,
    Min,
    Prod,
    L1,
    L2,
    LogSum,
    LogSumExp,
    SumSquare,
}

/// A type whose rows can be reduced. Floating-point sums are kept in float64 from block to block; 16-bit numbers are
/// rounded once, in the end; integers wrap around.
pub trait Reducible: Element + Copy {
    fn row(kind: Kind, row: &[Self]) -> Self;
}

/// The sum in float64 that is not to be had better: what each addition loses is added in the end (Neumaier, 1974).
fn total(numbers: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0f64, 0.0f64);
    for x in numbers {
        let next = sum + x;
        lost += match sum.abs() >= x.abs() {
            true => (sum - next) + x,
            false => (x - next) + sum,
        };
        sum = next;
    }
    // An infinite sum has lost nothing that could be told.
    if sum.is_finite() { sum + lost } else { sum }
}

/// Logarithm of the sum of exponentials, without overflow.
fn log_sum_exp(numbers: impl Iterator<Item = f64> + Clone) -> f64 {
    let most = largest(numbers.clone());
    if !most.is_finite() {
        return most;
    }
    most + total(numbers.map(|x| (x - most).exp())).ln()
}

fn largest(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.fold(f64::NEG_INFINITY, |a, b| if a > b || a.is_nan() { a } else { b })
}

fn smallest(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.fold(f64::INFINITY, |a, b| if a < b || a.is_nan() { a } else { b })
}

/// All reductions of numbers that float64 holds, without a hurry.
fn precise(kind: Kind, numbers: impl ExactSizeIterator<Item = f64> + Clone) -> f64 {
    let count = numbers.len() as f64;
    match kind {
        Kind::Sum => total(numbers),
        Kind::Mean => total(numbers) / count,
        Kind::Max => largest(numbers),
        Kind::Min => smallest(numbers),
        Kind::Prod => numbers.product(),
        Kind::L1 => total(numbers.map(f64::abs)),
        Kind::L2 => total(numbers.map(|x| x * x)).sqrt(),
        Kind::LogSum => total(numbers).ln(),
        Kind::LogSumExp => log_sum_exp(numbers),
        Kind::SumSquare => total(numbers.map(|x| x * x)),
    }
}

impl Reducible for f64 {
    fn row(kind: Kind, row: &[f64]) -> f64 {
        precise(kind, row.iter().copied())
    }
}

impl Reducible for f16 {
    fn row(kind: Kind, row: &[f16]) -> f16 {
        <f16 as Half>::from_f64(precise(kind, row.iter().map(|x| x.to_f64())))
    }
}

impl Reducible for bf16 {
    fn row(kind: Kind, row: &[bf16]) -> bf16 {
        <bf16 as Half>::from_f64(precise(kind, row.iter().map(|x| x.to_f64())))
    }
}

impl Reducible for f32 {
    fn row(kind: Kind, row: &[f32]) -> f32 {
        /// Sum of a function of all elements.
        macro_rules! sum {
            ($x:ident => $f:expr) => {
                widest(
                    #[inline(always)]
                    || vector_math::sum(row, |$x| $f),
                )
            };
        }
        match kind {
            Kind::Sum => sum!(x => x) as f32,
            Kind::Mean => (sum!(x => x) / row.len() as f64) as f32,
            Kind::LogSum => sum!(x => x).ln() as f32,
            Kind::L1 => sum!(x => x.abs()) as f32,
            Kind::L2 => sum!(x => x * x).sqrt() as f32,
            Kind::SumSquare => sum!(x => x * x) as f32,
            Kind::Max => widest(
                #[inline(always)]
                || vector_math::largest(row, |x| x),
            ),
            Kind::Min => -widest(
                #[inline(always)]
                || vector_math::largest(row, |x| -x),
            ),
            Kind::Prod | Kind::LogSumExp => precise(kind, row.iter().map(|x| f64::from(*x))) as f32,
        }
    }
}

macro_rules! integers {
    ($($t:ty)*) => {
        $(impl Reducible for $t {
            fn row(kind: Kind, row: &[$t]) -> $t {
                let numbers = row.iter().copied();
                match kind {
                    Kind::Sum => numbers.fold(0, <$t as Integer>::add),
                    Kind::Mean => {
                        let sum: i128 = numbers.map(i128::from).sum();
                        (sum / (row.len() as i128).max(1)) as $t
                    }
                    Kind::Max => numbers.max().unwrap_or(<$t>::MIN),
                    Kind::Min => numbers.min().unwrap_or(<$t>::MAX),
                    Kind::Prod => numbers.fold(1, <$t as Integer>::mul),
                    Kind::L1 => numbers.map(Integer::abs).fold(0, <$t as Integer>::add),
                    Kind::SumSquare => numbers.map(|x| x.mul(x)).fold(0, <$t as Integer>::add),
                    Kind::L2 | Kind::LogSum | Kind::LogSumExp => {
                        precise(kind, row.iter().map(|x| x.to_f64())) as $t
                    }
                }
            }
        })*
    };
}
integers! { i8 i16 i32 i64 u8 u16 u32 u64 }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_keep_what_single_additions_lose() {
        assert_eq!(f64::row(Kind::Sum, &[1e100, 1.0, -1e100]), 1.0);
        assert!((f32::row(Kind::Mean, &vec![0.1; 100_000]) - 0.1).abs() < 2e-8);
        assert_eq!(f64::row(Kind::Sum, &[f64::INFINITY, 1.0]), f64::INFINITY);
    }

    #[test]
    fn nothing_at_all_has_the_results_of_the_standard() {
        assert_eq!([f32::row(Kind::Max, &[]), f32::row(Kind::Min, &[])], [f32::NEG_INFINITY, f32::INFINITY]);
        assert_eq!([f32::row(Kind::LogSum, &[]), f32::row(Kind::LogSumExp, &[])], [f32::NEG_INFINITY; 2]);
        assert_eq!([f32::row(Kind::Sum, &[]), f32::row(Kind::Prod, &[])], [0.0, 1.0]);
        assert!(f32::row(Kind::Mean, &[]).is_nan());
        assert_eq!([i8::row(Kind::Max, &[]), i8::row(Kind::Min, &[])], [-128, 127]);
    }

    #[test]
    fn integers_wrap_and_numbers_that_are_none_go_through() {
        assert_eq!(i64::row(Kind::Sum, &[i64::MAX, 1]), i64::MIN);
        assert_eq!(i32::row(Kind::Mean, &[i32::MAX, i32::MAX, -1]), 1_431_655_764);
        assert!(f32::row(Kind::Max, &[1.0, f32::NAN, 2.0]).is_nan());
        assert!(f32::row(Kind::Min, &[1.0, f32::NAN, 2.0]).is_nan());
    }
}
