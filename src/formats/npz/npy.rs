//! One array in NumPy's `.npy` form (numpy.lib.format, versions 1.0 to 3.0): a header in Python's notation, then the elements.

use super::{one_a_byte, packed, strings};
use crate::ir::{Data, ElementType, Tensor};
use bytes::Bytes;
use std::io::{self, Write};

/// First bytes of a file.
pub const MAGIC: &[u8] = b"\x93NUMPY";

/// The header is padded so that elements begin at a multiple of this.
const ALIGNMENT: usize = 64;

/// How elements stand in the file.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Number(ElementType),
    /// So many bytes an element, of a type that NumPy does not have.
    Raw,
    /// UCS4, padded with zeros.
    Unicode,
    /// Bytes, padded with zeros.
    ByteString,
}

#[derive(Debug, PartialEq)]
struct Header {
    kind: Kind,
    /// Bytes of one element.
    item: usize,
    big_endian: bool,
    column_major: bool,
    dims: Vec<u64>,
}

/// The array in the bytes of a file. `Err` says what is wrong with it.
pub fn read(bytes: &[u8], wanted: Option<ElementType>) -> Result<Tensor, String> {
    let (header, data) = split(bytes)?;
    let header = parse_header(&header)?;
    let (count, total) = sizes(&header)?;
    if data.len() != total {
        let (dims, item) = (&header.dims, header.item);
        return Err(format!(
            "{} bytes of elements where shape {dims:?} with {item} bytes an element needs {total}",
            data.len()
        ));
    }
    let mut elements = match header.column_major && header.dims.len() > 1 && count > 1 {
        true => row_major(data, &header.dims, header.item),
        false => data.to_vec(),
    };
    let word = match header.kind {
        Kind::Number(ElementType::COMPLEX64 | ElementType::COMPLEX128) => header.item / 2,
        Kind::Unicode => 4,
        Kind::ByteString => 1,
        _ => header.item,
    };
    if header.big_endian && word > 1 {
        elements.chunks_exact_mut(word).for_each(<[u8]>::reverse);
    }
    finish(header, elements, count, wanted)
}

/// Elements as a tensor of the type that is meant.
fn finish(
    header: Header,
    mut elements: Vec<u8>,
    count: usize,
    wanted: Option<ElementType>,
) -> Result<Tensor, String> {
    let Header { kind, item, dims, .. } = header;
    let element = match (kind, wanted) {
        (Kind::Unicode | Kind::ByteString, _) => {
            let text: Result<Vec<Bytes>, String> = match item {
                0 => Ok(vec![Bytes::new(); count]),
                _ => elements.chunks_exact(item).map(|e| string(kind, e)).collect(),
            };
            let mut tensor = Tensor::new(ElementType::STRING, dims, Bytes::new());
            tensor.data = Data::Strings(text?.into());
            return Ok(tensor);
        }
        (Kind::Number(ElementType::BOOL), _) => {
            elements.iter_mut().for_each(|e| *e = u8::from(*e != 0));
            ElementType::BOOL
        }
        // Unsigned integers of the same width are the other way in which people store such types.
        (Kind::Raw | Kind::Number(ElementType::UINT8 | ElementType::UINT16), Some(wanted))
            if !has_numpy_type(wanted) && bytes_in_file(wanted) == Some(item) =>
        {
            if wanted.bits() < 8 {
                elements = packed(&elements, wanted.bits());
            }
            wanted
        }
        (Kind::Number(element), _) => element,
        (Kind::Raw, Some(wanted)) => {
            return Err(format!("it has raw elements of {item} bytes, which are no {wanted}"));
        }
        (Kind::Raw, None) => {
            return Err(format!(
                "it has raw elements of {item} bytes, and of which type they are is not known"
            ));
        }
    };
    Ok(Tensor::new(element, dims, elements))
}

/// True for element types that NumPy has itself.
fn has_numpy_type(element: ElementType) -> bool {
    matches!(element.0, 1..=7 | 9..=15)
}

/// Bytes an element takes in a file; `None` for strings and types that cannot be stored.
fn bytes_in_file(element: ElementType) -> Option<usize> {
    match element.bits() {
        2 | 4 => Some(1),
        bits @ (8 | 16 | 32 | 64 | 128) => Some(bits as usize / 8),
        _ => None,
    }
}

