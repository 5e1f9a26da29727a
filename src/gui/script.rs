//! Plays a script in the window's own drawing code without a window: commands, waits, pictures, expectations.

use std::path::Path;
use std::time::{Duration, Instant};

use super::app::App;
use super::headless::Headless;
use super::theme;
use crate::pipeline::Registry;
use crate::session::script::{self, Failures, Line, Other, ScriptError, Theme};

/// Size of the window until a script says otherwise, in points.
const SIZE: egui::Vec2 = egui::vec2(1600.0, 1000.0);
/// Frames in which everything that moves has come to rest.
const MOST_FRAMES: usize = 240;
/// What a script has started may go on so long after its last line.
const LONGEST_END: Duration = Duration::from_secs(60);

/// What went wrong with a script.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    #[error("{path}: cannot be read: {source}")]
    Read { path: String, source: std::io::Error },
    #[error("{path}: {error}")]
    Script { path: String, error: ScriptError },
    #[error("{path}: still busy {seconds} s after the last line; end it with wait_idle")]
    Busy { path: String, seconds: u64 },
}

/// A window that is driven by lines.
pub struct Player {
    pub app: App,
    pub headless: Headless,
    failures: Failures,
}

impl Player {
    /// A window on the start page.
    pub fn new(registry: Registry) -> Player {
        let headless = Headless::new(SIZE, 1.0, false);
        let app = App::quiet(&headless.ctx, registry);
        let mut player = Player { app, headless, failures: Failures::default() };
        player.settle();
        player
    }

    /// One frame; true when another one is wanted at once.
    pub fn frame(&mut self) -> bool {
        let app = &mut self.app;
        self.headless.frame(|ui| app.ui(ui)).wants_more
    }

    /// Draws frames until nothing moves any longer.
    pub fn settle(&mut self) {
        // The first frames of panels and canvases only find out how large things are.
        for count in 0..MOST_FRAMES {
            if !self.frame() && count >= 2 {
                break;
            }
        }
    }

    /// Waits until the session has nothing left to do and the picture is at rest; false when that takes too long.
    pub fn wait_idle(&mut self, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if !self.app.session.wait_idle(left) {
                return false;
            }
            self.settle();
            if self.app.session.is_idle() {
                return true;
            }
        }
    }

    /// Does what a line says; `number` is the line's.
    ///
    /// # Errors
    /// The line that cannot be done, with one sentence: this one, or an earlier command that turned out to have failed.
    pub fn play(&mut self, number: usize, line: Line) -> Result<(), ScriptError> {
        if let Line::Command(command) = line {
            self.answered()?;
            self.failures.given(number, &command);
            let text = serde_json::to_string(&command).unwrap_or_default();
            let result = self.app.command(command);
            self.frame();
            let cards = self.failures.look(&self.app.session);
            return match result {
                // What is on screen can still be expected.
                Err(_) if cards > 0 => Ok(()),
                Err(message) => {
                    Err(ScriptError { line: number, message: format!("{text} failed: {message}") })
                }
                Ok(()) => Ok(()),
            };
        }
        let done = self.play_other(line).map_err(|message| ScriptError { line: number, message });
        self.failures.look(&self.app.session);
        done
    }

    /// No command has failed without an expectation that speaks of it.
    ///
    /// # Errors
    /// The line of the command that has.
    pub fn answered(&self) -> Result<(), ScriptError> {
        self.failures.unanswered().map_or(Ok(()), Err)
    }

    fn play_other(&mut self, line: Line) -> Result<(), String> {
        match line {
            Line::Command(_) => Ok(()),
            Line::Other(Other::WaitIdle(seconds)) => {
                let limit = Duration::try_from_secs_f64(seconds).map_err(|e| e.to_string())?;
                let idle = self.wait_idle(limit);
                if idle { Ok(()) } else { Err(format!("still busy after {seconds} s")) }
            }
            Line::Other(Other::Shot(path)) => {
                self.settle();
                // One folder is a convenience, several are a mistyped path.
                if let Some(folder) =
                    path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists())
                {
                    std::fs::create_dir(folder)
                        .map_err(|e| format!("the folder {} cannot be made: {e}", folder.display()))?;
                }
                let image = self.headless.image().map_err(|e| e.to_string())?;
                image.save(&path).map_err(|e| format!("{} cannot be written: {e}", path.display()))
            }
            Line::Other(Other::Window { width, height, scale }) => {
                self.headless.resize(egui::vec2(width, height), scale);
                self.settle();
                Ok(())
            }
            Line::Other(Other::Theme(theme)) => {
                let theme = if theme == Theme::Dark { egui::Theme::Dark } else { egui::Theme::Light };
                self.headless.ctx.set_theme(theme);
                self.settle();
                Ok(())
            }
            Line::Other(Other::Expect(expect)) => {
                self.failures.look(&self.app.session);
                script::check(&self.app.session, &expect)?;
                self.failures.answered(&expect);
                Ok(())
            }
        }
    }
}

