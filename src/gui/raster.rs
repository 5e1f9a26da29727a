//! Paints tessellated egui frames on the CPU: the window's exact picture without a GPU, for screenshots,
//! scripts and tests. Blending is done on gamma-encoded premultiplied colours, as egui's own painters do.

use std::collections::BTreeMap;
use std::path::Path;

use egui::epaint::{ClippedPrimitive, ImageData, ImageDelta, Mesh, Primitive, Vertex};
use egui::{Color32, TextureId, TexturesDelta};
use resvg::tiny_skia;

/// Sub-pixel steps of a vertex position (1/256 pixel); shared edges are then exactly shared.
const SUB: i64 = 256;
/// Largest side of a picture in pixels; larger requests are refused.
const MAX_SIDE: u32 = 16_384;

/// Why a picture could not be made or written.
#[derive(Debug, thiserror::Error)]
pub enum RasterError {
    /// Width or height is zero or beyond what the rasterizer takes.
    #[error("a picture of {width} x {height} pixels cannot be made; each side must be 1 to {MAX_SIDE}")]
    Size { width: u32, height: u32 },
    /// The PNG encoder refused.
    #[error("the picture could not be encoded as PNG: {0}")]
    Encode(String),
    /// The file could not be written.
    #[error("{path}: the picture could not be written: {source}")]
    Write { path: String, source: std::io::Error },
}

/// A finished picture: rows from the top, 4 bytes a pixel, premultiplied RGBA.
#[derive(Clone, PartialEq)]
pub struct Image {
    /// Pixels per row.
    pub width: u32,
    /// Number of rows.
    pub height: u32,
    /// `width * height` pixels.
    pub pixels: Vec<Color32>,
}

impl Image {
    /// The pixel at column `x`, row `y`; transparent outside.
    pub fn pixel(&self, x: u32, y: u32) -> Color32 {
        if x >= self.width || y >= self.height {
            return Color32::TRANSPARENT;
        }
        self.pixels[y as usize * self.width as usize + x as usize]
    }

    /// The picture as the bytes of a PNG file.
    pub fn to_png(&self) -> Result<Vec<u8>, RasterError> {
        let size = || RasterError::Size { width: self.width, height: self.height };
        let mut map = tiny_skia::Pixmap::new(self.width, self.height).ok_or_else(size)?;
        for (to, from) in map.data_mut().chunks_exact_mut(4).zip(&self.pixels) {
            to.copy_from_slice(&from.to_array());
        }
        map.encode_png().map_err(|error| RasterError::Encode(error.to_string()))
    }

    /// Writes the picture as a PNG file.
    pub fn save(&self, path: &Path) -> Result<(), RasterError> {
        let bytes = self.to_png()?;
        std::fs::write(path, bytes)
            .map_err(|source| RasterError::Write { path: path.display().to_string(), source })
    }
}

struct Texture {
    width: usize,
    height: usize,
    pixels: Vec<Color32>,
}

/// Holds the textures between frames and paints frames.
#[derive(Default)]
pub struct Raster {
    textures: BTreeMap<TextureId, Texture>,
}

impl Raster {
    /// Takes over new and changed textures and forgets freed ones. Empties `delta`.
    pub fn apply(&mut self, delta: &mut TexturesDelta) {
        for (id, images) in delta.set.drain() {
            for image in images {
                self.set_texture(id, &image);
            }
        }
        for id in delta.free.drain() {
            self.textures.remove(&id);
        }
    }

    fn set_texture(&mut self, id: TextureId, delta: &ImageDelta) {
        let ImageData::Color(image) = &delta.image;
        let [width, height] = image.size;
        match (delta.pos, self.textures.get_mut(&id)) {
            (Some([left, top]), Some(texture)) => {
                if left + width > texture.width || top + height > texture.height {
                    return;
                }
                for (row, source) in image.pixels.chunks_exact(width.max(1)).enumerate() {
                    let start = (top + row) * texture.width + left;
                    texture.pixels[start..start + width].copy_from_slice(source);
                }
            }
            (Some(_), None) => {}
            (None, _) => {
                let pixels = image.pixels.clone();
                self.textures.insert(id, Texture { width, height, pixels });
            }
        }
    }

