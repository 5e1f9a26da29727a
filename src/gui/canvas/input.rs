//! Pointer and keys on the canvas: pan, zoom, hover, choose, open, walk along lines.

use egui::{Id, Key, Modifiers, Pos2, Rect, Response, Ui, vec2};

use super::{Action, Canvas, Request, View, graph, is_container, look};

/// How near to a line the pointer has to be, in points on the screen.
const REACH: f32 = 5.0;
/// One notch of a wheel (about 50 points) zooms by a little under 20 %.
const ZOOM_PER_POINT: f64 = 0.0035;

impl Canvas {
    /// Reads what happened since the last frame; moves the camera and collects actions.
    pub(super) fn input(
        &mut self,
        ui: &mut Ui,
        id: Id,
        rect: Rect,
        request: &Request,
        chosen: Option<u32>,
        actions: &mut Vec<Action>,
    ) {
        // Interaction is worked out at the start of a frame, so the response can be read before the widget is made.
        let response = ui.ctx().read_response(id);
        let over = response.as_ref().is_some_and(Response::contains_pointer);
        let pointer = ui.input(|i| i.pointer.hover_pos()).filter(|p| over && rect.contains(*p));
        if let Some(response) = &response {
            if response.dragged() {
                let by = response.drag_delta();
                self.camera.set(self.camera.view().moved(by));
            }
            if response.clicked() || response.double_clicked() {
                ui.memory_mut(|memory| memory.stop_text_input());
                self.background_click(response, rect, actions);
            }
        }
        if let Some(pointer) = pointer {
            self.wheel(ui, pointer - rect.min.to_vec2(), request.wheel_zooms);
        }
        self.hover(pointer.map(|p| p - rect.min.to_vec2()), response.is_some_and(|r| r.dragged()));
        if let (Some(pointer), Some(hovered)) = (pointer, self.hovered) {
            self.tag_click(ui, pointer - rect.min.to_vec2(), hovered, actions);
            self.card(ui, rect, hovered, request);
        }
        self.keys(ui, request, chosen, actions);
    }

    fn wheel(&mut self, ui: &Ui, at: Pos2, wheel_zooms: bool) {
        let (scroll, pinch, shift) =
            ui.input(|i| (i.smooth_scroll_delta(), f64::from(i.zoom_delta()), i.modifiers.shift));
        // Farther out than this there is nothing to see.
        let least = self.fitting_zoom() * 0.5;
        let zoomed = |view: View, factor: f64| {
            if factor < 1.0 && view.zoom * factor < least {
                view.zoomed(at, (least / view.zoom).min(1.0))
            } else {
                view.zoomed(at, factor)
            }
        };
        if pinch != 1.0 {
            self.camera.set(zoomed(self.camera.view(), pinch));
        } else if scroll != egui::Vec2::ZERO {
            let view = self.camera.view();
            let view = if wheel_zooms && !shift && scroll.x == 0.0 {
                zoomed(view, (f64::from(scroll.y) * ZOOM_PER_POINT).exp())
            } else {
                view.moved(scroll)
            };
            self.camera.set(view);
        }
    }

    /// Finds what is under the pointer (relative to the canvas's corner).
    fn hover(&mut self, pointer: Option<Pos2>, dragging: bool) {
        let Some(pointer) = pointer.filter(|_| !dragging) else {
            (self.hovered, self.hovered_line) = (None, None);
            return;
        };
        let view = self.camera.view();
        let at = view.to_picture(pointer);
        let found = self.shown.box_at(at);
        // The inside of an open block is ground, not a thing.
        self.hovered = found.filter(|&i| self.is_handle(i, at, view));
        self.hovered_line = match self.hovered {
            Some(_) => None,
            None => self.shown.line_at(at, REACH / view.zoom as f32),
        };
    }

    /// True where a click means the box itself: everywhere on a closed one, on the title bar of an open one.
    fn is_handle(&self, index: u32, at: Pos2, view: View) -> bool {
        let Some(b) = self.shown.picture.boxes.get(index as usize) else { return false };
        let bar = crate::scene::measure::BAR_HEIGHT.max(11.0 / view.zoom as f32);
        !is_container(b.kind) || at.y <= b.rect.min.y + bar
    }

    fn background_click(&mut self, response: &Response, rect: Rect, actions: &mut Vec<Action>) {
        let Some(pointer) = response.interact_pointer_pos() else { return };
        let view = self.camera.view();
        let at = view.to_picture(pointer - rect.min.to_vec2());
        let Some(index) = self.shown.box_at(at) else {
            actions.push(Action::Choose(None));
            return;
        };
        if self.is_handle(index, at, view) {
            let full = view.rect_to_canvas(self.shown.rect(index)).translate(rect.min.to_vec2());
            self.clicks(response, index, full, actions);
        } else {
            actions.push(Action::Choose(None));
        }
    }

