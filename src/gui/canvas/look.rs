//! What boxes and lines of a picture look like on the screen: shapes for egui's painter, by level of detail.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use egui::epaint::{CornerRadius, PathShape, PathStroke, RectShape, TextShape};
use egui::{Color32, Context, Galley, Pos2, Rect, Shape, Stroke, StrokeKind, Vec2, pos2, vec2};

use super::text::{DETAIL, Labels, SMALL, Style, TITLE};
use crate::gui::theme::{Palette, mark_dashes, mix};
use crate::ir::ValueId;
use crate::scene::measure::{BAR_HEIGHT, CHEVRON, LINE_HEIGHT, PAD, TITLE_HEIGHT};
use crate::scene::palette::mark_sign;
use crate::scene::{BoxKind, Mark, Picture, PictureBox};

/// Distance of the coloured bar at a node's left from the border, in picture points; its width is a little less.
const STRIPE: f32 = 4.0;

/// Titles that would be smaller than this are written at about this size instead, where there is room, in points.
pub const SQUEEZED: f32 = 9.0;

/// How much is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Coloured rectangles, painted in one batch.
    Far,
    /// Boxes; names where they fit.
    Plain,
    /// Boxes with titles.
    Titles,
    /// Everything.
    Full,
}

impl Level {
    /// The level for a zoom.
    pub fn of(zoom: f64) -> Level {
        match zoom {
            z if z < 0.15 => Level::Far,
            z if z < 0.40 => Level::Plain,
            z if z < 0.70 => Level::Titles,
            _ => Level::Full,
        }
    }
}

/// How a line stands to what is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineState {
    Plain,
    /// Into the chosen box.
    In,
    /// Out of the chosen box.
    Out,
    /// Under the pointer.
    Hovered,
}

/// Everything that drawing one frame needs to know.
pub struct Look {
    pub ctx: Context,
    pub picture: Arc<Picture>,
    pub palette: &'static Palette,
    pub level: Level,
    /// Zoom of the canvas, and that of its labels.
    pub zoom: f32,
    pub text_zoom: f32,
    pub chosen: Option<u32>,
    /// Values whose tags at the chosen box are meant.
    pub lit: Vec<ValueId>,
    pub hovered: Option<u32>,
    /// Operator families are shown by colour; off where colour says what differs.
    pub families: bool,
    /// 0 to 1 while boxes that are new appear.
    pub fresh: f32,
    pub labels: Rc<RefCell<Labels>>,
}

impl Look {
    fn text(&self, text: &str, style: Style, width: f32) -> Option<Arc<Galley>> {
        self.labels.borrow_mut().get(&self.ctx, text, style, width, self.text_zoom)
    }

    fn fill_of(&self, b: &PictureBox) -> Color32 {
        let p = self.palette;
        match (b.mark, b.kind) {
            (mark, _) if mark != Mark::Same => p.mark_fill(mark),
            (_, BoxKind::Input | BoxKind::Output) => p.sunken,
            (_, BoxKind::ClosedBlock) if self.families => mix(p.surface, p.node_fill(b.family), 0.65),
            (_, BoxKind::ClosedBlock) => p.surface,
            _ if !self.families => p.surface,
            _ if self.level <= Level::Plain => mix(p.surface, p.family(b.family), 0.38),
            _ => p.node_fill(b.family),
        }
    }

    fn outline_of(&self, b: &PictureBox) -> Stroke {
        let p = self.palette;
        let thin = if self.level <= Level::Plain { 0.8 } else { 1.0 };
        match (b.mark, b.kind) {
            (Mark::Added, _) => Stroke::new(2.2, p.mark(b.mark)),
            (mark, _) if mark != Mark::Same => Stroke::new(1.6, p.mark(mark)),
            (_, BoxKind::ClosedBlock | BoxKind::ClosedNode | BoxKind::Input | BoxKind::Output) => {
                Stroke::new(thin, p.container_outline)
            }
            _ if !self.families => Stroke::new(thin, p.outline),
            _ => Stroke::new(thin, p.node_outline(b.family)),
        }
    }

