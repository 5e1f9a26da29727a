//! A standard operator with its operator-set version at hand: the entry to the canonical view.

use super::constant::constant;
use crate::facts::{Elements, Facts};
use crate::ir::{Dim, ElementType, Expr, Model, Node, Shape, Tensor, Type};
use std::sync::Arc;

/// A node of a domain of the ONNX standard, seen through what is known of its inputs.
#[derive(Clone, Copy)]
pub struct Operator<'a> {
    pub model: &'a Model,
    pub facts: &'a Facts,
    pub node: &'a Node,
    /// Version of the operator set in force where the node stands.
    pub opset: i64,
}

impl<'a> Operator<'a> {
    /// `None` for a node of another domain than `ai.onnx`, and where that domain is not imported.
    pub fn new(model: &'a Model, facts: &'a Facts, node: &'a Node) -> Option<Operator<'a>> {
        if !node.is_standard() {
            return None;
        }
        let opset = model.opset(node.graph, "")?;
        Some(Operator { model, facts, node, opset })
    }

    /// Operator name.
    pub fn op_type(&self) -> &'a str {
        &self.node.op_type
    }

    /// True when an optional input is given.
    pub fn has(&self, input: usize) -> bool {
        self.node.input(input).is_some()
    }

    /// Type of an input; unknown when it is not given.
    pub fn ty(&self, input: usize) -> &'a Type {
        const UNKNOWN: &Type = &Type::Unknown;
        self.node.input(input).map_or(UNKNOWN, |v| self.facts.ty(self.model, v))
    }

    /// Element type of a dense tensor input.
    pub fn element(&self, input: usize) -> Option<ElementType> {
        match self.ty(input) {
            Type::Tensor { element, .. } if *element != ElementType::UNDEFINED => Some(*element),
            _ => None,
        }
    }

    /// Shape of a dense tensor input.
    pub fn shape(&self, input: usize) -> Option<&'a Shape> {
        self.ty(input).shape()
    }

    /// Rank of a dense tensor input.
    pub fn rank(&self, input: usize) -> Option<usize> {
        self.ty(input).rank()
    }

    /// One dimension of an input; unknown where nothing better is known.
    pub fn dim(&self, input: usize, axis: usize) -> Dim {
        self.shape(input).and_then(|s| s.get(axis)).cloned().unwrap_or(Dim::Unknown)
    }

    /// Constant data of an input.
    pub fn tensor(&self, input: usize) -> Option<Arc<Tensor>> {
        constant(self.model, self.node.input(input)?)
    }

    /// Elements of an integer input of rank 0 or 1, as [`Facts::ints`].
    pub fn ints(&self, input: usize) -> Option<Vec<Option<Expr>>> {
        self.facts.ints(self.model, self.node.input(input)?)
    }

    /// Whole-number elements of an input of any rank and element type, row-major.
    pub(crate) fn elements(&self, input: usize) -> Option<Elements> {
        self.facts.elements(self.model, self.node.input(input)?)
    }

    /// Elements of an integer input of rank 0 or 1, when all are numbers.
    pub fn numbers(&self, input: usize) -> Option<Vec<i64>> {
        self.ints(input)?.into_iter().map(|e| e?.as_constant()).collect()
    }

    /// The only element of an integer input, when it is a number.
    pub fn number(&self, input: usize) -> Option<i64> {
        match self.numbers(input)?.as_slice() {
            [n] => Some(*n),
            _ => None,
        }
    }

    /// Integer attribute or the given default; `None` when it is of another kind or a reference to a caller's.
    pub fn int(&self, name: &str, default: i64) -> Option<i64> {
        self.node.int_or(name, default)
    }

    /// Number attribute or the given default; `None` when it is of another kind or a reference to a caller's.
    pub fn float(&self, name: &str, default: f32) -> Option<f32> {
        match self.node.attribute(name) {
            None => Some(default),
            Some(v) => v.float(),
        }
    }

    /// Integer list attribute; the inner `None` when it is not given, the outer when it is of another kind.
    pub fn list(&self, name: &str) -> Option<Option<&'a [i64]>> {
        match self.node.attribute(name) {
            None => Some(None),
            Some(v) => v.ints().map(Some),
        }
    }

    /// Text attribute or the given default; `None` when it is of another kind.
    pub fn text(&self, name: &str, default: &'a str) -> Option<&'a str> {
        match self.node.attribute(name) {
            None => Some(default),
            Some(v) => v.text(),
        }
    }
}
