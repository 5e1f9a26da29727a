//! Pieces of printed text: names, quoted text, bytes, notes.

use crate::ir::ids::Text;
use crate::ir::node::Extra;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt::Write;
use std::sync::Arc;

/// True for what can stand without quotes.
pub(super) fn is_identifier(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_')
}

/// A name, in quotes when it is no identifier.
pub(super) fn name(name: &str) -> String {
    if is_identifier(name) { name.to_owned() } else { quoted(name) }
}

/// Text in quotes, on one line.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}') => {
                let _ = write!(out, "\\u{{{:x}}}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Bytes, always as base64.
pub(super) fn base64(bytes: &[u8]) -> String {
    format!("base64\"{}\"", STANDARD.encode(bytes))
}

/// Bytes, as quoted text where they are UTF-8.
pub(super) fn text_or_bytes(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => quoted(text),
        Err(_) => base64(bytes),
    }
}

/// `["key": "value", …]`.
pub(super) fn pairs(list: &[(Text, Text)]) -> String {
    let entries: Vec<String> = list.iter().map(|(k, v)| format!("{}: {}", quoted(k), quoted(v))).collect();
    format!("[{}]", entries.join(", "))
}

/// What stands in braces after a thing.
#[derive(Default)]
pub(super) struct Notes(Vec<String>);

impl Notes {
    pub fn add(&mut self, key: &str, value: impl std::fmt::Display) {
        self.0.push(format!("{key}: {value}"));
    }

    pub fn doc(&mut self, doc: &str) {
        if !doc.is_empty() {
            self.add("doc_string", quoted(doc));
        }
    }

    pub fn metadata(&mut self, metadata: &[(Text, Text)]) {
        if !metadata.is_empty() {
            self.add("metadata_props", pairs(metadata));
        }
    }

    pub fn extra(&mut self, extra: &Option<Arc<Extra>>) {
        if let Some(extra) = extra {
            self.add("explicit", extra.explicit);
            if !extra.unknown.is_empty() {
                self.add("unknown", base64(&extra.unknown));
            }
        }
    }

    pub fn entries(self) -> Vec<String> {
        self.0
    }

    /// ` {…}`, or nothing when there are none.
    pub fn text(self) -> String {
        if self.0.is_empty() { String::new() } else { format!(" {{{}}}", self.0.join(", ")) }
    }
}
