//! The protobuf wire level: one pass over a file's tags that checks lengths and nesting before anything is decoded,
//! says where a bad file is bad, and collects the fields that `proto.rs` does not know, so that export can write
//! them back. Encoding rules: <https://protobuf.dev/programming-guides/encoding/>.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::schema::{Field, FieldKind, MessageKind, field};

/// Levels of nested messages below the root that protobuf readers accept; about 32 `If` inside `If`.
pub const MAX_DEPTH: usize = 100;

/// Unknown fields of one message and of the messages inside it. Fields keep their bytes, tag included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unknown {
    /// Encoded fields standing directly in this message, in file order.
    pub here: Bytes,
    /// By field number and index among that field's occurrences (0 for a field that is not repeated).
    pub inside: BTreeMap<(u32, usize), Unknown>,
}

impl Unknown {
    /// No unknown field here or further in.
    pub fn is_empty(&self) -> bool {
        self.here.is_empty() && self.inside.is_empty()
    }

    /// Takes out what belongs to one message inside; mostly nothing.
    pub fn take(&mut self, number: u32, index: usize) -> Unknown {
        if self.inside.is_empty() {
            return Unknown::default();
        }
        self.inside.remove(&(number, index)).unwrap_or_default()
    }

    /// True when messages of field `number` have unknown fields.
    pub fn has(&self, number: u32) -> bool {
        self.inside.range((number, 0)..=(number, usize::MAX)).next().is_some()
    }

    /// Puts `child` below; empty ones leave no trace.
    pub fn put(&mut self, number: u32, index: usize, child: Unknown) {
        if !child.is_empty() {
            self.inside.insert((number, index), child);
        }
    }
}

/// What is wrong with the bytes and in which message.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} (at {})", self.place())]
pub struct WireError {
    /// Field names from the root on, such as `graph`, `node[3]`.
    path: Vec<String>,
    what: Fault,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum Fault {
    #[error("a field announces {wanted} bytes where {left} are left")]
    Truncated { wanted: u64, left: usize },
    #[error("the bytes are no protobuf: {0}")]
    NotProtobuf(String),
    #[error("field {name} is encoded as {found}, not as {wanted}")]
    WrongKind { name: &'static str, found: &'static str, wanted: &'static str },
    #[error("the text of field {name} is not UTF-8")]
    NotUtf8 { name: &'static str },
    #[error(
        "messages are nested more than {MAX_DEPTH} levels deep, the limit of protobuf readers (about 32 bodies inside bodies)"
    )]
    TooDeep,
    #[error("{count} messages in {bytes} bytes are more than a model has")]
    TooMany { count: usize, bytes: usize },
}

impl WireError {
    fn new(what: Fault) -> WireError {
        WireError { path: Vec::new(), what }
    }

    /// The message that is bad, outermost name first; long paths are cut.
    fn place(&self) -> String {
        const SHOWN: usize = 6;
        let mut names: Vec<&str> = self.path.iter().rev().take(SHOWN).map(String::as_str).collect();
        if self.path.len() > SHOWN {
            names.push("…");
        }
        if names.is_empty() { "the top level".to_owned() } else { names.join(".") }
    }
}

/// Checks the whole of `file` as a `message` and returns its unknown fields as slices of `file`.
/// Time and stack are bounded: one visit to each field, [`MAX_DEPTH`] levels.
pub fn scan(file: &Bytes, message: MessageKind) -> Result<Unknown, WireError> {
    Scan { file, messages: 0 }.message(0, file.len(), message, 0)
}

/// Messages that a file of any size may have, and bytes a message takes on average beyond them. An empty node is two
/// bytes in a file and about 300 in memory: without a bound a small file would fill the memory.
const FREE_MESSAGES: usize = 2_000_000;
const BYTES_PER_MESSAGE: usize = 6;

struct Scan<'a> {
    file: &'a Bytes,
    messages: usize,
}

