//! Left: the passes by stage, with switches, what each one did, its sites and its near misses.

use std::collections::BTreeSet;
use std::sync::Arc;

use egui::{Align, Layout, RichText, ScrollArea, Ui};

use super::widgets::{cut, empty, link, pill, row, seconds_text, section, signed};
use crate::gui::rows::{BlockedRow, PassRow, SiteRow};
use crate::gui::theme::{Palette, size};
use crate::ir::NodeId;
use crate::passes::{Risk, Stage};
use crate::pipeline::SiteKey;

/// A pass shows at most this many sites before a line that says how many more there are.
const MOST_SITES: usize = 200;

/// What a person asked for in this panel.
#[derive(Debug, Clone, PartialEq)]
pub enum Ask {
    SetPass {
        pass: Arc<str>,
        on: bool,
    },
    SetStage {
        stage: Stage,
        on: bool,
    },
    Move {
        pass: Arc<str>,
        up: bool,
    },
    Exclude {
        key: SiteKey,
        on: bool,
    },
    ExcludeBlock {
        pass: Arc<str>,
        block: String,
        on: bool,
    },
    /// Its sites are to be shown.
    Open(Arc<str>),
    /// Show badges of this pass only, or of all.
    Badges(Option<Arc<str>>),
    ShowStep(u32),
    Reveal(NodeId),
}

/// What the panel remembers.
#[derive(Debug, Default)]
pub struct PipelineState {
    filter: String,
    /// Passes whose sites are shown.
    pub open: BTreeSet<Arc<str>>,
    /// The pass whose badges are shown alone.
    pub badges_of: Option<String>,
    /// Passes that did nothing are shown too.
    idle_shown: bool,
}

/// The word for a stage.
pub fn stage_name(stage: Stage) -> &'static str {
    match stage {
        Stage::Eliminate => "Eliminate",
        Stage::Fold => "Fold",
        Stage::Fuse => "Fuse",
        Stage::Layout => "Layout",
        Stage::Clean => "Clean up",
    }
}

/// The word for a risk.
pub fn risk_name(risk: Risk) -> &'static str {
    match risk {
        Risk::Exact => "exact",
        Risk::Rounding => "rounding",
        Risk::Lossy => "lossy",
        Risk::Risky => "risky",
    }
}

fn risk_help(risk: Risk) -> &'static str {
    match risk {
        Risk::Exact => "Results stay equal to the bit",
        Risk::Rounding => "The last bits may differ, because operations happen in another order",
        Risk::Lossy => "Information is lost; how much is stated",
        Risk::Risky => "Right only under conditions that the graph does not show",
    }
}

/// Draws the panel.
pub fn pipeline_ui(
    ui: &mut Ui,
    state: &mut PipelineState,
    passes: &[PassRow],
    step: Option<u32>,
) -> Vec<Ask> {
    let mut asks = Vec::new();
    let palette = Palette::of(ui);
    let total: usize = passes.iter().map(|p| p.rewrites).sum();
    let change: i64 = passes.iter().map(|p| p.node_change).sum();
    let seconds: f64 = passes.iter().map(|p| p.seconds).sum();
    ui.horizontal(|ui| {
        ui.heading("Pipeline");
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            let text = format!("{total} rewrites · {} nodes", signed(change));
            cut(ui, RichText::new(text).size(size::SMALL).color(palette.weak))
                .on_hover_text(format!("All passes together took {}", seconds_text(seconds)));
        });
    });
    ui.add_space(2.0);
    let field =
        egui::TextEdit::singleline(&mut state.filter).hint_text("Filter passes").desired_width(f32::INFINITY);
    ui.add(field);
    let words: Vec<String> = state.filter.split_whitespace().map(str::to_lowercase).collect();
    let fits = |pass: &PassRow| {
        let line = format!("{} {} {}", pass.name, pass.summary, risk_name(pass.risk)).to_lowercase();
        words.iter().all(|word| line.contains(word.as_str()))
    };
    let idle = |pass: &PassRow| {
        pass.on && pass.ran && pass.rewrites + pass.blocked + pass.failed + pass.excluded == 0
    };
    ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
        ui.spacing_mut().item_spacing.y = 2.0;
        let stages: BTreeSet<Stage> = passes.iter().map(|p| p.stage).collect();
        let hidden = passes.iter().filter(|p| fits(p) && idle(p) && !state.open.contains(&p.name)).count();
        let fold = words.is_empty() && !state.idle_shown && hidden > 3;
        for stage in stages {
            let members: Vec<&PassRow> = passes.iter().filter(|p| p.stage == stage && fits(p)).collect();
            if members.is_empty() {
                continue;
            }
            stage_ui(ui, stage, &members, &mut asks);
            for pass in members {
                if !fold || !idle(pass) {
                    pass_ui(ui, state, pass, step, &mut asks);
                }
            }
        }
        if fold {
            ui.add_space(4.0);
            if link(ui, &format!("{hidden} passes did nothing; show them")).clicked() {
                state.idle_shown = true;
            }
        } else if state.idle_shown && hidden > 3 && link(ui, "Hide passes that did nothing").clicked() {
            state.idle_shown = false;
        }
        if passes.is_empty() {
            empty(ui, "No passes", "");
        } else if !passes.iter().any(fits) {
            empty(ui, "No pass fits the filter", "Words are looked for in names and summaries");
        }
    });
    asks
}

