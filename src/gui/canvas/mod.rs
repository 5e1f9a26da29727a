//! The canvas: draws the picture of a graph and lets a person move about in it. It holds the camera and what is under
//! the pointer; what is chosen and what is open belongs to the session.

mod aim;
pub mod camera;
mod graph;
pub mod index;
mod input;
mod landmarks;
mod look;
mod minimap;
mod shown;
#[cfg(test)]
pub(crate) mod tests;
mod text;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use egui::epaint::ClippedShape;
use egui::{Id, Mesh, Pos2, Rect, Sense, Shape, Stroke, Ui, Vec2, pos2, vec2};

use camera::Camera;
pub use camera::View;
use graph::{VisibleBox, VisibleLine};
pub use landmarks::Link;
use look::{Level, LineState, Look};
use minimap::Minimap;
use shown::{Shown, is_container, point};
use text::Labels;

use crate::gui::theme::Palette;
use crate::ir::ValueId;
use crate::scene::measure::BAR_HEIGHT;
use crate::scene::{Picture, PictureBox, Place};

/// Boxes lower than this on the screen get no control of their own for screen readers and tests.
const LEAST_CONTROL: f32 = 11.0;
/// At most this many boxes get one.
const MOST_CONTROLS: usize = 160;

/// On a canvas at least this large overview and legend stay, even over boxes.
pub const ROOMY: Vec2 = vec2(900.0, 600.0);

/// What a person asked for on the canvas.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Choose a box, or nothing.
    Choose(Option<Place>),
    /// Open a closed block, close an open one.
    Toggle(Place),
    /// Choose what encloses the chosen box.
    Up,
    /// Go to where a value comes from.
    Producer(ValueId),
    /// Copy this text.
    Copy(String),
}

/// What the canvas is told in each frame.
pub struct Request<'a> {
    pub picture: &'a Arc<Picture>,
    /// The box of what is chosen, or that which stands for it.
    pub chosen: Option<&'a Place>,
    /// Values whose tags at the chosen box are meant.
    pub lit: &'a [ValueId],
    /// The camera is that of another canvas: it does not follow this one's pictures.
    pub linked: bool,
    /// What was opened or closed last: it stays where it is on the screen.
    pub anchor: Option<&'a Place>,
    /// Colours say what differs instead of the operators' families.
    pub compares: bool,
    /// The picture is about to be replaced; it is drawn dimmed.
    pub waiting: bool,
    /// No flights, no moves.
    pub still: bool,
    /// The wheel zooms; otherwise it scrolls and Ctrl with the wheel zooms.
    pub wheel_zooms: bool,
    /// Fills the card of the box under the pointer.
    pub card: &'a dyn Fn(&mut Ui, &PictureBox),
}

/// What the shapes of the last frame were made of.
#[derive(Clone, PartialEq)]
struct Drawn {
    view: View,
    rect: Rect,
    chosen: Option<u32>,
    lit: Vec<ValueId>,
    hovered: Option<u32>,
    hovered_line: Option<u32>,
    compares: bool,
    dark: bool,
    pixels_per_point: f32,
    picture: u64,
}

/// One canvas.
pub struct Canvas {
    name: &'static str,
    shown: Shown,
    minimap: Minimap,
    camera: Camera,
    size: Vec2,
    /// Top left corner on the screen.
    corner: Vec2,
    labels: Rc<RefCell<Labels>>,
    /// Counts pictures, so that frames can be told apart.
    generation: u64,
    /// The camera goes to the first view of this picture as soon as the size is known.
    unseen: bool,
    hovered: Option<u32>,
    hovered_line: Option<u32>,
    drawn: Option<Drawn>,
    kept: Vec<ClippedShape>,
    /// Nothing of the picture was in sight in the last frame that was drawn.
    lost: bool,
    /// How often egui_graphs drew; the rest of the frames were kept shapes.
    draws: u64,
}

impl Canvas {
    /// An empty canvas; `name` tells canvases apart in egui's memory.
    pub fn new(name: &'static str) -> Canvas {
        Canvas {
            name,
            shown: Shown::default(),
            minimap: Minimap::default(),
            camera: Camera::default(),
            size: Vec2::ZERO,
            corner: Vec2::ZERO,
            labels: Rc::default(),
            generation: 0,
            unseen: true,
            hovered: None,
            hovered_line: None,
            drawn: None,
            kept: Vec::new(),
            lost: false,
            draws: 0,
        }
    }

    /// The camera's view, or the one it is flying to.
    pub fn view(&self) -> View {
        self.camera.target()
    }

    /// What is on the screen now, in the middle of a flight too.
    pub fn current_view(&self) -> View {
        self.camera.view()
    }

    /// Shows a view at once.
    pub fn set_view(&mut self, view: View) {
        self.camera.set(view);
        self.unseen = false;
    }