    /// The colour of a box in the far view.
    pub fn far_colour(&self, b: &PictureBox) -> Color32 {
        let p = self.palette;
        match (b.mark, b.kind) {
            (mark, _) if mark != Mark::Same => p.mark(mark),
            _ if b.hits > 0 => p.found,
            (_, BoxKind::ClosedBlock) if !self.families => mix(p.canvas, p.container_outline, 0.45),
            _ if !self.families => mix(p.canvas, p.outline, 0.5),
            _ => mix(p.canvas, p.family(b.family), 0.65),
        }
    }

    /// The ground of an open block and its title bar, painted below everything else.
    pub fn container_fill(&self, b: &PictureBox, rect: Rect) -> Vec<Shape> {
        let p = self.palette;
        let ground = p.container[b.depth as usize % 2];
        let fill = if b.mark == Mark::Same { ground } else { mix(ground, p.mark(b.mark), 0.10) };
        let radius = corner(8.0, self.zoom);
        let mut shapes = vec![RectShape::filled(rect, radius, fill).into()];
        let bar_height = BAR_HEIGHT * self.zoom;
        if bar_height >= 5.0 {
            let bar = Rect::from_min_size(rect.min, vec2(rect.width(), bar_height.min(rect.height())));
            let top = CornerRadius { sw: 0, se: 0, ..radius };
            shapes.push(RectShape::filled(bar, top, p.container_title).into());
        }
        shapes
    }

    /// A box at `rect` on the screen.
    pub fn box_shapes(&self, index: u32, rect: Rect) -> Vec<Shape> {
        let Some(b) = self.picture.boxes.get(index as usize) else { return Vec::new() };
        let mut shapes = Vec::with_capacity(8);
        match b.kind {
            BoxKind::OpenBlock | BoxKind::OpenNode | BoxKind::Body => self.container(b, rect, &mut shapes),
            _ => self.closed(b, rect, &mut shapes),
        }
        if self.chosen == Some(index) {
            let ring = rect.expand(2.5);
            let stroke = Stroke::new(2.2, self.palette.accent);
            shapes.push(outline(ring, corner(8.0, self.zoom.max(0.4)), stroke, StrokeKind::Middle));
        } else if self.hovered == Some(index) {
            let stroke = Stroke::new(1.4, self.palette.weak);
            shapes.push(outline(rect, corner(6.0, self.zoom), stroke, StrokeKind::Middle));
        }
        if self.level > Level::Far {
            self.corners(b, rect, &mut shapes);
        }
        shapes
    }

    fn container(&self, b: &PictureBox, rect: Rect, shapes: &mut Vec<Shape>) {
        let (p, z) = (self.palette, self.zoom);
        let radius = corner(8.0, z);
        let bar_height = BAR_HEIGHT * z;
        let stroke = match b.mark {
            Mark::Same => Stroke::new(1.0, p.container_outline),
            mark => Stroke::new(1.6, p.mark(mark)),
        };
        self.border(rect, radius, stroke, b.mark, shapes);
        let middle = rect.min.y + bar_height / 2.0;
        let chevron = pos2(rect.min.x + 13.0 * z, middle);
        if b.kind != BoxKind::Body && z > 0.35 {
            shapes.push(chevron_shape(chevron, 4.0 * z, true, p.weak));
        }
        let left = rect.min.x + if b.kind == BoxKind::Body { PAD } else { 24.0 } * z;
        let room = (rect.max.x - left) / z - PAD;
        if TITLE.size * self.text_zoom < SQUEEZED {
            return;
        }
        let Some(title) = self.text(&b.title, TITLE, room) else { return };
        let end = self.put(title, pos2(left, middle), p.text, shapes);
        let room = (rect.max.x - end) / z - PAD - 8.0;
        let counts = if b.repeat.is_empty() {
            b.subtitle.to_string()
        } else {
            format!("{}  {}", b.repeat, b.subtitle)
        };
        if self.level == Level::Full
            && room > 40.0
            && let Some(counts) = self.text(&counts, DETAIL, room)
        {
            self.put(counts, pos2(end + 8.0 * z, middle), p.weak, shapes);
        }
    }

