//! Arrays of NumPy: `.npz` archives and `.npy` files, as named tensors.
//!
//! Element `k` of a sequence `NAME` stands under `NAME[k]`; an optional that is absent is not stored.

mod npy;

use super::error::{FormatError, Refusal};
use super::file::{self, NewFile};
use crate::ir::{Data, ElementType, Tensor};
use std::collections::BTreeMap;
use std::io::{Cursor, Read, Write};
use std::path::Path;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipArchive, ZipWriter};

/// Deflate makes at most 1032 bytes of one (RFC 1951: a match of 258 bytes in two bits): what claims to be more is not believed.
const LARGEST_RATIO: u64 = 1032;

/// Arrays of a file by name. A `.npy` file is one array, named as the file without its ending.
pub fn read(path: &Path) -> Result<BTreeMap<String, Tensor>, FormatError> {
    read_as(path, &|_| None)
}

/// The same where the element types are known that arrays are meant to have: NumPy has none of its own for bfloat16,
/// float8, int4 and the like, and stores their bytes as `V2` or `V1` (one element a byte).
pub fn read_as(
    path: &Path,
    wanted: &dyn Fn(&str) -> Option<ElementType>,
) -> Result<BTreeMap<String, Tensor>, FormatError> {
    let bytes = file::read(path).map_err(|error| FormatError::read(path, error))?;
    let refused = |name: &str, what: String| Refusal::new(format!("array '{name}'"), what).invalid(path);
    if bytes.starts_with(npy::MAGIC) {
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let tensor = npy::read(&bytes, wanted(&name)).map_err(|what| refused(&name, what))?;
        return Ok(BTreeMap::from([(name, tensor)]));
    }
    if !bytes.starts_with(b"PK") {
        return Err(FormatError::not_a_model(
            path,
            "not a NumPy file: it begins neither as .npz nor as .npy",
        ));
    }
    let size = bytes.len() as u64;
    let damaged = |what: String| Refusal::new("archive", format!("damaged: {what}")).invalid(path);
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| damaged(error.to_string()))?;
    let mut found = BTreeMap::new();
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(|error| damaged(error.to_string()))?;
        // What else an archive may hold (folders, notes of a packing program) is no array; NumPy passes it over as well.
        let Some(name) = entry.name().strip_suffix(".npy").map(str::to_owned) else { continue };
        let packed = entry.compressed_size();
        if packed > size || entry.size() > packed.saturating_mul(LARGEST_RATIO) {
            return Err(refused(&name, format!("it claims {} bytes, more than are there", entry.size())));
        }
        let length = entry.size();
        let mut content = Vec::new();
        let room = usize::try_from(length).ok().and_then(|n| content.try_reserve_exact(n).ok());
        room.ok_or_else(|| refused(&name, format!("there is no memory for its {length} bytes")))?;
        let got = (&mut entry).take(length).read_to_end(&mut content);
        got.map_err(|error| refused(&name, format!("cannot be unpacked: {error}")))?;
        let tensor = npy::read(&content, wanted(&name)).map_err(|what| refused(&name, what))?;
        found.insert(name, tensor);
    }
    Ok(found)
}

/// Writes an archive that `numpy.load` reads, not compressed, with the same bytes for the same arrays. An existing file
/// is only replaced whole. bfloat16 is written as `V2`; float8 and types under a byte as `V1`, one element a byte.
pub fn write<N: AsRef<str>>(path: &Path, arrays: &[(N, Tensor)]) -> Result<(), FormatError> {
    let failed = |error: std::io::Error| FormatError::write(path, error);
    let mut names: Vec<&str> = arrays.iter().map(|(name, _)| name.as_ref()).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        let place = format!("array '{}'", twice[0]);
        return Err(Refusal::new(place, "two arrays have this name").unwritable(path));
    }
    let file = NewFile::beside(path).map_err(failed)?;
    let mut archive = ZipWriter::new(std::io::BufWriter::new(file));
    for (name, tensor) in arrays {
        let name = name.as_ref();
        let refused = |what| Refusal::new(format!("array '{name}'"), what).unwritable(path);
        let plan = npy::Plan::of(tensor).map_err(refused)?;
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .last_modified_time(DateTime::default())
            .unix_permissions(0o644)
            .large_file(plan.bytes() > u64::from(u32::MAX) / 2);
        let zipped = |error: zip::result::ZipError| failed(error.into());
        archive.start_file(format!("{name}.npy"), options).map_err(zipped)?;
        plan.write(&mut archive).map_err(failed)?;
    }
    let mut file = archive.finish().map_err(|error| failed(error.into()))?;
    file.flush().map_err(failed)?;
    let file = file.into_inner().map_err(|error| failed(error.into_error()))?;
    file.put_in_place().map_err(failed)
}