    /// Size in points in the last frame.
    pub fn size(&self) -> Vec2 {
        self.size
    }

    /// How many frames were drawn anew so far.
    pub fn draws(&self) -> u64 {
        self.draws
    }

    /// The next picture is looked at from the start.
    pub fn forget(&mut self, ui: &mut Ui) {
        graph::forget(ui, self.name);
        *self = Canvas { labels: self.labels.clone(), ..Canvas::new(self.name) };
    }

    /// Zooms about the middle of the canvas.
    pub fn zoom_by(&mut self, factor: f64, still: bool) {
        let middle = (self.size / 2.0).to_pos2();
        self.camera.fly(self.camera.target().zoomed(middle, factor), still);
    }

    /// Draws the canvas into all of `ui` and says what the person did.
    pub fn ui(&mut self, ui: &mut Ui, request: &Request) -> Vec<Action> {
        let rect = ui.available_rect_before_wrap();
        self.corner = rect.min.to_vec2();
        self.prepare(rect.size(), request);
        let now = ui.input(|i| i.time);
        let mut actions = Vec::new();
        let chosen = request.chosen.and_then(|place| self.shown.at(place));
        let id = ui.id().with(self.name);
        self.input(ui, id, rect, request, chosen, &mut actions);
        let moves = self.shown.advance(now);
        self.camera.advance(now, rect.size());
        if self.camera.is_flying() || moves {
            ui.ctx().request_repaint();
        }

        let flushed = self.labels.borrow_mut().begin(ui.ctx());
        let drawn = Drawn {
            view: self.camera.view(),
            rect,
            chosen,
            lit: request.lit.to_vec(),
            hovered: self.hovered,
            hovered_line: self.hovered_line,
            compares: request.compares,
            dark: ui.visuals().dark_mode,
            pixels_per_point: ui.ctx().pixels_per_point(),
            picture: self.generation,
        };
        if flushed || moves || self.drawn.as_ref() != Some(&drawn) {
            self.draw(ui, rect, &drawn);
        } else {
            let painter = ui.painter_at(rect);
            painter.extend(self.kept.iter().map(|kept| kept.shape.clone()));
        }
        self.overlay(ui, rect);
        if request.waiting {
            ui.painter_at(rect).rect_filled(rect, 0.0, Palette::of(ui).canvas.gamma_multiply(0.45));
        }

        // Registered last, so that it lies above egui_graphs' own widget and below the boxes' controls.
        ui.interact(rect, id, Sense::click_and_drag());
        self.controls(ui, id, rect, &mut actions);
        self.way_back(ui, rect, request.still);
        let visible = self.camera.view().visible(rect.size());
        let covers = |place: Rect| self.covers(place);
        if let Some(place) = self.minimap.ui(ui, rect, &self.shown, visible, &covers) {
            self.camera.set(View::centred(place, rect.size(), self.camera.view().zoom));
            ui.ctx().request_repaint();
        }
        ui.advance_cursor_after_rect(rect);
        actions
    }

