//! Types of values: element types, shapes with fixed, symbolic and unknown dimensions, sequences, optionals, maps.

use super::ids::Text;
use super::symbolic::Expr;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::fmt;

/// Element type of a tensor, by its number in `TensorProto.DataType`; numbers newer than those named here are carried.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ElementType(pub i32);

macro_rules! element_types {
    ($($konst:ident = $code:literal, $name:literal, $bits:literal;)*) => {
        impl ElementType {
            $(#[doc = concat!("`", $name, "`.")] pub const $konst: ElementType = ElementType($code);)*

            /// All named element types, by number.
            pub const ALL: &'static [ElementType] = &[$(ElementType::$konst),*];

            /// Name as ONNX's textual syntax writes it, `None` for a number without a name here.
            pub fn known_name(self) -> Option<&'static str> {
                match self.0 { $($code => Some($name),)* _ => None }
            }

            /// Element type of a name, for the text form.
            pub fn from_name(name: &str) -> Option<ElementType> {
                match name { $($name => Some(ElementType::$konst),)* _ => name.strip_prefix("type")?.parse().ok().map(ElementType) }
            }

            /// Bits of one element as stored in `raw_data`; 0 for strings and for types not known here.
            pub fn bits(self) -> u32 {
                match self.0 { $($code => $bits,)* _ => 0 }
            }
        }
    };
}

element_types! {
    UNDEFINED = 0, "undefined", 0;
    FLOAT = 1, "float", 32;
    UINT8 = 2, "uint8", 8;
    INT8 = 3, "int8", 8;
    UINT16 = 4, "uint16", 16;
    INT16 = 5, "int16", 16;
    INT32 = 6, "int32", 32;
    INT64 = 7, "int64", 64;
    STRING = 8, "string", 0;
    BOOL = 9, "bool", 8;
    FLOAT16 = 10, "float16", 16;
    DOUBLE = 11, "double", 64;
    UINT32 = 12, "uint32", 32;
    UINT64 = 13, "uint64", 64;
    COMPLEX64 = 14, "complex64", 64;
    COMPLEX128 = 15, "complex128", 128;
    BFLOAT16 = 16, "bfloat16", 16;
    FLOAT8E4M3FN = 17, "float8e4m3fn", 8;
    FLOAT8E4M3FNUZ = 18, "float8e4m3fnuz", 8;
    FLOAT8E5M2 = 19, "float8e5m2", 8;
    FLOAT8E5M2FNUZ = 20, "float8e5m2fnuz", 8;
    UINT4 = 21, "uint4", 4;
    INT4 = 22, "int4", 4;
    FLOAT4E2M1 = 23, "float4e2m1", 4;
    FLOAT8E8M0 = 24, "float8e8m0", 8;
    UINT2 = 25, "uint2", 2;
    INT2 = 26, "int2", 2;
    FLOAT6E2M3 = 27, "float6e2m3", 6;
    FLOAT6E3M2 = 28, "float6e3m2", 6;
}

impl ElementType {
    /// Name for people; a number newer than this list becomes `type29`.
    pub fn name(self) -> String {
        self.known_name().map(str::to_owned).unwrap_or_else(|| format!("type{}", self.0))
    }

    /// Floating point, of any width.
    pub fn is_float(self) -> bool {
        matches!(self.0, 1 | 10 | 11 | 16..=20 | 23 | 24 | 27 | 28)
    }

    /// Signed or unsigned integer, of any width (not bool).
    pub fn is_integer(self) -> bool {
        matches!(self.0, 2..=7 | 12 | 13 | 21 | 22 | 25 | 26)
    }

    /// Bytes that `count` elements take in `raw_data` (elements under a byte are packed); `None` on overflow or unknown width.
    pub fn packed_bytes(self, count: u64) -> Option<u64> {
        match self.bits() as u64 {
            0 => None,
            bits if bits >= 8 => count.checked_mul(bits / 8),
            bits => count.checked_mul(bits)?.checked_add(7).map(|b| b / 8),
        }
    }
}

impl fmt::Debug for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

/// One dimension of a shape.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Dim {
    /// A number.
    Fixed(u64),
    /// A named dimension, or an expression over named dimensions.
    Symbolic(Expr),
    /// Nothing is known. Two unknown dimensions are never equal.
    Unknown,
}

impl Dim {
    /// A named dimension.
    pub fn symbol(name: &str) -> Dim {
        Dim::Symbolic(Expr::symbol(name))
    }

