//! Running passes: rounds, sites, checks, rollback, numbering.

use super::config::Config;
use super::exclusions::Exclusions;
use super::graph_hash::graph_hash;
use super::intern::Interner;
use super::key::SiteKey;
use super::log::{Event, Outcome};
use super::neighbourhood::neighbourhood;
use super::provenance::Effects;
use super::registry::Registry;
use super::spoken;
use super::state::{Refusal, State, Step};
use super::unmatched::{Seen, Unmatched, unmatched};
use crate::ir::check::Fault;
use crate::ir::{GraphId, NodeId, Patch, PatchError};
use crate::passes::{Anchor, Blocked, Context, Declined, Findings, Pass, Site};
use std::any::Any;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// A state is kept every so many steps; between two of them patches are replayed.
pub const SNAPSHOT_EVERY: usize = 64;

/// A site that a pass found, with its key.
#[derive(Clone, Debug)]
pub struct ListedSite {
    pub key: SiteKey,
    pub site: Site,
}

/// A site where something went wrong; the model was put back to before it.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// `None` when the search for sites itself failed.
    pub key: Option<SiteKey>,
    pub message: String,
}

/// One pass in one round.
#[derive(Clone, Debug)]
pub struct PassRun {
    pub pass: Arc<str>,
    pub round: u32,
    /// Sites found, those that other rewrites of the same pass opened up included.
    pub found: usize,
    pub blocked: Vec<Blocked>,
    pub excluded: Vec<ListedSite>,
    /// Declined without blame: stale, or without effect.
    pub declined: usize,
    pub failures: Vec<Failure>,
    pub steps: Vec<Step>,
    pub nodes_before: usize,
    pub nodes_after: usize,
    pub seconds: f64,
    /// It found new sites without end and was stopped; it does not run again in this run.
    pub endless: bool,
    /// State at the end, and every [`SNAPSHOT_EVERY`] steps (the number of steps of this pass done by then).
    pub after: State,
    pub(super) snapshots: Vec<(usize, State)>,
}

/// Why a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum StopReason {
    /// A whole round changed nothing.
    Converged,
    /// The configured number of rounds was reached while passes still found something.
    RoundLimit,
    /// A round ended with a graph that an earlier one had ended with; these passes undo each other.
    Cycle {
        passes: Vec<String>,
    },
    /// The step that was asked for was reached.
    StopAt,
    Cancelled,
}

impl StopReason {
    /// One word for tables and JSON.
    pub fn name(&self) -> &'static str {
        match self {
            StopReason::Converged => "converged",
            StopReason::RoundLimit => "round_limit",
            StopReason::Cycle { .. } => "cycle",
            StopReason::StopAt => "stop_at",
            StopReason::Cancelled => "cancelled",
        }
    }
}

/// A whole run.
#[derive(Clone, Debug)]
pub struct Run {
    pub initial: State,
    pub passes: Vec<Arc<PassRun>>,
    /// Steps in order; `steps[i].number == i + 1`.
    pub steps: Vec<Step>,
    pub rounds: u32,
    pub stop: StopReason,
    /// Exclusions of the configuration that fitted nothing; empty when the run was cancelled.
    pub unmatched: Vec<Unmatched>,
    pub log: Vec<Event>,
    pub seconds: f64,
}

/// What is told while a run is going on.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    pub round: u32,
    pub pass: Arc<str>,
    pub steps: u32,
}

/// Limits and hooks of one run.
pub struct Options<'a> {
    /// Stop after this step, whatever step the configuration says.
    pub stop_at: Option<u32>,
    pub cancel: &'a AtomicBool,
    pub progress: &'a mut dyn FnMut(Progress),
}

/// Runs pipelines over one imported model, and keeps what each pass did: a run that begins as an earlier one goes on
/// from where they part.
pub struct Runner {
    initial: State,
    interner: Interner,
    /// By what determines the result: the steps so far, the pass, what is excluded from it.
    kept: HashMap<(u128, Arc<str>, u64), Arc<PassRun>>,
    /// Passes really run by the last call, as against taken from what was kept.
    pub fresh_passes: usize,
}

/// What is kept is thrown away when it has grown to this many pass runs; the last run's are made again when asked for.
const KEPT_LIMIT: usize = 2_000;

