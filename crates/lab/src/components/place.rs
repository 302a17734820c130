//! The folder of components while something is installed: one installation at a time, each put into place in one step.

use experiment::environment::EnvironmentError;
use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Folders that are being filled begin with this.
const UNFINISHED_PREFIX: &str = ".installing-";

/// How long to wait for another installation into the same folder: a whole one, on a slow machine.
const LOCK_LIMIT: Duration = Duration::from_secs(3600);

/// The folder of components, held by this process alone.
pub(super) struct Place {
    folder: PathBuf,
    /// The lock ends with the file's descriptor, however this process ends.
    _lock: File,
}

impl Place {
    /// Makes the folder where it is absent, waits for another installation to end, and removes what killed ones left.
    /// `waiting` is called while there is another; where it gives false, this ends.
    ///
    /// # Errors
    /// Where the folder cannot be written, or the other installation does not end.
    pub(super) fn take(folder: &Path, waiting: &mut dyn FnMut() -> bool) -> Result<Self, EnvironmentError> {
        let in_folder = |operation: &'static str| {
            move |error: io::Error| EnvironmentError::new(format!("{operation} {}", folder.display()), error)
        };
        fs::create_dir_all(folder).map_err(in_folder("create the components folder"))?;
        let lock = lock(folder, waiting).map_err(in_folder("lock the components folder"))?;
        remove_unfinished(folder).map_err(in_folder("clear unfinished installations from"))?;
        Ok(Self { folder: folder.to_owned(), _lock: lock })
    }

    /// A folder to fill, which goes with its owner.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub(super) fn unfinished(&self) -> Result<TempDir, EnvironmentError> {
        tempfile::Builder::new().prefix(UNFINISHED_PREFIX).tempdir_in(&self.folder).map_err(|error| {
            EnvironmentError::new(format!("create a folder in {}", self.folder.display()), error)
        })
    }

    /// Gives a filled folder its final name. What has that name makes way in the same step, so that there is never nothing.
    ///
    /// # Errors
    /// Where the folders cannot be renamed, or the old one cannot be removed.
    pub(super) fn put(&self, filled: &Path, package: &Path) -> Result<(), EnvironmentError> {
        let put = || {
            if !package.exists() {
                return fs::rename(filled, package);
            }
            renameat_with(CWD, filled, CWD, package, RenameFlags::EXCHANGE)?;
            fs::remove_dir_all(filled)
        };
        put().map_err(|error| EnvironmentError::new(format!("put into place {}", package.display()), error))
    }
}

fn lock(folder: &Path, waiting: &mut dyn FnMut() -> bool) -> io::Result<File> {
    let file = File::create(folder.join(".lock"))?;
    let deadline = Instant::now() + LOCK_LIMIT;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < deadline => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "another installation does not end"));
            }
            Err(error) => return Err(error.into()),
        }
        if !waiting() {
            return Err(io::Error::new(
                io::ErrorKind::Interrupted,
                "interrupted while another installation runs",
            ));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Under the lock nobody else is installing: such folders are what a killed installation left.
fn remove_unfinished(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED_PREFIX) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(folder: &Path) -> Place {
        Place::take(folder, &mut || panic!("nobody else installs")).unwrap()
    }

    #[test]
    fn what_a_killed_installation_left_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let left = folder.path().join(".installing-killed/go");
        fs::create_dir_all(&left).unwrap();
        take(folder.path());
        assert!(!left.exists());
    }

    #[test]
    fn a_package_takes_the_place_of_an_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let place = take(folder.path());
        let package = folder.path().join("etcd-3.6.8");
        for content in ["old", "new"] {
            let unfinished = place.unfinished().unwrap();
            let filled = unfinished.path().join("package");
            fs::create_dir(&filled).unwrap();
            fs::write(filled.join("etcd"), content).unwrap();
            place.put(&filled, &package).unwrap();
            assert_eq!(fs::read_to_string(package.join("etcd")).unwrap(), content);
            assert!(!filled.exists());
        }
    }

    #[test]
    fn a_second_installation_waits_until_it_is_told_to_stop() {
        let folder = tempfile::tempdir().unwrap();
        let _first = take(folder.path());
        let mut waited = 0;
        let second = Place::take(folder.path(), &mut || {
            waited += 1;
            waited < 2
        });
        assert!(second.is_err_and(|error| error.to_string().contains("lock the components folder")));
        assert_eq!(waited, 2);
    }
}
