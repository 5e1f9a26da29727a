//! Values while a model runs: dense arrays of every ONNX element type, sequences, optionals, maps.

use super::fault::Fault;
use crate::ir::{Constant, Data, Dim, ElementType, SparseTensor, Tensor, Type};
use bytes::Bytes;
use half::{bf16, f16};
use smallvec::SmallVec;
use std::sync::Arc;

/// Dimensions of an array.
pub type Dims = SmallVec<[usize; 6]>;

/// Elements of an array, row-major, shared between the arrays that show them in different shapes.
///
/// bool, the float8 kinds and all types under a byte have one byte an element in [`Storage::U8`]: bool is 0 or 1, the
/// others their bit pattern in the low bits.
#[derive(Clone, Debug)]
pub enum Storage {
    F32(Arc<Vec<f32>>),
    F64(Arc<Vec<f64>>),
    F16(Arc<Vec<f16>>),
    BF16(Arc<Vec<bf16>>),
    I8(Arc<Vec<i8>>),
    I16(Arc<Vec<i16>>),
    I32(Arc<Vec<i32>>),
    I64(Arc<Vec<i64>>),
    U8(Arc<Vec<u8>>),
    U16(Arc<Vec<u16>>),
    U32(Arc<Vec<u32>>),
    U64(Arc<Vec<u64>>),
    /// complex64: real part, imaginary part.
    C64(Arc<Vec<[f32; 2]>>),
    /// complex128.
    C128(Arc<Vec<[f64; 2]>>),
    Strings(Arc<Vec<Bytes>>),
}

/// Runs an expression with `T` as the Rust type of a storage's elements: `with_storage_type!(storage, T => expression)`.
macro_rules! with_storage_type {
    ($storage:expr, $t:ident => $body:expr) => {
        match $storage {
            $crate::engine::array::Storage::F32(_) => {
                type $t = f32;
                $body
            }
            $crate::engine::array::Storage::F64(_) => {
                type $t = f64;
                $body
            }
            $crate::engine::array::Storage::F16(_) => {
                type $t = half::f16;
                $body
            }
            $crate::engine::array::Storage::BF16(_) => {
                type $t = half::bf16;
                $body
            }
            $crate::engine::array::Storage::I8(_) => {
                type $t = i8;
                $body
            }
            $crate::engine::array::Storage::I16(_) => {
                type $t = i16;
                $body
            }
            $crate::engine::array::Storage::I32(_) => {
                type $t = i32;
                $body
            }
            $crate::engine::array::Storage::I64(_) => {
                type $t = i64;
                $body
            }
            $crate::engine::array::Storage::U8(_) => {
                type $t = u8;
                $body
            }
            $crate::engine::array::Storage::U16(_) => {
                type $t = u16;
                $body
            }
            $crate::engine::array::Storage::U32(_) => {
                type $t = u32;
                $body
            }
            $crate::engine::array::Storage::U64(_) => {
                type $t = u64;
                $body
            }
            $crate::engine::array::Storage::C64(_) => {
                type $t = [f32; 2];
                $body
            }
            $crate::engine::array::Storage::C128(_) => {
                type $t = [f64; 2];
                $body
            }
            $crate::engine::array::Storage::Strings(_) => {
                type $t = bytes::Bytes;
                $body
            }
        }
    };
}
pub(crate) use with_storage_type;

/// A Rust type that arrays have as elements.
pub trait Element: Clone + Default + PartialEq + Send + Sync + 'static {
    /// The element type whose natural storage this is; several others may share it (see [`Storage`]).
    const TYPE: ElementType;
    /// Elements, when the storage is of this type.
    fn view(storage: &Storage) -> Option<&[Self]>;
    /// Storage of elements.
    fn store(elements: Vec<Self>) -> Storage;
    /// The elements themselves: not copied when nobody else shares them.
    fn take(storage: Storage) -> Option<Vec<Self>>;
    /// The elements themselves when nobody else shares them, otherwise what is shared; `None` when of another type.
    fn alone(storage: Storage) -> Option<Result<Vec<Self>, Arc<Vec<Self>>>>;
}

