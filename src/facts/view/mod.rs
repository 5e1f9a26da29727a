//! One canonical view of operators: constants, axes, bounds, pads wherever the operator set keeps them. The file stays
//! as it is; what is not known for certain is `None`.

mod constant;
mod operator;
mod parameters;

pub use constant::{constant, of_node};
pub use operator::Operator;
pub use parameters::{BatchNormForm, Bound, ClipBounds, DropoutForm, Fill, PadForm, SliceForm};

use crate::facts::Facts;
use crate::ir::{ElementType, Model, Node, ValueId};

/// Element types whose elements are whole numbers that [`Facts::ints`] gives: integers and bool.
pub(crate) fn counts(element: ElementType) -> bool {
    element.is_integer() || element == ElementType::BOOL
}

/// The only element of a constant float32 tensor, whatever its rank.
pub fn scalar_f32(model: &Model, value: ValueId) -> Option<f32> {
    match constant(model, value)?.as_f32()?.as_slice() {
        [v] => Some(*v),
        _ => None,
    }
}

/// The only element of a constant tensor of any integer type or bool, whatever its rank.
pub fn scalar_int(model: &Model, value: ValueId) -> Option<i64> {
    match constant(model, value)?.integers()?.as_slice() {
        [v] => Some(*v),
        _ => None,
    }
}

/// See [`Operator::axes`].
pub fn axes(model: &Model, facts: &Facts, node: &Node) -> Option<Vec<i64>> {
    Operator::new(model, facts, node)?.axes()
}

/// See [`Operator::axis`].
pub fn axis(model: &Model, facts: &Facts, node: &Node) -> Option<usize> {
    Operator::new(model, facts, node)?.axis()
}

/// See [`Operator::perm`].
pub fn perm(model: &Model, facts: &Facts, node: &Node) -> Option<Vec<usize>> {
    Operator::new(model, facts, node)?.perm()
}

/// See [`Operator::clip`].
pub fn clip(model: &Model, facts: &Facts, node: &Node) -> Option<ClipBounds> {
    Operator::new(model, facts, node)?.clip()
}

/// See [`Operator::pad`].
pub fn pads(model: &Model, facts: &Facts, node: &Node) -> Option<PadForm> {
    Operator::new(model, facts, node)?.pad()
}

/// See [`Operator::slice`].
pub fn slice(model: &Model, facts: &Facts, node: &Node) -> Option<SliceForm> {
    Operator::new(model, facts, node)?.slice()
}

/// See [`Operator::split`].
pub fn split(model: &Model, facts: &Facts, node: &Node) -> Option<Vec<crate::ir::Dim>> {
    Operator::new(model, facts, node)?.split()
}

/// See [`Operator::dropout`].
pub fn dropout(model: &Model, facts: &Facts, node: &Node) -> Option<DropoutForm> {
    Operator::new(model, facts, node)?.dropout()
}

/// See [`Operator::batch_norm`].
pub fn batch_norm(model: &Model, facts: &Facts, node: &Node) -> Option<BatchNormForm> {
    Operator::new(model, facts, node)?.batch_norm()
}

/// See [`Operator::reshape_target`].
pub fn reshape_target(model: &Model, facts: &Facts, node: &Node) -> Option<crate::ir::Shape> {
    Operator::new(model, facts, node)?.reshape_target()
}
