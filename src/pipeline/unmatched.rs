//! Exclusions that keep nothing away: a site that no pass found, a block that the model does not have. A mistyped one
//! would otherwise look like one that is obeyed.

use super::config::{Config, nearest};
use super::key::SiteKey;
use crate::blocks::BlockTree;
use serde::Serialize;
use std::collections::BTreeSet;

/// An exclusion of a configuration that fits nothing.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Unmatched {
    /// The site's key or the block's path, as the configuration has it.
    pub exclusion: String,
    /// One sentence without a full stop: what it fits not, and what is nearest.
    pub text: String,
}

/// What exclusions are held against.
pub struct Seen<'a> {
    /// Names of the passes that looked for sites.
    pub passes: BTreeSet<&'a str>,
    /// Keys of all sites that they found.
    pub sites: BTreeSet<&'a SiteKey>,
    pub blocks: &'a BlockTree,
    /// How far was looked, as the end of a sentence; empty for a whole run.
    pub reach: &'a str,
}

/// The exclusions of a configuration that fit nothing of what was seen, sites first.
pub fn unmatched(config: &Config, seen: &Seen) -> Vec<Unmatched> {
    let sites = config.exclude.iter().filter(|key| !seen.sites.contains(key)).map(|key| {
        let text = if seen.passes.contains(&*key.pass) {
            let same_pass = seen.sites.iter().filter(|k| k.pass == key.pass).map(|k| k.to_string());
            let hint = nearest(&key.to_string(), same_pass);
            format!("no site {key} was found{}{hint}", seen.reach)
        } else {
            format!("no site {key} was found: the pass did not run")
        };
        Unmatched { exclusion: key.to_string(), text }
    });
    let scopes = [&config.global].into_iter().chain(config.stages.values()).chain(config.passes.values());
    let named: BTreeSet<&String> = scopes.flat_map(|scope| &scope.exclude_blocks).collect();
    let mut found: Vec<Unmatched> = sites.collect();
    if !named.is_empty() {
        let paths: BTreeSet<String> = seen.blocks.iter().map(|(id, _)| seen.blocks.path(id)).collect();
        found.extend(named.into_iter().filter(|path| !paths.contains(*path)).map(|path| {
            let hint = nearest(path, paths.iter().filter(|known| !known.is_empty()));
            Unmatched { exclusion: path.clone(), text: format!("no block is called '{path}'{hint}") }
        }));
    }
    found
}
