//! JSON text to protobuf bytes, driven by the schema: what the schema does not have is an error with line and column, so
//! that nothing nests deeper and nothing is held that no model has.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::{
    DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor,
};

use super::{FORMAT, Names, VERSION, names_of};
use crate::formats::onnx::schema::{Field, FieldKind, MessageKind, fields};
use crate::formats::onnx::wire::{self, MAX_DEPTH};

/// The bytes of the `ModelProto` that a document holds; the error says line and column.
pub fn to_protobuf(document: &[u8]) -> Result<Vec<u8>, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(document);
    // Depth is bounded by the seeds below.
    deserializer.disable_recursion_limit();
    let model = Document.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(model)
}

/// The outermost object.
struct Document;

impl<'de> DeserializeSeed<'de> for Document {
    type Value = Vec<u8>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<u8>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Document {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with the keys format, version and model")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<u8>, A::Error> {
        let (mut format, mut model) = (false, None);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "format" => {
                    let found: String = map.next_value()?;
                    if found != FORMAT {
                        return Err(A::Error::custom(format!("its format is '{found}', not '{FORMAT}'")));
                    }
                    format = true;
                }
                "version" => {
                    let found: u64 = map.next_value()?;
                    if found != VERSION {
                        let what = format!("its version is {found}; this program reads version {VERSION}");
                        return Err(A::Error::custom(what));
                    }
                }
                "model" => {
                    model = Some(map.next_value_seed(MessageSeed { kind: MessageKind::Model, depth: 0 })?);
                }
                _ => return Err(A::Error::unknown_field(&key, &["format", "version", "model"])),
            }
        }
        if !format {
            return Err(A::Error::missing_field("format"));
        }
        model.ok_or_else(|| A::Error::missing_field("model"))
    }
}

/// A message; gives its encoded fields.
#[derive(Clone, Copy)]
struct MessageSeed {
    kind: MessageKind,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for MessageSeed {
    type Value = Vec<u8>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<u8>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for MessageSeed {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with the fields of {:?}", self.kind)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<u8>, A::Error> {
        if self.depth > MAX_DEPTH {
            return Err(A::Error::custom(format!("messages are nested more than {MAX_DEPTH} levels deep")));
        }
        let mut out = Vec::new();
        let mut unknown = None;
        while let Some(key) = map.next_key::<String>()? {
            if key == "unknown_fields" {
                unknown = Some(map.next_value_seed(Base64)?);
                continue;
            }
            let Some(field) = fields(self.kind).iter().find(|field| field.name == key) else {
                let known: Vec<&str> = fields(self.kind).iter().map(|field| field.name).collect();
                let what = format!("{:?} has no field '{key}' (its fields: {})", self.kind, known.join(", "));
                return Err(A::Error::custom(what));
            };
            let value = ValueSeed { message: self, field, out: &mut out };
            match field.repeated {
                true => map.next_value_seed(ListSeed(value))?,
                false => map.next_value_seed(value)?,
            }
        }
        out.extend(unknown.unwrap_or_default());
        Ok(out)
    }
}

/// The array of a repeated field.
struct ListSeed<'a>(ValueSeed<'a>);

impl<'de> DeserializeSeed<'de> for ListSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for ListSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an array for {}", self.0.field.name)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let ValueSeed { message, field, out } = self.0;
        while seq.next_element_seed(ValueSeed { message, field, out: &mut *out })?.is_some() {}
        Ok(())
    }
}

