//! Constant data: dense and sparse tensors whose bytes are shared with the file they came from.

use super::ids::Text;
use super::node::Extra;
use super::types::{Dim, ElementType, Type};
use bytes::Bytes;
use half::{bf16, f16};
use smallvec::SmallVec;
use std::sync::Arc;

/// Fixed dimensions of constant data.
pub type Dims = SmallVec<[u64; 4]>;

/// Where a tensor's bytes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// Elements in the order and packing of `raw_data`: little-endian, row-major, elements under a byte packed.
    /// Not aligned: read with unaligned loads.
    Bytes(Bytes),
    /// Strings, row-major.
    Strings(Arc<[Bytes]>),
    /// The data could not be had (a missing external file, say); the text says why.
    Missing(Text),
}

/// How a tensor stands in its file, so that it can be written the same way.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Encoding {
    /// `raw_data`.
    #[default]
    Raw,
    /// `float_data`, `int32_data`, … by element type.
    Typed,
    /// A file beside the model; entries as they stand (`location`, `offset`, `length`, `checksum`, …).
    External(Arc<[(Text, Text)]>),
}

/// A dense tensor.
#[derive(Clone, Debug)]
pub struct Tensor {
    pub element: ElementType,
    pub dims: Dims,
    pub data: Data,
    pub encoding: Encoding,
    /// `TensorProto.name` where it is not the name of an initializer.
    pub name: Text,
    pub doc: Text,
    pub metadata: Vec<(Text, Text)>,
    pub extra: Option<Arc<Extra>>,
}

impl Tensor {
    /// A tensor in raw form. `bytes` must hold exactly the elements of `dims`; importers check before they call.
    pub fn new(element: ElementType, dims: impl IntoIterator<Item = u64>, bytes: impl Into<Bytes>) -> Tensor {
        Tensor {
            element,
            dims: dims.into_iter().collect(),
            data: Data::Bytes(bytes.into()),
            encoding: Encoding::Raw,
            name: "".into(),
            doc: "".into(),
            metadata: Vec::new(),
            extra: None,
        }
    }

    /// float32 elements, row-major.
    pub fn from_f32(dims: &[u64], elements: &[f32]) -> Tensor {
        let bytes: Vec<u8> = elements.iter().flat_map(|v| v.to_le_bytes()).collect();
        Tensor::new(ElementType::FLOAT, dims.iter().copied(), bytes)
    }

    /// int64 elements, row-major.
    pub fn from_i64(dims: &[u64], elements: &[i64]) -> Tensor {
        let bytes: Vec<u8> = elements.iter().flat_map(|v| v.to_le_bytes()).collect();
        Tensor::new(ElementType::INT64, dims.iter().copied(), bytes)
    }

    /// A rank-1 int64 tensor, as axes, shapes and pads are written.
    pub fn ints(elements: &[i64]) -> Tensor {
        Tensor::from_i64(&[elements.len() as u64], elements)
    }

    /// A rank-0 float32 tensor.
    pub fn scalar_f32(value: f32) -> Tensor {
        Tensor::from_f32(&[], &[value])
    }

    /// bool elements, row-major.
    pub fn from_bool(dims: &[u64], elements: &[bool]) -> Tensor {
        let bytes: Vec<u8> = elements.iter().map(|v| *v as u8).collect();
        Tensor::new(ElementType::BOOL, dims.iter().copied(), bytes)
    }

    /// Number of elements; `None` when the product of the dimensions overflows.
    pub fn element_count(&self) -> Option<u64> {
        self.dims.iter().try_fold(1u64, |n, d| n.checked_mul(*d))
    }

    /// Bytes of the elements as stored (strings: their lengths); 0 when missing.
    pub fn byte_count(&self) -> u64 {
        match &self.data {
            Data::Bytes(b) => b.len() as u64,
            Data::Strings(s) => s.iter().map(|b| b.len() as u64).sum(),
            Data::Missing(_) => self.element_count().and_then(|n| self.element.packed_bytes(n)).unwrap_or(0),
        }
    }

    /// Raw bytes, when the tensor is not one of strings and not missing.
    pub fn bytes(&self) -> Option<&Bytes> {
        match &self.data {
            Data::Bytes(b) => Some(b),
            _ => None,
        }
    }

    /// Type with fixed dimensions.
    pub fn ty(&self) -> Type {
        Type::tensor(self.element, self.dims.iter().map(|d| Dim::Fixed(*d)))
    }

    /// All elements of an int64 tensor; `None` for another type or missing data.
    pub fn as_i64(&self) -> Option<Vec<i64>> {
        self.chunks::<8>(ElementType::INT64).map(|c| c.map(i64::from_le_bytes).collect())
    }

