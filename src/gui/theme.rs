//! The look of the window in one place: colours (light and dark), spacing, text sizes, fonts. No panel and no
//! part of the canvas chooses a colour itself.

use egui::{Color32, CornerRadius, Margin, Shadow, Stroke, Theme, Visuals, vec2};

use crate::scene::palette::Palette as Shared;
use crate::scene::{Family, Mark};

/// Radius of panels' cards and popups, in points.
pub const RADIUS: u8 = 6;
/// Height of one row of a list, in points.
pub const ROW_HEIGHT: f32 = 24.0;
/// Gap between unrelated things in a panel, in points.
pub const GAP: f32 = 8.0;

/// Text sizes in points.
pub mod size {
    pub const SMALL: f32 = 11.5;
    pub const BODY: f32 = 13.5;
    pub const HEADING: f32 = 17.0;
    pub const TITLE: f32 = 30.0;
    pub const MONO: f32 = 12.5;
}

/// Lengths of dash and gap in points; `None` is a solid outline.
pub fn mark_dashes(mark: Mark) -> Option<(f32, f32)> {
    match mark {
        Mark::Same | Mark::Added | Mark::Changed => None,
        Mark::Removed => Some((7.0, 4.0)),
        Mark::Rewired => Some((2.0, 3.0)),
    }
}

/// Every colour of one theme.
#[derive(Debug, Clone, PartialEq)]
pub struct Palette {
    /// True for the dark theme.
    pub dark: bool,
    /// Behind the graph.
    pub canvas: Color32,
    /// The dots on the canvas that show that it moves.
    pub canvas_dots: Color32,
    /// Side panels and bars.
    pub panel: Color32,
    /// Cards, text fields, popups.
    pub surface: Color32,
    /// Every second row, code, quiet buttons.
    pub sunken: Color32,
    /// Buttons under the pointer.
    pub hover: Color32,
    /// Lines between panels and around cards.
    pub border: Color32,
    /// Outlines that must be seen: buttons, fields, closed blocks.
    pub outline: Color32,
    /// Main text.
    pub text: Color32,
    /// Secondary text.
    pub weak: Color32,
    /// Links, the chosen tab, focus.
    pub accent: Color32,
    /// Text on `accent`.
    pub on_accent: Color32,
    /// Behind a chosen row.
    pub selection: Color32,
    /// Good news.
    pub good: Color32,
    /// Needs attention.
    pub warning: Color32,
    /// Failed.
    pub error: Color32,
    /// Lines of values.
    pub edge: Color32,
    /// Lines into the chosen node.
    pub edge_in: Color32,
    /// Lines out of the chosen node.
    pub edge_out: Color32,
    /// Open blocks, by depth modulo 2.
    pub container: [Color32; 2],
    /// Title bar of an open block.
    pub container_title: Color32,
    /// Outline of blocks.
    pub container_outline: Color32,
    /// Tags of values read from far away.
    pub tag: Color32,
    /// Badge that tells which pass made a node.
    pub badge: Color32,
    /// Found by search.
    pub found: Color32,
    /// What rendered files are painted with, too.
    shared: &'static Shared,
}

const fn rgb(hex: u32) -> Color32 {
    Color32::from_rgb((hex >> 16) as u8, (hex >> 8) as u8, hex as u8)
}

impl Palette {
    /// Dark text on light ground.
    pub const LIGHT: Palette = Palette {
        dark: false,
        canvas: rgb(Shared::LIGHT.canvas),
        canvas_dots: rgb(0xDDE1E7),
        panel: rgb(0xFCFCFD),
        surface: rgb(Shared::LIGHT.surface),
        sunken: rgb(Shared::LIGHT.sunken),
        hover: rgb(0xE6EAF0),
        border: rgb(Shared::LIGHT.border),
        outline: rgb(0x7C8694),
        text: rgb(Shared::LIGHT.text),
        weak: rgb(Shared::LIGHT.weak),
        accent: rgb(0x2F62D9),
        on_accent: rgb(0xFFFFFF),
        selection: rgb(0xDCE6FC),
        good: rgb(0x1B7A47),
        warning: rgb(0x8F5A00),
        error: rgb(0xB3261E),
        edge: rgb(Shared::LIGHT.edge),
        edge_in: rgb(0x1F6FB2),
        edge_out: rgb(0xB4560B),
        container: [rgb(Shared::LIGHT.container[0]), rgb(Shared::LIGHT.container[1])],
        container_title: rgb(Shared::LIGHT.container_title),
        container_outline: rgb(Shared::LIGHT.container_outline),
        tag: rgb(Shared::LIGHT.tag),
        badge: rgb(Shared::LIGHT.badge),
        found: rgb(Shared::LIGHT.found),
        shared: &Shared::LIGHT,
    };

