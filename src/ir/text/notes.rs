//! Notes in braces and the lists in angle brackets that say something about a thing: parsed by key.

use super::lex::{At, Token};
use super::parse::{Parser, Result};
use crate::ir::ids::Text;
use crate::ir::node::Extra;
use crate::ir::tensor::Encoding;
use crate::ir::types::Type;
use bytes::Bytes;
use std::sync::Arc;

/// Everything that a note can say; who asks for notes says which keys it knows.
#[derive(Default)]
pub(super) struct Notes {
    pub ir_version: Option<i64>,
    pub opsets: Option<Vec<(Text, i64)>>,
    pub producer_name: Option<Text>,
    pub producer_version: Option<Text>,
    pub domain: Option<Text>,
    pub model_version: Option<i64>,
    pub overload: Option<Text>,
    pub doc: Option<Text>,
    pub metadata: Vec<(Text, Text)>,
    pub training: Vec<Bytes>,
    pub configurations: Vec<Bytes>,
    pub annotations: Vec<(Text, Bytes)>,
    pub graph_name: Option<Text>,
    pub tensor_name: Option<Text>,
    pub explicit: Option<u64>,
    pub unknown: Option<Bytes>,
    pub type_proto: Option<Bytes>,
    pub value_type: Option<Type>,
    pub position: Option<u32>,
    pub encoding: Option<Encoding>,
    pub stray: bool,
}

pub(super) const MODEL: &[&str] = &[
    "ir_version",
    "opset_import",
    "producer_name",
    "producer_version",
    "domain",
    "model_version",
    "doc_string",
    "metadata_props",
    "training_info",
    "configuration",
    "explicit",
    "unknown",
];
pub(super) const FUNCTION: &[&str] =
    &["domain", "overload", "opset_import", "doc_string", "metadata_props", "explicit", "unknown"];
pub(super) const GRAPH: &[&str] =
    &["doc_string", "metadata_props", "quantization_annotation", "graph_name", "explicit", "unknown"];
pub(super) const NODE: &[&str] = &["doc_string", "metadata_props", "explicit", "unknown"];
pub(super) const ATTRIBUTE: &[&str] = &["doc_string", "explicit", "unknown"];
pub(super) const TYPE: &[&str] =
    &["doc_string", "metadata_props", "type_proto", "position", "explicit", "unknown"];
pub(super) const TENSOR: &[&str] =
    &["doc_string", "metadata_props", "encoding", "external_data", "explicit", "unknown"];
pub(super) const SPARSE: &[&str] = &["explicit", "unknown"];
/// Of what stands between a graph's outputs and its nodes, or in its list of inputs: declarations and initializers.
pub(super) const ITEM: &[&str] = &[
    "doc_string",
    "metadata_props",
    "type_proto",
    "value_type",
    "position",
    "stray",
    "tensor_name",
    "encoding",
    "external_data",
    "explicit",
    "unknown",
];

impl Notes {
    pub fn extra(&mut self) -> Option<Arc<Extra>> {
        if self.explicit.is_none() && self.unknown.is_none() {
            return None;
        }
        let explicit = self.explicit.unwrap_or_default();
        Some(Arc::new(Extra { explicit, unknown: self.unknown.take().unwrap_or_default() }))
    }
}

impl Parser<'_, '_> {
    /// `{key: value, …}` if it stands here; data in braces is left alone.
    pub(super) fn notes(&mut self, keys: &[&str]) -> Result<Notes> {
        let here = matches!(self.peek(0)?, Token::Mark('{'))
            && matches!(self.peek(1)?, Token::Word(_))
            && matches!(self.peek(2)?, Token::Mark(':'));
        if here { self.entries('{', '}', keys) } else { Ok(Notes::default()) }
    }

    /// `<key: value, …>` or the like, with given brackets.
    pub(super) fn entries(&mut self, open: char, close: char, keys: &[&str]) -> Result<Notes> {
        let mut notes = Notes::default();
        self.expect(open, "before what is said about this")?;
        while !self.eat(close)? {
            let at = self.at()?;
            let key = self.word("a key")?;
            if !keys.contains(&key) {
                let near = keys
                    .iter()
                    .max_by(|a, b| strsim::jaro_winkler(key, a).total_cmp(&strsim::jaro_winkler(key, b)));
                let near = near.map(|n| format!("; nearest: {n}")).unwrap_or_default();
                return Err(self.error(at, format!("'{key}' cannot be said here{near}")));
            }
            self.expect(':', "after the key")?;
            self.entry(key, at, &mut notes)?;
            if !matches!(self.peek(0)?, Token::Mark(c) if *c == close) {
                self.expect(',', "between two entries")?;
            }
        }
        Ok(notes)
    }

    fn entry(&mut self, key: &str, at: At, notes: &mut Notes) -> Result<()> {
        match key {
            "ir_version" => notes.ir_version = Some(self.int()?),
            "opset_import" => notes.opsets = Some(self.opsets()?),
            "producer_name" => notes.producer_name = Some(self.text()?),
            "producer_version" => notes.producer_version = Some(self.text()?),
            "domain" => notes.domain = Some(self.text()?),
            "model_version" => notes.model_version = Some(self.int()?),
            "overload" => notes.overload = Some(self.text()?),
            "doc_string" => notes.doc = Some(self.text()?),
            "metadata_props" => notes.metadata = self.pairs()?,
            "training_info" => notes.training = self.list(|p| p.string("base64 data"))?,
            "configuration" => notes.configurations = self.list(|p| p.string("base64 data"))?,
            "quantization_annotation" => {
                notes.annotations = self.list(|p| {
                    let name = p.text()?;
                    p.expect(':', "after the tensor's name")?;
                    Ok((name, p.string("base64 data")?))
                })?
            }
            "graph_name" => notes.graph_name = Some(self.text()?),
            "tensor_name" => notes.tensor_name = Some(self.text()?),
            "explicit" => notes.explicit = Some(self.number("a number of bits")?),
            "unknown" => notes.unknown = Some(self.string("base64 data")?),
            "type_proto" => notes.type_proto = Some(self.string("base64 data")?),
            "value_type" => notes.value_type = Some(self.ty()?),
            "position" => notes.position = Some(self.number("a position")?),
            "encoding" => {
                notes.encoding = Some(match self.word("raw or typed")? {
                    "raw" => Encoding::Raw,
                    "typed" => Encoding::Typed,
                    other => {
                        return Err(self.error(at, format!("an encoding is raw or typed, not '{other}'")));
                    }
                })
            }
            "external_data" => notes.encoding = Some(Encoding::External(self.pairs()?.into())),
            "stray" => notes.stray = self.word("true or false")? == "true",
            _ => return Err(self.error(at, format!("'{key}' is not known"))),
        }
        Ok(())
    }

    /// `["": 17, "ai.onnx.ml": 3]`.
    fn opsets(&mut self) -> Result<Vec<(Text, i64)>> {
        self.list(|p| {
            let domain = p.text()?;
            p.expect(':', "after the operator set's domain")?;
            Ok((domain, p.int()?))
        })
    }

    /// `["key": "value", …]`.
    pub(super) fn pairs(&mut self) -> Result<Vec<(Text, Text)>> {
        self.list(|p| {
            let key = p.text()?;
            p.expect(':', "after the key")?;
            Ok((key, p.text()?))
        })
    }
}
