//! Where the canvas looks: at a picture's start, after a change of the picture, and on the way to a box. While there are
//! boxes, a change never leaves the canvas empty.

use egui::{Pos2, Rect, Vec2, pos2};

use super::camera::View;
use super::minimap::Minimap;
use super::shown::{Shown, bounds, is_container};
use super::{Canvas, Request};
use crate::scene::Place;
use crate::scene::measure::BAR_HEIGHT;

/// The first picture is not shown smaller than this, even if it does not fit.
const READABLE: f64 = 0.55;
/// So much of a box has to be on the screen, in points, to count as seen.
const LEAST_SEEN: f32 = 10.0;

impl Canvas {
    /// The zoom at which the whole picture is seen.
    pub(super) fn fitting_zoom(&self) -> f64 {
        View::fit(bounds(&self.shown.picture), self.size, 1.0).zoom
    }

    /// Flies so that the whole picture is seen.
    pub fn fit_all(&mut self, still: bool) {
        let view = View::fit(bounds(&self.shown.picture), self.size, 1.0);
        self.camera.fly(view, still);
    }

    /// Flies to a box and brings it to a readable size; false when it is not in the picture.
    pub fn fit_to(&mut self, place: &Place, still: bool) -> bool {
        let Some(rect) = self.rect_of(place) else { return false };
        self.camera.fly(View::fit(rect.expand(60.0), self.size, 1.0), still);
        true
    }

    /// Flies to a box that is out of sight or too small to read; false when it is not in the picture.
    pub fn reveal(&mut self, place: &Place, still: bool) -> bool {
        let Some(index) = self.shown.at(place) else { return false };
        self.reveal_rect(self.shown.final_rect(index), self.title_of(index), still);
        true
    }

    /// The same for a place in the picture, which is in sight when its `title` is.
    pub(super) fn reveal_rect(&mut self, rect: Rect, title: Rect, still: bool) {
        let now = self.camera.target();
        if now.zoom < 0.4 {
            self.camera.fly(View::fit(rect.expand(80.0), self.size, 0.75), still);
        } else if !now.visible(self.size).shrink((12.0 / now.zoom) as f32).contains_rect(title) {
            let fit = View::fit(rect, self.size, now.zoom).zoom;
            self.camera.fly(View::centred(rect.center(), self.size, fit), still);
        }
    }

    /// Where a box lies in the picture.
    pub fn rect_of(&self, place: &Place) -> Option<Rect> {
        self.shown.at(place).map(|index| self.shown.final_rect(index))
    }

    /// Where the last box lies: for tests that look at the end of a picture.
    #[cfg(test)]
    pub fn rect_of_last(&self) -> Rect {
        self.shown.final_rect((self.shown.picture.boxes.len() as u32).saturating_sub(1))
    }

    /// Flies as little as needed to see a box, for walking along lines.
    pub(super) fn nudge(&mut self, index: u32, still: bool) {
        let view = self.camera.target().revealing(self.shown.final_rect(index), self.size);
        self.camera.fly(view, still);
    }

    /// Takes over the size and the picture of this frame. The camera follows: what was opened last, or else what lies
    /// in the middle, stays where it is; when nothing would be left in sight, it goes to what is chosen or starts anew.
    pub fn prepare(&mut self, size: Vec2, request: &Request) {
        let sized = self.size != size;
        let known = self.size != Vec2::ZERO;
        let was_seen = known && self.sees_anything(self.camera.target());
        if sized && known {
            // A panel was opened or the window resized: the middle stays the middle.
            self.camera.shift((size - self.size) / 2.0);
        }
        self.size = size;
        let changed = self.take_picture(request);
        if size.x <= 1.0 || self.shown.picture.boxes.is_empty() {
            return;
        }
        if request.linked {
            self.unseen = false;
        } else if self.unseen {
            self.camera.set(self.first_view());
            self.unseen = false;
        } else if (changed || sized && was_seen) && !self.sees_anything(self.camera.target()) {
            self.find_something(request);
        }
    }