    /// The number, when it is one.
    pub fn fixed(&self) -> Option<u64> {
        match self {
            Dim::Fixed(n) => Some(*n),
            _ => None,
        }
    }

    /// As an expression; `None` when unknown.
    pub fn expr(&self) -> Option<Expr> {
        match self {
            Dim::Fixed(n) => i64::try_from(*n).ok().map(Expr::constant),
            Dim::Symbolic(e) => Some(e.clone()),
            Dim::Unknown => None,
        }
    }

    /// From an expression: a constant becomes fixed; a negative constant, which is no dimension, unknown.
    pub fn from_expr(e: Expr) -> Dim {
        match e.as_constant() {
            Some(n) => u64::try_from(n).map(Dim::Fixed).unwrap_or(Dim::Unknown),
            None => Dim::Symbolic(e),
        }
    }

    /// Both known and the same at every run.
    pub fn surely_equals(&self, other: &Dim) -> bool {
        !matches!(self, Dim::Unknown) && self == other
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Fixed(n) => write!(f, "{n}"),
            // Names that begin with ? are made up by inference, to tell equal unknowns from different ones.
            Dim::Symbolic(e) if !e.symbols().iter().any(|s| s.starts_with('?')) => write!(f, "{e}"),
            Dim::Symbolic(_) | Dim::Unknown => f.write_str("?"),
        }
    }
}

impl fmt::Debug for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<u64> for Dim {
    fn from(n: u64) -> Dim {
        Dim::Fixed(n)
    }
}

impl From<&str> for Dim {
    fn from(name: &str) -> Dim {
        Dim::symbol(name)
    }
}

/// Dimensions of a tensor whose rank is known.
pub type Shape = SmallVec<[Dim; 4]>;

/// Shape as people read it: `[batch, 3, 224, 224]`.
pub fn shape_text(shape: &[Dim]) -> String {
    let dims: Vec<String> = shape.iter().map(Dim::to_string).collect();
    format!("[{}]", dims.join(", "))
}

/// Type of a value.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub enum Type {
    /// Nothing is known.
    #[default]
    Unknown,
    /// Dense tensor; `shape` is `None` when not even the rank is known.
    Tensor { element: ElementType, shape: Option<Shape> },
    /// Sparse tensor.
    Sparse { element: ElementType, shape: Option<Shape> },
    /// Sequence of values of one type.
    Sequence(Box<Type>),
    /// Value that may be absent.
    Optional(Box<Type>),
    /// Map from an integer or string key.
    Map { key: ElementType, value: Box<Type> },
    /// Type of a foreign domain.
    Opaque { domain: Text, name: Text },
}

impl Type {
    /// Dense tensor of known rank.
    pub fn tensor(element: ElementType, shape: impl IntoIterator<Item = Dim>) -> Type {
        Type::Tensor { element, shape: Some(shape.into_iter().collect()) }
    }

    /// Element type of a tensor.
    pub fn element(&self) -> Option<ElementType> {
        match self {
            Type::Tensor { element, .. } | Type::Sparse { element, .. } => Some(*element),
            _ => None,
        }
    }

    /// Shape of a dense tensor of known rank.
    pub fn shape(&self) -> Option<&Shape> {
        match self {
            Type::Tensor { shape, .. } => shape.as_ref(),
            _ => None,
        }
    }

    /// Rank of a dense tensor.
    pub fn rank(&self) -> Option<usize> {
        self.shape().map(SmallVec::len)
    }

    /// Dimensions when all are fixed.
    pub fn fixed_shape(&self) -> Option<SmallVec<[u64; 4]>> {
        self.shape()?.iter().map(Dim::fixed).collect()
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Unknown => f.write_str("unknown"),
            Type::Tensor { element, shape: Some(s) } => write!(f, "{element}{}", shape_text(s)),
            Type::Tensor { element, shape: None } => write!(f, "{element}[...]"),
            Type::Sparse { element, shape: Some(s) } => write!(f, "sparse({element}{})", shape_text(s)),
            Type::Sparse { element, shape: None } => write!(f, "sparse({element}[...])"),
            Type::Sequence(of) => write!(f, "seq({of})"),
            Type::Optional(of) => write!(f, "optional({of})"),
            Type::Map { key, value } => write!(f, "map({key}, {value})"),
            Type::Opaque { domain, name } => write!(f, "opaque({domain}, {name})"),
        }
    }
}
