//! Bars around the canvas: menus and views at the top, the way to the chosen thing, the slider over the rewrites, the
//! status at the bottom.

use egui::{Align, Button, Layout, RichText, Ui};

use super::widgets::{cut, seconds_text};
use crate::gui::rows::{Compared, Crumb, JobRow, StepRow};
use crate::gui::theme::{Palette, mark_dashes, size};
use crate::gui::verbs::{Menu, Verb};
use crate::scene::family::FAMILIES;
use crate::scene::palette::{MARKS, mark_name, mark_sign};
use crate::scene::{Family, Mark, Place};

/// Says whether a verb can be asked for now, or why not.
pub type Enabled<'a> = &'a dyn Fn(Verb) -> Result<(), String>;

/// The menus, and the buttons that are used most; gives the verbs that were picked.
pub fn top_ui(
    ui: &mut Ui,
    enabled: Enabled,
    checked: &dyn Fn(Verb) -> Option<bool>,
    view: Option<Verb>,
) -> Vec<Verb> {
    let mut picked = Vec::new();
    ui.horizontal(|ui| {
        egui::MenuBar::new().ui(ui, |ui| {
            for menu in Menu::ALL {
                ui.menu_button(menu.name(), |ui| menu_ui(ui, menu, enabled, checked, &mut picked));
            }
        });
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            for (verb, text) in [(Verb::SwitchTheme, "◐"), (Verb::Palette, "⌘"), (Verb::Search, "🔍")] {
                let button =
                    Button::new(RichText::new(text).size(15.0)).frame(false).min_size(egui::vec2(24.0, 22.0));
                let button = ui.add(button);
                button.widget_info(|| egui::WidgetInfo::labeled(egui::WidgetType::Button, true, verb.text()));
                if button.on_hover_text(format!("{}  {}", verb.help(), verb.key_text(ui.ctx()))).clicked() {
                    picked.push(verb);
                }
            }
            if let Some(view) = view {
                ui.add_space(8.0);
                // From right to left, so the last comes first.
                for verb in [Verb::ViewDifference, Verb::ViewBoth, Verb::ViewAfter, Verb::ViewBefore] {
                    let button = ui.selectable_label(view == verb, verb.text());
                    if button.on_hover_text(format!("{}  {}", verb.help(), verb.key_text(ui.ctx()))).clicked()
                    {
                        picked.push(verb);
                    }
                }
            }
        });
    });
    picked
}

fn menu_ui(
    ui: &mut Ui,
    menu: Menu,
    enabled: Enabled,
    checked: &dyn Fn(Verb) -> Option<bool>,
    picked: &mut Vec<Verb>,
) {
    ui.set_min_width(230.0);
    for &verb in Verb::ALL.iter().filter(|verb| verb.menu() == menu) {
        let may = enabled(verb);
        let mut text = verb.text().to_owned();
        if let Some(on) = checked(verb) {
            text = format!("{} {text}", if on { "✔" } else { "    " });
        }
        let button = Button::new(text).shortcut_text(verb.key_text(ui.ctx()));
        let button = ui.add_enabled(may.is_ok(), button);
        let button = match &may {
            Ok(()) => button.on_hover_text(verb.help()),
            Err(why) => button.on_disabled_hover_text(why),
        };
        if button.clicked() {
            picked.push(verb);
            ui.close();
        }
    }
}

