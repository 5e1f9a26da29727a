//! Makes the sheet from the session. Long lists come from the session as they are: they were made in the background.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::panels::start::{Recent, SampleRow};
use super::rows::{BlockedRow, Compared, Crumb, Facts, HitRow, JobRow, PassRow, ProblemRow, SiteRow};
use super::sheet::{Sheet, View};
use super::{inspect, lit, shell};
use crate::blocks::BlockId;
use crate::formats::Severity;
use crate::ir::{GraphKind, NodeId};
use crate::pipeline::State;
use crate::scene::{Item, Picture, Place};
use crate::session::{Comparison, Document, Session, Shown, SiteState, ViewMode};

/// What is said of a block, and the state that it is said of.
struct OfBlock {
    state: Arc<State>,
    block: BlockId,
    facts: Facts,
}

/// What is kept from one sheet to the next.
#[derive(Default)]
pub struct Gatherer {
    /// Of the chosen block: its nodes, which may be most of the model, are counted once.
    block: Option<OfBlock>,
    samples: Arc<[SampleRow]>,
    /// Looked up once per list of paths.
    recent: Vec<Recent>,
}

impl Gatherer {
    /// The sheet of a session as it is now. `open_passes` are those whose sites are shown.
    pub fn gather(
        &mut self,
        session: &Session,
        open_passes: &BTreeSet<Arc<str>>,
        recent: &[std::path::PathBuf],
    ) -> Sheet {
        let mut sheet = Sheet {
            wanted: view_of(session.view()),
            cards: session.cards().iter().map(|c| (c.id, format!("{}\n{}", c.title, c.text))).collect(),
            notice: session.notice().unwrap_or_default().to_owned(),
            jobs: jobs(session),
            ..Sheet::default()
        };
        let Some(document) = session.document() else {
            self.block = None;
            sheet.samples = self.samples();
            sheet.recent = self.recent(recent);
            return sheet;
        };
        sheet.samples = self.samples();
        sheet.name = Some(document.name.clone());
        sheet.nodes_before = document.nodes;
        sheet.nodes_after = sheet.nodes_before;
        sheet.verified = "not verified".to_owned();
        sheet.badges_of = session.badges_of().map(str::to_owned);
        sheet.aggressive = document.config().aggressive;
        sheet.undo = document.undo_name().map(str::to_owned);
        sheet.redo = document.redo_name().map(str::to_owned);
        (sheet.can_back, sheet.can_forward) = (session.can_go_back(), session.can_go_forward());
        sheet.passes = passes(session, document, open_passes);
        sheet.log = document.log_rows().clone();
        match session.comparison() {
            // The steps are the pipeline's: they do not lead from the one file to the other.
            Some(comparison) => {
                sheet.compared = Some(compared(comparison));
                sheet.problems = problems(document, &comparison.problems);
            }
            None => {
                sheet.steps = document.step_rows().clone();
                sheet.step = session.step();
                sheet.problems = problems(document, &[]);
            }
        }
        sheet.waiting = session.is_waiting() || document.is_stale();
        sheet.chosen = session.selected().cloned();
        sheet.anchor = session.anchor().cloned();
        sheet.hit = session.hit();
        sheet.hits_total = session.hits().total;
        sheet.search_problem = session.hits().problem.clone();
        sheet.hits = session.hits().list.iter().map(hit).collect();
        if let Some(shown) = session.shown() {
            self.pictures(&mut sheet, document, shown);
            sheet.nodes_after = shown.nodes;
            sheet.changes = shown.changes.clone();
            sheet.change = match &sheet.chosen {
                Some(Place { item: Item::Node(node), .. }) => {
                    sheet.changes.iter().position(|c| c.node == *node)
                }
                _ => None,
            };
            sheet.crumbs = crumbs(document, shown, sheet.chosen.as_ref());
            sheet.facts = self.facts(session, document, shown);
        }
        sheet
    }

    fn facts(&mut self, session: &Session, document: &Document, shown: &Shown) -> Facts {
        let Some(Place { item: Item::Block(block), .. }) = session.selected() else {
            return inspect::facts(session, document, shown);
        };
        if let Some(kept) = &self.block
            && kept.block == *block
            && Arc::ptr_eq(&kept.state, &shown.state)
        {
            return kept.facts.clone();
        }
        let facts = inspect::facts(session, document, shown);
        self.block = Some(OfBlock { state: shown.state.clone(), block: *block, facts: facts.clone() });
        facts
    }

