//! Tensors: `TensorProto` and `SparseTensorProto` to constant data and back, with all sizes checked.

use bytes::Bytes;

use super::external::{DataFiles, Placement};
use super::extra::{Kept, Remainder};
use super::field;
use super::proto::{SparseTensorProto, TensorProto, tensor_proto};
use super::schema::MessageKind;
use super::wire::Unknown;
use crate::ir::tensor::{Data, Dims, Encoding, SparseTensor, Tensor};
use crate::ir::{ElementType, Text};

/// A tensor; `Err` says what is wrong with it. The name of an initializer is the caller's: it clears it before.
pub fn read_tensor(
    mut message: TensorProto,
    mut tree: Unknown,
    files: &mut DataFiles,
) -> Result<Tensor, String> {
    let mut rest = Remainder::new(&mut tree);
    let element = ElementType(message.data_type.unwrap_or_default());
    rest.int(field::tensor::DATA_TYPE, message.data_type.map(i64::from), true);
    let name: Text = rest.text(field::tensor::NAME, &message.name, false).into();
    let doc: Text = rest.text(field::tensor::DOC_STRING, &message.doc_string, false).into();
    let metadata = rest.pairs(field::tensor::METADATA_PROPS, &message.metadata_props, &mut tree);
    let location = rest.int(field::tensor::DATA_LOCATION, message.data_location.map(i64::from), false);
    if let Some(segment) = &message.segment {
        rest.keep(
            field::tensor::SEGMENT,
            segment,
            MessageKind::TensorSegment,
            tree.take(field::tensor::SEGMENT, 0),
        );
    }
    let dims = read_dims(&message.dims)?;
    let count = element_count(&dims)?;
    let wanted = element.packed_bytes(count);
    if wanted.is_none() && element.bits() != 0 {
        return Err(format!("dims {:?} of {element} are more bytes than 64 bits can count", dims.as_slice()));
    }
    let typed = typed_field(&mut message)?;
    let (data, encoding) = if location == tensor_proto::DataLocation::External as i64 {
        if typed.is_some() || message.raw_data.as_ref().is_some_and(|raw| !raw.is_empty()) {
            return Err("data stands both in the model and in an external file".to_owned());
        }
        rest.presence(field::tensor::RAW_DATA, message.raw_data.is_some(), true, false);
        if element == ElementType::STRING {
            return Err("strings cannot be in an external file".to_owned());
        }
        let entries = rest.pairs(field::tensor::EXTERNAL_DATA, &message.external_data, &mut tree);
        (files.read(&entries, wanted)?, Encoding::External(entries.into()))
    } else if location == 0 {
        for (index, entry) in message.external_data.iter().enumerate() {
            let tree = tree.take(field::tensor::EXTERNAL_DATA, index);
            rest.keep(field::tensor::EXTERNAL_DATA, entry, MessageKind::StringStringEntry, tree);
        }
        match (message.raw_data, typed) {
            (Some(raw), None) => (raw_data(raw, element, &dims, wanted)?, Encoding::Raw),
            (Some(_), Some(typed)) => {
                return Err(format!("data stands twice, in raw_data and {}", typed.name()));
            }
            (None, typed) => {
                let typed = typed.unwrap_or_else(|| Typed::empty(element));
                let data = typed.decode(element, count)?;
                keep_unusual(&mut rest, &typed, element, count, &data);
                (data, Encoding::Typed)
            }
        }
    } else {
        return Err(format!("data_location {location} is not known (0 is the model, 1 an external file)"));
    };
    Ok(Tensor { element, dims, data, encoding, name, doc, metadata, extra: rest.finish() })
}

/// A sparse tensor; indices and values must both be there.
pub fn read_sparse(
    message: SparseTensorProto,
    mut tree: Unknown,
    files: &mut DataFiles,
) -> Result<SparseTensor, String> {
    let rest = Remainder::new(&mut tree);
    let dims = read_dims(&message.dims)?;
    element_count(&dims)?;
    let (Some(values), Some(indices)) = (message.values, message.indices) else {
        return Err("a sparse tensor needs both values and indices".to_owned());
    };
    let values = read_tensor(values, tree.take(field::sparse::VALUES, 0), files)
        .map_err(|what| format!("its values: {what}"))?;
    let indices = read_tensor(indices, tree.take(field::sparse::INDICES, 0), files)
        .map_err(|what| format!("its indices: {what}"))?;
    Ok(SparseTensor { values, indices, dims, extra: rest.finish() })
}