/// One value of a field, appended to `out` as it goes on the wire.
struct ValueSeed<'a> {
    message: MessageSeed,
    field: &'static Field,
    out: &'a mut Vec<u8>,
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let number = self.field.number;
        match self.field.kind {
            FieldKind::Message(kind) => {
                let body = MessageSeed { kind, depth: self.message.depth + 1 }.deserialize(deserializer)?;
                wire::write_field(self.out, number, &body);
                Ok(())
            }
            FieldKind::Bytes if self.field.name == "raw_data" => {
                let bytes = Base64.deserialize(deserializer)?;
                wire::write_field(self.out, number, &bytes);
                Ok(())
            }
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl ValueSeed<'_> {
    fn wrong<T, E: Error>(&self, found: Unexpected<'_>) -> Result<T, E> {
        Err(E::invalid_type(found, self))
    }

    fn names(&self) -> Option<Names> {
        names_of(self.message.kind, self.field.name)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wanted = match self.field.kind {
            FieldKind::Varint if self.names().is_some() => "a name or an integer",
            FieldKind::Varint => "an integer",
            FieldKind::Fixed32 | FieldKind::Fixed64 => "a number",
            FieldKind::Text => "a string",
            FieldKind::Bytes => "a string or an object with the key base64",
            FieldKind::Message(_) => "an object",
        };
        write!(f, "{wanted} for {}", self.field.name)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        match self.field.kind {
            FieldKind::Varint => wire::write_number(self.out, self.field.number, value as u64),
            FieldKind::Fixed32 | FieldKind::Fixed64 => return self.visit_f64(value as f64),
            _ => return self.wrong(Unexpected::Signed(value)),
        }
        Ok(())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        match self.field.kind {
            FieldKind::Varint => wire::write_number(self.out, self.field.number, value),
            FieldKind::Fixed32 | FieldKind::Fixed64 => return self.visit_f64(value as f64),
            _ => return self.wrong(Unexpected::Unsigned(value)),
        }
        Ok(())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        match self.field.kind {
            FieldKind::Fixed32 => {
                wire::write_fixed32(self.out, self.field.number, (value as f32).to_le_bytes());
            }
            FieldKind::Fixed64 => wire::write_fixed64(self.out, self.field.number, value.to_le_bytes()),
            _ => return self.wrong(Unexpected::Float(value)),
        }
        Ok(())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        let number = self.field.number;
        match self.field.kind {
            FieldKind::Text | FieldKind::Bytes => wire::write_field(self.out, number, value.as_bytes()),
            FieldKind::Varint => match self.names().and_then(|names| names.number(value)) {
                Some(code) => wire::write_number(self.out, number, code as i64 as u64),
                None => return Err(E::invalid_value(Unexpected::Str(value), &self)),
            },
            FieldKind::Fixed32 => match float32_by_name(value) {
                Some(float) => wire::write_fixed32(self.out, number, float.to_le_bytes()),
                None => return Err(E::invalid_value(Unexpected::Str(value), &self)),
            },
            FieldKind::Fixed64 => match float64_by_name(value) {
                Some(float) => wire::write_fixed64(self.out, number, float.to_le_bytes()),
                None => return Err(E::invalid_value(Unexpected::Str(value), &self)),
            },
            FieldKind::Message(_) => return self.wrong(Unexpected::Str(value)),
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        if self.field.kind != FieldKind::Bytes {
            return self.wrong(Unexpected::Map);
        }
        match map.next_key::<String>()?.as_deref() {
            Some("base64") => {}
            _ => return self.wrong(Unexpected::Map),
        }
        let bytes = map.next_value_seed(Base64)?;
        if map.next_key::<IgnoredAny>()?.is_some() {
            return Err(A::Error::custom("no other key may stand beside base64"));
        }
        wire::write_field(self.out, self.field.number, &bytes);
        Ok(())
    }
}

fn float32_by_name(name: &str) -> Option<f32> {
    match name {
        "NaN" => Some(f32::NAN),
        "Infinity" => Some(f32::INFINITY),
        "-Infinity" => Some(f32::NEG_INFINITY),
        _ => u32::from_str_radix(name.strip_prefix("0x")?, 16).ok().map(f32::from_bits),
    }
}

fn float64_by_name(name: &str) -> Option<f64> {
    match name {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ => u64::from_str_radix(name.strip_prefix("0x")?, 16).ok().map(f64::from_bits),
    }
}

/// A base64 string.
struct Base64;

impl<'de> DeserializeSeed<'de> for Base64 {
    type Value = Vec<u8>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<u8>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Base64 {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a base64 string")
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Vec<u8>, E> {
        STANDARD.decode(value).map_err(|error| E::custom(format!("this is no base64: {error}")))
    }
}