    /// Light text on dark ground.
    pub const DARK: Palette = Palette {
        dark: true,
        canvas: rgb(Shared::DARK.canvas),
        canvas_dots: rgb(0x262B33),
        panel: rgb(0x1A1E24),
        surface: rgb(Shared::DARK.surface),
        sunken: rgb(Shared::DARK.sunken),
        hover: rgb(0x2C333D),
        border: rgb(Shared::DARK.border),
        outline: rgb(0x6F7B8B),
        text: rgb(Shared::DARK.text),
        weak: rgb(Shared::DARK.weak),
        accent: rgb(0x7BA4FF),
        on_accent: rgb(0x0E1726),
        selection: rgb(0x263A63),
        good: rgb(0x63C58E),
        warning: rgb(0xE2B253),
        error: rgb(0xFF8A80),
        edge: rgb(Shared::DARK.edge),
        edge_in: rgb(0x62B4F0),
        edge_out: rgb(0xF0A35E),
        container: [rgb(Shared::DARK.container[0]), rgb(Shared::DARK.container[1])],
        container_title: rgb(Shared::DARK.container_title),
        container_outline: rgb(Shared::DARK.container_outline),
        tag: rgb(Shared::DARK.tag),
        badge: rgb(Shared::DARK.badge),
        found: rgb(Shared::DARK.found),
        shared: &Shared::DARK,
    };

    /// The palette that fits the theme in force.
    pub fn of(ui: &egui::Ui) -> &'static Palette {
        if ui.visuals().dark_mode { &Palette::DARK } else { &Palette::LIGHT }
    }

    /// The strong colour of an operator family.
    pub fn family(&self, family: Family) -> Color32 {
        rgb(self.shared.family(family))
    }

    /// The fill of a node's box: the surface with a breath of the family's colour.
    pub fn node_fill(&self, family: Family) -> Color32 {
        rgb(self.shared.family_fill(family))
    }

    /// The thin outline of a node's box.
    pub fn node_outline(&self, family: Family) -> Color32 {
        rgb(self.shared.family_outline(family))
    }

    /// The colour of a difference; that of any line for none.
    pub fn mark(&self, mark: Mark) -> Color32 {
        rgb(self.shared.mark(mark))
    }

    /// The fill behind something that differs.
    pub fn mark_fill(&self, mark: Mark) -> Color32 {
        rgb(self.shared.mark_fill(mark))
    }
}

/// `a` with the share `t` (0 to 1) of `b`, opaque.
pub fn mix(a: Color32, b: Color32, t: f32) -> Color32 {
    let one = |p: u8, q: u8| (f32::from(p) + (f32::from(q) - f32::from(p)) * t).round() as u8;
    Color32::from_rgb(one(a.r(), b.r()), one(a.g(), b.g()), one(a.b(), b.b()))
}

/// Gives both of egui's themes this look.
pub fn install(ctx: &egui::Context) {
    let mut fonts = egui::FontDefinitions::default();
    // The text font has no arrows and few signs; the one for code has.
    if let Some(list) = fonts.families.get_mut(&egui::FontFamily::Proportional) {
        list.push("Hack".to_owned());
    }
    ctx.set_fonts(fonts);
    for (theme, palette) in [(Theme::Light, &Palette::LIGHT), (Theme::Dark, &Palette::DARK)] {
        ctx.style_mut_of(theme, |style| {
            style.visuals = visuals(palette);
            let text = [
                (egui::TextStyle::Small, egui::FontId::proportional(size::SMALL)),
                (egui::TextStyle::Body, egui::FontId::proportional(size::BODY)),
                (egui::TextStyle::Button, egui::FontId::proportional(size::BODY)),
                (egui::TextStyle::Heading, egui::FontId::proportional(size::HEADING)),
                (egui::TextStyle::Monospace, egui::FontId::monospace(size::MONO)),
            ];
            style.text_styles = text.into();
            style.spacing.item_spacing = vec2(8.0, 5.0);
            style.spacing.button_padding = vec2(9.0, 4.0);
            style.spacing.interact_size.y = ROW_HEIGHT;
            style.spacing.indent = 16.0;
            style.spacing.menu_margin = Margin::same(6);
            style.spacing.window_margin = Margin::same(12);
            style.spacing.scroll = egui::style::ScrollStyle::thin();
            style.interaction.selectable_labels = false;
            style.interaction.tooltip_delay = 0.35;
        });
    }
}

