//! Measures frames of the canvas without a window: a scripted walk (pan, zoom, open, search) over a model.

use std::path::Path;
use std::time::{Duration, Instant};

use egui::{Event, Modifiers, MouseWheelUnit, Pos2, TouchPhase, vec2};
use serde::Serialize;

use super::script::Player;
use super::verbs::Verb;
use crate::pipeline::Registry;
use crate::scene::BoxKind;
use crate::session::Command;

/// What was measured, in milliseconds. Keys keep their names and order.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    pub model: String,
    pub nodes: usize,
    /// Boxes in the first picture, and once blocks were opened.
    pub boxes_first: usize,
    pub boxes_open: usize,
    /// From the start of the program to the first drawn picture of the model (wall clock).
    pub first_picture_ms: f64,
    /// CPU time of this thread per frame: input, drawing, and cutting into triangles.
    pub frame_ms: Spread,
    pub frames: usize,
    /// Layout and picture of the last change of what is open (wall clock).
    pub layout_ms: f64,
    /// From opening a block to the picture with it (wall clock), the slowest of those that were opened.
    pub expand_ms: f64,
    /// A frame in which nothing happens.
    pub idle_frame_ms: f64,
    /// True when nothing asks for another frame once all is at rest.
    pub idle_asks_for_no_frame: bool,
}

/// Of a list of times.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Spread {
    pub p50: f64,
    pub p95: f64,
    pub max: f64,
}

impl Spread {
    fn of(mut times: Vec<f64>) -> Spread {
        times.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let last = times.len().saturating_sub(1);
            times.get((last as f64 * share).round() as usize).copied().unwrap_or(0.0)
        };
        Spread { p50: at(0.50), p95: at(0.95), max: at(1.0) }
    }
}

/// Longest wait for one piece of background work.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs the walk over a model file. `started` is when the program began.
///
/// # Errors
/// One sentence, when the model cannot be opened.
pub fn run(path: &Path, registry: Registry, started: Instant) -> Result<Report, String> {
    let mut player = Player::new(registry);
    player.app.settings.reduce_motion = false;
    player.app.command(Command::Open { path: path.to_path_buf() })?;
    let end = Instant::now() + PATIENCE;
    while player.app.session.shown().is_none() {
        player.app.session.poll();
        if let Some(card) = player.app.session.cards().first() {
            return Err(card.text.clone());
        }
        if Instant::now() > end {
            return Err(format!("no picture after {} s", PATIENCE.as_secs()));
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    player.frame();
    player.frame();
    player.headless.tessellate();
    let first_picture_ms = started.elapsed().as_secs_f64() * 1e3;
    player.wait_idle(PATIENCE);
    let boxes = |player: &Player| player.app.sheet().picture.boxes.len();
    let boxes_first = boxes(&player);

    let mut times = Vec::new();
    walk(&mut player, &mut times);
    let mut expand_ms: f64 = 0.0;
    for _ in 0..4 {
        let closed = player.app.sheet().picture.boxes.iter().find(|b| b.kind == BoxKind::ClosedBlock);
        let Some(place) = closed.map(|b| b.place.clone()) else { break };
        let clock = Instant::now();
        player.app.session.toggle(place);
        player.app.session.wait_idle(PATIENCE);
        time(&mut player, &mut times);
        expand_ms = expand_ms.max(clock.elapsed().as_secs_f64() * 1e3);
        for _ in 0..14 {
            time(&mut player, &mut times);
        }
        walk(&mut player, &mut times);
    }
    let layout_ms = player.app.session.shown().map_or(0.0, |shown| shown.seconds * 1e3);
    player.app.command(Command::Search { query: "op:MatMul".into() })?;
    player.app.session.wait_idle(PATIENCE);
    for _ in 0..3 {
        press(&mut player, Verb::NextHit);
        for _ in 0..14 {
            time(&mut player, &mut times);
        }
        player.app.session.wait_idle(PATIENCE);
    }
    player.wait_idle(PATIENCE);
    let mut idle = Vec::new();
    let mut wanted = false;
    for _ in 0..10 {
        wanted |= time(&mut player, &mut idle);
    }
    let nodes = player.app.sheet().nodes_before;
    Ok(Report {
        model: path.display().to_string(),
        nodes,
        boxes_first,
        boxes_open: boxes(&player),
        first_picture_ms,
        frames: times.len(),
        frame_ms: Spread::of(times),
        layout_ms,
        expand_ms,
        idle_frame_ms: Spread::of(idle).p50,
        idle_asks_for_no_frame: !wanted,
    })
}

/// Pans about, zooms out until everything is seen, and in again.
fn walk(player: &mut Player, times: &mut Vec<f64>) {
    let middle = Pos2::new(800.0, 480.0);
    player.headless.send(Event::PointerMoved(middle));
    for i in 0..30 {
        let sign = if i < 15 { -1.0 } else { 1.0 };
        wheel(player, vec2(sign * 14.0, sign * 40.0), Modifiers::SHIFT);
        time(player, times);
    }
    for direction in [-1.0f32, 1.0] {
        for _ in 0..30 {
            wheel(player, vec2(0.0, direction * 45.0), Modifiers::NONE);
            time(player, times);
        }
    }
    press(player, Verb::FitAll);
    for _ in 0..14 {
        time(player, times);
    }
}

fn wheel(player: &mut Player, delta: egui::Vec2, modifiers: Modifiers) {
    let phase = TouchPhase::Move;
    player.headless.send(Event::MouseWheel { unit: MouseWheelUnit::Point, delta, phase, modifiers });
}

fn press(player: &mut Player, verb: Verb) {
    let Some(key) = verb.keys().first().copied() else { return };
    let (modifiers, key) = (key.modifiers, key.logical_key);
    for pressed in [true, false] {
        player.headless.send(Event::Key { key, physical_key: None, pressed, repeat: false, modifiers });
    }
}

/// One frame and its triangles; keeps the CPU time. True when another frame is wanted at once.
fn time(player: &mut Player, times: &mut Vec<f64>) -> bool {
    let before = cpu_seconds();
    let wanted = player.frame();
    player.headless.tessellate();
    times.push((cpu_seconds() - before) * 1e3);
    wanted
}

/// CPU time of this thread; wall time where the system does not tell.
fn cpu_seconds() -> f64 {
    #[cfg(unix)]
    {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the pointer is to a live, writable timespec, which is all that the call needs.
        let done = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
        if done == 0 {
            return time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9;
        }
    }
    static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
    START.elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{self, SaveOptions};

    #[test]
    fn a_walk_over_a_sample_measures_everything_and_ends_at_rest() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("sample.onnx");
        let sample = crate::samples::all().first().expect("a sample");
        formats::save(&(sample.build)(), &path, &SaveOptions::default()).expect("saved");
        let report = run(&path, Registry::builtin(), Instant::now()).expect("measured");
        assert!(
            report.frames > 100 && report.frame_ms.p50 > 0.0 && report.frame_ms.max >= report.frame_ms.p95
        );
        assert!(report.boxes_open > report.boxes_first, "blocks were opened");
        assert!(report.idle_asks_for_no_frame, "an idle window does nothing");
    }
}
