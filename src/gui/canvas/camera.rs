//! Where the canvas looks: zoom and pan with limits, fitting, and short flights from one view to the next.

use egui::{Pos2, Rect, Vec2, pos2, vec2};

/// Zoom goes from a whole 50,000-node model to reading glasses.
pub const ZOOM_MIN: f64 = 0.004;
pub const ZOOM_MAX: f64 = 4.0;
/// Length of a flight, in seconds.
const FLIGHT_SECONDS: f64 = 0.18;
/// Part of the canvas kept free around what is fitted, in points.
const FIT_MARGIN: f32 = 28.0;

/// One view: `screen = place * zoom + pan`, in points, relative to the canvas's corner. In f64, because a long model
/// is millions of points high.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct View {
    /// Points on the screen per point of the picture.
    pub zoom: f64,
    /// Where the picture's origin lies on the canvas, in points.
    pub pan: [f64; 2],
}

impl Default for View {
    fn default() -> View {
        View { zoom: 1.0, pan: [0.0, 0.0] }
    }
}

impl View {
    /// From the picture to the canvas (relative to its corner).
    pub fn to_canvas(self, place: Pos2) -> Pos2 {
        let at = |p: f32, pan: f64| (f64::from(p) * self.zoom + pan) as f32;
        pos2(at(place.x, self.pan[0]), at(place.y, self.pan[1]))
    }

    /// From the picture to the canvas, for a rectangle.
    pub fn rect_to_canvas(self, rect: Rect) -> Rect {
        Rect::from_min_max(self.to_canvas(rect.min), self.to_canvas(rect.max))
    }

    /// From the canvas (relative to its corner) to the picture.
    pub fn to_picture(self, at: Pos2) -> Pos2 {
        let place = |c: f32, pan: f64| ((f64::from(c) - pan) / self.zoom) as f32;
        pos2(place(at.x, self.pan[0]), place(at.y, self.pan[1]))
    }

    /// The part of the picture that a canvas of `size` shows.
    pub fn visible(self, size: Vec2) -> Rect {
        Rect::from_min_max(self.to_picture(Pos2::ZERO), self.to_picture(size.to_pos2()))
    }

    /// This view with the zoom multiplied by `factor`, the picture under `at` staying there.
    pub fn zoomed(self, at: Pos2, factor: f64) -> View {
        let zoom = (self.zoom * factor).clamp(ZOOM_MIN, ZOOM_MAX);
        let ratio = zoom / self.zoom;
        let pan = |c: f32, pan: f64| f64::from(c) - (f64::from(c) - pan) * ratio;
        View { zoom, pan: [pan(at.x, self.pan[0]), pan(at.y, self.pan[1])] }
    }

    /// This view moved by `by` points on the screen.
    pub fn moved(self, by: Vec2) -> View {
        View { pan: [self.pan[0] + f64::from(by.x), self.pan[1] + f64::from(by.y)], ..self }
    }

    /// The view that shows what has moved by `by` picture points at the same place of the screen.
    pub fn followed(self, by: Vec2) -> View {
        let pan = |pan: f64, by: f32| pan - f64::from(by) * self.zoom;
        View { pan: [pan(self.pan[0], by.x), pan(self.pan[1], by.y)], ..self }
    }

    /// This view for a picture whose things lie as `a` shows them where this one's lie as `b` shows them.
    pub fn apart_as(self, a: View, b: View) -> View {
        let ratio = self.zoom / b.zoom;
        let pan = |i: usize| self.pan[i] + (a.pan[i] - b.pan[i]) * ratio;
        View { zoom: self.zoom, pan: [pan(0), pan(1)] }
    }

    /// The view of a canvas of `size` that shows all of `rect`, not larger than `zoom_max`.
    pub fn fit(rect: Rect, size: Vec2, zoom_max: f64) -> View {
        let room = |side: f32| f64::from((side - 2.0 * FIT_MARGIN).max(side * 0.5).max(1.0));
        let by = |room: f64, side: f32| room / f64::from(side.max(1.0));
        let zoom = by(room(size.x), rect.width()).min(by(room(size.y), rect.height()));
        View::centred(rect.center(), size, zoom.min(zoom_max))
    }