/// Plays the script in a file.
///
/// # Errors
/// The first line that cannot be done, an expectation that does not hold, or a command that failed without one.
pub fn play_file(path: &Path, registry: Registry) -> Result<(), PlayError> {
    let name = path.display().to_string();
    let text =
        std::fs::read_to_string(path).map_err(|source| PlayError::Read { path: name.clone(), source })?;
    let lines = script::parse(&text).map_err(|error| PlayError::Script { path: name.clone(), error })?;
    let mut player = Player::new(registry);
    theme::add_system_fonts(&player.headless.ctx);
    for (line, what) in lines {
        player.play(line, what).map_err(|error| PlayError::Script { path: name.clone(), error })?;
    }
    // What a last command started has to end before it can be told from one that failed.
    if !player.wait_idle(LONGEST_END) {
        let seconds = LONGEST_END.as_secs();
        return Err(PlayError::Busy { path: name, seconds });
    }
    player.failures.look(&player.app.session);
    player.answered().map_err(|error| PlayError::Script { path: name, error })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn play(script: &str) -> Result<(), PlayError> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("play.jsonl");
        let shot = folder.path().join("shots/a.png");
        let text = script.replace("SHOT", &shot.display().to_string());
        let text = text.replace("FOLDER", &folder.path().display().to_string());
        std::fs::write(&path, text).expect("written");
        let played = play_file(&path, Registry::builtin());
        if script.contains("SHOT") {
            assert!(std::fs::read(&shot).expect("a picture").starts_with(b"\x89PNG"));
        }
        played
    }

    #[test]
    fn a_script_opens_goes_about_and_takes_a_picture() {
        let script = r#"
            # A sample, its first rewrite, a search.
            {"do":"open_sample","name":"convolutional"}
            {"wait_idle":60}
            {"window":{"width":900,"height":600}}
            {"theme":"dark"}
            {"do":"go_to_step","step":1}
            {"do":"search","query":"op:Conv"}
            {"wait_idle":60}
            {"expect":{"document":"Small convolutional network","step":1,"cards":0}}
            {"shot":"SHOT"}
        "#;
        play(script).expect("all of it can be done");
    }

    #[test]
    fn a_command_that_fails_ends_the_script_unless_that_is_expected() {
        let open = "{\"do\":\"open\",\"path\":\"no/such.onnx\"}\n";
        let error = play(open).expect_err("there is no such file").to_string();
        assert!(error.contains("line 1: {\"do\":\"open\"") && error.contains("cannot be read"), "{error}");
        let before_another =
            format!("{open}{{\"wait_idle\":60}}\n{{\"do\":\"open_sample\",\"name\":\"mixed\"}}\n");
        assert!(play(&before_another).expect_err("the first").to_string().contains("line 1"));
        let expected =
            format!("{open}{{\"wait_idle\":60}}\n{{\"expect\":{{\"card_says\":\"cannot be read\"}}}}\n");
        play(&expected).expect("the failure is expected");
        let unknown = "{\"do\":\"open_sample\",\"name\":\"nothing\"}\n{\"expect\":{\"cards\":1}}\n";
        play(unknown).expect("so is this one, which comes at once");
        let quiet = "{\"do\":\"next_step\"}\n{\"do\":\"set_pass\",\"pass\":\"nothing\",\"on\":true}\n";
        assert!(play(quiet).expect_err("no model is open").to_string().contains("line"));
    }

    #[test]
    fn a_picture_makes_one_folder_and_no_more() {
        let folder = tempfile::tempdir().expect("a folder");
        let shot = |path: &str| play(&format!("{{\"shot\":{:?}}}\n", folder.path().join(path)));
        shot("new/a.png").expect("one folder is made");
        let error = shot("two/new/a.png").expect_err("two are not").to_string();
        assert!(error.contains("line 1: the folder") && !folder.path().join("two").exists(), "{error}");
    }

    #[test]
    fn a_script_compares_two_files_and_goes_back() {
        let script = r#"
            {"do":"open_sample","name":"convolutional"}
            {"wait_idle":60}
            {"do":"save","path":"FOLDER/second.onnx"}
            {"wait_idle":60}
            {"do":"compare","path":"FOLDER/second.onnx"}
            {"wait_idle":60}
            {"expect":{"document":"Small convolutional network","compared":"second.onnx","cards":0}}
            {"do":"next_change"}
            {"shot":"SHOT"}
            {"do":"compare","path":"FOLDER/nothing.onnx"}
            {"wait_idle":60}
            {"expect":{"compared":"second.onnx","cards":1,"card_says":"nothing.onnx"}}
            {"do":"close_comparison"}
            {"wait_idle":60}
            {"expect":{"document":"Small convolutional network","compared":""}}
        "#;
        play(script).expect("all of it can be done");
    }

    #[test]
    fn what_is_not_so_stops_the_script_at_its_line() {
        let script = "{\"do\":\"open_sample\",\"name\":\"mixed\"}\n{\"wait_idle\":60}\n{\"expect\":{\"step\":99999}}\n";
        let error = play(script).expect_err("there is no such step").to_string();
        assert!(error.contains("line 3: step: expected 99999"), "{error}");
    }
}