fn stage_ui(ui: &mut Ui, stage: Stage, members: &[&PassRow], asks: &mut Vec<Ask>) {
    let on = members.iter().filter(|p| p.on).count();
    ui.horizontal(|ui| {
        section(ui, stage_name(stage));
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            let mut all = on == members.len();
            let mixed = on > 0 && !all;
            let text = RichText::new("all").size(size::SMALL);
            let check = ui.add(egui::Checkbox::new(&mut all, text).indeterminate(mixed));
            let label = format!("All passes of {}", stage_name(stage));
            check.widget_info(|| egui::WidgetInfo::selected(egui::WidgetType::Checkbox, true, all, &label));
            if check.on_hover_text("Switch all passes of this stage").changed() {
                asks.push(Ask::SetStage { stage, on: all });
            }
        });
    });
}

fn pass_ui(ui: &mut Ui, state: &mut PipelineState, pass: &PassRow, step: Option<u32>, asks: &mut Vec<Ask>) {
    let palette = Palette::of(ui);
    let open = state.open.contains(&pass.name);
    let mut toggled = None;
    let badges_alone = state.badges_of.as_deref() == Some(&*pass.name);
    let response = row(ui, &format!("Pass {}", pass.name), open, |ui| {
        ui.spacing_mut().item_spacing.x = 5.0;
        let mut on = pass.on;
        let check = ui.checkbox(&mut on, "");
        let label = format!("Switch {}", pass.name);
        check.widget_info(|| egui::WidgetInfo::selected(egui::WidgetType::Checkbox, true, on, &label));
        if check.changed() {
            toggled = Some(on);
        }
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            ui.spacing_mut().item_spacing.x = 5.0;
            state_ui(ui, pass, badges_alone);
            ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                let colour = if pass.on { palette.text } else { palette.weak };
                cut(ui, RichText::new(&*pass.name).color(colour));
            });
        });
    });
    if let Some(on) = toggled {
        asks.push(Ask::SetPass { pass: pass.name.clone(), on });
    } else if response.clicked() {
        if open {
            state.open.remove(&pass.name);
        } else {
            state.open.insert(pass.name.clone());
            asks.push(Ask::Open(pass.name.clone()));
        }
    }
    response.on_hover_text(&*pass.summary).context_menu(|ui| {
        for (text, up, may) in [("Move up", true, &pass.up), ("Move down", false, &pass.down)] {
            let button = ui.add_enabled(may.is_ok(), egui::Button::new(text));
            let button = match may {
                Ok(()) => button,
                Err(why) => button.on_disabled_hover_text(why),
            };
            if button.clicked() {
                asks.push(Ask::Move { pass: pass.name.clone(), up });
                ui.close();
            }
        }
        let text = if badges_alone { "Show badges of all passes" } else { "Show only badges of this pass" };
        if ui.button(text).clicked() {
            asks.push(Ask::Badges((!badges_alone).then(|| pass.name.clone())));
            ui.close();
        }
    });
    if open {
        ui.indent(("pass", &pass.name), |ui| details_ui(ui, pass, step, asks));
    }
}