/// A string of fixed width without the zeros that fill it up.
fn string(kind: Kind, padded: &[u8]) -> Result<Bytes, String> {
    if kind == Kind::ByteString {
        let end = padded.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1);
        return Ok(Bytes::copy_from_slice(&padded[..end]));
    }
    let points = padded.as_chunks::<4>().0.iter().map(|c| u32::from_le_bytes(*c));
    let text: Option<String> = points.map(char::from_u32).collect();
    let text = text.ok_or("a string in it has a code point that is no character")?;
    Ok(Bytes::copy_from_slice(text.trim_end_matches('\0').as_bytes()))
}

/// Number of elements and of bytes.
fn sizes(header: &Header) -> Result<(usize, usize), String> {
    // Zeros hide no overflow: other dimensions are multiplied elsewhere.
    let bound = header.dims.iter().try_fold(1u64, |n, d| n.checked_mul((*d).max(1)));
    let count = header.dims.iter().try_fold(1u64, |n, d| n.checked_mul(*d));
    let total = bound.and_then(|n| n.checked_mul(header.item.max(1) as u64)).and(count);
    let fits = |n: u64| usize::try_from(n).ok().filter(|n| *n <= isize::MAX as usize);
    match (total, count.and_then(fits), count.and_then(|n| fits(n.checked_mul(header.item as u64)?))) {
        (Some(_), Some(count), Some(total)) => {
            // Strings without width take nothing in the file, but each takes room here.
            if header.item == 0 && count > 1 << 24 {
                return Err(format!("{count} strings without any character are too many"));
            }
            Ok((count, total))
        }
        _ => Err(format!("shape {:?} has more elements than can be addressed", header.dims)),
    }
}

/// Elements of a column-major array in row-major order.
fn row_major(data: &[u8], dims: &[u64], item: usize) -> Vec<u8> {
    let dims: Vec<usize> = dims.iter().map(|d| *d as usize).collect();
    let mut strides = vec![item; dims.len()];
    for axis in 1..dims.len() {
        strides[axis] = strides[axis - 1] * dims[axis - 1];
    }
    let mut out = Vec::with_capacity(data.len());
    let mut index = vec![0usize; dims.len()];
    let mut at = 0;
    loop {
        out.extend_from_slice(&data[at..at + item]);
        let mut axis = dims.len();
        loop {
            if axis == 0 {
                return out;
            }
            axis -= 1;
            index[axis] += 1;
            at += strides[axis];
            if index[axis] < dims[axis] {
                break;
            }
            at -= strides[axis] * dims[axis];
            index[axis] = 0;
        }
    }
}

/// Header text and elements of a file.
fn split(bytes: &[u8]) -> Result<(String, &[u8]), String> {
    const CUT: &str = "it is cut off in its header";
    let rest = bytes.strip_prefix(MAGIC).ok_or("it is not in NumPy's .npy form")?;
    let (version, rest) = rest.split_at_checked(2).ok_or(CUT)?;
    let (length, rest) = match version[0] {
        1 => rest.split_first_chunk::<2>().map(|(n, rest)| (usize::from(u16::from_le_bytes(*n)), rest)),
        2 | 3 => rest.split_first_chunk::<4>().map(|(n, rest)| (u32::from_le_bytes(*n) as usize, rest)),
        other => return Err(format!("version {other} of the .npy form is not known")),
    }
    .ok_or(CUT)?;
    let (text, data) = rest.split_at_checked(length).ok_or(CUT)?;
    let text = match version[0] {
        3 => String::from_utf8(text.to_vec()).map_err(|_| "its header is not text")?,
        _ => text.iter().map(|b| char::from(*b)).collect(),
    };
    Ok((text, data))
}

/// `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`.
fn parse_header(text: &str) -> Result<Header, String> {
    let mut words = Words { rest: text.trim() };
    let (mut descr, mut column_major, mut dims) = (None, None, None);
    words.expect('{')?;
    while !words.take('}') {
        let key = words.text()?;
        words.expect(':')?;
        match key {
            "descr" if words.rest.starts_with('[') => {
                return Err("it has records of several fields, which no tensor has".into());
            }
            "descr" => descr = Some(words.text()?),
            "fortran_order" => column_major = Some(words.truth()?),
            "shape" => dims = Some(words.tuple()?),
            other => return Err(format!("its header has an unknown entry '{other}'")),
        }
        if !words.take(',') {
            words.expect('}')?;
            break;
        }
    }
    match (descr, column_major, dims) {
        (Some(descr), Some(column_major), Some(dims)) => {
            let (kind, item, big_endian) = parse_type(descr)?;
            Ok(Header { kind, item, big_endian, column_major, dims })
        }
        _ => Err("its header lacks descr, fortran_order or shape".into()),
    }
}

