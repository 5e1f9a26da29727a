//! The whole picture in a corner: how full it is where, where differences lie, and what part is on the screen.

use egui::{Color32, Mesh, Pos2, Rect, Sense, Shape, Stroke, StrokeKind, Ui, pos2, vec2};

use super::ROOMY;
use super::shown::{Shown, bounds, is_container};
use crate::gui::theme::{Palette, mix};
use crate::scene::Mark;

/// Largest size on the screen, in points.
const WIDTH: f32 = 132.0;
const HEIGHT: f32 = 170.0;
/// Cells across and down.
const COLUMNS: usize = 44;
const ROWS: usize = 56;

/// How full each cell is, made once per picture.
#[derive(Default, Clone)]
pub struct Minimap {
    /// Row by row, 0 to 1.
    density: Vec<f32>,
    marks: Vec<Mark>,
}

impl Minimap {
    /// Counts a picture's closed boxes into cells.
    pub fn new(shown: &Shown) -> Minimap {
        let all = bounds(&shown.picture);
        let mut density = vec![0.0f32; COLUMNS * ROWS];
        let mut marks = vec![Mark::Same; COLUMNS * ROWS];
        let cell = vec2(all.width() / COLUMNS as f32, all.height() / ROWS as f32);
        for (i, b) in shown.picture.boxes.iter().enumerate().filter(|(_, b)| !is_container(b.kind)) {
            let rect = shown.final_rect(i as u32);
            let span = |low: f32, high: f32, origin: f32, step: f32, count: usize| {
                let at = |v: f32| (((v - origin) / step).max(0.0) as usize).min(count - 1);
                at(low)..=at(high)
            };
            for row in span(rect.min.y, rect.max.y, all.min.y, cell.y, ROWS) {
                for column in span(rect.min.x, rect.max.x, all.min.x, cell.x, COLUMNS) {
                    let corner = all.min + vec2(column as f32, row as f32) * cell;
                    let part = rect.intersect(Rect::from_min_size(corner, cell));
                    density[row * COLUMNS + column] += part.area().max(0.0) / (cell.x * cell.y);
                    if b.mark != Mark::Same {
                        marks[row * COLUMNS + column] = b.mark;
                    }
                }
            }
        }
        Minimap { density, marks }
    }

    /// Draws the map into a corner of `canvas` when `visible` leaves something out and there is room for it; gives the
    /// place in the picture that was clicked or dragged to. `covers` tells what would hide boxes.
    pub fn ui(
        &self,
        ui: &mut Ui,
        canvas: Rect,
        shown: &Shown,
        visible: Rect,
        covers: &dyn Fn(Rect) -> bool,
    ) -> Option<Pos2> {
        let all = bounds(&shown.picture);
        if self.density.is_empty() || visible.contains_rect(all) {
            return None;
        }
        let palette = Palette::of(ui);
        // Very long or wide pictures are stretched, so that the map stays something one can point at.
        let scale = (WIDTH / all.width()).min(HEIGHT / all.height());
        let size = (all.size() * scale).max(vec2(34.0, 34.0));
        let frame =
            Rect::from_min_size(canvas.right_bottom() - size - vec2(22.0, 22.0), size + vec2(10.0, 10.0));
        let held = ui.ctx().is_being_dragged(ui.id().with("minimap"));
        let fits = size.x < canvas.width() * 0.4 && size.y < canvas.height() * 0.6;
        let roomy = canvas.width() >= ROOMY.x && canvas.height() >= ROOMY.y;
        if !held && (!fits || !roomy && covers(frame)) {
            return None;
        }
        let map = frame.shrink(5.0);
        let response = ui.interact(frame, ui.id().with("minimap"), Sense::click_and_drag());
        response.widget_info(|| {
            egui::WidgetInfo::labeled(egui::WidgetType::Other, true, "Overview of the model")
        });
        let painter = ui.painter_at(canvas);
        painter.rect(frame, 6.0, palette.surface, Stroke::new(1.0, palette.border), StrokeKind::Outside);
        painter.add(self.cells(map, palette));
        let place = |p: Pos2| {
            let t = (p - all.min) / all.size();
            map.min + vec2(t.x.clamp(0.0, 1.0), t.y.clamp(0.0, 1.0)) * map.size()
        };
        let mut view = Rect::from_min_max(place(visible.min), place(visible.max));
        view = Rect::from_center_size(view.center(), view.size().max(vec2(5.0, 5.0)));
        let fill = palette.accent.gamma_multiply(0.10);
        painter.rect(view, 2.0, fill, Stroke::new(1.4, palette.accent), StrokeKind::Middle);
        let pressed = response.clicked() || response.dragged();
        let at = response.interact_pointer_pos().filter(|_| pressed)?;
        let t = (at - map.min) / map.size();
        Some(pos2(
            all.min.x + t.x.clamp(0.0, 1.0) * all.width(),
            all.min.y + t.y.clamp(0.0, 1.0) * all.height(),
        ))
    }

    fn cells(&self, map: Rect, palette: &Palette) -> Shape {
        let mut mesh = Mesh::default();
        let cell = map.size() / vec2(COLUMNS as f32, ROWS as f32);
        for (i, (&density, &mark)) in self.density.iter().zip(&self.marks).enumerate() {
            if density <= 0.0 {
                continue;
            }
            let corner = map.min + vec2((i % COLUMNS) as f32, (i / COLUMNS) as f32) * cell;
            let colour: Color32 = match mark {
                Mark::Same => mix(palette.surface, palette.outline, 0.25 + 0.6 * density.min(1.0)),
                mark => palette.mark(mark),
            };
            mesh.add_colored_rect(Rect::from_min_size(corner, cell), colour);
        }
        Shape::mesh(mesh)
    }
}
