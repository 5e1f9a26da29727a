//! Messages to JSON text, field by field as the schema lists them.

use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use prost::Message;

use super::{FORMAT, VERSION, names_of};
use crate::formats::onnx::export::Exported;
use crate::formats::onnx::schema::{FieldKind, MessageKind};
use crate::formats::onnx::wire::{Unknown, WireField, known_fields};

/// Writes the document for a model.
pub fn from_message(model: &Exported, out: &mut impl Write) -> io::Result<()> {
    let encoded = model.message.encode_to_vec();
    write!(out, "{{\n \"format\": \"{FORMAT}\",\n \"version\": {VERSION},\n \"model\": ")?;
    Writer { out }.message(&encoded, MessageKind::Model, &model.unknown, 1)?;
    out.write_all(b"\n}\n")
}

struct Writer<'a, W> {
    out: &'a mut W,
}

impl<W: Write> Writer<'_, W> {
    /// An object; `depth` is its indentation.
    fn message(
        &mut self,
        encoded: &[u8],
        kind: MessageKind,
        unknown: &Unknown,
        depth: usize,
    ) -> io::Result<()> {
        let fields = known_fields(encoded, kind).map_err(io::Error::other)?;
        let wide = is_wide(kind);
        self.out.write_all(b"{")?;
        let mut first = true;
        // What prost writes has the occurrences of a field behind each other.
        for group in fields.chunk_by(|a, b| a.field.number == b.field.number) {
            let Some(field) = group.first().map(|occurrence| occurrence.field) else { continue };
            self.separate(&mut first, wide, depth)?;
            write!(self.out, "\"{}\": ", field.name)?;
            match field.repeated {
                true => self.list(group, kind, unknown, depth + 1)?,
                false => self.single(group, kind, unknown, depth)?,
            }
        }
        if !unknown.here.is_empty() {
            self.separate(&mut first, wide, depth)?;
            write!(self.out, "\"unknown_fields\": \"{}\"", STANDARD.encode(&unknown.here))?;
        }
        if wide && !first {
            self.line(depth)?;
        }
        self.out.write_all(b"}")
    }

    fn separate(&mut self, first: &mut bool, wide: bool, depth: usize) -> io::Result<()> {
        if !std::mem::take(first) {
            self.out.write_all(if wide { b"," } else { b", " })?;
        }
        if wide { self.line(depth + 1) } else { Ok(()) }
    }

    fn line(&mut self, depth: usize) -> io::Result<()> {
        write!(self.out, "\n{:depth$}", "")
    }

    fn single(
        &mut self,
        group: &[WireField<'_>],
        message: MessageKind,
        unknown: &Unknown,
        depth: usize,
    ) -> io::Result<()> {
        // Of a field that is not repeated the last occurrence counts; prost writes one.
        let Some(occurrence) = group.last() else { return Ok(()) };
        let none = Unknown::default();
        match occurrence.field.kind {
            FieldKind::Message(kind) => {
                let unknown = unknown.inside.get(&(occurrence.field.number, 0)).unwrap_or(&none);
                self.message(occurrence.bytes, kind, unknown, depth + 1)
            }
            _ => self.scalars(occurrence, message, &mut true),
        }
    }

    fn list(
        &mut self,
        group: &[WireField<'_>],
        message: MessageKind,
        unknown: &Unknown,
        depth: usize,
    ) -> io::Result<()> {
        let none = Unknown::default();
        self.out.write_all(b"[")?;
        let mut first = true;
        let mut wide = false;
        for (index, occurrence) in group.iter().enumerate() {
            match occurrence.field.kind {
                FieldKind::Message(kind) => {
                    wide = own_line(kind);
                    self.separate(&mut first, wide, depth)?;
                    let unknown = unknown.inside.get(&(occurrence.field.number, index)).unwrap_or(&none);
                    self.message(occurrence.bytes, kind, unknown, depth + 1)?;
                }
                _ => self.scalars(occurrence, message, &mut first)?,
            }
        }
        if wide {
            self.line(depth)?;
        }
        self.out.write_all(b"]")
    }

    /// The value, or the packed values, of one occurrence.
    fn scalars(
        &mut self,
        occurrence: &WireField<'_>,
        message: MessageKind,
        first: &mut bool,
    ) -> io::Result<()> {
        let field = occurrence.field;
        match field.kind {
            FieldKind::Varint => {
                let names = names_of(message, field.name);
                for number in occurrence.varints() {
                    self.separate(first, false, 0)?;
                    match names.and_then(|names| names.name(number)) {
                        Some(name) => write!(self.out, "\"{name}\"")?,
                        None if field.name == "uint64_data" => write!(self.out, "{number}")?,
                        None => write!(self.out, "{}", number as i64)?,
                    }
                }
                Ok(())
            }
            FieldKind::Fixed32 => {
                for word in occurrence.bytes.as_chunks::<4>().0 {
                    self.separate(first, false, 0)?;
                    self.out.write_all(float32(f32::from_le_bytes(*word)).as_bytes())?;
                }
                Ok(())
            }
            FieldKind::Fixed64 => {
                for word in occurrence.bytes.as_chunks::<8>().0 {
                    self.separate(first, false, 0)?;
                    self.out.write_all(float64(f64::from_le_bytes(*word)).as_bytes())?;
                }
                Ok(())
            }
            FieldKind::Bytes if field.name == "raw_data" => {
                self.separate(first, false, 0)?;
                self.base64(occurrence.bytes)
            }
            FieldKind::Text | FieldKind::Bytes => {
                self.separate(first, false, 0)?;
                match std::str::from_utf8(occurrence.bytes) {
                    Ok(text) => serde_json::to_writer(&mut *self.out, text).map_err(io::Error::from),
                    Err(_) => {
                        self.out.write_all(b"{\"base64\": ")?;
                        self.base64(occurrence.bytes)?;
                        self.out.write_all(b"}")
                    }
                }
            }
            // Handled where the unknown fields inside are known.
            FieldKind::Message(_) => Ok(()),
        }
    }

    fn base64(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(b"\"")?;
        // In pieces of a multiple of three bytes, so that large weights are not held twice.
        for piece in bytes.chunks(3 << 16) {
            self.out.write_all(STANDARD.encode(piece).as_bytes())?;
        }
        self.out.write_all(b"\"")
    }
}

/// Messages whose fields stand on lines of their own.
fn is_wide(kind: MessageKind) -> bool {
    matches!(
        kind,
        MessageKind::Model | MessageKind::Graph | MessageKind::Function | MessageKind::TrainingInfo
    )
}

/// Messages that each begin a line when they are repeated.
fn own_line(kind: MessageKind) -> bool {
    is_wide(kind) || matches!(kind, MessageKind::Node | MessageKind::Tensor | MessageKind::ValueInfo)
}

/// The shortest number that reads back as the same float32, also by way of float64.
fn float32(value: f32) -> String {
    match special(value.is_nan(), value.into(), value.to_bits() == f32::NAN.to_bits()) {
        Some(name) => name.to_owned(),
        None if value.is_nan() => format!("\"0x{:08x}\"", value.to_bits()),
        None => {
            let short = format!("{value:?}");
            let reads_back =
                short.parse::<f64>().is_ok_and(|wide| (wide as f32).to_bits() == value.to_bits());
            if reads_back { short } else { format!("{:?}", f64::from(value)) }
        }
    }
}

fn float64(value: f64) -> String {
    match special(value.is_nan(), value, value.to_bits() == f64::NAN.to_bits()) {
        Some(name) => name.to_owned(),
        None if value.is_nan() => format!("\"0x{:016x}\"", value.to_bits()),
        None => format!("{value:?}"),
    }
}

fn special(is_nan: bool, value: f64, is_usual_nan: bool) -> Option<&'static str> {
    match () {
        () if is_nan => is_usual_nan.then_some("\"NaN\""),
        () if value == f64::INFINITY => Some("\"Infinity\""),
        () if value == f64::NEG_INFINITY => Some("\"-Infinity\""),
        () => None,
    }
}