macro_rules! elements {
    ($($rust:ty, $variant:ident, $element:ident;)*) => {
        $(impl Element for $rust {
            const TYPE: ElementType = ElementType::$element;

            fn view(storage: &Storage) -> Option<&[Self]> {
                match storage { Storage::$variant(v) => Some(v), _ => None }
            }

            fn store(elements: Vec<Self>) -> Storage {
                Storage::$variant(Arc::new(elements))
            }

            fn take(storage: Storage) -> Option<Vec<Self>> {
                match storage { Storage::$variant(v) => Some(Arc::unwrap_or_clone(v)), _ => None }
            }

            fn alone(storage: Storage) -> Option<Result<Vec<Self>, Arc<Vec<Self>>>> {
                match storage { Storage::$variant(v) => Some(Arc::try_unwrap(v)), _ => None }
            }
        })*
    };
}

elements! {
    f32, F32, FLOAT;
    f64, F64, DOUBLE;
    f16, F16, FLOAT16;
    bf16, BF16, BFLOAT16;
    i8, I8, INT8;
    i16, I16, INT16;
    i32, I32, INT32;
    i64, I64, INT64;
    u8, U8, UINT8;
    u16, U16, UINT16;
    u32, U32, UINT32;
    u64, U64, UINT64;
    [f32; 2], C64, COMPLEX64;
    [f64; 2], C128, COMPLEX128;
    Bytes, Strings, STRING;
}

impl Storage {
    /// Number of elements.
    pub fn len(&self) -> usize {
        with_storage_type!(self, T => <T as Element>::view(self).map_or(0, <[T]>::len))
    }

    /// True when there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes in memory (strings: their lengths and handles).
    pub fn bytes(&self) -> usize {
        match self {
            Storage::Strings(s) => s.iter().map(|b| b.len() + size_of::<Bytes>()).sum(),
            _ => {
                with_storage_type!(self, T => <T as Element>::view(self).map_or(0, size_of_val))
            }
        }
    }

    /// Address of the shared buffer: equal for arrays that share their elements.
    pub fn address(&self) -> usize {
        with_storage_type!(self, T => <T as Element>::view(self).map_or(0, |v| v.as_ptr() as usize))
    }
}

/// A dense array.
#[derive(Clone, Debug)]
pub struct Array {
    element: ElementType,
    dims: Dims,
    storage: Storage,
}

impl Array {
    /// An array of the element type that is natural for `T`. The number of elements must be the product of `dims`:
    /// kernels compute one from the other, so a difference is a defect of a kernel, reported as a fault of the node.
    pub fn new<T: Element>(dims: &[usize], elements: Vec<T>) -> Array {
        Array::of(T::TYPE, dims, T::store(elements))
    }

    /// An array of an element type that shares its storage with others (bool, float8, types under a byte).
    pub fn of(element: ElementType, dims: &[usize], storage: Storage) -> Array {
        assert_eq!(dims.iter().product::<usize>(), storage.len(), "elements do not fill shape {dims:?}");
        Array { element, dims: dims.into(), storage }
    }

    /// A rank-0 array.
    pub fn scalar<T: Element>(value: T) -> Array {
        Array::new(&[], vec![value])
    }

    /// A rank-1 int64 array.
    pub fn ints(values: Vec<i64>) -> Array {
        Array::new(&[values.len()], values)
    }

    /// A bool array.
    pub fn bools(dims: &[usize], values: impl IntoIterator<Item = bool>) -> Array {
        Array::of(ElementType::BOOL, dims, u8::store(values.into_iter().map(u8::from).collect()))
    }

    /// Element type.
    pub fn element(&self) -> ElementType {
        self.element
    }