    /// Takes over a new picture; false when it is the same one.
    fn take_picture(&mut self, request: &Request) -> bool {
        if std::sync::Arc::ptr_eq(&self.shown.picture, request.picture) {
            return false;
        }
        let mut new = Shown::new(request.picture.clone());
        if request.linked {
            // The other canvas's camera decides; boxes appear where they belong.
        } else {
            let visible = self.camera.target().visible(self.size);
            // What is out of sight cannot stay in its place on the screen.
            let in_sight =
                |place: &&Place| self.shown.at(place).is_some_and(|i| self.title_of(i).intersects(visible));
            let anchor = [request.anchor, request.chosen].into_iter().flatten().find(in_sight);
            match new.shift_from(&self.shown, anchor, visible) {
                Some(by) => {
                    self.camera.follow(by);
                    if !request.still {
                        new.start_moving(&self.shown, by);
                    }
                }
                None => self.unseen = true,
            }
        }
        self.minimap = Minimap::new(&new);
        self.shown = new;
        self.generation += 1;
        (self.hovered, self.hovered_line) = (None, None);
        true
    }

    /// A box, or of an open one its title bar.
    fn title_of(&self, index: u32) -> Rect {
        let rect = self.shown.final_rect(index);
        match self.shown.picture.boxes.get(index as usize) {
            Some(b) if is_container(b.kind) => rect.with_max_y(rect.max.y.min(rect.min.y + BAR_HEIGHT)),
            _ => rect,
        }
    }

    /// True when a view shows at least a part of a closed box or of a title.
    pub fn sees_anything(&self, view: View) -> bool {
        let visible = view.visible(self.size);
        let least = (f64::from(LEAST_SEEN) / view.zoom) as f32;
        let seen = |&i: &u32| {
            let title = self.title_of(i);
            let part = title.intersect(visible);
            part.is_positive()
                && part.width() >= least.min(title.width() * 0.5)
                && part.height() >= least.min(title.height() * 0.5)
        };
        self.shown.boxes_in(visible).iter().any(seen)
    }

    /// A view moved so that the box nearest to its middle is in the middle.
    pub(super) fn nearest(&self, view: View) -> View {
        let middle = view.visible(self.size).center();
        let titles = (0..self.shown.picture.boxes.len() as u32).map(|i| self.title_of(i));
        let off = |title: &Rect| title.distance_sq_to_pos(middle);
        let nearest = titles.min_by(|a, b| off(a).total_cmp(&off(b)));
        nearest.map_or(view, |title| View::centred(title.center(), self.size, view.zoom))
    }

    /// True when something laid over this place of the screen would cover a closed box or a title.
    pub fn covers(&self, place: Rect) -> bool {
        let view = self.camera.view();
        let to_picture = |p: Pos2| view.to_picture(p - self.corner);
        let place = Rect::from_min_max(to_picture(place.min), to_picture(place.max));
        self.shown.boxes_in(place).iter().any(|&i| self.title_of(i).intersects(place))
    }

    /// Goes to what is chosen, or else to the start.
    fn find_something(&mut self, request: &Request) {
        let wanted = [request.chosen, request.anchor].into_iter().flatten();
        let found = wanted.filter_map(|place| self.shown.at(place)).next();
        let zoom = self.camera.target().zoom;
        let view = match found {
            Some(index) if zoom >= READABLE * 0.5 => {
                let title = self.title_of(index);
                View::centred(title.center(), self.size, View::fit(title, self.size, zoom).zoom)
            }
            _ => self.first_view(),
        };
        self.camera.set(view);
    }

    /// All of the picture, or its top where that would be too small to read.
    fn first_view(&self) -> View {
        let all = bounds(&self.shown.picture);
        let view = View::fit(all, self.size, 1.0);
        if view.zoom >= READABLE {
            return view;
        }
        let zoom = READABLE;
        let first = self.shown.picture.boxes.iter().position(|b| !is_container(b.kind)).unwrap_or(0);
        let start = self.shown.final_rect(first as u32);
        let fits = f64::from(all.width()) * zoom <= f64::from(self.size.x);
        let x = if fits || !start.is_finite() { all.center().x } else { start.center().x };
        let top = all.min.y - 24.0;
        let view = View::centred(pos2(x, top + self.size.y / 2.0 / zoom as f32), self.size, zoom);
        if self.sees_anything(view) { view } else { self.nearest(view) }
    }
}