/// The way from the model down to what is chosen; gives the part that was clicked.
pub fn crumbs_ui(
    ui: &mut Ui,
    crumbs: &[Crumb],
    can_back: bool,
    can_forward: bool,
) -> (Option<Option<Place>>, Vec<Verb>) {
    let palette = Palette::of(ui);
    let (mut went, mut picked) = (None, Vec::new());
    ui.horizontal(|ui| {
        for (verb, text, may) in [(Verb::Back, "◀", can_back), (Verb::Forward, "▶", can_forward)] {
            let button = ui.add_enabled(may, Button::new(RichText::new(text).size(10.0)).frame(false));
            button.widget_info(|| egui::WidgetInfo::labeled(egui::WidgetType::Button, may, verb.text()));
            if button.on_hover_text(format!("{}  {}", verb.help(), verb.key_text(ui.ctx()))).clicked() {
                picked.push(verb);
            }
        }
        let texts: Vec<String> = crumbs.iter().map(|c| super::shortened(&c.text, 40)).collect();
        let font = egui::TextStyle::Button.resolve(ui.style());
        let width = |text: &str| {
            ui.painter().layout_no_wrap(text.to_owned(), font.clone(), palette.text).size().x
                + 2.0 * ui.spacing().button_padding.x
        };
        let gap = width("›") + 2.0 * ui.spacing().item_spacing.x;
        let widths: Vec<f32> = texts.iter().map(|text| width(text) + gap).collect();
        let hidden = left_out(&widths, ui.available_width(), width("…") + gap);
        for (i, crumb) in crumbs.iter().enumerate() {
            if hidden.contains(&i) && i != hidden.start {
                continue;
            }
            if i > 0 {
                ui.label(RichText::new("›").color(palette.weak));
            }
            if hidden.contains(&i) {
                let between = &crumbs[hidden.clone()];
                went = crumbs_between(ui, between).or(went.take());
                continue;
            }
            let last = i + 1 == crumbs.len();
            let colour = if last { palette.text } else { palette.weak };
            let button = Button::new(RichText::new(&texts[i]).color(colour)).frame(false);
            // The last one takes what is left; whole under the pointer.
            let button = ui.add(if last { button.truncate() } else { button });
            button.widget_info(|| {
                egui::WidgetInfo::labeled(egui::WidgetType::Button, true, format!("Go to {}", crumb.text))
            });
            if button.on_hover_text(&crumb.text).clicked() {
                went = Some(crumb.place.clone());
            }
        }
    });
    (went, picked)
}

/// Crumbs that are left out where the way is too long: from the second on, the last one stays.
fn left_out(widths: &[f32], room: f32, dots: f32) -> std::ops::Range<usize> {
    let mut total: f32 = widths.iter().sum();
    let mut end = 1;
    while total > room && end + 1 < widths.len() {
        total -= widths[end];
        if end == 1 {
            total += dots;
        }
        end += 1;
    }
    1..end
}

/// The crumbs that were left out, in a menu.
fn crumbs_between(ui: &mut Ui, crumbs: &[Crumb]) -> Option<Option<Place>> {
    let mut went = None;
    let response = ui.menu_button("…", |ui| {
        for crumb in crumbs {
            if ui.button(super::shortened(&crumb.text, 60)).clicked() {
                went = Some(crumb.place.clone());
                ui.close();
            }
        }
    });
    let names: Vec<&str> = crumbs.iter().map(|crumb| &*crumb.text).collect();
    response.response.on_hover_text(names.join(" › "));
    went
}

/// Says which two files are compared and in what they differ; gives the verb that was picked.
pub fn comparison_ui(ui: &mut Ui, first: &str, compared: &Compared) -> Option<Verb> {
    let palette = Palette::of(ui);
    let mut picked = None;
    let close = Verb::CloseComparison;
    ui.horizontal(|ui| {
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            let button = ui.button(close.text());
            if button.on_hover_text(format!("{}  {}", close.help(), close.key_text(ui.ctx()))).clicked() {
                picked = Some(close);
            }
            ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                let weak = |text: &str| RichText::new(text).color(palette.weak);
                let most = if ui.available_width() < 640.0 { 18 } else { 40 };
                let name =
                    |text: &str| RichText::new(super::shortened(text, most)).color(palette.text).strong();
                ui.label(weak("Before"));
                ui.label(name(first)).on_hover_text(first);
                ui.label(weak("⇄  After"));
                ui.label(name(&compared.name)).on_hover_text(&compared.path);
                ui.label(weak("·"));
                cut(ui, RichText::new(&compared.summary).color(palette.text))
                    .on_hover_text(&compared.summary);
                if let [line, more @ ..] = compared.model.as_slice() {
                    let text = match more.len() {
                        0 => line.clone(),
                        n => format!("{line}, and {n} more"),
                    };
                    ui.label(weak("·"));
                    cut(ui, weak(&text)).on_hover_text(compared.model.join("\n"));
                }
            });
        });
    });
    picked
}