/// What a pass did, at the right end of its row.
fn state_ui(ui: &mut Ui, pass: &PassRow, badges_alone: bool) {
    let palette = Palette::of(ui);
    if badges_alone {
        pill(ui, "only", palette.accent).on_hover_text("Only badges of this pass are shown on the canvas");
    }
    if pass.failed > 0 {
        pill(ui, "failed", palette.error).on_hover_text(pass.failures.join("\n"));
    } else if pass.rewrites > 0 {
        let text = if pass.node_change == 0 {
            pass.rewrites.to_string()
        } else {
            format!("{} · {}", pass.rewrites, signed(pass.node_change))
        };
        pill(ui, &text, palette.badge).on_hover_text(format!(
            "{} rewrites, {} nodes, {}",
            pass.rewrites,
            signed(pass.node_change),
            seconds_text(pass.seconds)
        ));
    } else if !pass.on {
        let text =
            if pass.sites.is_empty() { "off".to_owned() } else { format!("off · {}", pass.sites.len()) };
        ui.label(RichText::new(text).size(size::SMALL).color(palette.weak));
    } else if pass.ran {
        ui.label(RichText::new("–").color(palette.weak)).on_hover_text("Found nothing to rewrite");
    }
    if pass.blocked > 0 {
        pill(ui, &format!("{} near", pass.blocked), palette.warning)
            .on_hover_text("Places where everything fitted but one condition");
    }
    if pass.risk != Risk::Exact {
        let colour = if pass.risk == Risk::Rounding { palette.weak } else { palette.error };
        let sign = if pass.risk == Risk::Rounding { "≈" } else { "!" };
        let help = format!("{}: {}", risk_name(pass.risk), risk_help(pass.risk));
        pill(ui, sign, colour).on_hover_text(help);
    }
}

fn details_ui(ui: &mut Ui, pass: &PassRow, step: Option<u32>, asks: &mut Vec<Ask>) {
    let palette = Palette::of(ui);
    ui.label(RichText::new(&*pass.summary).color(palette.weak).size(size::SMALL));
    for failure in &pass.failures {
        ui.label(RichText::new(failure).color(palette.error).size(size::SMALL));
    }
    for site in pass.sites.iter().take(MOST_SITES) {
        site_ui(ui, &pass.name, site, step, asks);
    }
    if pass.sites.len() > MOST_SITES {
        ui.weak(format!("and {} more", pass.sites.len() - MOST_SITES));
    }
    if pass.sites.is_empty() && pass.near.is_empty() {
        ui.weak("No place in this model fits");
    }
    if !pass.near.is_empty() {
        section(ui, "Near misses");
        for blocked in pass.near.iter().take(MOST_SITES) {
            blocked_ui(ui, blocked, asks);
        }
    }
    ui.add_space(4.0);
}

fn site_ui(ui: &mut Ui, pass: &Arc<str>, site: &SiteRow, step: Option<u32>, asks: &mut Vec<Ask>) {
    let palette = Palette::of(ui);
    let current = site.step.is_some() && site.step == step;
    let mut toggled = None;
    let response = row(ui, &format!("Site {}", site.key), current, |ui| {
        let mut on = !site.excluded;
        let check = ui.checkbox(&mut on, "");
        let label = format!("Apply {}", site.key);
        check.widget_info(|| egui::WidgetInfo::selected(egui::WidgetType::Checkbox, true, on, &label));
        if check.changed() {
            toggled = Some(on);
        }
        if let Some(step) = site.step {
            ui.label(RichText::new(format!("{step}")).size(size::SMALL).color(palette.badge).monospace());
        }
        cut(ui, RichText::new(format!("{}  {}", site.what, site.name)).size(size::SMALL + 0.5));
    });
    if let Some(on) = toggled {
        asks.push(Ask::Exclude { key: site.key.clone(), on: !on });
    } else if response.clicked() {
        match (site.step, site.node) {
            (Some(step), _) => asks.push(Ask::ShowStep(step)),
            (None, Some(node)) => asks.push(Ask::Reveal(node)),
            (None, None) => {}
        }
    }
    response.on_hover_text(site.key.to_string()).context_menu(|ui| {
        let text = format!("Leave {} alone", if site.block.is_empty() { "this block" } else { &site.block });
        if ui.add_enabled(!site.block.is_empty(), egui::Button::new(text)).clicked() {
            asks.push(Ask::ExcludeBlock { pass: pass.clone(), block: site.block.clone(), on: true });
            ui.close();
        }
    });
}

fn blocked_ui(ui: &mut Ui, blocked: &BlockedRow, asks: &mut Vec<Ask>) {
    let palette = Palette::of(ui);
    ui.horizontal_wrapped(|ui| {
        ui.spacing_mut().item_spacing.x = 4.0;
        if let Some(node) = blocked.node
            && link(ui, &super::shortened(&blocked.name, 28)).on_hover_text(&blocked.name).clicked()
        {
            asks.push(Ask::Reveal(node));
        }
        ui.label(RichText::new(&*blocked.condition).size(size::SMALL).color(palette.weak));
        if blocked.node != Some(blocked.blame)
            && link(ui, &super::shortened(&blocked.blame_name, 28))
                .on_hover_text("The node to blame")
                .clicked()
        {
            asks.push(Ask::Reveal(blocked.blame));
        }
    });
}
