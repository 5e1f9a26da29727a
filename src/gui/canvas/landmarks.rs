//! Two pictures of one model under one camera: which place of the one lies beside which place of the other.

use egui::{Pos2, Rect, Vec2, pos2, vec2};

use super::Canvas;
use super::camera::View;
use super::shown::{Shown, bounds, is_container};
use crate::scene::Place;

/// Boxes that two pictures have in common, from top to bottom: between two of them places are interpolated, so that
/// scrolling the one scrolls the other without a jump.
#[derive(Default)]
pub struct Landmarks {
    /// Where in the one picture, and where in the other; downward in both.
    pairs: Vec<(Pos2, Pos2)>,
}

impl Landmarks {
    /// The common boxes of two pictures. The ends of both count as one more at each end.
    pub fn new(here: &Shown, there: &Shown) -> Landmarks {
        let mut pairs: Vec<(Pos2, Pos2)> = Vec::new();
        for (i, b) in here.picture.boxes.iter().enumerate().filter(|(_, b)| !is_container(b.kind)) {
            if let Some(other) = there.at(&b.place) {
                pairs.push((here.final_rect(i as u32).center(), there.final_rect(other).center()));
            }
        }
        pairs.sort_by(|a, b| a.0.y.total_cmp(&b.0.y).then(a.0.x.total_cmp(&b.0.x)));
        let (a, b): (Rect, Rect) = (bounds(&here.picture), bounds(&there.picture));
        let mut downward = vec![(a.center_top(), b.center_top())];
        for pair in pairs {
            let last = downward[downward.len() - 1];
            // Branches may be in another order there; what would lead upward is left out.
            if pair.0.y > last.0.y && pair.1.y >= last.1.y {
                downward.push(pair);
            }
        }
        downward.push((a.center_bottom(), b.center_bottom()));
        Landmarks { pairs: downward }
    }

    /// How far what lies at a height of the one picture lies from there in the other.
    pub fn offset(&self, y: f32) -> Vec2 {
        offset_at(&self.pairs, y, |pair| (pair.0, pair.1))
    }

    /// The same from the other picture to the one.
    pub fn offset_back(&self, y: f32) -> Vec2 {
        offset_at(&self.pairs, y, |pair| (pair.1, pair.0))
    }
}

/// One camera for two canvases.
#[derive(Default)]
pub struct Link {
    landmarks: Landmarks,
    /// Of the pictures that the landmarks are of.
    of: Option<(u64, u64)>,
}

impl Link {
    /// The view of the other canvas that goes with what one shows: the chosen box lies at the same height and side in
    /// both as long as it is in sight, else what is nearest to it. Never nothing, while the one shows something.
    pub fn view(&mut self, one: &Canvas, other: &Canvas, chosen: Option<&Place>) -> View {
        self.learn(one, other);
        let view = one.current_view();
        let visible = view.visible(one.size());
        let rects = chosen.map(|place| (one.rect_of(place), other.rect_of(place)));
        let by = match rects {
            Some((Some(here), Some(there))) if here.intersects(visible) => {
                there.center_top() - here.center_top()
            }
            // Out of sight: the edge nearest to it, so that scrolling on does not jump.
            Some((Some(here), _)) => {
                self.landmarks.offset(here.center().y.clamp(visible.min.y, visible.max.y))
            }
            _ => self.landmarks.offset(visible.center().y),
        };
        let linked = view.followed(by);
        if other.sees_anything(linked) || !one.sees_anything(view) {
            return linked;
        }
        other.nearest(linked)
    }

    /// Moves the one canvas so that a box is seen that only the other one has.
    pub fn reveal(&mut self, one: &mut Canvas, other: &Canvas, place: &Place, still: bool) -> bool {
        self.learn(one, other);
        let Some(rect) = other.rect_of(place) else { return false };
        let rect = rect.translate(self.landmarks.offset_back(rect.center().y));
        one.reveal_rect(rect, rect, still);
        true
    }

    fn learn(&mut self, one: &Canvas, other: &Canvas) {
        let of = Some((one.generation, other.generation));
        if self.of != of {
            self.landmarks = Landmarks::new(&one.shown, &other.shown);
            self.of = of;
        }
    }
}

fn offset_at(pairs: &[(Pos2, Pos2)], y: f32, turn: impl Fn(&(Pos2, Pos2)) -> (Pos2, Pos2)) -> Vec2 {
    let after = pairs.partition_point(|pair| turn(pair).0.y <= y);
    let at = |i: usize| pairs.get(i).map(&turn).unwrap_or_else(|| (pos2(0.0, y), pos2(0.0, y)));
    let ((a, c), (b, d)) = match after {
        0 => (at(0), at(0)),
        n if n == pairs.len() => (at(n - 1), at(n - 1)),
        n => (at(n - 1), at(n)),
    };
    let t = if b.y > a.y { ((y - a.y) / (b.y - a.y)).clamp(0.0, 1.0) } else { 0.0 };
    let (from, to) = (c - a, d - b);
    vec2(from.x + (to.x - from.x) * t, from.y + (to.y - from.y) * t)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heights_between_landmarks_are_interpolated_both_ways() {
        let pairs = vec![(pos2(0.0, 0.0), pos2(0.0, 0.0)), (pos2(0.0, 100.0), pos2(10.0, 50.0))];
        let landmarks = Landmarks { pairs };
        assert_eq!(landmarks.offset(50.0), vec2(5.0, -25.0));
        assert_eq!(landmarks.offset_back(25.0), vec2(-5.0, 25.0));
        assert_eq!(landmarks.offset(500.0), vec2(10.0, -50.0));
        assert_eq!(Landmarks::default().offset(7.0), Vec2::ZERO);
    }
}
