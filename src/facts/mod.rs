//! What is known of a model without running it.

use crate::ir::{Model, Type, ValueId};

/// Types of values, better than a file declares them.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    types: imbl::OrdMap<ValueId, Type>,
}

impl Facts {
    /// The best known type of a value: inferred, else declared.
    pub fn ty<'a>(&'a self, model: &'a Model, value: ValueId) -> &'a Type {
        const UNKNOWN: &Type = &Type::Unknown;
        match self.types.get(&value) {
            Some(ty) => ty,
            None => model.get_value(value).map_or(UNKNOWN, |v| &v.ty),
        }
    }
}
