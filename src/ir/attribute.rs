//! Attributes of nodes, of every kind ONNX has.

use super::ids::{GraphId, Text};
use super::node::{Declaration, Extra};
use super::tensor::{SparseTensor, Tensor};
use bytes::Bytes;
use std::sync::Arc;

/// A named attribute of a node.
#[derive(Clone, Debug)]
pub struct Attribute {
    pub name: Text,
    pub value: AttributeValue,
    pub doc: Text,
    pub extra: Option<Arc<Extra>>,
}

/// Value of an attribute; the variants are those of `AttributeProto.AttributeType`.
#[derive(Clone, Debug)]
pub enum AttributeValue {
    Float(f32),
    Int(i64),
    /// Bytes, mostly but not always UTF-8.
    String(Bytes),
    Tensor(Arc<Tensor>),
    Graph(GraphId),
    Sparse(Arc<SparseTensor>),
    Type(Arc<Declaration>),
    Floats(Arc<[f32]>),
    Ints(Arc<[i64]>),
    Strings(Arc<[Bytes]>),
    Tensors(Arc<[Arc<Tensor>]>),
    Graphs(Arc<[GraphId]>),
    Sparses(Arc<[Arc<SparseTensor>]>),
    Types(Arc<[Arc<Declaration>]>),
    /// In the body of a model-local function: the attribute of that name of the call; `kind` is its AttributeType number.
    Reference {
        name: Text,
        kind: i32,
    },
    /// An attribute without a type that is known here; the bytes are the whole `AttributeProto`.
    Unknown(Bytes),
}

impl Attribute {
    /// An attribute without documentation.
    pub fn new(name: &str, value: impl Into<AttributeValue>) -> Attribute {
        Attribute { name: name.into(), value: value.into(), doc: "".into(), extra: None }
    }

    /// Same name, kind and value: floats by bits (NaN equals itself, -0.0 differs from 0.0), tensors by content, graphs by id.
    pub fn same(&self, other: &Attribute) -> bool {
        self.name == other.name && self.value.same(&other.value)
    }
}

impl AttributeValue {
    /// Integer of an `Int` attribute.
    pub fn int(&self) -> Option<i64> {
        match self {
            AttributeValue::Int(v) => Some(*v),
            _ => None,
        }
    }

    /// Integers of an `Ints` attribute.
    pub fn ints(&self) -> Option<&[i64]> {
        match self {
            AttributeValue::Ints(v) => Some(v),
            _ => None,
        }
    }

    /// Number of a `Float` attribute.
    pub fn float(&self) -> Option<f32> {
        match self {
            AttributeValue::Float(v) => Some(*v),
            _ => None,
        }
    }

    /// Text of a `String` attribute that is UTF-8.
    pub fn text(&self) -> Option<&str> {
        match self {
            AttributeValue::String(v) => std::str::from_utf8(v).ok(),
            _ => None,
        }
    }

    /// Graphs that the attribute holds, in order.
    pub fn graphs(&self) -> &[GraphId] {
        match self {
            AttributeValue::Graph(g) => std::slice::from_ref(g),
            AttributeValue::Graphs(g) => g,
            _ => &[],
        }
    }

    /// See [`Attribute::same`].
    pub fn same(&self, other: &AttributeValue) -> bool {
        use AttributeValue::*;
        let same_floats =
            |a: &[f32], b: &[f32]| a.iter().map(|v| v.to_bits()).eq(b.iter().map(|v| v.to_bits()));
        match (self, other) {
            (Float(a), Float(b)) => a.to_bits() == b.to_bits(),
            (Int(a), Int(b)) => a == b,
            (String(a), String(b)) => a == b,
            (Tensor(a), Tensor(b)) => a.same_content(b),
            (Graph(a), Graph(b)) => a == b,
            (Sparse(a), Sparse(b)) => a.same_content(b),
            (Type(a), Type(b)) => a.ty == b.ty,
            (Floats(a), Floats(b)) => same_floats(a, b),
            (Ints(a), Ints(b)) => a == b,
            (Strings(a), Strings(b)) => a == b,
            (Tensors(a), Tensors(b)) => {
                a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| a.same_content(b))
            }
            (Graphs(a), Graphs(b)) => a == b,
            (Sparses(a), Sparses(b)) => {
                a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| a.same_content(b))
            }
            (Types(a), Types(b)) => a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| a.ty == b.ty),
            (Reference { name: a, kind: x }, Reference { name: b, kind: y }) => a == b && x == y,
            (Unknown(a), Unknown(b)) => a == b,
            _ => false,
        }
    }
}

impl SparseTensor {
    /// Same dimensions, indices and values.
    pub fn same_content(&self, other: &SparseTensor) -> bool {
        self.dims == other.dims
            && self.values.same_content(&other.values)
            && self.indices.same_content(&other.indices)
    }
}

impl From<i64> for AttributeValue {
    fn from(v: i64) -> Self {
        AttributeValue::Int(v)
    }
}

impl From<f32> for AttributeValue {
    fn from(v: f32) -> Self {
        AttributeValue::Float(v)
    }
}

impl From<&str> for AttributeValue {
    fn from(v: &str) -> Self {
        AttributeValue::String(Bytes::copy_from_slice(v.as_bytes()))
    }
}

impl From<&[i64]> for AttributeValue {
    fn from(v: &[i64]) -> Self {
        AttributeValue::Ints(v.into())
    }
}

impl<const N: usize> From<[i64; N]> for AttributeValue {
    fn from(v: [i64; N]) -> Self {
        AttributeValue::Ints(v.as_slice().into())
    }
}

impl From<Vec<i64>> for AttributeValue {
    fn from(v: Vec<i64>) -> Self {
        AttributeValue::Ints(v.into())
    }
}

impl From<Vec<f32>> for AttributeValue {
    fn from(v: Vec<f32>) -> Self {
        AttributeValue::Floats(v.into())
    }
}

impl From<Tensor> for AttributeValue {
    fn from(v: Tensor) -> Self {
        AttributeValue::Tensor(Arc::new(v))
    }
}

impl From<GraphId> for AttributeValue {
    fn from(v: GraphId) -> Self {
        AttributeValue::Graph(v)
    }
}