    fn closed(&self, b: &PictureBox, rect: Rect, shapes: &mut Vec<Shape>) {
        let (p, z) = (self.palette, self.zoom);
        let block = b.kind == BoxKind::ClosedBlock;
        let capsule = matches!(b.kind, BoxKind::Input | BoxKind::Output);
        let radius = if capsule { corner(rect.height() / z / 2.0, z) } else { corner(6.0, z) };
        let fade = |c: Color32| {
            if self.fresh < 1.0 && b.mark == Mark::Added { c.gamma_multiply(self.fresh) } else { c }
        };
        let (fill, stroke) = (fade(self.fill_of(b)), self.outline_of(b));
        if block && !b.repeat.is_empty() && self.level > Level::Plain {
            // A repeated block looks like a pile.
            let below = rect.translate(vec2(4.0, 4.0) * z);
            shapes.push(RectShape::new(below, radius, p.sunken, stroke, StrokeKind::Inside).into());
        }
        shapes.push(RectShape::filled(rect, radius, fill).into());
        if !block && !capsule && self.families && b.mark == Mark::Same && self.level >= Level::Titles {
            let inset = vec2(STRIPE, STRIPE + 1.0) * z;
            let size = vec2(STRIPE * 0.75 * z, rect.height() - 2.0 * inset.y);
            let bar = Rect::from_min_size(rect.min + inset, size);
            shapes.push(RectShape::filled(bar, corner(STRIPE, z), p.family(b.family)).into());
        }
        self.border(rect, radius, stroke, b.mark, shapes);
        self.closed_text(b, rect, shapes);
        if self.level == Level::Full {
            self.tags(b, rect, shapes);
        }
    }

    /// Title, subtitle and lines of a node or closed block.
    fn closed_text(&self, b: &PictureBox, rect: Rect, shapes: &mut Vec<Shape>) {
        let (p, z) = (self.palette, self.zoom);
        let opens = matches!(b.kind, BoxKind::ClosedBlock | BoxKind::ClosedNode);
        let left = if opens { CHEVRON } else { PAD };
        let repeat =
            if opens && self.level >= Level::Titles { self.text(&b.repeat, DETAIL, 60.0) } else { None };
        let taken = repeat.as_ref().map_or(0.0, |g| g.size().x / z + 8.0);
        let width = rect.width() / z - left - PAD - taken;
        let details = self.level == Level::Full;
        let capsule = matches!(b.kind, BoxKind::Input | BoxKind::Output);
        let tags = if details && !b.tags.is_empty() { 1 } else { 0 };
        let room = ((rect.height() / z - TITLE_HEIGHT - 4.0) / LINE_HEIGHT).max(0.0) as usize;
        let lines = if details { usize::from(!b.subtitle.is_empty()) + b.lines.len() } else { 0 };
        let lines = lines.min(room);
        let top = if lines + tags == 0 || capsule && lines == 0 {
            rect.center().y
        } else {
            let free = rect.height() / z - TITLE_HEIGHT - lines as f32 * LINE_HEIGHT;
            let pad = if tags > 0 { 5.0 } else { (free / 2.0).max(2.0) };
            rect.min.y + (pad + TITLE_HEIGHT / 2.0) * z
        };
        let squeezed = TITLE.size * self.text_zoom < SQUEEZED;
        let title = if squeezed { self.squeezed_title(b, rect) } else { self.text(&b.title, TITLE, width) };
        if opens && !squeezed && z > 0.35 {
            shapes.push(chevron_shape(pos2(rect.min.x + 12.0 * z, top), 3.6 * z, false, p.weak));
        }
        if let Some(title) = title {
            if squeezed {
                self.squeezed(b, title, rect, shapes);
            } else {
                self.put(title, pos2(rect.min.x + left * z, top), p.text, shapes);
            }
        }
        if let Some(repeat) = repeat {
            let at = pos2(rect.max.x - PAD * z - repeat.size().x, top);
            self.put(repeat, at, p.badge, shapes);
        }
        if !details {
            return;
        }
        let mut y = top + (TITLE_HEIGHT + LINE_HEIGHT) / 2.0 * z;
        let rest = std::iter::once(&b.subtitle).filter(|s| !s.is_empty()).chain(&b.lines);
        for (i, line) in rest.take(lines).enumerate() {
            if let Some(text) = self.text(line, DETAIL, width) {
                let colour = if i == 0 { p.weak } else { mix(p.weak, p.text, 0.35) };
                self.put(text, pos2(rect.min.x + left * z, y), colour, shapes);
            }
            y += LINE_HEIGHT * z;
        }
    }

