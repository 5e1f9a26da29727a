//! Bytes of files: large ones mapped, small ones copied; and files written beside and renamed.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use tempfile::{NamedTempFile, TempPath};
use xxhash_rust::xxh3::Xxh3;

/// From this size on a file is mapped. A mapped file that is changed by others meanwhile changes under us, so that small
/// ones, which people edit and overwrite, are copied.
pub const MAP_FROM_BYTES: u64 = 64 << 20;

/// The whole of a regular file.
pub fn read(path: &Path) -> io::Result<Bytes> {
    // Before it is opened: opening a pipe would wait for a writer.
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let file = File::open(path)?;
    if metadata.len() >= MAP_FROM_BYTES {
        // SAFETY: the mapping is read-only and private to this process. Should another process shorten the file, reading
        // ends this process (SIGBUS); should it write to it, we see other numbers. Both are accepted for large files.
        let map = unsafe { memmap2::Mmap::map(&file)? };
        return Ok(Bytes::from_owner(map));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default());
    file.take(MAP_FROM_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes.into())
}

/// The folder a file stands in, `.` when its path has none.
pub fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// A file that is being written beside the one that it will replace. It removes itself when it is dropped before it is
/// put in its place. Errors speak of the target: nobody knows the name that the file has meanwhile.
pub struct NewFile {
    temporary: NamedTempFile,
    target: PathBuf,
    /// Of the file that is there now.
    permissions: Option<fs::Permissions>,
}

impl NewFile {
    /// Begins a file in the folder of `target`.
    pub fn beside(target: &Path) -> io::Result<NewFile> {
        let permissions = fs::metadata(target).ok().map(|metadata| metadata.permissions());
        Ok(NewFile { temporary: temporary(target)?, target: target.to_owned(), permissions })
    }

    /// Where the bytes are until the file is in its place: to read them back.
    pub fn path(&self) -> &Path {
        self.temporary.path()
    }

    /// The open file.
    pub fn file(&self) -> &File {
        self.temporary.as_file()
    }

    /// Gives the file its name, with the permissions of the one that it replaces.
    pub fn put_in_place(self) -> io::Result<()> {
        if let Some(permissions) = self.permissions {
            // Not worth failing for: the content is right either way.
            self.temporary.as_file().set_permissions(permissions).ok();
        }
        self.temporary.persist(&self.target).map(drop).map_err(|error| error.error)
    }
}

// Through the file itself: the temporary file would put its own name into errors.
impl io::Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.temporary.as_file_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.temporary.as_file_mut().flush()
    }
}

impl io::Seek for NewFile {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        self.temporary.as_file_mut().seek(to)
    }
}

/// Writes a whole file: an existing one is replaced only when all bytes are there.
pub fn replace(target: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = NewFile::beside(target)?;
    io::Write::write_all(&mut file, bytes)?;
    file.put_in_place()
}

/// Moves a file out of the way; it is deleted when the result is dropped.
pub fn set_aside(path: &Path) -> io::Result<TempPath> {
    let aside = temporary(path)?.into_temp_path();
    fs::rename(path, &aside)?;
    Ok(aside)
}

fn temporary(target: &Path) -> io::Result<NamedTempFile> {
    // Renaming over a device, a pipe or a folder would take it away.
    match fs::metadata(target) {
        Ok(metadata) if metadata.is_dir() => return Err(io::Error::other("it is a folder")),
        Ok(metadata) if !metadata.is_file() => {
            return Err(io::Error::other("it is there already and is no regular file"));
        }
        _ => {}
    }
    let folder = folder_of(target);
    let mut builder = tempfile::Builder::new();
    builder.prefix(".passlens-").suffix(".tmp");
    #[cfg(unix)]
    {
        // Like any new file: what the umask leaves of rw-rw-rw-, not the private mode of temporary files.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(&folder).map_err(|error| {
        let there = folder.is_dir();
        let folder = folder.display();
        match error.kind() {
            // Folders of the system itself, such as /proc.
            io::ErrorKind::NotFound if there => {
                io::Error::other(format!("no file can be made in the folder '{folder}'"))
            }
            io::ErrorKind::NotFound => io::Error::other(format!("there is no folder '{folder}'")),
            io::ErrorKind::NotADirectory => io::Error::other(format!("'{folder}' is not a folder")),
            io::ErrorKind::PermissionDenied => {
                io::Error::other(format!("nothing may be written into the folder '{folder}'"))
            }
            // The kind alone: the full text names the temporary file.
            kind => kind.into(),
        }
    })
}

/// XXH3 of a file, read piece by piece, and its size in bytes.
pub fn digest(path: &Path) -> io::Result<(u64, u64)> {
    let mut file = File::open(path)?;
    let mut hash = Xxh3::new();
    let mut piece = vec![0u8; 1 << 20];
    let mut size = 0u64;
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok((hash.digest(), size)),
            Ok(n) => {
                hash.update(&piece[..n]);
                size += n as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_nothing_of_the_temporary_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        fs::write(at("file"), b"x").unwrap();
        for (target, says) in [
            (at("none/deep/a.onnx"), "there is no folder"),
            (at("file/a.onnx"), "is not a folder"),
            (folder.path().to_owned(), "it is a folder"),
        ] {
            let error = replace(&target, b"y").unwrap_err().to_string();
            assert!(error.contains(says) && !error.contains(".passlens-"), "{error}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_full_disk_is_told_without_the_temporary_name() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = NewFile::beside(&folder.path().join("a.onnx")).unwrap();
        // A file that is open for reading only refuses like a full disk: in `write`.
        let read_only = File::open(file.path()).unwrap();
        *file.temporary.as_file_mut() = read_only;
        let error = io::Write::write_all(&mut file, b"x").unwrap_err().to_string();
        assert!(!error.contains(".passlens-"), "{error}");
    }

    #[test]
    fn the_digest_of_a_file_is_that_of_its_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bytes");
        let bytes: Vec<u8> = (0..3_000_000u32).map(|i| (i % 251) as u8).collect();
        fs::write(&path, &bytes).unwrap();
        assert_eq!(digest(&path).unwrap(), (xxhash_rust::xxh3::xxh3_64(&bytes), 3_000_000));
    }
}
