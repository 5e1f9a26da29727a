//! What `optimize` tells, as data.

use super::Listing;
use crate::cli::inspect::ProblemEntry;
use crate::formats::{Problem, SaveReport};
use crate::ir::Model;
use crate::passes::{Blocked, Stage};
use crate::pipeline::{Config, PassRun, Registry, Run, SiteKey, State, StopReason, Unmatched};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;

/// The JSON document of `optimize`.
#[derive(Debug, Serialize)]
pub struct Report {
    pub input: String,
    pub output: String,
    /// Nodes of all graphs that are reached: bodies and model-local functions are counted.
    pub nodes_before: usize,
    pub nodes_after: usize,
    /// `converged`, `round_limit`, `cycle`, `stop_at` or `cancelled`.
    pub stop_reason: &'static str,
    /// Passes that undo each other; empty unless the reason is `cycle`.
    pub cycle: Vec<String>,
    pub rounds: u32,
    pub seconds: f64,
    /// One entry a pass and round, in order of run.
    pub passes: Vec<PassEntry>,
    /// One entry a rewrite, in order.
    pub steps: Vec<StepEntry>,
    /// Near misses at the end.
    pub blocked: Vec<BlockedEntry>,
    /// Node names that the file has anew, because runtimes refuse two nodes of one name.
    pub renamed: Vec<RenamedEntry>,
    /// What its reader found worth saying about the input.
    pub problems: Vec<ProblemEntry>,
    /// Exclusions that fitted nothing.
    pub unmatched: Vec<Unmatched>,
    /// Size of what was written, in bytes.
    pub bytes: u64,
    /// The data file beside the model, when there is one.
    pub data_file: Option<String>,
    /// The report file, when one was asked for.
    pub report: Option<String>,
}

/// One pass in one round.
#[derive(Debug, Serialize)]
pub struct PassEntry {
    pub name: String,
    pub stage: Option<Stage>,
    pub round: u32,
    /// Sites that were rewritten.
    pub sites: usize,
    /// Sites that turned out stale or without effect.
    pub declined: usize,
    pub seconds: f64,
    pub verification: Verification,
    /// Seconds that the model takes after this pass; `null` as long as it was not measured.
    pub latency: Option<f64>,
    pub found: usize,
    /// Near misses.
    pub blocked: usize,
    pub excluded: usize,
    /// Sites where something went wrong; the model was put back to before each of them.
    pub failed: Vec<FailureEntry>,
    pub nodes_before: usize,
    pub nodes_after: usize,
}

/// How far outputs were compared.
#[derive(Debug, Serialize)]
pub struct Verification {
    /// `not_run` here: see `reason`.
    pub mark: &'static str,
    /// Largest difference; `null` when nothing was compared.
    pub worst: Option<f64>,
    pub reason: &'static str,
}

/// A site that failed.
#[derive(Debug, Serialize)]
pub struct FailureEntry {
    /// `null` when looking for sites failed.
    pub site: Option<SiteKey>,
    pub message: String,
}

/// One rewrite.
#[derive(Debug, Serialize)]
pub struct StepEntry {
    pub number: u32,
    pub round: u32,
    pub pass: String,
    pub site: SiteKey,
    pub what: String,
}

/// A near miss.
#[derive(Debug, Serialize)]
pub struct BlockedEntry {
    pub pass: String,
    /// Where the rewrite would have been.
    pub node: String,
    /// What stands in the way.
    pub condition: String,
    /// The node to blame.
    pub blame: String,
}

/// A node with a new name in the file.
#[derive(Debug, Serialize)]
pub struct RenamedEntry {
    pub from: String,
    pub to: String,
}

