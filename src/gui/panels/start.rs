//! The start page: open, recent files, samples, and a place to drop a file.

use std::path::{Path, PathBuf};

use egui::{Align, Layout, RichText, ScrollArea, Sense, Stroke, StrokeKind, Ui, vec2};

use super::widgets::{cut, primary, row, section};
use crate::gui::theme::{GAP, Palette, size};
use crate::gui::verbs::Verb;

/// What a person asked for on the start page.
#[derive(Debug, Clone, PartialEq)]
pub enum Ask {
    Verb(Verb),
    OpenFile(PathBuf),
    OpenSample(String),
}

/// A recent file and what is known of it without opening it.
#[derive(Debug, Clone, PartialEq)]
pub struct Recent {
    pub path: PathBuf,
    /// Size in bytes; `None` when the file is gone.
    pub bytes: Option<u64>,
}

impl Recent {
    /// Looks a file up.
    pub fn look(path: &Path) -> Recent {
        Recent { path: path.to_path_buf(), bytes: std::fs::metadata(path).ok().map(|facts| facts.len()) }
    }
}

/// A sample: name, title and one line.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleRow {
    pub name: String,
    pub title: String,
    pub summary: String,
}

/// Draws the page.
pub fn start_ui(ui: &mut Ui, samples: &[SampleRow], recent: &[Recent], dragging: bool) -> Vec<Ask> {
    let mut asks = Vec::new();
    let palette = Palette::of(ui);
    let full = ui.available_rect_before_wrap();
    ui.painter().rect_filled(full, 0.0, palette.canvas);
    let width = (full.width() - 48.0).clamp(240.0, 720.0);
    ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
        let side = ((full.width() - width) / 2.0).max(0.0);
        egui::Frame::new()
            .outer_margin(egui::Margin { left: side as i8, ..egui::Margin::ZERO })
            .show(ui, |_| {});
        ui.horizontal(|ui| {
            ui.add_space(side);
            ui.vertical(|ui| {
                ui.set_width(width);
                ui.add_space((full.height() * 0.09).clamp(16.0, 90.0));
                ui.label(RichText::new("passlens").size(size::TITLE).color(palette.text));
                ui.label(
                    RichText::new("Open a model, see its structure, switch passes and see what each one did")
                        .color(palette.weak),
                );
                ui.add_space(GAP * 2.0);
                drop_ui(ui, dragging, &mut asks);
                ui.add_space(GAP * 1.5);
                if width > 560.0 {
                    ui.horizontal_top(|ui| {
                        let half = (width - 28.0) / 2.0;
                        ui.spacing_mut().item_spacing.x = 28.0;
                        ui.vertical(|ui| {
                            ui.set_width(half);
                            samples_ui(ui, samples, &mut asks);
                        });
                        ui.vertical(|ui| {
                            ui.set_width(half);
                            recent_ui(ui, recent, &mut asks);
                        });
                    });
                } else {
                    samples_ui(ui, samples, &mut asks);
                    recent_ui(ui, recent, &mut asks);
                }
                ui.add_space(GAP * 2.0);
            });
        });
    });
    asks
}

fn drop_ui(ui: &mut Ui, dragging: bool, asks: &mut Vec<Ask>) {
    let palette = Palette::of(ui);
    let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), 118.0), Sense::hover());
    let (fill, line) =
        if dragging { (palette.selection, palette.accent) } else { (palette.surface, palette.outline) };
    ui.painter().rect(rect, 10.0, fill, Stroke::NONE, StrokeKind::Inside);
    let ring = [rect.left_top(), rect.right_top(), rect.right_bottom(), rect.left_bottom(), rect.left_top()];
    ui.painter().extend(egui::Shape::dashed_line(&ring, Stroke::new(1.2, line), 6.0, 5.0));
    let inner = egui::Rect::from_center_size(rect.center(), vec2(rect.width() - 32.0, 62.0));
    let mut child =
        ui.new_child(egui::UiBuilder::new().max_rect(inner).layout(Layout::top_down(Align::Center)));
    let text = if dragging { "Drop to open" } else { "Drop a model here: .onnx, .json or the text form" };
    child.label(RichText::new(text).color(palette.weak));
    child.add_space(6.0);
    child.allocate_ui_with_layout(vec2(250.0, 30.0), Layout::left_to_right(Align::Center), |ui| {
        ui.spacing_mut().button_padding = vec2(16.0, 6.0);
        ui.add_space(14.0);
        if primary(ui, Verb::Open.text()).clicked() {
            asks.push(Ask::Verb(Verb::Open));
        }
        if ui.button("All commands").on_hover_text(Verb::Palette.key_text(ui.ctx())).clicked() {
            asks.push(Ask::Verb(Verb::Palette));
        }
    });
}

fn samples_ui(ui: &mut Ui, samples: &[SampleRow], asks: &mut Vec<Ask>) {
    let palette = Palette::of(ui);
    section(ui, "Samples");
    for sample in samples {
        let frame = egui::Frame::new()
            .fill(palette.surface)
            .stroke(Stroke::new(1.0, palette.border))
            .corner_radius(8.0)
            .inner_margin(10.0);
        let response = frame
            .show(ui, |ui| {
                ui.set_width(ui.available_width());
                ui.label(RichText::new(&sample.title).color(palette.text).size(size::BODY + 1.0));
                ui.add(
                    egui::Label::new(RichText::new(&sample.summary).color(palette.weak).size(size::SMALL))
                        .wrap(),
                );
            })
            .response;
        let response = ui.interact(response.rect, ui.id().with(&sample.name), Sense::click());
        response.widget_info(|| {
            egui::WidgetInfo::labeled(egui::WidgetType::Button, true, format!("Sample {}", sample.title))
        });
        if response.hovered() || response.has_focus() {
            ui.painter().rect_stroke(
                response.rect,
                8.0,
                Stroke::new(1.4, palette.accent),
                StrokeKind::Inside,
            );
        }
        if response.on_hover_cursor(egui::CursorIcon::PointingHand).clicked() {
            asks.push(Ask::OpenSample(sample.name.clone()));
        }
        ui.add_space(3.0);
    }
}

fn recent_ui(ui: &mut Ui, recent: &[Recent], asks: &mut Vec<Ask>) {
    let palette = Palette::of(ui);
    section(ui, "Recent");
    if recent.is_empty() {
        ui.weak("Models that you open are listed here");
    }
    for file in recent {
        let name = file.path.file_name().unwrap_or(file.path.as_os_str()).to_string_lossy().into_owned();
        let there = file.bytes.is_some();
        let response = row(ui, &format!("Recent {name}"), false, |ui| {
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                let right = file.bytes.map_or_else(|| "gone".to_owned(), super::bytes_text);
                ui.label(RichText::new(right).size(size::SMALL).color(palette.weak));
                ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                    let colour = if there { palette.text } else { palette.weak };
                    cut(ui, RichText::new(super::shortened(&name, 44)).color(colour));
                });
            });
        });
        if response.on_hover_text(file.path.display().to_string()).clicked() && there {
            asks.push(Ask::OpenFile(file.path.clone()));
        }
    }
}