    /// Dimensions.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.dims.iter().product()
    }

    /// True when there are no elements.
    pub fn is_empty(&self) -> bool {
        self.dims.contains(&0)
    }

    /// Elements in memory.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Element type, dimensions and elements.
    pub fn into_parts(self) -> (ElementType, Dims, Storage) {
        (self.element, self.dims, self.storage)
    }

    /// Elements as `T`; a fault when they are of another type.
    pub fn view<T: Element>(&self) -> Result<&[T], Fault> {
        T::view(&self.storage).ok_or_else(|| Fault::element(self.element))
    }

    /// Elements as `T`, not copied when nobody else shares them.
    pub fn take<T: Element>(self) -> Result<Vec<T>, Fault> {
        let element = self.element;
        T::take(self.storage).ok_or_else(|| Fault::element(element))
    }

    /// The only element of an array of one element.
    pub fn single<T: Element + Copy>(&self) -> Result<T, Fault> {
        match self.view::<T>()? {
            [one] => Ok(*one),
            many => Err(Fault::Invalid(format!("one element is needed where there are {}", many.len()))),
        }
    }

    /// Elements of an int64 or int32 array (shapes, axes, indices), exactly.
    pub fn integers(&self) -> Result<Vec<i64>, Fault> {
        match &self.storage {
            Storage::I64(v) => Ok(v.to_vec()),
            Storage::I32(v) => Ok(v.iter().map(|v| i64::from(*v)).collect()),
            Storage::I16(v) => Ok(v.iter().map(|v| i64::from(*v)).collect()),
            Storage::I8(v) => Ok(v.iter().map(|v| i64::from(*v)).collect()),
            Storage::U8(v) => Ok(v.iter().map(|v| i64::from(*v)).collect()),
            Storage::U16(v) => Ok(v.iter().map(|v| i64::from(*v)).collect()),
            Storage::U32(v) => Ok(v.iter().map(|v| i64::from(*v)).collect()),
            _ => Err(Fault::element(self.element)),
        }
    }

    /// True of a bool array's only element.
    pub fn truth(&self) -> Result<bool, Fault> {
        if self.element != ElementType::BOOL {
            return Err(Fault::element(self.element));
        }
        Ok(self.single::<u8>()? != 0)
    }

    /// The same elements in another shape of as many elements.
    pub fn reshaped(mut self, dims: &[usize]) -> Array {
        assert_eq!(dims.iter().product::<usize>(), self.storage.len(), "elements do not fill shape {dims:?}");
        self.dims = dims.into();
        self
    }

    /// The type with fixed dimensions.
    pub fn ty(&self) -> Type {
        Type::tensor(self.element, self.dims.iter().map(|d| Dim::Fixed(*d as u64)))
    }

    /// Bytes of the elements in memory.
    pub fn bytes(&self) -> usize {
        self.storage.bytes()
    }

    /// All elements as float64, for statistics and comparison; `None` for strings and complex numbers.
    pub fn approximate(&self) -> Option<Vec<f64>> {
        Some(match &self.storage {
            Storage::F32(v) => v.iter().map(|v| f64::from(*v)).collect(),
            Storage::F64(v) => v.to_vec(),
            Storage::F16(v) => v.iter().map(|v| v.to_f64()).collect(),
            Storage::BF16(v) => v.iter().map(|v| v.to_f64()).collect(),
            Storage::I8(v) => v.iter().map(|v| f64::from(*v)).collect(),
            Storage::I16(v) => v.iter().map(|v| f64::from(*v)).collect(),
            Storage::I32(v) => v.iter().map(|v| f64::from(*v)).collect(),
            Storage::I64(v) => v.iter().map(|v| *v as f64).collect(),
            Storage::U8(v) => v.iter().map(|v| super::narrow::number(self.element, *v)).collect(),
            Storage::U16(v) => v.iter().map(|v| f64::from(*v)).collect(),
            Storage::U32(v) => v.iter().map(|v| f64::from(*v)).collect(),
            Storage::U64(v) => v.iter().map(|v| *v as f64).collect(),
            Storage::C64(_) | Storage::C128(_) | Storage::Strings(_) => return None,
        })
    }

    /// Equal to the bit: type, shape and every element (NaN equals the same NaN, -0.0 differs from 0.0).
    pub fn same_bits(&self, other: &Array) -> bool {
        fn bits<T: bytemuck::Pod>(a: &[T], b: &[T]) -> bool {
            bytemuck::cast_slice::<T, u8>(a) == bytemuck::cast_slice::<T, u8>(b)
        }
        use Storage::*;
        self.element == other.element
            && self.dims == other.dims
            && match (&self.storage, &other.storage) {
                (F32(a), F32(b)) => bits(a, b),
                (F64(a), F64(b)) => bits(a, b),
                (F16(a), F16(b)) => bits(a, b),
                (BF16(a), BF16(b)) => bits(a, b),
                (I8(a), I8(b)) => a == b,
                (I16(a), I16(b)) => a == b,
                (I32(a), I32(b)) => a == b,
                (I64(a), I64(b)) => a == b,
                (U8(a), U8(b)) => a == b,
                (U16(a), U16(b)) => a == b,
                (U32(a), U32(b)) => a == b,
                (U64(a), U64(b)) => a == b,
                (C64(a), C64(b)) => bits(a, b),
                (C128(a), C128(b)) => bits(a, b),
                (Strings(a), Strings(b)) => a == b,
                _ => false,
            }
    }
}