    /// From afar names are written larger than the zoom says, where the box has room for them.
    fn squeezed_title(&self, b: &PictureBox, rect: Rect) -> Option<Arc<Galley>> {
        let size = (SQUEEZED + 1.0).min(rect.height() * 0.8);
        // A name of which only a letter or two would be left says nothing.
        let least = if b.title.chars().count() > 3 { 32.0 } else { 14.0 };
        if self.level < Level::Plain || size < 7.0 || rect.width() < least {
            return None;
        }
        let style = Style { size: size.floor(), mono: false };
        self.labels.borrow_mut().get(&self.ctx, &b.title, style, rect.width() - 6.0, 1.0)
    }

    /// A squeezed title in the middle of its box; of a block also what it is, where there is room.
    fn squeezed(&self, b: &PictureBox, title: Arc<Galley>, rect: Rect, shapes: &mut Vec<Shape>) {
        let p = self.palette;
        let centred = |size: Vec2, y: f32| pos2(rect.center().x - size.x / 2.0, y);
        let style = Style { size: SQUEEZED - 0.5, mono: false };
        let room = rect.height() > title.size().y + style.size * 1.3 + 6.0 && rect.width() > 60.0;
        let second = if b.kind == BoxKind::ClosedBlock && room {
            let mut labels = self.labels.borrow_mut();
            labels.get(&self.ctx, &b.subtitle, style, rect.width() - 8.0, 1.0)
        } else {
            None
        };
        let up = second.as_ref().map_or(0.0, |text| text.size().y / 2.0);
        let (first_y, second_y) = (rect.center().y - up, rect.center().y + title.size().y / 2.0);
        let at = centred(title.size(), first_y);
        self.put(title, at, p.text, shapes);
        if let Some(text) = second {
            let at = centred(text.size(), second_y);
            self.put(text, at, p.weak, shapes);
        }
    }

    fn tags(&self, b: &PictureBox, rect: Rect, shapes: &mut Vec<Shape>) {
        let (p, z) = (self.palette, self.zoom);
        let origin = pos2(b.rect.min.x, b.rect.min.y);
        for tag in &b.tags {
            let offset = pos2(tag.rect.min.x, tag.rect.min.y) - origin;
            let size = vec2(tag.rect.width(), tag.rect.height());
            let place = Rect::from_min_size(rect.min + offset * z, size * z);
            let fill = if tag.constant { p.sunken } else { p.tag };
            let line = if tag.constant { p.border } else { mix(p.tag, p.badge, 0.5) };
            let lit = self.lit.contains(&tag.value);
            let stroke = if lit { Stroke::new(2.0, p.accent) } else { Stroke::new(0.8, line) };
            shapes.push(RectShape::new(place, corner(4.0, z), fill, stroke, StrokeKind::Inside).into());
            if let Some(text) = self.text(&tag.text, SMALL, size.x - 8.0) {
                self.put(text, pos2(place.min.x + 5.0 * z, place.center().y), p.weak, shapes);
            }
        }
    }