/// `<f4`, `|b1`, `>U7`: order of bytes, kind, width.
fn parse_type(descr: &str) -> Result<(Kind, usize, bool), String> {
    let big_endian = descr.starts_with('>');
    let plain = descr.trim_start_matches(['<', '>', '|', '=']);
    let unknown = || format!("its elements are of NumPy's type '{descr}', which no tensor has");
    if plain.starts_with('O') {
        return Err("it holds Python objects, which are not read; store text with dtype=str".into());
    }
    let mut letters = plain.chars();
    let letter = letters.next().ok_or_else(unknown)?;
    let width: usize = letters.as_str().parse().map_err(|_| unknown())?;
    let (kind, item) = match (letter, width) {
        ('U', n) => (Kind::Unicode, n.checked_mul(4).ok_or_else(unknown)?),
        ('S' | 'a', n) => (Kind::ByteString, n),
        // float8_e5m2 of ml_dtypes calls itself f1.
        ('f', 1) | ('V', 1 | 2) => (Kind::Raw, width),
        ('b', 1) => (Kind::Number(ElementType::BOOL), 1),
        ('i', 1) => (Kind::Number(ElementType::INT8), 1),
        ('i', 2) => (Kind::Number(ElementType::INT16), 2),
        ('i', 4) => (Kind::Number(ElementType::INT32), 4),
        ('i', 8) => (Kind::Number(ElementType::INT64), 8),
        ('u', 1) => (Kind::Number(ElementType::UINT8), 1),
        ('u', 2) => (Kind::Number(ElementType::UINT16), 2),
        ('u', 4) => (Kind::Number(ElementType::UINT32), 4),
        ('u', 8) => (Kind::Number(ElementType::UINT64), 8),
        ('f', 2) => (Kind::Number(ElementType::FLOAT16), 2),
        ('f', 4) => (Kind::Number(ElementType::FLOAT), 4),
        ('f', 8) => (Kind::Number(ElementType::DOUBLE), 8),
        ('c', 8) => (Kind::Number(ElementType::COMPLEX64), 8),
        ('c', 16) => (Kind::Number(ElementType::COMPLEX128), 16),
        _ => return Err(unknown()),
    };
    Ok((kind, item, big_endian))
}

/// The part of Python's notation that headers use.
struct Words<'a> {
    rest: &'a str,
}

impl<'a> Words<'a> {
    fn take(&mut self, wanted: char) -> bool {
        let found = self.rest.strip_prefix(wanted);
        self.rest = found.unwrap_or(self.rest).trim_start();
        found.is_some()
    }

    fn expect(&mut self, wanted: char) -> Result<(), String> {
        match self.take(wanted) {
            true => Ok(()),
            false => Err(format!("its header is damaged: '{wanted}' is missing")),
        }
    }

    fn text(&mut self) -> Result<&'a str, String> {
        let quote = self.rest.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let quote = quote.ok_or("its header is damaged: a text in quotes is missing")?;
        let (text, rest) =
            self.rest[1..].split_once(quote).ok_or("its header is damaged: a quote is not closed")?;
        self.rest = rest.trim_start();
        Ok(text)
    }

    fn truth(&mut self) -> Result<bool, String> {
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest.trim_start();
                return Ok(value);
            }
        }
        Err("its header is damaged: fortran_order is neither True nor False".into())
    }

    fn tuple(&mut self) -> Result<Vec<u64>, String> {
        self.expect('(')?;
        let mut numbers = Vec::new();
        while !self.take(')') {
            let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
            let (number, rest) = self.rest.split_at(end);
            numbers.push(number.parse().map_err(|_| "its header is damaged: a dimension is no number")?);
            // Python 2 wrote long integers with an L.
            self.rest = rest.trim_start_matches('L').trim_start();
            if !self.take(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(numbers)
    }
}

/// How a tensor will stand in a file.
pub struct Plan<'a> {
    tensor: &'a Tensor,
    header: Vec<u8>,
    count: usize,
    content: Content<'a>,
}