    /// A click chooses; a double click, or a click on the small arrow, opens or closes.
    pub(super) fn clicks(&self, response: &Response, index: u32, full: Rect, actions: &mut Vec<Action>) {
        let Some(b) = self.shown.picture.boxes.get(index as usize) else { return };
        let opens = self.opens(index);
        let zoom = self.camera.view().zoom as f32;
        let on_arrow = response
            .interact_pointer_pos()
            .is_some_and(|p| zoom > 0.35 && p.x < full.min.x + 22.0 * zoom && p.x > full.min.x);
        if response.double_clicked() && opens {
            actions.push(Action::Toggle(b.place.clone()));
        } else if response.clicked() {
            actions.push(Action::Choose(Some(b.place.clone())));
            if opens && on_arrow {
                actions.push(Action::Toggle(b.place.clone()));
            }
        }
    }

    fn opens(&self, index: u32) -> bool {
        use crate::scene::BoxKind::{ClosedBlock, ClosedNode, OpenBlock, OpenNode};
        let kind = self.shown.picture.boxes.get(index as usize).map(|b| b.kind);
        matches!(kind, Some(ClosedBlock | ClosedNode | OpenBlock | OpenNode))
    }

    /// A click on the tag of a far value goes to where it comes from.
    fn tag_click(&self, ui: &Ui, at: Pos2, hovered: u32, actions: &mut Vec<Action>) {
        if !ui.input(|i| i.pointer.primary_clicked())
            || look::Level::of(self.camera.view().zoom) < look::Level::Full
        {
            return;
        }
        let at = self.camera.view().to_picture(at);
        let tags = self.shown.picture.boxes.get(hovered as usize).map_or(&[][..], |b| &b.tags);
        if let Some(tag) = tags.iter().find(|t| !t.constant && graph::to_egui(&t.rect).contains(at)) {
            actions.push(Action::Producer(tag.value));
        }
    }

    /// The card of the box under the pointer, once the pointer rests.
    fn card(&self, ui: &mut Ui, rect: Rect, hovered: u32, request: &Request) {
        let Some(b) = self.shown.picture.boxes.get(hovered as usize) else { return };
        let rests = ui.input(|i| i.pointer.time_since_last_movement()) > ui.style().interaction.tooltip_delay;
        if !rests || ui.input(|i| i.pointer.any_down()) {
            let delay = ui.style().interaction.tooltip_delay;
            ui.ctx().request_repaint_after(std::time::Duration::from_secs_f32(delay));
            return;
        }
        let place = self.camera.view().rect_to_canvas(self.shown.rect(hovered)).translate(rect.min.to_vec2());
        egui::Tooltip::always_open(
            ui.ctx().clone(),
            ui.layer_id(),
            ui.id().with("card"),
            place.intersect(rect),
        )
        .gap(8.0)
        .show(|ui| (request.card)(ui, b));
    }

    fn keys(&mut self, ui: &Ui, request: &Request, chosen: Option<u32>, actions: &mut Vec<Action>) {
        if ui.ctx().text_edit_focused() || egui::Popup::is_any_open(ui.ctx()) {
            return;
        }
        let pressed = |key: Key| ui.input_mut(|i| i.consume_key(Modifiers::NONE, key));
        let arrows = [
            (Key::ArrowDown, vec2(0.0, 1.0)),
            (Key::ArrowUp, vec2(0.0, -1.0)),
            (Key::ArrowLeft, vec2(-1.0, 0.0)),
            (Key::ArrowRight, vec2(1.0, 0.0)),
        ];
        for (key, direction) in arrows {
            if !pressed(key) {
                continue;
            }
            let next = match chosen {
                Some(index) => self.shown.step(index, direction),
                None => self.shown.picture.boxes.iter().position(|b| !is_container(b.kind)).map(|i| i as u32),
            };
            let place = next.and_then(|i| self.shown.picture.boxes.get(i as usize)).map(|b| b.place.clone());
            if let (Some(place), Some(next)) = (place, next) {
                self.nudge(next, request.still);
                actions.push(Action::Choose(Some(place)));
            }
        }
        let Some(index) = chosen else { return };
        let Some(b) = self.shown.picture.boxes.get(index as usize) else { return };
        if pressed(Key::Enter) && self.opens(index) {
            actions.push(Action::Toggle(b.place.clone()));
        }
        if pressed(Key::Backspace) {
            actions.push(Action::Up);
        }
        if ui.input(|i| i.events.contains(&egui::Event::Copy)) {
            let name = if b.subtitle.is_empty() { &b.title } else { &b.subtitle };
            actions.push(Action::Copy(name.to_string()));
        }
    }
}