    /// Badge of the pass at the top right, sign of the difference at the top left, finds of the search at the
    /// bottom right.
    fn corners(&self, b: &PictureBox, rect: Rect, shapes: &mut Vec<Shape>) {
        let (p, z) = (self.palette, self.zoom);
        if b.hits > 0 {
            let stroke = Stroke::new(1.8, p.found);
            shapes.push(outline(rect.expand(1.5), corner(7.0, z), stroke, StrokeKind::Middle));
        }
        if let Some(badge) = &b.badge {
            match (self.level == Level::Full)
                .then(|| self.text(badge, SMALL, b.rect.width() - 24.0))
                .flatten()
            {
                Some(text) => {
                    let size = text.size() + vec2(12.0, 3.0) * z;
                    let pill = Rect::from_min_size(
                        pos2(rect.max.x - size.x - 6.0 * z, rect.min.y - size.y / 2.0),
                        size,
                    );
                    shapes.push(RectShape::filled(pill, corner(7.0, z), p.badge).into());
                    self.put(text, pos2(pill.min.x + 6.0 * z, pill.center().y), p.canvas, shapes);
                }
                None => shapes.push(Shape::circle_filled(rect.right_top(), (4.0 * z).max(2.2), p.badge)),
            }
        }
        let sign = mark_sign(b.mark);
        if !sign.is_empty() && self.level >= Level::Plain {
            let centre = rect.left_top();
            let radius = (8.0 * z).max(5.0);
            shapes.push(Shape::circle_filled(centre, radius, p.mark(b.mark)));
            let style = Style { size: (radius * 1.6).round(), mono: true };
            if let Some(text) = self.labels.borrow_mut().get(&self.ctx, sign, style, 40.0, 1.0) {
                let at = pos2(centre.x - text.size().x / 2.0, centre.y);
                self.put(text, at, p.canvas, shapes);
            }
        }
        if b.hits > 0 && matches!(b.kind, BoxKind::ClosedBlock | BoxKind::ClosedNode) {
            let count = b.hits.to_string();
            if let Some(text) = self.text(&count, SMALL, 60.0) {
                let size = text.size() + vec2(10.0, 3.0) * z;
                let pill = Rect::from_min_size(
                    rect.right_bottom() - size * vec2(1.0, 0.5) - vec2(6.0 * z, 0.0),
                    size,
                );
                shapes.push(RectShape::filled(pill, corner(7.0, z), p.found).into());
                self.put(text, pos2(pill.min.x + 5.0 * z, pill.center().y), p.canvas, shapes);
            }
        }
    }

    /// A border in the pattern of a difference.
    fn border(&self, rect: Rect, radius: CornerRadius, stroke: Stroke, mark: Mark, shapes: &mut Vec<Shape>) {
        match mark_dashes(mark) {
            None => shapes.push(outline(rect, radius, stroke, StrokeKind::Inside)),
            Some((dash, gap)) => {
                let r = rect.shrink(stroke.width / 2.0);
                let ring = [r.left_top(), r.right_top(), r.right_bottom(), r.left_bottom(), r.left_top()];
                shapes.extend(Shape::dashed_line(&ring, stroke, dash, gap));
            }
        }
    }

    /// Puts text with its left end at `at`, vertically centred there; gives its right end.
    fn put(&self, text: Arc<Galley>, at: Pos2, colour: Color32, shapes: &mut Vec<Shape>) -> f32 {
        let size = text.size();
        shapes.push(TextShape::new(pos2(at.x, at.y - size.y / 2.0), text, colour).into());
        at.x + size.x
    }

