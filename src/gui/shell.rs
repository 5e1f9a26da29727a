//! The window's frame: bars, panels and canvases around a sheet. Draws, and gives back what was asked for.

use egui::{Area, CentralPanel, Frame, Id, Margin, Order, Panel, Rect, RichText, Stroke, Ui, pos2, vec2};

use super::canvas::{self, Canvas, Link};
use super::lit::Lit;
use super::panels::palette::{Entry, PaletteState, Picked, palette_ui};
use super::panels::search::{self, SearchState, search_ui};
use super::panels::widgets::cut;
use super::panels::{bars, bottom, inspector, pipeline, shortcuts, start};
use super::settings::Settings;
use super::sheet::{Ask, Sheet, View};
use super::theme::{Palette, size};
use super::verbs::Verb;
use crate::scene::palette::{mark_name, mark_sign};
use crate::scene::{Mark, Picture, PictureBox};

/// Below this width the inspector is shown only when something is chosen.
const NARROW: f32 = 1080.0;
/// Below this height the tables take less of it.
const LOW: f32 = 700.0;

/// Panels keep one size for small windows and one for large ones.
pub fn panel_id(name: &str, small: bool) -> Id {
    Id::new((name, small))
}

/// What the frame remembers between two drawings; nothing of it is about the model.
pub struct Shell {
    pub main: Canvas,
    pub second: Canvas,
    link: Link,
    pub pipeline: pipeline::PipelineState,
    pub bottom: bottom::BottomState,
    palette: Option<PaletteState>,
    pub search: Option<SearchState>,
    shortcuts: Option<String>,
    /// Where the canvases are.
    canvas_at: Rect,
}

impl Default for Shell {
    fn default() -> Shell {
        Shell {
            main: Canvas::new("main"),
            second: Canvas::new("second"),
            link: Link::default(),
            pipeline: pipeline::PipelineState::default(),
            bottom: bottom::BottomState::default(),
            palette: None,
            search: None,
            shortcuts: None,
            canvas_at: Rect::ZERO,
        }
    }
}

impl Shell {
    /// Why a verb cannot be asked for now.
    pub fn enabled(&self, sheet: &Sheet, verb: Verb) -> Result<(), String> {
        use Verb::*;
        let need = |may: bool, why: &str| if may { Ok(()) } else { Err(why.to_owned()) };
        match verb {
            Open | SwitchTheme | LargerText | SmallerText | ResetLayout | ReduceMotion | WheelZooms
            | Palette | Shortcuts => Ok(()),
            Cancel => need(!sheet.jobs.is_empty(), "nothing is running"),
            _ if sheet.name.is_none() => Err("no model is open".to_owned()),
            CloseComparison => need(sheet.compared.is_some(), "no second file is open"),
            Save | NextStep | PreviousStep | FirstStep | LastStep if sheet.compared.is_some() => {
                Err("two files are compared: close the comparison first".to_owned())
            }
            Undo => need(sheet.undo.is_some(), "nothing to undo"),
            Redo => need(sheet.redo.is_some(), "nothing to redo"),
            FitChosen => need(sheet.chosen.is_some(), "nothing is chosen"),
            NextHit | PreviousHit => need(!sheet.hits.is_empty(), "nothing was found"),
            NextChange | PreviousChange => need(!sheet.changes.is_empty(), "nothing differs"),
            NextStep | LastStep => {
                need((sheet.step as usize) < sheet.steps.len(), "this is the last rewrite")
            }
            PreviousStep | FirstStep => need(sheet.step > 0, "this is before the first rewrite"),
            Back => need(sheet.can_back, "nowhere to go back to"),
            Forward => need(sheet.can_forward, "nowhere to go forward to"),
            _ => Ok(()),
        }
    }

    /// Opens the search box with a text in it, or closes it for an empty one that is not being typed.
    pub fn show_search(&mut self, text: &str) {
        match &mut self.search {
            Some(search) if search.text != text && text.is_empty() => self.search = None,
            Some(search) => text.clone_into(&mut search.text),
            None if text.is_empty() => {}
            None => self.search = Some(SearchState { text: text.to_owned(), wants_focus: false }),
        }
    }

