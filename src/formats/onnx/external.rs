//! External data: tensor bytes in files beside the model, found and checked on reading, placed on writing.

use std::collections::BTreeMap;
use std::io::{self, Seek, Write};
use std::path::{Component, Path, PathBuf};

use bytes::Bytes;
use xxhash_rust::xxh3::Xxh3;

use crate::formats::file::{self, NewFile};
use crate::ir::Text;
use crate::ir::tensor::{Data, Encoding, Tensor};

/// `external_data` entries: `location`, `offset`, `length` and whatever else stands there.
pub type Entries = Vec<(Text, Text)>;

/// The data files of one model, each opened at most once.
pub struct DataFiles {
    /// The model's folder with all links resolved; `None` for a model that is not in a file.
    folder: Option<PathBuf>,
    files: BTreeMap<Text, Result<Bytes, Unreadable>>,
}

#[derive(Clone)]
enum Unreadable {
    /// The structure can still be looked at.
    Missing(Text),
    /// Nothing good can come of this file.
    Refused(String),
}

impl DataFiles {
    /// Data files of a model in `folder`.
    pub fn new(folder: Option<&Path>) -> DataFiles {
        DataFiles { folder: folder.and_then(|f| f.canonicalize().ok()), files: BTreeMap::new() }
    }

    /// The bytes that `entries` speak of; `wanted` is what the tensor's dims need. A file that is not there gives
    /// [`Data::Missing`]; offsets and lengths that do not fit, and places outside the model's folder, are errors.
    pub fn read(&mut self, entries: &[(Text, Text)], wanted: Option<u64>) -> Result<Data, String> {
        let entry = |name: &str| entries.iter().find(|(key, _)| &**key == name).map(|(_, value)| value);
        let number = |name: &str| match entry(name) {
            None => Ok(None),
            Some(text) => match text.parse::<u64>() {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(format!("external data {name} '{text}' is not a number of bytes")),
            },
        };
        let location = entry("location").ok_or("external data without a location")?.clone();
        let (offset, length) = (number("offset")?.unwrap_or(0), number("length")?);
        if let (Some(length), Some(wanted)) = (length, wanted)
            && length != wanted
        {
            return Err(format!("external data has length {length}, the dims need {wanted} bytes"));
        }
        let bytes = match self.file(&location) {
            Ok(bytes) => bytes,
            Err(Unreadable::Missing(reason)) => return Ok(Data::Missing(reason)),
            Err(Unreadable::Refused(what)) => return Err(what),
        };
        let size = bytes.len() as u64;
        let length = length.or(wanted).unwrap_or_else(|| size.saturating_sub(offset));
        match offset.checked_add(length) {
            Some(end) if end <= size => Ok(Data::Bytes(bytes.slice(offset as usize..end as usize))),
            _ => Err(format!(
                "external data at offset {offset} with length {length} lies beyond the end of '{location}' ({size} bytes)"
            )),
        }
    }

    fn file(&mut self, location: &Text) -> Result<Bytes, Unreadable> {
        if let Some(known) = self.files.get(location) {
            return known.clone();
        }
        let opened = self.open(location);
        self.files.insert(location.clone(), opened.clone());
        opened
    }

    fn open(&self, location: &str) -> Result<Bytes, Unreadable> {
        let refused = |why: &str| {
            Err(Unreadable::Refused(format!(
                "external data location '{location}' {why}; data files must be inside the model's folder"
            )))
        };
        let missing = |why: String| Err(Unreadable::Missing(why.into()));
        let relative = Path::new(location);
        if location.is_empty() {
            return refused("is empty");
        }
        for component in relative.components() {
            match component {
                Component::Normal(_) | Component::CurDir => {}
                Component::ParentDir => return refused("leads out of the folder by '..'"),
                Component::RootDir | Component::Prefix(_) => return refused("is an absolute path"),
            }
        }
        let Some(folder) = &self.folder else {
            return missing(format!(
                "the data file '{location}' cannot be found: the model is not in a file"
            ));
        };
        let path = match folder.join(relative).canonicalize() {
            Ok(path) => path,
            Err(error) => return missing(format!("the data file '{location}' cannot be read: {error}")),
        };
        if !path.starts_with(folder) {
            return refused("is a link out of the folder");
        }
        match file::read(&path) {
            Ok(bytes) => Ok(bytes),
            Err(error) => missing(format!("the data file '{location}' cannot be read: {error}")),
        }
    }
}