impl Runner {
    /// For a model as imported.
    pub fn new(model: crate::ir::Model) -> Runner {
        Runner::from_state(State::new(model))
    }

    /// For a model whose facts and blocks are known already.
    pub fn from_state(initial: State) -> Runner {
        let interner = Interner::new(&initial.model);
        Runner { initial, interner, kept: HashMap::new(), fresh_passes: 0 }
    }

    /// The model as imported.
    pub fn initial(&self) -> &State {
        &self.initial
    }

    /// Sites that a pass finds in a state, and its near misses; nothing is applied.
    pub fn preview(
        state: &State,
        pass: &dyn Pass,
        cancel: &AtomicBool,
    ) -> Result<(Vec<ListedSite>, Vec<Blocked>), Failure> {
        let mut sites = Vec::new();
        let mut blocked = Vec::new();
        for graph in state.model.live_graphs() {
            let findings = find(state, pass, graph, None, cancel)?;
            blocked.extend(findings.blocked);
            sites.extend(
                findings
                    .sites
                    .into_iter()
                    .map(|site| ListedSite { key: SiteKey::of(&state.model, pass.info().name, &site), site }),
            );
        }
        Ok((sites, blocked))
    }

    /// Runs the passes that a configuration switches on, round after round.
    pub fn run(&mut self, registry: &Registry, config: &Config, options: &mut Options) -> Run {
        let start = Instant::now();
        let stop_at = options.stop_at.or(config.stop_at);
        let plan: Vec<_> = registry.plan(config).into_iter().filter(|p| config.is_on(&**p)).collect();
        let mut state = self.initial.clone();
        let mut history: u128 = 0;
        let mut run = Run {
            initial: self.initial.clone(),
            passes: Vec::new(),
            steps: Vec::new(),
            rounds: 0,
            stop: StopReason::RoundLimit,
            unmatched: Vec::new(),
            log: vec![Event::configuration(config, &plan)],
            seconds: 0.0,
        };
        let mut seen = vec![graph_hash(&state.model)];
        let mut endless: HashSet<Arc<str>> = HashSet::new();
        self.fresh_passes = 0;
        if self.kept.len() > KEPT_LIMIT {
            self.kept.clear();
        }
        'rounds: for round in 1..=config.rounds {
            let before = run.steps.len();
            run.rounds = round;
            for pass in &plan {
                if options.cancel.load(Ordering::Relaxed) {
                    run.stop = StopReason::Cancelled;
                    break 'rounds;
                }
                if stop_at.is_some_and(|s| run.steps.len() as u32 >= s) {
                    run.stop = StopReason::StopAt;
                    break 'rounds;
                }
                let name: Arc<str> = pass.info().name.into();
                if endless.contains(&name) {
                    continue;
                }
                (options.progress)(Progress { round, pass: name.clone(), steps: run.steps.len() as u32 });
                let exclusions = Exclusions::of(config, &**pass, &self.initial.blocks);
                let key = (history, name.clone(), exclusions.digest());
                let done = match self.kept.get(&key) {
                    Some(done) => done.clone(),
                    None => {
                        self.fresh_passes += 1;
                        let first = run.steps.len() as u32 + 1;
                        let done = self.run_pass(&state, &**pass, &exclusions, round, first, options.cancel);
                        let done = Arc::new(done);
                        if !options.cancel.load(Ordering::Relaxed) {
                            self.kept.insert(key, done.clone());
                        }
                        done
                    }
                };
                let left = stop_at.map_or(usize::MAX, |s| s as usize - run.steps.len());
                let done = if done.steps.len() > left { Arc::new(done.cut(left)) } else { done };
                for step in &done.steps {
                    history = advance_history(history, &step.key);
                    run.steps.push(Step { round, ..step.clone() });
                }
                run.log.extend(events(&done, round));
                state = done.after.clone();
                if done.endless {
                    endless.insert(name);
                }
                run.passes.push(if done.round == round {
                    done
                } else {
                    Arc::new(PassRun { round, ..(*done).clone() })
                });
            }
            if options.cancel.load(Ordering::Relaxed) {
                run.stop = StopReason::Cancelled;
                break;
            }
            if run.steps.len() == before {
                run.stop = StopReason::Converged;
                break;
            }
            let hash = graph_hash(&state.model);
            if seen.contains(&hash) {
                let mut passes: Vec<String> =
                    run.steps[before..].iter().map(|s| s.pass.to_string()).collect();
                passes.sort();
                passes.dedup();
                run.stop = StopReason::Cycle { passes };
                break;
            }
            seen.push(hash);
        }
        if config.rounds == 0 || plan.is_empty() {
            run.stop = StopReason::Converged;
        }
        if let Some(limit) = stop_at
            && run.steps.len() as u32 >= limit
        {
            run.stop = StopReason::StopAt;
        }
        run.seconds = start.elapsed().as_secs_f64();
        if run.stop != StopReason::Cancelled {
            run.unmatched = run.unmatched_exclusions(config);
        }
        run.log.extend(run.unmatched.iter().map(Event::unmatched));
        run.log.push(Event::end(&run));
        run
    }

    fn run_pass(
        &mut self,
        state: &State,
        pass: &dyn Pass,
        exclusions: &Exclusions,
        round: u32,
        first: u32,
        cancel: &AtomicBool,
    ) -> PassRun {
        let start = Instant::now();
        let name: Arc<str> = pass.info().name.into();
        let nodes_before = state.model.node_count();
        let mut out = PassRun {
            pass: name.clone(),
            round,
            found: 0,
            blocked: Vec::new(),
            excluded: Vec::new(),
            declined: 0,
            failures: Vec::new(),
            steps: Vec::new(),
            nodes_before,
            nodes_after: nodes_before,
            seconds: 0.0,
            endless: false,
            after: state.clone(),
            snapshots: vec![(0, state.clone())],
        };
        // More rewrites than this cannot be progress: a pass that feeds itself is stopped and named.
        let limit = 4 * self.initial.model.node_count() + 1_000;
        let graphs = state.model.live_graphs();
        for graph in graphs {
            let reached = out.after.model.live_graphs().contains(&graph);
            if !reached {
                continue;
            }
            let findings = match find(&out.after, pass, graph, None, cancel) {
                Ok(findings) => findings,
                Err(failure) => {
                    out.failures.push(failure);
                    continue;
                }
            };
            let mut pending: HashSet<SiteKey> = HashSet::new();
            let mut queue = VecDeque::new();
            out.take(findings, &name, &mut queue, &mut pending);
            while let Some((key, site)) = queue.pop_front() {
                if cancel.load(Ordering::Relaxed) {
                    break;
                }
                pending.remove(&key);
                if exclusions.hold(&key, &site, &out.after.blocks) {
                    out.excluded.push(ListedSite { key, site });
                    continue;
                }
                if out.steps.len() >= limit {
                    let message = format!(
                        "stopped after {limit} rewrites in one round: it finds new sites without end"
                    );
                    out.failures.push(Failure { key: Some(key), message });
                    out.endless = true;
                    break;
                }
                let clock = Instant::now();
                let patch = match rewrite(&out.after, pass, &site, cancel) {
                    Ok(patch) if patch.is_empty() => {
                        out.declined += 1;
                        continue;
                    }
                    Ok(patch) => match spoken::in_the_way(&out.after.model, &patch) {
                        None => patch,
                        Some(condition) => {
                            out.stand_in_the_way(&site, condition);
                            continue;
                        }
                    },
                    Err(Declined::Stale | Declined::NoEffect) => {
                        out.declined += 1;
                        continue;
                    }
                    Err(Declined::Blocked(blocked)) => {
                        out.blocked.push(blocked);
                        continue;
                    }
                    Err(Declined::Failed(message)) => {
                        out.failures.push(Failure { key: Some(key), message });
                        continue;
                    }
                };
                match self.apply(&mut out.after, first + out.steps.len() as u32, &key, patch) {
                    Ok(Applied { patch, inverse, effects, node_change }) => {
                        let around = neighbourhood(&out.after, &patch, &inverse, &effects);
                        out.steps.push(Step {
                            number: first + out.steps.len() as u32,
                            round,
                            pass: name.clone(),
                            key,
                            what: site.what.clone(),
                            patch: Arc::new(patch),
                            inverse: Arc::new(inverse),
                            effects: Arc::new(effects),
                            node_change,
                            seconds: clock.elapsed().as_secs_f64(),
                        });
                        if out.steps.len().is_multiple_of(SNAPSHOT_EVERY) {
                            out.snapshots.push((out.steps.len(), out.after.clone()));
                        }
                        match find(&out.after, pass, graph, Some(&around), cancel) {
                            Ok(more) => out.take(more, &name, &mut queue, &mut pending),
                            Err(failure) => out.failures.push(failure),
                        }
                    }
                    // Nothing is wrong with the pass: the file's own names are in the way.
                    Err(Refusal::Patch(PatchError::Fault(fault @ Fault::Hidden { .. }))) => {
                        out.stand_in_the_way(&site, fault.to_string());
                    }
                    Err(refusal) => {
                        out.failures.push(Failure { key: Some(key), message: refusal.to_string() })
                    }
                }
            }
        }
        out.finish();
        out.seconds = start.elapsed().as_secs_f64();
        out
    }

    fn apply(
        &mut self,
        state: &mut State,
        number: u32,
        key: &SiteKey,
        mut patch: Patch,
    ) -> Result<Applied, Refusal> {
        let occurrence = state.rewrites.get(key).copied().unwrap_or(0);
        self.interner.resolve(key, occurrence, &mut patch);
        // Bodies count as well: only where none goes does the difference follow from the patch alone.
        let simple = patch
            .removed_nodes()
            .iter()
            .all(|n| state.model.get_node(*n).is_none_or(|n| n.bodies().next().is_none()));
        let before = if simple { 0 } else { state.model.node_count() as i64 };
        let (inverse, effects) = state.advance(number, key, &patch)?;
        let change = if simple {
            effects.added.len() as i64 - effects.removed.len() as i64
        } else {
            state.model.node_count() as i64 - before
        };
        Ok(Applied { patch, inverse, effects, node_change: change })
    }
}