/// Bytes of a tensor's elements with one byte for each element of a type under a byte.
fn one_a_byte(tensor: &Tensor, bytes: &[u8], count: usize) -> Vec<u8> {
    let bits = tensor.element.bits() as usize;
    let per = 8 / bits;
    let mask = (1u8 << bits) - 1;
    let at = |i: usize| bytes.get(i / per).map_or(0, |byte| (byte >> (bits * (i % per))) & mask);
    (0..count).map(at).collect()
}

/// Packs elements of a type under a byte, lowest bits first.
fn packed(elements: &[u8], bits: u32) -> Vec<u8> {
    let per = 8 / bits as usize;
    let mask = (1u8 << bits) - 1;
    let of = |part: &[u8]| part.iter().rev().fold(0, |byte, e| (byte << bits) | (e & mask));
    // The first element is in the lowest bits; a last byte that is not full has zeros above.
    elements.chunks(per).map(of).collect()
}

/// Strings of a tensor, when that is what it has.
fn strings(tensor: &Tensor) -> Option<&[bytes::Bytes]> {
    match &tensor.data {
        Data::Strings(strings) => Some(strings),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(element: ElementType, dims: &[u64]) -> Tensor {
        let count = dims.iter().product::<u64>();
        let size = element.packed_bytes(count).unwrap();
        let bytes: Vec<u8> = (0..size).map(|i| (i * 37 + 11) as u8).collect();
        Tensor::new(element, dims.iter().copied(), bytes)
    }

    fn words(words: &[&[u8]]) -> Tensor {
        let mut tensor = Tensor::new(ElementType::STRING, [words.len() as u64], bytes::Bytes::new());
        tensor.data = Data::Strings(words.iter().map(|w| bytes::Bytes::copy_from_slice(w)).collect());
        tensor
    }

    #[test]
    fn every_type_comes_back_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        let mut arrays: Vec<(String, Tensor)> = ElementType::ALL
            .iter()
            .filter(|e| matches!(e.bits(), 2 | 4 | 8 | 16 | 32 | 64 | 128) && **e != ElementType::BOOL)
            .map(|e| (e.name(), numbers(*e, &[3, 1, 4])))
            .collect();
        arrays.push(("truth".into(), Tensor::from_bool(&[3], &[true, false, true])));
        arrays.push(("a/b.c[0]".into(), numbers(ElementType::INT64, &[])));
        arrays.push(("empty".into(), numbers(ElementType::FLOAT, &[2, 0, 3])));
        arrays.push(("words".into(), words(&["straße".as_bytes(), b"", "数\0x".as_bytes()])));
        arrays.push(("bytes".into(), words(&[b"\xff\xfe", b"a"])));
        write(&path, &arrays).unwrap();
        let first = std::fs::read(&path).unwrap();
        let wanted: BTreeMap<String, ElementType> =
            arrays.iter().map(|(name, t)| (name.clone(), t.element)).collect();
        let back = read_as(&path, &|name| wanted.get(name).copied()).unwrap();
        assert_eq!(back.len(), arrays.len());
        for (name, tensor) in &arrays {
            assert!(tensor.same_content(&back[name]), "{name}: {:?} is not {tensor:?}", back[name]);
        }
        write(&path, &arrays).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), first);
    }

    #[test]
    fn what_cannot_be_stored_is_refused_and_nothing_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        std::fs::write(&path, b"old").unwrap();
        let one = numbers(ElementType::FLOAT, &[1]);
        let twice = write(&path, &[("x", one.clone()), ("x", one)]).unwrap_err().to_string();
        assert!(twice.contains("array 'x': two arrays"), "{twice}");
        let cut = write(&path, &[("s", words(&[b"ends in nothing\0"]))]).unwrap_err().to_string();
        assert!(cut.contains("array 's'") && cut.contains("NUL"), "{cut}");
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
    }

    #[test]
    fn damaged_archives_are_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        write(&path, &[("x", numbers(ElementType::FLOAT, &[4, 4]))]).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert!(read(&path).is_err(), "{length} bytes of {}", whole.len());
        }
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0xff;
            std::fs::write(&path, bytes).unwrap();
            // Only that it answers: flags and dates may change without harm.
            if let Err(error) = read(&path) {
                assert!(error.to_string().contains("a.npz"), "{error}");
            }
        }
    }

    #[test]
    fn packing_is_undone() {
        for (element, count) in [(ElementType::UINT4, 15), (ElementType::INT2, 7)] {
            let elements: Vec<u8> = (0..count).map(|i| i as u8 & ((1 << element.bits()) - 1)).collect();
            let tensor = Tensor::new(element, [count], packed(&elements, element.bits()));
            assert_eq!(one_a_byte(&tensor, tensor.bytes().unwrap(), count as usize), elements);
        }
    }
}