impl Scan<'_> {
    fn message(
        &mut self,
        start: usize,
        end: usize,
        message: MessageKind,
        depth: usize,
    ) -> Result<Unknown, WireError> {
        let file = self.file;
        if depth > MAX_DEPTH {
            return Err(WireError::new(Fault::TooDeep));
        }
        self.messages += 1;
        if self.messages > FREE_MESSAGES + file.len() / BYTES_PER_MESSAGE {
            return Err(WireError::new(Fault::TooMany { count: self.messages, bytes: file.len() }));
        }
        let mut unknown = Unknown::default();
        let mut unknown_spans: Vec<(usize, usize)> = Vec::new();
        let mut counts: Vec<(u32, usize)> = Vec::new();
        let mut reader = Reader { bytes: file, at: start, end };
        while reader.at < reader.end {
            let field_start = reader.at;
            let (number, wire) = reader.tag().map_err(WireError::new)?;
            let Some(known) = field(message, number) else {
                reader.skip(number, wire, 0).map_err(WireError::new)?;
                match unknown_spans.last_mut() {
                    Some((_, previous_end)) if *previous_end == field_start => *previous_end = reader.at,
                    _ => unknown_spans.push((field_start, reader.at)),
                }
                continue;
            };
            let (from, to) = reader.value(known, wire).map_err(WireError::new)?;
            if let FieldKind::Message(inner) = known.kind {
                let index = if known.repeated { count_up(&mut counts, number) } else { 0 };
                match self.message(from, to, inner, depth + 1) {
                    Ok(child) if child.is_empty() => {}
                    Ok(child) => merge(&mut unknown, (number, index), child),
                    Err(mut error) => {
                        error.path.push(if known.repeated {
                            format!("{}[{index}]", known.name)
                        } else {
                            known.name.to_owned()
                        });
                        return Err(error);
                    }
                }
            }
        }
        unknown.here = match unknown_spans.as_slice() {
            [] => Bytes::new(),
            [(from, to)] => file.slice(*from..*to),
            spans => spans.iter().flat_map(|(from, to)| file.slice(*from..*to)).collect::<Vec<u8>>().into(),
        };
        Ok(unknown)
    }
}

/// A message field that is not repeated but stands twice is one message to protobuf: the parts add up.
fn merge(unknown: &mut Unknown, key: (u32, usize), child: Unknown) {
    let known = unknown.inside.entry(key).or_default();
    if known.is_empty() {
        *known = child;
        return;
    }
    known.here = [known.here.as_ref(), child.here.as_ref()].concat().into();
    for (key, grandchild) in child.inside {
        merge(known, key, grandchild);
    }
}

fn count_up(counts: &mut Vec<(u32, usize)>, number: u32) -> usize {
    if let Some((_, count)) = counts.iter_mut().find(|(known, _)| *known == number) {
        *count += 1;
        return *count;
    }
    counts.push((number, 0));
    0
}

/// One known field as it stands on the wire.
pub struct WireField<'a> {
    pub field: &'static Field,
    /// The value without tag and length; several numbers behind each other when they are packed.
    pub bytes: &'a [u8],
}

impl WireField<'_> {
    /// The numbers of a varint field.
    pub fn varints(&self) -> Vec<u64> {
        let mut reader = Reader { bytes: self.bytes, at: 0, end: self.bytes.len() };
        let mut numbers = Vec::new();
        while reader.at < reader.end {
            match reader.varint() {
                Ok(number) => numbers.push(number),
                Err(_) => break,
            }
        }
        numbers
    }
}

/// The known fields of a `message`, in the order in which they stand; unknown ones are passed over.
pub fn known_fields(encoded: &[u8], message: MessageKind) -> Result<Vec<WireField<'_>>, WireError> {
    let mut reader = Reader { bytes: encoded, at: 0, end: encoded.len() };
    let mut fields = Vec::new();
    while reader.at < reader.end {
        let (number, wire) = reader.tag().map_err(WireError::new)?;
        match field(message, number) {
            None => reader.skip(number, wire, 0).map_err(WireError::new)?,
            Some(known) => {
                let (from, to) = reader.value(known, wire).map_err(WireError::new)?;
                fields.push(WireField { field: known, bytes: reader.slice(from, to) });
            }
        }
    }
    Ok(fields)
}