    /// The view of a canvas of `size` with `place` in the middle.
    pub fn centred(place: Pos2, size: Vec2, zoom: f64) -> View {
        let zoom = zoom.clamp(ZOOM_MIN, ZOOM_MAX);
        let pan = |side: f32, p: f32| f64::from(side) / 2.0 - f64::from(p) * zoom;
        View { zoom, pan: [pan(size.x, place.x), pan(size.y, place.y)] }
    }

    /// The same view with another zoom and pan so that `rect` lies inside a canvas of `size`: moved as little as
    /// needed, zoomed out only when it does not fit.
    pub fn revealing(self, rect: Rect, size: Vec2) -> View {
        let canvas = Rect::from_min_size(Pos2::ZERO, size).shrink2(vec2(size.x, size.y) * 0.08);
        let shown = self.rect_to_canvas(rect);
        if shown.width() > canvas.width() || shown.height() > canvas.height() {
            return View::fit(rect, size, self.zoom);
        }
        let by = |low: f32, high: f32, from: f32, to: f32| {
            if low < from {
                from - low
            } else if high > to {
                to - high
            } else {
                0.0
            }
        };
        self.moved(vec2(
            by(shown.min.x, shown.max.x, canvas.min.x, canvas.max.x),
            by(shown.min.y, shown.max.y, canvas.min.y, canvas.max.y),
        ))
    }

    /// Between `self` (`t` = 0) and `to` (`t` = 1): zoom changes by equal factors, the middle of the canvas moves in
    /// step with it.
    fn towards(self, to: View, t: f64, size: Vec2) -> View {
        let zoom = self.zoom * (to.zoom / self.zoom).powf(t);
        let share = if (to.zoom - self.zoom).abs() < 1e-9 {
            t
        } else {
            // Moving by the same law as 1/zoom keeps one point of the screen still when there is one.
            (1.0 / zoom - 1.0 / self.zoom) / (1.0 / to.zoom - 1.0 / self.zoom)
        };
        let half = [f64::from(size.x) / 2.0, f64::from(size.y) / 2.0];
        let middle = |view: View, i: usize| (half[i] - view.pan[i]) / view.zoom;
        let at = |i: usize| {
            let (a, b) = (middle(self, i), middle(to, i));
            half[i] - (a + (b - a) * share) * zoom
        };
        View { zoom, pan: [at(0), at(1)] }
    }
}

/// A view that can fly to another one.
#[derive(Debug, Clone, Default)]
pub struct Camera {
    view: View,
    flight: Option<Flight>,
}

#[derive(Debug, Clone)]
struct Flight {
    from: View,
    to: View,
    /// Time of take-off in the frame clock, known with the first frame.
    start: Option<f64>,
}

impl Camera {
    /// What is shown in this frame.
    pub fn view(&self) -> View {
        self.view
    }

    /// Where the camera is or will be when it has arrived.
    pub fn target(&self) -> View {
        self.flight.as_ref().map_or(self.view, |flight| flight.to)
    }

    /// Shows `view` at once.
    pub fn set(&mut self, view: View) {
        *self = Camera { view, flight: None };
    }

    /// Flies to `view`, or jumps when `still` (reduced motion) is set.
    pub fn fly(&mut self, view: View, still: bool) {
        if still || view == self.view {
            self.set(view);
        } else {
            self.flight = Some(Flight { from: self.view, to: view, start: None });
        }
    }

    /// Shifts the view and a flight under way by `by` picture points, so that something that moved in the
    /// picture by that much stays where it is on the screen.
    pub fn follow(&mut self, by: Vec2) {
        self.view = self.view.followed(by);
        if let Some(flight) = &mut self.flight {
            flight.from = flight.from.followed(by);
            flight.to = flight.to.followed(by);
        }
    }

