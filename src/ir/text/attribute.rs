//! Attributes of every kind, printed and parsed.

use super::elements::float32;
use super::lex::{At, Token};
use super::notes::{ATTRIBUTE, TYPE};
use super::parse::{AttributeText, GraphText, Parser, Result, ValueText};
use super::write::text_or_bytes;
use crate::ir::attribute::AttributeValue;
use crate::ir::node::Declaration;
use crate::ir::tensor::{SparseTensor, Tensor};
use bytes::Bytes;
use std::sync::Arc;

/// Kinds by their number in `AttributeProto.AttributeType`.
const KINDS: [&str; 15] = [
    "undefined",
    "float",
    "int",
    "string",
    "tensor",
    "graph",
    "floats",
    "ints",
    "strings",
    "tensors",
    "graphs",
    "sparse_tensor",
    "sparse_tensors",
    "type_proto",
    "type_protos",
];

/// The kind as it stands after the attribute's name.
pub(super) fn kind_text(value: &AttributeValue) -> String {
    use AttributeValue::*;
    let known = match value {
        Float(_) => "float",
        Int(_) => "int",
        String(_) => "string",
        Tensor(_) => "tensor",
        Graph(_) => "graph",
        Floats(_) => "floats",
        Ints(_) => "ints",
        Strings(_) => "strings",
        Tensors(_) => "tensors",
        Graphs(_) => "graphs",
        Sparse(_) => "sparse_tensor",
        Sparses(_) => "sparse_tensors",
        Type(_) => "type_proto",
        Types(_) => "type_protos",
        Unknown(_) => "unknown",
        Reference { kind, .. } => {
            let known = usize::try_from(*kind).ok().and_then(|k| KINDS.get(k));
            return known.map(|k| k.to_string()).unwrap_or_else(|| format!("kind{kind}").replace('-', "_"));
        }
    };
    known.to_owned()
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

/// Value of an attribute that has neither tensors, types nor graphs in it; `None` for one that has.
pub(super) fn plain_value(value: &AttributeValue) -> Option<String> {
    use AttributeValue::*;
    Some(match value {
        Float(v) => float32(*v),
        Int(v) => v.to_string(),
        String(v) => text_or_bytes(v),
        Floats(v) => list(v.iter().map(|v| float32(*v))),
        Ints(v) => list(v.iter().map(i64::to_string)),
        Strings(v) => list(v.iter().map(|v| text_or_bytes(v))),
        Reference { name, .. } => format!("@{}", super::write::name(name)),
        Unknown(bytes) => super::write::base64(bytes),
        Tensor(_) | Tensors(_) | Sparse(_) | Sparses(_) | Type(_) | Types(_) | Graph(_) | Graphs(_) => {
            return None;
        }
    })
}

/// One value of a list or alone, before the kind of the attribute is known.
#[allow(clippy::large_enum_variant)] // one at a time, while an attribute is read
enum One {
    Float(f32),
    Int(i64),
    String(Bytes),
    Tensor(Arc<Tensor>),
    Sparse(Arc<SparseTensor>),
    Type(Arc<Declaration>),
    Graph(Box<GraphText>),
}

impl Parser<'_, '_> {
    /// `name notes? (: kind)? = value`.
    pub(super) fn attribute(&mut self) -> Result<AttributeText> {
        let at = self.at()?;
        let name = self.quotable("the name of an attribute")?;
        let mut notes = self.notes(ATTRIBUTE)?;
        let kind_at = self.at()?;
        let kind = if self.eat(':')? { Some(self.word("the kind of the attribute")?) } else { None };
        self.expect('=', "before the attribute's value")?;
        let value = self.value(kind, kind_at)?;
        Ok(AttributeText {
            at,
            name: name.into(),
            value,
            extra: notes.extra(),
            doc: notes.doc.unwrap_or_default(),
        })
    }

    fn value(&mut self, kind: Option<&str>, kind_at: At) -> Result<ValueText> {
        let number = match kind {
            None => None,
            Some("unknown") => {
                return Ok(ValueText::Plain(AttributeValue::Unknown(self.string("base64 data")?)));
            }
            Some(kind) => {
                let listed = KINDS.iter().position(|k| *k == kind).map(|k| k as i32);
                let numbered = || kind.strip_prefix("kind").and_then(|n| n.replace('_', "-").parse().ok());
                let what =
                    || format!("'{kind}' is no kind of attribute; there are {}", KINDS[1..].join(", "));
                Some(listed.or_else(numbered).ok_or_else(|| self.error(kind_at, what()))?)
            }
        };
        if self.eat('@')? {
            let name = self.quotable("the name of an attribute of the function")?.into();
            let kind = number.unwrap_or_default();
            return Ok(ValueText::Plain(AttributeValue::Reference { name, kind }));
        }
        let at = self.at()?;
        let is_list = matches!(self.peek(0)?, Token::Mark('['));
        let mut values = match is_list {
            true => self.list(|p| p.one(kind))?,
            false => vec![self.one(kind)?],
        };
        if is_list {
            return self.list_value(at, kind, values);
        }
        let value = match (kind, values.pop()) {
            (None | Some("float"), Some(One::Float(v))) => AttributeValue::Float(v),
            (None | Some("int"), Some(One::Int(v))) => AttributeValue::Int(v),
            (None | Some("string"), Some(One::String(v))) => AttributeValue::String(v),
            (None | Some("tensor"), Some(One::Tensor(t))) => AttributeValue::Tensor(t),
            (None | Some("sparse_tensor"), Some(One::Sparse(t))) => AttributeValue::Sparse(t),
            (None | Some("type_proto"), Some(One::Type(t))) => AttributeValue::Type(t),
            (None | Some("graph"), Some(One::Graph(g))) => return Ok(ValueText::Graph(g)),
            _ => return Err(self.mismatch(at, kind)),
        };
        Ok(ValueText::Plain(value))
    }

    fn mismatch(&self, at: At, kind: Option<&str>) -> super::TextError {
        match kind {
            Some(kind) => self.error(at, format!("this value is not of the attribute's kind, {kind}")),
            None => self.error(at, "the values of this list are of different kinds"),
        }
    }

    fn list_value(&mut self, at: At, kind: Option<&str>, values: Vec<One>) -> Result<ValueText> {
        /// All values as one kind, when all of them are of it.
        fn all<T>(values: Vec<One>, pick: impl Fn(One) -> Option<T>) -> Option<Vec<T>> {
            values.into_iter().map(pick).collect()
        }
        let kind = match (kind, values.first()) {
            (Some(kind), _) => kind,
            (None, Some(One::Float(_))) => "floats",
            (None, Some(One::Int(_))) => "ints",
            (None, Some(One::String(_))) => "strings",
            (None, Some(One::Tensor(_))) => "tensors",
            (None, Some(One::Sparse(_))) => "sparse_tensors",
            (None, Some(One::Type(_))) => "type_protos",
            (None, Some(One::Graph(_))) => "graphs",
            (None, None) => return Err(self.error(at, "an empty list needs its kind, as in axes: ints = []")),
        };
        macro_rules! pick {
            ($one:ident, $value:ident) => {
                all(values, |one| if let One::$one(v) = one { Some(v) } else { None })
                    .map(|list| ValueText::Plain(AttributeValue::$value(list.into())))
            };
        }
        let value = match kind {
            "floats" => pick!(Float, Floats),
            "ints" => pick!(Int, Ints),
            "strings" => pick!(String, Strings),
            "tensors" => pick!(Tensor, Tensors),
            "sparse_tensors" => pick!(Sparse, Sparses),
            "type_protos" => pick!(Type, Types),
            "graphs" => all(values, |one| if let One::Graph(g) = one { Some(*g) } else { None })
                .map(ValueText::Graphs),
            _ => None,
        };
        value.ok_or_else(|| self.mismatch(at, Some(kind)))
    }

    fn one(&mut self, kind: Option<&str>) -> Result<One> {
        let at = self.at()?;
        match kind {
            Some("float" | "floats") => return Ok(One::Float(self.float32()?)),
            Some("graph" | "graphs") => return Ok(One::Graph(Box::new(self.graph(false)?))),
            Some("type_proto" | "type_protos") => return self.type_value(),
            Some("tensor" | "tensors" | "sparse_tensor" | "sparse_tensors") => {
                let ty = self.ty()?;
                return self.tensor_value(at, ty);
            }
            _ => {}
        }
        // A graph begins with its name and inputs, a type with a word that names one.
        let begins_type = match *self.peek(0)? {
            Token::Word(word) => self.type_word(word)?,
            _ => false,
        };
        match *self.peek(0)? {
            Token::Quoted(_) | Token::Bytes(_) => Ok(One::String(self.string("a string")?)),
            Token::Number(n) if !n.contains(['.', 'e', 'E']) => Ok(One::Int(self.int()?)),
            Token::Number(_) | Token::Mark('-') | Token::Word("inf" | "infinity" | "nan") => {
                Ok(One::Float(self.float32()?))
            }
            Token::Word(_) if begins_type => {
                let ty = self.ty()?;
                match self.peek(0)? {
                    Token::Mark('{' | '[' | '=' | '(')
                    | Token::Bytes(_)
                    | Token::Word(_)
                    | Token::Quoted(_) => self.tensor_value(at, ty),
                    _ => Ok(One::Type(Arc::new(Declaration::of(ty)))),
                }
            }
            Token::Word(_) => Ok(One::Graph(Box::new(self.graph(false)?))),
            _ => {
                let found = self.peek(0)?.describe();
                Err(self.error(at, format!("expected the value of an attribute, found {found}")))
            }
        }
    }

    fn type_word(&mut self, word: &str) -> Result<bool> {
        let opens = *self.peek(1)? == Token::Mark('(');
        let composed = matches!(word, "seq" | "map" | "optional" | "sparse_tensor" | "opaque");
        Ok(if opens { composed } else { crate::ir::ElementType::from_name(word).is_some() })
    }

    fn type_value(&mut self) -> Result<One> {
        let ty = self.ty()?;
        let mut notes = self.notes(TYPE)?;
        Ok(One::Type(Arc::new(Declaration {
            ty,
            raw: notes.type_proto.take(),
            position: notes.position.unwrap_or_default(),
            extra: notes.extra(),
            doc: notes.doc,
            metadata: notes.metadata,
        })))
    }

    fn tensor_value(&mut self, at: At, ty: crate::ir::Type) -> Result<One> {
        match ty {
            crate::ir::Type::Sparse { .. } => Ok(One::Sparse(Arc::new(self.sparse_after_type(at, &ty)?))),
            ty => Ok(One::Tensor(Arc::new(self.tensor_after_type(at, &ty)?))),
        }
    }
}
