//! float32 functions in a form that the compiler turns into vector code, and loops compiled for several instruction
//! sets, of which the widest that the machine has is taken when running.

/// Runs a loop with the widest vector instructions of the machine. The closure must be `#[inline(always)]`, so that a
/// copy of it is compiled for each set; all sets give the same answer.
#[inline(always)]
pub fn widest<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,bmi1,bmi2")]
        fn avx512<R>(work: impl FnOnce() -> R) -> R {
            work()
        }
        #[target_feature(enable = "avx2,fma,bmi1,bmi2")]
        fn avx2<R>(work: impl FnOnce() -> R) -> R {
            work()
        }
        if is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("bmi2")
        {
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
            {
                // SAFETY: the machine has these instructions.
                return unsafe { avx512(work) };
            }
            // SAFETY: as above; bmi1 came with bmi2.
            return unsafe { avx2(work) };
        }
    }
    work()
}

/// Changes every element, with the widest instructions.
#[inline(always)]
pub fn each(elements: &mut [f32], f: impl Fn(f32) -> f32) {
    widest(
        #[inline(always)]
        || elements.iter_mut().for_each(|x| *x = f(*x)),
    );
}

/// Adding and taking away rounds a number below 2^22 to an integer, which then stands in the low bits.
const ROUNDER: f32 = 12_582_912.0;
/// ln 2 in two parts; the first has so few bits that its product with an exponent is exact.
const LN_2_HIGH: f32 = 0.693_359_4;
const LN_2_LOW: f32 = -2.121_944_4e-4;

/// e^r - 1, and n, where x = n ln 2 + r. The polynomial is fitted to a relative error of 4e-9.
#[inline(always)]
fn reduced(x: f32) -> (f32, i32) {
    let shifted = x.mul_add(std::f32::consts::LOG2_E, ROUNDER);
    let n = shifted - ROUNDER;
    let r = n.mul_add(-LN_2_LOW, n.mul_add(-LN_2_HIGH, x));
    let q = 1.395_170_7e-3f32
        .mul_add(r, 8.369_599_5e-3)
        .mul_add(r, 4.166_618_7e-2)
        .mul_add(r, 1.666_651_2e-1)
        .mul_add(r, 0.5);
    let fraction = (r * r).mul_add(q, r);
    (fraction, (shifted.to_bits() as i32).wrapping_sub(ROUNDER.to_bits() as i32))
}

/// 2^n for a normal number.
#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) as u32) << 23)
}

/// Keeps a number within bounds and NaN as it is.
#[inline(always)]
fn within(x: f32, low: f32, high: f32) -> f32 {
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}

/// e^x, within 1 ulp.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let (fraction, n) = reduced(within(x, -104.0, 89.0));
    // In two steps, since 2^n itself may be no normal number.
    let half = n >> 1;
    (fraction + 1.0) * power_of_two(half) * power_of_two(n.wrapping_sub(half))
}

/// e^x for x that is not above 0: what would be below the smallest normal number becomes 0.
#[inline(always)]
pub fn exp_of_negative(x: f32) -> f32 {
    let (fraction, n) = reduced(if x < -88.0 { -88.0 } else { x });
    let y = (fraction + 1.0) * power_of_two(n);
    if x < -87.3 { 0.0 } else { y }
}

/// e^x - 1, within 2 ulp.
#[inline(always)]
pub fn exp_m1(x: f32) -> f32 {
    let bounded = within(x, -18.0, 88.8);
    let (fraction, n) = reduced(bounded);
    // 2^128 is no number: half of the result is doubled.
    let half = power_of_two(n.wrapping_sub(1));
    let y = 2.0 * fraction.mul_add(half, half - 0.5);
    // e^x - 1 is x itself where x is small, with its sign of zero.
    if x.abs() < 1e-8 { x } else { y }
}

/// 1 / (1 + e^-x), within 2 ulp.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// Hyperbolic tangent, within 2 ulp.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let magnitude = x.abs();
    let square = x * x;
    let q = 2.126_236_7e-3f32
        .mul_add(square, -8.159_567e-3)
        .mul_add(square, 2.169_368_6e-2)
        .mul_add(square, -5.394_552_3e-2)
        .mul_add(square, 1.333_319_7e-1)
        .mul_add(square, -3.333_333e-1);
    let small = (x * square).mul_add(q, x).copysign(x);
    let (fraction, n) = reduced(2.0 * within(magnitude, 0.0, 10.0));
    let power = (fraction + 1.0) * power_of_two(n);
    let large = (1.0 - 2.0 / (power + 1.0)).copysign(x);
    if magnitude < 0.625 { small } else { large }
}