    /// Draws the visible part anew and keeps its shapes.
    fn draw(&mut self, ui: &mut Ui, rect: Rect, drawn: &Drawn) {
        self.draws += 1;
        self.lost = !self.shown.picture.boxes.is_empty() && !self.sees_anything(drawn.view);
        let view = drawn.view;
        let palette = Palette::of(ui);
        let level = Level::of(view.zoom);
        let look = Rc::new(Look {
            ctx: ui.ctx().clone(),
            picture: self.shown.picture.clone(),
            palette,
            level,
            zoom: view.zoom as f32,
            text_zoom: text::rung(view.zoom),
            chosen: drawn.chosen,
            lit: drawn.lit.clone(),
            hovered: drawn.hovered,
            families: !drawn.compares,
            fresh: self.shown.fresh(),
            labels: self.labels.clone(),
        });
        let visible = view.visible(rect.size()).expand((24.0 / view.zoom) as f32);
        let seen = self.shown.boxes_in(visible);
        let painter = ui.painter_at(rect);
        let first = painter.add(Shape::Noop);
        painter.rect_filled(rect, 0.0, palette.canvas);
        dots(&painter, rect, view, palette);

        // Everything is placed relative to an anchor near the middle of the view: a long model is millions of points
        // high, which single precision would make tremble.
        let anchor = visible.center();
        let on_screen = |r: Rect| view.rect_to_canvas(r).translate(rect.min.to_vec2());
        for &i in seen.iter().filter(|&&i| is_container(self.shown.picture.boxes[i as usize].kind)) {
            let b = &self.shown.picture.boxes[i as usize];
            painter.extend(look.container_fill(b, on_screen(self.shown.rect(i))));
        }
        let mut boxes: Vec<VisibleBox> = Vec::with_capacity(seen.len());
        let mut place_of = std::collections::HashMap::new();
        let relative = |r: Rect| r.translate(-anchor.to_vec2());
        let shown = &self.shown;
        let mut add = |i: u32, boxes: &mut Vec<VisibleBox>| {
            *place_of.entry(i).or_insert_with(|| {
                boxes.push(VisibleBox { index: i, rect: relative(shown.rect(i)) });
                boxes.len() - 1
            })
        };
        let mut lines = Vec::new();
        if level == Level::Far {
            self.far_lines(&painter, rect, view, visible, palette);
            for &i in seen.iter().filter(|&&i| is_container(shown.picture.boxes[i as usize].kind)) {
                add(i, &mut boxes);
            }
            if let Some(chosen) = drawn.chosen {
                add(chosen, &mut boxes);
            }
        } else {
            for &i in &seen {
                add(i, &mut boxes);
            }
            for i in shown.lines_in(visible) {
                let Some(line) = shown.picture.lines.get(i as usize) else { continue };
                let ends = (add(line.from, &mut boxes), add(line.to, &mut boxes));
                let shift: Vec<Pos2> = shown.points(i).into_iter().map(|p| p - anchor.to_vec2()).collect();
                let state = line_state(line, i, drawn);
                let label_at =
                    line.label_at.filter(|_| look.fresh >= 1.0).map(|p| point(p) - anchor.to_vec2());
                lines.push(VisibleLine { index: i, ends, points: shift.into(), label_at, state });
            }
            // What is lit lies on top of the rest.
            lines.sort_by_key(|l| l.state != LineState::Plain);
        }
        let pan = view.to_canvas(anchor).to_vec2();
        let settled = graph::draw(ui, self.name, rect, pan, &look, &boxes, &lines);
        if level == Level::Far {
            self.far_boxes(&painter, rect, view, &seen, &look);
        }
        self.names_of_containers(&painter, rect, view, &seen, &look);
        let last = painter.add(Shape::Noop);
        if !settled {
            // The first frame of an instance; egui draws it once more before anybody sees it.
            ui.ctx().request_discard("the graph view was placed for the first time");
            ui.ctx().request_repaint();
            self.drawn = None;
            return;
        }
        self.kept = ui.ctx().graphics(|graphics| {
            let entries =
                graphics.get(ui.layer_id()).map(|list| list.all_entries().cloned().collect::<Vec<_>>());
            let mut entries = entries.unwrap_or_default();
            entries.truncate(last.0);
            entries.split_off(first.0.min(entries.len()))
        });
        self.drawn = Some(drawn.clone());
    }

    /// Lines of the far view: straight and thin, and only while they are few.
    fn far_lines(&self, painter: &egui::Painter, rect: Rect, view: View, visible: Rect, palette: &Palette) {
        let lines = self.shown.lines_in(visible);
        if lines.len() > 2_500 {
            return;
        }
        let stroke = Stroke::new(0.7, palette.edge.gamma_multiply(0.7));
        for i in lines {
            let points = self.shown.points(i);
            if let (Some(&a), Some(&b)) = (points.first(), points.last()) {
                let place = |p: Pos2| view.to_canvas(p) + rect.min.to_vec2();
                painter.line_segment([place(a), place(b)], stroke);
            }
        }
    }

    /// Boxes of the far view in one mesh.
    fn far_boxes(&self, painter: &egui::Painter, rect: Rect, view: View, seen: &[u32], look: &Look) {
        let mut mesh = Mesh::default();
        for &i in seen {
            let b = &self.shown.picture.boxes[i as usize];
            if is_container(b.kind) {
                continue;
            }
            let place = view.rect_to_canvas(self.shown.rect(i)).translate(rect.min.to_vec2());
            let place = Rect::from_center_size(place.center(), place.size().max(vec2(1.2, 1.2)));
            mesh.add_colored_rect(place, look.far_colour(b));
        }
        painter.add(Shape::mesh(mesh));
    }

    /// Names of open blocks whose title bar is too low for text.
    fn names_of_containers(
        &self,
        painter: &egui::Painter,
        rect: Rect,
        view: View,
        seen: &[u32],
        look: &Look,
    ) {
        if text::TITLE.size * look.text_zoom >= look::SQUEEZED {
            return;
        }
        let style = text::Style { size: 10.5, mono: false };
        let mut taken: Vec<Rect> = Vec::new();
        for &i in seen.iter().filter(|&&i| is_container(self.shown.picture.boxes[i as usize].kind)) {
            let b = &self.shown.picture.boxes[i as usize];
            let place = view.rect_to_canvas(self.shown.rect(i)).translate(rect.min.to_vec2());
            if place.width() < 70.0 || place.height() < 50.0 {
                continue;
            }
            let galley =
                self.labels.borrow_mut().get(painter.ctx(), &b.title, style, place.width() - 16.0, 1.0);
            let Some(galley) = galley else { continue };
            // Stands on the title bar and reaches up, away from what is in the block.
            let size = galley.size() + vec2(10.0, 3.0);
            let bottom = place.min.y + (BAR_HEIGHT * look.zoom).max(8.0);
            let pill = Rect::from_min_size(pos2(place.min.x + 4.0, bottom - size.y), size);
            if taken.iter().any(|t| t.intersects(pill)) {
                continue;
            }
            painter.rect_filled(pill, 5.0, look.palette.container_title);
            painter.galley(pill.min + vec2(5.0, 1.5), galley, look.palette.text);
            taken.push(pill);
        }
    }