enum Content<'a> {
    Bytes(std::borrow::Cow<'a, [u8]>),
    /// Characters an element.
    Unicode(usize),
    /// Bytes an element.
    ByteStrings(usize),
}

impl<'a> Plan<'a> {
    /// Checks that a tensor can be stored. `Err` says why not.
    pub fn of(tensor: &'a Tensor) -> Result<Plan<'a>, String> {
        let count = tensor.element_count().and_then(|n| usize::try_from(n).ok());
        let count = count.ok_or("its shape has more elements than can be addressed")?;
        let (descr, content) = match &tensor.data {
            Data::Missing(why) => return Err(format!("its data is missing: {why}")),
            Data::Strings(all) => {
                if all.len() != count {
                    return Err(format!("{} strings do not fill its shape", all.len()));
                }
                if all.iter().any(|s| s.last() == Some(&0)) {
                    return Err("a string in it ends in a NUL character, which NumPy drops".into());
                }
                // NumPy has no strings without width.
                match all.iter().map(|s| std::str::from_utf8(s).ok()).collect::<Option<Vec<&str>>>() {
                    Some(texts) => {
                        let width = texts.iter().map(|t| t.chars().count()).max().unwrap_or(0).max(1);
                        (format!("<U{width}"), Content::Unicode(width))
                    }
                    None => {
                        let width = all.iter().map(Bytes::len).max().unwrap_or(0).max(1);
                        (format!("|S{width}"), Content::ByteStrings(width))
                    }
                }
            }
            Data::Bytes(bytes) => {
                let element = tensor.element;
                if element.packed_bytes(count as u64) != Some(bytes.len() as u64) {
                    return Err(format!("{} bytes do not fill its shape of {element}", bytes.len()));
                }
                let descr = descr(element).ok_or_else(|| format!("{element} cannot be stored"))?;
                let bytes = match element.bits() {
                    0..8 => one_a_byte(tensor, bytes, count).into(),
                    _ => (&bytes[..]).into(),
                };
                (descr.to_owned(), Content::Bytes(bytes))
            }
        };
        Ok(Plan { tensor, header: header(&descr, &tensor.dims)?, count, content })
    }

    /// Bytes that will be written.
    pub fn bytes(&self) -> u64 {
        let count = self.count as u64;
        let content = match &self.content {
            Content::Bytes(bytes) => bytes.len() as u64,
            Content::Unicode(width) => count.saturating_mul(*width as u64).saturating_mul(4),
            Content::ByteStrings(width) => count.saturating_mul(*width as u64),
        };
        content.saturating_add(self.header.len() as u64)
    }

    /// Writes header and elements.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        to.write_all(&self.header)?;
        let strings = strings(self.tensor).unwrap_or_default();
        match &self.content {
            Content::Bytes(bytes) => to.write_all(bytes),
            Content::ByteStrings(width) => strings.iter().try_for_each(|s| {
                to.write_all(s)?;
                fill(to, width.saturating_sub(s.len()))
            }),
            Content::Unicode(width) => strings.iter().try_for_each(|s| {
                let text = String::from_utf8_lossy(s);
                let points: Vec<u8> = text.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
                to.write_all(&points)?;
                fill(to, (width * 4).saturating_sub(points.len()))
            }),
        }
    }
}

fn fill(to: &mut impl Write, count: usize) -> io::Result<()> {
    io::copy(&mut io::Read::take(io::repeat(0), count as u64), to).map(drop)
}

/// NumPy's name of an element type, or that of raw bytes of its width.
fn descr(element: ElementType) -> Option<&'static str> {
    Some(match element {
        ElementType::FLOAT => "<f4",
        ElementType::UINT8 => "|u1",
        ElementType::INT8 => "|i1",
        ElementType::UINT16 => "<u2",
        ElementType::INT16 => "<i2",
        ElementType::INT32 => "<i4",
        ElementType::INT64 => "<i8",
        ElementType::BOOL => "|b1",
        ElementType::FLOAT16 => "<f2",
        ElementType::DOUBLE => "<f8",
        ElementType::UINT32 => "<u4",
        ElementType::UINT64 => "<u8",
        ElementType::COMPLEX64 => "<c8",
        ElementType::COMPLEX128 => "<c16",
        other => match bytes_in_file(other)? {
            1 => "|V1",
            2 => "|V2",
            _ => return None,
        },
    })
}

