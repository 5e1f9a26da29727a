//! What passes ask of constants and operators beyond the canonical view: lists, training mode, fill values, conversions.

use crate::facts::{Facts, view};
use crate::ir::{Dim, ElementType, Model, Node, Tensor, ValueId};
use half::{bf16, f16};

/// Integers of a constant of rank 0 or 1.
pub fn constant_ints(model: &Model, value: ValueId) -> Option<Vec<i64>> {
    let tensor = view::constant(model, value)?;
    if tensor.dims.len() > 1 || tensor.element_count()? > 1024 {
        return None;
    }
    tensor.integers()
}

/// A list of integers that is an attribute in old operator sets and an input in newer ones. `Some(None)`: not given.
pub fn list(model: &Model, node: &Node, attribute: &str, input: usize) -> Option<Option<Vec<i64>>> {
    match (node.attribute(attribute), node.input(input)) {
        (Some(a), _) => Some(Some(a.ints()?.to_vec())),
        (None, Some(v)) => Some(Some(constant_ints(model, v)?)),
        (None, None) => Some(None),
    }
}

/// Version of the standard operator set that holds where a node stands.
pub fn opset(model: &Model, node: &Node) -> i64 {
    model.opset(node.graph, "").unwrap_or(0)
}

/// True when a Dropout or BatchNormalization surely works in inference mode, whichever way its operator set says so.
pub fn infers(model: &Model, facts: &Facts, node: &Node) -> bool {
    let dropout = view::dropout(model, facts, node).is_some_and(|d| d.training == Some(false));
    dropout || view::batch_norm(model, facts, node).is_some_and(|b| b.inference)
}

/// Numbers that leave another operand as it is, or nearly do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fill {
    One,
    Zero,
    /// -0.0: only floating-point types have it.
    NegativeZero,
}

/// What all elements of a tensor are, when they are all the same and one of [`Fill`]; `None` for an empty tensor.
pub fn fill(tensor: &Tensor) -> Option<Fill> {
    let bytes = tensor.bytes()?;
    let width = (tensor.element.bits() / 8) as usize;
    let first = bytes.get(..width).filter(|f| !f.is_empty())?;
    if !bytes.chunks_exact(width).all(|chunk| chunk == first) {
        return None;
    }
    let mut word = [0u8; 8];
    word.get_mut(..width)?.copy_from_slice(first);
    let word = u64::from_le_bytes(word);
    let (one, negative_zero) = match tensor.element {
        ElementType::FLOAT => (0x3f80_0000, Some(0x8000_0000)),
        ElementType::DOUBLE => (0x3ff0_0000_0000_0000, Some(1 << 63)),
        ElementType::FLOAT16 => (0x3c00, Some(0x8000)),
        ElementType::BFLOAT16 => (0x3f80, Some(0x8000)),
        e if e.is_integer() || e == ElementType::BOOL => (1, None),
        _ => return None,
    };
    match word {
        0 => Some(Fill::Zero),
        w if w == one => Some(Fill::One),
        w if Some(w) == negative_zero => Some(Fill::NegativeZero),
        _ => None,
    }
}

/// True when combining with a tensor of these dimensions surely gives the shape of `other` and nothing larger.
pub fn broadcasts_into(dims: &[u64], other: Option<&[Dim]>) -> bool {
    if dims.is_empty() {
        return true;
    }
    let Some(other) = other else { return false };
    dims.len() <= other.len()
        && dims.iter().rev().zip(other.iter().rev()).all(|(d, o)| *d == 1 || o.fixed() == Some(*d))
}

/// True for the floating-point types that constant arithmetic is done in.
pub fn is_computable(element: ElementType) -> bool {
    [ElementType::FLOAT, ElementType::DOUBLE, ElementType::FLOAT16, ElementType::BFLOAT16].contains(&element)
}

/// Elements of a floating-point tensor, exactly.
pub fn floats(tensor: &Tensor) -> Option<Vec<f64>> {
    if is_computable(tensor.element) { tensor.approximate() } else { None }
}

/// Rounds to float32 such that rounding the result to a type with at least two bits fewer gives what rounding the number
/// itself once would: an inexact result has its last bit set (round to odd; Boldo and Melquiond 2008).
fn to_odd(x: f64) -> f32 {
    let near = x as f32;
    if near as f64 == x || !near.is_finite() {
        return near;
    }
    let away = (near as f64).abs() > x.abs();
    f32::from_bits((near.to_bits() - u32::from(away)) | 1)
}

/// A floating-point tensor, each element rounded once; `None` when a finite number would become infinite.
pub fn from_floats(element: ElementType, dims: &[u64], elements: &[f64]) -> Option<Tensor> {
    let mut bytes: Vec<u8> = Vec::with_capacity(elements.len().checked_mul(element.bits() as usize / 8)?);
    for x in elements {
        let finite = match element {
            ElementType::FLOAT => {
                let v = *x as f32;
                bytes.extend(v.to_le_bytes());
                v.is_finite()
            }
            ElementType::DOUBLE => {
                bytes.extend(x.to_le_bytes());
                x.is_finite()
            }
            ElementType::FLOAT16 => {
                let v = f16::from_f32(to_odd(*x));
                bytes.extend(v.to_le_bytes());
                v.is_finite()
            }
            ElementType::BFLOAT16 => {
                let v = bf16::from_f32(to_odd(*x));
                bytes.extend(v.to_le_bytes());
                v.is_finite()
            }
            _ => return None,
        };
        if x.is_finite() && !finite {
            return None;
        }
    }
    Some(Tensor::new(element, dims.iter().copied(), bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_are_told_apart_by_bits() {
        assert_eq!(fill(&Tensor::from_f32(&[2], &[1.0, 1.0])), Some(Fill::One));
        assert_eq!(fill(&Tensor::from_f32(&[2], &[1.0, 1.0000001])), None);
        assert_eq!(fill(&Tensor::from_f32(&[], &[0.0])), Some(Fill::Zero));
        assert_eq!(fill(&Tensor::from_f32(&[1], &[-0.0])), Some(Fill::NegativeZero));
        assert_eq!(fill(&Tensor::from_f32(&[2], &[0.0, -0.0])), None);
        assert_eq!(fill(&Tensor::from_f32(&[0], &[])), None);
        assert_eq!(fill(&Tensor::ints(&[1, 1])), Some(Fill::One));
        assert_eq!(fill(&Tensor::from_bool(&[1], &[true])), Some(Fill::One));
    }

    #[test]
    fn halves_are_rounded_once() {
        // 1 + 2^-11 + 2^-30 lies just above the middle of two float16 numbers; by way of float32 it would be the middle.
        let t = from_floats(ElementType::FLOAT16, &[1], &[1.0 + 2f64.powi(-11) + 2f64.powi(-30)]).unwrap();
        assert_eq!(t.approximate().unwrap(), [1.0 + 2f64.powi(-10)]);
        assert!(from_floats(ElementType::FLOAT16, &[1], &[70000.0]).is_none());
    }
}