    /// Paints `primitives` (as given by `Context::tessellate`) over `background`.
    pub fn paint(
        &self,
        width: u32,
        height: u32,
        pixels_per_point: f32,
        background: Color32,
        primitives: &[ClippedPrimitive],
    ) -> Result<Image, RasterError> {
        if width == 0 || height == 0 || width > MAX_SIDE || height > MAX_SIDE {
            return Err(RasterError::Size { width, height });
        }
        let pixels = vec![background; width as usize * height as usize];
        let mut image = Image { width, height, pixels };
        for ClippedPrimitive { clip_rect, primitive } in primitives {
            let Primitive::Mesh(mesh) = primitive else { continue };
            let Some(texture) = self.textures.get(&mesh.texture_id) else { continue };
            let clip = *clip_rect * pixels_per_point;
            let bound = |v: f32, max: u32| (v.round().max(0.0) as i64).min(i64::from(max));
            let clip = Clip {
                left: bound(clip.min.x, width),
                top: bound(clip.min.y, height),
                right: bound(clip.max.x, width),
                bottom: bound(clip.max.y, height),
            };
            if clip.left < clip.right && clip.top < clip.bottom {
                paint_mesh(&mut image, &clip, pixels_per_point, mesh, texture);
            }
        }
        Ok(image)
    }
}

/// Pixel columns `left..right`, rows `top..bottom`.
struct Clip {
    left: i64,
    top: i64,
    right: i64,
    bottom: i64,
}

fn paint_mesh(image: &mut Image, clip: &Clip, scale: f32, mesh: &Mesh, texture: &Texture) {
    for corner in mesh.indices.chunks_exact(3) {
        let get = |i: u32| mesh.vertices.get(i as usize);
        if let (Some(a), Some(b), Some(c)) = (get(corner[0]), get(corner[1]), get(corner[2])) {
            paint_triangle(image, clip, scale, [a, b, c], texture);
        }
    }
}

/// One side of a triangle: `step_x * x + step_y * y + start` is 0 on it and positive inside (x, y are pixel
/// indices, evaluated at pixel centres).
#[derive(Clone, Copy)]
struct Side {
    step_x: i64,
    step_y: i64,
    start: i64,
}

impl Side {
    /// The side from `p` to `q`. Pixels exactly on it belong to it only when it is a left or a top side.
    fn new(p: [i64; 2], q: [i64; 2]) -> Side {
        let (dx, dy) = (q[0] - p[0], q[1] - p[1]);
        let own = dy < 0 || (dy == 0 && dx > 0);
        let centre = SUB / 2;
        let start = dx * (centre - p[1]) - dy * (centre - p[0]) - i64::from(!own);
        Side { step_x: -dy * SUB, step_y: dx * SUB, start }
    }

    /// Narrows `left..right` to the pixels of row `y` on the inner side.
    fn narrow(&self, y: i64, left: &mut i64, right: &mut i64) {
        let at = self.step_y * y + self.start;
        match self.step_x.signum() {
            1 => *left = (*left).max(div_up(-at, self.step_x)),
            -1 => *right = (*right).min(at.div_euclid(-self.step_x) + 1),
            _ if at < 0 => *right = *left,
            _ => {}
        }
    }
}

fn div_up(a: i64, b: i64) -> i64 {
    -(-a).div_euclid(b)
}

/// A quantity that runs linearly over the picture.
#[derive(Clone, Copy)]
struct Plane {
    dx: f32,
    dy: f32,
    at_origin: f32,
}

impl Plane {
    fn at(&self, x: i64, y: i64) -> f32 {
        self.at_origin + self.dx * x as f32 + self.dy * y as f32
    }
}

