//! The child process: loads the library, then answers messages until its input ends.

use super::message::{Answer, Call, Options, receive, send};
use super::runtime::{Failure, Opened, Runtime};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::Path;
use std::sync::mpsc;

/// Runs until the other side is gone. `Err` says why the library cannot be used.
pub fn serve(library: &Path, memory_limit: Option<u64>) -> Result<(), String> {
    // Libraries may print; what they print must not stand between messages.
    let mut out = own_output().map_err(|error| format!("standard output: {error}"))?;
    if let Some(limit) = memory_limit {
        limit_memory(limit);
    }
    let runtime = Runtime::load(library)?;
    let providers = runtime.providers().map_err(|failure| failure.message)?;
    let hello = Answer::Hello { version: runtime.version(), providers };
    let gone = |error: io::Error| format!("the answer cannot be given: {error}");
    send(&mut out, &hello, &[]).map_err(gone)?;
    let calls = listen();
    let mut server = Server { runtime, sessions: BTreeMap::new(), next: 0 };
    while let Ok((call, body)) = calls.recv() {
        let (answer, bytes) = server
            .answer(call, &body)
            .unwrap_or_else(|Failure { code, message }| (Answer::Failed { code, message }, Vec::new()));
        let parts: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
        send(&mut out, &answer, &parts).map_err(gone)?;
    }
    Ok(())
}

/// Messages, read on a thread of their own: when the other side is gone, this process ends even in the middle of a run.
fn listen() -> mpsc::Receiver<(Call, Vec<u8>)> {
    let (sender, calls) = mpsc::channel();
    std::thread::spawn(move || {
        let mut input = BufReader::with_capacity(1 << 16, io::stdin());
        loop {
            match receive(&mut input) {
                Ok(Some(message)) => {
                    if sender.send(message).is_err() {
                        return;
                    }
                }
                Ok(None) => std::process::exit(0),
                Err(error) => {
                    writeln!(io::stderr(), "a message cannot be read: {error}").ok();
                    std::process::exit(3);
                }
            }
        }
    });
    calls
}

/// Standard output as a file of our own, with whatever else is printed going to standard error.
#[cfg(unix)]
fn own_output() -> io::Result<File> {
    use std::os::fd::{AsFd, AsRawFd};
    let own = io::stdout().as_fd().try_clone_to_owned()?;
    // SAFETY: both are open descriptors of this process.
    if unsafe { libc::dup2(io::stderr().as_raw_fd(), io::stdout().as_raw_fd()) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(File::from(own))
}

#[cfg(windows)]
fn own_output() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(File::from(io::stdout().as_handle().try_clone_to_owned()?))
}

/// Beyond this the process gets no memory: addresses, since that is what systems can limit.
#[cfg(unix)]
fn limit_memory(bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes as libc::rlim_t, rlim_max: bytes as libc::rlim_t };
    // SAFETY: the place outlives the call. Where it fails the run is not limited, which is no reason not to run.
    unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) };
}

#[cfg(not(unix))]
fn limit_memory(_: u64) {}

struct Server {
    runtime: Runtime,
    sessions: BTreeMap<u32, Opened>,
    next: u32,
}

impl Server {
    fn answer(&mut self, call: Call, body: &[u8]) -> Result<(Answer, Vec<Vec<u8>>), Failure> {
        match call {
            Call::Open { model, options } => {
                let opened = self.runtime.open(&model, &options, None, None)?;
                self.next += 1;
                self.sessions.insert(self.next, opened);
                Ok((Answer::Session { session: self.next }, Vec::new()))
            }
            Call::Run { session, inputs, outputs } => {
                let opened = self.sessions.get_mut(&session);
                let opened = opened.ok_or_else(|| Failure { code: 0, message: "no such session".into() })?;
                let (outputs, bytes, seconds) = opened.run(&inputs, body, &outputs)?;
                Ok((Answer::Ran { outputs, seconds: vec![seconds], profile: None }, bytes))
            }
            Call::Profile { model, options, runs, inputs, outputs } => {
                let place = model.with_extension("profile");
                let mut opened = self.runtime.open(&model, &options, Some(&place), None)?;
                opened.run(&inputs, body, &outputs)?;
                let mut seconds = Vec::new();
                let mut last = (Vec::new(), Vec::new());
                for _ in 0..runs.max(1) {
                    let (named, bytes, took) = opened.run(&inputs, body, &outputs)?;
                    seconds.push(took);
                    last = (named, bytes);
                }
                let profile = Some(opened.end_profiling()?);
                Ok((Answer::Ran { outputs: last.0, seconds, profile }, last.1))
            }
            Call::Optimize { model, options, to } => {
                self.optimize(&model, &options, &to)?;
                Ok((Answer::Done, Vec::new()))
            }
            Call::Close { session } => {
                self.sessions.remove(&session);
                Ok((Answer::Done, Vec::new()))
            }
        }
    }

    fn optimize(&self, model: &Path, options: &Options, to: &Path) -> Result<(), Failure> {
        self.runtime.open(model, options, None, Some(to)).map(drop)
    }
}
