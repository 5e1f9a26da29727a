//! One run of a user's program: started, waited for with limits, ended with all that it started.

use crate::engine::fault::EngineError;
use crate::engine::onnxruntime::{ending, keep_last};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often it is looked whether the program has ended.
const TICK: Duration = Duration::from_millis(2);

/// A program by path, or by name on PATH. Absolute, so that it does not depend on where the run happens.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = Path::new(program);
    let here = || path.is_file().then(|| std::path::absolute(path).ok()).flatten();
    if path.components().count() > 1 || path.is_absolute() {
        return here();
    }
    let folders = std::env::var_os("PATH")?;
    let endings: &[&str] = if cfg!(windows) { &["", ".exe", ".bat", ".cmd"] } else { &[""] };
    let mut all = std::env::split_paths(&folders)
        .flat_map(|folder| endings.iter().map(move |ending| folder.join(format!("{program}{ending}"))));
    all.find(|path| path.is_file()).or_else(here)
}

/// Runs a command to its end; how many seconds that took.
pub fn run(
    command: &mut Command,
    program: &Path,
    limit: Duration,
    cancel: &AtomicBool,
) -> Result<f64, EngineError> {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let start = Instant::now();
    let fail = |what: String| EngineError::Engine(format!("{} {what}", program.display()));
    let mut child = command.spawn().map_err(|error| fail(format!("cannot be started: {error}")))?;
    let kept = Arc::new(Mutex::new(Vec::new()));
    let reader = child.stderr.take().map(|stderr| {
        let kept = kept.clone();
        std::thread::spawn(move || keep_last(stderr, &kept))
    });
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => {}
            Err(error) => {
                end(&mut child);
                return Err(fail(format!("cannot be waited for: {error}")));
            }
        }
        if cancel.load(Ordering::Relaxed) {
            end(&mut child);
            return Err(EngineError::Cancelled);
        }
        if start.elapsed() > limit {
            end(&mut child);
            return Err(fail(format!("did not end within {} s and was ended", limit.as_secs_f64())));
        }
        std::thread::sleep(TICK);
    };
    let seconds = start.elapsed().as_secs_f64();
    if status.success() {
        return Ok(seconds);
    }
    // Something it started may still hold the pipe: its last words are waited for, but not for ever.
    let deadline = Instant::now() + Duration::from_millis(500);
    while reader.as_ref().is_some_and(|reader| !reader.is_finished()) && Instant::now() < deadline {
        std::thread::sleep(TICK);
    }
    let kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    let text = String::from_utf8_lossy(&kept);
    let last = text.lines().rev().map(str::trim).find(|line| !line.is_empty());
    let ended = ending(Some(status));
    Err(fail(match last {
        Some(line) => format!("ended {ended}: {line}"),
        None => format!("ended {ended} and said nothing"),
    }))
}

/// Ends the program and what it started.
fn end(child: &mut Child) {
    #[cfg(unix)]
    if let Ok(group) = libc::pid_t::try_from(child.id()) {
        // SAFETY: the child leads a group of its own, and has not been waited for: the number is still its own.
        unsafe { libc::kill(-group, libc::SIGKILL) };
    }
    child.kill().ok();
    child.wait().ok();
}
