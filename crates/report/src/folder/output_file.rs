//! Files that a command writes where its user says, or by a name of its own in a directory that its user names.

use super::FolderError;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Mode of a new file, before the process's mask.
const FILE_MODE: u32 = 0o666;
/// More links than this in a row are a loop, as for the kernel.
const MAX_LINKS: usize = 40;

/// Writes a file whole. What a path names decides how:
/// - a regular file, or nothing yet: atomically, so that a reader sees either the old or the new contents, and
///   on failure the old contents stay;
/// - anything else, such as a pipe, a terminal, `/dev/stdout` or `/dev/fd/3`: it is written to, after what it
///   has already received.
///
/// Symbolic links are followed and never replaced.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub fn write_whole(path: &Path, contents: &[u8]) -> Result<(), FolderError> {
    let written = match Place::of(path) {
        Place::Replaced(target) => replace(&target, contents),
        Place::Kept => open(path).and_then(|mut file| file.write_all(contents)),
    };
    written.map_err(|error| FolderError::write("write", path, error))
}

/// Path of a file that a command names itself, in a directory that its user names.
///
/// # Errors
/// Returns an error if it is a symbolic link: who made the directory would choose what is overwritten.
pub fn own_file(folder: &Path, name: &str) -> Result<PathBuf, FolderError> {
    let path = folder.join(name);
    if path.is_symlink() {
        let error = io::Error::other("it is a symbolic link, and would overwrite what it leads to");
        return Err(FolderError::write("write", &path, error));
    }
    Ok(path)
}

/// Opens a file for writing in pieces; an existing regular file is emptied.
///
/// # Errors
/// Returns an error if the file cannot be opened.
pub fn open(path: &Path) -> io::Result<File> {
    match (descriptor(path), Place::of(path)) {
        // What they are may be a socket, which cannot be opened by name, or a file that has text before.
        (Some(1), _) => io::stdout().as_fd().try_clone_to_owned().map(File::from),
        (Some(2), _) => io::stderr().as_fd().try_clone_to_owned().map(File::from),
        (Some(_), _) => OpenOptions::new().append(true).open(path),
        (None, Place::Kept) => OpenOptions::new().write(true).open(path),
        (None, Place::Replaced(target)) => File::create(target),
    }
}

/// Treatment of the file that a path names.
enum Place {
    /// It is a regular file, or nothing yet: this path, without links at its end, gets a new file.
    Replaced(PathBuf),
    /// It is written to as it is.
    Kept,
}

impl Place {
    fn of(path: &Path) -> Self {
        let is_file = fs::metadata(path).map_or_else(
            |error| error.kind() == io::ErrorKind::NotFound,
            |metadata| metadata.is_file() && descriptor(path).is_none(),
        );
        match behind_links(path) {
            Some(target) if is_file => Self::Replaced(target),
            _ => Self::Kept,
        }
    }
}

/// The path at the end of a chain of links, whether or not there is anything. `None` for a loop.
fn behind_links(path: &Path) -> Option<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&path) {
            // An absolute target replaces the folder.
            Ok(target) => path = path.parent().unwrap_or(Path::new("")).join(target),
            Err(_) => return Some(path),
        }
    }
    None
}

/// The number of the open file of this process that a path names, by links such as `/dev/stdout` too.
fn descriptor(path: &Path) -> Option<u32> {
    let own = fs::canonicalize("/proc/self/fd").ok()?;
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if fs::canonicalize(folder.unwrap_or(Path::new("."))).is_ok_and(|folder| folder == own) {
            return path.file_name()?.to_str()?.parse().ok();
        }
        let target = fs::read_link(&path).ok()?;
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    None
}

/// Replaces a file by one with other contents, or makes it.
fn replace(target: &Path, contents: &[u8]) -> io::Result<()> {
    let mut part = part_of(target)?;
    part.write_all(contents)?;
    part.as_file().sync_all()?;
    part.persist(target).map(drop).map_err(|error| error.error)
}

/// A new file beside `target`, to be filled and moved there.
pub(super) fn part_of(target: &Path) -> io::Result<NamedTempFile> {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
    // A name that nobody can guess, and put a link at, where others may write too.
    tempfile::Builder::new()
        .prefix(".")
        .suffix(".part")
        .permissions(Permissions::from_mode(FILE_MODE))
        .tempfile_in(folder.unwrap_or(Path::new(".")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn is_link(path: &Path) -> bool {
        fs::symlink_metadata(path).unwrap().is_symlink()
    }

    #[test]
    fn links_and_devices_are_written_to_and_not_replaced() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        symlink("/dev/null", at("device")).unwrap();
        write_whole(&at("device"), b"text").unwrap();
        let error = write_whole(Path::new("/dev/full"), b"text").unwrap_err();
        assert!(error.to_string().contains("/dev/full"), "{error}");
        fs::write(at("file"), "old").unwrap();
        symlink("file", at("link")).unwrap();
        symlink("link", at("link of link")).unwrap();
        write_whole(&at("link of link"), b"new").unwrap();
        assert_eq!(fs::read(at("file")).unwrap(), b"new");
        // A link to what is not there yet.
        symlink("later", at("dangling")).unwrap();
        write_whole(&at("dangling"), b"first").unwrap();
        assert_eq!(fs::read(at("later")).unwrap(), b"first");
        symlink("loop", at("loop")).unwrap();
        write_whole(&at("loop"), b"text").unwrap_err();
        for link in ["device", "link", "link of link", "dangling", "loop"] {
            assert!(is_link(&at(link)), "{link}");
        }
    }

    #[test]
    fn open_files_named_by_number_get_the_text_after_what_they_have() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        fs::write(&file, "before ").unwrap();
        // Opened for reading, so that writing by name opens it anew: only the number says what it is.
        let opened = OpenOptions::new().append(true).open(&file).unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&opened);
        let link = root.path().join("link");
        symlink(format!("/dev/fd/{number}"), &link).unwrap();
        for path in [PathBuf::from(format!("/proc/self/fd/{number}")), link.clone()] {
            write_whole(&path, b"after ").unwrap();
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "before after after ");
        assert!(is_link(&link));
    }

    #[test]
    fn pipe_behind_a_link_gets_the_text() {
        use std::io::Read as _;
        let root = tempfile::tempdir().unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        let link = root.path().join("stdout");
        let number = std::os::fd::AsRawFd::as_raw_fd(&writer);
        symlink(format!("/proc/self/fd/{number}"), &link).unwrap();
        write_whole(&link, b"text").unwrap();
        drop(writer);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
        assert!(is_link(&link));
    }

    #[test]
    fn failed_write_keeps_old_file() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("report.html");
        // A directory cannot be replaced by a file.
        fs::create_dir_all(file.join("old")).unwrap();
        let error = write_whole(&file, b"new").unwrap_err();
        assert!(error.to_string().contains("report.html"), "{error}");
        assert!(file.join("old").exists());
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1, "no part is left behind");
    }
}