/// Constant data as an array. Missing data and lengths that do not fit are faults.
impl TryFrom<&Tensor> for Array {
    type Error = Fault;

    fn try_from(tensor: &Tensor) -> Result<Array, Fault> {
        let dims = fixed(&tensor.dims)?;
        let count = dims.iter().product::<usize>();
        let bytes = match &tensor.data {
            Data::Bytes(b) => b,
            Data::Strings(s) => {
                if s.len() != count {
                    return Err(Fault::Invalid(format!("{} strings do not fill shape {dims:?}", s.len())));
                }
                return Ok(Array::new(&dims, s.to_vec()));
            }
            Data::Missing(why) => {
                return Err(Fault::Invalid(format!("the data of a weight is missing: {why}")));
            }
        };
        let element = tensor.element;
        if element.packed_bytes(count as u64) != Some(bytes.len() as u64) {
            return Err(Fault::Invalid(format!(
                "{} bytes do not fill shape {dims:?} of {element}",
                bytes.len()
            )));
        }
        fn words<const N: usize, T: Element>(bytes: &[u8], from: fn([u8; N]) -> T) -> Storage {
            T::store(bytes.as_chunks::<N>().0.iter().map(|c| from(*c)).collect())
        }
        let pair32 = |c: [u8; 8]| {
            [f32::from_le_bytes([c[0], c[1], c[2], c[3]]), f32::from_le_bytes([c[4], c[5], c[6], c[7]])]
        };
        let pair64 = |c: [u8; 16]| {
            let half = |i: usize| f64::from_le_bytes(std::array::from_fn(|k| c[i + k]));
            [half(0), half(8)]
        };
        let storage = match element {
            ElementType::FLOAT => words(bytes, f32::from_le_bytes),
            ElementType::DOUBLE => words(bytes, f64::from_le_bytes),
            ElementType::FLOAT16 => words(bytes, f16::from_le_bytes),
            ElementType::BFLOAT16 => words(bytes, bf16::from_le_bytes),
            ElementType::INT8 => words(bytes, i8::from_le_bytes),
            ElementType::INT16 => words(bytes, i16::from_le_bytes),
            ElementType::INT32 => words(bytes, i32::from_le_bytes),
            ElementType::INT64 => words(bytes, i64::from_le_bytes),
            ElementType::UINT16 => words(bytes, u16::from_le_bytes),
            ElementType::UINT32 => words(bytes, u32::from_le_bytes),
            ElementType::UINT64 => words(bytes, u64::from_le_bytes),
            ElementType::COMPLEX64 => words(bytes, pair32),
            ElementType::COMPLEX128 => words(bytes, pair64),
            ElementType::BOOL => u8::store(bytes.iter().map(|b| u8::from(*b != 0)).collect()),
            other => match other.bits() {
                8 => u8::store(bytes.to_vec()),
                bits @ (2 | 4) => u8::store(super::narrow::unpack(bytes, bits, count)),
                _ => return Err(Fault::element(other)),
            },
        };
        Ok(Array::of(element, &dims, storage))
    }
}