    fn samples(&mut self) -> Arc<[SampleRow]> {
        if self.samples.is_empty() {
            let row = |s: &crate::samples::Sample| SampleRow {
                name: s.name.to_string(),
                title: s.title.to_string(),
                summary: s.summary.to_string(),
            };
            self.samples = crate::samples::all().iter().map(row).collect();
        }
        self.samples.clone()
    }

    fn recent(&mut self, recent: &[std::path::PathBuf]) -> Vec<Recent> {
        if !self.recent.iter().map(|row| &row.path).eq(recent) {
            self.recent = recent.iter().map(|path| Recent::look(path)).collect();
        }
        self.recent.clone()
    }

    fn pictures(&self, sheet: &mut Sheet, document: &Document, shown: &Shown) {
        sheet.view = view_of(shown.view);
        let empty = Arc::<Picture>::default;
        let before = || shown.before.clone().unwrap_or_else(empty);
        let after = || shown.after.clone().unwrap_or_else(empty);
        match sheet.view {
            View::Before => sheet.picture = before(),
            View::After | View::Difference => sheet.picture = after(),
            View::Both => (sheet.picture, sheet.second) = (before(), after()),
        }
        sheet.families = shell::families_of(&sheet.picture);
        if let Some(place) = &sheet.chosen {
            let state = state_with(document, shown, place);
            sheet.lit = lit::lit(&sheet.picture, state, place);
            sheet.second_lit = lit::lit(&sheet.second, state, place);
        }
    }
}

fn view_of(view: ViewMode) -> View {
    match view {
        ViewMode::Before => View::Before,
        ViewMode::After => View::After,
        ViewMode::SideBySide => View::Both,
        ViewMode::Difference => View::Difference,
    }
}

fn jobs(session: &Session) -> Vec<JobRow> {
    let row = |job: crate::session::JobStatus| JobRow {
        what: if job.progress.is_empty() { job.label } else { format!("{}: {}", job.label, job.progress) },
        seconds: job.elapsed.as_secs_f64(),
    };
    session.jobs().into_iter().map(row).collect()
}

fn passes(session: &Session, document: &Document, open: &BTreeSet<Arc<str>>) -> Vec<PassRow> {
    let row = |row: crate::session::PassRow| {
        let outcome = row.outcome.clone().unwrap_or_default();
        let mut pass = PassRow {
            name: row.name.into(),
            stage: row.stage,
            summary: row.summary.into(),
            risk: row.risk,
            on: row.on,
            up: row.can_move_up,
            down: row.can_move_down,
            ran: row.outcome.is_some(),
            sites: Vec::new(),
            near: Vec::new(),
            failures: Vec::new(),
            rewrites: outcome.applied,
            blocked: outcome.blocked,
            excluded: outcome.excluded,
            failed: outcome.failed,
            node_change: outcome.node_change,
            seconds: outcome.seconds,
        };
        if open.contains(&pass.name) || outcome.failed > 0 {
            sites(document, session, &mut pass);
        }
        pass
    };
    document.pass_rows(session.registry()).into_iter().map(row).collect()
}

fn sites(document: &Document, session: &Session, pass: &mut PassRow) {
    let label = |node: NodeId| {
        let shown = session.shown().map(|s| &s.state.model).filter(|m| m.get_node(node).is_some());
        shown.unwrap_or(&document.initial.model).node_label(node)
    };
    for site in document.site_rows(&pass.name) {
        let name = site.node.map(label);
        match site.state {
            SiteState::Blocked { condition, blame } => pass.near.push(BlockedRow {
                node: site.node,
                name: site.what,
                condition: condition.into(),
                blame,
                blame_name: label(blame),
            }),
            SiteState::Failed(message) => pass.failures.push(format!("{}: {message}", site.what)),
            SiteState::Applied(_) | SiteState::Excluded | SiteState::Found => {
                let Some(key) = site.key else { continue };
                let step = match site.state {
                    SiteState::Applied(step) if session.comparison().is_none() => Some(step),
                    _ => None,
                };
                pass.sites.push(SiteRow {
                    name: name.unwrap_or_else(|| key.anchor.to_string()),
                    what: site.what.into(),
                    node: site.node,
                    step,
                    excluded: site.state == SiteState::Excluded,
                    block: site.block,
                    key,
                });
            }
        }
    }
}

