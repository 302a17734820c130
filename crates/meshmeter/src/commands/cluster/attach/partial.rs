//! The directory in which a copy of a run grows, beside its place. The directory itself is locked, so that two
//! attaches with one place do not delete each other's copy.

use crate::commands::report::folder_failure;
use crate::failure::Failure;
use report::folder::{Existing, RunFolder};
use rustix::fs::{Mode, OFlags};
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// Removed when it is dropped.
#[derive(Debug)]
pub(super) struct PartialCopy {
    path: PathBuf,
    _lock: File,
}

impl PartialCopy {
    /// Creates an empty directory beside `out`. An attempt that was killed may have left one.
    pub(super) fn begin(out: &Path) -> Result<Self, Failure> {
        let path = beside(out);
        let failed = |error: io::Error| {
            Failure::environment(&error).about(&format!("copy a run to {}", path.display()))
        };
        loop {
            let Some(lock) = open(&path).map_err(failed)? else { continue };
            match lock.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(in_use(out)),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
            // Another attach may have removed it between the two steps.
            if is_at(&lock, &path) {
                clear(&path).map_err(failed)?;
                return Ok(Self { path, _lock: lock });
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Moves the files of the run to `out`. Returns false if there are none.
    pub(super) fn move_to(&self, out: &Path, existing: Existing) -> Result<bool, Failure> {
        if fs::read_dir(&self.path).is_ok_and(|mut entries| entries.next().is_none()) {
            return Ok(false);
        }
        let folder = RunFolder::create(out, existing).map_err(folder_failure)?;
        folder.take_over(&self.path).map_err(folder_failure)?;
        Ok(true)
    }
}

impl Drop for PartialCopy {
    fn drop(&mut self) {
        // The next attempt removes what is left.
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn in_use(out: &Path) -> Failure {
    Failure::usage(format!("another `meshmeter cluster attach` copies a run to {}", out.display()))
        .with_hint("end it, or name another directory with --out")
}

/// A directory on the same file system.
fn beside(out: &Path) -> PathBuf {
    let mut name = out.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    out.with_file_name(name)
}

/// Creates and opens the directory. `None` if it was removed in between.
fn open(path: &Path) -> io::Result<Option<File>> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = match rustix::fs::open(path, flags, Mode::empty()) {
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        opened => File::from(opened?),
    };
    if folder.metadata()?.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to another user"));
    }
    Ok(Some(folder))
}

/// True if the open directory is still the one at this path.
fn is_at(folder: &File, path: &Path) -> bool {
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let opened = folder.metadata().map(identity);
    let found = fs::symlink_metadata(path).map(identity);
    matches!((opened, found), (Ok(opened), Ok(found)) if opened == found)
}

fn clear(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use report::folder::{EXPERIMENT_FILE, TRIALS_FILE};

    fn copied(out: &Path) -> PartialCopy {
        let partial = PartialCopy::begin(out).unwrap();
        fs::create_dir(partial.path().join("logs")).unwrap();
        fs::write(partial.path().join("logs/a.log"), "new").unwrap();
        fs::write(partial.path().join(EXPERIMENT_FILE), "new").unwrap();
        partial
    }

    #[test]
    fn earlier_run_is_replaced_and_foreign_files_stay() {
        let root = tempfile::tempdir().unwrap();
        let out = root.path().join("run");
        fs::create_dir_all(out.join("logs")).unwrap();
        for name in ["thesis.tex", "logs/old.log", EXPERIMENT_FILE, TRIALS_FILE] {
            fs::write(out.join(name), "old").unwrap();
        }
        let kept = copied(&out).move_to(&out, Existing::Keep).unwrap_err();
        assert!(format!("{kept:?}").contains("already holds a run"), "{kept:?}");
        assert!(copied(&out).move_to(&out, Existing::Replace).unwrap());
        let text = |name: &str| fs::read_to_string(out.join(name)).unwrap();
        assert_eq!(["thesis.tex", "logs/a.log", EXPERIMENT_FILE].map(text), ["old", "new", "new"]);
        assert!(!out.join("logs/old.log").exists());
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1, "the partial copy is removed");
    }

    #[test]
    fn second_copy_to_one_place_is_refused_and_changes_nothing() {
        let root = tempfile::tempdir().unwrap();
        let out = root.path().join("run");
        let first = copied(&out);
        let error = PartialCopy::begin(&out).unwrap_err();
        assert!(format!("{error:?}").contains("another `meshmeter cluster attach`"), "{error:?}");
        assert!(first.move_to(&out, Existing::Keep).unwrap());
        drop(first);
        assert_eq!(fs::read_to_string(out.join(EXPERIMENT_FILE)).unwrap(), "new");
        PartialCopy::begin(&out).unwrap();
    }

    #[test]
    fn killed_copies_are_cleared_and_links_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let (out, partial) = (root.path().join("run"), root.path().join("run.partial"));
        fs::create_dir_all(partial.join("logs/trial-000")).unwrap();
        fs::write(partial.join("trials.jsonl"), "half").unwrap();
        let begun = PartialCopy::begin(&out).unwrap();
        assert_eq!(fs::read_dir(begun.path()).unwrap().count(), 0);
        assert!(!begun.move_to(&out, Existing::Keep).unwrap() && !out.exists());
        drop(begun);
        fs::create_dir(root.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink("elsewhere", &partial).unwrap();
        assert!(PartialCopy::begin(&out).is_err());
    }
}