    /// Verbs that concern the frame alone; false when the verb is somebody else's.
    pub fn handle(&mut self, verb: Verb, settings: &mut Settings, still: bool, sheet: &Sheet) -> bool {
        match verb {
            Verb::FitAll => self.main.fit_all(still),
            Verb::FitChosen => {
                if let Some(lit) = &sheet.lit {
                    self.main.fit_to(&lit.place, still);
                }
            }
            Verb::ZoomIn => self.main.zoom_by(1.35, still),
            Verb::ZoomOut => self.main.zoom_by(1.0 / 1.35, still),
            Verb::TogglePipeline => settings.pipeline_shown = !settings.pipeline_shown,
            Verb::ToggleInspector => settings.inspector_shown = !settings.inspector_shown,
            Verb::ToggleBottom => settings.bottom_shown = !settings.bottom_shown,
            Verb::ReduceMotion => settings.reduce_motion = !settings.reduce_motion,
            Verb::WheelZooms => settings.wheel_zooms = !settings.wheel_zooms,
            Verb::LargerText => settings.scale = (settings.scale * 1.1).min(3.0),
            Verb::SmallerText => settings.scale = (settings.scale / 1.1).max(0.5),
            Verb::Palette => self.palette = Some(PaletteState::default()),
            Verb::Shortcuts => self.shortcuts = Some(String::new()),
            Verb::Search => {
                let text = self.search.take().map(|search| search.text).unwrap_or_default();
                self.search = Some(SearchState { text, wants_focus: true });
            }
            _ => return false,
        }
        true
    }

    /// Flies to what stands for the chosen thing; false when nothing of it is in a picture.
    pub fn reveal(&mut self, sheet: &Sheet, still: bool) -> bool {
        let exact = |lit: &Option<Lit>| lit.as_ref().map(|lit| &lit.place) == sheet.chosen.as_ref();
        let second = sheet.second_lit.as_ref().filter(|_| sheet.view == View::Both && !exact(&sheet.lit));
        if let Some(lit) = second.filter(|_| exact(&sheet.second_lit) || sheet.lit.is_none()) {
            return self.link.reveal(&mut self.main, &self.second, &lit.place, still);
        }
        sheet.lit.as_ref().is_some_and(|lit| self.main.reveal(&lit.place, still))
    }

    /// Draws everything.
    pub fn ui(&mut self, ui: &mut Ui, sheet: &Sheet, settings: &Settings) -> Vec<Ask> {
        let mut asks: Vec<Ask> = Vec::new();
        let pressed = Verb::pressed(ui.ctx(), |verb| self.enabled(sheet, verb).is_ok());
        asks.extend(pressed.into_iter().map(Ask::Verb));
        self.bars_ui(ui, sheet, settings, &mut asks);
        if sheet.name.is_some() {
            self.panels_ui(ui, sheet, settings, &mut asks);
            self.centre_ui(ui, sheet, settings, &mut asks);
        } else {
            let dragging = ui.input(|i| !i.raw.hovered_files.is_empty());
            CentralPanel::no_frame().show(ui, |ui| {
                for ask in start::start_ui(ui, &sheet.samples, &sheet.recent, dragging) {
                    asks.push(match ask {
                        start::Ask::Verb(verb) => Ask::Verb(verb),
                        start::Ask::OpenFile(path) => Ask::Open(path),
                        start::Ask::OpenSample(name) => Ask::OpenSample(name),
                    });
                }
            });
        }
        self.cards_ui(ui, sheet, &mut asks);
        self.popups_ui(ui, sheet, &mut asks);
        asks
    }

    fn bars_ui(&mut self, ui: &mut Ui, sheet: &Sheet, settings: &Settings, asks: &mut Vec<Ask>) {
        let palette = Palette::of(ui);
        let bar = |margin: Margin| Frame::new().fill(palette.panel).inner_margin(margin);
        let enabled = |verb: Verb| self.enabled(sheet, verb);
        let checked = |verb: Verb| match verb {
            Verb::TogglePipeline => Some(settings.pipeline_shown),
            Verb::ToggleInspector => Some(settings.inspector_shown),
            Verb::ToggleBottom => Some(settings.bottom_shown),
            Verb::ReduceMotion => Some(settings.reduce_motion),
            Verb::WheelZooms => Some(settings.wheel_zooms),
            Verb::AllowRisky => Some(sheet.aggressive),
            _ => None,
        };
        let view = sheet.name.as_ref().map(|_| sheet.wanted.verb());
        Panel::top("top").frame(bar(Margin::symmetric(10, 5))).show(ui, |ui| {
            asks.extend(bars::top_ui(ui, &enabled, &checked, view).into_iter().map(Ask::Verb));
        });
        let status = bars::Status {
            file: sheet.name.as_deref().unwrap_or("no model"),
            nodes_before: sheet.nodes_before,
            nodes_after: sheet.nodes_after,
            verified: &sheet.verified,
            zoom: self.main.view().zoom,
            jobs: &sheet.jobs,
            said: &sheet.notice,
        };
        Panel::bottom("status").frame(bar(Margin::symmetric(10, 2))).show(ui, |ui| {
            if bars::status_ui(ui, &status) {
                asks.push(Ask::Verb(Verb::Cancel));
            }
        });
    }

