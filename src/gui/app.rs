//! The window's program: takes what was asked for in the frame to the session, and what the session has to the frame.
//! Knows nothing of eframe, so that tests and scripts run it as it is.

use std::path::PathBuf;
use std::sync::Arc;

use egui::Ui;

use super::files::{FileQuestion, Progress, Purpose};
use super::gather::{self, Gatherer};
use super::inspect::node_of;
use super::settings::{Settings, ThemeChoice};
use super::sheet::{Ask, Sheet};
use super::shell::{self, Shell};
use super::verbs::Verb;
use crate::ir::NodeId;
use crate::pipeline::Registry;
use crate::scene::Place;
use crate::session::{Change, Command, Session, Source, ViewMode};

/// The program.
pub struct App {
    pub session: Session,
    pub shell: Shell,
    pub settings: Settings,
    settings_path: Option<PathBuf>,
    saved: Settings,
    gatherer: Gatherer,
    sheet: Sheet,
    /// Revision of the session that the sheet is of.
    seen: Option<u64>,
    question: Option<FileQuestion>,
    /// Files are asked for inside the window only.
    own_dialogs: bool,
    /// The canvas goes to what is chosen as soon as it is in the picture.
    going: bool,
    /// What was chosen in the last frame.
    chosen: Option<Place>,
    opened: Option<Source>,
    title: String,
}

impl App {
    /// A window on a session without a model. Settings are kept in `settings_path`, or not at all.
    pub fn new(ctx: &egui::Context, registry: Registry, settings_path: Option<PathBuf>) -> App {
        let settings = settings_path.as_deref().map(Settings::load).unwrap_or_default();
        let waker = ctx.clone();
        let session = Session::new(registry, Arc::new(move || waker.request_repaint()));
        App {
            session,
            shell: Shell::default(),
            saved: settings.clone(),
            own_dialogs: settings.own_file_browser,
            settings,
            settings_path,
            gatherer: Gatherer::default(),
            sheet: Sheet::default(),
            seen: None,
            question: None,
            going: false,
            chosen: None,
            opened: None,
            title: String::new(),
        }
    }

    /// For scripts and tests: no system dialogs, no motion.
    pub fn quiet(ctx: &egui::Context, registry: Registry) -> App {
        let mut app = App::new(ctx, registry, None);
        app.own_dialogs = true;
        app.settings.reduce_motion = true;
        app
    }

    /// What is on the screen.
    pub fn sheet(&self) -> &Sheet {
        &self.sheet
    }

    /// Draws a frame and does what was asked for in it.
    pub fn ui(&mut self, ui: &mut Ui) {
        self.apply_settings(ui.ctx());
        self.session.poll();
        self.refresh(ui);
        let mut asks: Vec<Ask> = dropped(ui).into_iter().map(Ask::Open).collect();
        asks.extend(self.shell.ui(ui, &self.sheet, &self.settings));
        self.question_ui(ui);
        let busy = !asks.is_empty();
        for ask in asks {
            self.ask(ui, ask);
        }
        self.follow(ui);
        if busy || self.seen != Some(self.session.revision()) {
            ui.ctx().request_repaint();
        }
        self.keep_settings();
    }

    /// Sends a command to the session, as a script does, and lets the canvas follow.
    pub fn command(&mut self, command: Command) -> Result<(), String> {
        if let Command::Search { query } = &command {
            self.shell.show_search(query);
        }
        let steps = matches!(command, Command::NextStep | Command::PreviousStep | Command::GoToStep { .. });
        let result = self.session.apply(command);
        if steps && result.is_ok() {
            self.choose_step();
        }
        result
    }

    fn apply_settings(&mut self, ctx: &egui::Context) {
        if self.settings_path.is_some() && ctx.options(|o| o.theme_preference) != self.settings.theme() {
            ctx.set_theme(self.settings.theme());
        }
        if (ctx.zoom_factor() - self.settings.scale).abs() > 1e-3 {
            ctx.set_zoom_factor(self.settings.scale);
        }
    }