fn read_dims(dims: &[i64]) -> Result<Dims, String> {
    let read = |n: &i64| u64::try_from(*n).map_err(|_| format!("dims {dims:?} have a negative number"));
    dims.iter().map(read).collect()
}

fn write_dims(dims: &[u64]) -> Result<Vec<i64>, String> {
    let write = |n: &u64| i64::try_from(*n).map_err(|_| format!("dims {dims:?} do not fit 63 bits"));
    dims.iter().map(write).collect()
}

fn element_count(dims: &[u64]) -> Result<u64, String> {
    // An empty dimension makes the product 0 whatever the others are, but each must still be countable.
    let product = |n: u64, d: &u64| n.checked_mul((*d).max(1));
    match dims.iter().try_fold(1u64, product) {
        Some(_) if dims.contains(&0) => Ok(0),
        Some(count) => Ok(count),
        None => Err(format!("dims {dims:?} are more elements than 64 bits can count")),
    }
}

fn raw_data(raw: Bytes, element: ElementType, dims: &[u64], wanted: Option<u64>) -> Result<Data, String> {
    if element == ElementType::STRING {
        return Err("strings cannot be in raw_data".to_owned());
    }
    match wanted {
        Some(wanted) if raw.len() as u64 != wanted => {
            Err(format!("raw_data has {} bytes, dims {dims:?} of {element} need {wanted}", raw.len()))
        }
        _ => Ok(Data::Bytes(raw)),
    }
}

/// The typed data field of a tensor.
enum Typed {
    Float(Vec<f32>),
    Int32(Vec<i32>),
    String(Vec<Bytes>),
    Int64(Vec<i64>),
    Double(Vec<f64>),
    Uint64(Vec<u64>),
}

/// The one typed field that is filled.
fn typed_field(message: &mut TensorProto) -> Result<Option<Typed>, String> {
    let candidates = [
        Typed::Float(std::mem::take(&mut message.float_data)),
        Typed::Int32(std::mem::take(&mut message.int32_data)),
        Typed::String(std::mem::take(&mut message.string_data)),
        Typed::Int64(std::mem::take(&mut message.int64_data)),
        Typed::Double(std::mem::take(&mut message.double_data)),
        Typed::Uint64(std::mem::take(&mut message.uint64_data)),
    ];
    let mut filled = candidates.into_iter().filter(|typed| typed.len() > 0);
    match (filled.next(), filled.next()) {
        (Some(first), Some(second)) => {
            Err(format!("data stands twice, in {} and {}", first.name(), second.name()))
        }
        (first, _) => Ok(first),
    }
}

impl Typed {
    fn name(&self) -> &'static str {
        match self {
            Typed::Float(_) => "float_data",
            Typed::Int32(_) => "int32_data",
            Typed::String(_) => "string_data",
            Typed::Int64(_) => "int64_data",
            Typed::Double(_) => "double_data",
            Typed::Uint64(_) => "uint64_data",
        }
    }

    /// The field in which elements of a type belong, without elements.
    fn empty(element: ElementType) -> Typed {
        match element {
            ElementType::FLOAT | ElementType::COMPLEX64 => Typed::Float(Vec::new()),
            ElementType::DOUBLE | ElementType::COMPLEX128 => Typed::Double(Vec::new()),
            ElementType::INT64 => Typed::Int64(Vec::new()),
            ElementType::UINT32 | ElementType::UINT64 => Typed::Uint64(Vec::new()),
            ElementType::STRING => Typed::String(Vec::new()),
            _ => Typed::Int32(Vec::new()),
        }
    }

    fn decode(&self, element: ElementType, count: u64) -> Result<Data, String> {
        let place = Typed::empty(element);
        if std::mem::discriminant(self) != std::mem::discriminant(&place) {
            return Err(format!("elements of {element} stand in {}, not in {}", self.name(), place.name()));
        }
        if element.bits() == 0 && element != ElementType::STRING && self.len() > 0 {
            return Err(format!("how {element} stands in {} is not known", self.name()));
        }
        let (wanted, found) = (entries(element, count), self.len() as u64);
        if element.bits() != 0 && wanted != Some(found) || element == ElementType::STRING && count != found {
            let wanted = wanted.unwrap_or(count);
            return Err(format!(
                "{} has {found} entries, {count} elements of {element} need {wanted}",
                self.name()
            ));
        }
        Ok(match self {
            Typed::String(strings) => Data::Strings(strings.as_slice().into()),
            Typed::Float(v) => Data::Bytes(v.iter().flat_map(|x| x.to_le_bytes()).collect()),
            Typed::Double(v) => Data::Bytes(v.iter().flat_map(|x| x.to_le_bytes()).collect()),
            Typed::Int64(v) => Data::Bytes(v.iter().flat_map(|x| x.to_le_bytes()).collect()),
            Typed::Uint64(v) if element == ElementType::UINT64 => {
                Data::Bytes(v.iter().flat_map(|x| x.to_le_bytes()).collect())
            }
            Typed::Uint64(v) => Data::Bytes(v.iter().flat_map(|x| (*x as u32).to_le_bytes()).collect()),
            Typed::Int32(v) => match element.bits() {
                32 => Data::Bytes(v.iter().flat_map(|x| x.to_le_bytes()).collect()),
                16 => Data::Bytes(v.iter().flat_map(|x| (*x as u16).to_le_bytes()).collect()),
                6 => Data::Bytes(pack_six(v).into()),
                _ => Data::Bytes(v.iter().map(|x| *x as u8).collect()),
            },
        })
    }

    fn len(&self) -> usize {
        match self {
            Typed::Float(v) => v.len(),
            Typed::Int32(v) => v.len(),
            Typed::String(v) => v.len(),
            Typed::Int64(v) => v.len(),
            Typed::Double(v) => v.len(),
            Typed::Uint64(v) => v.len(),
        }
    }
}

