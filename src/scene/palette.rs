//! Colours of pictures, light and dark: operator families, differences, blocks, lines.

use super::family::FAMILIES;
use super::picture::{Family, Mark};

/// A colour, `0xRRGGBB`.
pub type Rgb = u32;

/// Differences in the order of a legend.
pub const MARKS: [Mark; 4] = [Mark::Added, Mark::Removed, Mark::Changed, Mark::Rewired];

/// Every colour of one theme. Contrast with the ground is at least 4.5 for text and 3 for lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Palette {
    pub canvas: Rgb,
    pub surface: Rgb,
    pub sunken: Rgb,
    pub border: Rgb,
    pub text: Rgb,
    pub weak: Rgb,
    /// Lines of values.
    pub edge: Rgb,
    /// Open blocks, by depth modulo 2.
    pub container: [Rgb; 2],
    pub container_title: Rgb,
    pub container_outline: Rgb,
    /// Tags of values read from far away.
    pub tag: Rgb,
    /// Which pass made a node; how often a block repeats.
    pub badge: Rgb,
    pub found: Rgb,
    families: [Rgb; FAMILIES.len()],
    marks: [Rgb; MARKS.len()],
    /// Share of the family's colour in a box's fill, in hundredths.
    tint: u32,
}

impl Palette {
    /// Dark on light.
    pub const LIGHT: Palette = Palette {
        canvas: 0xF6F7F9,
        surface: 0xFFFFFF,
        sunken: 0xF1F3F6,
        border: 0xE1E5EA,
        text: 0x1C2430,
        weak: 0x5B6675,
        edge: 0x7E8897,
        container: [0xEDF0F5, 0xE5E9F0],
        container_title: 0xDDE3EC,
        container_outline: 0x7C8797,
        tag: 0xE9E4F5,
        badge: 0x6A4FB3,
        found: 0xA86A00,
        families: [
            0x2F62D9, 0x5B4BC4, 0x0E7C86, 0xA86A00, 0x1C7FA8, 0x4F7A3A, 0x7A5C99, 0x6B7480, 0x2E7D5B,
            0xB0453A, 0xAD3F7C, 0x5F6B7A,
        ],
        marks: [0x0072B2, 0xA04000, 0x8F3F6E, 0x6A727D],
        tint: 9,
    };

    /// Light on dark.
    pub const DARK: Palette = Palette {
        canvas: 0x14171C,
        surface: 0x21262E,
        sunken: 0x16191F,
        border: 0x2B313A,
        text: 0xE4E8EE,
        weak: 0x9DA8B6,
        edge: 0x75808F,
        container: [0x1B2027, 0x222831],
        container_title: 0x2A313C,
        container_outline: 0x6C7888,
        tag: 0x332E45,
        badge: 0xA990F0,
        found: 0xF2C14E,
        families: [
            0x6C9BFF, 0x9A8CFF, 0x4CC2C9, 0xE0AC4A, 0x5CB8DE, 0x8EBF74, 0xB897D8, 0x97A1AE, 0x67C79B,
            0xEE857A, 0xE582B6, 0x9AA6B5,
        ],
        marks: [0x56B4E9, 0xE8752A, 0xCC79A7, 0x98A1AD],
        tint: 14,
    };

    /// The strong colour of a family.
    pub fn family(&self, family: Family) -> Rgb {
        let at = FAMILIES.iter().position(|&f| f == family);
        self.families[at.unwrap_or(FAMILIES.len() - 1)]
    }

    /// Fill of a node's box.
    pub fn family_fill(&self, family: Family) -> Rgb {
        mix(self.surface, self.family(family), self.tint)
    }

    /// Outline of a node's box.
    pub fn family_outline(&self, family: Family) -> Rgb {
        mix(self.border, self.family(family), 55)
    }

    /// Colour of a difference; that of a line for none.
    pub fn mark(&self, mark: Mark) -> Rgb {
        MARKS.iter().position(|&m| m == mark).map_or(self.edge, |at| self.marks[at])
    }

    /// Fill behind something that differs.
    pub fn mark_fill(&self, mark: Mark) -> Rgb {
        mix(self.surface, self.mark(mark), self.tint + 5)
    }
}

/// `a` with a share of `b` in hundredths.
pub fn mix(a: Rgb, b: Rgb, share: u32) -> Rgb {
    let channel = |shift: u32| {
        let (p, q) = ((a >> shift) & 0xFF, (b >> shift) & 0xFF);
        ((p * (100 - share) + q * share + 50) / 100) << shift
    };
    channel(16) | channel(8) | channel(0)
}

/// The sign that tells a difference without colour.
pub fn mark_sign(mark: Mark) -> &'static str {
    match mark {
        Mark::Same => "",
        Mark::Added => "+",
        Mark::Removed => "–",
        Mark::Changed => "~",
        Mark::Rewired => "↷",
    }
}

/// The word for a difference.
pub fn mark_name(mark: Mark) -> &'static str {
    match mark {
        Mark::Same => "same",
        Mark::Added => "added",
        Mark::Removed => "removed",
        Mark::Changed => "changed",
        Mark::Rewired => "rewired",
    }
}