    fn refresh(&mut self, ui: &mut Ui) {
        let revision = self.session.revision();
        let opened = self.session.document().map(|d| d.source.clone());
        if opened != self.opened {
            self.shell.main.forget(ui);
            self.shell.second.forget(ui);
            self.shell.search = None;
            (self.going, self.chosen) = (false, None);
            if let Some(Source::File(path)) = &opened {
                self.settings.remember(path);
            }
            self.opened = opened;
        }
        if self.seen != Some(revision) || !self.sheet.jobs.is_empty() {
            let open = &self.shell.pipeline.open;
            self.sheet = self.gatherer.gather(&self.session, open, &self.settings.recent);
            self.seen = Some(revision);
        }
        if !self.sheet.jobs.is_empty() {
            // Seconds of what runs are counted in the status bar.
            ui.ctx().request_repaint_after(std::time::Duration::from_millis(100));
        }
        let title = match &self.sheet.name {
            Some(name) if self.sheet.compared.is_some() => {
                let second = self.sheet.compared.as_ref().map_or("", |c| c.name.as_str());
                format!("{name} ⇄ {second} – passlens")
            }
            Some(name) => format!("{name} – passlens"),
            None => "passlens".to_owned(),
        };
        if self.title != title {
            ui.ctx().send_viewport_cmd(egui::ViewportCommand::Title(title.clone()));
            self.title = title;
        }
    }

    /// Lets the canvas go to what was chosen elsewhere than on it.
    fn follow(&mut self, ui: &Ui) {
        let chosen = self.session.selected();
        if chosen != self.chosen.as_ref() {
            self.going |= chosen.is_some();
            self.chosen = chosen.cloned();
        }
        if !self.going || self.seen != Some(self.session.revision()) || self.session.is_waiting() {
            return;
        }
        if self.shell.reveal(&self.sheet, self.settings.reduce_motion) {
            ui.ctx().request_repaint();
        }
        self.going = false;
    }

    fn question_ui(&mut self, ui: &mut Ui) {
        let Some(question) = &mut self.question else { return };
        match question.ui(ui) {
            Progress::Waiting => {}
            Progress::Slow => {
                egui::Area::new(egui::Id::new("slow dialog"))
                    .anchor(egui::Align2::CENTER_TOP, egui::vec2(0.0, 44.0))
                    .order(egui::Order::Foreground)
                    .show(ui.ctx(), |ui| {
                        egui::Frame::popup(ui.style()).show(ui, |ui| {
                            ui.horizontal(|ui| {
                                ui.weak("Waiting for the system's file dialog");
                                if ui.button("Use the built-in one").clicked() {
                                    question.use_own(ui.ctx(), false);
                                }
                            });
                        });
                    });
            }
            Progress::Cancelled => self.question = None,
            Progress::Chosen(purpose, path) => {
                self.question = None;
                self.settings.folder = path.parent().map(PathBuf::from);
                let command = match purpose {
                    Purpose::OpenModel => Command::Open { path },
                    Purpose::CompareModel => Command::Compare { path },
                    Purpose::SaveModel => Command::Save { path },
                    Purpose::OpenPipeline => Command::LoadPipeline { path },
                    Purpose::SavePipeline => Command::SavePipeline { path },
                };
                self.send(command);
            }
        }
    }

    fn ask_for_file(&mut self, ui: &Ui, purpose: Purpose) {
        let folder =
            self.settings.folder.clone().or_else(|| std::env::current_dir().ok()).unwrap_or_default();
        let name = self.sheet.name.as_deref().unwrap_or("model");
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        let name = match purpose {
            Purpose::SaveModel => format!("{stem}.optimized.onnx"),
            Purpose::SavePipeline => "pipeline.toml".to_owned(),
            Purpose::OpenModel | Purpose::CompareModel | Purpose::OpenPipeline => String::new(),
        };
        self.question = Some(FileQuestion::new(ui.ctx(), purpose, &folder, &name, self.own_dialogs));
    }

    /// Sends a command; what cannot be done is on a card or was not offered.
    fn send(&mut self, command: Command) {
        // The session keeps a card of what a person should not miss; the rest was greyed with its reason.
        let _ = self.command(command);
    }