/// Decides where the bytes of a tensor that is being written go.
pub trait Placement {
    /// `None`: into the model; else the entries that say where they have been put.
    fn place(&mut self, tensor: &Tensor) -> Result<Option<Entries>, String>;
}

/// Everything in the model.
pub struct Inline;

impl Placement for Inline {
    fn place(&mut self, _: &Tensor) -> Result<Option<Entries>, String> {
        Ok(None)
    }
}

/// Which tensors go into the data file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Selection {
    /// Those that came from one.
    Imported,
    /// Those, and all others of at least so many bytes.
    FromBytes(u64),
}

/// The bytes of a tensor that belongs in the data file.
pub fn goes_out(selection: Selection, tensor: &Tensor) -> Option<&Bytes> {
    let bytes = tensor.bytes().filter(|bytes| !bytes.is_empty())?;
    let external = match (selection, &tensor.encoding) {
        (_, Encoding::External(_)) => true,
        (Selection::Imported, _) => false,
        (Selection::FromBytes(least), _) => bytes.len() as u64 >= least,
    };
    external.then_some(bytes)
}

/// Writes tensor bytes one after the other into a file beside the model.
pub struct DataWriter {
    selection: Selection,
    /// The file's final name, as the model will refer to it.
    location: Text,
    target: PathBuf,
    out: Option<io::BufWriter<NewFile>>,
    at: u64,
    /// Where bytes already are: two tensors may share them, and still do in the new file.
    placed: BTreeMap<(usize, usize), u64>,
    digest: Xxh3,
}

/// What a hole in a file reads as.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// A data file that is written but not yet in its place.
pub struct WrittenData {
    pub file: NewFile,
    pub bytes: u64,
    /// XXH3 of the whole file, taken while it was written.
    pub digest: u64,
}

impl DataWriter {
    /// A writer for the data file `target`; the file is begun with the first tensor that goes into it.
    pub fn new(target: &Path, location: &str, selection: Selection) -> DataWriter {
        DataWriter {
            selection,
            location: location.into(),
            target: target.to_owned(),
            out: None,
            at: 0,
            placed: BTreeMap::new(),
            digest: Xxh3::new(),
        }
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let out = match &mut self.out {
            Some(out) => out,
            None => self.out.insert(io::BufWriter::with_capacity(1 << 20, NewFile::beside(&self.target)?)),
        };
        for chunk in bytes.chunks(ZEROS.len()) {
            // Holes take no space where the file system has them: weights of models made for tests are mostly zero.
            match chunk == &ZEROS[..] {
                true => out.seek_relative(chunk.len() as i64)?,
                false => out.write_all(chunk)?,
            }
        }
        self.digest.update(bytes);
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn put(&mut self, bytes: &Bytes) -> io::Result<u64> {
        let key = (bytes.as_ptr() as usize, bytes.len());
        if let Some(offset) = self.placed.get(&key) {
            return Ok(*offset);
        }
        // Large tensors begin on a page, so that runtimes can map them; small ones on a cache line.
        let alignment = if bytes.len() >= 1 << 20 { 4096 } else { 64 };
        let padding = self.at.next_multiple_of(alignment) - self.at;
        self.append(&[0u8; 4096][..padding as usize])?;
        let offset = self.at;
        self.append(bytes)?;
        self.placed.insert(key, offset);
        Ok(offset)
    }

    /// The file, flushed to disk; `None` when no tensor went into it.
    pub fn finish(self) -> io::Result<Option<WrittenData>> {
        let Some(out) = self.out else { return Ok(None) };
        let file = out.into_inner().map_err(|error| error.into_error())?;
        file.file().set_len(self.at)?;
        file.file().sync_all()?;
        Ok(Some(WrittenData { file, bytes: self.at, digest: self.digest.digest() }))
    }
}

impl Placement for DataWriter {
    fn place(&mut self, tensor: &Tensor) -> Result<Option<Entries>, String> {
        let Some(bytes) = goes_out(self.selection, tensor) else { return Ok(None) };
        let offset = self.put(bytes).map_err(|error| format!("cannot write the data file: {error}"))?;
        Ok(Some(vec![
            ("location".into(), self.location.clone()),
            ("offset".into(), offset.to_string().into()),
            ("length".into(), bytes.len().to_string().into()),
        ]))
    }
}