    /// What lies above the graph and changes with the pointer: the line of a hovered tag, the card of a hovered box.
    fn overlay(&mut self, ui: &mut Ui, rect: Rect) {
        let Some(hovered) = self.hovered else { return };
        let view = self.camera.view();
        let Some(b) = self.shown.picture.boxes.get(hovered as usize) else { return };
        let palette = Palette::of(ui);
        let pointer = ui.input(|i| i.pointer.hover_pos());
        let at = pointer.map(|p| view.to_picture(p - rect.min.to_vec2()));
        let on_screen = |p: Pos2| view.to_canvas(p) + rect.min.to_vec2();
        for tag in b.tags.iter().filter(|tag| !tag.constant) {
            let tag_rect = graph::to_egui(&tag.rect);
            let Some(source) = self.shown.source(tag.value) else { continue };
            let lit = at.is_some_and(|at| tag_rect.contains(at));
            let colour = if lit { palette.accent } else { palette.badge.gamma_multiply(0.6) };
            let from = on_screen(self.shown.rect(source).center_bottom());
            let to = on_screen(tag_rect.center());
            let stroke = Stroke::new(if lit { 2.0 } else { 1.2 }, colour);
            ui.painter_at(rect).extend(Shape::dashed_line(&[from, to], stroke, 5.0, 4.0));
        }
    }

    /// Where a person has moved everything out of sight: the way back.
    fn way_back(&mut self, ui: &mut Ui, rect: Rect, still: bool) {
        if !self.lost || self.camera.is_flying() {
            return;
        }
        let place = Rect::from_center_size(rect.center(), vec2(190.0, 26.0)).intersect(rect);
        if ui.put(place, egui::Button::new("Nothing here; show all")).clicked() {
            self.fit_all(still);
        }
    }

    /// Controls over visible boxes, so that screen readers and tests find them.
    fn controls(&mut self, ui: &mut Ui, id: Id, rect: Rect, actions: &mut Vec<Action>) {
        let view = self.camera.view();
        let level = Level::of(view.zoom);
        let mut count = 0;
        for i in self.shown.boxes_in(view.visible(rect.size())) {
            let b = &self.shown.picture.boxes[i as usize];
            let full = view.rect_to_canvas(self.shown.rect(i)).translate(rect.min.to_vec2());
            let mut place = full.intersect(rect);
            if is_container(b.kind) {
                let bar = (BAR_HEIGHT * view.zoom as f32).max(LEAST_CONTROL);
                place.max.y = place.max.y.min(full.min.y + bar);
            } else if level == Level::Far {
                continue;
            }
            if place.height() < LEAST_CONTROL || place.width() < LEAST_CONTROL {
                continue;
            }
            count += 1;
            if count > MOST_CONTROLS {
                break;
            }
            let response = ui.interact(place, id.with(&b.place), Sense::click());
            response.widget_info(|| egui::WidgetInfo::labeled(egui::WidgetType::Button, true, &*b.label));
            self.clicks(&response, i, full, actions);
        }
    }
}

fn line_state(line: &crate::scene::Line, index: u32, drawn: &Drawn) -> LineState {
    if drawn.hovered_line == Some(index) {
        LineState::Hovered
    } else if drawn.chosen == Some(line.to) {
        LineState::In
    } else if drawn.chosen == Some(line.from) {
        LineState::Out
    } else {
        LineState::Plain
    }
}

/// A dot every 32 points of the picture, so that one sees the canvas move; none where they would be dense.
fn dots(painter: &egui::Painter, rect: Rect, view: View, palette: &Palette) {
    let mut step = 32.0 * view.zoom;
    while step < 22.0 {
        step *= 2.0;
    }
    let start = |pan: f64| pan.rem_euclid(step) as f32;
    let mut mesh = Mesh::default();
    let mut y = rect.min.y + start(view.pan[1]);
    while y < rect.max.y {
        let mut x = rect.min.x + start(view.pan[0]);
        while x < rect.max.x {
            mesh.add_colored_rect(Rect::from_center_size(pos2(x, y), vec2(1.4, 1.4)), palette.canvas_dots);
            x += step as f32;
        }
        y += step as f32;
    }
    painter.add(Shape::mesh(mesh));
}
