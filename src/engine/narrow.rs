//! Types of a byte and less: float8 kinds, float4, 4-bit and 2-bit integers, as bit patterns, packed and as numbers.

use crate::ir::ElementType;

/// One element a byte, from two or four elements a byte, lowest bits first (ONNX IR, `TensorProto.raw_data`).
pub fn unpack(bytes: &[u8], bits: u32, count: usize) -> Vec<u8> {
    let per = (8 / bits) as usize;
    let mask = (1u8 << bits) - 1;
    (0..count).map(|i| (bytes[i / per] >> (bits as usize * (i % per))) & mask).collect()
}

/// Two or four elements a byte, lowest bits first; the rest of the last byte is 0.
pub fn pack(elements: &[u8], bits: u32) -> Vec<u8> {
    let per = (8 / bits) as usize;
    let mask = (1u8 << bits) - 1;
    let mut out = vec![0u8; elements.len().div_ceil(per)];
    for (i, e) in elements.iter().enumerate() {
        out[i / per] |= (e & mask) << (bits as usize * (i % per));
    }
    out
}

/// The number that a bit pattern of a type with one byte or less an element stands for.
pub fn number(element: ElementType, pattern: u8) -> f64 {
    match element {
        ElementType::INT4 => f64::from(((pattern << 4) as i8) >> 4),
        ElementType::INT2 => f64::from(((pattern << 6) as i8) >> 6),
        ElementType::FLOAT8E4M3FN | ElementType::FLOAT8E4M3FNUZ => float8(element, pattern, 4, 3),
        ElementType::FLOAT8E5M2 | ElementType::FLOAT8E5M2FNUZ => float8(element, pattern, 5, 2),
        ElementType::FLOAT8E8M0 => match pattern {
            0xff => f64::NAN,
            e => 2f64.powi(i32::from(e) - 127),
        },
        ElementType::FLOAT4E2M1 => {
            const MAGNITUDES: [f64; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
            let magnitude = MAGNITUDES[usize::from(pattern & 7)];
            if pattern & 8 == 0 { magnitude } else { -magnitude }
        }
        _ => f64::from(pattern),
    }
}

/// The bit pattern of a float8 or float4 type that is nearest to a number, ties to even. Beyond the largest number it is
/// that number when saturating, otherwise infinity, or NaN where there is none; float4 always saturates, and NaN becomes
/// its negative zero (ONNX operator Cast). `None` for other types.
pub fn nearest(element: ElementType, number: f64, saturate: bool) -> Option<u8> {
    let (mantissa_bits, bias, largest) = match element {
        ElementType::FLOAT8E4M3FN => (3, 7, 0x7e),
        ElementType::FLOAT8E4M3FNUZ => (3, 8, 0x7f),
        ElementType::FLOAT8E5M2 => (2, 15, 0x7b),
        ElementType::FLOAT8E5M2FNUZ => (2, 16, 0x7f),
        ElementType::FLOAT4E2M1 => (1, 1, 0x07),
        _ => return None,
    };
    let unsigned_zero = matches!(element, ElementType::FLOAT8E4M3FNUZ | ElementType::FLOAT8E5M2FNUZ);
    let negative = if element == ElementType::FLOAT4E2M1 { 0x08 } else { 0x80 };
    let sign = if number.is_sign_negative() { negative } else { 0 };
    if number.is_nan() {
        return Some(match element {
            ElementType::FLOAT4E2M1 => negative,
            ElementType::FLOAT8E4M3FN => sign | 0x7f,
            ElementType::FLOAT8E5M2 => sign | 0x7e,
            _ => 0x80,
        });
    }
    let magnitude = number.abs();
    let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).clamp(1 - bias, 64);
    let steps = (magnitude / 2f64.powi(exponent - mantissa_bits)).round_ties_even();
    // The implicit leading bit of a normal number carries into the exponent field.
    let pattern = f64::from((exponent + bias - 1) << mantissa_bits) + steps;
    Some(match pattern {
        p if p <= f64::from(largest) => match p as u8 {
            0 if unsigned_zero => 0,
            p => sign | p,
        },
        _ if saturate || element == ElementType::FLOAT4E2M1 => sign | largest,
        _ => match element {
            ElementType::FLOAT8E4M3FN => sign | 0x7f,
            ElementType::FLOAT8E5M2 => sign | 0x7c,
            _ => 0x80,
        },
    })
}