/// A patch that was applied.
struct Applied {
    patch: Patch,
    inverse: Patch,
    effects: Effects,
    node_change: i64,
}

impl PassRun {
    fn take(
        &mut self,
        findings: Findings,
        pass: &Arc<str>,
        queue: &mut VecDeque<(SiteKey, Site)>,
        pending: &mut HashSet<SiteKey>,
    ) {
        self.blocked.extend(findings.blocked);
        for site in findings.sites {
            let key = SiteKey::of(&self.after.model, pass, &site);
            let known = self.excluded.iter().any(|e| e.key == key)
                || self.failures.iter().any(|f| f.key.as_ref() == Some(&key));
            if !known && pending.insert(key.clone()) {
                self.found += 1;
                queue.push_back((key, site));
            }
        }
    }

    /// A condition that the pipeline found and not the pass.
    fn stand_in_the_way(&mut self, site: &Site, condition: String) {
        match site.anchor {
            Anchor::Node(anchor) => {
                let condition = condition.into();
                self.blocked.push(Blocked { graph: site.graph, anchor, condition, blame: anchor });
            }
            // A near miss needs a node to be shown at.
            Anchor::Value(_) => self.declined += 1,
        }
    }

    /// Near misses are listed once, and only for nodes that are still there.
    fn finish(&mut self) {
        let mut seen: BTreeSet<(NodeId, Arc<str>)> = BTreeSet::new();
        let model = &self.after.model;
        self.blocked
            .retain(|b| model.get_node(b.anchor).is_some() && seen.insert((b.anchor, b.condition.clone())));
        self.nodes_after = model.node_count();
    }

