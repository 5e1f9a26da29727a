//! Bytes of files: large ones mapped, small ones copied; and files written beside and renamed.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use bytes::Bytes;

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

/// A temporary file in the folder of `target`, to be renamed to it; it removes itself when dropped before.
pub fn beside(target: &Path) -> io::Result<tempfile::NamedTempFile> {
    // Renaming over a device, a pipe or a folder would take it away.
    if fs::metadata(target).is_ok_and(|m| !m.is_file()) {
        return Err(io::Error::other("it is there already and is no regular file"));
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".passlens-").suffix(".tmp");
    #[cfg(unix)]
    {
        // Like any new file: what the umask leaves of rw-rw-rw-, not the private mode of temporary files.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder_of(target))
}

/// Gives a new file the permissions of the one that it replaces.
pub fn keep_mode(old: &Path, new: &File) {
    if let Ok(metadata) = fs::metadata(old) {
        // Not worth failing for: the content is right either way.
        new.set_permissions(metadata.permissions()).ok();
    }
}