    /// A line through `points` on the screen.
    pub fn line_shapes(
        &self,
        index: u32,
        points: &[Pos2],
        label_at: Option<Pos2>,
        state: LineState,
    ) -> Vec<Shape> {
        let Some(line) = self.picture.lines.get(index as usize) else { return Vec::new() };
        let (p, z) = (self.palette, self.zoom);
        let colour = match (state, line.mark) {
            (LineState::In, _) => p.edge_in,
            (LineState::Out, _) => p.edge_out,
            (LineState::Hovered, _) => p.accent,
            (LineState::Plain, mark) => p.mark(mark),
        };
        let strong = state != LineState::Plain || line.mark != Mark::Same;
        let many = (line.count.min(9).saturating_sub(1)) as f32 * 0.18;
        let scale = z.clamp(0.45, 1.3);
        let width = ((1.15 + many) * scale * if strong { 1.7 } else { 1.0 }).max(0.7);
        let curve = smooth(points, z);
        let mut shapes = Vec::with_capacity(3);
        match mark_dashes(line.mark) {
            Some((dash, gap)) if self.level >= Level::Plain => {
                shapes.extend(Shape::dashed_line(&curve, Stroke::new(width, colour), dash, gap));
            }
            _ => shapes.push(PathShape::line(curve.clone(), PathStroke::new(width, colour)).into()),
        }
        if let (Some(&end), true) = (curve.last(), self.level >= Level::Plain) {
            let size = (4.5 * z).max(2.4);
            let tip = [end, end + vec2(-size * 0.75, -size * 1.5), end + vec2(size * 0.75, -size * 1.5)];
            shapes.push(Shape::convex_polygon(tip.to_vec(), colour, Stroke::NONE));
        }
        if let (Some(at), Level::Full) = (label_at, self.level)
            && let Some(text) = self.text(&line.label, SMALL, 160.0)
        {
            let back = Rect::from_center_size(at, text.size() + vec2(8.0, 2.0) * z);
            let ground = self.palette.canvas.gamma_multiply(0.88);
            shapes.push(RectShape::filled(back, corner(4.0, z), ground).into());
            let left = at.x - text.size().x / 2.0;
            self.put(text, pos2(left, at.y), if strong { colour } else { p.weak }, &mut shapes);
        }
        shapes
    }
}

/// A curve through all points that leaves and reaches each vertically, as a polyline fine enough for the zoom.
fn smooth(points: &[Pos2], zoom: f32) -> Vec<Pos2> {
    let mut curve = Vec::with_capacity(points.len() * 6);
    curve.extend(points.first());
    for pair in points.windows(2) {
        let (a, b) = (pair[0], pair[1]);
        let side = (b.x - a.x).abs();
        if side < 0.75 || zoom < 0.15 {
            curve.push(b);
            continue;
        }
        let reach = vec2(0.0, (b.y - a.y) * 0.5);
        let (c, d) = (a + reach, b - reach);
        let steps = ((side + (b.y - a.y).abs()) / 14.0).clamp(3.0, 18.0) as u32;
        for i in 1..=steps {
            let t = i as f32 / steps as f32;
            let u = 1.0 - t;
            let weigh = |p: Pos2, w: f32| p.to_vec2() * w;
            let sum: Vec2 = weigh(a, u * u * u)
                + weigh(c, 3.0 * u * u * t)
                + weigh(d, 3.0 * u * t * t)
                + weigh(b, t * t * t);
            curve.push(sum.to_pos2());
        }
    }
    curve
}

fn corner(radius: f32, zoom: f32) -> CornerRadius {
    CornerRadius::same((radius * zoom).clamp(0.0, 60.0) as u8)
}

fn outline(rect: Rect, radius: CornerRadius, stroke: Stroke, kind: StrokeKind) -> Shape {
    RectShape::stroke(rect, radius, stroke, kind).into()
}

/// A small arrow that says whether a block is open.
fn chevron_shape(centre: Pos2, size: f32, open: bool, colour: Color32) -> Shape {
    let points = if open {
        [vec2(-1.0, -0.55), vec2(0.0, 0.55), vec2(1.0, -0.55)]
    } else {
        [vec2(-0.55, -1.0), vec2(0.55, 0.0), vec2(-0.55, 1.0)]
    };
    let line = points.map(|v| centre + v * size).to_vec();
    PathShape::line(line, PathStroke::new((size * 0.36).max(1.0), colour)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_start_and_end_at_their_points() {
        let points = [pos2(0.0, 0.0), pos2(80.0, 60.0), pos2(80.0, 200.0)];
        let curve = smooth(&points, 1.0);
        assert_eq!(curve.first(), points.first());
        assert_eq!(curve.last(), points.last());
        assert!(curve.contains(&points[1]), "passes through the middle point");
        assert!(curve.windows(2).all(|p| p[1].y >= p[0].y), "goes downward only");
    }

    #[test]
    fn levels_follow_the_zoom() {
        let levels = [0.1, 0.2, 0.5, 1.0].map(Level::of);
        assert_eq!(levels, [Level::Far, Level::Plain, Level::Titles, Level::Full]);
    }
}
