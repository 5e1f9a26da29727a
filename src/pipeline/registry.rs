//! Which passes there are, as a value; and the order in which a round runs them.

use super::config::Config;
use crate::passes::{self, Pass, Stage};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Passes in their order of run.
#[derive(Clone)]
pub struct Registry {
    passes: Vec<Arc<dyn Pass>>,
}

/// Two passes of one name.
#[derive(Debug, thiserror::Error)]
#[error("there is a pass named '{0}' already; names are what configurations and site keys are made of")]
pub struct NameTaken(pub String);

impl Registry {
    /// The built-in passes.
    pub fn builtin() -> Registry {
        Registry { passes: passes::builtin() }
    }

    /// Adds a pass from outside, at the end of its stage.
    pub fn register(&mut self, pass: Arc<dyn Pass>) -> Result<(), NameTaken> {
        let info = pass.info();
        if self.get(info.name).is_some() {
            return Err(NameTaken(info.name.into()));
        }
        let at = self.passes.iter().rposition(|p| p.info().stage <= info.stage).map_or(0, |i| i + 1);
        self.passes.insert(at, pass);
        Ok(())
    }

    /// A pass by name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Pass>> {
        self.passes.iter().find(|p| p.info().name == name)
    }

    /// All passes.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Pass>> {
        self.passes.iter()
    }

    /// The passes in the order in which a configuration runs them, those that are off included: the order of its
    /// list, then stage by stage; a pass comes after those that it declares to follow, whatever a list says.
    pub fn plan(&self, config: &Config) -> Vec<Arc<dyn Pass>> {
        let rank = |p: &Arc<dyn Pass>| {
            let listed = config.order.iter().position(|n| n == p.info().name);
            (p.info().stage == Stage::Clean, listed.is_none(), listed.unwrap_or(0), p.info().stage)
        };
        let mut wanted: Vec<Arc<dyn Pass>> = self.passes.clone();
        wanted.sort_by_key(rank);
        let names: BTreeSet<&str> = self.passes.iter().map(|p| p.info().name).collect();
        let mut placed: BTreeSet<&str> = BTreeSet::new();
        let mut plan = Vec::new();
        while !wanted.is_empty() {
            let ready =
                |p: &Arc<dyn Pass>| p.info().after.iter().all(|a| placed.contains(a) || !names.contains(a));
            // Declarations that contradict each other cannot all hold: the first waiting pass then goes first.
            let at = wanted.iter().position(ready).unwrap_or(0);
            let pass = wanted.remove(at);
            placed.insert(pass.info().name);
            plan.push(pass);
        }
        plan
    }

    /// May a pass change places with its neighbour in the plan (`up`, else down)? Says why not.
    pub fn can_move(&self, config: &Config, name: &str, up: bool) -> Result<Vec<String>, String> {
        let mut names: Vec<String> = self.plan(config).iter().map(|p| p.info().name.to_owned()).collect();
        let at = names.iter().position(|n| n == name).ok_or_else(|| format!("there is no pass '{name}'"))?;
        let other = if up { at.checked_sub(1) } else { Some(at + 1).filter(|o| *o < names.len()) };
        let other = other
            .ok_or_else(|| format!("'{name}' is at the {} already", if up { "top" } else { "bottom" }))?;
        names.swap(at, other);
        let moved = Config { order: names.clone(), ..config.clone() };
        let now: Vec<String> = self.plan(&moved).iter().map(|p| p.info().name.to_owned()).collect();
        if now == names {
            Ok(names)
        } else {
            Err(format!("'{name}' must keep its place relative to '{}'", now[at]))
        }
    }
}
