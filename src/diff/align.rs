//! Two files as two states of one session: the second one under the first one's ids.

use super::matching::Matching;
use super::{Diff, NodeChange, What};
use crate::ir::{Counterparts, Model, NodeId, ValueId};
use std::collections::BTreeMap;

/// A second model put beside a first one.
#[derive(Clone, Debug)]
pub struct Aligned {
    /// The second model; nodes, values and graphs that the two have in common bear the first one's ids.
    pub model: Model,
    /// As [`super::by_matching`] finds it, with the ids of `model`.
    pub diff: Diff,
}

/// Matches two models read from files and puts the second one beside the first.
pub fn align(before: &Model, after: &Model) -> Aligned {
    let matching = Matching::of(before, after);
    let counterparts = Counterparts {
        nodes: matching.taken.iter().map(|(b, a)| (*b, *a)).collect(),
        values: matching.back.iter().map(|(b, a)| (*b, *a)).collect(),
        graphs: matching.graphs.iter().map(|(a, b)| (*b, *a)).collect(),
    };
    let beside = after.beside(before, &counterparts);
    Aligned { model: beside.model, diff: matching.diff().with_ids(&beside.ids) }
}

impl Diff {
    /// The same with other ids of the second model.
    fn with_ids(self, ids: &Counterparts) -> Diff {
        let node = |id: NodeId| ids.nodes.get(&id).copied().unwrap_or(id);
        let value = |id: ValueId| ids.values.get(&id).copied().unwrap_or(id);
        let what = |what: What| match what {
            What::Constant { index, before, after } => What::Constant { index, before, after: value(after) },
            other => other,
        };
        let change = |change: NodeChange| NodeChange {
            after: change.after.map(node),
            what: change.what.into_iter().map(what).collect(),
            ..change
        };
        let mut constants = self.constants;
        constants.iter_mut().for_each(|c| c.after = c.after.map(value));
        Diff {
            nodes: self.nodes.into_iter().map(change).collect(),
            constants,
            renamed: self.renamed.into_iter().map(|(a, b)| (a, node(b))).collect(),
            after: self.after.into_iter().map(|(id, mark)| (node(id), mark)).collect::<BTreeMap<_, _>>(),
            model: self.model,
            matched: self.matched,
            before: self.before,
        }
    }
}