/// The slider over the rewrites: gives the step to show. `step` is the one that is shown; as many as there are means the
/// end.
pub fn steps_ui(ui: &mut Ui, steps: &[StepRow], step: u32) -> Option<u32> {
    let palette = Palette::of(ui);
    let last = steps.len() as u32;
    let mut wanted = step;
    ui.horizontal(|ui| {
        let buttons = [
            ("⏮", Verb::FirstStep, 0, step > 0),
            ("◀", Verb::PreviousStep, step.saturating_sub(1), step > 0),
            ("▶", Verb::NextStep, step + 1, step < last),
            ("⏭", Verb::LastStep, last, step < last),
        ];
        for (text, verb, target, may) in buttons {
            let button = ui.add_enabled(
                may,
                Button::new(RichText::new(text).size(11.0)).min_size(egui::vec2(26.0, 22.0)),
            );
            button.widget_info(|| egui::WidgetInfo::labeled(egui::WidgetType::Button, may, verb.text()));
            if button.on_hover_text(format!("{}  {}", verb.help(), verb.key_text(ui.ctx()))).clicked() {
                wanted = target;
            }
        }
        ui.spacing_mut().slider_width = (ui.available_width() * 0.42).clamp(80.0, 420.0);
        let slider = ui.add(egui::Slider::new(&mut wanted, 0..=last).show_value(false));
        slider.widget_info(|| egui::WidgetInfo::slider(true, f64::from(step), "Rewrite"));
        let text = match step.checked_sub(1).and_then(|i| steps.get(i as usize)) {
            None => format!("before the first of {last} rewrites"),
            Some(row) => format!("{} of {last}  ·  {}  ·  {}", row.number, row.pass, row.what),
        };
        cut(ui, RichText::new(text).color(palette.weak));
    });
    (wanted != step).then_some(wanted)
}

/// What the status bar says.
pub struct Status<'a> {
    pub file: &'a str,
    pub nodes_before: usize,
    pub nodes_after: usize,
    /// Whether results were compared.
    pub verified: &'a str,
    pub zoom: f64,
    pub jobs: &'a [JobRow],
    /// Last success, said in passing.
    pub said: &'a str,
}

/// The status bar; true when cancel was pressed.
pub fn status_ui(ui: &mut Ui, status: &Status) -> bool {
    let palette = Palette::of(ui);
    let mut cancelled = false;
    ui.horizontal(|ui| {
        let weak = |text: String| RichText::new(text).size(size::SMALL).color(palette.weak);
        ui.label(weak(super::shortened(status.file, 48)));
        if status.nodes_before > 0 {
            let text = if status.nodes_before == status.nodes_after {
                format!("{} nodes", super::count_text(status.nodes_before))
            } else {
                format!(
                    "{} → {} nodes",
                    super::count_text(status.nodes_before),
                    super::count_text(status.nodes_after)
                )
            };
            ui.separator();
            ui.label(weak(text));
            ui.separator();
            ui.label(weak(status.verified.to_owned()))
                .on_hover_text("Whether the outputs of the two models were compared by running them");
        }
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            if status.nodes_before > 0 {
                ui.label(weak(format!("{:.0} %", status.zoom * 100.0)));
            }
            for job in status.jobs {
                ui.separator();
                if ui.small_button("Cancel").clicked() {
                    cancelled = true;
                }
                ui.add(egui::Spinner::new().size(12.0));
                ui.label(weak(format!("{}  {}", super::shortened(&job.what, 90), seconds_text(job.seconds))));
            }
            if status.jobs.is_empty() && !status.said.is_empty() {
                ui.label(RichText::new(status.said).size(size::SMALL).color(palette.good));
            }
        });
    });
    cancelled
}

/// What the legend says.
pub struct Legend<'a> {
    /// Differences, or families of operators that are there.
    pub compares: bool,
    pub families: &'a [Family],
    pub counts: &'a dyn Fn(Mark) -> usize,
}

/// Height of the legend on one line.
pub const LEGEND_LINE: f32 = 24.0;