/// `encoded`, a `message` as written by prost, with the unknown fields put back behind the known ones of each message.
/// Unknown fields of messages that `encoded` does not have are left out.
pub fn restore(encoded: &[u8], message: MessageKind, unknown: &Unknown) -> Result<Vec<u8>, WireError> {
    let mut out = Vec::with_capacity(encoded.len() + unknown.here.len());
    let mut counts: Vec<(u32, usize)> = Vec::new();
    let mut reader = Reader { bytes: encoded, at: 0, end: encoded.len() };
    while reader.at < reader.end {
        let field_start = reader.at;
        let (number, wire) = reader.tag().map_err(WireError::new)?;
        let Some(known) = field(message, number) else {
            reader.skip(number, wire, 0).map_err(WireError::new)?;
            out.extend_from_slice(reader.slice(field_start, reader.at));
            continue;
        };
        let (from, to) = reader.value(known, wire).map_err(WireError::new)?;
        let inner = match known.kind {
            FieldKind::Message(inner) => {
                let index = if known.repeated { count_up(&mut counts, number) } else { 0 };
                unknown.inside.get(&(number, index)).map(|child| (inner, child))
            }
            _ => None,
        };
        match inner {
            Some((inner, child)) => {
                let body = restore(reader.slice(from, to), inner, child)?;
                write_field(&mut out, number, &body);
            }
            None => out.extend_from_slice(reader.slice(field_start, reader.at)),
        }
    }
    out.extend_from_slice(&unknown.here);
    Ok(out)
}

const VARINT: u8 = 0;
const FIXED64: u8 = 1;
const LENGTH_DELIMITED: u8 = 2;
const GROUP_START: u8 = 3;
const GROUP_END: u8 = 4;
const FIXED32: u8 = 5;

fn wire_name(wire: u8) -> &'static str {
    match wire {
        VARINT => "varint",
        FIXED64 => "64-bit value",
        LENGTH_DELIMITED => "text, bytes or message",
        FIXED32 => "32-bit value",
        _ => "group",
    }
}

/// Appends a length-delimited field.
pub fn write_field(out: &mut Vec<u8>, number: u32, body: &[u8]) {
    write_varint(out, u64::from(number) << 3 | u64::from(LENGTH_DELIMITED));
    write_varint(out, body.len() as u64);
    out.extend_from_slice(body);
}

/// Appends a number field.
pub fn write_number(out: &mut Vec<u8>, number: u32, value: u64) {
    write_varint(out, u64::from(number) << 3 | u64::from(VARINT));
    write_varint(out, value);
}

/// Appends a field of four bytes.
pub fn write_fixed32(out: &mut Vec<u8>, number: u32, value: [u8; 4]) {
    write_varint(out, u64::from(number) << 3 | u64::from(FIXED32));
    out.extend_from_slice(&value);
}

/// Appends a field of eight bytes.
pub fn write_fixed64(out: &mut Vec<u8>, number: u32, value: [u8; 8]) {
    write_varint(out, u64::from(number) << 3 | u64::from(FIXED64));
    out.extend_from_slice(&value);
}

fn write_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A place in the bytes and the end of the message that is being read.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    end: usize,
}

