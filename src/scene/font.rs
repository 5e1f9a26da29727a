//! Widths of text in the font that every painter uses, so that boxes fit their labels.

use std::sync::OnceLock;

/// Height of a line of text over its font size.
pub const LINE_HEIGHT: f32 = 1.3;

/// Advance widths of the font in em, by character.
struct Advances {
    /// Of the characters below `TABLE`.
    table: Vec<f32>,
    /// Of those that the font does not have: another font or a box stands in.
    missing: f32,
}

/// Latin, Greek, Cyrillic, punctuation, arrows and mathematical signs.
const TABLE: usize = 0x2300;

/// Width of one line of text at a font size, points.
pub fn text_width(text: &str, size: f32) -> f32 {
    static ADVANCES: OnceLock<Advances> = OnceLock::new();
    let advances = ADVANCES.get_or_init(|| Advances::of(epaint_default_fonts::UBUNTU_LIGHT));
    text.chars().map(|c| advances.advance(c)).sum::<f32>() * size
}

/// The text, its middle replaced by `…` where it is wider than `width` points: names differ at both ends.
pub fn shorten(text: &str, size: f32, width: f32) -> String {
    if text_width(text, size) <= width {
        return text.to_owned();
    }
    let chars: Vec<char> = text.chars().collect();
    let of = |c: &char| text_width(c.encode_utf8(&mut [0; 4]), size);
    let room = (width - text_width("…", size)).max(0.0);
    let (mut head, mut tail, mut used) = (0usize, 0usize, 0.0f32);
    while head + tail < chars.len() {
        // The end of a name says more than its beginning, so it gets three fifths.
        let from_tail = tail * 2 <= head * 3;
        let next = if from_tail { of(&chars[chars.len() - 1 - tail]) } else { of(&chars[head]) };
        if used + next > room {
            break;
        }
        used += next;
        if from_tail { tail += 1 } else { head += 1 }
    }
    chars[..head].iter().chain(&['…']).chain(&chars[chars.len() - tail..]).collect()
}

impl Advances {
    /// Reads `cmap` (format 4) and `hmtx` of a TrueType file (OpenType specification 1.9, chapter 5).
    fn of(font: &[u8]) -> Advances {
        let read = || -> Option<Vec<f32>> {
            let head = table(font, b"head")?;
            let em = f32::from(u16_at(head, 18)?);
            let metrics = usize::from(u16_at(table(font, b"hhea")?, 34)?);
            let hmtx = table(font, b"hmtx")?;
            let segments = character_map(table(font, b"cmap")?)?;
            let widths = (0..TABLE)
                .map(|c| {
                    let glyph = glyph(segments, c as u16).filter(|&g| g != 0);
                    let at = glyph.map(|g| usize::from(g).min(metrics.saturating_sub(1)) * 4);
                    at.and_then(|at| u16_at(hmtx, at)).map_or(f32::NAN, |w| f32::from(w) / em)
                })
                .collect();
            Some(widths)
        };
        Advances { table: read().unwrap_or_default(), missing: 0.62 }
    }

    fn advance(&self, c: char) -> f32 {
        match self.table.get(c as usize) {
            Some(w) if !w.is_nan() => *w,
            // East Asian characters and pictures are as wide as they are high.
            _ if c as u32 >= 0x1100 => 1.0,
            _ => self.missing,
        }
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<usize> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize)
}

fn table<'f>(font: &'f [u8], tag: &[u8; 4]) -> Option<&'f [u8]> {
    let count = usize::from(u16_at(font, 4)?);
    let entry = (0..count).map(|k| 12 + 16 * k).find(|&at| font.get(at..at + 4) == Some(tag.as_slice()))?;
    let (start, length) = (u32_at(font, entry + 8)?, u32_at(font, entry + 12)?);
    font.get(start..start.checked_add(length)?)
}

/// The format 4 subtable.
fn character_map(cmap: &[u8]) -> Option<&[u8]> {
    let count = usize::from(u16_at(cmap, 2)?);
    (0..count).find_map(|k| {
        let subtable = cmap.get(u32_at(cmap, 4 + 8 * k + 4)?..)?;
        (u16_at(subtable, 0)? == 4).then_some(subtable)
    })
}

fn glyph(map: &[u8], c: u16) -> Option<u16> {
    let doubled = usize::from(u16_at(map, 6)?);
    let segment = (0..doubled / 2).find(|k| u16_at(map, 14 + 2 * k).is_some_and(|end| end >= c))?;
    let (starts, deltas, offsets) = (16 + doubled, 16 + 2 * doubled, 16 + 3 * doubled);
    let start = u16_at(map, starts + 2 * segment)?;
    let delta = u16_at(map, deltas + 2 * segment)?;
    let offset_at = offsets + 2 * segment;
    let offset = u16_at(map, offset_at)?;
    if c < start {
        return None;
    }
    if offset == 0 {
        return Some(c.wrapping_add(delta));
    }
    let glyph = u16_at(map, offset_at + usize::from(offset) + 2 * usize::from(c - start))?;
    if glyph == 0 { None } else { Some(glyph.wrapping_add(delta)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_those_of_ubuntu_light() {
        // Advance widths of Ubuntu Light: space 229, m 868, W 932 of 1000 units.
        assert!((text_width(" ", 1000.0) - 229.0).abs() < 40.0);
        assert!(text_width("m", 10.0) > 2.5 * text_width("i", 10.0));
        assert!(text_width("W", 10.0) > text_width("n", 10.0));
        assert_eq!(text_width("", 14.0), 0.0);
        assert!((text_width("層", 10.0) - 10.0).abs() < 0.01);
    }

    #[test]
    fn long_names_lose_their_middle() {
        let name = "encoder.layer.11.attention.self.query.weight";
        let short = shorten(name, 10.0, 120.0);
        assert!(text_width(&short, 10.0) <= 120.0);
        assert!(short.starts_with("enc") && short.ends_with(".weight") && short.contains('…'));
        assert_eq!(shorten("conv1", 10.0, 120.0), "conv1");
        assert_eq!(shorten("name", 10.0, 0.0), "…");
    }
}
