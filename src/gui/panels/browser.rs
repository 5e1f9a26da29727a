//! A file browser inside the window, for systems without a file dialog.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};

use egui::{Align, Key, Layout, RichText, vec2};

use crate::gui::files::Purpose;
use crate::gui::theme::{GAP, Palette, ROW_HEIGHT};

/// A folder with more entries is shown up to here.
const MOST_ENTRIES: usize = 20_000;

/// What a person did with the browser in one frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    None,
    Chosen(PathBuf),
    Cancelled,
}

/// The browser's state.
pub struct Browser {
    purpose: Purpose,
    folder: PathBuf,
    /// What stands in the field: a name, or a path to go to.
    name: String,
    all_files: bool,
    listing: Listing,
    chosen: Option<usize>,
    /// An existing file that would be replaced; asked for before it is.
    replaces: Option<PathBuf>,
}

enum Listing {
    Coming(Receiver<Result<Vec<Entry>, String>>),
    Here(Vec<Entry>),
    Failed(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    name: String,
    is_folder: bool,
    bytes: u64,
}

impl Browser {
    /// A browser that starts in `folder` (or the nearest one above that exists).
    pub fn new(ctx: &egui::Context, purpose: Purpose, folder: &Path, name: &str) -> Browser {
        let nearest = folder.ancestors().find(|f| f.is_dir()).map(Path::to_path_buf);
        let folder = nearest.or_else(|| std::env::current_dir().ok()).unwrap_or_else(|| PathBuf::from("/"));
        let folder = folder.canonicalize().unwrap_or(folder);
        let listing = list(ctx, &folder);
        let name = name.to_owned();
        Browser { purpose, folder, name, all_files: false, listing, chosen: None, replaces: None }
    }

    fn go(&mut self, ctx: &egui::Context, folder: PathBuf) {
        self.listing = list(ctx, &folder);
        self.folder = folder;
        self.chosen = None;
        self.replaces = None;
    }

    /// Draws the browser and says what was done.
    pub fn ui(&mut self, ui: &mut egui::Ui, no_system_dialog: bool) -> Answer {
        if let Listing::Coming(coming) = &self.listing
            && let Ok(result) = coming.try_recv()
        {
            self.listing = result.map_or_else(Listing::Failed, Listing::Here);
        }
        let mut answer = Answer::None;
        let modal = egui::Modal::new(egui::Id::new("file browser")).show(ui.ctx(), |ui| {
            let room = ui.ctx().content_rect().size();
            ui.set_width((room.x - 80.0).clamp(240.0, 640.0));
            ui.heading(self.purpose.title());
            if no_system_dialog {
                ui.weak("The system has no file dialog, so passlens shows its own");
            }
            ui.add_space(GAP);
            self.path_ui(ui);
            ui.add_space(4.0);
            self.list_ui(ui, (room.y - 320.0).clamp(80.0, 380.0), &mut answer);
            ui.add_space(GAP);
            self.name_ui(ui, &mut answer);
        });
        if modal.should_close() && answer == Answer::None {
            answer = Answer::Cancelled;
        }
        answer
    }

    fn path_ui(&mut self, ui: &mut egui::Ui) {
        let mut target = None;
        ui.horizontal(|ui| {
            let parent = self.folder.parent().map(Path::to_path_buf);
            let up =
                ui.add_enabled(parent.is_some(), egui::Button::new("Up")).on_hover_text("The folder above");
            if up.clicked() {
                target = parent;
            }
            ui.add(egui::Label::new(self.folder.display().to_string()).truncate());
        });
        if let Some(folder) = target {
            self.go(ui.ctx(), folder);
        }
    }

