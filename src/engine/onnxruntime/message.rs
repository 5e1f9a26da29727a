//! What the program and its child process that runs ONNX Runtime say to each other: a length, a header in JSON, and the
//! bytes of tensors one after the other.

use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::path::PathBuf;

/// Begins every message, so that a program that is something else is noticed.
const MAGIC: [u8; 4] = *b"PLE1";

/// Headers are names and shapes.
const LARGEST_HEADER: u64 = 256 << 20;

/// How a value's bytes are to be read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Form {
    /// Element type by its ONNX number; as many bytes as `raw_data` has for it.
    Tensor {
        element: i32,
        dims: Vec<u64>,
        bytes: u64,
    },
    Strings {
        dims: Vec<u64>,
        lengths: Vec<u64>,
    },
    Sequence(Vec<Form>),
    /// An optional without a value.
    Absent,
    Map {
        keys: Box<Form>,
        values: Box<Form>,
    },
}

/// A value of a name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Named {
    pub name: String,
    pub form: Form,
}

/// How a session is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    pub level: Level,
    pub threads: usize,
    /// Execution providers by name, first choice first; none is the processor.
    pub providers: Vec<String>,
}

/// How much ONNX Runtime may rewrite the graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Nothing but what it cannot do without: operators without a kernel are expanded.
    #[default]
    Off,
    Basic,
    Extended,
    All,
}

impl Level {
    /// As `--engine onnxruntime:LEVEL` names it.
    pub fn name(self) -> &'static str {
        match self {
            Level::Off => "off",
            Level::Basic => "basic",
            Level::Extended => "extended",
            Level::All => "all",
        }
    }
}

/// What the program asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Call {
    /// Makes a session of a model file; answered by [`Answer::Session`].
    Open { model: PathBuf, options: Options },
    /// One run of a session. Inputs' bytes follow. Answered by [`Answer::Ran`], with the bytes of the outputs.
    Run { session: u32, inputs: Vec<Named>, outputs: Vec<String> },
    /// Makes a session that takes times, runs it once and then `runs` times; the profile is a file beside `model`.
    Profile { model: PathBuf, options: Options, runs: u32, inputs: Vec<Named>, outputs: Vec<String> },
    /// Writes the graph as ONNX Runtime would run it.
    Optimize { model: PathBuf, options: Options, to: PathBuf },
    /// Ends a session.
    Close { session: u32 },
}

/// What the child answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// The library is loaded: the first message of a child.
    Hello {
        version: String,
        providers: Vec<String>,
    },
    Session {
        session: u32,
    },
    Ran {
        outputs: Vec<Named>,
        seconds: Vec<f64>,
        /// The profile's file.
        profile: Option<PathBuf>,
    },
    Done,
    /// `code` is ONNX Runtime's own (OrtErrorCode), 0 where the error is not from there.
    Failed {
        code: i32,
        message: String,
    },
}

/// Writes one message.
pub fn send(to: &mut impl Write, header: &impl Serialize, body: &[&[u8]]) -> io::Result<()> {
    let header = serde_json::to_vec(header)?;
    let length: u64 = body.iter().map(|part| part.len() as u64).sum();
    to.write_all(&MAGIC)?;
    to.write_all(&(header.len() as u64).to_le_bytes())?;
    to.write_all(&length.to_le_bytes())?;
    to.write_all(&header)?;
    body.iter().try_for_each(|part| to.write_all(part))?;
    to.flush()
}

/// Reads one message; `None` when there is none any more.
pub fn receive<T: for<'a> Deserialize<'a>>(from: &mut impl Read) -> io::Result<Option<(T, Vec<u8>)>> {
    let damaged = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let mut first = [0u8; 4];
    if let Err(error) = from.read_exact(&mut first) {
        return match error.kind() {
            io::ErrorKind::UnexpectedEof => Ok(None),
            _ => Err(error),
        };
    }
    if first != MAGIC {
        return Err(damaged("what it says is not in the form of these messages"));
    }
    let mut lengths = [0u8; 16];
    from.read_exact(&mut lengths)?;
    let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| lengths[at + i]));
    if number(0) > LARGEST_HEADER {
        return Err(damaged("a header is too long"));
    }
    let header = take(from, number(0))?;
    let body = take(from, number(8))?;
    let header = serde_json::from_slice(&header).map_err(|error| damaged(&error.to_string()))?;
    Ok(Some((header, body)))
}

/// So many bytes, none allocated that cannot be had.
fn take(from: &mut impl Read, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let size = usize::try_from(length).map_err(|_| io::ErrorKind::OutOfMemory)?;
    bytes.try_reserve_exact(size).map_err(|_| io::ErrorKind::OutOfMemory)?;
    if from.take(length).read_to_end(&mut bytes)? != size {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_as_they_were_sent() {
        let call = Call::Run {
            session: 3,
            inputs: vec![Named {
                name: "x\n\"".into(),
                form: Form::Sequence(vec![
                    Form::Tensor { element: 1, dims: vec![2], bytes: 8 },
                    Form::Strings { dims: vec![1], lengths: vec![2] },
                    Form::Absent,
                ]),
            }],
            outputs: vec!["y".into()],
        };
        let mut wire = Vec::new();
        send(&mut wire, &call, &[b"12345678", b"ab"]).unwrap();
        send(&mut wire, &Answer::Done, &[]).unwrap();
        let mut from = wire.as_slice();
        let (back, body): (Call, _) = receive(&mut from).unwrap().unwrap();
        assert_eq!((back, body.as_slice()), (call, b"12345678ab".as_slice()));
        let (answer, _): (Answer, _) = receive(&mut from).unwrap().unwrap();
        assert_eq!(answer, Answer::Done);
        assert!(receive::<Answer>(&mut from).unwrap().is_none());
        for length in 4..wire.len() - 1 {
            let mut cut = &wire[..length];
            while let Ok(Some(_)) = receive::<serde_json::Value>(&mut cut) {}
        }
        assert!(receive::<Answer>(&mut &b"running 0 tests"[..]).is_err());
    }
}
