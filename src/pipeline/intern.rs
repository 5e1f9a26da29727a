//! Ids for what rewrites create: the same rewrite gets the same ids in every run of a session.

use super::key::SiteKey;
use crate::ir::{Model, NodeId, Patch, ValueId};
use std::collections::HashMap;

/// Site, how often it was rewritten before, and position among the patch's new things.
type Made = (SiteKey, u32, u32);

/// Gives out ids beyond those of the imported model and remembers for what.
pub struct Interner {
    nodes: HashMap<Made, NodeId>,
    values: HashMap<Made, ValueId>,
    next_node: u32,
    next_value: u32,
}

impl Interner {
    /// Begins after the ids of a model.
    pub fn new(model: &Model) -> Interner {
        let (next_node, next_value, _) = model.id_bounds();
        Interner { nodes: HashMap::new(), values: HashMap::new(), next_node, next_value }
    }

    /// Replaces the placeholders of a patch.
    pub fn resolve(&mut self, key: &SiteKey, occurrence: u32, patch: &mut Patch) {
        let Interner { nodes, values, next_node, next_value } = self;
        let mut node = |index: u32| {
            *nodes.entry((key.clone(), occurrence, index)).or_insert_with(|| {
                *next_node += 1;
                NodeId(*next_node - 1)
            })
        };
        let mut value = |index: u32| {
            *values.entry((key.clone(), occurrence, index)).or_insert_with(|| {
                *next_value += 1;
                ValueId(*next_value - 1)
            })
        };
        patch.resolve(&mut node, &mut value);
    }
}