    fn list_ui(&mut self, ui: &mut egui::Ui, height: f32, answer: &mut Answer) {
        let palette = Palette::of(ui);
        let mut go = None;
        egui::Frame::new().fill(palette.sunken).corner_radius(6.0).inner_margin(4.0).show(ui, |ui| {
            ui.set_min_size(vec2(ui.available_width(), height));
            let entries = match &self.listing {
                Listing::Coming(_) => {
                    ui.weak("Reading the folder…");
                    return;
                }
                Listing::Failed(why) => {
                    ui.colored_label(palette.error, why);
                    return;
                }
                Listing::Here(entries) => entries,
            };
            let shown: Vec<usize> = (0..entries.len()).filter(|&i| self.fits(&entries[i])).collect();
            if shown.is_empty() {
                ui.weak(format!("No .{} files here", self.purpose.endings().join(", .")));
            }
            let area = egui::ScrollArea::vertical().max_height(height).auto_shrink(false);
            area.show_rows(ui, ROW_HEIGHT - 4.0, shown.len(), |ui, rows| {
                for &i in &shown[rows] {
                    let entry = &entries[i];
                    let row = entry_ui(ui, entry, self.chosen == Some(i));
                    if row.clicked() {
                        self.chosen = Some(i);
                        if !entry.is_folder {
                            self.name = entry.name.clone();
                        }
                    }
                    if row.double_clicked() && entry.is_folder {
                        go = Some(self.folder.join(&entry.name));
                    } else if row.double_clicked() && !self.purpose.saves() {
                        *answer = Answer::Chosen(self.folder.join(&entry.name));
                    }
                }
            });
        });
        if let Some(folder) = go {
            self.go(ui.ctx(), folder);
        }
    }

    fn fits(&self, entry: &Entry) -> bool {
        let ending = Path::new(&entry.name).extension().and_then(|e| e.to_str()).unwrap_or_default();
        entry.is_folder
            || self.all_files
            || self.purpose.endings().iter().any(|known| known.eq_ignore_ascii_case(ending))
    }

    fn name_ui(&mut self, ui: &mut egui::Ui, answer: &mut Answer) {
        let palette = Palette::of(ui);
        ui.horizontal(|ui| {
            let label = ui.label("File name or path");
            let field = egui::TextEdit::singleline(&mut self.name).desired_width(ui.available_width());
            let field = ui.add(field).labelled_by(label.id);
            if field.changed() {
                self.replaces = None;
            }
            if field.lost_focus() && ui.input(|i| i.key_pressed(Key::Enter)) {
                self.confirm(ui.ctx(), answer);
            }
        });
        if let Some(path) = &self.replaces {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            ui.colored_label(palette.warning, format!("{name} exists; press Replace to write over it"));
        }
        ui.add_space(4.0);
        ui.horizontal(|ui| {
            ui.checkbox(&mut self.all_files, "Show all files");
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                let verb = match (self.purpose.saves(), self.replaces.is_some()) {
                    (true, true) => "Replace",
                    (true, false) => "Save",
                    (false, _) => "Open",
                };
                let text = RichText::new(verb).color(palette.on_accent);
                let ready = !self.name.trim().is_empty() || self.chosen.is_some();
                if ui.add_enabled(ready, egui::Button::new(text).fill(palette.accent)).clicked() {
                    self.confirm(ui.ctx(), answer);
                }
                if ui.button("Cancel").clicked() {
                    *answer = Answer::Cancelled;
                }
            });
        });
    }

    /// Goes into a folder, or takes the file named in the field.
    fn confirm(&mut self, ctx: &egui::Context, answer: &mut Answer) {
        let typed = self.name.trim();
        if let (Listing::Here(entries), Some(i)) = (&self.listing, self.chosen)
            && let Some(entry) = entries.get(i)
            && entry.is_folder
            && typed.is_empty()
        {
            let folder = self.folder.join(&entry.name);
            return self.go(ctx, folder);
        }
        let mut path = self.folder.join(typed);
        if path.is_dir() {
            self.name.clear();
            return self.go(ctx, path);
        }
        if !self.purpose.saves() {
            if path.is_file() {
                *answer = Answer::Chosen(path);
            } else {
                self.listing = Listing::Failed(format!("There is no file {}", path.display()));
            }
            return;
        }
        if path.extension().is_none() {
            path.set_extension(self.purpose.endings()[0]);
        }
        if path.exists() && self.replaces.as_ref() != Some(&path) {
            self.replaces = Some(path);
        } else {
            *answer = Answer::Chosen(path);
        }
    }
}

fn entry_ui(ui: &mut egui::Ui, entry: &Entry, chosen: bool) -> egui::Response {
    let text = if entry.is_folder { format!("{}/", entry.name) } else { entry.name.clone() };
    let size = if entry.is_folder { String::new() } else { super::bytes_text(entry.bytes) };
    let button = egui::Button::selectable(chosen, (text, egui::Atom::grow(), RichText::new(size).weak()));
    ui.add_sized(vec2(ui.available_width(), ROW_HEIGHT - 4.0), button.truncate())
}