/// float8 with so many bits of exponent and mantissa ("FP8 Formats for Deep Learning", Micikevicius et al. 2022; the
/// FNUZ kinds: Noune et al. 2022).
fn float8(element: ElementType, pattern: u8, exponent_bits: u32, mantissa_bits: u32) -> f64 {
    let unsigned_zero = matches!(element, ElementType::FLOAT8E4M3FNUZ | ElementType::FLOAT8E5M2FNUZ);
    let bias = (1 << (exponent_bits - 1)) - if unsigned_zero { 0 } else { 1 };
    let sign = if pattern & 0x80 == 0 { 1.0 } else { -1.0 };
    let exponent = i32::from((pattern & 0x7f) >> mantissa_bits);
    let mantissa = f64::from(pattern & ((1 << mantissa_bits) - 1));
    let top = (1 << exponent_bits) - 1;
    match element {
        _ if unsigned_zero && pattern == 0x80 => return f64::NAN,
        ElementType::FLOAT8E4M3FN if pattern & 0x7f == 0x7f => return f64::NAN,
        ElementType::FLOAT8E5M2 if exponent == top => {
            return if mantissa == 0.0 { sign * f64::INFINITY } else { f64::NAN };
        }
        _ => {}
    }
    let fraction = mantissa / f64::from(1 << mantissa_bits);
    match exponent {
        0 => sign * fraction * 2f64.powi(1 - bias),
        e => sign * (1.0 + fraction) * 2f64.powi(e - bias),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_is_undone_by_unpacking() {
        let four: Vec<u8> = (0..15).collect();
        assert_eq!(unpack(&pack(&four, 4), 4, 15), four);
        let two: Vec<u8> = (0..7).map(|i| i % 4).collect();
        assert_eq!(unpack(&pack(&two, 2), 2, 7), two);
    }

    #[test]
    fn every_number_of_a_format_is_nearest_to_itself() {
        for element in [
            ElementType::FLOAT8E4M3FN,
            ElementType::FLOAT8E4M3FNUZ,
            ElementType::FLOAT8E5M2,
            ElementType::FLOAT8E5M2FNUZ,
            ElementType::FLOAT4E2M1,
        ] {
            for pattern in 0..1u32 << element.bits() {
                let value = number(element, pattern as u8);
                if !value.is_nan() {
                    assert_eq!(nearest(element, value, false), Some(pattern as u8), "{element} {pattern:#x}");
                }
            }
        }
        assert_eq!(nearest(ElementType::FLOAT8E4M3FN, 464.0, false), Some(0x7e));
        assert_eq!(nearest(ElementType::FLOAT8E4M3FN, 464.1, false), Some(0x7f));
        assert_eq!(nearest(ElementType::FLOAT8E4M3FN, 1e9, true), Some(0x7e));
        assert_eq!(nearest(ElementType::FLOAT8E5M2, -61440.0, false), Some(0xfc));
        assert_eq!(nearest(ElementType::FLOAT8E5M2FNUZ, -1e-9, false), Some(0));
        assert_eq!(nearest(ElementType::FLOAT4E2M1, 2.5, false), Some(0x04));
    }

    #[test]
    fn patterns_stand_for_the_numbers_of_their_formats() {
        assert_eq!(number(ElementType::FLOAT8E4M3FN, 0x7e), 448.0);
        assert_eq!(number(ElementType::FLOAT8E4M3FNUZ, 0x7f), 240.0);
        assert_eq!(number(ElementType::FLOAT8E5M2, 0x7b), 57344.0);
        assert_eq!(number(ElementType::FLOAT8E5M2FNUZ, 0x7f), 57344.0);
        assert_eq!(number(ElementType::FLOAT8E5M2, 0x01), 2f64.powi(-16));
        assert!(number(ElementType::FLOAT8E4M3FNUZ, 0x80).is_nan());
        assert_eq!(number(ElementType::INT4, 0x0f), -1.0);
        assert_eq!(number(ElementType::INT2, 0x02), -2.0);
        assert_eq!(number(ElementType::FLOAT4E2M1, 0x0f), -6.0);
        assert_eq!(number(ElementType::FLOAT8E8M0, 127), 1.0);
    }
}
