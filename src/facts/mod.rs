//! What is known of a model without running it: types of values, elements of small integer tensors, and one canonical
//! view of operators. Nothing here is a guess: what cannot be derived is unknown.
//!
//! A named dimension stands for the same number wherever it occurs during one run. Dimensions that depend on data are
//! called `?value.axis`, so that two tensors that share one are seen to agree. Names of inputs are taken to be 1 or more
//! where Reshape would read a 0 as "copy".

mod control;
mod dims;
mod infer;
mod join;
pub mod operators;
pub mod statistics;
mod symbols;
mod update;
mod values;
pub mod view;

use crate::ir::{Expr, Model, Text, Touched, Type, ValueId};
use std::collections::BTreeSet;
use std::sync::Arc;

pub use symbols::is_placeholder;

/// Most elements of a tensor that [`Facts::ints`] knows one by one.
pub const MAX_ELEMENTS: usize = 1024;

/// Elements of a small tensor, row-major; `None` for an element that is not known.
pub(crate) type Elements = Arc<[Option<Expr>]>;

/// What is known of one value.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Fact {
    pub ty: Type,
    /// Elements that are integers (of any element type: float32 2.0 is 2). Only of a shape that is fixed.
    pub elements: Option<Elements>,
}

impl Fact {
    fn of(ty: Type) -> Fact {
        Fact { ty, elements: None }
    }
}

/// Something in a file that cannot be true.
#[derive(Clone, PartialEq, Debug)]
pub struct Problem {
    /// The value it is about.
    pub value: ValueId,
    /// One sentence that names the value and says what is right.
    pub message: Text,
}

/// Types of values, better than a file declares them. A copy is a few pointers.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// By [`ValueId::index`].
    facts: imbl::Vector<Option<Arc<Fact>>>,
    problems: Arc<[Problem]>,
    /// Names of dimensions of the main graph's inputs.
    given: Arc<BTreeSet<Text>>,
}

impl Facts {
    /// Everything that can be derived of a model.
    pub fn infer(model: &Model) -> Facts {
        infer::Inference::new(model, Facts::default()).run()
    }

    /// These facts, and those of another model of the same session about values that only that one has.
    pub fn and_those_of(mut self, other: &Facts) -> Facts {
        for (index, fact) in other.facts.iter().enumerate().filter(|(_, fact)| fact.is_some()) {
            match self.facts.get_mut(index) {
                Some(Some(_)) => {}
                Some(none) => none.clone_from(fact),
                None => {
                    while self.facts.len() < index {
                        self.facts.push_back(None);
                    }
                    self.facts.push_back(fact.clone());
                }
            }
        }
        self
    }

    /// The best known type of a value: inferred, else declared.
    pub fn ty<'a>(&'a self, model: &'a Model, value: ValueId) -> &'a Type {
        const UNKNOWN: &Type = &Type::Unknown;
        match self.facts.get(value.index()) {
            Some(Some(fact)) => &fact.ty,
            _ => model.get_value(value).map_or(UNKNOWN, |v| &v.ty),
        }
    }

    /// Elements of an integer or bool tensor of rank 0 or 1 with at most [`MAX_ELEMENTS`] elements; `None` in the list
    /// is an element that is not known. Constants are read exactly.
    pub fn ints(&self, model: &Model, value: ValueId) -> Option<Vec<Option<Expr>>> {
        let ty = self.ty(model, value);
        let counts = ty.element().is_some_and(view::counts) && ty.rank().is_some_and(|r| r <= 1);
        if !counts {
            return None;
        }
        self.elements(model, value).map(|e| e.to_vec())
    }

    /// Whole-number elements of a tensor of any rank and element type.
    pub(crate) fn elements(&self, model: &Model, value: ValueId) -> Option<Elements> {
        if let Some(Some(fact)) = self.facts.get(value.index())
            && let Some(elements) = &fact.elements
        {
            return Some(elements.clone());
        }
        values::of_tensor(view::constant(model, value)?.as_ref()).map(Into::into)
    }

    /// What the file says that cannot be true, in order of value.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Follows a patch. Facts of values that stay are kept, new values are inferred, and what reads them only as far as
    /// something better becomes known.
    pub fn update(&mut self, model: &Model, touched: &Touched) {
        update::follow(self, model, touched);
    }
}