impl Report {
    pub(super) fn new(
        input: &Path,
        saved: &SaveReport,
        report: Option<&Path>,
        run: &Run,
        problems: &[Problem],
        registry: &Registry,
        verification_off: bool,
    ) -> Report {
        let cycle = match &run.stop {
            StopReason::Cycle { passes } => passes.clone(),
            _ => Vec::new(),
        };
        let reason = if verification_off { "switched off by --no-verify" } else { "there is no engine yet" };
        let steps = run.steps.iter().map(|step| StepEntry {
            number: step.number,
            round: step.round,
            pass: step.pass.to_string(),
            site: step.key.clone(),
            what: step.what.to_string(),
        });
        let passes = run.passes.iter().map(|pass| PassEntry::new(pass, registry, reason));
        let renamed = saved
            .renamed
            .iter()
            .map(|node| RenamedEntry { from: node.from.to_string(), to: node.to.to_string() });
        Report {
            input: input.display().to_string(),
            output: saved.path.display().to_string(),
            nodes_before: run.initial.model.node_count(),
            nodes_after: run.last_state().model.node_count(),
            stop_reason: run.stop.name(),
            cycle,
            rounds: run.rounds,
            seconds: run.seconds,
            passes: passes.collect(),
            steps: steps.collect(),
            blocked: last_blocked(run),
            renamed: renamed.collect(),
            problems: problems.iter().map(ProblemEntry::of).collect(),
            unmatched: run.unmatched.clone(),
            bytes: saved.bytes + saved.data_file.as_ref().map_or(0, |(_, bytes)| *bytes),
            data_file: saved.data_file.as_ref().map(|(path, _)| path.display().to_string()),
            report: report.map(|path| path.display().to_string()),
        }
    }
}

impl PassEntry {
    fn new(pass: &PassRun, registry: &Registry, reason: &'static str) -> PassEntry {
        let failed = pass
            .failures
            .iter()
            .map(|failure| FailureEntry { site: failure.key.clone(), message: failure.message.clone() });
        PassEntry {
            name: pass.pass.to_string(),
            stage: registry.get(&pass.pass).map(|p| p.info().stage),
            round: pass.round,
            sites: pass.steps.len(),
            declined: pass.declined,
            seconds: pass.seconds,
            verification: Verification { mark: "not_run", worst: None, reason },
            latency: None,
            found: pass.found,
            blocked: pass.blocked.len(),
            excluded: pass.excluded.len(),
            failed: failed.collect(),
            nodes_before: pass.nodes_before,
            nodes_after: pass.nodes_after,
        }
    }
}

/// The near misses of each pass's last run.
fn last_blocked(run: &Run) -> Vec<BlockedEntry> {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let last: Vec<&PassRun> =
        run.passes.iter().rev().filter(|p| seen.insert(&p.pass)).map(|p| &**p).collect();
    let entries = last.into_iter().rev().flat_map(|pass| {
        pass.blocked.iter().map(|blocked| BlockedEntry::new(&pass.after.model, &pass.pass, blocked))
    });
    entries.collect()
}

impl BlockedEntry {
    fn new(model: &Model, pass: &str, blocked: &Blocked) -> BlockedEntry {
        BlockedEntry {
            pass: pass.to_owned(),
            node: model.node_label(blocked.anchor),
            condition: blocked.condition.to_string(),
            blame: model.node_label(blocked.blame),
        }
    }
}

/// The JSON document of `optimize --dry-run`.
#[derive(Debug, Serialize)]
pub struct DryRun {
    pub input: String,
    pub nodes_before: usize,
    /// In order of run; sites that only other rewrites open up are not among them.
    pub passes: Vec<ListedPass>,
    /// Exclusions that fit none of these sites, or no block.
    pub unmatched: Vec<Unmatched>,
    /// The configuration file that was written, when one was asked for.
    pub config: Option<String>,
}

/// What one pass sees in the model as it is.
#[derive(Debug, Serialize)]
pub struct ListedPass {
    pub name: &'static str,
    pub stage: Stage,
    pub sites: Vec<SiteEntry>,
    pub blocked: Vec<BlockedEntry>,
}

/// A site.
#[derive(Debug, Serialize)]
pub struct SiteEntry {
    /// The key that `--exclude` takes.
    pub site: SiteKey,
    pub what: String,
    pub excluded: bool,
}

impl DryRun {
    pub(super) fn new(
        input: &Path,
        state: &State,
        listings: &[Listing],
        config: &Config,
        unmatched: Vec<Unmatched>,
        saved_config: Option<&Path>,
    ) -> DryRun {
        let passes = listings.iter().map(|listing| ListedPass {
            name: listing.pass,
            stage: listing.stage,
            sites: listing
                .sites
                .iter()
                .map(|listed| SiteEntry {
                    site: listed.key.clone(),
                    what: listed.site.what.to_string(),
                    excluded: config.exclude.contains(&listed.key),
                })
                .collect(),
            blocked: listing
                .blocked
                .iter()
                .map(|blocked| BlockedEntry::new(&state.model, listing.pass, blocked))
                .collect(),
        });
        DryRun {
            input: input.display().to_string(),
            nodes_before: state.model.node_count(),
            passes: passes.collect(),
            unmatched,
            config: saved_config.map(|path| path.display().to_string()),
        }
    }
}