/// Entries of the typed field that `count` elements take: complex numbers two, elements under a byte share one,
/// except six-bit ones.
fn entries(element: ElementType, count: u64) -> Option<u64> {
    match element {
        ElementType::COMPLEX64 | ElementType::COMPLEX128 => count.checked_mul(2),
        _ if matches!(element.bits(), 2 | 4) => element.packed_bytes(count),
        _ => Some(count),
    }
}

/// Six-bit elements, four in three bytes, the first in the lowest bits.
fn pack_six(elements: &[i32]) -> Vec<u8> {
    let mut out = Vec::with_capacity(elements.len().div_ceil(4) * 3);
    let (mut bits, mut held) = (0u32, 0u32);
    for element in elements {
        bits |= (*element as u32 & 0x3f) << held;
        held += 6;
        while held >= 8 {
            out.push(bits as u8);
            bits >>= 8;
            held -= 8;
        }
    }
    if held > 0 {
        out.push(bits as u8);
    }
    out
}

fn unpack_six(bytes: &[u8], count: u64) -> Vec<i32> {
    let (mut bits, mut held) = (0u32, 0u32);
    let mut bytes = bytes.iter();
    let next = |_| {
        if held < 6 {
            bits |= u32::from(bytes.next().copied().unwrap_or_default()) << held;
            held += 8;
        }
        let element = bits & 0x3f;
        bits >>= 6;
        held -= 6;
        element as i32
    };
    (0..count).map(next).collect()
}

/// `int32_data` and `uint64_data` can hold numbers that their element type cannot: such fields are kept as they stood.
fn keep_unusual(rest: &mut Remainder, typed: &Typed, element: ElementType, count: u64, data: &Data) {
    let mut anew = TensorProto::default();
    write_typed(&mut anew, element, count, data);
    let same = match typed {
        Typed::Int32(v) => *v == anew.int32_data,
        Typed::Uint64(v) => *v == anew.uint64_data,
        _ => true,
    };
    if same {
        return;
    }
    let mut kept = TensorProto::default();
    match typed {
        Typed::Int32(v) => kept.int32_data.clone_from(v),
        Typed::Uint64(v) => kept.uint64_data.clone_from(v),
        _ => {}
    }
    rest.keep_encoded(&prost::Message::encode_to_vec(&kept));
}

/// Fills the typed field of `message` with `count` elements in raw form.
fn write_typed(message: &mut TensorProto, element: ElementType, count: u64, data: &Data) {
    let bytes = match data {
        Data::Bytes(bytes) => bytes,
        Data::Strings(strings) => {
            message.string_data = strings.to_vec();
            return;
        }
        Data::Missing(_) => return,
    };
    match Typed::empty(element) {
        Typed::Float(_) => message.float_data = words::<4>(bytes).map(f32::from_le_bytes).collect(),
        Typed::Double(_) => message.double_data = words::<8>(bytes).map(f64::from_le_bytes).collect(),
        Typed::Int64(_) => message.int64_data = words::<8>(bytes).map(i64::from_le_bytes).collect(),
        Typed::Uint64(_) if element == ElementType::UINT64 => {
            message.uint64_data = words::<8>(bytes).map(u64::from_le_bytes).collect();
        }
        Typed::Uint64(_) => {
            message.uint64_data = words::<4>(bytes).map(|w| u64::from(u32::from_le_bytes(w))).collect();
        }
        Typed::String(_) => {}
        Typed::Int32(_) => {
            message.int32_data = match element {
                ElementType::INT32 => words::<4>(bytes).map(i32::from_le_bytes).collect(),
                ElementType::INT16 => words::<2>(bytes).map(|w| i32::from(i16::from_le_bytes(w))).collect(),
                ElementType::INT8 => bytes.iter().map(|b| i32::from(*b as i8)).collect(),
                _ if element.bits() == 16 => {
                    words::<2>(bytes).map(|w| i32::from(u16::from_le_bytes(w))).collect()
                }
                _ if element.bits() == 6 => unpack_six(bytes, count),
                _ => bytes.iter().map(|b| i32::from(*b)).collect(),
            }
        }
    }
}