    /// The same, ended after so many of its steps.
    fn cut(&self, steps: usize) -> PassRun {
        let after = self.state_after(steps);
        PassRun {
            nodes_after: after.model.node_count(),
            after,
            steps: self.steps[..steps].to_vec(),
            snapshots: self.snapshots.iter().filter(|(n, _)| *n <= steps).cloned().collect(),
            endless: false,
            ..self.clone()
        }
    }

    /// State after so many of this pass's steps.
    pub fn state_after(&self, steps: usize) -> State {
        if steps >= self.steps.len() {
            return self.after.clone();
        }
        let nearest = self.snapshots.iter().rev().find(|(n, _)| *n <= steps);
        let Some((from, state)) = nearest else { return self.after.clone() };
        let mut state = state.clone();
        for step in &self.steps[*from..steps] {
            // These very patches were applied to this very state before.
            if state.advance(step.number, &step.key, &step.patch).is_err() {
                break;
            }
        }
        state
    }
}

impl Run {
    /// The state after step `number`; 0 is the model as imported.
    pub fn state_at(&self, number: u32) -> State {
        let mut done = 0usize;
        let wanted = (number as usize).min(self.steps.len());
        if wanted == 0 {
            return self.initial.clone();
        }
        for pass in &self.passes {
            if wanted <= done + pass.steps.len() {
                return pass.state_after(wanted - done);
            }
            done += pass.steps.len();
        }
        self.initial.clone()
    }

