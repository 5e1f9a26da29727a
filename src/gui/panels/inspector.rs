//! Right: all that is known of what is chosen, always in the same order.

use egui::{Align, Layout, RichText, ScrollArea, Sense, Ui, vec2};

use super::widgets::{cut, empty, link, row, section};
use crate::gui::rows::{Fact, Facts};
use crate::gui::theme::{Palette, size};
use crate::ir::{NodeId, ValueId};

/// What a person asked for in this panel.
#[derive(Debug, Clone, PartialEq)]
pub enum Ask {
    Reveal(NodeId),
    /// Go to where a value comes from.
    Producer(ValueId),
    /// Go to the next of these.
    OneOf(Vec<NodeId>),
    ShowStep(u32),
    Copy(String),
}

/// Draws the panel.
pub fn inspector_ui(ui: &mut Ui, facts: &Facts) -> Vec<Ask> {
    let mut asks = Vec::new();
    if facts.title.is_empty() {
        empty(ui, "Nothing is chosen", "Click a node or a block");
        return asks;
    }
    let palette = Palette::of(ui);
    ui.horizontal(|ui| {
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            if ui.small_button("Copy").on_hover_text("Copy the name").clicked() {
                let name = if facts.subtitle.is_empty() { &facts.title } else { &facts.subtitle };
                asks.push(Ask::Copy(name.clone()));
            }
            ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                cut(ui, RichText::new(&facts.title).heading());
            });
        });
    });
    if !facts.subtitle.is_empty() {
        cut(ui, RichText::new(super::shortened(&facts.subtitle, 60)).color(palette.weak))
            .on_hover_text(&facts.subtitle);
    }
    ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
        ui.spacing_mut().item_spacing.y = 3.0;
        for fact in &facts.rows {
            fact_ui(ui, fact, &mut asks);
        }
        ui.add_space(12.0);
    });
    asks
}

fn fact_ui(ui: &mut Ui, fact: &Fact, asks: &mut Vec<Ask>) {
    let palette = Palette::of(ui);
    match fact {
        Fact::Section(name) => section(ui, name),
        Fact::Pair { name, value, default } => {
            let value_colour = if *default { palette.weak } else { palette.text };
            ui.horizontal(|ui| {
                let width = (ui.available_width() * 0.38).max(60.0);
                let left = egui::Label::new(RichText::new(name).color(palette.weak)).truncate();
                ui.allocate_ui_with_layout(vec2(width, 18.0), Layout::left_to_right(Align::Center), |ui| {
                    ui.set_min_width(width);
                    ui.add(left);
                });
                let text = if *default { format!("{value}  default") } else { value.clone() };
                let shown = super::shortened(&text, 120);
                let label =
                    egui::Label::new(RichText::new(shown).color(value_colour)).wrap().sense(Sense::click());
                if ui.add(label).on_hover_text("Click to copy").clicked() {
                    asks.push(Ask::Copy(value.clone()));
                }
            });
        }
        Fact::Port { role, name, ty, value, constant, peers } => {
            let response = row(ui, &format!("{role} {name}"), false, |ui| {
                ui.label(RichText::new(role).size(size::SMALL).color(palette.weak));
                let room = ui.available_width();
                ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                    ui.scope(|ui| {
                        ui.set_max_width(room * 0.56);
                        cut(ui, RichText::new(ty).size(size::SMALL).color(palette.weak));
                    });
                    ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                        let colour = if *constant { palette.text } else { palette.accent };
                        cut(ui, RichText::new(super::shortened(name, 40)).color(colour));
                    });
                });
            });
            let goes = match peers.len() {
                0 => String::new(),
                1 => "\nClick to go there".to_owned(),
                n => format!("\nClick to walk through {n} nodes"),
            };
            if response.on_hover_text(format!("{name}: {ty}{goes}")).clicked() {
                asks.push(if peers.is_empty() { Ask::Producer(*value) } else { Ask::OneOf(peers.clone()) });
            }
        }
        Fact::Node { text, node } => {
            if link(ui, text).clicked() {
                asks.push(Ask::Reveal(*node));
            }
        }
        Fact::Step { number, text } => {
            let response = row(ui, &format!("Step {number}"), false, |ui| {
                ui.label(RichText::new(number.to_string()).monospace().color(palette.badge));
                cut(ui, text.as_str());
            });
            if response.on_hover_text("Show this rewrite").clicked() {
                asks.push(Ask::ShowStep(*number));
            }
        }
        Fact::WhyNot { pass, condition, blame, blame_name } => {
            ui.label(RichText::new(&**pass).color(palette.warning));
            ui.horizontal_wrapped(|ui| {
                ui.label(RichText::new(condition).size(size::SMALL).color(palette.weak));
                if link(ui, &super::shortened(blame_name, 40)).on_hover_text("The node to blame").clicked() {
                    asks.push(Ask::Reveal(*blame));
                }
            });
        }
        Fact::Text(text) => {
            ui.add(egui::Label::new(RichText::new(text).color(palette.text)).wrap().selectable(true));
        }
        Fact::Histogram { low, high, counts } => histogram_ui(ui, *low, *high, counts),
    }
}

fn histogram_ui(ui: &mut Ui, low: f64, high: f64, counts: &[u32]) {
    let palette = Palette::of(ui);
    let most = counts.iter().copied().max().unwrap_or(0).max(1) as f32;
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), 46.0), Sense::hover());
    ui.painter().rect_filled(rect, 4.0, palette.sunken);
    let width = rect.width() / counts.len().max(1) as f32;
    for (i, &count) in counts.iter().enumerate() {
        let height = (count as f32 / most) * (rect.height() - 4.0);
        let left = rect.min.x + i as f32 * width;
        let bar = egui::Rect::from_min_max(
            egui::pos2(left + 0.5, rect.max.y - 2.0 - height),
            egui::pos2(left + width - 0.5, rect.max.y - 2.0),
        );
        if count > 0 {
            ui.painter().rect_filled(bar, 1.0, palette.accent);
        }
    }
    response.on_hover_text(format!(
        "{} values from {low:.4} to {high:.4}",
        counts.iter().map(|&c| u64::from(c)).sum::<u64>()
    ));
    ui.horizontal(|ui| {
        ui.label(RichText::new(format!("{low:.3}")).size(size::SMALL).color(palette.weak));
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            ui.label(RichText::new(format!("{high:.3}")).size(size::SMALL).color(palette.weak));
        });
    });
}
