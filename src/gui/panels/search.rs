//! The search: a field over the canvas, and the list of what was found, grouped by block.

use egui::{Key, Modifiers, RichText, ScrollArea, Stroke, Ui};

use super::widgets::{cut, row};
use crate::gui::rows::HitRow;
use crate::gui::theme::{Palette, ROW_HEIGHT, size};
use crate::session::query::HELP;

/// What a person asked for in the search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// Look for this.
    Text(String),
    /// Go to the hit at this position.
    Go(usize),
    Next,
    Previous,
    Close,
}

/// What the search box remembers while it is open.
#[derive(Debug, Clone, Default)]
pub struct SearchState {
    pub text: String,
    /// The field wants the focus (it was just opened).
    pub wants_focus: bool,
}

/// What was found.
pub struct Found<'a> {
    pub hits: &'a [HitRow],
    /// All that fit; the first of them are listed.
    pub total: usize,
    /// The hit that was gone to last.
    pub current: Option<usize>,
    /// Why the query cannot be understood.
    pub problem: Option<&'a str>,
}

/// Draws the search box.
pub fn search_ui(ui: &mut Ui, state: &mut SearchState, found: &Found) -> Vec<Ask> {
    let mut asks = Vec::new();
    let (hits, current) = (found.hits, found.current);
    let palette = Palette::of(ui);
    let frame = egui::Frame::new()
        .fill(palette.surface)
        .stroke(Stroke::new(1.0, palette.border))
        .corner_radius(8.0)
        .shadow(ui.visuals().popup_shadow)
        .inner_margin(8.0);
    frame.show(ui, |ui| {
        ui.set_width(ui.available_width());
        let (enter, back, escape) = ui.input_mut(|i| {
            let back = i.consume_key(Modifiers::SHIFT, Key::Enter);
            (i.consume_key(Modifiers::NONE, Key::Enter), back, i.consume_key(Modifiers::NONE, Key::Escape))
        });
        ui.horizontal(|ui| {
            let hint = "op:Conv  /layer[0-3]/  attr:axis=1  params>1M";
            let width = ui.available_width() - 136.0;
            let field =
                ui.add(egui::TextEdit::singleline(&mut state.text).hint_text(hint).desired_width(width));
            field.widget_info(|| egui::WidgetInfo::labeled(egui::WidgetType::TextEdit, true, "Search"));
            if std::mem::take(&mut state.wants_focus) {
                field.request_focus();
            }
            if field.changed() {
                asks.push(Ask::Text(state.text.clone()));
            }
            let help = ui
                .add(egui::Label::new(RichText::new("?").color(palette.accent)).sense(egui::Sense::hover()));
            help.on_hover_ui(help_ui);
            let count = match (found.total, current) {
                (0, _) => String::new(),
                (n, Some(at)) => format!("{} / {}", at + 1, super::count_text(n)),
                (n, None) => super::count_text(n),
            };
            ui.label(RichText::new(count).size(size::SMALL).color(palette.weak));
            if ui.small_button("Close").clicked() {
                asks.push(Ask::Close);
            }
        });
        if enter {
            asks.push(Ask::Next);
        }
        if back {
            asks.push(Ask::Previous);
        }
        if escape {
            asks.push(Ask::Close);
        }
        if let Some(problem) = found.problem {
            ui.label(RichText::new(problem).size(size::SMALL).color(palette.error));
        } else if hits.is_empty() && !state.text.trim().is_empty() {
            ui.label(RichText::new("Nothing found").size(size::SMALL).color(palette.weak));
        }
        if !hits.is_empty() {
            ui.separator();
            ui.spacing_mut().item_spacing.y = 1.0;
            ScrollArea::vertical()
                .max_height(260.0)
                .min_scrolled_height(260.0)
                .auto_shrink([false, true])
                .show_rows(ui, ROW_HEIGHT, hits.len(), |ui, rows| {
                    for i in rows {
                        hit_ui(ui, &hits[i], i, current == Some(i), &mut asks);
                    }
                });
        }
    });
    asks
}

/// What can be searched for.
fn help_ui(ui: &mut Ui) {
    let palette = Palette::of(ui);
    ui.set_max_width(460.0);
    egui::Grid::new("search help").num_columns(2).spacing([14.0, 4.0]).show(ui, |ui| {
        for (example, meaning) in HELP {
            ui.label(RichText::new(*example).monospace());
            ui.label(RichText::new(*meaning).color(palette.weak));
            ui.end_row();
        }
    });
    ui.label(
        RichText::new("Words apart by spaces must all fit; capitals do not matter.").color(palette.weak),
    );
}

fn hit_ui(ui: &mut Ui, hit: &HitRow, index: usize, current: bool, asks: &mut Vec<Ask>) {
    let palette = Palette::of(ui);
    let response = row(ui, &format!("Found {} {}", hit.title, hit.name), current, |ui| {
        ui.label(&hit.title);
        ui.label(RichText::new(super::shortened(&hit.name, 34)).color(palette.weak));
        cut(ui, RichText::new(super::shortened(&hit.block, 34)).size(size::SMALL).color(palette.weak));
    });
    if response.on_hover_text(&hit.name).clicked() {
        asks.push(Ask::Go(index));
    }
}