fn paint_triangle(image: &mut Image, clip: &Clip, scale: f32, corners: [&Vertex; 3], texture: &Texture) {
    let mut place = corners.map(|v| {
        let fix = |c: f32| (c * scale * SUB as f32).round().clamp(-4.0e8, 4.0e8) as i64;
        [fix(v.pos.x), fix(v.pos.y)]
    });
    let mut vertex = corners;
    let area = |p: &[[i64; 2]; 3]| {
        (p[1][0] - p[0][0]) * (p[2][1] - p[0][1]) - (p[1][1] - p[0][1]) * (p[2][0] - p[0][0])
    };
    let mut doubled = area(&place);
    if doubled == 0 {
        return;
    }
    if doubled < 0 {
        place.swap(1, 2);
        vertex.swap(1, 2);
        doubled = -doubled;
    }
    let rows = place.map(|p| p[1]);
    let top = (rows.iter().min().copied().unwrap_or(0).div_euclid(SUB)).max(clip.top);
    let bottom = (rows.iter().max().copied().unwrap_or(0).div_euclid(SUB) + 1).min(clip.bottom);
    let sides = [Side::new(place[0], place[1]), Side::new(place[1], place[2]), Side::new(place[2], place[0])];

    let [a, b, c] = vertex;
    let flat_colour = a.color == b.color && b.color == c.color;
    let flat_uv = a.uv == b.uv && b.uv == c.uv;
    if flat_colour && flat_uv {
        let colour = modulate(channels(a.color), texture.sample(a.uv.x, a.uv.y));
        if colour == [0.0; 4] {
            return;
        }
        let solid = (colour[3] >= 255.0).then(|| to_colour(colour));
        each_span(image, clip, &sides, top..bottom, |_, _, row| match solid {
            Some(solid) => row.fill(solid),
            None => row.iter_mut().for_each(|pixel| *pixel = over(colour, *pixel)),
        });
        return;
    }

    // Weights of corners b and c grow from the sides opposite to them, in units of the doubled area.
    let plane = |of: fn(&Vertex) -> f32| {
        let (va, vb, vc) = (of(a), of(b), of(c));
        let (wb, wc) = (&sides[2], &sides[0]);
        let per_area = 1.0 / doubled as f64;
        let mix = |p: i64, q: i64| {
            ((f64::from(vb - va) * p as f64 + f64::from(vc - va) * q as f64) * per_area) as f32
        };
        Plane {
            dx: mix(wb.step_x, wc.step_x),
            dy: mix(wb.step_y, wc.step_y),
            at_origin: va + mix(wb.start, wc.start),
        }
    };
    let (u, v) = (plane(|v| v.uv.x), plane(|v| v.uv.y));
    let colours = [
        plane(|v| f32::from(v.color.r())),
        plane(|v| f32::from(v.color.g())),
        plane(|v| f32::from(v.color.b())),
        plane(|v| f32::from(v.color.a())),
    ];
    let flat_texel = flat_uv.then(|| texture.sample(a.uv.x, a.uv.y));
    let constant = channels(a.color);
    each_span(image, clip, &sides, top..bottom, |left, y, row| {
        for (i, pixel) in row.iter_mut().enumerate() {
            let x = left + i as i64;
            let texel = flat_texel.unwrap_or_else(|| texture.sample(u.at(x, y), v.at(x, y)));
            if texel == [0.0; 4] {
                continue;
            }
            let tint = if flat_colour { constant } else { colours.map(|p| p.at(x, y).clamp(0.0, 255.0)) };
            *pixel = over(modulate(tint, texel), *pixel);
        }
    });
}

/// Calls `paint(left, y, pixels)` for each run of covered pixels.
fn each_span(
    image: &mut Image,
    clip: &Clip,
    sides: &[Side; 3],
    rows: std::ops::Range<i64>,
    mut paint: impl FnMut(i64, i64, &mut [Color32]),
) {
    for y in rows {
        let (mut left, mut right) = (clip.left, clip.right);
        for side in sides {
            side.narrow(y, &mut left, &mut right);
        }
        if left < right {
            let start = y as usize * image.width as usize;
            paint(left, y, &mut image.pixels[start + left as usize..start + right as usize]);
        }
    }
}

impl Texture {
    /// The texture at `u`, `v` (0 to 1), bilinear, clamped at the border; channels 0 to 1.
    fn sample(&self, u: f32, v: f32) -> [f32; 4] {
        if self.width == 0 || self.height == 0 {
            return [0.0; 4];
        }
        let split = |t: f32, size: usize| {
            let at = (t * size as f32 - 0.5).clamp(0.0, (size - 1) as f32);
            let low = at.floor();
            (low as usize, (low as usize + 1).min(size - 1), at - low)
        };
        let (x0, x1, fx) = split(u, self.width);
        let (y0, y1, fy) = split(v, self.height);
        let texel = |x: usize, y: usize| channels(self.pixels[y * self.width + x]);
        let near = 1.0 / 256.0;
        if (fx < near || fx > 1.0 - near) && (fy < near || fy > 1.0 - near) {
            let (x, y) = (if fx < 0.5 { x0 } else { x1 }, if fy < 0.5 { y0 } else { y1 });
            return texel(x, y).map(|c| c / 255.0);
        }
        let (p, q, r, s) = (texel(x0, y0), texel(x1, y0), texel(x0, y1), texel(x1, y1));
        std::array::from_fn(|i| {
            let upper = p[i] + (q[i] - p[i]) * fx;
            let lower = r[i] + (s[i] - r[i]) * fx;
            (upper + (lower - upper) * fy) / 255.0
        })
    }
}

fn channels(colour: Color32) -> [f32; 4] {
    colour.to_array().map(f32::from)
}

fn modulate(tint: [f32; 4], texel: [f32; 4]) -> [f32; 4] {
    std::array::from_fn(|i| tint[i] * texel[i])
}

fn to_colour(c: [f32; 4]) -> Color32 {
    let [r, g, b, a] = c.map(|v| (v + 0.5) as u8);
    Color32::from_rgba_premultiplied(r, g, b, a)
}