    fn panels_ui(&mut self, ui: &mut Ui, sheet: &Sheet, settings: &Settings, asks: &mut Vec<Ask>) {
        let palette = Palette::of(ui);
        let room = ui.available_size();
        let (narrow, low) = (room.x < NARROW, room.y < LOW);
        let frame = Frame::new().fill(palette.panel).inner_margin(Margin::symmetric(10, 8));
        if settings.pipeline_shown {
            let width = if narrow { 212.0 } else { 304.0 };
            let panel =
                Panel::left(panel_id("pipeline", narrow)).frame(frame).default_size(width).min_size(180.0);
            panel.max_size((room.x * 0.42).max(190.0)).show(ui, |ui| {
                self.pipeline.badges_of.clone_from(&sheet.badges_of);
                let step = Some(sheet.step).filter(|&s| s > 0);
                for ask in pipeline::pipeline_ui(ui, &mut self.pipeline, &sheet.passes, step) {
                    asks.push(match ask {
                        pipeline::Ask::SetPass { pass, on } => Ask::SetPass { pass, on },
                        pipeline::Ask::SetStage { stage, on } => Ask::SetStage { stage, on },
                        pipeline::Ask::Move { pass, up } => Ask::MovePass { pass, up },
                        pipeline::Ask::Exclude { key, on } => Ask::Exclude { key, on },
                        pipeline::Ask::ExcludeBlock { pass, block, on } => {
                            Ask::ExcludeBlock { pass, block, on }
                        }
                        pipeline::Ask::Open(pass) => Ask::OpenPass(pass),
                        pipeline::Ask::Badges(pass) => Ask::Badges(pass),
                        pipeline::Ask::ShowStep(step) => Ask::ShowStep(step),
                        pipeline::Ask::Reveal(node) => Ask::Reveal(node),
                    });
                }
            });
        }
        if settings.inspector_shown && (!narrow || sheet.chosen.is_some()) {
            let width = if narrow { 212.0 } else { 296.0 };
            let panel =
                Panel::right(panel_id("inspector", narrow)).frame(frame).default_size(width).min_size(180.0);
            panel.max_size((room.x * 0.42).max(190.0)).show(ui, |ui| {
                for ask in inspector::inspector_ui(ui, &sheet.facts) {
                    asks.push(match ask {
                        inspector::Ask::Reveal(node) => Ask::Reveal(node),
                        inspector::Ask::Producer(value) => Ask::Producer(value),
                        inspector::Ask::OneOf(nodes) => Ask::OneOf(nodes),
                        inspector::Ask::ShowStep(step) => Ask::ShowStep(step),
                        inspector::Ask::Copy(text) => Ask::Copy(text),
                    });
                }
            });
        }
        if settings.bottom_shown {
            let height = if low { 128.0 } else { 200.0 };
            let panel = Panel::bottom(panel_id("tables", low))
                .frame(frame)
                .resizable(true)
                .default_size(height)
                .min_size(90.0);
            panel.max_size((room.y * 0.6).max(100.0)).show(ui, |ui| {
                let tables = bottom::Tables {
                    compared: sheet.compared.is_some(),
                    changes: &sheet.changes,
                    steps: &sheet.steps,
                    log: &sheet.log,
                    problems: &sheet.problems,
                    step: Some(sheet.step).filter(|&s| s > 0),
                    change: sheet.change,
                };
                for ask in bottom::bottom_ui(ui, &mut self.bottom, &tables) {
                    asks.push(match ask {
                        bottom::Ask::Change(index) => Ask::Change(index),
                        bottom::Ask::ShowStep(step) => Ask::ShowStep(step),
                        bottom::Ask::Reveal(node) => Ask::Reveal(node),
                    });
                }
            });
        }
    }

