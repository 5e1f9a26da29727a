//! The command palette: a field, and everything that fits what stands in it; what cannot be done now says why.

use egui::{Align2, Id, Key, Modifiers, RichText, Vec2, vec2};

use crate::gui::theme::{GAP, Palette as Colours, ROW_HEIGHT};

/// One thing that can be picked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What is searched and shown.
    pub text: String,
    /// Said in weak letters after it.
    pub detail: String,
    /// Key, or nothing.
    pub key: String,
    /// Why it cannot be picked now.
    pub disabled: Option<String>,
}

/// What stands in the palette while it is open.
#[derive(Debug, Clone, Default)]
pub struct PaletteState {
    text: String,
    /// Position among the fitting entries.
    at: usize,
}

/// What became of the palette in one frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Picked {
    None,
    /// Position in the list of entries.
    Entry(usize),
    Closed,
}

/// Entries whose text and detail hold all words, best first: those that begin with the first word.
fn fitting(entries: &[Entry], text: &str) -> Vec<usize> {
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    let rank = |i: &usize| {
        let line = entries[*i].text.to_lowercase();
        let start = words.first().is_none_or(|word| line.starts_with(word.as_str()));
        let all = words.iter().all(|word| line.contains(word.as_str()));
        (!all, !start)
    };
    let holds = |entry: &Entry| {
        let line = format!("{} {}", entry.text, entry.detail).to_lowercase();
        words.iter().all(|word| line.contains(word.as_str()))
    };
    let mut found: Vec<usize> = (0..entries.len()).filter(|&i| holds(&entries[i])).collect();
    found.sort_by_key(rank);
    found
}

/// Draws the palette over everything else.
pub fn palette_ui(ctx: &egui::Context, state: &mut PaletteState, hint: &str, entries: &[Entry]) -> Picked {
    let mut picked = Picked::None;
    let room = ctx.content_rect().size();
    let found = fitting(entries, &state.text);
    let (up, down, enter) = ctx.input_mut(|i| {
        let mut key = |key| i.consume_key(Modifiers::NONE, key);
        (key(Key::ArrowUp), key(Key::ArrowDown), key(Key::Enter))
    });
    if down {
        state.at += 1;
    }
    if up {
        state.at = state.at.saturating_sub(1);
    }
    state.at = state.at.min(found.len().saturating_sub(1));
    let moved = up || down;
    let area =
        egui::Modal::default_area(Id::new("palette")).anchor(Align2::CENTER_TOP, vec2(0.0, room.y * 0.1));
    let modal = egui::Modal::new(Id::new("palette")).area(area).show(ctx, |ui| {
        ui.set_width((room.x - 60.0).clamp(220.0, 560.0));
        let field = egui::TextEdit::singleline(&mut state.text).hint_text(hint).desired_width(f32::INFINITY);
        let field = ui.add(field);
        field.request_focus();
        if field.changed() {
            state.at = 0;
        }
        ui.add_space(GAP);
        if found.is_empty() {
            ui.weak("Nothing fits");
        }
        let height = (room.y * 0.6).min(420.0);
        egui::ScrollArea::vertical().max_height(height).auto_shrink([false, true]).show(ui, |ui| {
            ui.spacing_mut().item_spacing.y = 1.0;
            for (i, &index) in found.iter().enumerate() {
                let row = entry_ui(ui, &entries[index], i == state.at);
                if i == state.at && moved {
                    row.scroll_to_me(None);
                }
                if entries[index].disabled.is_none() && (row.clicked() || (enter && i == state.at)) {
                    picked = Picked::Entry(index);
                }
            }
        });
    });
    if modal.should_close() && picked == Picked::None {
        picked = Picked::Closed;
    }
    picked
}

fn entry_ui(ui: &mut egui::Ui, entry: &Entry, current: bool) -> egui::Response {
    let colours = Colours::of(ui);
    let usable = entry.disabled.is_none();
    let text = RichText::new(&entry.text).color(if usable { colours.text } else { colours.weak });
    let detail = entry.disabled.as_ref().unwrap_or(&entry.detail);
    let detail = RichText::new(detail).color(colours.weak).small();
    let key = RichText::new(&entry.key).color(colours.weak).small();
    let button = egui::Button::selectable(current, (text, detail, egui::Atom::grow(), key)).truncate();
    ui.add_sized(Vec2::new(ui.available_width(), ROW_HEIGHT), button)
}

#[cfg(test)]
mod tests {
    use super::*;
    use egui_kittest::Harness;

    fn entry(text: &str, disabled: Option<&str>) -> Entry {
        Entry {
            text: text.into(),
            detail: String::new(),
            key: String::new(),
            disabled: disabled.map(Into::into),
        }
    }

    fn entries() -> Vec<Entry> {
        vec![
            entry("Save pipeline…", None),
            entry("Pipeline panel", None),
            entry("Undo", Some("nothing to undo")),
        ]
    }

    #[test]
    fn words_are_looked_for_in_any_order_and_beginnings_come_first() {
        assert_eq!(fitting(&entries(), "pip"), [1, 0]);
        assert_eq!(fitting(&entries(), "pipeline save"), [0]);
        assert_eq!(fitting(&entries(), ""), [0, 1, 2]);
    }

    #[test]
    fn typing_and_enter_pick_and_disabled_entries_do_not() {
        let run = |text: &str| {
            let mut harness = Harness::builder().with_step_dt(1.0 / 60.0).with_max_steps(100).build_ui_state(
                |ui, (state, picked): &mut (PaletteState, Picked)| {
                    let new = palette_ui(ui.ctx(), state, "Command", &entries());
                    if new != Picked::None {
                        *picked = new;
                    }
                },
                (PaletteState::default(), Picked::None),
            );
            harness.run();
            harness.event(egui::Event::Text(text.into()));
            harness.run();
            harness.key_press(Key::Enter);
            harness.run();
            harness.state().1
        };
        assert_eq!(run("panel"), Picked::Entry(1));
        assert_eq!(run("undo"), Picked::None);
    }
}
