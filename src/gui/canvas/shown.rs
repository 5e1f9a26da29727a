//! A picture made ready for the canvas: grids over boxes and lines, neighbours, and the way from the picture before.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use egui::{Pos2, Rect, Vec2, pos2, vec2};
use rustc_hash::FxHasher;

use super::graph::to_egui;
use super::index::Index;
use crate::ir::ValueId;
use crate::scene::{BoxKind, Picture, Place, Point};

/// Pictures with more boxes change at once, without moving.
const MOST_MOVING: usize = 4_000;
/// Length of the move from one picture to the next, in seconds.
const MOVE_SECONDS: f64 = 0.18;

type ByPlace = HashMap<Place, u32, BuildHasherDefault<FxHasher>>;

/// A picture with what is needed to find things in it.
#[derive(Default)]
pub struct Shown {
    pub picture: Arc<Picture>,
    boxes: Index,
    lines: Index,
    by_place: ByPlace,
    /// Lines that touch each box: starts in `touching`, one more than boxes.
    starts: Vec<u32>,
    touching: Vec<u32>,
    moving: Option<Moving>,
}

/// The way from the picture before.
struct Moving {
    /// Per box: how far from its new place it was, and how much larger; `None` for a new box.
    from: Vec<Option<(Vec2, Vec2)>>,
    start: Option<f64>,
    /// Share of the way that is left, 1 to 0.
    left: f32,
}

pub fn point(p: Point) -> Pos2 {
    pos2(p.x, p.y)
}

/// True for what encloses other boxes.
pub fn is_container(kind: BoxKind) -> bool {
    matches!(kind, BoxKind::OpenBlock | BoxKind::OpenNode | BoxKind::Body)
}

impl Shown {
    /// Makes a picture ready.
    pub fn new(picture: Arc<Picture>) -> Shown {
        let boxes = Index::new(picture.boxes.iter().map(|b| to_egui(&b.rect).expand(4.0)).collect());
        let span =
            |points: &[Point]| Rect::from_points(&points.iter().map(|p| point(*p)).collect::<Vec<_>>());
        let lines = Index::new(picture.lines.iter().map(|l| span(&l.points).expand(3.0)).collect());
        let by_place = picture.boxes.iter().zip(0..).map(|(b, i)| (b.place.clone(), i)).collect();
        let mut starts = vec![0u32; picture.boxes.len() + 1];
        let ends = |line: &crate::scene::Line| [line.from as usize, line.to as usize];
        let inside = |end: &usize| *end < picture.boxes.len();
        for line in &picture.lines {
            ends(line).into_iter().filter(inside).for_each(|end| starts[end + 1] += 1);
        }
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let mut next = starts.clone();
        let mut touching = vec![0u32; starts.last().copied().unwrap_or(0) as usize];
        for (line, i) in picture.lines.iter().zip(0..) {
            for end in ends(line).into_iter().filter(inside) {
                touching[next[end] as usize] = i;
                next[end] += 1;
            }
        }
        Shown { picture, boxes, lines, by_place, starts, touching, moving: None }
    }

    /// The box at a place.
    pub fn at(&self, place: &Place) -> Option<u32> {
        self.by_place.get(place).copied()
    }

    /// A box's rectangle once everything has arrived; `Rect::NOTHING` for none.
    pub fn final_rect(&self, index: u32) -> Rect {
        self.picture.boxes.get(index as usize).map_or(Rect::NOTHING, |b| to_egui(&b.rect))
    }

    /// A box's rectangle in this frame.
    pub fn rect(&self, index: u32) -> Rect {
        let rect = self.final_rect(index);
        let Some(moving) = &self.moving else { return rect };
        match moving.from.get(index as usize) {
            Some(Some((by, larger))) => {
                Rect::from_min_size(rect.min + *by * moving.left, rect.size() + *larger * moving.left)
            }
            _ => rect,
        }
    }

    /// A line's points in this frame: its ends follow their boxes, the rest is spread between.
    pub fn points(&self, index: u32) -> Vec<Pos2> {
        let Some(line) = self.picture.lines.get(index as usize) else { return Vec::new() };
        let mut points: Vec<Pos2> = line.points.iter().map(|p| point(*p)).collect();
        if self.moving.is_some() {
            let shift = |end: u32, bottom: bool| {
                let (now, then) = (self.rect(end), self.final_rect(end));
                if bottom {
                    now.center_bottom() - then.center_bottom()
                } else {
                    now.center_top() - then.center_top()
                }
            };
            let (first, last) = (shift(line.from, true), shift(line.to, false));
            let steps = points.len().saturating_sub(1).max(1) as f32;
            for (i, p) in points.iter_mut().enumerate() {
                *p += first + (last - first) * (i as f32 / steps);
            }
        }
        points
    }

    /// 0 to 1 while new boxes appear.
    pub fn fresh(&self) -> f32 {
        self.moving.as_ref().map_or(1.0, |m| 1.0 - m.left)
    }

    /// Boxes that touch `area`, containers before what is in them.
    pub fn boxes_in(&self, area: Rect) -> Vec<u32> {
        self.boxes.touching(area)
    }

    /// Lines whose surroundings touch `area`.
    pub fn lines_in(&self, area: Rect) -> Vec<u32> {
        self.lines.touching(area)
    }

    /// The innermost box under a point.
    pub fn box_at(&self, at: Pos2) -> Option<u32> {
        let around = Rect::from_center_size(at, Vec2::ZERO);
        self.boxes_in(around).into_iter().rev().find(|&i| self.final_rect(i).contains(at))
    }

