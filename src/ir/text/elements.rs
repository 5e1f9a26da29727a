//! Elements of tensors as numbers, exactly: shortest decimals that read back to the same bits, NaN by its bits.

use super::lex::Token;
use super::parse::{Parser, Result};
use super::write::{base64, text_or_bytes};
use crate::ir::tensor::{Data, Tensor};
use crate::ir::types::ElementType;
use bytes::Bytes;
use half::{bf16, f16};

/// Beyond this many elements inline data is base64: shorter, and nobody reads the numbers.
const READABLE: u64 = 256;

/// `{1, 2, 3}`, or base64 for many elements and for bytes that numbers would not give back.
pub(super) fn data_text(tensor: &Tensor) -> String {
    match &tensor.data {
        Data::Strings(strings) => {
            let list: Vec<String> = strings.iter().map(|s| text_or_bytes(s)).collect();
            format!("{{{}}}", list.join(", "))
        }
        Data::Missing(reason) => format!("[\"missing\": {}]", super::write::quoted(reason)),
        Data::Bytes(bytes) => match tensor.element_count() {
            Some(count) if count <= READABLE => match numbers(tensor.element, count as usize, bytes) {
                Some(list) => format!("{{{}}}", list.join(", ")),
                None => base64(bytes),
            },
            _ => base64(bytes),
        },
    }
}

/// Elements as text, when exactly `count` elements are there and their text gives the same bytes back.
pub(super) fn numbers(element: ElementType, count: usize, bytes: &[u8]) -> Option<Vec<String>> {
    if element.packed_bytes(count as u64)? != bytes.len() as u64 {
        return None;
    }
    fn words<const N: usize>(bytes: &[u8], text: impl Fn([u8; N]) -> String) -> Option<Vec<String>> {
        Some(bytes.as_chunks::<N>().0.iter().map(|c| text(*c)).collect())
    }
    match element {
        ElementType::FLOAT | ElementType::COMPLEX64 => words(bytes, |c| float32(f32::from_le_bytes(c))),
        ElementType::DOUBLE | ElementType::COMPLEX128 => words(bytes, |c| float64(f64::from_le_bytes(c))),
        ElementType::FLOAT16 => words(bytes, |c| {
            let v = f16::from_le_bytes(c);
            float(v.to_f32(), v.to_bits().into(), 0x7e00, 0x8000)
        }),
        ElementType::BFLOAT16 => words(bytes, |c| {
            let v = bf16::from_le_bytes(c);
            float(v.to_f32(), v.to_bits().into(), 0x7fc0, 0x8000)
        }),
        ElementType::INT8 => words(bytes, |[b]| (b as i8).to_string()),
        ElementType::INT16 => words(bytes, |c| i16::from_le_bytes(c).to_string()),
        ElementType::INT32 => words(bytes, |c| i32::from_le_bytes(c).to_string()),
        ElementType::INT64 => words(bytes, |c| i64::from_le_bytes(c).to_string()),
        ElementType::UINT16 => words(bytes, |c| u16::from_le_bytes(c).to_string()),
        ElementType::UINT32 => words(bytes, |c| u32::from_le_bytes(c).to_string()),
        ElementType::UINT64 => words(bytes, |c| u64::from_le_bytes(c).to_string()),
        // bool and the 8-bit floats: the byte, as ONNX writes them.
        _ if element.bits() == 8 => words(bytes, |[b]| b.to_string()),
        _ if matches!(element.bits(), 2 | 4) => packed(element, count, bytes),
        _ => None,
    }
}

/// Elements under a byte, lowest bits first; `None` when the bits after the last one are not zero.
fn packed(element: ElementType, count: usize, bytes: &[u8]) -> Option<Vec<String>> {
    let bits = element.bits();
    let mask = (1u8 << bits) - 1;
    let signed = matches!(element, ElementType::INT4 | ElementType::INT2);
    let each = bytes.iter().flat_map(|b| (0..8 / bits).map(move |i| (b >> (i * bits)) & mask));
    let mut list: Vec<u8> = each.collect();
    if list.iter().skip(count).any(|rest| *rest != 0) {
        return None;
    }
    list.truncate(count);
    let text = |v: u8| match signed && v >> (bits - 1) == 1 {
        true => (i16::from(v) - (1i16 << bits)).to_string(),
        false => v.to_string(),
    };
    Some(list.into_iter().map(text).collect())
}

/// A float32 as text.
pub(super) fn float32(v: f32) -> String {
    float(v, v.to_bits().into(), 0x7fc0_0000, 1 << 31)
}

