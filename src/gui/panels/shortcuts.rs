//! The sheet of all keys, made from the verbs; a field narrows it.

use egui::{Id, RichText, Vec2};

use crate::gui::theme::{GAP, Palette};
use crate::gui::verbs::{Menu, Verb};

/// Keys and pointer actions of the canvas, which are not verbs.
const CANVAS: [(&str, &str); 9] = [
    ("Drag", "Pan"),
    ("Wheel", "Zoom at the pointer"),
    ("Click", "Choose a node or block"),
    ("Double click", "Open or close a block"),
    ("↑ ↓", "Walk along lines"),
    ("← →", "Go to the neighbour"),
    ("Enter", "Open or close the chosen block"),
    ("Backspace", "Go up to the enclosing block"),
    ("Ctrl+C", "Copy the chosen name"),
];

/// Draws the sheet; false once it is to be closed.
pub fn shortcuts_ui(ctx: &egui::Context, filter: &mut String) -> bool {
    let room = ctx.content_rect().size();
    let modal = egui::Modal::new(Id::new("shortcuts")).show(ctx, |ui| {
        ui.set_width((room.x - 80.0).clamp(220.0, 620.0));
        ui.heading("Keyboard shortcuts");
        ui.add_space(4.0);
        let field = egui::TextEdit::singleline(filter).hint_text("Filter").desired_width(f32::INFINITY);
        ui.add(field).request_focus();
        ui.add_space(GAP);
        egui::ScrollArea::vertical().max_height((room.y - 220.0).max(120.0)).auto_shrink(false).show(
            ui,
            |ui| {
                for menu in Menu::ALL {
                    let rows: Vec<(String, &str)> = Verb::ALL
                        .iter()
                        .filter(|verb| verb.menu() == menu && !verb.keys().is_empty())
                        .map(|verb| (verb.key_text(ui.ctx()), verb.text()))
                        .collect();
                    group_ui(ui, menu.name(), &rows, filter);
                }
                let rows: Vec<(String, &str)> =
                    CANVAS.iter().map(|(key, text)| ((*key).to_owned(), *text)).collect();
                group_ui(ui, "Canvas", &rows, filter);
            },
        );
    });
    !modal.should_close()
}

fn group_ui(ui: &mut egui::Ui, title: &str, rows: &[(String, &str)], filter: &str) {
    let filter = filter.to_lowercase();
    let fits =
        |key: &str, text: &str| [key, text, title].iter().any(|part| part.to_lowercase().contains(&filter));
    let rows: Vec<_> = rows.iter().filter(|(key, text)| fits(key, text)).collect();
    if rows.is_empty() {
        return;
    }
    let palette = Palette::of(ui);
    ui.label(RichText::new(title).color(palette.accent));
    egui::Grid::new(("shortcuts", title))
        .num_columns(2)
        .min_col_width(150.0)
        .spacing(Vec2::new(16.0, 4.0))
        .show(ui, |ui| {
            for (key, text) in rows {
                ui.label(RichText::new(key).monospace().color(palette.weak));
                ui.label(*text);
                ui.end_row();
            }
        });
    ui.add_space(GAP);
}