    fn centre_ui(&mut self, ui: &mut Ui, sheet: &Sheet, settings: &Settings, asks: &mut Vec<Ask>) {
        let palette = Palette::of(ui);
        let bar = Frame::new().fill(palette.panel).inner_margin(Margin::symmetric(10, 3));
        if let (Some(compared), Some(name)) = (&sheet.compared, &sheet.name) {
            let banner = Frame::new().fill(palette.selection).inner_margin(Margin::symmetric(10, 4));
            Panel::top("comparison").frame(banner).show(ui, |ui| {
                asks.extend(bars::comparison_ui(ui, name, compared).map(Ask::Verb));
            });
        }
        Panel::top("crumbs").frame(bar).show(ui, |ui| {
            let (went, picked) = bars::crumbs_ui(ui, &sheet.crumbs, sheet.can_back, sheet.can_forward);
            asks.extend(picked.into_iter().map(Ask::Verb));
            asks.extend(went.map(Ask::Choose));
        });
        if !sheet.steps.is_empty() {
            Panel::bottom("steps").frame(bar).show(ui, |ui| {
                asks.extend(bars::steps_ui(ui, &sheet.steps, sheet.step).map(Ask::ShowStep));
            });
        }
        CentralPanel::no_frame().show(ui, |ui| {
            let full = ui.available_rect_before_wrap();
            self.canvases_ui(ui, sheet, settings, asks);
            self.overlays_ui(ui, full, sheet, asks);
        });
    }

    fn canvases_ui(&mut self, ui: &mut Ui, sheet: &Sheet, settings: &Settings, asks: &mut Vec<Ask>) {
        let full = ui.available_rect_before_wrap();
        let request = |second: bool| {
            let lit = if second { &sheet.second_lit } else { &sheet.lit };
            canvas::Request {
                picture: if second { &sheet.second } else { &sheet.picture },
                chosen: lit.as_ref().map(|lit| &lit.place),
                lit: lit.as_ref().map_or(&[], |lit| &lit.tags),
                linked: second,
                anchor: sheet.anchor.as_ref(),
                compares: sheet.view == View::Difference,
                waiting: sheet.waiting,
                still: settings.reduce_motion,
                wheel_zooms: settings.wheel_zooms,
                card: &card_ui,
            }
        };
        let mut actions = Vec::new();
        if sheet.view == View::Both {
            // Of two files, the halves say which is which.
            let second = sheet.compared.as_ref().map(|c| c.name.clone());
            let half = |side: &str, file: &Option<String>| match (file, &second) {
                (Some(file), Some(_)) => format!("{side} · {}", super::panels::shortened(file, 40)),
                _ => side.to_owned(),
            };
            let (left, right) = full.split_left_right_at_fraction(0.5);
            let (left, right) = (left.with_max_x(left.max.x - 1.0), right.with_min_x(right.min.x + 1.0));
            // Both know their pictures before either moves the camera, which is one for both.
            self.main.prepare(left.size(), &request(false));
            self.second.prepare(right.size(), &request(true));
            actions.extend(self.half_ui(ui, left, &half("Before", &sheet.name), true, &request(false)));
            let view = self.main.current_view();
            let linked = self.link.view(&self.main, &self.second, sheet.chosen.as_ref());
            self.second.set_view(linked);
            actions.extend(self.half_ui(ui, right, &half("After", &second), false, &request(true)));
            if self.second.view() != linked {
                self.main.set_view(self.second.view().apart_as(view, linked));
                ui.ctx().request_repaint();
            }
            let line = Stroke::new(2.0, Palette::of(ui).border);
            ui.painter().vline(full.center().x, full.y_range(), line);
        } else {
            actions.extend(self.main.ui(ui, &request(false)));
        }
        for action in actions {
            asks.push(match action {
                canvas::Action::Choose(place) => Ask::Choose(place),
                canvas::Action::Toggle(place) => Ask::Toggle(place),
                canvas::Action::Up => Ask::Up,
                canvas::Action::Producer(value) => Ask::Producer(value),
                canvas::Action::Copy(text) => Ask::Copy(text),
            });
        }
    }