fn visuals(p: &Palette) -> Visuals {
    let mut v = if p.dark { Visuals::dark() } else { Visuals::light() };
    let radius = CornerRadius::same(RADIUS);
    v.override_text_color = None;
    v.weak_text_color = Some(p.weak);
    v.hyperlink_color = p.accent;
    v.faint_bg_color = p.sunken;
    v.extreme_bg_color = p.sunken;
    v.text_edit_bg_color = Some(p.sunken);
    v.code_bg_color = p.sunken;
    v.warn_fg_color = p.warning;
    v.error_fg_color = p.error;
    v.window_fill = p.surface;
    v.panel_fill = p.panel;
    v.window_stroke = Stroke::new(1.0, p.border);
    v.window_corner_radius = CornerRadius::same(10);
    v.menu_corner_radius = CornerRadius::same(8);
    let shade = if p.dark { 110 } else { 38 };
    let shadow = |offset: i8, blur: u8| Shadow {
        offset: [0, offset],
        blur,
        spread: 0,
        color: Color32::from_black_alpha(shade),
    };
    v.window_shadow = shadow(8, 28);
    v.popup_shadow = shadow(4, 14);
    v.selection.bg_fill = p.selection;
    v.selection.stroke = Stroke::new(1.0, if p.dark { p.text } else { p.accent });
    v.striped = false;
    v.indent_has_left_vline = false;
    v.slider_trailing_fill = true;
    let set = |w: &mut egui::style::WidgetVisuals, fill: Color32, line: Color32, text: Color32| {
        w.bg_fill = fill;
        w.weak_bg_fill = fill;
        w.bg_stroke = Stroke::new(1.0, line);
        w.fg_stroke = Stroke::new(1.0, text);
        w.corner_radius = radius;
        w.expansion = 0.0;
    };
    set(&mut v.widgets.noninteractive, p.panel, p.border, p.text);
    set(&mut v.widgets.inactive, p.sunken, p.border, p.text);
    v.widgets.inactive.bg_fill = p.hover;
    set(&mut v.widgets.hovered, p.hover, p.outline, p.text);
    set(&mut v.widgets.active, p.selection, p.accent, p.text);
    set(&mut v.widgets.open, p.hover, p.outline, p.text);
    v
}

/// Adds fonts of the system behind the built-in ones, so that names in other scripts are readable. Nothing found leaves
/// things as they are.
pub fn add_system_fonts(ctx: &egui::Context) {
    for (name, path) in crate::scene::system_fonts::find() {
        let Ok(bytes) = std::fs::read(&path) else { continue };
        ctx.add_font(egui::epaint::text::FontInsert {
            name,
            data: egui::FontData::from_owned(bytes),
            families: [egui::FontFamily::Proportional, egui::FontFamily::Monospace]
                .map(|family| egui::epaint::text::InsertFontFamily {
                    family,
                    priority: egui::epaint::text::FontPriority::Lowest,
                })
                .to_vec(),
        });
    }
    ctx.request_repaint();
}

/// Does [`add_system_fonts`] in a thread, so that the window is there at once.
pub fn load_system_fonts(ctx: &egui::Context) {
    let ctx = ctx.clone();
    // Without a thread the names are drawn as boxes, which is no reason to fail.
    let _ = std::thread::Builder::new().name("fonts".into()).spawn(move || add_system_fonts(&ctx));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::family::FAMILIES;
    use crate::scene::palette::{MARKS, mark_name, mark_sign};

    fn luminance(c: Color32) -> f32 {
        let linear = |v: u8| {
            let v = f32::from(v) / 255.0;
            if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(c.r()) + 0.7152 * linear(c.g()) + 0.0722 * linear(c.b())
    }

    /// Contrast ratio of WCAG 2, 1 to 21.
    fn contrast(a: Color32, b: Color32) -> f32 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn text_and_lines_stand_out_from_what_is_behind_them() {
        let mut faults = Vec::new();
        for p in [&Palette::LIGHT, &Palette::DARK] {
            let theme = if p.dark { "dark" } else { "light" };
            let grounds = [p.canvas, p.panel, p.surface, p.sunken, p.container[0], p.container[1]];
            let mut check = |name: &str, colour: Color32, ground: Color32, least: f32| {
                let got = contrast(colour, ground);
                if got < least {
                    faults.push(format!("{theme}: {name} on {ground:?}: contrast {got:.2}, wanted {least}"));
                }
            };
            for ground in grounds.into_iter().chain([p.hover, p.selection, p.container_title, p.tag]) {
                check("text", p.text, ground, 4.5);
                check("weak", p.weak, ground, 4.5);
            }
            for ground in [p.panel, p.surface, p.sunken] {
                for (name, colour) in
                    [("accent", p.accent), ("good", p.good), ("warning", p.warning), ("error", p.error)]
                {
                    check(name, colour, ground, 4.5);
                }
                check("outline", p.outline, ground, 3.0);
            }
            check("on accent", p.on_accent, p.accent, 4.5);
            for ground in [p.canvas, p.container[0]] {
                for (name, colour) in [
                    ("edge", p.edge),
                    ("edge in", p.edge_in),
                    ("edge out", p.edge_out),
                    ("container outline", p.container_outline),
                    ("badge", p.badge),
                    ("found", p.found),
                ] {
                    check(name, colour, ground, 3.0);
                }
            }
            for family in FAMILIES {
                check(family.name(), p.family(family), p.canvas, 3.0);
                check(family.name(), p.text, p.node_fill(family), 4.5);
                check(family.name(), p.weak, p.node_fill(family), 4.5);
            }
            for mark in MARKS {
                check(mark_name(mark), p.mark(mark), p.canvas, 3.0);
                check(mark_name(mark), p.mark(mark), p.surface, 4.5);
                check(mark_name(mark), p.text, p.mark_fill(mark), 4.5);
            }
        }
        assert!(faults.is_empty(), "{faults:#?}");
    }

    #[test]
    fn differences_can_be_told_apart_without_colour() {
        let signs: std::collections::BTreeSet<_> = MARKS.map(mark_sign).into();
        assert_eq!(signs.len(), MARKS.len());
    }
}