fn words<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> + '_ {
    bytes.as_chunks::<N>().0.iter().copied()
}

/// The message for a tensor; `placement` decides where its bytes go.
pub fn write_tensor(
    tensor: &Tensor,
    placement: &mut dyn Placement,
) -> Result<(TensorProto, Unknown), String> {
    let mut kept = Kept::<TensorProto>::of(&tensor.extra, MessageKind::Tensor);
    let mut message = TensorProto {
        dims: write_dims(&tensor.dims)?,
        data_type: kept.int(field::tensor::DATA_TYPE, tensor.element.0.into(), true).map(|v| v as i32),
        segment: kept.fields.segment.take(),
        name: kept.text(field::tensor::NAME, &tensor.name, false),
        doc_string: kept.text(field::tensor::DOC_STRING, &tensor.doc, false),
        metadata_props: kept
            .pairs(field::tensor::METADATA_PROPS, &tensor.metadata, |m| &mut m.metadata_props),
        ..TensorProto::default()
    };
    if let Data::Missing(reason) = &tensor.data {
        return Err(reason.to_string());
    }
    match placement.place(tensor)? {
        Some(entries) => {
            message.data_location = Some(tensor_proto::DataLocation::External as i32);
            message.raw_data = kept.present(field::tensor::RAW_DATA, true, false).then(Bytes::new);
            message.external_data =
                kept.pairs(field::tensor::EXTERNAL_DATA, &entries, |m| &mut m.external_data);
        }
        None => {
            message.data_location = kept.int(field::tensor::DATA_LOCATION, 0, false).map(|v| v as i32);
            if matches!(tensor.encoding, Encoding::External(_)) {
                kept.forget(field::tensor::EXTERNAL_DATA);
            } else {
                message.external_data = std::mem::take(&mut kept.fields.external_data);
            }
            match (&tensor.data, &tensor.encoding) {
                (Data::Bytes(bytes), Encoding::Raw | Encoding::External(_)) => {
                    message.raw_data = Some(bytes.clone())
                }
                (data, _) => write_kept_typed(&mut message, tensor, data, &mut kept.fields),
            }
        }
    }
    Ok((message, kept.tree))
}

/// Typed data: as it stood when that still means the same elements.
fn write_kept_typed(message: &mut TensorProto, tensor: &Tensor, data: &Data, kept: &mut TensorProto) {
    let count = tensor.element_count().unwrap_or_default();
    write_typed(message, tensor.element, count, data);
    let fits = |typed: &Typed| matches!(typed.decode(tensor.element, count), Ok(same) if same == *data);
    match typed_field(kept) {
        Ok(Some(typed)) if fits(&typed) => match typed {
            Typed::Int32(v) => message.int32_data = v,
            Typed::Uint64(v) => message.uint64_data = v,
            _ => {}
        },
        _ => {}
    }
}

/// The message for a sparse tensor whose values are called `name` (an initializer's name, or none).
pub fn write_sparse(
    tensor: &SparseTensor,
    name: Option<&str>,
    placement: &mut dyn Placement,
) -> Result<(SparseTensorProto, Unknown), String> {
    let mut kept = Kept::<SparseTensorProto>::of(&tensor.extra, MessageKind::SparseTensor);
    let (mut values, values_tree) = write_tensor(&tensor.values, placement)?;
    let (indices, indices_tree) = write_tensor(&tensor.indices, placement)?;
    if let Some(name) = name {
        values.name = Some(name.to_owned());
    }
    kept.tree.put(field::sparse::VALUES, 0, values_tree);
    kept.tree.put(field::sparse::INDICES, 0, indices_tree);
    let dims = write_dims(&tensor.dims)?;
    Ok((SparseTensorProto { values: Some(values), indices: Some(indices), dims }, kept.tree))
}