    fn half_ui(
        &mut self,
        ui: &mut Ui,
        rect: Rect,
        name: &str,
        first: bool,
        request: &canvas::Request,
    ) -> Vec<canvas::Action> {
        let mut child = ui.new_child(egui::UiBuilder::new().max_rect(rect).id_salt(if first {
            "first half"
        } else {
            "second half"
        }));
        child.set_clip_rect(rect.intersect(ui.clip_rect()));
        let canvas = if first { &mut self.main } else { &mut self.second };
        let actions = canvas.ui(&mut child, request);
        let palette = Palette::of(ui);
        let galley = ui.painter().layout_no_wrap(
            name.to_owned(),
            egui::FontId::proportional(size::SMALL),
            palette.weak,
        );
        let pill = Rect::from_min_size(rect.min + vec2(10.0, 8.0), galley.size() + vec2(14.0, 6.0));
        ui.painter().rect(
            pill,
            8.0,
            palette.surface,
            Stroke::new(1.0, palette.border),
            egui::StrokeKind::Inside,
        );
        ui.painter().galley(pill.min + vec2(7.0, 3.0), galley, palette.weak);
        actions
    }

    /// Legend and search, above the canvas.
    fn overlays_ui(&mut self, ui: &mut Ui, full: Rect, sheet: &Sheet, asks: &mut Vec<Ask>) {
        self.canvas_at = full;
        // Side by side it would cover half of a picture.
        if full.height() > 200.0 && full.width() > 280.0 && sheet.view != View::Both {
            let count = |mark| sheet.count(mark);
            let legend = bars::Legend {
                compares: sheet.view == View::Difference,
                families: &sheet.families,
                counts: &count,
            };
            let size = legend.size();
            let place = Rect::from_min_size(pos2(full.min.x + 12.0, full.max.y - size.y - 12.0), size);
            let roomy = full.width() >= canvas::ROOMY.x && full.height() >= canvas::ROOMY.y;
            let one_line = !roomy && (size.y > full.height() * 0.4 || self.main.covers(place.expand(6.0)));
            let line = Rect::from_min_max(
                pos2(full.min.x + 6.0, full.max.y - bars::LEGEND_LINE - 4.0),
                full.max - vec2(6.0, 4.0),
            );
            if size.y > 0.0 {
                let place = if one_line { line } else { place };
                let mut child = ui.new_child(egui::UiBuilder::new().max_rect(place));
                legend.ui(&mut child, one_line);
            }
        }
        let Some(state) = &mut self.search else { return };
        let width = (full.width() - 32.0).min(440.0);
        let at = pos2(full.max.x - width - 24.0, full.min.y + 10.0);
        let mut close = false;
        Area::new(Id::new("search")).order(Order::Middle).fixed_pos(at).show(ui.ctx(), |ui| {
            ui.set_width(width);
            let found = search::Found {
                hits: &sheet.hits,
                total: sheet.hits_total,
                current: sheet.hit,
                problem: sheet.search_problem.as_deref(),
            };
            for ask in search_ui(ui, state, &found) {
                match ask {
                    search::Ask::Text(text) => asks.push(Ask::Search(text)),
                    search::Ask::Go(index) => asks.push(Ask::Hit(index)),
                    search::Ask::Next => asks.push(Ask::Verb(Verb::NextHit)),
                    search::Ask::Previous => asks.push(Ask::Verb(Verb::PreviousHit)),
                    search::Ask::Close => close = true,
                }
            }
        });
        if close {
            self.search = None;
            asks.push(Ask::Search(String::new()));
        }
    }

    /// Failures stay until they are closed.
    fn cards_ui(&mut self, ui: &mut Ui, sheet: &Sheet, asks: &mut Vec<Ask>) {
        if sheet.cards.is_empty() {
            return;
        }
        let palette = Palette::of(ui);
        // Over the canvas, at its bottom: the bars with what can be done about it stay free.
        let room = if sheet.name.is_some() { self.canvas_at } else { ui.ctx().content_rect() };
        let width = (room.width() - 24.0).clamp(200.0, 560.0);
        let at = pos2(room.center().x, room.max.y - 12.0);
        let area = Area::new(Id::new("cards")).order(Order::Foreground).fixed_pos(at);
        area.pivot(egui::Align2::CENTER_BOTTOM).show(ui.ctx(), |ui| {
            for (id, card) in &sheet.cards {
                let frame = Frame::new()
                    .fill(palette.surface)
                    .stroke(Stroke::new(1.2, palette.error))
                    .corner_radius(8.0)
                    .shadow(ui.visuals().popup_shadow)
                    .inner_margin(12.0);
                frame.show(ui, |ui| {
                    ui.set_width(width - 24.0);
                    ui.add(egui::Label::new(RichText::new(card).color(palette.text)).wrap().selectable(true));
                    ui.horizontal(|ui| {
                        if ui.button("Close").clicked() {
                            asks.push(Ask::CloseCard(*id));
                        }
                        if ui.button("Copy").clicked() {
                            asks.push(Ask::Copy(card.clone()));
                        }
                    });
                });
            }
        });
    }