    /// Shifts the view and a flight under way by `by` points on the screen.
    pub fn shift(&mut self, by: Vec2) {
        self.view = self.view.moved(by);
        if let Some(flight) = &mut self.flight {
            flight.from = flight.from.moved(by);
            flight.to = flight.to.moved(by);
        }
    }

    /// True while a flight is under way.
    pub fn is_flying(&self) -> bool {
        self.flight.is_some()
    }

    /// Moves on to frame time `now` (seconds) on a canvas of `size`.
    pub fn advance(&mut self, now: f64, size: Vec2) {
        let Some(flight) = &mut self.flight else { return };
        let start = *flight.start.get_or_insert(now);
        let t = ((now - start) / FLIGHT_SECONDS).clamp(0.0, 1.0);
        let eased = 1.0 - (1.0 - t).powi(3);
        self.view = flight.from.towards(flight.to, eased, size);
        if t >= 1.0 {
            self.view = flight.to;
            self.flight = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Vec2 = vec2(800.0, 600.0);

    fn close(a: Pos2, b: Pos2) -> bool {
        (a - b).length() < 0.01
    }

    #[test]
    fn zooming_keeps_the_place_under_the_pointer() {
        let view = View { zoom: 0.5, pan: [40.0, -30.0] };
        let at = pos2(320.0, 200.0);
        let place = view.to_picture(at);
        for factor in [1.1, 0.5, 1000.0, 1e-9] {
            let zoomed = view.zoomed(at, factor);
            assert!(close(zoomed.to_canvas(place), at), "{factor}");
            assert!((ZOOM_MIN..=ZOOM_MAX).contains(&zoomed.zoom));
        }
    }

    #[test]
    fn fit_shows_everything_centred() {
        let rect = Rect::from_min_size(pos2(-100.0, 50.0), vec2(4000.0, 500.0));
        let view = View::fit(rect, SIZE, 1.0);
        let shown = view.rect_to_canvas(rect);
        assert!(Rect::from_min_size(Pos2::ZERO, SIZE).contains_rect(shown));
        assert!(close(shown.center(), (SIZE / 2.0).to_pos2()));
        let small = View::fit(Rect::from_min_size(Pos2::ZERO, vec2(10.0, 10.0)), SIZE, 1.0);
        assert_eq!(small.zoom, 1.0);
    }

    #[test]
    fn flights_end_where_they_should_and_stop() {
        let mut camera = Camera::default();
        let goal = View { zoom: 0.25, pan: [100.0, 100.0] };
        camera.fly(goal, false);
        for step in 0..20 {
            camera.advance(5.0 + f64::from(step) / 60.0, SIZE);
        }
        assert!(!camera.is_flying());
        assert_eq!(camera.view(), goal);
        camera.fly(View::default(), true);
        assert_eq!(camera.view(), View::default());
    }

    #[test]
    fn revealing_moves_only_when_needed() {
        let view = View::default();
        let inside = Rect::from_min_size(pos2(300.0, 300.0), vec2(50.0, 50.0));
        assert_eq!(view.revealing(inside, SIZE), view);
        let below = inside.translate(vec2(0.0, 1000.0));
        let moved = view.revealing(below, SIZE);
        assert_eq!(moved.zoom, 1.0);
        assert!(Rect::from_min_size(Pos2::ZERO, SIZE).contains_rect(moved.rect_to_canvas(below)));
    }

    #[test]
    fn following_keeps_what_moved_in_place() {
        let mut camera = Camera::default();
        camera.set(View { zoom: 0.5, pan: [10.0, 10.0] });
        let before = camera.view().to_canvas(pos2(100.0, 100.0));
        camera.follow(vec2(30.0, -8.0));
        assert!(close(camera.view().to_canvas(pos2(130.0, 92.0)), before));
    }
}