/// Error function, within 2 ulp: a polynomial near zero, beyond it 1 - e^p(x) with a polynomial for the logarithm of
/// the complement.
#[inline(always)]
pub fn erf(x: f32) -> f32 {
    let magnitude = x.abs();
    let square = x * x;
    let q = (-5.862_47e-4f32)
        .mul_add(square, 4.967_604e-3)
        .mul_add(square, -2.674_895_2e-2)
        .mul_add(square, 1.128_132_4e-1)
        .mul_add(square, -3.761_244_7e-1)
        .mul_add(square, 1.283_791_4e-1);
    let small = x.mul_add(q, x);
    let t = within(magnitude, 0.0, 4.0);
    let p = 1.043_376_1e-5f32
        .mul_add(t, -3.148_642_4e-4)
        .mul_add(t, 3.610_365_6e-3)
        .mul_add(t, -2.369_461_2e-2)
        .mul_add(t, 1.061_591e-1)
        .mul_add(t, 6.351_98e-1)
        .mul_add(t, 1.286_370_8e-1);
    let (fraction, n) = reduced(-t.mul_add(p, t));
    let power = (fraction + 1.0) * power_of_two(n);
    let large = (1.0 - power).copysign(x);
    if magnitude < 0.92 { small } else { large }
}

/// Natural logarithm, within 1 ulp.
#[inline(always)]
pub fn ln(x: f32) -> f32 {
    // Numbers too small to be normal are brought into range first.
    let tiny = x < f32::MIN_POSITIVE;
    let scaled = if tiny { x * 8_388_608.0 } else { x };
    let correction = if tiny { -23.0 } else { 0.0 };
    let half = std::f32::consts::FRAC_1_SQRT_2.to_bits();
    let n = (scaled.to_bits().wrapping_sub(half) as i32) >> 23;
    let mantissa = f32::from_bits(scaled.to_bits().wrapping_sub((n << 23) as u32));
    let f = mantissa - 1.0;
    let n = n as f32 + correction;
    let q = (-7.634_108_5e-2f32)
        .mul_add(f, 1.276_142_3e-1)
        .mul_add(f, -1.316_025_7e-1)
        .mul_add(f, 1.420_178_4e-1)
        .mul_add(f, -1.662_335_2e-1)
        .mul_add(f, 2.000_122_5e-1)
        .mul_add(f, -2.500_082_3e-1)
        .mul_add(f, 3.333_333e-1);
    let square = f * f;
    let tail = n.mul_add(LN_2_LOW, square.mul_add(-0.5, square * f * q));
    let y = n.mul_add(LN_2_HIGH, f + tail);
    let y = if x == 0.0 { f32::NEG_INFINITY } else { y };
    let y = if x < 0.0 { f32::NAN } else { y };
    // Infinity, and NaN of either sign.
    if x < f32::INFINITY { y } else { x }
}

/// ln(1 + e^x), without overflow.
#[inline(always)]
pub fn softplus(x: f32) -> f32 {
    let u = exp_of_negative(-x.abs());
    // ln(1 + u), corrected for the rounding of 1 + u (Goldberg, "What every computer scientist should know", theorem 4).
    let sum = 1.0 + u;
    let log = if sum == 1.0 { u } else { ln(sum) * (u / (sum - 1.0)) };
    let positive = if x < 0.0 { 0.0 } else { x };
    positive + log
}

/// Partial sums that go on side by side.
const LANES: usize = 32;
/// Elements that are summed in float32 before the sum is added up in float64.
const BLOCK: usize = 512;

/// Sum of `f` of all elements: float32 in blocks, the blocks in float64. The order does not depend on the machine.
#[inline(always)]
pub fn sum(elements: &[f32], f: impl Fn(f32) -> f32) -> f64 {
    let mut total = 0.0f64;
    for block in elements.chunks(BLOCK) {
        let mut lanes = [0.0f32; LANES];
        let (whole, rest) = block.as_chunks::<LANES>();
        for chunk in whole {
            for (lane, x) in lanes.iter_mut().zip(chunk) {
                *lane += f(*x);
            }
        }
        for (lane, x) in lanes.iter_mut().zip(rest) {
            *lane += f(*x);
        }
        total += f64::from(folded(lanes, |a, b| a + b));
    }
    total
}

/// Largest `f` of an element, NaN when one is; -infinity of none.
#[inline(always)]
pub fn largest(elements: &[f32], f: impl Fn(f32) -> f32) -> f32 {
    let larger = |a: f32, b: f32| if a > b || a.is_nan() { a } else { b };
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (whole, rest) = elements.as_chunks::<LANES>();
    for chunk in whole {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane = larger(*lane, f(*x));
        }
    }
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *lane = larger(*lane, f(*x));
    }
    folded(lanes, larger)
}