impl<'a> Reader<'a> {
    fn slice(&self, from: usize, to: usize) -> &'a [u8] {
        self.bytes.get(from..to).unwrap_or_default()
    }

    fn varint(&mut self) -> Result<u64, Fault> {
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            if self.at >= self.end {
                return Err(Fault::Truncated { wanted: 1, left: 0 });
            }
            let Some(&byte) = self.bytes.get(self.at) else {
                return Err(Fault::Truncated { wanted: 1, left: 0 });
            };
            self.at += 1;
            if shift == 63 && byte > 1 {
                return Err(Fault::NotProtobuf("a number of more than 64 bits".to_owned()));
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Fault::NotProtobuf("a number of more than 64 bits".to_owned()))
    }

    fn tag(&mut self) -> Result<(u32, u8), Fault> {
        let tag = self.varint()?;
        let (number, wire) = (tag >> 3, (tag & 7) as u8);
        match u32::try_from(number) {
            Ok(number) if (1..1 << 29).contains(&number) && wire <= FIXED32 => Ok((number, wire)),
            _ => Err(Fault::NotProtobuf(format!("there is no field with tag {tag}"))),
        }
    }

    fn advance(&mut self, bytes: u64) -> Result<(usize, usize), Fault> {
        let left = self.end - self.at;
        match usize::try_from(bytes) {
            Ok(count) if count <= left => {
                let from = self.at;
                self.at += count;
                Ok((from, self.at))
            }
            _ => Err(Fault::Truncated { wanted: bytes, left }),
        }
    }

    /// Steps over the value of an unknown field.
    fn skip(&mut self, number: u32, wire: u8, depth: usize) -> Result<(), Fault> {
        match wire {
            VARINT => self.varint().map(|_| ()),
            FIXED64 => self.advance(8).map(|_| ()),
            FIXED32 => self.advance(4).map(|_| ()),
            LENGTH_DELIMITED => {
                let length = self.varint()?;
                self.advance(length).map(|_| ())
            }
            GROUP_START if depth >= MAX_DEPTH => Err(Fault::TooDeep),
            GROUP_START => loop {
                let (inner, wire) = self.tag()?;
                if wire == GROUP_END {
                    return if inner == number {
                        Ok(())
                    } else {
                        Err(Fault::NotProtobuf(format!("group {number} is closed as {inner}")))
                    };
                }
                self.skip(inner, wire, depth + 1)?;
            },
            _ => Err(Fault::NotProtobuf(format!("group {number} is closed without having been opened"))),
        }
    }

    /// Steps over the value of a known field, checks its kind and returns where it lies (without its length).
    fn value(&mut self, known: &Field, wire: u8) -> Result<(usize, usize), Fault> {
        let wanted = match known.kind {
            FieldKind::Varint => VARINT,
            FieldKind::Fixed32 => FIXED32,
            FieldKind::Fixed64 => FIXED64,
            FieldKind::Text | FieldKind::Bytes | FieldKind::Message(_) => LENGTH_DELIMITED,
        };
        let packed = known.repeated && wire == LENGTH_DELIMITED;
        if wire != wanted && !packed {
            let (found, wanted) = (wire_name(wire), wire_name(wanted));
            return Err(Fault::WrongKind { name: known.name, found, wanted });
        }
        let span = match wire {
            LENGTH_DELIMITED => {
                let length = self.varint()?;
                self.advance(length)?
            }
            FIXED64 => self.advance(8)?,
            FIXED32 => self.advance(4)?,
            _ => {
                let from = self.at;
                self.varint()?;
                (from, self.at)
            }
        };
        match (known.kind, wire) {
            (FieldKind::Text, _) if std::str::from_utf8(self.slice(span.0, span.1)).is_err() => {
                Err(Fault::NotUtf8 { name: known.name })
            }
            (FieldKind::Varint, LENGTH_DELIMITED) => {
                let mut inner = Reader { bytes: self.bytes, at: span.0, end: span.1 };
                while inner.at < inner.end {
                    inner.varint()?;
                }
                Ok(span)
            }
            (FieldKind::Fixed32, LENGTH_DELIMITED) if !(span.1 - span.0).is_multiple_of(4) => {
                Err(Fault::NotProtobuf(format!("field {} is cut inside a number", known.name)))
            }
            (FieldKind::Fixed64, LENGTH_DELIMITED) if !(span.1 - span.0).is_multiple_of(8) => {
                Err(Fault::NotProtobuf(format!("field {} is cut inside a number", known.name)))
            }
            _ => Ok(span),
        }
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::super::proto::{GraphProto, ModelProto, NodeProto};
    use super::*;

    fn model() -> Vec<u8> {
        let node = |name: &str| NodeProto { name: Some(name.to_owned()), ..Default::default() };
        let graph =
            GraphProto { node: vec![node("a"), node("b")], name: Some("g".to_owned()), ..Default::default() };
        ModelProto { ir_version: Some(8), graph: Some(graph), ..Default::default() }.encode_to_vec()
    }

    /// Unknown field 900 of the model (varint), 901 of its second node (group with text inside).
    fn with_unknown() -> Vec<u8> {
        let mut model_field = Vec::new();
        write_varint(&mut model_field, 900 << 3);
        write_varint(&mut model_field, 77);
        let mut node_field = Vec::new();
        write_varint(&mut node_field, 901 << 3 | 3);
        node_field.extend_from_slice(&[0x0a, 2, b'h', b'i']);
        write_varint(&mut node_field, 901 << 3 | 4);
        let node = Unknown { here: node_field.into(), ..Default::default() };
        let mut graph = Unknown::default();
        graph.put(1, 1, node);
        let mut root = Unknown { here: model_field.into(), ..Default::default() };
        root.put(7, 0, graph);
        restore(&model(), MessageKind::Model, &root).unwrap()
    }

    #[test]
    fn known_fields_only_leave_nothing() {
        assert!(scan(&model().into(), MessageKind::Model).unwrap().is_empty());
    }

    #[test]
    fn unknown_fields_survive_decode_and_restore() {
        let bytes: Bytes = with_unknown().into();
        let unknown = scan(&bytes, MessageKind::Model).unwrap();
        assert_eq!(unknown.here.len(), 3);
        assert!(unknown.inside[&(7, 0)].inside.contains_key(&(1, 1)));
        let decoded = ModelProto::decode(bytes.clone()).unwrap();
        assert_eq!(decoded.encode_to_vec(), model());
        let restored = restore(&decoded.encode_to_vec(), MessageKind::Model, &unknown).unwrap();
        assert_eq!(restored, bytes);
    }

    #[test]
    fn every_truncation_is_an_error_or_a_shorter_model() {
        let bytes: Bytes = with_unknown().into();
        for cut in 0..bytes.len() {
            let part = bytes.slice(..cut);
            if scan(&part, MessageKind::Model).is_ok() {
                ModelProto::decode(part).expect("what the scan accepts, prost decodes");
            }
        }
    }

    #[test]
    fn a_bad_length_is_named_with_its_place() {
        let mut graph = Vec::new();
        graph.extend_from_slice(&[0x0a, 3, 0x1a, 200, 1]); // node { name: 200 bytes announced }
        let mut bytes = vec![0x3a, graph.len() as u8];
        bytes.extend(graph);
        let error = scan(&bytes.into(), MessageKind::Model).unwrap_err();
        assert_eq!(error.to_string(), "a field announces 200 bytes where 0 are left (at graph.node[0])");
    }

    #[test]
    fn deep_nesting_is_one_short_sentence() {
        let mut body: Vec<u8> = Vec::new();
        for _ in 0..1_000 {
            for tag in [0x32u8, 0x2a, 0x0a] {
                // attribute.g, node.attribute, graph.node, from the inside out
                let mut outer = vec![tag];
                write_varint(&mut outer, body.len() as u64);
                outer.append(&mut body);
                body = outer;
            }
        }
        let error = scan(&body.into(), MessageKind::Graph).unwrap_err().to_string();
        assert!(error.starts_with("messages are nested more than 100 levels deep"), "{error}");
        assert!(error.len() < 250, "{error}");
    }

    #[test]
    fn wrong_kinds_and_text_are_refused() {
        let wrong = scan(&Bytes::from_static(&[0x38, 1]), MessageKind::Model).unwrap_err();
        assert_eq!(
            wrong.to_string(),
            "field graph is encoded as varint, not as text, bytes or message (at the top level)"
        );
        let text = scan(&Bytes::from_static(&[0x12, 2, 0xff, 0xfe]), MessageKind::Model).unwrap_err();
        assert!(text.to_string().contains("producer_name is not UTF-8"));
        assert!(scan(&Bytes::from_static(b"PK\x03\x04 and so on"), MessageKind::Model).is_err());
    }
}
