//! The window itself: eframe around [`App`].

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::app::App;
use super::display::{self, NoWindow, Opened};
use super::settings::Settings;
use super::theme;
use crate::pipeline::Registry;
use crate::session::Command;

/// Name that desktops know the window by.
const APP_ID: &str = "passlens";

struct Window {
    app: App,
    started: Arc<AtomicBool>,
}

impl eframe::App for Window {
    fn ui(&mut self, ui: &mut egui::Ui, _frame: &mut eframe::Frame) {
        self.started.store(true, Ordering::SeqCst);
        self.app.ui(ui);
    }

    fn clear_color(&self, visuals: &egui::Visuals) -> [f32; 4] {
        visuals.panel_fill.to_normalized_gamma_f32()
    }
}

/// Opens the window, with a model if one is named, and returns when it is closed.
///
/// # Errors
/// One sentence when no window can be opened.
pub fn run(model: Option<&Path>, registry: Registry) -> Result<Opened, NoWindow> {
    let started = Arc::new(AtomicBool::new(false));
    let model = model.map(Path::to_path_buf);
    let open = || {
        let options = eframe::NativeOptions {
            viewport: egui::ViewportBuilder::default()
                .with_title("passlens")
                .with_app_id(APP_ID)
                .with_inner_size([1440.0, 900.0])
                .with_min_inner_size([640.0, 420.0])
                .with_drag_and_drop(true),
            ..eframe::NativeOptions::default()
        };
        let started = started.clone();
        let create = move |creation: &eframe::CreationContext<'_>| {
            theme::install(&creation.egui_ctx);
            theme::load_system_fonts(&creation.egui_ctx);
            let mut app = App::new(&creation.egui_ctx, registry, Settings::path());
            if let Some(path) = model {
                // What cannot be opened is said on a card.
                let _ = app.command(Command::Open { path });
            }
            Ok(Box::new(Window { app, started }) as Box<dyn eframe::App>)
        };
        eframe::run_native(APP_ID, options, Box::new(create))
    };
    display::open(&started, open)
}
