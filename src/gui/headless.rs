//! Runs the window's own drawing code without a window: frames with made-up input, a clock that only moves by
//! frames, pictures by the rasterizer. Scripts, screenshots and the frame benchmark use it.

use egui::{Event, Pos2, RawInput, Rect, Vec2};

use super::raster::{Image, Raster, RasterError};
use super::theme::{self, Palette};

/// Time between two frames, in seconds.
pub const FRAME_SECONDS: f64 = 1.0 / 60.0;

/// An egui context that is driven by hand.
pub struct Headless {
    /// The context all frames run in.
    pub ctx: egui::Context,
    raster: Raster,
    size: Vec2,
    pixels_per_point: f32,
    time: f64,
    events: Vec<Event>,
    shapes: Vec<egui::epaint::ClippedShape>,
}

/// What one frame said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// The window wants to be painted again at once (something moves).
    pub wants_more: bool,
}

impl Headless {
    /// A window of `size` points at `pixels_per_point`, light or dark.
    pub fn new(size: Vec2, pixels_per_point: f32, dark: bool) -> Headless {
        let ctx = egui::Context::default();
        theme::install(&ctx);
        ctx.set_theme(if dark { egui::Theme::Dark } else { egui::Theme::Light });
        Headless {
            ctx,
            raster: Raster::default(),
            size,
            pixels_per_point,
            time: 0.0,
            events: Vec::new(),
            shapes: Vec::new(),
        }
    }

    /// Another size from the next frame on, in points.
    pub fn resize(&mut self, size: Vec2, pixels_per_point: f32) {
        (self.size, self.pixels_per_point) = (size, pixels_per_point);
    }

    /// Input for the next frame.
    pub fn send(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Runs one frame of `ui`.
    pub fn frame(&mut self, mut ui: impl FnMut(&mut egui::Ui)) -> Frame {
        self.time += FRAME_SECONDS;
        let mut input = RawInput {
            screen_rect: Some(Rect::from_min_size(Pos2::ZERO, self.size)),
            time: Some(self.time),
            predicted_dt: FRAME_SECONDS as f32,
            events: std::mem::take(&mut self.events),
            focused: true,
            ..RawInput::default()
        };
        if let Some(viewport) = input.viewports.get_mut(&egui::ViewportId::ROOT) {
            viewport.native_pixels_per_point = Some(self.pixels_per_point);
        }
        let mut output = self.ctx.run_ui(input, |root| ui(root));
        self.raster.apply(&mut output.textures_delta);
        self.shapes = std::mem::take(&mut output.shapes);
        let delay = output.viewport_output.get(&egui::ViewportId::ROOT).map(|out| out.repaint_delay);
        Frame { wants_more: delay.is_some_and(|delay| delay.is_zero()) }
    }

    /// Cuts the last frame into triangles, as the real window does before it paints; their number.
    pub fn tessellate(&mut self) -> usize {
        let shapes = std::mem::take(&mut self.shapes);
        self.ctx.tessellate(shapes, self.pixels_per_point).len()
    }

    /// The picture of the last frame.
    ///
    /// # Errors
    /// When the window's size in pixels is beyond what the rasterizer takes.
    pub fn image(&self) -> Result<Image, RasterError> {
        let primitives = self.ctx.tessellate(self.shapes.clone(), self.pixels_per_point);
        let pixels = self.size * self.pixels_per_point;
        let dark = self.ctx.theme() == egui::Theme::Dark;
        let ground = if dark { Palette::DARK.panel } else { Palette::LIGHT.panel };
        let (width, height) = (pixels.x.round() as u32, pixels.y.round() as u32);
        self.raster.paint(width, height, self.pixels_per_point, ground, &primitives)
    }
}
