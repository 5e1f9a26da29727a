//! The pipeline as a list: a row a pass with what the last run did, a row a site.

use super::document::Document;
use crate::ir::NodeId;
use crate::passes::{Anchor, Risk, Stage};
use crate::pipeline::{PassRun, Registry, SiteKey};
use std::sync::Arc;

/// A pass and what the last run did with it, over all rounds.
#[derive(Clone, PartialEq, Debug)]
pub struct PassRow {
    pub name: &'static str,
    pub stage: Stage,
    pub summary: &'static str,
    pub risk: Risk,
    pub on: bool,
    /// `None` when it did not run.
    pub outcome: Option<PassOutcome>,
    /// Whether it may change places with its neighbour, else why not.
    pub can_move_up: Result<(), String>,
    pub can_move_down: Result<(), String>,
}

/// What a pass did.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PassOutcome {
    pub applied: usize,
    pub blocked: usize,
    pub excluded: usize,
    pub failed: usize,
    /// Nodes of the model afterwards, as against before.
    pub node_change: i64,
    pub seconds: f64,
}

/// State of a site.
#[derive(Clone, PartialEq, Debug)]
pub enum SiteState {
    /// In the model, as this step.
    Applied(u32),
    /// Left alone because it was ticked off.
    Excluded,
    /// Would be rewritten if the pass were on.
    Found,
    /// Rolled back.
    Failed(String),
    /// A near miss: the condition that failed and the node to blame.
    Blocked { condition: String, blame: NodeId },
}

/// A site of a pass.
#[derive(Clone, PartialEq, Debug)]
pub struct SiteRow {
    /// `None` for a near miss, which cannot be ticked off.
    pub key: Option<SiteKey>,
    pub what: String,
    pub state: SiteState,
    /// The node to show.
    pub node: Option<NodeId>,
    pub block: String,
}

fn runs<'a>(document: &'a Document, pass: &'a str) -> impl Iterator<Item = &'a Arc<PassRun>> + 'a {
    document.run().into_iter().flat_map(|r| r.passes.iter()).filter(move |p| &*p.pass == pass)
}

pub(super) fn pass_rows(document: &Document, registry: &Registry) -> Vec<PassRow> {
    let config = document.config();
    let plan = registry.plan(config);
    let row = |pass: &Arc<dyn crate::passes::Pass>| {
        let info = pass.info();
        let mut outcome: Option<PassOutcome> = None;
        for run in runs(document, info.name) {
            let o = outcome.get_or_insert_with(PassOutcome::default);
            o.applied += run.steps.len();
            o.failed += run.failures.len();
            o.node_change += run.nodes_after as i64 - run.nodes_before as i64;
            o.seconds += run.seconds;
            // Later rounds meet the same near misses and exclusions again.
            o.blocked = run.blocked.len();
            o.excluded = o.excluded.max(run.excluded.len());
        }
        let can_move = |up| registry.can_move(config, info.name, up).map(|_| ());
        PassRow {
            name: info.name,
            stage: info.stage,
            summary: info.summary,
            risk: info.risk,
            on: config.is_on(&**pass),
            outcome,
            can_move_up: can_move(true),
            can_move_down: can_move(false),
        }
    };
    plan.iter().map(row).collect()
}

pub(super) fn site_rows(document: &Document, pass: &str) -> Vec<SiteRow> {
    let mut rows = Vec::new();
    let block = |run: &PassRun, node: NodeId| document.block_path(&run.after, node);
    let node_of = |anchor: Anchor| match anchor {
        Anchor::Node(n) => Some(n),
        Anchor::Value(_) => None,
    };
    let mut last = None;
    for run in runs(document, pass) {
        for step in &run.steps {
            let e = &step.effects;
            let node = e.changed.iter().chain(&e.added).chain(&e.removed).next().copied();
            rows.push(SiteRow {
                key: Some(step.key.clone()),
                what: step.what.to_string(),
                state: SiteState::Applied(step.number),
                node,
                block: node.map(|n| block(run, n)).unwrap_or_default(),
            });
        }
        for f in &run.failures {
            let what = f.key.as_ref().map_or_else(|| pass.to_owned(), |k| k.anchor.to_string());
            let state = SiteState::Failed(f.message.clone());
            rows.push(SiteRow { key: f.key.clone(), what, state, node: None, block: String::new() });
        }
        last = Some(run);
    }
    if let Some(run) = last {
        for e in &run.excluded {
            let node = node_of(e.site.anchor);
            rows.push(SiteRow {
                key: Some(e.key.clone()),
                what: e.site.what.to_string(),
                state: SiteState::Excluded,
                node,
                block: node.map(|n| block(run, n)).unwrap_or_default(),
            });
        }
        for b in &run.blocked {
            let state = SiteState::Blocked { condition: b.condition.to_string(), blame: b.blame };
            let what = run.after.model.node_label(b.anchor);
            rows.push(SiteRow { key: None, what, state, node: Some(b.anchor), block: block(run, b.anchor) });
        }
    }
    if let (None, Some(preview)) = (last, document.previews.get(pass)) {
        let state = document.run().map_or_else(|| (*document.initial).clone(), |r| r.last_state());
        for listed in &preview.0 {
            let node = node_of(listed.site.anchor);
            let excluded = document.config().exclude.contains(&listed.key);
            rows.push(SiteRow {
                key: Some(listed.key.clone()),
                what: listed.site.what.to_string(),
                state: if excluded { SiteState::Excluded } else { SiteState::Found },
                node,
                block: node.map(|n| document.block_path(&state, n)).unwrap_or_default(),
            });
        }
        for b in &preview.1 {
            let site = SiteState::Blocked { condition: b.condition.to_string(), blame: b.blame };
            let (what, block) = (state.model.node_label(b.anchor), document.block_path(&state, b.anchor));
            rows.push(SiteRow { key: None, what, state: site, node: Some(b.anchor), block });
        }
    }
    rows
}
