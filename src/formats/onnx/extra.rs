//! What of a message has no place in the model: presence of fields that hold their default, fields of newer schemas,
//! and entries spelled in an unusual way. Import collects it in [`Extra`], export puts it back.

use std::sync::Arc;

use bytes::Bytes;
use prost::Message;

use super::proto::{OperatorSetIdProto, StringStringEntryProto};
use super::schema::MessageKind;
use super::wire::{self, Unknown};
use crate::ir::{Extra, Text};

/// Collects the extra part of one message while it is imported.
#[derive(Default)]
pub struct Remainder {
    explicit: u64,
    fields: Vec<u8>,
}

impl Remainder {
    /// Begins with the unknown fields that stood directly in the message.
    pub fn new(tree: &mut Unknown) -> Remainder {
        Remainder { explicit: 0, fields: std::mem::take(&mut tree.here).into() }
    }

    /// Notes the presence of a text field; `usual` when export writes it even if empty.
    pub fn text<'a>(&mut self, number: u32, value: &'a Option<String>, usual: bool) -> &'a str {
        let text = value.as_deref().unwrap_or_default();
        self.presence(number, value.is_some(), text.is_empty(), usual);
        text
    }

    /// Notes the presence of a number; `usual` when export writes it even if zero.
    pub fn int(&mut self, number: u32, value: Option<i64>, usual: bool) -> i64 {
        let int = value.unwrap_or_default();
        self.presence(number, value.is_some(), int == 0, usual);
        int
    }

    /// Notes whether a field that holds its default value stood there unusually.
    pub fn presence(&mut self, number: u32, present: bool, is_default: bool, usual: bool) {
        if is_default && present != usual {
            self.explicit |= 1 << number;
        }
    }

    /// Keeps a whole message of the known field `number` as it stood.
    pub fn keep(&mut self, number: u32, message: &impl Message, kind: MessageKind, tree: Unknown) {
        wire::write_field(&mut self.fields, number, &encode(message, kind, &tree));
    }

    /// Keeps already encoded fields.
    pub fn keep_encoded(&mut self, fields: &[u8]) {
        self.fields.extend_from_slice(fields);
    }

    /// Metadata as pairs; entries that pairs do not say everything about are kept as they stood as well.
    pub fn pairs(
        &mut self,
        number: u32,
        entries: &[StringStringEntryProto],
        tree: &mut Unknown,
    ) -> Vec<(Text, Text)> {
        let usual = entries.iter().all(|entry| entry.key.is_some() && entry.value.is_some());
        if !usual || tree.has(number) {
            for (index, entry) in entries.iter().enumerate() {
                self.keep(number, entry, MessageKind::StringStringEntry, tree.take(number, index));
            }
        }
        entries.iter().map(pair).collect()
    }

    /// Operator sets as pairs, kept as they stood like [`Remainder::pairs`].
    pub fn opsets(
        &mut self,
        number: u32,
        entries: &[OperatorSetIdProto],
        tree: &mut Unknown,
    ) -> Vec<(Text, i64)> {
        let usual = entries.iter().all(|entry| entry.domain.is_some() && entry.version.is_some());
        if !usual || tree.has(number) {
            for (index, entry) in entries.iter().enumerate() {
                self.keep(number, entry, MessageKind::OperatorSetId, tree.take(number, index));
            }
        }
        entries.iter().map(opset).collect()
    }

    /// The extra part, when there is one.
    pub fn finish(self) -> Option<Arc<Extra>> {
        if self.explicit == 0 && self.fields.is_empty() {
            return None;
        }
        Some(Arc::new(Extra { explicit: self.explicit, unknown: self.fields.into() }))
    }
}

fn pair(entry: &StringStringEntryProto) -> (Text, Text) {
    (entry.key.as_deref().unwrap_or_default().into(), entry.value.as_deref().unwrap_or_default().into())
}