/// All lanes in one, halves upon halves.
#[inline(always)]
fn folded(mut lanes: [f32; LANES], f: impl Fn(f32, f32) -> f32) -> f32 {
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        for i in 0..width {
            lanes[i] = f(lanes[i], lanes[i + width]);
        }
    }
    lanes[0]
}

/// Softmax of one row, in place: all NaN when an element is NaN or infinity.
pub fn softmax(row: &mut [f32]) {
    widest(
        #[inline(always)]
        || {
            let most = largest(row, |x| x);
            for x in row.iter_mut() {
                *x = exp_of_negative(*x - most);
            }
            let factor = 1.0 / sum(row, |x| x) as f32;
            for x in row.iter_mut() {
                *x *= factor;
            }
        },
    );
}

/// Logarithm of the softmax of one row, in place.
pub fn log_softmax(row: &mut [f32]) {
    widest(
        #[inline(always)]
        || {
            let most = largest(row, |x| x);
            let log = sum(
                row,
                #[inline(always)]
                |x| exp_of_negative(x - most),
            )
            .ln() as f32;
            for x in row.iter_mut() {
                *x = *x - most - log;
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Largest distance in units of the last place from the float64 function, over a range.
    fn ulps(ours: fn(f32) -> f32, right: fn(f64) -> f64, low: f32, high: f32) -> f64 {
        let steps = 200_000;
        let mut worst = 0.0f64;
        for i in 0..=steps {
            let x = low + (high - low) * (i as f32 / steps as f32);
            let right = right(f64::from(x));
            let unit = f64::from((right as f32).abs().next_up() - (right as f32).abs());
            worst = worst.max((f64::from(ours(x)) - right).abs() / unit);
        }
        worst
    }

    #[test]
    fn functions_are_within_their_bounds() {
        assert!(ulps(exp, f64::exp, -87.0, 88.7) < 1.1);
        assert!(ulps(exp_of_negative, f64::exp, -87.2, 0.0) < 1.1);
        assert!(ulps(exp_m1, f64::exp_m1, -17.0, 88.0) < 2.0);
        assert!(ulps(tanh, f64::tanh, -9.5, 9.5) < 2.0);
        assert!(ulps(ln, f64::ln, 1e-3, 1e3) < 1.1);
        assert!(ulps(ln, f64::ln, 1e20, 3e38) < 1.1);
        assert!(ulps(sigmoid, |x| 1.0 / (1.0 + (-x).exp()), -80.0, 80.0) < 2.5);
        assert!(ulps(softplus, |x| x.exp().ln_1p(), -80.0, 80.0) < 3.0);
    }

    #[test]
    fn special_numbers_are_those_of_the_mathematical_functions() {
        let infinity = f32::INFINITY;
        assert_eq!([exp(infinity), exp(-infinity), exp(0.0)], [infinity, 0.0, 1.0]);
        assert_eq!(exp(-103.0), 1e-45);
        assert_eq!([tanh(infinity), tanh(-infinity), erf(infinity), erf(-7.0)], [1.0, -1.0, 1.0, -1.0]);
        assert_eq!([ln(0.0), ln(infinity), ln(1.0)], [-infinity, infinity, 0.0]);
        assert_eq!(ln(1e-45), (1e-45f32).ln());
        assert_eq!([exp_m1(infinity), exp_m1(-infinity), softplus(infinity)], [infinity, -1.0, infinity]);
        assert_eq!([sigmoid(infinity), sigmoid(-infinity)], [1.0, 0.0]);
        for f in [exp, exp_m1, exp_of_negative, tanh, erf, ln, sigmoid, softplus] {
            assert!(f(f32::NAN).is_nan());
        }
        assert!(ln(-1.0).is_nan() && ln(-infinity).is_nan());
        for f in [tanh, erf, exp_m1] {
            assert_eq!(f(-0.0).to_bits(), (-0.0f32).to_bits());
        }
    }

    #[test]
    fn sums_and_maxima_see_every_element() {
        let row: Vec<f32> = (0..5000).map(|i| i as f32).collect();
        assert_eq!(sum(&row, |x| x), 12_497_500.0);
        assert_eq!(largest(&row, |x| x), 4999.0);
        assert!(largest(&[1.0, f32::NAN, 2.0], |x| x).is_nan());
        let mut even = vec![3.0f32; 7];
        softmax(&mut even);
        assert!(even.iter().all(|x| (x - 1.0 / 7.0).abs() < 1e-7));
    }
}