    fn unmatched_exclusions(&self, config: &Config) -> Vec<Unmatched> {
        // Failed and excluded sites were found as well.
        let of_pass = |pass: &'_ PassRun| -> Vec<SiteKey> {
            let failed = pass.failures.iter().filter_map(|f| f.key.clone());
            failed.chain(pass.excluded.iter().map(|e| e.key.clone())).collect()
        };
        let apart: Vec<SiteKey> = self.passes.iter().flat_map(|pass| of_pass(pass)).collect();
        let seen = Seen {
            passes: self.passes.iter().map(|pass| &*pass.pass).collect(),
            sites: self.steps.iter().map(|step| &step.key).chain(&apart).collect(),
            blocks: &self.initial.blocks,
            reach: if self.stop == StopReason::StopAt {
                " up to the step at which the run stopped"
            } else {
                ""
            },
        };
        unmatched(config, &seen)
    }

    /// The state at the end.
    pub fn last_state(&self) -> State {
        self.state_at(self.steps.len() as u32)
    }
}

fn advance_history(history: u128, key: &SiteKey) -> u128 {
    let mut h = xxhash_rust::xxh3::Xxh3::new();
    h.update(&history.to_le_bytes());
    h.update(key.to_string().as_bytes());
    h.digest128()
}

fn context<'a>(state: &'a State, cancel: &'a AtomicBool) -> Context<'a> {
    Context { model: &state.model, facts: &state.facts, blocks: &state.blocks, cancel }
}

fn find(
    state: &State,
    pass: &dyn Pass,
    graph: GraphId,
    around: Option<&[NodeId]>,
    cancel: &AtomicBool,
) -> Result<Findings, Failure> {
    let cx = context(state, cancel);
    caught(|| pass.find(&cx, graph, around)).map_err(|message| Failure {
        key: None,
        message: format!("{} failed while looking for sites: {message}", pass.info().name),
    })
}

fn rewrite(state: &State, pass: &dyn Pass, site: &Site, cancel: &AtomicBool) -> Result<Patch, Declined> {
    let cx = context(state, cancel);
    caught(|| pass.rewrite(&cx, site)).unwrap_or_else(|message| Err(Declined::Failed(message)))
}

/// A panic in a pass is that pass's failure, not the program's.
fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic: Box<dyn Any + Send>| {
        let text = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()));
        format!("internal fault: {}", text.unwrap_or_else(|| "no message".into()))
    })
}

fn events(done: &PassRun, round: u32) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    for step in &done.steps {
        events.push(Event::site(
            done,
            round,
            &step.key,
            step.seconds,
            Outcome::Applied { step: step.number, what: step.what.to_string() },
        ));
    }
    for e in &done.excluded {
        events.push(Event::site(done, round, &e.key, 0.0, Outcome::Excluded));
    }
    for b in &done.blocked {
        let scope = done.after.model.node_label(b.anchor);
        let blame = done.after.model.node_label(b.blame);
        let outcome = Outcome::Blocked { condition: b.condition.to_string(), blame };
        events.push(Event::at(done, round, scope, 0.0, outcome));
    }
    for f in &done.failures {
        let scope = f.key.as_ref().map(SiteKey::to_string).unwrap_or_default();
        events.push(Event::at(done, round, scope, 0.0, Outcome::Failed { message: f.message.clone() }));
    }
    events.push(Event::pass(done, round));
    events
}
