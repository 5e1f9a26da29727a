//! The child process from outside: started, asked, waited for with limits, ended.

use super::message::{Answer, Call, receive, send};
use crate::engine::fault::EngineError;
use std::io::{self, BufReader, BufWriter, Read};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often a cancelled run is noticed.
const TICK: Duration = Duration::from_millis(20);

/// Loading a library from a slow disk takes a while; longer than this is a fault.
const START_SECONDS: u64 = 60;

/// What is kept of what a child writes on standard error.
const KEPT_BYTES: usize = 16 << 10;

/// A message of the child; `None` when there will be no more.
type Heard = io::Result<Option<(Answer, Vec<u8>)>>;

/// A process that has the library loaded.
pub struct Child {
    process: std::process::Child,
    input: BufWriter<ChildStdin>,
    answers: Receiver<Heard>,
    errors: Arc<Mutex<Vec<u8>>>,
    pub version: String,
    pub providers: Vec<String>,
    pub memory_limit: Option<u64>,
}

impl Child {
    /// Starts `program` with the hidden verb and waits until the library is loaded. `Err` says why that failed.
    pub fn start(program: &Path, library: &Path, memory_limit: Option<u64>) -> Result<Child, String> {
        let mut command = Command::new(program);
        command.arg(super::VERB).arg("--library").arg(library);
        if let Some(limit) = memory_limit {
            command.arg("--memory").arg(limit.to_string());
        }
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let spawned = piped.spawn();
        let mut process =
            spawned.map_err(|error| format!("{} cannot be started: {error}", program.display()))?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (process.stdin.take(), process.stdout.take(), process.stderr.take())
        else {
            return Err("a child process has no pipes".into());
        };
        let errors = Arc::new(Mutex::new(Vec::new()));
        let kept = errors.clone();
        std::thread::spawn(move || keep_last(stderr, &kept));
        let (sender, answers) = mpsc::channel();
        std::thread::spawn(move || {
            let mut from = BufReader::with_capacity(1 << 16, stdout);
            loop {
                let message = receive(&mut from);
                let last = !matches!(message, Ok(Some(_)));
                if sender.send(message).is_err() || last {
                    return;
                }
            }
        });
        let input = BufWriter::with_capacity(1 << 16, stdin);
        let (version, providers) = (String::new(), Vec::new());
        let mut child = Child { process, input, answers, errors, version, providers, memory_limit };
        let never = AtomicBool::new(false);
        match child.wait(Duration::from_secs(START_SECONDS), &never) {
            Ok((Answer::Hello { version, providers }, _)) => {
                (child.version, child.providers) = (version, providers);
                Ok(child)
            }
            Ok(_) => Err(format!("{} does not answer as it should", program.display())),
            Err(Lost::Stopped(why)) => Err(why),
            Err(Lost::Late) => Err(format!("{} was not loaded in {START_SECONDS} s", library.display())),
            Err(Lost::Cancelled) => Err("cancelled".into()),
        }
    }

    /// Asks, and waits for the answer. After an error of this kind the process is gone.
    pub fn ask(
        &mut self,
        call: &Call,
        body: &[&[u8]],
        limit: Duration,
        cancel: &AtomicBool,
    ) -> Result<(Answer, Vec<u8>), EngineError> {
        // When this fails the process has stopped: the wait finds that out and says why.
        send(&mut self.input, call, body).ok();
        self.wait(limit, cancel).map_err(|lost| match lost {
            Lost::Stopped(why) => EngineError::Engine(why),
            Lost::Late => EngineError::Engine(format!(
                "ONNX Runtime did not answer within {} s and was ended",
                limit.as_secs_f64()
            )),
            Lost::Cancelled => EngineError::Cancelled,
        })
    }

    fn wait(&mut self, limit: Duration, cancel: &AtomicBool) -> Result<(Answer, Vec<u8>), Lost> {
        let deadline = Instant::now() + limit;
        loop {
            match self.answers.recv_timeout(TICK) {
                Ok(Ok(Some(answer))) => return Ok(answer),
                Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidData => {
                    self.end();
                    return Err(Lost::Stopped(format!("the process of ONNX Runtime: {error}")));
                }
                Ok(Ok(None) | Err(_)) | Err(RecvTimeoutError::Disconnected) => {
                    return Err(Lost::Stopped(self.last_words()));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if cancel.load(Ordering::Relaxed) {
                self.end();
                return Err(Lost::Cancelled);
            }
            if Instant::now() > deadline {
                self.end();
                return Err(Lost::Late);
            }
        }
    }

    /// Why the process is gone, in one sentence.
    fn last_words(&mut self) -> String {
        // The pipe closes a moment before the process has ended.
        let deadline = Instant::now() + Duration::from_secs(2);
        let status = loop {
            match self.process.try_wait() {
                Ok(Some(status)) => break Some(status),
                Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(2)),
                _ => break None,
            }
        };
        // What it wrote is read by another thread.
        std::thread::sleep(Duration::from_millis(20));
        self.end();
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&errors);
        let last = text.lines().rev().find(|line| !line.trim().is_empty()).map(str::trim);
        match (status, last) {
            // A child that gives up says why, in its own words.
            (Some(status), Some(line)) if status.code() == Some(2) => {
                line.trim_start_matches("passlens: ").to_owned()
            }
            (status, Some(line)) => format!("ONNX Runtime stopped {}: {line}", ending(status)),
            (status, None) => format!("ONNX Runtime stopped {}", ending(status)),
        }
    }

    /// Bytes of memory that the process has, where the system tells.
    pub fn resident_bytes(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
    }

    fn end(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.end();
    }
}

/// Why there is no answer.
enum Lost {
    Stopped(String),
    Late,
    Cancelled,
}

/// How a process ended, for people.
pub fn ending(status: Option<ExitStatus>) -> String {
    let Some(status) = status else { return "without an answer".into() };
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        let name = match signal {
            libc::SIGSEGV => "a crash (SIGSEGV)",
            libc::SIGBUS => "a crash (SIGBUS)",
            libc::SIGILL => "an instruction that this processor does not have (SIGILL)",
            libc::SIGABRT => "an abort (SIGABRT)",
            libc::SIGFPE => "a crash (SIGFPE)",
            libc::SIGKILL => "being killed (SIGKILL; out of memory?)",
            _ => return format!("by signal {signal}"),
        };
        return format!("by {name}");
    }
    match status.code() {
        Some(code) => format!("with exit status {code}"),
        None => "without an answer".into(),
    }
}

/// Reads to the end and keeps the last part.
pub fn keep_last(mut from: impl Read, kept: &Mutex<Vec<u8>>) {
    let mut piece = [0u8; 4096];
    while let Ok(n @ 1..) = from.read(&mut piece) {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&piece[..n]);
        let excess = kept.len().saturating_sub(KEPT_BYTES);
        kept.drain(..excess);
    }
}

/// The program to start: this one. A program that was replaced while it runs is still there under the system's name for it.
pub fn this_program() -> io::Result<PathBuf> {
    let own = std::env::current_exe()?;
    match own.exists() || !cfg!(target_os = "linux") {
        true => Ok(own),
        false => Ok(PathBuf::from("/proc/self/exe")),
    }
}
