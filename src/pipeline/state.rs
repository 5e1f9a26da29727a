//! The state between two steps, and how a step changes it.

use super::key::SiteKey;
use super::provenance::{Effects, Provenance};
use crate::blocks::BlockTree;
use crate::facts::Facts;
use crate::ir::{Edit, Model, NodeId, Patch, PatchError, Touched, Type, ValueId};
use std::sync::Arc;

/// A model with everything that is known of it. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct State {
    pub model: Model,
    pub facts: Facts,
    pub blocks: BlockTree,
    pub provenance: Provenance,
    /// How often a site key was rewritten so far: tells the ids of a second rewrite at one place from the first's.
    pub(super) rewrites: imbl::HashMap<SiteKey, u32>,
}

/// Why a patch was refused and undone.
#[derive(Clone, Debug, thiserror::Error, PartialEq)]
pub enum Refusal {
    #[error("the patch does not fit the model: {0}")]
    Patch(#[from] PatchError),
    #[error("'{value}' was {before} and would be {after}")]
    TypeChanged { value: String, before: String, after: String },
}

impl State {
    /// The state of a model as imported.
    pub fn new(model: Model) -> State {
        let facts = Facts::infer(&model);
        let blocks = crate::blocks::build(&model, &facts);
        State { model, facts, blocks, provenance: Provenance::default(), rewrites: imbl::HashMap::new() }
    }

    /// The state of a second model that shares ids with this one's ([`crate::diff::align`]), to be shown beside it: its
    /// own facts, and one tree of blocks for both.
    pub fn beside(&self, model: Model) -> State {
        let own = State::new(model);
        let blocks = crate::blocks::beside(&self.blocks, (&own.model, &own.blocks));
        State { facts: own.facts.and_those_of(&self.facts), blocks, ..own }
    }

    /// Applies a patch with real ids as a step of the given number: model, facts, provenance and blocks, all or nothing.
    pub(super) fn advance(
        &mut self,
        number: u32,
        key: &SiteKey,
        patch: &Patch,
    ) -> Result<(Patch, Effects), Refusal> {
        let before = self.clone();
        let (inverse, touched) = self.model.apply(patch)?;
        self.facts.update(&self.model, &touched);
        if let Err(refusal) = agree(&before, self, patch, &touched) {
            *self = before;
            return Err(refusal);
        }
        let effects = Effects::of(patch, &touched.nodes);
        self.provenance.record(number, patch, &effects);
        for node in &effects.added {
            if let Some(n) = self.model.get_node(*node) {
                let origins: Vec<NodeId> = effects.removed.iter().chain(&patch.reads).copied().collect();
                self.blocks.join(*node, n.graph, &origins);
            }
        }
        *self.rewrites.entry(key.clone()).or_default() += 1;
        Ok((inverse, effects))
    }
}

/// What takes a value's place must have its type: values that stay keep theirs, and so do those that replace others.
fn agree(before: &State, after: &State, patch: &Patch, touched: &Touched) -> Result<(), Refusal> {
    let check = |old: ValueId, new: ValueId| -> Result<(), Refusal> {
        if before.model.get_value(old).is_none() || after.model.get_value(new).is_none() {
            return Ok(());
        }
        let (was, is) = (before.facts.ty(&before.model, old), after.facts.ty(&after.model, new));
        if contradicts(was, is) {
            let value = before.model.value(old).name.to_string();
            return Err(Refusal::TypeChanged { value, before: was.to_string(), after: is.to_string() });
        }
        Ok(())
    };
    for value in &touched.values {
        check(*value, *value)?;
    }
    for edit in &patch.edits {
        if let Edit::ReplaceUses { of, with, .. } = edit {
            check(*of, *with)?;
        }
    }
    Ok(())
}

/// No value can have both types.
pub fn contradicts(a: &Type, b: &Type) -> bool {
    match (a, b) {
        (Type::Unknown, _) | (_, Type::Unknown) => false,
        (Type::Tensor { element: e, shape: s }, Type::Tensor { element: f, shape: t }) => {
            let shapes = match (s, t) {
                (Some(s), Some(t)) => {
                    s.len() != t.len()
                        || s.iter()
                            .zip(t)
                            .any(|(a, b)| matches!((a.fixed(), b.fixed()), (Some(a), Some(b)) if a != b))
                }
                _ => false,
            };
            e != f || shapes
        }
        (Type::Sequence(a), Type::Sequence(b)) | (Type::Optional(a), Type::Optional(b)) => contradicts(a, b),
        (Type::Map { key: k, value: a }, Type::Map { key: l, value: b }) => k != l || contradicts(a, b),
        (Type::Sparse { element: a, .. }, Type::Sparse { element: b, .. }) => a != b,
        (a, b) => std::mem::discriminant(a) != std::mem::discriminant(b),
    }
}

/// One rewrite at one site.
#[derive(Clone, Debug)]
pub struct Step {
    /// 1, 2, … over the whole run.
    pub number: u32,
    pub round: u32,
    pub pass: Arc<str>,
    pub key: SiteKey,
    /// A few words of the pass about the site.
    pub what: Arc<str>,
    pub patch: Arc<Patch>,
    pub inverse: Arc<Patch>,
    pub effects: Arc<Effects>,
    /// Nodes of all live graphs afterwards, as against before.
    pub node_change: i64,
    pub seconds: f64,
}
