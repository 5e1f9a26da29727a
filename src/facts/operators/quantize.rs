//! Quantization and its inverse.

use super::{Outputs, Rule, element_attribute, one, several, tensor};
use crate::facts::view::Operator;
use crate::ir::{ElementType, Shape};

pub(super) const RULES: &[(&str, Rule)] =
    &[("DequantizeLinear", dequantize), ("DynamicQuantizeLinear", dynamic), ("QuantizeLinear", quantize)];

fn quantize(op: &Operator) -> Option<Outputs> {
    let element = match op.element(2) {
        Some(zero_point) => Some(zero_point),
        None if op.has(2) => None,
        None => match element_attribute(op, "output_dtype", Some(ElementType::UINT8)) {
            // 0 stands for "not given".
            None if op.int("output_dtype", 0)? == 0 => Some(ElementType::UINT8),
            element => element,
        },
    };
    one(element, op.shape(0).cloned())
}

fn dequantize(op: &Operator) -> Option<Outputs> {
    let element = match op.node.attribute("output_dtype") {
        Some(v) if v.int()? != 0 => element_attribute(op, "output_dtype", None),
        _ => op.element(1),
    };
    one(element, op.shape(0).cloned())
}

fn dynamic(op: &Operator) -> Option<Outputs> {
    several([
        tensor(Some(ElementType::UINT8), op.shape(0).cloned()),
        tensor(Some(ElementType::FLOAT), Some(Shape::new())),
        tensor(Some(ElementType::UINT8), Some(Shape::new())),
    ])
}
