//! Small parts that several panels are made of.

use egui::{Align, Color32, Label, Layout, Response, RichText, Sense, Stroke, Ui, Vec2, vec2};

use crate::gui::theme::{Palette, ROW_HEIGHT, size};
use crate::scene::Mark;
use crate::scene::palette::{mark_name, mark_sign};

/// A heading inside a panel.
pub fn section(ui: &mut Ui, text: &str) {
    let palette = Palette::of(ui);
    ui.add_space(6.0);
    ui.label(RichText::new(text.to_uppercase()).size(10.5).color(palette.weak).extra_letter_spacing(0.6));
    ui.add_space(1.0);
}

/// A small label with a tinted ground.
pub fn pill(ui: &mut Ui, text: &str, colour: Color32) -> Response {
    let ground = colour.gamma_multiply(if ui.visuals().dark_mode { 0.18 } else { 0.11 });
    let frame =
        egui::Frame::new().fill(ground).corner_radius(7.0).inner_margin(egui::Margin::symmetric(6, 1));
    frame.show(ui, |ui| ui.label(RichText::new(text).size(10.5).color(colour))).response
}

/// The sign of a difference in its colour, the word for screen readers and the pointer.
pub fn mark(ui: &mut Ui, mark: Mark) -> Response {
    let colour = Palette::of(ui).mark(mark);
    let (rect, response) = ui.allocate_exact_size(Vec2::splat(16.0), Sense::hover());
    ui.painter().circle_filled(rect.center(), 7.5, colour);
    let font = egui::FontId::monospace(12.0);
    let ground = Palette::of(ui).surface;
    ui.painter().text(rect.center(), egui::Align2::CENTER_CENTER, mark_sign(mark), font, ground);
    response.widget_info(|| egui::WidgetInfo::labeled(egui::WidgetType::Label, true, mark_name(mark)));
    response.on_hover_text(mark_name(mark))
}

/// Text that can be clicked, cut at the end where there is no room, whole under the pointer.
pub fn link(ui: &mut Ui, text: &str) -> Response {
    let colour = Palette::of(ui).accent;
    let label = Label::new(RichText::new(text).color(colour)).truncate().sense(Sense::click());
    ui.add(label).on_hover_cursor(egui::CursorIcon::PointingHand)
}

/// Text cut at the end, whole under the pointer.
pub fn cut(ui: &mut Ui, text: impl Into<egui::WidgetText>) -> Response {
    ui.add(Label::new(text).truncate())
}

/// A row over the whole width that can be clicked; `content` is drawn into it. Its label is what screen readers and tests
/// find it by.
pub fn row(ui: &mut Ui, label: &str, chosen: bool, content: impl FnOnce(&mut Ui)) -> Response {
    let palette = Palette::of(ui);
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), ROW_HEIGHT), Sense::click());
    response.widget_info(|| egui::WidgetInfo::selected(egui::WidgetType::Button, true, chosen, label));
    if ui.is_rect_visible(rect) {
        let fill = if chosen {
            palette.selection
        } else if response.hovered() {
            palette.hover
        } else {
            Color32::TRANSPARENT
        };
        ui.painter().rect_filled(rect, 5.0, fill);
        if response.has_focus() {
            let stroke = Stroke::new(1.0, palette.accent);
            ui.painter().rect_stroke(rect, 5.0, stroke, egui::StrokeKind::Inside);
        }
        let inner = rect.shrink2(vec2(6.0, 0.0));
        let layout = Layout::left_to_right(Align::Center);
        let mut child = ui.new_child(egui::UiBuilder::new().max_rect(inner).layout(layout));
        child.set_clip_rect(inner.intersect(ui.clip_rect()));
        content(&mut child);
    }
    response
}

/// What stands in a panel that has nothing to show: why, and what to do.
pub fn empty(ui: &mut Ui, why: &str, hint: &str) {
    ui.add_space(14.0);
    ui.vertical_centered(|ui| {
        ui.label(RichText::new(why).color(Palette::of(ui).weak));
        if !hint.is_empty() {
            ui.label(RichText::new(hint).color(Palette::of(ui).weak).size(size::SMALL));
        }
    });
}

/// The one button of a place that matters most.
pub fn primary(ui: &mut Ui, text: &str) -> Response {
    let palette = Palette::of(ui);
    let text = RichText::new(text).color(palette.on_accent);
    ui.add(egui::Button::new(text).fill(palette.accent).stroke(Stroke::NONE))
}

/// A change of a count with its sign: `−12`, `+3`, `±0`.
pub fn signed(change: i64) -> String {
    match change {
        0 => "±0".to_owned(),
        c if c < 0 => format!("−{}", c.unsigned_abs()),
        c => format!("+{c}"),
    }
}

/// A duration as people read it.
pub fn seconds_text(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.0} µs", s * 1e6),
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}
