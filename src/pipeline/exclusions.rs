//! What a configuration keeps a pass away from: single sites, and blocks.

use super::config::Config;
use super::key::SiteKey;
use crate::blocks::{BlockId, BlockTree};
use crate::passes::{Anchor, Pass, Site};
use std::collections::{BTreeSet, HashSet};
use std::hash::{Hash, Hasher};

/// What a configuration keeps a pass away from.
pub(super) struct Exclusions {
    keys: BTreeSet<SiteKey>,
    blocks: BTreeSet<String>,
    inside: HashSet<BlockId>,
}

impl Exclusions {
    pub(super) fn of(config: &Config, pass: &dyn Pass, tree: &BlockTree) -> Exclusions {
        let name = pass.info().name;
        let blocks = config.excluded_blocks(pass);
        let inside =
            tree.iter().filter(|(id, _)| blocks.contains(&tree.path(*id))).map(|(id, _)| id).collect();
        Exclusions {
            keys: config.exclude.iter().filter(|k| &*k.pass == name).cloned().collect(),
            blocks,
            inside,
        }
    }

    pub(super) fn hold(&self, key: &SiteKey, site: &Site, tree: &BlockTree) -> bool {
        if self.keys.contains(key) {
            return true;
        }
        let Anchor::Node(node) = site.anchor else { return false };
        !self.inside.is_empty()
            && tree.block_of(node).is_some_and(|b| tree.ancestors(b).any(|a| self.inside.contains(&a)))
    }

    pub(super) fn digest(&self) -> u64 {
        let mut h = rustc_hash::FxHasher::default();
        self.keys.hash(&mut h);
        self.blocks.hash(&mut h);
        h.finish()
    }
}