impl TryFrom<&Constant> for Array {
    type Error = Fault;

    fn try_from(constant: &Constant) -> Result<Array, Fault> {
        match constant {
            Constant::Dense(t) => Array::try_from(&**t),
            Constant::Sparse(s) => dense(s),
        }
    }
}

/// The dense array that a sparse tensor stands for (ONNX IR, `SparseTensorProto`).
fn dense(sparse: &SparseTensor) -> Result<Array, Fault> {
    let dims = fixed(&sparse.dims)?;
    let count = dims.iter().product::<usize>();
    let values = Array::try_from(&sparse.values)?;
    let indices = Array::try_from(&sparse.indices)?;
    let places: Vec<usize> = match indices.dims() {
        [_] => indices.integers()?.iter().map(|i| usize::try_from(*i).unwrap_or(usize::MAX)).collect(),
        [_, rank] if *rank == dims.len() && *rank > 0 => indices
            .integers()?
            .chunks(*rank)
            .map(|at| {
                at.iter().zip(&dims).fold(0usize, |place, (i, d)| match usize::try_from(*i) {
                    Ok(i) if i < *d && place != usize::MAX => place * d + i,
                    _ => usize::MAX,
                })
            })
            .collect(),
        other => return Err(Fault::Invalid(format!("indices of a sparse tensor have shape {other:?}"))),
    };
    if places.len() != values.len() || places.iter().any(|p| *p >= count) {
        return Err(Fault::Invalid("indices of a sparse tensor do not fit its values or shape".into()));
    }
    let storage = with_storage_type!(values.storage(), T => {
        let from = values.view::<T>()?;
        let mut all = vec![T::default(); count];
        for (place, value) in places.iter().zip(from) {
            all[*place].clone_from(value);
        }
        T::store(all)
    });
    Ok(Array::of(values.element(), &dims, storage))
}

/// Dimensions as `usize` whose product fits as well.
fn fixed(dims: &[u64]) -> Result<Dims, Fault> {
    let too_large = || Fault::Invalid(format!("shape {dims:?} has more elements than can be addressed"));
    let dims: Dims =
        dims.iter().map(|d| usize::try_from(*d).ok()).collect::<Option<_>>().ok_or_else(too_large)?;
    let product = dims.iter().try_fold(1usize, |n, d| n.checked_mul((*d).max(1)));
    product.filter(|n| *n <= isize::MAX as usize / 16).ok_or_else(too_large)?;
    Ok(dims)
}

impl From<&Array> for Tensor {
    fn from(array: &Array) -> Tensor {
        fn raw<T: bytemuck::Pod>(elements: &[T]) -> Bytes {
            // Files are little-endian, as are all machines this runs on; see the assertion below.
            Bytes::copy_from_slice(bytemuck::cast_slice(elements))
        }
        const { assert!(cfg!(target_endian = "little"), "arrays are written as they stand in memory") };
        let data = match &array.storage {
            Storage::F32(v) => Data::Bytes(raw(v)),
            Storage::F64(v) => Data::Bytes(raw(v)),
            Storage::F16(v) => Data::Bytes(raw(v)),
            Storage::BF16(v) => Data::Bytes(raw(v)),
            Storage::I8(v) => Data::Bytes(raw(v)),
            Storage::I16(v) => Data::Bytes(raw(v)),
            Storage::I32(v) => Data::Bytes(raw(v)),
            Storage::I64(v) => Data::Bytes(raw(v)),
            Storage::U8(v) => Data::Bytes(match array.element.bits() {
                bits @ (2 | 4) => super::narrow::pack(v, bits).into(),
                _ => raw(v),
            }),
            Storage::U16(v) => Data::Bytes(raw(v)),
            Storage::U32(v) => Data::Bytes(raw(v)),
            Storage::U64(v) => Data::Bytes(raw(v)),
            Storage::C64(v) => Data::Bytes(raw(v)),
            Storage::C128(v) => Data::Bytes(raw(v)),
            Storage::Strings(v) => Data::Strings(v.as_slice().into()),
        };
        let mut tensor = Tensor::new(array.element, array.dims.iter().map(|d| *d as u64), Bytes::new());
        tensor.data = data;
        tensor
    }
}

