//! Opens files below a directory, and none outside: the kernel refuses symbolic links and whatever leads out of it.

use report::folder::{COMPARISON_FILE, EXPERIMENT_FILE, TRIALS_FILE};
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, openat2};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

/// An open directory.
#[derive(Debug)]
pub(super) struct Folder(OwnedFd);

impl Folder {
    /// The directory that the user named, wherever it is.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::open(path, flags, Mode::empty())?))
    }

    fn beneath(&self, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
        // The kernel would follow `a/..`, which stays below but is not the name of a run.
        if path.split('/').any(|part| part == "..") {
            return Err(io::ErrorKind::NotFound.into());
        }
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        Ok(openat2(&self.0, path, flags | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty(), resolve)?)
    }

    /// A directory below; the directory itself for an empty path.
    pub(super) fn folder(&self, path: &str) -> io::Result<Self> {
        self.beneath(if path.is_empty() { "." } else { path }, OFlags::DIRECTORY).map(Self)
    }

    /// A regular file below.
    pub(super) fn file(&self, path: &str) -> io::Result<File> {
        // Opening a pipe would wait for its writer.
        let file = File::from(self.beneath(path, OFlags::NONBLOCK)?);
        if file.metadata()?.is_file() {
            Ok(file)
        } else {
            Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
        }
    }

    /// True if it is the directory of a run or a comparison, damaged ones included.
    pub(super) fn is_run(&self) -> bool {
        [EXPERIMENT_FILE, TRIALS_FILE, COMPARISON_FILE].iter().any(|name| self.file(name).is_ok())
    }

    /// Names in the directory that are text and not hidden; true for those that are directories.
    pub(super) fn names(&self) -> io::Result<Vec<(String, bool)>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.0)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if !name.starts_with('.') {
                let is_folder = match entry.file_type() {
                    // Some file systems do not tell in the directory itself.
                    FileType::Unknown => self.folder(name).is_ok(),
                    kind => kind.is_dir(),
                };
                names.push((name.to_owned(), is_folder));
            }
        }
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn nothing_outside_and_nothing_behind_a_link_is_opened() {
        let root = tempfile::tempdir().unwrap();
        let viewed = root.path().join("viewed");
        fs::create_dir_all(viewed.join("run")).unwrap();
        fs::create_dir(root.path().join("other")).unwrap();
        for file in ["secret", "other/trials.jsonl", "viewed/run/trials.jsonl"] {
            fs::write(root.path().join(file), file).unwrap();
        }
        symlink("../../secret", viewed.join("run/report.html")).unwrap();
        symlink("../other", viewed.join("link")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, viewed.join("run/host.json"), Mode::RUSR).unwrap();
        let folder = Folder::open(&viewed).unwrap();
        assert!(folder.file("run/trials.jsonl").is_ok());
        assert!(folder.folder("run").unwrap().is_run() && !folder.folder("").unwrap().is_run());
        let absolute = root.path().join("secret");
        for path in [
            "run/report.html",
            "link/trials.jsonl",
            "../secret",
            "run/../../secret",
            absolute.to_str().unwrap(),
        ] {
            assert!(folder.file(path).is_err(), "{path}");
        }
        for path in ["run", "run/host.json", "run/../run/trials.jsonl", "", "absent", "a\0b"] {
            assert!(folder.file(path).is_err(), "{path:?}");
        }
        assert!(folder.folder("link").is_err() && folder.folder("..").is_err());
        let mut names = folder.names().unwrap();
        names.sort();
        assert_eq!(names, [("link".to_owned(), false), ("run".to_owned(), true)]);
    }
}
