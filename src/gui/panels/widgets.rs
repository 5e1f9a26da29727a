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

/// A long name with its middle left out where there is no room, whole under the pointer.
pub fn cut_middle(ui: &mut Ui, name: &str, text: impl Fn(&str) -> RichText) -> Response {
    let room = ui.available_width();
    let font = egui::TextStyle::Body.resolve(ui.style());
    let width = |text: &str| {
        ui.painter().layout_no_wrap(text.to_owned(), font.clone(), Color32::PLACEHOLDER).size().x
    };
    let count = name.chars().count();
    let mut shown = name.to_owned();
    let mut limit = count;
    // Letters are not all of one width: the share of the room is only a first guess.
    while limit > 6 {
        let wide = width(&shown);
        if wide <= room {
            break;
        }
        limit = ((limit as f32 * room / wide) as usize).clamp(5, limit - 1);
        shown = super::shortened(name, limit);
    }
    let response = ui.add(Label::new(text(&shown)).truncate());
    if shown == name { response } else { response.on_hover_text(name) }
}

/// Widths of the columns of a row that has `room`, where these are wanted and the last column takes the rest: less for
/// all where there is not enough, and none for those from the end of which nothing would be left to read.
pub fn columns<const N: usize>(room: f32, wanted: [f32; N], rest: f32) -> [f32; N] {
    /// Narrower ones say nothing.
    const LEAST: f32 = 56.0;
    let mut kept = N;
    loop {
        let total: f32 = wanted[..kept].iter().sum::<f32>() + if kept == N { rest } else { 0.0 };
        let share = (room / total.max(1.0)).min(1.0);
        let narrow = wanted[..kept].iter().any(|w| w * share < LEAST.min(*w));
        if kept > 2 && narrow {
            kept -= 1;
            continue;
        }
        let mut widths = [0.0; N];
        for (width, wanted) in widths.iter_mut().zip(&wanted[..kept]) {
            *width = (wanted * share).floor();
        }
        return widths;
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_share_the_room() {
        assert_eq!(columns(900.0, [150.0, 260.0, 190.0], 100.0), [150.0, 260.0, 190.0]);
        let half = columns(350.0, [150.0, 260.0, 190.0], 100.0);
        assert_eq!(half, [75.0, 130.0, 95.0]);
        for room in [0.0, 40.0, 120.0, 200.0, 260.0, 500.0] {
            let widths = columns(room, [150.0, 260.0, 190.0], 100.0);
            assert!(widths.iter().sum::<f32>() <= room, "{room}: {widths:?}");
            assert!(widths[2] == 0.0 || widths[2] >= 56.0, "{room}: {widths:?}");
        }
    }
}