/// Magic, version, length and text, padded.
fn header(descr: &str, dims: &[u64]) -> Result<Vec<u8>, String> {
    let shape: String = match dims {
        [one] => format!("({one},)"),
        many => format!("({})", many.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")),
    };
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let before = MAGIC.len() + 4;
    while !(before + text.len() + 1).is_multiple_of(ALIGNMENT) {
        text.push(' ');
    }
    text.push('\n');
    let length = u16::try_from(text.len()).map_err(|_| format!("it has {} dimensions", dims.len()))?;
    let mut all = MAGIC.to_vec();
    all.extend_from_slice(&[1, 0]);
    all.extend_from_slice(&length.to_le_bytes());
    all.extend_from_slice(text.as_bytes());
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let mut all = MAGIC.to_vec();
        all.extend_from_slice(&[1, 0]);
        all.extend_from_slice(&(header.len() as u16).to_le_bytes());
        all.extend_from_slice(header.as_bytes());
        all.extend_from_slice(data);
        all
    }

    #[test]
    fn columns_and_foreign_byte_order_are_put_right() {
        let header = "{'descr': '>i2', 'fortran_order': True, 'shape': (2L, 3L), }\n";
        // By columns: 1 4, 2 5, 3 6.
        let data = [0, 1, 0, 4, 0, 2, 0, 5, 0, 3, 0, 6];
        let tensor = read(&file(header, &data), None).unwrap();
        assert_eq!(
            (tensor.element, tensor.integers().unwrap()),
            (ElementType::INT16, vec![1, 2, 3, 4, 5, 6])
        );
        let complex = "{\"descr\": \">c8\", 'shape': (), 'fortran_order': False}";
        let data = [1f32.to_be_bytes(), (-2f32).to_be_bytes()].concat();
        let tensor = read(&file(complex, &data), None).unwrap();
        assert_eq!(tensor.bytes().unwrap()[..], [1f32.to_le_bytes(), (-2f32).to_le_bytes()].concat()[..]);
        let text = "{'descr': '>U2', 'fortran_order': False, 'shape': (1,)}";
        let tensor = read(&file(text, &[0, 0, 0, b'h', 0, 0, 0, 0]), None).unwrap();
        assert_eq!(strings(&tensor).unwrap(), [Bytes::from_static(b"h")]);
    }

    #[test]
    fn types_that_numpy_lacks_need_to_be_known() {
        let header = "{'descr': '<V2', 'fortran_order': False, 'shape': (1,)}";
        let unknown = read(&file(header, &[0x80, 0x3f]), None).unwrap_err();
        assert!(unknown.contains("not known"), "{unknown}");
        let tensor = read(&file(header, &[0x80, 0x3f]), Some(ElementType::BFLOAT16)).unwrap();
        assert_eq!(tensor.approximate().unwrap(), [1.0]);
        let wrong = read(&file(header, &[0, 0]), Some(ElementType::UINT4)).unwrap_err();
        assert!(wrong.contains("no uint4"), "{wrong}");
        let packed = "{'descr': '|V1', 'fortran_order': False, 'shape': (3,)}";
        let tensor = read(&file(packed, &[1, 2, 3]), Some(ElementType::UINT4)).unwrap();
        assert_eq!(tensor.bytes().unwrap()[..], [0x21, 0x03]);
    }

    #[test]
    fn what_is_no_tensor_is_refused_in_words() {
        for (header, says) in [
            ("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "Python objects"),
            ("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "records"),
            ("{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (1,)}", "<M8[ns]"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "needs 8"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 0)}", "addressed"),
            ("{'descr': '<U0', 'fortran_order': False, 'shape': (99999999999,)}", "too many"),
            ("{'descr': '<f4', 'shape': (2,)}", "lacks"),
            ("{'descr': '<f4', 'fortran_order': 1}", "neither True nor False"),
            ("{'shape': (x,)}", "no number"),
            ("", "missing"),
        ] {
            let error = read(&file(header, &[0; 4]), None).unwrap_err();
            assert!(error.contains(says), "{header}: {error}");
        }
    }
}
