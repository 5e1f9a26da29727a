//! Laid-out labels of the canvas, kept between frames. Font sizes follow the zoom in steps of an eighth of an octave, so that
//! zooming does not lay out every label anew in every frame.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::Arc;

use egui::epaint::text::{LayoutJob, TextFormat, TextWrapping};
use egui::{Color32, FontId, Galley};
use rustc_hash::FxHasher;

use crate::scene::measure;

/// Text below this height on the screen is left out, in points.
const LEAST_SIZE: f32 = 6.5;
/// This many labels are kept beyond those of the last frames.
const MOST_KEPT: usize = 4_000;
/// Text longer than this many bytes is cut before it is laid out; no box is that wide.
const MOST_BYTES: usize = 400;

/// The zoom of labels for a zoom of the canvas: the next step down on a ladder of 2^(1/8).
pub fn rung(zoom: f64) -> f32 {
    2f32.powf(((zoom as f32).log2() * 8.0 + 1e-3).floor() / 8.0)
}

/// How a label is written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Style {
    /// Size in points at zoom 1.
    pub size: f32,
    /// Fixed width font.
    pub mono: bool,
}

/// Style of titles of nodes and blocks.
pub const TITLE: Style = Style { size: measure::TITLE_SIZE, mono: false };
/// Style of everything below the title.
pub const DETAIL: Style = Style { size: measure::DETAIL_SIZE, mono: false };
/// Style of tags, badges and labels of lines.
pub const SMALL: Style = Style { size: measure::SMALL_SIZE, mono: false };

/// The labels.
#[derive(Default)]
pub struct Labels {
    kept: HashMap<u64, (Arc<Galley>, u64), BuildHasherDefault<FxHasher>>,
    frame: u64,
    /// A label that egui keeps for us; when it comes back as another object, egui has thrown away all fonts.
    sentinel: Option<Arc<Galley>>,
}

impl Labels {
    /// To be called once in a frame. True when fonts were thrown away and everything has to be drawn anew.
    pub fn begin(&mut self, ctx: &egui::Context) -> bool {
        self.frame += 1;
        let font = FontId::proportional(LEAST_SIZE);
        let sentinel =
            ctx.fonts_mut(|f| f.layout_no_wrap("·passlens·".to_owned(), font, Color32::PLACEHOLDER));
        let same = self.sentinel.as_ref().is_some_and(|old| Arc::ptr_eq(old, &sentinel));
        self.sentinel = Some(sentinel);
        if !same {
            self.kept.clear();
        } else if self.kept.len() > MOST_KEPT {
            let newest = self.frame;
            self.kept.retain(|_, (_, used)| *used + 2 >= newest);
        }
        !same
    }

    /// `text` on one line, at most `width` points wide at zoom 1, cut with an ellipsis; `None` when it would be too
    /// small to read. `zoom` is one of [`rung`]. Colour comes from the painter.
    pub fn get(
        &mut self,
        ctx: &egui::Context,
        text: &str,
        style: Style,
        width: f32,
        zoom: f32,
    ) -> Option<Arc<Galley>> {
        let size = style.size * zoom;
        if size < LEAST_SIZE || text.is_empty() || width <= 0.0 {
            return None;
        }
        let mut hasher = FxHasher::default();
        (text, size.to_bits(), style.mono, width.to_bits()).hash(&mut hasher);
        let frame = self.frame;
        let entry = self.kept.entry(hasher.finish()).or_insert_with(|| {
            let mut end = text.len().min(MOST_BYTES);
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            let font = if style.mono { FontId::monospace(size) } else { FontId::proportional(size) };
            let format = TextFormat::simple(font, Color32::PLACEHOLDER);
            let mut job = LayoutJob::single_section(text[..end].replace(['\n', '\r'], " "), format);
            job.wrap = TextWrapping::truncate_at_width(width * zoom);
            (ctx.fonts_mut(|f| f.layout_job(job)), frame)
        });
        entry.1 = frame;
        Some(entry.0.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_go_in_steps_and_never_above_the_zoom() {
        assert_eq!(rung(1.0), 1.0);
        assert_eq!(rung(0.5), 0.5);
        for zoom in [0.2, 0.31, 0.77, 1.3, 3.9] {
            let step = f64::from(rung(zoom));
            assert!(step <= zoom * 1.001 && step > zoom * 0.91, "{zoom} gave {step}");
        }
        assert_eq!(rung(0.80), rung(0.78), "small steps of the wheel use the same size");
    }

    #[test]
    fn labels_are_kept_cut_and_left_out_when_tiny() {
        let ctx = egui::Context::default();
        let mut labels = Labels::default();
        ctx.run_ui(egui::RawInput::default(), |ui| {
            assert!(labels.begin(ui.ctx()), "the first frame draws everything");
            let mut get = |text, width, zoom| labels.get(ui.ctx(), text, TITLE, width, zoom);
            let long = get("a name that does not fit at all", 60.0, 1.0).expect("visible");
            assert!(long.size().x <= 60.0);
            let again = get("a name that does not fit at all", 60.0, 1.0).expect("visible");
            assert!(Arc::ptr_eq(&long, &again));
            assert!(get("tiny", 60.0, 0.2).is_none());
        })
        .drop_without_applying_deltas();
    }
}
