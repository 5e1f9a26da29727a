//! Asking for a file: the system's dialog in a thread, and an own browser where no dialog answers. Never blocks.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

use super::panels::browser::{Answer, Browser};

/// A system dialog that says "cancelled" faster than this has not been shown at all.
const TOO_FAST: Duration = Duration::from_millis(300);
/// After this long without an answer the own browser is offered beside the system's dialog.
const SLOW: Duration = Duration::from_secs(3);

/// What the file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A model to open.
    OpenModel,
    /// A second model, to be compared with the open one.
    CompareModel,
    /// Where the optimized model goes.
    SaveModel,
    /// A pipeline configuration to load.
    OpenPipeline,
    /// Where the pipeline configuration goes.
    SavePipeline,
}

impl Purpose {
    /// The dialog's title.
    pub fn title(self) -> &'static str {
        match self {
            Purpose::OpenModel => "Open a model",
            Purpose::CompareModel => "Compare with a second model",
            Purpose::SaveModel => "Save the optimized model",
            Purpose::OpenPipeline => "Open a pipeline",
            Purpose::SavePipeline => "Save the pipeline",
        }
    }

    /// True when a new file is named, false when one that exists is chosen.
    pub fn saves(self) -> bool {
        matches!(self, Purpose::SaveModel | Purpose::SavePipeline)
    }

    /// Endings of files that fit, without the dot, the usual one first.
    pub fn endings(self) -> &'static [&'static str] {
        match self {
            Purpose::OpenModel | Purpose::CompareModel => &["onnx", "json", "txt"],
            Purpose::SaveModel => &["onnx", "json", "txt"],
            Purpose::OpenPipeline | Purpose::SavePipeline => &["toml"],
        }
    }
}

/// A question for a file under way.
pub struct FileQuestion {
    purpose: Purpose,
    folder: PathBuf,
    name: String,
    state: State,
}

enum State {
    System { answer: Receiver<Option<PathBuf>>, asked: Instant },
    Own { browser: Browser, no_system_dialog: bool },
}

/// How far a question is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// Not answered yet.
    Waiting,
    /// The system's dialog takes long; a button for the own browser is worth showing.
    Slow,
    /// A file was chosen.
    Chosen(Purpose, PathBuf),
    /// Given up.
    Cancelled,
}

impl FileQuestion {
    /// Asks with the system's dialog, or with the own browser when `own` is set (tests, no portal known).
    pub fn new(ctx: &egui::Context, purpose: Purpose, folder: &Path, name: &str, own: bool) -> FileQuestion {
        let state = if own { None } else { ask_system(ctx, purpose, folder, name) };
        let mut question = FileQuestion {
            purpose,
            folder: folder.to_path_buf(),
            name: name.to_owned(),
            state: State::System { answer: channel().1, asked: Instant::now() },
        };
        match state {
            Some(state) => question.state = state,
            None => question.use_own(ctx, false),
        }
        question
    }

    /// Switches to the own browser.
    pub fn use_own(&mut self, ctx: &egui::Context, no_system_dialog: bool) {
        let browser = Browser::new(ctx, self.purpose, &self.folder, &self.name);
        self.state = State::Own { browser, no_system_dialog };
    }

    /// Draws the own browser when it is in use and says how far the question is.
    pub fn ui(&mut self, ui: &mut egui::Ui) -> Progress {
        match &mut self.state {
            State::System { answer, asked } => match answer.try_recv() {
                Ok(Some(path)) => Progress::Chosen(self.purpose, path),
                Ok(None) | Err(TryRecvError::Disconnected) if asked.elapsed() < TOO_FAST => {
                    self.use_own(ui.ctx(), true);
                    Progress::Waiting
                }
                Ok(None) | Err(TryRecvError::Disconnected) => Progress::Cancelled,
                Err(TryRecvError::Empty) if asked.elapsed() >= SLOW => Progress::Slow,
                Err(TryRecvError::Empty) => {
                    ui.ctx().request_repaint_after(SLOW.saturating_sub(asked.elapsed()));
                    Progress::Waiting
                }
            },
            State::Own { browser, no_system_dialog } => match browser.ui(ui, *no_system_dialog) {
                Answer::None => Progress::Waiting,
                Answer::Chosen(path) => Progress::Chosen(self.purpose, path),
                Answer::Cancelled => Progress::Cancelled,
            },
        }
    }
}

fn ask_system(ctx: &egui::Context, purpose: Purpose, folder: &Path, name: &str) -> Option<State> {
    let mut dialog = rfd::FileDialog::new().set_title(purpose.title());
    if folder.is_dir() {
        dialog = dialog.set_directory(folder);
    }
    let kind = if purpose.endings()[0] == "toml" { "Pipelines" } else { "Models" };
    dialog = dialog.add_filter(kind, purpose.endings());
    if purpose.saves() {
        dialog = dialog.set_file_name(name);
    } else {
        dialog = dialog.add_filter("All files", &["*"]);
    }
    let (send, answer) = channel();
    let ctx = ctx.clone();
    let ask = move || {
        let path = if purpose.saves() { dialog.save_file() } else { dialog.pick_file() };
        // The question may have been given up meanwhile.
        let _ = send.send(path);
        ctx.request_repaint();
    };
    let asked = Instant::now();
    std::thread::Builder::new().name("file dialog".into()).spawn(ask).ok()?;
    Some(State::System { answer, asked })
}
