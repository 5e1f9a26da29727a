//! What is printed. A reader that closes the pipe early (`passlens … | head`) ends the program quietly.

use super::{Answer, failure::Failure};
use crate::table::one_line;
use serde::Serialize;
use std::io::{self, ErrorKind, Write};

/// Prints a text on standard output.
pub fn print(text: &str) -> Result<Answer, Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(Answer::Fine),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Answer::Fine),
        Err(error) => Err(Failure::Output(error)),
    }
}

/// Prints a value as JSON with a line end; keys keep the order of the type's fields.
pub fn print_json(value: &impl Serialize) -> Result<Answer, Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Failure::Output(error.into()))?;
    print(&(text + "\n"))
}

/// Prints one line on standard error; when that is closed there is nobody to tell.
pub fn complain(text: &str) {
    writeln!(io::stderr(), "passlens: {}", one_line(text)).ok();
}

/// Says something worth knowing that is no error, in one line on standard error: the exit status stays.
pub fn remark(text: &str) {
    writeln!(io::stderr(), "passlens: note: {}", one_line(text)).ok();
}

/// A number with its noun, which gets an `s` unless there is exactly one: `1 node`, `3 nodes`.
pub fn counted(count: usize, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}