/// Reads a folder in a thread: folders first, then files, each by name.
fn list(ctx: &egui::Context, folder: &Path) -> Listing {
    let (send, receive) = channel();
    let (ctx, folder) = (ctx.clone(), folder.to_path_buf());
    let read = move || {
        // The browser may have gone elsewhere meanwhile.
        let _ = send.send(read_folder(&folder));
        ctx.request_repaint();
    };
    match std::thread::Builder::new().name("folder".into()).spawn(read) {
        Ok(_) => Listing::Coming(receive),
        Err(error) => Listing::Failed(format!("The folder cannot be read: {error}")),
    }
}

fn read_folder(folder: &Path) -> Result<Vec<Entry>, String> {
    let entries =
        std::fs::read_dir(folder).map_err(|error| format!("{} cannot be read: {error}", folder.display()))?;
    let mut list: Vec<Entry> = entries
        .flatten()
        .take(MOST_ENTRIES)
        .filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let facts = std::fs::metadata(entry.path()).ok()?;
            let hidden = name.starts_with('.');
            (!hidden).then(|| Entry { name, is_folder: facts.is_dir(), bytes: facts.len() })
        })
        .collect();
    list.sort_by(|a, b| {
        b.is_folder.cmp(&a.is_folder).then_with(|| a.name.to_lowercase().cmp(&b.name.to_lowercase()))
    });
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use egui_kittest::kittest::Queryable;

    /// A harness around a browser in a folder with a model, another file and a folder with one more model.
    fn harness<'a>(purpose: Purpose) -> (egui_kittest::Harness<'a, (Browser, Answer)>, tempfile::TempDir) {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("inner")).expect("a folder");
        for name in ["a.onnx", "notes.md", "inner/b.onnx"] {
            std::fs::write(folder.path().join(name), b"1234").expect("a file");
        }
        let ctx = egui::Context::default();
        let browser = Browser::new(&ctx, purpose, folder.path(), "");
        let harness = egui_kittest::Harness::builder()
            .with_size(vec2(900.0, 700.0))
            .with_step_dt(1.0 / 60.0)
            .with_max_steps(120)
            .build_ui_state(
                |ui, (browser, answer): &mut (Browser, Answer)| {
                    let new = browser.ui(ui, true);
                    if new != Answer::None {
                        *answer = new;
                    }
                },
                (browser, Answer::None),
            );
        (harness, folder)
    }

    /// Waits for the thread that reads the folder.
    fn settle(harness: &mut egui_kittest::Harness<'_, (Browser, Answer)>) {
        for _ in 0..500 {
            harness.run();
            if !matches!(harness.state().0.listing, Listing::Coming(_)) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        panic!("the folder was never read");
    }

    fn click(harness: &mut egui_kittest::Harness<'_, (Browser, Answer)>, label: &str) {
        harness.get_by_label_contains(label).click();
        harness.run();
    }

    #[test]
    fn a_model_is_found_in_a_folder_and_chosen() {
        let (mut harness, folder) = harness(Purpose::OpenModel);
        settle(&mut harness);
        assert!(harness.query_by_label_contains("notes.md").is_none(), "other files are hidden");
        click(&mut harness, "inner/");
        harness.get_by_label("Open").click();
        harness.run();
        settle(&mut harness);
        click(&mut harness, "b.onnx");
        harness.get_by_label("Open").click();
        harness.run();
        let wanted = folder.path().canonicalize().expect("a path").join("inner/b.onnx");
        assert_eq!(harness.state().1, Answer::Chosen(wanted));
    }

    #[test]
    fn an_existing_file_is_replaced_only_when_asked_twice() {
        let (mut harness, _folder) = harness(Purpose::SaveModel);
        settle(&mut harness);
        click(&mut harness, "a.onnx");
        harness.get_by_label("Save").click();
        harness.run();
        assert_eq!(harness.state().1, Answer::None);
        harness.get_by_label("Replace").click();
        harness.run();
        assert!(matches!(&harness.state().1, Answer::Chosen(path) if path.ends_with("a.onnx")));
    }
}