    fn ask(&mut self, ui: &mut Ui, ask: Ask) {
        match ask {
            Ask::Verb(verb) => self.verb(ui, verb),
            Ask::Open(path) => self.send(Command::Open { path }),
            Ask::OpenSample(name) => self.send(Command::OpenSample { name }),
            Ask::SetPass { pass, on } => self.send(Command::SetPass { pass: pass.to_string(), on }),
            Ask::SetStage { stage, on } => self.send(Command::SetStage { stage, on }),
            Ask::MovePass { pass, up } => self.send(Command::MovePass { pass: pass.to_string(), up }),
            Ask::Exclude { key, on } => self.send(Command::ExcludeSite { key, exclude: on }),
            Ask::ExcludeBlock { pass, block, on } => {
                self.send(Command::ExcludeBlock { pass: pass.to_string(), block, exclude: on });
            }
            Ask::OpenPass(pass) => {
                self.seen = None;
                let off = self.sheet.passes.iter().any(|p| p.name == pass && !p.on);
                if off {
                    self.send(Command::Preview { pass: pass.to_string() });
                }
            }
            Ask::Badges(pass) => {
                self.send(Command::FilterProvenance { pass: pass.map(|pass| pass.to_string()) });
            }
            Ask::ShowStep(step) => self.send(Command::GoToStep { step }),
            Ask::Choose(place) => {
                // The canvas was clicked: what is chosen is in view already.
                self.chosen = place.clone();
                self.session.select(place);
            }
            Ask::Toggle(place) => {
                self.chosen = Some(place.clone());
                self.session.select(Some(place.clone()));
                self.session.toggle(place);
            }
            Ask::Up => self.up(),
            Ask::Reveal(node) => self.reveal(node),
            Ask::Producer(value) => {
                let model = self.session.shown().map(|s| s.state.model.clone());
                let made = model.and_then(|m| m.get_value(value)?.node());
                match made {
                    Some((node, _)) => self.reveal(node),
                    None => self.session.select(Some(Place::of(crate::scene::Item::Input(value)))),
                }
            }
            Ask::OneOf(nodes) => {
                let here = self.session.selected().and_then(node_of);
                let next = here.and_then(|n| nodes.iter().position(|m| *m == n)).map_or(0, |i| i + 1);
                if let Some(&node) = nodes.get(next).or_else(|| nodes.first()) {
                    self.reveal(node);
                }
            }
            Ask::Change(index) => {
                if let Some(change) = self.sheet.changes.get(index) {
                    self.reveal(change.node);
                }
            }
            Ask::Search(query) => self.send(Command::Search { query }),
            Ask::Hit(index) => {
                self.session.go_to_hit_number(index);
                self.going = true;
            }
            Ask::Copy(text) => ui.ctx().copy_text(text),
            Ask::CloseCard(card) => self.send(Command::Dismiss { card }),
        }
    }