    fn popups_ui(&mut self, ui: &mut Ui, sheet: &Sheet, asks: &mut Vec<Ask>) {
        if let Some(mut state) = self.palette.take() {
            let (entries, meant) = self.entries(ui.ctx(), sheet);
            match palette_ui(ui.ctx(), &mut state, "Command, pass or sample", &entries) {
                Picked::None => self.palette = Some(state),
                Picked::Closed => {}
                Picked::Entry(index) => asks.extend(meant.into_iter().nth(index)),
            }
        }
        if let Some(mut filter) = self.shortcuts.take()
            && shortcuts::shortcuts_ui(ui.ctx(), &mut filter)
        {
            self.shortcuts = Some(filter);
        }
    }

    /// What the palette offers, and what each entry means.
    fn entries(&self, ctx: &egui::Context, sheet: &Sheet) -> (Vec<Entry>, Vec<Ask>) {
        let (mut entries, mut meant) = (Vec::new(), Vec::new());
        for &verb in Verb::ALL {
            let detail = match verb {
                Verb::Undo => sheet.undo.clone(),
                Verb::Redo => sheet.redo.clone(),
                _ => None,
            };
            entries.push(Entry {
                text: verb.text().to_owned(),
                detail: detail.unwrap_or_else(|| verb.help().to_owned()),
                key: verb.key_text(ctx),
                disabled: self.enabled(sheet, verb).err(),
            });
            meant.push(Ask::Verb(verb));
        }
        for pass in &sheet.passes {
            let text = format!("Switch {} {}", if pass.on { "off" } else { "on" }, pass.name);
            entries.push(Entry {
                text,
                detail: pass.summary.to_string(),
                key: String::new(),
                disabled: None,
            });
            meant.push(Ask::SetPass { pass: pass.name.clone(), on: !pass.on });
        }
        for sample in sheet.samples.iter() {
            let text = format!("Open sample {}", sample.title);
            entries.push(Entry { text, detail: sample.summary.clone(), key: String::new(), disabled: None });
            meant.push(Ask::OpenSample(sample.name.clone()));
        }
        (entries, meant)
    }
}

/// The card of the box under the pointer.
fn card_ui(ui: &mut Ui, b: &PictureBox) {
    let palette = Palette::of(ui);
    ui.set_max_width(380.0);
    ui.label(RichText::new(&*b.title).size(size::BODY + 1.5));
    if !b.subtitle.is_empty() {
        ui.label(RichText::new(&*b.subtitle).color(palette.weak));
    }
    for line in &b.lines {
        ui.label(RichText::new(&**line));
    }
    for tag in b.tags.iter().take(12) {
        let sign = if tag.constant { "constant" } else { "from afar" };
        ui.horizontal(|ui| {
            ui.label(RichText::new(sign).size(size::SMALL).color(palette.weak));
            cut(ui, RichText::new(&*tag.text).size(size::SMALL));
        });
    }
    if b.mark != Mark::Same {
        let text = format!("{} {}", mark_sign(b.mark), mark_name(b.mark));
        ui.label(RichText::new(text).color(palette.mark(b.mark)));
    }
    if let Some(badge) = &b.badge {
        ui.label(RichText::new(format!("by {badge}")).color(palette.badge));
    }
}

/// Families of the boxes of a picture, in the order of the legend.
pub fn families_of(picture: &Picture) -> Vec<crate::scene::Family> {
    use crate::scene::BoxKind::{ClosedBlock, ClosedNode, Node};
    let seen: std::collections::BTreeSet<_> = picture
        .boxes
        .iter()
        .filter(|b| matches!(b.kind, Node | ClosedNode | ClosedBlock))
        .map(|b| b.family)
        .collect();
    crate::scene::family::FAMILIES.into_iter().filter(|family| seen.contains(family)).collect()
}