/// Premultiplied "source over destination".
fn over(source: [f32; 4], below: Color32) -> Color32 {
    let keep = 1.0 - source[3] / 255.0;
    let below = channels(below);
    to_colour(std::array::from_fn(|i| (source[i] + below[i] * keep).min(255.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use egui::{Pos2, Rect, pos2};

    fn white() -> Raster {
        let texture = Texture { width: 1, height: 1, pixels: vec![Color32::WHITE] };
        Raster { textures: BTreeMap::from([(TextureId::default(), texture)]) }
    }

    fn triangles(points: &[[Pos2; 3]], colour: Color32) -> Vec<ClippedPrimitive> {
        let mut mesh = Mesh::default();
        for corner in points.iter().flatten() {
            mesh.indices.push(mesh.vertices.len() as u32);
            mesh.vertices.push(Vertex { pos: *corner, uv: pos2(0.0, 0.0), color: colour });
        }
        let clip_rect = Rect::from_min_max(pos2(0.0, 0.0), pos2(64.0, 64.0));
        vec![ClippedPrimitive { clip_rect, primitive: Primitive::Mesh(mesh) }]
    }

    #[test]
    fn triangles_that_share_edges_cover_each_pixel_once() {
        // A fan around an inner point whose edges meet pixel centres and odd fractions.
        let hub = pos2(20.5, 17.3);
        let rim = [pos2(2.0, 2.0), pos2(40.5, 2.5), pos2(50.25, 30.0), pos2(33.3, 50.5), pos2(1.5, 44.5)];
        let fan: Vec<_> = (0..rim.len()).map(|i| [hub, rim[i], rim[(i + 1) % rim.len()]]).collect();
        let half = Color32::from_rgba_premultiplied(100, 100, 100, 128);
        let paint = |points: &[[Pos2; 3]]| {
            white().paint(64, 64, 1.0, Color32::BLACK, &triangles(points, half)).expect("a small picture")
        };
        let fanned = paint(&fan);
        let pixel = |x, y| fanned.pixel(x, y);
        assert_eq!(pixel(20, 17), pixel(10, 10), "the hub must be neither doubled nor left out");
        let kinds: std::collections::BTreeSet<_> = fanned.pixels.iter().map(|c| c.to_array()).collect();
        assert_eq!(kinds.len(), 2, "background and one tone only: {kinds:?}");
        // The same polygon cut in another way covers the same pixels.
        let strips: Vec<_> = (1..rim.len() - 1).map(|i| [rim[0], rim[i], rim[i + 1]]).collect();
        assert!(paint(&strips) == fanned);
    }

    #[test]
    fn winding_does_not_matter_and_clips_hold() {
        let (a, b, c) = (pos2(0.0, 0.0), pos2(10.0, 0.0), pos2(0.0, 10.0));
        let paint = |t| {
            let mut shapes = triangles(&[t], Color32::WHITE);
            shapes[0].clip_rect = Rect::from_min_max(pos2(0.0, 0.0), pos2(4.0, 64.0));
            white().paint(16, 16, 1.0, Color32::BLACK, &shapes).expect("a small picture")
        };
        let one = paint([a, b, c]);
        assert!(one == paint([a, c, b]));
        assert_eq!(one.pixel(3, 0), Color32::WHITE);
        assert_eq!(one.pixel(4, 0), Color32::BLACK, "outside the clip rectangle");
    }

    #[test]
    fn a_frame_of_text_becomes_a_png() {
        let ctx = egui::Context::default();
        let mut raster = Raster::default();
        let input = egui::RawInput {
            screen_rect: Some(Rect::from_min_size(Pos2::ZERO, egui::vec2(120.0, 60.0))),
            ..Default::default()
        };
        let mut output = ctx.run_ui(input, |ui| {
            ui.label("passlens");
        });
        raster.apply(&mut output.textures_delta);
        let shapes = ctx.tessellate(std::mem::take(&mut output.shapes), 2.0);
        let image = raster.paint(240, 120, 2.0, Color32::BLACK, &shapes).expect("a small picture");
        assert!(image.pixels.iter().any(|&p| p != Color32::BLACK), "text is visible");
        assert!(image.to_png().expect("encodes").starts_with(b"\x89PNG"));
    }

    #[test]
    fn absurd_sizes_are_refused() {
        for (width, height) in [(0, 10), (10, 0), (MAX_SIDE + 1, 10)] {
            let result = Raster::default().paint(width, height, 1.0, Color32::BLACK, &[]);
            assert!(matches!(result, Err(RasterError::Size { .. })));
        }
    }
}