    fn verb(&mut self, ui: &mut Ui, verb: Verb) {
        let still = self.settings.reduce_motion;
        if self.shell.handle(verb, &mut self.settings, still, &self.sheet) {
            return;
        }
        match verb {
            Verb::Open => self.ask_for_file(ui, Purpose::OpenModel),
            Verb::Compare => self.ask_for_file(ui, Purpose::CompareModel),
            Verb::CloseComparison => self.send(Command::CloseComparison),
            Verb::Save => self.ask_for_file(ui, Purpose::SaveModel),
            Verb::LoadPipeline => self.ask_for_file(ui, Purpose::OpenPipeline),
            Verb::SavePipeline => self.ask_for_file(ui, Purpose::SavePipeline),
            Verb::SwitchTheme => {
                let dark = ui.visuals().dark_mode;
                self.settings.theme = if dark { ThemeChoice::Light } else { ThemeChoice::Dark };
                ui.ctx().set_theme(self.settings.theme());
            }
            Verb::ResetLayout => {
                ui.ctx().memory_mut(|memory| memory.reset_areas());
                for panel in ["pipeline", "inspector", "tables"] {
                    for small in [false, true] {
                        let id = shell::panel_id(panel, small);
                        let forget = |data: &mut egui::util::IdTypeMap| {
                            data.remove::<egui::containers::panel::PanelState>(id);
                        };
                        ui.ctx().data_mut(forget);
                    }
                }
                let kept = Settings {
                    recent: self.settings.recent.clone(),
                    folder: self.settings.folder.clone(),
                    theme: self.settings.theme,
                    ..Settings::default()
                };
                self.settings = kept;
            }
            Verb::Close => self.send(Command::Close),
            Verb::Undo => self.send(Command::Undo),
            Verb::Redo => self.send(Command::Redo),
            Verb::AllowRisky => self.send(Command::SetAggressive { on: !self.sheet.aggressive }),
            Verb::ResetPipeline => self.send(Command::ResetPipeline),
            Verb::Cancel => self.send(Command::Cancel),
            Verb::ViewBefore => self.send(Command::SetView { view: ViewMode::Before }),
            Verb::ViewAfter => self.send(Command::SetView { view: ViewMode::After }),
            Verb::ViewBoth => self.send(Command::SetView { view: ViewMode::SideBySide }),
            Verb::ViewDifference => self.send(Command::SetView { view: ViewMode::Difference }),
            Verb::OpenAll => self.send(Command::OpenAll { target: None }),
            Verb::CloseAll => self.send(Command::CloseAll { target: None }),
            Verb::NextHit => self.go(Command::NextHit),
            Verb::PreviousHit => self.go(Command::PreviousHit),
            Verb::NextChange => self.go(Command::NextChange),
            Verb::PreviousChange => self.go(Command::PreviousChange),
            Verb::NextStep => self.send(Command::NextStep),
            Verb::PreviousStep => self.send(Command::PreviousStep),
            Verb::FirstStep => self.send(Command::GoToStep { step: 0 }),
            Verb::LastStep => self.send(Command::GoToEnd),
            Verb::Back => self.go(Command::Back),
            Verb::Forward => self.go(Command::Forward),
            // Everything else was the frame's own.
            _ => {}
        }
    }

    /// Sends a command that chooses something, and goes there even if it was chosen already.
    fn go(&mut self, command: Command) {
        self.send(command);
        self.going = true;
    }

    fn reveal(&mut self, node: NodeId) {
        self.session.select_node(node);
        self.going = true;
    }

    /// Chooses what encloses the chosen box.
    fn up(&mut self) {
        let (Some(document), Some(shown)) = (self.session.document(), self.session.shown()) else { return };
        let Some(place) = self.session.selected() else { return };
        let chain = gather::chain(gather::state_with(document, shown, place), place);
        let outer = chain.len().checked_sub(2).and_then(|i| chain.get(i)).cloned();
        self.session.select(outer);
    }

    /// Chooses the node that the shown step is about, so that the picture follows the steps.
    fn choose_step(&mut self) {
        let step = self.session.step();
        let Some(document) = self.session.document() else { return };
        let Some(change) = step.checked_sub(1).and_then(|i| document.changes().get(i as usize)) else {
            return;
        };
        let before = |node: NodeId| document.initial.model.get_node(node).is_some();
        if let Some(node) = node_of_step(change, self.session.view(), &before) {
            self.reveal(node);
        }
    }

    fn keep_settings(&mut self) {
        if self.settings == self.saved {
            return;
        }
        self.saved = self.settings.clone();
        if let Some(path) = &self.settings_path {
            // Settings that cannot be kept are no reason to disturb anybody.
            let _ = self.settings.save(path);
        }
    }
}

/// The node of a step that is seen in a view: what it made or changed, else what it removed, else what reads its result.
/// `before` tells what the model had before all steps.
fn node_of_step(change: &Change, view: ViewMode, before: &dyn Fn(NodeId) -> bool) -> Option<NodeId> {
    let seen = |&&node: &&NodeId| view != ViewMode::Before || before(node);
    let first = |nodes: &[NodeId]| nodes.iter().find(seen).copied();
    let gone_is_shown = view != ViewMode::After;
    let kept = first(&change.changed).or_else(|| first(&change.added));
    let gone = first(&change.removed).filter(|_| gone_is_shown);
    kept.or(gone).or_else(|| first(&change.rewired)).or_else(|| first(&change.removed))
}

/// Files that were dropped on the window; the last one counts.
fn dropped(ui: &Ui) -> Option<PathBuf> {
    ui.input(|i| i.raw.dropped_files.last().map(|file| file.path().to_path_buf()))
}