impl Legend<'_> {
    fn rows(&self) -> usize {
        if self.compares { MARKS.len() } else { self.families.len() }
    }

    /// Size with a line for each colour; nothing when there is nothing to explain.
    pub fn size(&self) -> egui::Vec2 {
        if self.rows() == 0 {
            return egui::Vec2::ZERO;
        }
        egui::vec2(190.0, self.rows() as f32 * 17.5 + 14.0)
    }

    /// Draws it: a line for each colour, or all in one line with the words under the pointer.
    pub fn ui(&self, ui: &mut Ui, one_line: bool) {
        let palette = Palette::of(ui);
        let margin = if one_line { egui::Margin::symmetric(7, 4) } else { egui::Margin::symmetric(10, 6) };
        let frame = egui::Frame::new()
            .fill(palette.surface)
            .stroke(egui::Stroke::new(1.0, palette.border))
            .corner_radius(6.0)
            .inner_margin(margin);
        frame.show(ui, |ui| {
            ui.spacing_mut().item_spacing = egui::vec2(6.0, 3.0);
            ui.spacing_mut().interact_size.y = 14.0;
            if one_line {
                ui.horizontal(|ui| self.entries(ui, true));
            } else {
                self.entries(ui, false);
            }
        });
    }

    fn entries(&self, ui: &mut Ui, one_line: bool) {
        let palette = Palette::of(ui);
        let small = |text: String| RichText::new(text).size(size::SMALL);
        let entry = |ui: &mut Ui, sample: &dyn Fn(&mut Ui) -> egui::Response, name: &str, count: String| {
            if one_line {
                sample(ui).on_hover_text(name);
                if !count.is_empty() {
                    ui.label(small(count)).on_hover_text(name);
                }
            } else {
                ui.horizontal(|ui| {
                    sample(ui);
                    ui.label(small(format!("{name}  {count}")));
                });
            }
        };
        if self.compares {
            for mark in MARKS {
                let count = super::count_text((self.counts)(mark));
                entry(ui, &|ui| mark_sample(ui, mark), mark_name(mark), count);
            }
            return;
        }
        for family in FAMILIES.into_iter().filter(|family| self.families.contains(family)) {
            let sample = |ui: &mut Ui| {
                let (rect, response) = ui.allocate_exact_size(egui::vec2(12.0, 12.0), egui::Sense::hover());
                ui.painter().rect_filled(rect, 3.0, palette.family(family));
                response
            };
            entry(ui, &sample, family.name(), String::new());
        }
    }
}

/// A small box with the outline and sign of a difference.
fn mark_sample(ui: &mut Ui, mark: Mark) -> egui::Response {
    let palette = Palette::of(ui);
    let (rect, response) = ui.allocate_exact_size(egui::vec2(26.0, 14.0), egui::Sense::hover());
    let rect = rect.shrink(1.0);
    let stroke = egui::Stroke::new(if mark == Mark::Added { 2.0 } else { 1.4 }, palette.mark(mark));
    ui.painter().rect_filled(rect, 2.0, palette.mark_fill(mark));
    match mark_dashes(mark) {
        None => {
            ui.painter().rect_stroke(rect, 2.0, stroke, egui::StrokeKind::Inside);
        }
        Some((dash, gap)) => {
            let ring =
                [rect.left_top(), rect.right_top(), rect.right_bottom(), rect.left_bottom(), rect.left_top()];
            ui.painter().extend(egui::Shape::dashed_line(&ring, stroke, dash * 0.6, gap * 0.6));
        }
    }
    let font = egui::FontId::monospace(11.0);
    ui.painter().text(rect.center(), egui::Align2::CENTER_CENTER, mark_sign(mark), font, palette.mark(mark));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_a_long_way_is_left_out() {
        let widths = [50.0; 6];
        assert!(left_out(&widths, 400.0, 20.0).is_empty());
        assert_eq!(left_out(&widths, 230.0, 20.0), 1..3);
        assert_eq!(left_out(&widths, 10.0, 20.0), 1..5, "the first and the last stay");
        assert!(left_out(&[50.0], 10.0, 20.0).is_empty() && left_out(&[], 10.0, 20.0).is_empty());
    }
}
