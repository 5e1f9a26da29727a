//! A picture as SVG, and through it as PNG: the same look as on the canvas, with a legend.

use super::family::FAMILIES;
use super::font::{shorten, text_width};
use super::measure::{
    BAR_HEIGHT, CHEVRON, DETAIL_SIZE, LINE_HEIGHT, PAD, SMALL_SIZE, TITLE_HEIGHT, TITLE_SIZE,
};
use super::palette::{self, MARKS, Palette, Rgb, mark_name, mark_sign};
use super::picture::{BoxKind, Line, Mark, Picture, PictureBox, Point, Rect};
use resvg::{tiny_skia, usvg};
use std::collections::HashSet;
use std::fmt::Write;
use std::sync::{Arc, OnceLock};

/// How a picture is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Style {
    pub dark: bool,
    /// Pixels that the picture is fitted into; one pixel a point when not given.
    pub size: Option<(u32, u32)>,
}

/// Why there is no PNG.
#[derive(Debug, thiserror::Error)]
pub enum PngError {
    #[error("the picture could not be drawn: {0}")]
    Svg(#[from] usvg::Error),
    #[error("a picture of {width} × {height} pixels cannot be made")]
    Size { width: u32, height: u32 },
    #[error("the picture could not be encoded: {0}")]
    Encode(String),
}

/// A PNG has no more pixels than this on a side, and in all; larger pictures are scaled down.
const MOST_SIDE: f32 = 16_000.0;
const MOST_PIXELS: f32 = 120e6;
const CORNER: f32 = 6.0;
const STRIPE: f32 = 4.0;
const LEGEND_ROW: f32 = 22.0;

/// The picture as an SVG document.
pub fn svg(picture: &Picture, style: &Style) -> String {
    let palette = if style.dark { &Palette::DARK } else { &Palette::LIGHT };
    let legend = Legend::of(picture, picture.bounds.width().max(320.0));
    let (x, y) = (picture.bounds.min.x, picture.bounds.min.y);
    let (width, height) =
        (picture.bounds.width().max(legend.width), picture.bounds.height() + legend.height());
    let (shown_width, shown_height) = match style.size {
        Some((w, h)) => (w as f32, h as f32),
        None => (width, height),
    };
    let mut writer = Writer {
        out: String::with_capacity(4096 + picture.boxes.len() * 600),
        palette,
        drawn: HashSet::new(),
    };
    let _ = writeln!(
        writer.out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{shown_width:.0}\" height=\"{shown_height:.0}\" \
         viewBox=\"{x:.1} {y:.1} {width:.1} {height:.1}\" font-family=\"Ubuntu, 'Noto Sans', sans-serif\" \
         font-weight=\"300\">"
    );
    // With a given size the picture may not fill it; the ground does.
    let spread = width.max(height) * 4.0;
    let _ = writeln!(
        writer.out,
        "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\"/>",
        x - spread,
        y - spread,
        width + 2.0 * spread,
        height + 2.0 * spread,
        hex(palette.canvas)
    );
    let is_container =
        |b: &&PictureBox| matches!(b.kind, BoxKind::OpenBlock | BoxKind::OpenNode | BoxKind::Body);
    picture.boxes.iter().filter(is_container).for_each(|b| writer.container(b));
    picture.lines.iter().filter(|l| l.mark == Mark::Same).for_each(|l| writer.line(l));
    picture.lines.iter().filter(|l| l.mark != Mark::Same).for_each(|l| writer.line(l));
    picture.boxes.iter().filter(is_container).for_each(|b| writer.container_title(b));
    picture.boxes.iter().filter(|b| !is_container(b)).for_each(|b| writer.closed(b));
    picture.lines.iter().for_each(|l| writer.line_label(l));
    writer.legend(&legend, Point { x, y: picture.bounds.max.y });
    writer.out.push_str("</svg>\n");
    writer.out
}

/// The picture as a PNG file's bytes.
pub fn png(picture: &Picture, style: &Style) -> Result<Vec<u8>, PngError> {
    let text = svg(picture, style);
    let options =
        usvg::Options { fontdb: fonts(&text), font_family: "Ubuntu".into(), ..usvg::Options::default() };
    let tree = usvg::Tree::from_str(&text, &options)?;
    let (width, height) = (tree.size().width(), tree.size().height());
    let scale = (MOST_SIDE / width.max(height)).min((MOST_PIXELS / (width * height)).sqrt()).min(1.0);
    let (w, h) = ((width * scale).ceil() as u32, (height * scale).ceil() as u32);
    let mut pixels = tiny_skia::Pixmap::new(w, h).ok_or(PngError::Size { width: w, height: h })?;
    resvg::render(&tree, tiny_skia::Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().map_err(|e| PngError::Encode(e.to_string()))
}

/// The embedded fonts; where the text needs more, fonts of the system behind them.
fn fonts(text: &str) -> Arc<usvg::fontdb::Database> {
    static EMBEDDED: OnceLock<Arc<usvg::fontdb::Database>> = OnceLock::new();
    let embedded = EMBEDDED.get_or_init(|| {
        let mut fonts = usvg::fontdb::Database::new();
        for data in [
            epaint_default_fonts::UBUNTU_LIGHT,
            epaint_default_fonts::HACK_REGULAR,
            epaint_default_fonts::NOTO_EMOJI_REGULAR,
        ] {
            fonts.load_font_data(data.to_vec());
        }
        fonts.set_sans_serif_family("Ubuntu");
        Arc::new(fonts)
    });
    // The embedded fonts end with Cyrillic, but for signs.
    let foreign = |c: char| matches!(c as u32, 0x530..0x2000 | 0x2e80..0xf000 | 0xf900..0xfff0 | 0x20000..);
    if !text.chars().any(foreign) {
        return embedded.clone();
    }
    let mut fonts = (**embedded).clone();
    for (_, path) in super::system_fonts::find() {
        if let Ok(data) = std::fs::read(path) {
            fonts.load_font_data(data);
        }
    }
    Arc::new(fonts)
}

/// Swatches with names, in rows.
struct Legend {
    rows: Vec<Vec<(Swatch, &'static str, f32)>>,
    width: f32,
}

#[derive(Clone, Copy)]
enum Swatch {
    Family(super::picture::Family),
    Mark(Mark),
    Tag { constant: bool },
}

impl Legend {
    /// What is in the picture and needs a word, wrapped to a width.
    fn of(picture: &Picture, width: f32) -> Legend {
        let mut entries: Vec<(Swatch, &'static str)> = Vec::new();
        let nodes = || picture.boxes.iter().filter(|b| !matches!(b.kind, BoxKind::Input | BoxKind::Output));
        for family in FAMILIES {
            if nodes().any(|b| {
                b.family == family
                    && matches!(b.kind, BoxKind::Node | BoxKind::ClosedNode | BoxKind::ClosedBlock)
            }) {
                entries.push((Swatch::Family(family), family.name()));
            }
        }
        for mark in MARKS {
            if picture.boxes.iter().any(|b| b.mark == mark) || picture.lines.iter().any(|l| l.mark == mark) {
                entries.push((Swatch::Mark(mark), mark_name(mark)));
            }
        }
        for (constant, name) in [(true, "constant"), (false, "value from far away")] {
            if nodes().any(|b| b.tags.iter().any(|t| t.constant == constant)) {
                entries.push((Swatch::Tag { constant }, name));
            }
        }
        let mut legend = Legend { rows: Vec::new(), width: 0.0 };
        let mut x = 0.0f32;
        for (swatch, name) in entries {
            let own = 18.0 + text_width(name, DETAIL_SIZE) + 18.0;
            if legend.rows.is_empty() || x + own > width - 2.0 * PAD {
                legend.rows.push(Vec::new());
                x = 0.0;
            }
            if let Some(row) = legend.rows.last_mut() {
                row.push((swatch, name, x));
            }
            x += own;
            legend.width = legend.width.max(x + 2.0 * PAD);
        }
        legend
    }

    fn height(&self) -> f32 {
        if self.rows.is_empty() { 0.0 } else { self.rows.len() as f32 * LEGEND_ROW + 14.0 }
    }
}

struct Writer<'p> {
    out: String,
    palette: &'p Palette,
    /// Stretches of lines that are drawn already: lines of one value share their beginnings.
    drawn: HashSet<[u32; 4]>,
}

/// Width, colour and dashes of an outline.
#[derive(Clone, Copy)]
struct Stroke {
    width: f32,
    colour: Rgb,
    dashes: &'static str,
}

fn dashes(mark: Mark) -> &'static str {
    match mark {
        Mark::Removed => "7 4",
        Mark::Rewired => "2 3",
        _ => "",
    }
}

impl Writer<'_> {
    fn rect(&mut self, rect: &Rect, corner: f32, fill: Option<Rgb>, stroke: Option<Stroke>) {
        // Strokes lie inside the box, so that outlines of neighbours keep their distance.
        let inset = stroke.map_or(0.0, |s| s.width / 2.0);
        let _ = write!(
            self.out,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"{:.1}\" fill=\"{}\"",
            rect.min.x + inset,
            rect.min.y + inset,
            (rect.width() - 2.0 * inset).max(0.0),
            (rect.height() - 2.0 * inset).max(0.0),
            (corner - inset).max(0.0),
            fill.map_or("none".into(), hex)
        );
        if let Some(stroke) = stroke {
            let _ =
                write!(self.out, " stroke=\"{}\" stroke-width=\"{:.1}\"", hex(stroke.colour), stroke.width);
            if !stroke.dashes.is_empty() {
                let _ = write!(self.out, " stroke-dasharray=\"{}\"", stroke.dashes);
            }
        }
        self.out.push_str("/>\n");
    }

    /// One line of text from `x` on, its vertical middle at `y`.
    fn text(&mut self, text: &str, x: f32, y: f32, size: f32, colour: Rgb, extra: &str) {
        // One missing glyph would put the whole text into another font, so signs are texts of their own.
        let mut rest = text;
        let mut x = x;
        while let Some((at, sign)) = rest.char_indices().find(|(_, c)| is_sign(*c)) {
            let (before, after) = rest.split_at(at);
            self.run(before, x, y, size, colour, extra);
            x += text_width(before, size);
            let (own, after) = after.split_at(sign.len_utf8());
            self.run(own, x, y, size, colour, &format!("{extra} font-family=\"Hack\""));
            x += text_width(own, size);
            rest = after;
        }
        self.run(rest, x, y, size, colour, extra);
    }

    /// A text in one font.
    fn run(&mut self, text: &str, x: f32, y: f32, size: f32, colour: Rgb, extra: &str) {
        if text.trim().is_empty() {
            return;
        }
        let _ = write!(
            self.out,
            "<text x=\"{x:.1}\" y=\"{:.1}\" font-size=\"{size:.1}\" fill=\"{}\"{extra}>",
            y + size * 0.35,
            hex(colour)
        );
        escape(text, &mut self.out);
        self.out.push_str("</text>\n");
    }

    fn outline(&self, b: &PictureBox) -> Stroke {
        let p = self.palette;
        let (width, colour) = match (b.mark, b.kind) {
            (Mark::Added, _) => (2.2, p.mark(b.mark)),
            (mark, _) if mark != Mark::Same => (1.6, p.mark(mark)),
            (_, BoxKind::Node) => (1.0, p.family_outline(b.family)),
            _ => (1.0, p.container_outline),
        };
        Stroke { width, colour, dashes: dashes(b.mark) }
    }

    fn container(&mut self, b: &PictureBox) {
        let ground = self.palette.container[b.depth as usize % 2];
        self.rect(&b.rect, CORNER + 2.0, Some(ground), Some(self.outline(b)));
    }

    /// The title bar lies over the lines that enter the block, so that its words stay readable.
    fn container_title(&mut self, b: &PictureBox) {
        let p = self.palette;
        let (x, y, x2) = (b.rect.min.x + 0.5, b.rect.min.y + 0.5, b.rect.max.x - 0.5);
        let (corner, bottom) = (CORNER + 1.5, b.rect.min.y + BAR_HEIGHT);
        let _ = writeln!(
            self.out,
            "<path d=\"M{x:.1} {bottom:.1}V{:.1}Q{x:.1} {y:.1} {:.1} {y:.1}H{:.1}Q{x2:.1} {y:.1} {x2:.1} {:.1}V{bottom:.1}Z\" fill=\"{}\"/>",
            y + corner,
            x + corner,
            x2 - corner,
            y + corner,
            hex(p.container_title)
        );
        let middle = b.rect.min.y + BAR_HEIGHT / 2.0;
        let x = b.rect.min.x;
        if b.kind != BoxKind::Body {
            self.chevron(Point { x: x + 13.0, y: middle }, true);
        }
        let left = x + if b.kind == BoxKind::Body { PAD } else { 24.0 };
        self.text(&b.title, left, middle, TITLE_SIZE, p.text, "");
        let end = left + text_width(&b.title, TITLE_SIZE) + 8.0;
        let counts = if b.repeat.is_empty() {
            b.subtitle.to_string()
        } else {
            format!("{}  {}", b.repeat, b.subtitle)
        };
        self.text(&counts, end, middle, DETAIL_SIZE, p.weak, "");
        self.tags(b);
        self.signs(b);
    }

    fn closed(&mut self, b: &PictureBox) {
        let p = self.palette;
        let capsule = matches!(b.kind, BoxKind::Input | BoxKind::Output);
        let block = b.kind == BoxKind::ClosedBlock;
        let corner = if capsule { (b.rect.height() / 2.0).min(18.0) } else { CORNER };
        let fill = match (b.mark, b.kind) {
            (mark, _) if mark != Mark::Same => p.mark_fill(mark),
            _ if capsule => p.sunken,
            _ if block => p.surface,
            _ => p.family_fill(b.family),
        };
        let stroke = self.outline(b);
        if block && !b.repeat.is_empty() {
            // A repeated block looks like a pile.
            let below = Rect::new(b.rect.min.x + 4.0, b.rect.min.y + 4.0, b.rect.width(), b.rect.height());
            self.rect(&below, corner, Some(p.sunken), Some(stroke));
        }
        self.rect(&b.rect, corner, Some(fill), None);
        if !capsule {
            let (x, y, y2) = (b.rect.min.x, b.rect.min.y, b.rect.max.y);
            let edge = x + STRIPE;
            let colour = if b.mark == Mark::Same { p.family(b.family) } else { p.mark(b.mark) };
            let _ = writeln!(
                self.out,
                "<path d=\"M{edge:.1} {y:.1}V{y2:.1}H{:.1}Q{x:.1} {y2:.1} {x:.1} {:.1}V{:.1}Q{x:.1} {y:.1} {:.1} {y:.1}Z\" fill=\"{}\"/>",
                x + corner,
                y2 - corner,
                y + corner,
                x + corner,
                hex(colour)
            );
        }
        self.rect(&b.rect, corner, None, Some(stroke));
        self.closed_text(b);
        self.tags(b);
        self.signs(b);
    }

    fn closed_text(&mut self, b: &PictureBox) {
        let p = self.palette;
        let opens = matches!(b.kind, BoxKind::ClosedBlock | BoxKind::ClosedNode);
        let left = b.rect.min.x + if opens { CHEVRON } else { PAD };
        let lines = usize::from(!b.subtitle.is_empty()) + b.lines.len();
        let free = b.rect.height() - TITLE_HEIGHT - lines as f32 * LINE_HEIGHT;
        let pad = if b.tags.is_empty() { (free / 2.0).max(2.0) } else { 5.0 };
        let mut y = b.rect.min.y + pad + TITLE_HEIGHT / 2.0;
        if opens {
            self.chevron(Point { x: b.rect.min.x + 13.0, y }, false);
        }
        self.text(&b.title, left, y, TITLE_SIZE, p.text, "");
        if !b.repeat.is_empty() {
            let x = b.rect.max.x - PAD - text_width(&b.repeat, DETAIL_SIZE);
            self.text(&b.repeat, x, y, DETAIL_SIZE, p.badge, "");
        }
        y += (TITLE_HEIGHT + LINE_HEIGHT) / 2.0;
        let rest = std::iter::once(&b.subtitle).filter(|s| !s.is_empty()).chain(&b.lines);
        for (k, line) in rest.enumerate() {
            let colour = if k == 0 { p.weak } else { palette::mix(p.weak, p.text, 35) };
            self.text(line, left, y, DETAIL_SIZE, colour, "");
            y += LINE_HEIGHT;
        }
    }

    fn tags(&mut self, b: &PictureBox) {
        let p = self.palette;
        for tag in &b.tags {
            let (fill, line) =
                if tag.constant { (p.sunken, p.border) } else { (p.tag, palette::mix(p.tag, p.badge, 50)) };
            self.rect(&tag.rect, 4.0, Some(fill), Some(Stroke { width: 0.8, colour: line, dashes: "" }));
            self.text(&tag.text, tag.rect.min.x + 5.5, tag.rect.center().y, SMALL_SIZE, p.weak, "");
        }
    }

    /// Difference, provenance and search results, on the box's border.
    fn signs(&mut self, b: &PictureBox) {
        let p = self.palette;
        if b.mark != Mark::Same {
            let at = Point { x: b.rect.min.x, y: b.rect.min.y };
            let _ = writeln!(
                self.out,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"7\" fill=\"{}\"/>",
                at.x,
                at.y,
                hex(p.mark(b.mark))
            );
            let sign = mark_sign(b.mark);
            let colour = p.surface;
            self.run(sign, at.x, at.y, 12.0, colour, " text-anchor=\"middle\" font-family=\"Hack, Ubuntu\"");
        }
        let found = if b.hits > 0 { Some((format!("{} found", b.hits), p.found)) } else { None };
        let badge = b.badge.as_ref().map(|badge| (badge.to_string(), p.badge));
        let mut right = b.rect.max.x - 6.0;
        for (text, colour) in [badge, found].into_iter().flatten() {
            let text = shorten(&text, SMALL_SIZE, 150.0);
            let width = text_width(&text, SMALL_SIZE) + 12.0;
            let pill = Rect::new(right - width, b.rect.min.y - 8.0, width, 15.0);
            self.rect(&pill, 7.5, Some(colour), None);
            self.text(&text, pill.min.x + 6.0, pill.center().y, SMALL_SIZE, p.surface, "");
            right = pill.min.x - 4.0;
        }
    }

    fn chevron(&mut self, at: Point, open: bool) {
        let points = if open {
            [(-4.0, -2.0), (0.0, 2.0), (4.0, -2.0)]
        } else {
            [(-2.0, -4.0), (2.0, 0.0), (-2.0, 4.0)]
        };
        let [a, b, c] = points.map(|(x, y): (f32, f32)| format!("{:.1} {:.1}", at.x + x, at.y + y));
        let _ = writeln!(
            self.out,
            "<path d=\"M{a}L{b}L{c}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.4\" stroke-linecap=\"round\" stroke-linejoin=\"round\"/>",
            hex(self.palette.weak)
        );
    }

    fn line(&mut self, line: &Line) {
        let (Some(first), Some(&tip)) = (line.points.first(), line.points.last()) else { return };
        let many = (line.count.min(9).saturating_sub(1)) as f32 * 0.18;
        let width = (1.15 + many) * if line.mark == Mark::Same { 1.0 } else { 1.7 };
        let colour = hex(self.palette.mark(line.mark));
        let before = line.points.iter().rev().find(|p| p.y != tip.y).copied().unwrap_or(*first);
        let upward = if before.y > tip.y { -1.0 } else { 1.0 };
        self.out.push_str("<path d=\"");
        let mut pen = None;
        for (k, pair) in line.points.windows(2).enumerate() {
            let (a, mut b) = (pair[0], pair[1]);
            let last = k + 2 == line.points.len();
            if line.mark == Mark::Same && !last && !self.drawn.insert([a.x, a.y, b.x, b.y].map(f32::to_bits))
            {
                continue;
            }
            if pen != Some(a) {
                let _ = write!(self.out, "M{:.1} {:.1}", a.x, a.y);
            }
            pen = Some(b);
            if last {
                // The curve ends inside the arrow head, which would else be blunt.
                b.y -= 3.0 * upward;
            }
            if (b.x - a.x).abs() < 0.75 {
                let _ = write!(self.out, "L{:.1} {:.1}", b.x, b.y);
            } else {
                let half = (b.y - a.y) * 0.5;
                let _ = write!(
                    self.out,
                    "C{:.1} {:.1} {:.1} {:.1} {:.1} {:.1}",
                    a.x,
                    a.y + half,
                    b.x,
                    b.y - half,
                    b.x,
                    b.y
                );
            }
        }
        let _ = write!(self.out, "\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width:.2}\"");
        if !dashes(line.mark).is_empty() {
            let _ = write!(self.out, " stroke-dasharray=\"{}\"", dashes(line.mark));
        }
        self.out.push_str("/>\n");
        let _ = writeln!(
            self.out,
            "<path d=\"M{:.1} {:.1}l-3.4 {:.1}h6.8z\" fill=\"{colour}\"/>",
            tip.x,
            tip.y,
            -6.8 * upward
        );
    }

    fn line_label(&mut self, line: &Line) {
        let Some(at) = line.label_at else { return };
        let halo = format!(
            " text-anchor=\"middle\" paint-order=\"stroke\" stroke=\"{}\" stroke-opacity=\"0.75\" stroke-width=\"3\" stroke-linejoin=\"round\"",
            hex(self.palette.canvas)
        );
        self.text(&line.label, at.x, at.y, SMALL_SIZE, self.palette.weak, &halo);
    }

    fn legend(&mut self, legend: &Legend, at: Point) {
        let p = self.palette;
        for (k, row) in legend.rows.iter().enumerate() {
            let middle = at.y + 8.0 + k as f32 * LEGEND_ROW + 7.0;
            for &(swatch, name, x) in row {
                let x = at.x + 2.0 * PAD + x;
                let square = Rect::new(x, middle - 6.0, 12.0, 12.0);
                match swatch {
                    Swatch::Family(family) => self.rect(&square, 3.0, Some(p.family(family)), None),
                    Swatch::Mark(mark) => {
                        let width = if mark == Mark::Added { 2.2 } else { 1.6 };
                        let stroke = Stroke { width, colour: p.mark(mark), dashes: dashes(mark) };
                        self.rect(&square, 3.0, Some(p.mark_fill(mark)), Some(stroke));
                    }
                    Swatch::Tag { constant } => {
                        let (fill, line) = if constant {
                            (p.sunken, p.container_outline)
                        } else {
                            (p.tag, palette::mix(p.tag, p.badge, 50))
                        };
                        self.rect(
                            &square,
                            3.0,
                            Some(fill),
                            Some(Stroke { width: 0.8, colour: line, dashes: "" }),
                        );
                    }
                }
                self.text(name, x + 18.0, middle, DETAIL_SIZE, p.weak, "");
            }
        }
    }
}

/// Arrows and mathematical signs, which the text font does not have.
fn is_sign(c: char) -> bool {
    matches!(c as u32, 0x2190..0x2300)
}

fn hex(colour: Rgb) -> String {
    format!("#{colour:06X}")
}

/// Text for XML 1.0: markup escaped, characters that it does not allow left out.
fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => out.push(' '),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => {}
            _ => out.push(c),
        }
    }
}
