//! Copies the folder of a detached run. The archive comes from a pod, so its content is not trusted: regular
//! files with the names of a run are written, and anything that no runner packs is refused.

use super::{LOST_TIMEOUT, POLL_INTERVAL};
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};
use std::thread;
use std::time::Instant;
use tar::{Archive, EntryType};

/// Maximum size of all files together.
const MAX_FOLDER_BYTES: u64 = 64 << 30;
const MAX_ENTRIES: usize = 1 << 20;
const MAX_PATH_BYTES: u64 = 4096;

/// Names that a run folder may have.
#[derive(Clone, Copy, Debug)]
pub struct FolderNames<'a> {
    pub files: &'a [&'a str],
    pub folders: &'a [&'a str],
}

impl FolderNames<'_> {
    /// True if the folder may hold a file at this path.
    fn hold(&self, path: &Path) -> bool {
        let mut components = path.components();
        let first = components.next().and_then(|first| first.as_os_str().to_str());
        let known = if components.next().is_none() { self.files } else { self.folders };
        first.is_some_and(|first| known.contains(&first))
    }
}

/// Unpacks an archive into an empty folder. Returns the paths that were left out because a run has no such
/// names.
pub(super) fn unpack(archive: impl Read, to: &Path, names: FolderNames<'_>) -> io::Result<Vec<PathBuf>> {
    let mut archive = Archive::new(archive);
    let (mut left_out, mut long_name, mut total_bytes) = (Vec::new(), None, 0_u64);
    // Raw, since the library would otherwise keep names of any size in memory.
    for (number, entry) in archive.entries()?.raw(true).enumerate() {
        let mut entry = entry?;
        if number == MAX_ENTRIES {
            return Err(refused(&format!("it has more than {MAX_ENTRIES} entries")));
        }
        let entry_type = entry.header().entry_type();
        if entry_type == EntryType::GNULongName {
            long_name = Some(read_name(&mut entry)?);
            continue;
        }
        let name = long_name.take().unwrap_or_else(|| entry.path_bytes().into_owned());
        let path = relative(&name)?;
        let is_file = match entry_type {
            EntryType::Regular => true,
            EntryType::Directory => false,
            other => return Err(refused(&format!("{} is of the kind {other:?}", path.display()))),
        };
        let size = entry.header().entry_size()?;
        total_bytes = total_bytes.saturating_add(size);
        if total_bytes > MAX_FOLDER_BYTES {
            return Err(refused(&format!("{} exceeds {MAX_FOLDER_BYTES} bytes", path.display())));
        }
        if !is_file {
            // Those that hold files are created with them.
        } else if names.hold(&path) {
            write_file(&mut entry, size, &to.join(&path))?;
        } else {
            left_out.push(path);
        }
    }
    Ok(left_out)
}

fn read_name(entry: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut name = Vec::new();
    entry.take(MAX_PATH_BYTES + 1).read_to_end(&mut name)?;
    if name.len() as u64 > MAX_PATH_BYTES {
        return Err(refused("it has a name that no file can have"));
    }
    name.truncate(name.iter().position(|byte| *byte == 0).unwrap_or(name.len()));
    Ok(name)
}

fn relative(name: &[u8]) -> io::Result<PathBuf> {
    let path = Path::new(OsStr::from_bytes(name));
    let mut components = path.components();
    if components.all(|component| matches!(component, Component::Normal(_) | Component::CurDir)) {
        return Ok(path.components().filter(|component| *component != Component::CurDir).collect());
    }
    Err(refused(&format!("{} leads out of the folder", path.display())))
}

/// Writes a file that must not exist yet.
fn write_file(content: &mut impl Read, size: u64, path: &Path) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = match OpenOptions::new().write(true).create_new(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(refused(&format!("{} is in it twice", path.display())));
        }
        opened => opened?,
    };
    if io::copy(content, &mut file)? == size {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::UnexpectedEof, format!("the archive ends within {}", path.display())))
}

fn refused(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the runner sent no archive of a run: {reason}"))
}

/// An archive that is read on after a broken connection.
pub(super) struct Resumed<'a, R> {
    /// Opens the archive at a byte.
    open: &'a dyn Fn(u64) -> io::Result<R>,
    is_stopped: &'a dyn Fn() -> bool,
    position: u64,
    current: Option<R>,
    failing_since: Option<Instant>,
}

impl<'a, R: Read> Resumed<'a, R> {
    pub(super) fn new(open: &'a dyn Fn(u64) -> io::Result<R>, is_stopped: &'a dyn Fn() -> bool) -> Self {
        Self { open, is_stopped, position: 0, current: None, failing_since: None }
    }

    fn read_once(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.current.is_none() {
            self.current = Some((self.open)(self.position)?);
        }
        self.current.as_mut().map_or(Ok(0), |current| current.read(buffer))
    }
}

impl<R: Read> Read for Resumed<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if (self.is_stopped)() {
                return Err(io::Error::other("it was stopped; the results are kept in the cluster"));
            }
            match self.read_once(buffer) {
                Ok(length) => {
                    self.position += length as u64;
                    self.failing_since = None;
                    return Ok(length);
                }
                Err(error) => {
                    self.current = None;
                    if self.failing_since.get_or_insert_with(Instant::now).elapsed() > LOST_TIMEOUT {
                        return Err(error);
                    }
                    thread::sleep(POLL_INTERVAL);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