    /// All elements of a float32 tensor; `None` for another type or missing data.
    pub fn as_f32(&self) -> Option<Vec<f32>> {
        self.chunks::<4>(ElementType::FLOAT).map(|c| c.map(f32::from_le_bytes).collect())
    }

    /// All elements of a float64 tensor; `None` for another type or missing data.
    pub fn as_f64(&self) -> Option<Vec<f64>> {
        self.chunks::<8>(ElementType::DOUBLE).map(|c| c.map(f64::from_le_bytes).collect())
    }

    /// All elements of any integer or bool type of a byte or more, exactly; `None` for others and for uint64 beyond int64.
    pub fn integers(&self) -> Option<Vec<i64>> {
        let b = self.bytes()?;
        Some(match self.element {
            ElementType::INT64 => return self.as_i64(),
            ElementType::INT32 => words::<4>(b).map(|c| i32::from_le_bytes(c) as i64).collect(),
            ElementType::INT16 => words::<2>(b).map(|c| i16::from_le_bytes(c) as i64).collect(),
            ElementType::INT8 => b.iter().map(|v| *v as i8 as i64).collect(),
            ElementType::UINT8 | ElementType::BOOL => b.iter().map(|v| *v as i64).collect(),
            ElementType::UINT16 => words::<2>(b).map(|c| u16::from_le_bytes(c) as i64).collect(),
            ElementType::UINT32 => words::<4>(b).map(|c| u32::from_le_bytes(c) as i64).collect(),
            ElementType::UINT64 => {
                words::<8>(b).map(|c| i64::try_from(u64::from_le_bytes(c)).ok()).collect::<Option<_>>()?
            }
            _ => return None,
        })
    }

    /// All elements as float64, for showing and statistics, not for computing; `None` for types without an obvious number.
    pub fn approximate(&self) -> Option<Vec<f64>> {
        let b = self.bytes()?;
        Some(match self.element {
            ElementType::FLOAT => words::<4>(b).map(|c| f32::from_le_bytes(c) as f64).collect(),
            ElementType::DOUBLE => words::<8>(b).map(f64::from_le_bytes).collect(),
            ElementType::FLOAT16 => words::<2>(b).map(|c| f16::from_le_bytes(c).to_f64()).collect(),
            ElementType::BFLOAT16 => words::<2>(b).map(|c| bf16::from_le_bytes(c).to_f64()).collect(),
            ElementType::UINT64 => words::<8>(b).map(|c| u64::from_le_bytes(c) as f64).collect(),
            _ => self.integers()?.into_iter().map(|v| v as f64).collect(),
        })
    }

    /// Same element type, dimensions and bytes: NaN equals the same NaN, -0.0 differs from 0.0. Missing data equals nothing.
    pub fn same_content(&self, other: &Tensor) -> bool {
        self.element == other.element
            && self.dims == other.dims
            && match (&self.data, &other.data) {
                // The same bytes of the same file are not read.
                (Data::Bytes(a), Data::Bytes(b)) => (a.as_ptr(), a.len()) == (b.as_ptr(), b.len()) || a == b,
                (Data::Strings(a), Data::Strings(b)) => a == b,
                _ => false,
            }
    }

    fn chunks<const N: usize>(&self, want: ElementType) -> Option<impl Iterator<Item = [u8; N]> + '_> {
        (self.element == want).then_some(())?;
        Some(words::<N>(self.bytes()?))
    }
}

fn words<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> + '_ {
    bytes.as_chunks::<N>().0.iter().copied()
}

/// A sparse tensor: values at indices (`SparseTensorProto`).
#[derive(Clone, Debug)]
pub struct SparseTensor {
    pub values: Tensor,
    pub indices: Tensor,
    pub dims: Dims,
    pub extra: Option<Arc<Extra>>,
}

/// Data of an initializer.
#[derive(Clone, Debug)]
pub enum Constant {
    Dense(Arc<Tensor>),
    Sparse(Arc<SparseTensor>),
}

impl Constant {
    /// The dense tensor, when it is one.
    pub fn dense(&self) -> Option<&Arc<Tensor>> {
        match self {
            Constant::Dense(t) => Some(t),
            Constant::Sparse(_) => None,
        }
    }

    /// Type of the value that has this data.
    pub fn ty(&self) -> Type {
        match self {
            Constant::Dense(t) => t.ty(),
            Constant::Sparse(s) => {
                // A sparse initializer stands for the dense tensor (ONNX IR, "Sparse initializers").
                Type::tensor(s.values.element, s.dims.iter().map(|d| Dim::Fixed(*d)))
            }
        }
    }
}

impl From<Tensor> for Constant {
    fn from(t: Tensor) -> Constant {
        Constant::Dense(Arc::new(t))
    }
}
