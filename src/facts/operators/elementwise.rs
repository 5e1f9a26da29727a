//! Operators that work element by element, with or without broadcasting.

use super::{Outputs, Rule, element_attribute, one, same_as_first, several, tensor};
use crate::facts::view::Operator;
use crate::facts::{Fact, dims};
use crate::ir::{Dim, ElementType, Shape};

pub(super) const RULES: &[(&str, Rule)] = &[
    ("Abs", same_as_first),
    ("Acos", same_as_first),
    ("Acosh", same_as_first),
    ("Add", arithmetic),
    ("And", truth),
    ("Asin", same_as_first),
    ("Asinh", same_as_first),
    ("Atan", same_as_first),
    ("Atanh", same_as_first),
    ("BitCast", cast),
    ("BitShift", arithmetic),
    ("BitwiseAnd", arithmetic),
    ("BitwiseNot", same_as_first),
    ("BitwiseOr", arithmetic),
    ("BitwiseXor", arithmetic),
    ("Cast", cast),
    ("CastLike", cast_like),
    ("Ceil", same_as_first),
    ("Celu", same_as_first),
    ("Clip", same_as_first),
    ("Cos", same_as_first),
    ("Cosh", same_as_first),
    ("CumProd", same_as_first),
    ("CumSum", same_as_first),
    ("Div", arithmetic),
    ("Dropout", dropout),
    ("Elu", same_as_first),
    ("Equal", truth),
    ("Erf", same_as_first),
    ("Exp", same_as_first),
    ("Floor", same_as_first),
    ("Gelu", same_as_first),
    ("Greater", truth),
    ("GreaterOrEqual", truth),
    ("HardSigmoid", same_as_first),
    ("HardSwish", same_as_first),
    ("Hardmax", same_as_first),
    ("Identity", same_as_first),
    ("IsInf", test),
    ("IsNaN", test),
    ("LeakyRelu", same_as_first),
    ("Less", truth),
    ("LessOrEqual", truth),
    ("Log", same_as_first),
    ("LogSoftmax", same_as_first),
    ("Max", variadic),
    ("Mean", variadic),
    ("Min", variadic),
    ("Mish", same_as_first),
    ("Mod", arithmetic),
    ("Mul", arithmetic),
    ("Neg", same_as_first),
    ("Not", test),
    ("Or", truth),
    ("PRelu", same_as_first),
    ("Pow", arithmetic),
    ("Reciprocal", same_as_first),
    ("Relu", same_as_first),
    ("Round", same_as_first),
    ("Selu", same_as_first),
    ("Shrink", same_as_first),
    ("Sigmoid", same_as_first),
    ("Sign", same_as_first),
    ("Sin", same_as_first),
    ("Sinh", same_as_first),
    ("Softmax", same_as_first),
    ("Softplus", same_as_first),
    ("Softsign", same_as_first),
    ("Sqrt", same_as_first),
    ("Sub", arithmetic),
    ("Sum", variadic),
    ("Swish", same_as_first),
    ("Tan", same_as_first),
    ("Tanh", same_as_first),
    ("ThresholdedRelu", same_as_first),
    ("Where", choice),
    ("Xor", truth),
];

/// Shape of all inputs from `first` on broadcast together.
fn broadcast(op: &Operator, first: usize) -> Option<Shape> {
    let shapes: Vec<&[Dim]> =
        (first..op.node.inputs.len()).map(|i| op.shape(i).map(|s| s.as_slice())).collect::<Option<_>>()?;
    Some(dims::broadcast_shapes(shapes))
}

/// Two inputs; before operator set 7 only the second is broadcast, and only where asked for.
fn binary(op: &Operator) -> Option<Shape> {
    if op.opset < 7 { op.shape(0).cloned() } else { broadcast(op, 0) }
}

fn arithmetic(op: &Operator) -> Option<Outputs> {
    // Pow's operands may differ in type from operator set 12 on; the first is the result's. Elsewhere both are the same.
    let element = if op.op_type() == "Pow" { op.element(0) } else { op.element(0).or(op.element(1)) };
    one(element, binary(op))
}

fn truth(op: &Operator) -> Option<Outputs> {
    one(Some(ElementType::BOOL), binary(op))
}

fn test(op: &Operator) -> Option<Outputs> {
    one(Some(ElementType::BOOL), op.shape(0).cloned())
}

fn variadic(op: &Operator) -> Option<Outputs> {
    let element = (0..op.node.inputs.len()).find_map(|i| op.element(i));
    let shape = if op.opset < 8 { op.shape(0).cloned() } else { broadcast(op, 0) };
    one(element, shape)
}

fn choice(op: &Operator) -> Option<Outputs> {
    one(op.element(1).or(op.element(2)), broadcast(op, 0))
}

/// The type that Cast and BitCast name; operator sets before 6 name it as text.
pub(in crate::facts) fn cast_target(op: &Operator) -> Option<ElementType> {
    match op.node.attribute("to")?.text() {
        Some(name) => ElementType::from_name(&name.to_ascii_lowercase()),
        None => element_attribute(op, "to", None),
    }
}

fn cast(op: &Operator) -> Option<Outputs> {
    let element = cast_target(op)?;
    let same_width = op.element(0).is_some_and(|e| e.bits() == element.bits());
    one(Some(element), op.shape(0).filter(|_| op.op_type() != "BitCast" || same_width).cloned())
}

fn cast_like(op: &Operator) -> Option<Outputs> {
    one(op.element(1), op.shape(0).cloned())
}

fn dropout(op: &Operator) -> Option<Outputs> {
    let mask = if op.opset < 10 { op.element(0) } else { Some(ElementType::BOOL) };
    several([Fact::of(op.ty(0).clone()), tensor(mask, op.shape(0).cloned())])
}
