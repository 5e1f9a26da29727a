//! The text form of a model: printed for reading and for `diff`, parsed back to the same model.
//!
//! It is ONNX's own textual syntax, which `onnx.parser` reads as long as nothing of the following is used:
//! - **notes** in braces carry what that syntax has no place for: `{doc_string: "…", explicit: 4, unknown: base64"…"}`
//!   after the name of a graph, port, attribute or tensor, and at the end of a node;
//! - `base64"…"` stands for bytes that are not UTF-8 and for the data of large tensors;
//! - weights by reference: `float[64] w = ["model": "net.onnx", "value": "w", "xxh3": "…"]`, with the
//!   path of its graph where that is not the main one;
//! - dimensions that are computed stand in parentheses: `float[(2*n + 1)]`; `float` is a scalar, `float[]` has unknown
//!   rank, and the type `unknown` says nothing;
//! - floating-point data of 16 bits is written as numbers with a point (`1.0`), not as bits (`15360`, read as ONNX does);
//!   `nan(0x7fc00001)` is a NaN by its bits;
//! - `\n`, `\r`, `\t` and `\u{…}` in quoted text, so that a node is one line.
//!
//! Comments run from `#` to the end of the line. `%name` is kept for pattern variables and never printed.

mod attribute;
mod describe;
mod elements;
mod items;
mod lex;
mod lower;
mod notes;
mod parse;
mod print;
mod reference;
mod types;
mod write;

use super::model::Model;
use std::path::Path;
use thiserror::Error;

pub use describe::{node_line, patch_text};
pub use print::print;
pub use reference::Reference;

/// Where tensors' data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weights {
    /// All in the text.
    Inline,
    /// In the text up to a number of elements, by reference beyond.
    Small(u64),
    /// All by reference.
    Reference,
}

/// What to print.
#[derive(Clone, Copy, Debug)]
pub struct PrintOptions<'a> {
    pub weights: Weights,
    /// Lose nothing. Otherwise documentation, metadata, declared types of inner values (shown as comments), ways of
    /// storage and kept bytes are left out, and a comment at the end says what was.
    pub full: bool,
    /// The file that references name, as it should stand in the text (relative to it, with `/`), and the model as it is
    /// in that file. Data that is not in it, or all when there is no file, is printed inline.
    pub source: Option<(&'a str, &'a Model)>,
}

impl Default for PrintOptions<'_> {
    fn default() -> Self {
        PrintOptions { weights: Weights::Small(16), full: false, source: None }
    }
}

impl PrintOptions<'_> {
    /// Loses nothing, all data inline.
    pub fn full() -> PrintOptions<'static> {
        PrintOptions { weights: Weights::Inline, full: true, source: None }
    }
}

/// Why a text is not a model; line and column count from 1, columns in characters.
#[derive(Clone, Debug, Error, PartialEq)]
#[error("line {line}, column {column}: {what}")]
pub struct TextError {
    pub line: usize,
    pub column: usize,
    pub what: String,
}

/// Gives the tensor that a reference means; the path is the file's, or says in a sentence why it cannot.
pub type Fetch<'a> =
    dyn FnMut(&Path, &Reference) -> Result<std::sync::Arc<super::tensor::Tensor>, String> + 'a;

/// The model that a text describes. Weights must stand in the text; see [`parse_with`] for those that do not.
pub fn parse(text: &str, base: &Path) -> Result<Model, TextError> {
    parse_with(text, base, &mut |file, _| {
        Err(format!("weights in {} are not at hand here; they must stand in the text", file.display()))
    })
}

/// The model that a text describes; references to weights are relative to `base` and resolved by `fetch`.
/// A tensor whose digest, element type or dimensions differ from what the text says is an error.
pub fn parse_with(text: &str, base: &Path, fetch: &mut Fetch<'_>) -> Result<Model, TextError> {
    let syntax = parse::Parser::new(text, base, fetch).model()?;
    lower::lower(syntax).map_err(|(at, what)| lex::error_at(text, at, what))
}

/// True for text that looks like the text form rather than a binary file: its first word or mark could begin a model.
pub fn looks_like_text(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(4096)];
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(e) if e.valid_up_to() + 4 > head.len() => {
            std::str::from_utf8(&head[..e.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return false,
    };
    let begins = text.lines().map(str::trim_start).find(|line| !line.is_empty() && !line.starts_with('#'));
    let printable = !text.chars().any(|c| c.is_control() && !c.is_whitespace());
    printable
        && begins
            .is_some_and(|line| line.starts_with(['<', '"', '_']) || line.starts_with(char::is_alphabetic))
}
