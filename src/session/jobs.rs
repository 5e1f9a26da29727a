//! Work in the background: one job a kind at a time, a generation number each, cancel by flag, panics caught.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What a job is for; a new one replaces the running one of its kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    Open,
    Run,
    Picture,
    Preview,
    Search,
    Statistics,
    Save,
}

/// What a job can look at and say while it runs.
#[derive(Clone)]
pub struct Handle {
    pub cancel: Arc<AtomicBool>,
    progress: Arc<Mutex<String>>,
    wake: Arc<dyn Fn() + Send + Sync>,
}

impl Handle {
    /// Says what is being done now.
    pub fn say(&self, what: String) {
        if let Ok(mut p) = self.progress.lock() {
            *p = what;
        }
        (self.wake)();
    }

    /// True once the person, or a newer job, wants it to end.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }
}

struct Running {
    generation: u64,
    label: String,
    handle: Handle,
    started: Instant,
}

/// What is running, for the status bar.
#[derive(Clone, PartialEq, Debug)]
pub struct JobStatus {
    pub kind: Kind,
    pub label: String,
    pub progress: String,
    pub elapsed: Duration,
}

/// Runs jobs and collects their results.
pub struct Jobs<T> {
    running: BTreeMap<Kind, Running>,
    generation: u64,
    sender: Sender<(Kind, u64, Result<T, String>)>,
    receiver: Receiver<(Kind, u64, Result<T, String>)>,
    wake: Arc<dyn Fn() + Send + Sync>,
}

impl<T: Send + 'static> Jobs<T> {
    /// `wake` is called from a job's thread whenever there is something to collect or to show.
    pub fn new(wake: Arc<dyn Fn() + Send + Sync>) -> Jobs<T> {
        let (sender, receiver) = channel();
        Jobs { running: BTreeMap::new(), generation: 0, sender, receiver, wake }
    }

    /// Starts a job; one of the same kind that is still running is told to end, and its answer will be dropped.
    pub fn start(
        &mut self,
        kind: Kind,
        label: impl Into<String>,
        work: impl FnOnce(&Handle) -> T + Send + 'static,
    ) {
        self.cancel(kind);
        self.generation += 1;
        let generation = self.generation;
        let handle = Handle {
            cancel: Arc::new(AtomicBool::new(false)),
            progress: Arc::new(Mutex::new(String::new())),
            wake: self.wake.clone(),
        };
        let (sender, inner, wake) = (self.sender.clone(), handle.clone(), self.wake.clone());
        let run = move || {
            let result = catch_unwind(AssertUnwindSafe(|| work(&inner))).map_err(|panic| {
                let text = panic.downcast_ref::<String>().cloned();
                text.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string())).unwrap_or_default()
            });
            // Nobody listens any longer when the session has ended.
            let _ = sender.send((kind, generation, result));
            wake();
        };
        let label = label.into();
        let spawned =
            std::thread::Builder::new().name(format!("passlens {kind:?}")).stack_size(8 << 20).spawn(run);
        match spawned {
            Ok(_) => {
                self.running.insert(kind, Running { generation, label, handle, started: Instant::now() });
            }
            Err(e) => {
                let _ = self.sender.send((kind, generation, Err(format!("no thread could be started: {e}"))));
                self.running.insert(kind, Running { generation, label, handle, started: Instant::now() });
            }
        }
    }

    /// Tells the running job of a kind to end; its answer will be dropped.
    pub fn cancel(&mut self, kind: Kind) -> bool {
        match self.running.remove(&kind) {
            Some(r) => {
                r.handle.cancel.store(true, Ordering::Relaxed);
                true
            }
            None => false,
        }
    }

    /// Tells everything to end.
    pub fn cancel_all(&mut self) {
        let kinds: Vec<Kind> = self.running.keys().copied().collect();
        kinds.into_iter().for_each(|k| {
            self.cancel(k);
        });
    }

    /// The next result that is still wanted; stale ones are dropped.
    pub fn collect(&mut self) -> Option<(Kind, Result<T, String>)> {
        while let Ok((kind, generation, result)) = self.receiver.try_recv() {
            if self.running.get(&kind).is_some_and(|r| r.generation == generation) {
                self.running.remove(&kind);
                return Some((kind, result));
            }
        }
        None
    }

    /// True while a job of the kind runs.
    pub fn is_running(&self, kind: Kind) -> bool {
        self.running.contains_key(&kind)
    }

    /// True when nothing runs.
    pub fn is_idle(&self) -> bool {
        self.running.is_empty()
    }

    /// What runs, for the status bar.
    pub fn status(&self) -> Vec<JobStatus> {
        let status = |(kind, r): (&Kind, &Running)| JobStatus {
            kind: *kind,
            label: r.label.clone(),
            progress: r.handle.progress.lock().map(|p| p.clone()).unwrap_or_default(),
            elapsed: r.started.elapsed(),
        };
        self.running.iter().map(status).collect()
    }
}
