//! Integers and half-precision numbers as the generic loops see them.

use crate::engine::array::Element;
use half::{bf16, f16};

/// An integer type. Results that do not fit wrap around.
pub trait Integer: Element + Copy + Ord {
    const MIN: Self;
    const MAX: Self;
    const ONE: Self;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    /// Quotient towards zero; the divisor is not 0.
    fn div(self, other: Self) -> Self;
    /// Remainder with the sign of the dividend; the divisor is not 0.
    fn rem(self, other: Self) -> Self;
    /// Remainder with the sign of the divisor, which is not 0.
    fn floor_mod(self, other: Self) -> Self;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    fn not(self) -> Self;
    /// By `amount` bits; all of them are gone, or only the sign is left, when the amount is negative or no less than
    /// the width (ONNX, BitShift-28).
    fn shift_left(self, amount: Self) -> Self;
    fn shift_right(self, amount: Self) -> Self;
    fn abs(self) -> Self;
    fn neg(self) -> Self;
    fn sign(self) -> Self;
    /// Towards zero; numbers out of range become the nearest bound, NaN 0.
    fn from_f64(value: f64) -> Self;
    fn to_f64(self) -> f64;
    fn to_i128(self) -> i128;
}

macro_rules! integers {
    ($($t:ty, $signed:literal;)*) => {
        $(impl Integer for $t {
            const MIN: Self = <$t>::MIN;
            const MAX: Self = <$t>::MAX;
            const ONE: Self = 1;

            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }

            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }

            #[inline(always)]
            fn div(self, other: Self) -> Self {
                self.checked_div(other).unwrap_or(<$t>::MIN)
            }

            #[inline(always)]
            fn rem(self, other: Self) -> Self {
                self.checked_rem(other).unwrap_or(0)
            }

            #[inline(always)]
            fn floor_mod(self, other: Self) -> Self {
                let r = self.checked_rem(other).unwrap_or(0);
                #[allow(unused_comparisons, reason = "unsigned types go through here as well")]
                if r != 0 && (r < 0) != (other < 0) { r.wrapping_add(other) } else { r }
            }

            #[inline(always)]
            fn and(self, other: Self) -> Self {
                self & other
            }

            #[inline(always)]
            fn or(self, other: Self) -> Self {
                self | other
            }

            #[inline(always)]
            fn xor(self, other: Self) -> Self {
                self ^ other
            }

            #[inline(always)]
            fn not(self) -> Self {
                !self
            }

            #[inline(always)]
            fn shift_left(self, amount: Self) -> Self {
                u32::try_from(amount).ok().and_then(|n| self.checked_shl(n)).unwrap_or(0)
            }

            #[inline(always)]
            fn shift_right(self, amount: Self) -> Self {
                let all = if $signed { self >> (<$t>::BITS - 1) } else { 0 };
                u32::try_from(amount).ok().and_then(|n| self.checked_shr(n)).unwrap_or(all)
            }

            #[inline(always)]
            fn abs(self) -> Self {
                #[allow(unused_comparisons, reason = "unsigned types go through here as well")]
                if self < 0 { self.wrapping_neg() } else { self }
            }

            #[inline(always)]
            fn neg(self) -> Self {
                self.wrapping_neg()
            }

            #[inline(always)]
            fn sign(self) -> Self {
                #[allow(unused_comparisons, reason = "unsigned types go through here as well")]
                if self < 0 { (0 as $t).wrapping_sub(1) } else { <$t>::from(self > 0) }
            }

            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                value as $t
            }

            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }

            #[inline(always)]
            fn to_i128(self) -> i128 {
                self as i128
            }
        })*
    };
}

integers! {
    i8, true;
    i16, true;
    i32, true;
    i64, true;
    u8, false;
    u16, false;
    u32, false;
    u64, false;
}

/// A 16-bit floating-point type: computed in float32, rounded once.
pub trait Half: Element + Copy {
    fn widen(self) -> f32;
    fn round(value: f32) -> Self;
    fn from_f64(value: f64) -> Self;
}

/// float32 rounded to odd: a number with fewer bits that is rounded from it is the one rounded from `value` itself
/// (Boldo and Melquiond, "When double rounding is odd", 2005).
fn to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    if f64::from(nearest) == value || value.is_nan() {
        return nearest;
    }
    let below = match f64::from(nearest).abs() > value.abs() {
        true => nearest.to_bits() - 1,
        false => nearest.to_bits(),
    };
    f32::from_bits(below | 1)
}

impl Half for f16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        self.to_f32()
    }

    #[inline(always)]
    fn round(value: f32) -> Self {
        f16::from_f32(value)
    }

    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        f16::from_f32(to_odd(value))
    }
}

impl Half for bf16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        self.to_f32()
    }

    #[inline(always)]
    fn round(value: f32) -> Self {
        bf16::from_f32(value)
    }

    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        bf16::from_f32(to_odd(value))
    }
}