fn float(v: f32, bits: u64, quiet: u64, sign: u64) -> String {
    if v.is_nan() { nan(bits, quiet, sign) } else { format!("{v:?}") }
}

fn float64(v: f64) -> String {
    if v.is_nan() { nan(v.to_bits(), 0x7ff8 << 48, 1 << 63) } else { format!("{v:?}") }
}

fn nan(bits: u64, quiet: u64, sign: u64) -> String {
    match bits {
        _ if bits == quiet => "nan".to_owned(),
        _ if bits == quiet | sign => "-nan".to_owned(),
        _ => format!("nan({bits:#x})"),
    }
}

/// A floating-point number of the text.
pub(super) enum Real<'t> {
    Decimal(&'t str),
    Infinity,
    /// Bits if they are given.
    Nan(Option<u64>),
}

impl<'t> Parser<'t, '_> {
    /// A number with its sign; the sign of a decimal is in its text.
    pub(super) fn real(&mut self) -> Result<(bool, Real<'t>)> {
        let at = self.at()?;
        let negative = self.eat('-')?;
        match *self.peek(0)? {
            Token::Number(n) => {
                self.next()?;
                Ok((negative, Real::Decimal(n)))
            }
            Token::Word("inf" | "infinity") => {
                self.next()?;
                Ok((negative, Real::Infinity))
            }
            Token::Word("nan") => {
                self.next()?;
                if !matches!(self.peek(0)?, Token::Mark('(')) {
                    return Ok((negative, Real::Nan(None)));
                }
                let bits = self.in_parentheses(|p| match p.next()? {
                    (at, Token::Number(n)) => n
                        .strip_prefix("0x")
                        .and_then(|hex| u64::from_str_radix(hex, 16).ok())
                        .ok_or_else(|| p.error(at, "expected the bits of the NaN, as in nan(0x7fc00001)")),
                    (at, _) => Err(p.error(at, "expected the bits of the NaN, as in nan(0x7fc00001)")),
                })?;
                Ok((negative, Real::Nan(Some(bits))))
            }
            _ => {
                let found = self.peek(0)?.describe();
                Err(self.error(at, format!("expected a number, found {found}")))
            }
        }
    }

    pub(super) fn float32(&mut self) -> Result<f32> {
        let at = self.at()?;
        let (negative, real) = self.real()?;
        let v = match real {
            Real::Decimal(n) => {
                n.parse::<f32>().map_err(|_| self.error(at, format!("'{n}' is no number")))?
            }
            Real::Infinity => f32::INFINITY,
            Real::Nan(None) => f32::from_bits(0x7fc0_0000),
            Real::Nan(Some(bits)) => match u32::try_from(bits).map(f32::from_bits) {
                Ok(v) if v.is_nan() => v,
                _ => return Err(self.error(at, "these are not the bits of a 32-bit NaN")),
            },
        };
        Ok(if negative { f32::from_bits(v.to_bits() ^ (1 << 31)) } else { v })
    }

    fn float64(&mut self) -> Result<f64> {
        let at = self.at()?;
        let (negative, real) = self.real()?;
        let v = match real {
            Real::Decimal(n) => {
                n.parse::<f64>().map_err(|_| self.error(at, format!("'{n}' is no number")))?
            }
            Real::Infinity => f64::INFINITY,
            Real::Nan(None) => f64::from_bits(0x7ff8 << 48),
            Real::Nan(Some(bits)) if f64::from_bits(bits).is_nan() => f64::from_bits(bits),
            Real::Nan(Some(_)) => return Err(self.error(at, "these are not the bits of a 64-bit NaN")),
        };
        Ok(if negative { f64::from_bits(v.to_bits() ^ (1 << 63)) } else { v })
    }

    /// A 16-bit float: a number with a point or exponent is its value, an integer its bits, as ONNX writes them.
    fn float16(&mut self, element: ElementType) -> Result<u16> {
        let at = self.at()?;
        let brain = element == ElementType::BFLOAT16;
        let (negative, real) = self.real()?;
        let bits = match real {
            Real::Decimal(n) if n.contains(['.', 'e', 'E']) => {
                let v = n.parse::<f32>().map_err(|_| self.error(at, format!("'{n}' is no number")))?;
                if brain { bf16::from_f32(v).to_bits() } else { f16::from_f32(v).to_bits() }
            }
            Real::Decimal(n) => n
                .parse::<u16>()
                .map_err(|_| self.error(at, format!("'{n}' is neither 16 bits nor a number with a point")))?,
            Real::Infinity if brain => bf16::INFINITY.to_bits(),
            Real::Infinity => f16::INFINITY.to_bits(),
            Real::Nan(None) if brain => 0x7fc0,
            Real::Nan(None) => 0x7e00,
            Real::Nan(Some(bits)) => {
                u16::try_from(bits).map_err(|_| self.error(at, "these are not the bits of a 16-bit NaN"))?
            }
        };
        Ok(if negative { bits ^ 0x8000 } else { bits })
    }

    /// An integer between two bounds.
    fn integer(&mut self, low: i128, high: i128, element: ElementType) -> Result<i128> {
        match self.next()? {
            (_, Token::Word("true")) if element == ElementType::BOOL => Ok(1),
            (_, Token::Word("false")) if element == ElementType::BOOL => Ok(0),
            (at, Token::Number(n)) => match n.parse::<i128>() {
                Ok(v) if (low..=high).contains(&v) => Ok(v),
                _ => Err(self
                    .error(at, format!("expected an integer of {low} to {high} ({element}), found '{n}'"))),
            },
            (at, other) => {
                let found = other.describe();
                Err(self
                    .error(at, format!("expected an integer of {low} to {high} ({element}), found {found}")))
            }
        }
    }

    /// One number of a tensor's data, appended as bytes; elements under a byte go through `bits` (bits held, how many).
    fn element_into(&mut self, element: ElementType, out: &mut Vec<u8>, bits: &mut (u8, u32)) -> Result<()> {
        let width = element.bits();
        match element {
            ElementType::FLOAT | ElementType::COMPLEX64 => out.extend(self.float32()?.to_le_bytes()),
            ElementType::DOUBLE | ElementType::COMPLEX128 => out.extend(self.float64()?.to_le_bytes()),
            ElementType::FLOAT16 | ElementType::BFLOAT16 => out.extend(self.float16(element)?.to_le_bytes()),
            _ if width == 0 || width == 6 => {
                let at = self.at()?;
                return Err(self.error(at, format!("data of type {element} can only be written as base64")));
            }
            _ => {
                let signed = matches!(
                    element,
                    ElementType::INT2
                        | ElementType::INT4
                        | ElementType::INT8
                        | ElementType::INT16
                        | ElementType::INT32
                        | ElementType::INT64
                );
                let (low, high) = match signed {
                    true => (-(1i128 << (width - 1)), (1i128 << (width - 1)) - 1),
                    false => (0, (1i128 << width) - 1),
                };
                let v = self.integer(low, high, element)?;
                if width < 8 {
                    bits.0 |= ((v as u8) & ((1 << width) - 1)) << bits.1;
                    bits.1 += width;
                    if bits.1 == 8 {
                        out.push(bits.0);
                        *bits = (0, 0);
                    }
                } else {
                    out.extend(v.to_le_bytes().iter().take(width as usize / 8));
                }
            }
        }
        Ok(())
    }

    /// `{…}` or base64; `count` elements must come.
    pub(super) fn elements(&mut self, element: ElementType, count: u64) -> Result<Data> {
        let at = self.at()?;
        if let Token::Bytes(bytes) = self.peek(0)? {
            let bytes = std::mem::take(&mut bytes.clone());
            self.next()?;
            return match element.packed_bytes(count) {
                Some(wanted) if wanted != bytes.len() as u64 => {
                    let found = bytes.len();
                    Err(self.error(
                        at,
                        format!("{count} elements of {element} are {wanted} bytes, found {found}"),
                    ))
                }
                _ => Ok(Data::Bytes(bytes.into())),
            };
        }
        self.expect('{', "before the data (or base64\"…\", or a reference in brackets)")?;
        let mut found = 0u64;
        let mut strings: Vec<Bytes> = Vec::new();
        let (mut out, mut bits) = (Vec::new(), (0u8, 0u32));
        while !self.eat('}')? {
            if found > 0 {
                self.expect(',', "between two elements")?;
            }
            found += 1;
            match element {
                ElementType::STRING => strings.push(self.string("a string")?),
                _ => self.element_into(element, &mut out, &mut bits)?,
            }
        }
        if bits.1 > 0 {
            out.push(bits.0);
        }
        let per_element =
            if matches!(element, ElementType::COMPLEX64 | ElementType::COMPLEX128) { 2 } else { 1 };
        if Some(found) != count.checked_mul(per_element) {
            let wanted = count.saturating_mul(per_element);
            return Err(self.error(at, format!("the dimensions want {wanted} numbers, found {found}")));
        }
        Ok(if element == ElementType::STRING {
            Data::Strings(strings.into())
        } else {
            Data::Bytes(out.into())
        })
    }
}