    /// The line that passes within `distance` of a point.
    pub fn line_at(&self, at: Pos2, distance: f32) -> Option<u32> {
        let around = Rect::from_center_size(at, Vec2::splat(distance * 2.0));
        let gap = |i: u32| {
            let points = self.points(i);
            points.windows(2).map(|p| distance_to(at, p[0], p[1])).fold(f32::INFINITY, f32::min)
        };
        let near = self.lines_in(around).into_iter().map(|i| (gap(i), i)).filter(|(gap, _)| *gap <= distance);
        near.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, i)| i)
    }

    /// Lines that start or end at a box.
    pub fn lines_of(&self, index: u32) -> &[u32] {
        let i = index as usize;
        match (self.starts.get(i), self.starts.get(i + 1)) {
            (Some(&from), Some(&to)) => &self.touching[from as usize..to as usize],
            _ => &[],
        }
    }

    /// The box that an arrow key leads to: down and up along lines, left and right to a neighbour at about the same
    /// height in the same container.
    pub fn step(&self, index: u32, direction: Vec2) -> Option<u32> {
        let here = self.final_rect(index);
        let lines = &self.picture.lines;
        let middle = |i: u32| self.final_rect(i).center();
        if direction.y != 0.0 {
            let ends = self.lines_of(index).iter().filter_map(|&l| lines.get(l as usize)).filter_map(|l| {
                if direction.y > 0.0 && l.from == index {
                    Some(l.to)
                } else if direction.y < 0.0 && l.to == index {
                    Some(l.from)
                } else {
                    None
                }
            });
            return ends.min_by(|&a, &b| {
                let off = |i: u32| (middle(i).x - here.center().x).abs();
                off(a).total_cmp(&off(b)).then(a.cmp(&b))
            });
        }
        let parent = self.picture.boxes.get(index as usize)?.parent;
        let band = Rect::from_x_y_ranges(f32::NEG_INFINITY..=f32::INFINITY, here.y_range());
        let bounds = to_egui(&self.picture.bounds);
        let row = self.boxes_in(band.intersect(bounds));
        row.into_iter()
            .filter(|&i| i != index && self.picture.boxes[i as usize].parent == parent)
            .filter(|&i| (middle(i).x - here.center().x) * direction.x > 0.0)
            .min_by(|&a, &b| {
                let off = |i: u32| (middle(i).x - here.center().x).abs();
                off(a).total_cmp(&off(b)).then(a.cmp(&b))
            })
    }

    /// The box that a value shown as tags comes from.
    pub fn source(&self, value: ValueId) -> Option<u32> {
        self.picture.far.iter().find(|far| far.value == value).map(|far| far.from)
    }

    /// Starts the move from `before`, whose places are shifted by `by` (the camera follows by as much).
    pub fn start_moving(&mut self, before: &Shown, by: Vec2) {
        if self.picture.boxes.len() > MOST_MOVING {
            return;
        }
        let from = |i: u32| {
            let old = before.rect(before.at(&self.picture.boxes[i as usize].place)?);
            let new = self.final_rect(i);
            Some((old.min + by - new.min, old.size() - new.size()))
        };
        let from: Vec<_> = (0..self.picture.boxes.len() as u32).map(from).collect();
        self.moving = Some(Moving { from, start: None, left: 1.0 });
    }

    /// Moves on to frame time `now`; true while something moves.
    pub fn advance(&mut self, now: f64) -> bool {
        let Some(moving) = &mut self.moving else { return false };
        let start = *moving.start.get_or_insert(now);
        let t = ((now - start) / MOVE_SECONDS).clamp(0.0, 1.0) as f32;
        moving.left = (1.0 - t).powi(3);
        if t >= 1.0 {
            self.moving = None;
        }
        true
    }

    /// How far the best common landmark of two pictures has moved: `anchor` if both have it, else the box nearest to
    /// `around`. `None` when they have nothing in common.
    pub fn shift_from(&self, before: &Shown, anchor: Option<&Place>, around: Rect) -> Option<Vec2> {
        let moved = |place: &Place| {
            let (old, new) = (before.at(place)?, self.at(place)?);
            Some(self.final_rect(new).min - before.final_rect(old).min)
        };
        if let Some(by) = anchor.and_then(moved) {
            return Some(by);
        }
        let middle = around.center();
        let mut seen = before.boxes_in(around);
        if seen.is_empty() {
            seen = (0..before.picture.boxes.len() as u32).collect();
        }
        seen.sort_by(|&a, &b| {
            let off = |i: u32| (before.final_rect(i).center() - middle).length();
            off(a).total_cmp(&off(b)).then(a.cmp(&b))
        });
        seen.iter().find_map(|&i| moved(&before.picture.boxes[i as usize].place))
    }
}

fn distance_to(p: Pos2, a: Pos2, b: Pos2) -> f32 {
    let along = b - a;
    let length = along.length_sq();
    let t = if length > 0.0 { ((p - a).dot(along) / length).clamp(0.0, 1.0) } else { 0.0 };
    (p - (a + along * t)).length()
}

/// A picture's bounds, at least one point large.
pub fn bounds(picture: &Picture) -> Rect {
    let rect = to_egui(&picture.bounds);
    Rect::from_min_size(rect.min, rect.size().max(vec2(1.0, 1.0)))
}