fn opset(entry: &OperatorSetIdProto) -> (Text, i64) {
    (entry.domain.as_deref().unwrap_or_default().into(), entry.version.unwrap_or_default())
}

/// A message with its unknown fields, as it goes on the wire.
pub fn encode(message: &impl Message, kind: MessageKind, tree: &Unknown) -> Bytes {
    let encoded = message.encode_to_vec();
    if tree.is_empty() {
        return encoded.into();
    }
    // What prost has just written is well-formed; should it not be, the known fields are still right.
    wire::restore(&encoded, kind, tree).unwrap_or(encoded).into()
}

/// A message that was kept as it stood, with the unknown fields in it; `None` when the bytes are no such message.
pub fn decode<M: Message + Default>(bytes: &Bytes, kind: MessageKind) -> Option<(M, Unknown)> {
    let tree = wire::scan(bytes, kind).ok()?;
    Some((M::decode(bytes.clone()).ok()?, tree))
}

/// The extra part of a message that is being exported.
pub struct Kept<M> {
    explicit: u64,
    /// Known fields that were kept as they stood.
    pub fields: M,
    /// Unknown fields, and those inside `fields`.
    pub tree: Unknown,
}

impl<M: Message + Default> Kept<M> {
    pub fn of(extra: &Option<Arc<Extra>>, kind: MessageKind) -> Kept<M> {
        let Some(extra) = extra else {
            return Kept { explicit: 0, fields: M::default(), tree: Unknown::default() };
        };
        let (fields, tree) = match extra.unknown.is_empty() {
            true => Default::default(),
            false => decode(&extra.unknown, kind).unwrap_or_default(),
        };
        Kept { explicit: extra.explicit, fields, tree }
    }

    /// The text field as it is to be written.
    pub fn text(&self, number: u32, value: &str, usual: bool) -> Option<String> {
        self.present(number, value.is_empty(), usual).then(|| value.to_owned())
    }

    /// The number as it is to be written.
    pub fn int(&self, number: u32, value: i64, usual: bool) -> Option<i64> {
        self.present(number, value == 0, usual).then_some(value)
    }

    /// Whether a field is to be written.
    pub fn present(&self, number: u32, is_default: bool, usual: bool) -> bool {
        !is_default || usual != (self.explicit >> number & 1 == 1)
    }

    /// Metadata entries: as they were kept when they still say the same, else written anew.
    pub fn pairs(
        &mut self,
        number: u32,
        pairs: &[(Text, Text)],
        kept: fn(&mut M) -> &mut Vec<StringStringEntryProto>,
    ) -> Vec<StringStringEntryProto> {
        let entries = std::mem::take(kept(&mut self.fields));
        if entries.len() == pairs.len() && entries.iter().map(pair).eq(pairs.iter().cloned()) {
            return entries;
        }
        self.forget(number);
        let write = |(key, value): &(Text, Text)| StringStringEntryProto {
            key: Some(key.to_string()),
            value: Some(value.to_string()),
        };
        pairs.iter().map(write).collect()
    }

    /// Operator sets, like [`Kept::pairs`].
    pub fn opsets(
        &mut self,
        number: u32,
        opsets: &[(Text, i64)],
        kept: fn(&mut M) -> &mut Vec<OperatorSetIdProto>,
    ) -> Vec<OperatorSetIdProto> {
        let entries = std::mem::take(kept(&mut self.fields));
        if entries.len() == opsets.len() && entries.iter().map(opset).eq(opsets.iter().cloned()) {
            return entries;
        }
        self.forget(number);
        let write = |(domain, version): &(Text, i64)| OperatorSetIdProto {
            domain: Some(domain.to_string()),
            version: Some(*version),
        };
        opsets.iter().map(write).collect()
    }

    /// Drops unknown fields inside the messages of one field that is written anew.
    pub fn forget(&mut self, number: u32) {
        self.tree.inside.retain(|(field, _), _| *field != number);
    }
}