/// Anything that flows between nodes.
#[derive(Clone, Debug)]
pub enum Value {
    Array(Array),
    /// The element type is that of the arrays an empty sequence would hold.
    Sequence(Arc<Vec<Value>>),
    Optional(Option<Arc<Value>>),
    /// Keys (rank 1, int64 or string, sorted) and a value for each.
    Map(Array, Arc<Vec<Value>>),
}

impl Value {
    /// The array, when it is one.
    pub fn array(&self) -> Result<&Array, Fault> {
        match self {
            Value::Array(a) => Ok(a),
            other => Err(Fault::Invalid(format!("a tensor is needed where there is a {}", other.kind()))),
        }
    }

    /// The array, taken out.
    pub fn into_array(self) -> Result<Array, Fault> {
        match self {
            Value::Array(a) => Ok(a),
            other => Err(Fault::Invalid(format!("a tensor is needed where there is a {}", other.kind()))),
        }
    }

    /// What it is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Array(_) => "tensor",
            Value::Sequence(_) => "sequence",
            Value::Optional(_) => "optional",
            Value::Map(..) => "map",
        }
    }

    /// All arrays inside, in order.
    pub fn arrays(&self) -> Vec<&Array> {
        match self {
            Value::Array(a) => vec![a],
            Value::Sequence(items) => items.iter().flat_map(Value::arrays).collect(),
            Value::Optional(item) => item.iter().flat_map(|v| v.arrays()).collect(),
            Value::Map(keys, items) => {
                std::iter::once(keys).chain(items.iter().flat_map(Value::arrays)).collect()
            }
        }
    }

    /// Bytes of all arrays inside.
    pub fn bytes(&self) -> usize {
        match self {
            Value::Array(a) => a.bytes(),
            other => other.arrays().iter().map(|a| a.bytes()).sum(),
        }
    }

    /// Equal to the bit, structure included.
    pub fn same_bits(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Array(a), Value::Array(b)) => a.same_bits(b),
            (Value::Sequence(a), Value::Sequence(b)) => {
                a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| a.same_bits(b))
            }
            (Value::Optional(a), Value::Optional(b)) => match (a, b) {
                (None, None) => true,
                (Some(a), Some(b)) => a.same_bits(b),
                _ => false,
            },
            (Value::Map(k, a), Value::Map(l, b)) => {
                k.same_bits(l) && a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| a.same_bits(b))
            }
            _ => false,
        }
    }
}

impl From<Array> for Value {
    fn from(array: Array) -> Value {
        Value::Array(array)
    }
}

/// A value from a file.
impl TryFrom<&crate::formats::onnx::datum::Datum> for Value {
    type Error = Fault;

    fn try_from(datum: &crate::formats::onnx::datum::Datum) -> Result<Value, Fault> {
        use crate::formats::onnx::datum::Datum;
        Ok(match datum {
            Datum::Tensor(t) => Value::Array(Array::try_from(&**t)?),
            Datum::Sequence(items) => {
                Value::Sequence(Arc::new(items.iter().map(Value::try_from).collect::<Result<_, _>>()?))
            }
            Datum::Optional(item) => {
                Value::Optional(item.as_deref().map(Value::try_from).transpose()?.map(Arc::new))
            }
        })
    }
}
