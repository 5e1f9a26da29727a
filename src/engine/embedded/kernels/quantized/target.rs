//! The 8-bit type that sums are brought back to.

use super::real::Real;
use crate::engine::array::{Array, Element};
use crate::engine::fault::Fault;
use crate::ir::ElementType;

/// uint8 or int8 with a zero point.
#[derive(Clone, Copy)]
pub struct Target {
    element: ElementType,
    zero: i32,
}

impl Target {
    /// From the zero point of the output, which also gives its type.
    pub fn of(zero_point: &Array) -> Result<Target, Fault> {
        let zero = match zero_point.element() {
            ElementType::UINT8 => i32::from(zero_point.single::<u8>()?),
            ElementType::INT8 => i32::from(zero_point.single::<i8>()?),
            other => return Err(Fault::element(other)),
        };
        Ok(Target { element: zero_point.element(), zero })
    }

    /// Without a zero point: that of an input type, at 0.
    pub fn zero(element: ElementType) -> Result<Target, Fault> {
        match element {
            ElementType::UINT8 | ElementType::INT8 => Ok(Target { element, zero: 0 }),
            other => Err(Fault::element(other)),
        }
    }

    /// True when it is this type at this zero point.
    pub fn is(self, element: ElementType, zero: i32) -> bool {
        self.element == element && self.zero == zero
    }

    /// Rounded to nearest, ties to even, then moved by the zero point and saturated.
    #[inline(always)]
    pub fn level<R: Real>(self, quotient: R) -> i32 {
        let (low, high) = if self.element == ElementType::INT8 { (-128, 127) } else { (0, 255) };
        quotient.nearest(R::int(low - self.zero), R::int(high - self.zero)) + self.zero
    }

    /// An array of levels.
    pub fn array(self, dims: &[usize], levels: impl Iterator<Item = i32>) -> Array {
        let storage = match self.element {
            ElementType::INT8 => i8::store(levels.map(|v| v as i8).collect()),
            _ => u8::store(levels.map(|v| v as u8).collect()),
        };
        Array::of(self.element, dims, storage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_are_rounded_to_even_before_the_zero_point_is_added() {
        let target = Target::of(&Array::scalar(1u8)).unwrap();
        let levels = [0.5f32, 1.5, 2.5, -0.5, -1.5, 1e9, -1e9, f32::INFINITY, f32::NAN];
        let levels: Vec<i32> = levels.into_iter().map(|q| target.level(q)).collect();
        assert_eq!(levels, [1, 3, 3, 1, 0, 255, 0, 255, 0]);
        let target = Target::of(&Array::scalar(-128i8)).unwrap();
        assert_eq!([254.5f32, 255.5, -0.1].map(|q| target.level(q)), [126, 127, -128]);
        assert_eq!([254.5f64, 255.5, -0.1].map(|q| target.level(q)), [126, 127, -128]);
    }
}
