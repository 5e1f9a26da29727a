//! Whether a window can be opened, and one sentence that says what is missing when it cannot.

use std::panic::{self, AssertUnwindSafe};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set for the restarted program, so that a second failure is reported instead of tried again.
const RETRIED: &str = "PASSLENS_WITHOUT_WAYLAND";

/// No window could be opened; displays as one sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}")]
pub struct NoWindow {
    sentence: String,
}

impl NoWindow {
    fn new(what: &str, remedy: &str) -> NoWindow {
        NoWindow { sentence: format!("no window could be opened: {what}; {remedy}") }
    }
}

/// How opening went wrong: the kind of error the window library gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    /// The connection to the display server or its libraries.
    EventLoop,
    /// The window itself.
    Window,
    /// No way to draw with OpenGL.
    Drawing,
    /// Our own start-up code.
    Creation,
    /// A library gave up by panicking.
    Panic,
}

/// Turns an error into what is missing and what brings it.
fn explain(failure: Failure, text: &str) -> NoWindow {
    let has = |part: &str| text.contains(part);
    match failure {
        Failure::EventLoop if has("neither WAYLAND_DISPLAY") => no_display(),
        Failure::EventLoop if has("XOpenDisplayFailed") || has("connection to X server") => NoWindow::new(
            "the X server that DISPLAY names does not answer",
            "start it or set DISPLAY to one that runs",
        ),
        Failure::EventLoop if has("NoCompositor") || has("wayland compositor") => NoWindow::new(
            "the Wayland compositor that WAYLAND_DISPLAY names does not answer",
            "unset WAYLAND_DISPLAY or set it to one that runs",
        ),
        Failure::EventLoop | Failure::Panic if has("xkbcommon") => NoWindow::new(
            "the keyboard library libxkbcommon-x11 is missing",
            "install libxkbcommon-x11-0 (Debian, Ubuntu) or libxkbcommon-x11 (Fedora, Arch)",
        ),
        Failure::EventLoop if has("shared libraries") || has("could not be loaded") => NoWindow::new(
            "a library for X11 or Wayland is missing",
            "install libx11-6 libx11-xcb1 libxcursor1 libxi6 libxkbcommon0 libxkbcommon-x11-0 for X11, or \
             libwayland-client0 libwayland-egl1 libwayland-cursor0 libxkbcommon0 for Wayland (Debian names)",
        ),
        Failure::Drawing => NoWindow::new(
            "no usable OpenGL driver was found",
            "install libgl1 libgl1-mesa-dri libegl1 (Debian, Ubuntu) or mesa-dri-drivers (Fedora)",
        ),
        _ => NoWindow::new(first_line(text), "every verb works without one, see passlens --help"),
    }
}

fn first_line(text: &str) -> &str {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    line.unwrap_or("the window library gave no reason").trim_end_matches('.')
}

fn no_display() -> NoWindow {
    NoWindow::new(
        "no display is set (neither DISPLAY nor WAYLAND_DISPLAY)",
        "start passlens from a desktop session, or install xvfb and run it under xvfb-run",
    )
}

/// Says whether a display is named at all, before any library is loaded. Only X11 and Wayland systems can tell.
pub fn check() -> Result<(), NoWindow> {
    let named = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let unix_desktop = cfg!(all(unix, not(target_os = "macos")));
    if unix_desktop && !["DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET"].into_iter().any(named) {
        return Err(no_display());
    }
    Ok(())
}

/// What became of [`open`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    /// The window was open and has been closed.
    Closed,
    /// Wayland failed and the restarted program, without it, ended with this exit status.
    Restarted(i32),
}

/// Runs `run` (which opens the window and returns when it is closed). Errors and panics before `started` is set
/// become a sentence; a panic after that is a defect and goes on.
///
/// # Errors
/// [`NoWindow`] when the window never appeared.
pub fn open(
    started: &Arc<AtomicBool>,
    run: impl FnOnce() -> Result<(), eframe::Error>,
) -> Result<Opened, NoWindow> {
    check()?;
    // Quiet only while the window is being opened: the libraries' panics are told in our own words.
    let hook = Arc::new(panic::take_hook());
    let (later, opened) = (hook.clone(), started.clone());
    panic::set_hook(Box::new(move |info| {
        if opened.load(Ordering::SeqCst) {
            later(info);
        }
    }));
    let result = panic::catch_unwind(AssertUnwindSafe(run));
    panic::set_hook(Box::new(move |info| hook(info)));
    let (failure, text) = match result {
        Ok(Ok(())) => return Ok(Opened::Closed),
        Ok(Err(error)) => (kind(&error), error.to_string()),
        Err(panic) if started.load(Ordering::SeqCst) => panic::resume_unwind(panic),
        Err(panic) => (Failure::Panic, panic_text(panic.as_ref())),
    };
    if failure == Failure::EventLoop
        && std::env::var_os("WAYLAND_DISPLAY").is_some()
        && std::env::var_os("DISPLAY").is_some()
        && std::env::var_os(RETRIED).is_none()
        && let Some(status) = restart_without_wayland()
    {
        return Ok(Opened::Restarted(status));
    }
    Err(explain(failure, &text))
}

/// One process can have one event loop only, so the other display is tried by a new process.
fn restart_without_wayland() -> Option<i32> {
    let program = std::env::current_exe().ok()?;
    let mut command = Command::new(program);
    command.args(std::env::args_os().skip(1)).env_remove("WAYLAND_DISPLAY").env(RETRIED, "1");
    command.status().ok().map(|status| status.code().unwrap_or(1))
}

fn kind(error: &eframe::Error) -> Failure {
    match error {
        eframe::Error::WinitEventLoop(_) => Failure::EventLoop,
        eframe::Error::Winit(_) => Failure::Window,
        eframe::Error::Glutin(_) | eframe::Error::NoGlutinConfigs(..) | eframe::Error::OpenGL(_) => {
            Failure::Drawing
        }
        eframe::Error::AppCreation(_) => Failure::Creation,
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_names_what_is_missing_and_the_remedy() {
        let cases = [
            (
                Failure::EventLoop,
                "x.rs:1: neither WAYLAND_DISPLAY nor WAYLAND_SOCKET nor DISPLAY is set.",
                "DISPLAY",
            ),
            (Failure::EventLoop, "Failed to open connection to X server", "X server"),
            (Failure::EventLoop, "Could not find wayland compositor", "Wayland compositor"),
            (Failure::EventLoop, "Failed to load one of xlib's shared libraries", "libxcursor1"),
            (Failure::Panic, "Library libxkbcommon-x11.so could not be loaded.", "libxkbcommon-x11-0"),
            (Failure::Drawing, "Found no glutin configs matching the template: ...", "libgl1-mesa-dri"),
            (Failure::Drawing, "[a7] GLXBadFBConfig", "libgl1-mesa-dri"),
            (Failure::Window, "cannot create\nmore text", "cannot create"),
            (Failure::Creation, "", "no reason"),
        ];
        for (failure, text, expected) in cases {
            let sentence = explain(failure, text).to_string();
            assert!(sentence.contains(expected), "{text:?} gave {sentence:?}");
            assert_eq!(sentence.lines().count(), 1, "{sentence:?}");
        }
    }

    #[test]
    fn a_panic_before_the_window_is_a_sentence() {
        let text = panic_text(&String::from("Library libxkbcommon-x11.so could not be loaded."));
        assert!(explain(Failure::Panic, &text).to_string().contains("keyboard library"));
    }
}
