//! What the window remembers from one day to the next, in a small JSON file of its own.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// How many recent files are remembered.
const MOST_RECENT: usize = 12;

/// Which theme.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThemeChoice {
    #[default]
    System,
    Light,
    Dark,
}

/// The settings. Fields that an older file lacks have their default.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    pub theme: ThemeChoice,
    /// Scale of everything, 1 is as designed.
    pub scale: f32,
    /// No flights and moves.
    pub reduce_motion: bool,
    pub wheel_zooms: bool,
    pub pipeline_shown: bool,
    pub inspector_shown: bool,
    pub bottom_shown: bool,
    /// Newest first.
    pub recent: Vec<PathBuf>,
    /// Where the last file dialog ended.
    pub folder: Option<PathBuf>,
    /// Always ask for files with the own browser.
    pub own_file_browser: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            theme: ThemeChoice::System,
            scale: 1.0,
            reduce_motion: false,
            wheel_zooms: true,
            pipeline_shown: true,
            inspector_shown: true,
            bottom_shown: true,
            recent: Vec::new(),
            folder: None,
            own_file_browser: false,
        }
    }
}

impl Settings {
    /// Where the file is on this system; `None` when no place is known.
    pub fn path() -> Option<PathBuf> {
        let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let folder = if cfg!(target_os = "windows") {
            set("APPDATA")
        } else if cfg!(target_os = "macos") {
            set("HOME").map(|home| home.join("Library/Application Support"))
        } else {
            set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")))
        };
        folder.map(|folder| folder.join("passlens").join("settings.json"))
    }

    /// The settings in a file; defaults when it is not there or not readable.
    pub fn load(path: &Path) -> Settings {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let mut settings: Settings = serde_json::from_str(&text).unwrap_or_default();
        if !(0.5..=3.0).contains(&settings.scale) {
            settings.scale = 1.0;
        }
        settings.recent.truncate(MOST_RECENT);
        settings
    }

    /// Writes the settings, the folder included.
    ///
    /// # Errors
    /// What the file system says.
    pub fn save(&self, path: &Path) -> std::io::Result<()> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let text = serde_json::to_string_pretty(self)?;
        std::fs::write(path, text)
    }

    /// Puts a file at the head of the recent ones.
    pub fn remember(&mut self, path: &Path) {
        self.recent.retain(|known| known != path);
        self.recent.insert(0, path.to_path_buf());
        self.recent.truncate(MOST_RECENT);
        self.folder = path.parent().map(Path::to_path_buf);
    }

    /// The theme as egui wants it.
    pub fn theme(&self) -> egui::ThemePreference {
        match self.theme {
            ThemeChoice::System => egui::ThemePreference::System,
            ThemeChoice::Light => egui::ThemePreference::Light,
            ThemeChoice::Dark => egui::ThemePreference::Dark,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_come_back_and_old_or_broken_files_do_no_harm() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("deep/settings.json");
        let mut settings = Settings { theme: ThemeChoice::Dark, scale: 1.25, ..Settings::default() };
        settings.remember(Path::new("/models/a.onnx"));
        settings.remember(Path::new("/models/b.onnx"));
        settings.remember(Path::new("/models/a.onnx"));
        settings.save(&path).expect("written");
        assert_eq!(Settings::load(&path), settings);
        assert_eq!(settings.recent.len(), 2);
        std::fs::write(&path, "{\"theme\": \"light\", \"scale\": 900}").expect("written");
        let old = Settings::load(&path);
        assert_eq!((old.theme, old.scale, old.wheel_zooms), (ThemeChoice::Light, 1.0, true));
        std::fs::write(&path, "not json").expect("written");
        assert_eq!(Settings::load(&path), Settings::default());
    }
}