fn compared(comparison: &Comparison) -> Compared {
    Compared {
        name: comparison.name.clone(),
        path: comparison.path.display().to_string(),
        summary: comparison.summary(),
        model: comparison.diff.model.clone(),
    }
}

/// Problems of the document, then those of a file that it is compared with.
fn problems(document: &Document, others: &[crate::session::ProblemRow]) -> Vec<ProblemRow> {
    let model = &document.initial.model;
    let row = |p: &crate::session::ProblemRow| {
        let of_value = |v| {
            let made = model.get_value(v)?.node().map(|(node, _)| node);
            made.or_else(|| model.readers(v).into_iter().next())
        };
        ProblemRow {
            severe: p.severity == Severity::Error,
            text: p.text.clone(),
            node: p.node.or_else(|| p.value.and_then(of_value)),
        }
    };
    document.problems.iter().chain(others).map(row).collect()
}

fn hit(hit: &crate::session::Hit) -> HitRow {
    HitRow { title: hit.operator.clone(), name: hit.label.clone(), block: hit.block.clone() }
}

/// What encloses a place, outermost first, the place itself last.
pub fn chain(state: &State, place: &Place) -> Vec<Place> {
    let (model, blocks) = (&state.model, &state.blocks);
    let mut chain = vec![place.clone()];
    let mut calls = place.calls.clone();
    let mut at = match place.item {
        Item::Node(n) => model.get_node(n).map(|node| (node.graph, blocks.block_of(n))),
        Item::Block(b) => blocks.get(b).map(|block| (block.graph, block.parent)),
        Item::Input(v) | Item::Output(_, v) => model.get_value(v).map(|value| (value.graph, None)),
    };
    // Bodies nest no deeper than the reader of files allows; calls come back to the main graph.
    while let Some((graph, block)) = at {
        for b in block.into_iter().flat_map(|b| blocks.ancestors(b)) {
            if blocks.get(b).is_some_and(|b| b.parent.is_some()) {
                chain.push(Place { calls: calls.clone(), item: Item::Block(b) });
            }
        }
        let outer = match model.get_graph(graph).map(|g| &g.kind) {
            Some(GraphKind::Body { owner, .. }) => Some(*owner),
            Some(GraphKind::Function(_)) => calls.pop(),
            _ => None,
        };
        at = outer.and_then(|owner| {
            chain.push(Place { calls: calls.clone(), item: Item::Node(owner) });
            Some((model.get_node(owner)?.graph, blocks.block_of(owner)))
        });
    }
    chain.reverse();
    chain
}

/// The state that has a place: the one that is shown, or the one before for a thing that was removed.
pub fn state_with<'a>(document: &'a Document, shown: &'a Shown, place: &Place) -> &'a State {
    match place.item {
        Item::Node(n) if shown.state.model.get_node(n).is_none() => &document.initial,
        _ => &shown.state,
    }
}

fn crumbs(document: &Document, shown: &Shown, chosen: Option<&Place>) -> Vec<Crumb> {
    let mut crumbs = vec![Crumb { text: document.name.clone(), place: None }];
    if let Some(place) = chosen {
        let state = state_with(document, shown, place);
        for place in chain(state, place) {
            crumbs.push(Crumb { text: place_name(state, &place), place: Some(place) });
        }
    }
    crumbs
}

/// A short name of a place.
pub fn place_name(state: &State, place: &Place) -> String {
    match place.item {
        Item::Node(n) => {
            let operator = state.model.get_node(n).map_or("", |node| &node.op_type);
            let name = state.model.node_label(n);
            let last = name.rsplit('/').next().unwrap_or_default();
            if last.contains(operator) { last.to_owned() } else { format!("{operator} {last}") }
        }
        Item::Block(b) => state.blocks.get(b).map_or_else(String::new, |block| block.name.to_string()),
        Item::Input(v) | Item::Output(_, v) => {
            state.model.get_value(v).map_or_else(String::new, |value| value.name.to_string())
        }
    }
}
