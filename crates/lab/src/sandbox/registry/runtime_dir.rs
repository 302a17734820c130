//! The directory in which labs are registered. Only its user can write to it.

use crate::Result;
use experiment::environment::EnvironmentError;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

pub const RUNTIME_VARIABLE: &str = "MESHMETER_RUNTIME_DIR";

/// The kernel limits socket paths to 107 bytes. A lab adds `/labs/<id>/` and at most 40 bytes of its own.
const MAX_PATH_BYTES: usize = 50;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum DirAccess {
    User,
    /// Also lets the lab's proxies pass, which have their own user. They reach sockets and programs but
    /// cannot list.
    Proxies,
}

impl DirAccess {
    fn mode(self) -> u32 {
        match self {
            Self::User => 0o700,
            Self::Proxies => 0o711,
        }
    }

    fn create(self, folder: &Path) -> io::Result<()> {
        fs::DirBuilder::new().mode(0o700).create(folder)?;
        fs::set_permissions(folder, fs::Permissions::from_mode(self.mode()))
    }
}

/// Creates the directory of a lab's entry, under its temporary name.
pub(super) fn create_entry(id: &str, access: DirAccess) -> Result<PathBuf> {
    let mut refused = EnvironmentError::new("make a folder for the lab", "there is no place for one");
    let mut places = candidates();
    if access == DirAccess::Proxies && !rustix::process::geteuid().is_root() {
        // Only its user may pass through a session's own directory (XDG_RUNTIME_DIR).
        places.reverse();
    }
    for runtime in places {
        match create_entry_in(&runtime, id, access) {
            Ok(entry) => return Ok(entry),
            Err(error) => {
                refused = EnvironmentError::new(format!("make the folder {}", runtime.display()), error)
                    .with_hint(format!("name another, with a short path, in {RUNTIME_VARIABLE}"));
            }
        }
    }
    Err(refused)
}

/// Directories with entries of labs.
pub(super) fn existing() -> Vec<PathBuf> {
    let labs = candidates().into_iter().map(|runtime| runtime.join("labs"));
    labs.filter(|labs| labs.parent().is_some_and(|runtime| check(runtime).is_ok()) && check(labs).is_ok())
        .collect()
}

/// Prefix of entries in the making, which are not labs yet.
pub(super) const UNFINISHED: &str = ".new-";

/// Directories of all labs.
pub(super) fn entries() -> Vec<PathBuf> {
    let entries = existing().into_iter().flat_map(fs::read_dir).flatten().flatten();
    let labs = entries.filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."));
    let mut directories: Vec<PathBuf> = labs.map(|entry| entry.path()).collect();
    directories.sort();
    directories
}

/// Candidates, best first, for directories that only the user passes through. The choice may depend on the
/// login session, so all are searched later.
fn candidates() -> Vec<PathBuf> {
    if let Some(folder) = std::env::var_os(RUNTIME_VARIABLE) {
        return vec![folder.into()];
    }
    let user = rustix::process::geteuid();
    let mut candidates = Vec::new();
    if user.is_root() {
        candidates.push(PathBuf::from("/run/meshmeter"));
    } else if let Some(folder) = std::env::var_os("XDG_RUNTIME_DIR") {
        candidates.push(Path::new(&folder).join("meshmeter"));
    }
    candidates.push(std::env::temp_dir().join(format!("meshmeter-{}", user.as_raw())));
    candidates
}

fn create_entry_in(runtime: &Path, id: &str, access: DirAccess) -> io::Result<PathBuf> {
    if !runtime.is_absolute() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "its path must be absolute"));
    }
    if runtime.as_os_str().len() > MAX_PATH_BYTES {
        return Err(io::Error::new(
            ErrorKind::InvalidInput,
            format!("its path is longer than {MAX_PATH_BYTES} bytes: no room for sockets below"),
        ));
    }
    let labs = runtime.join("labs");
    let entry = labs.join(format!("{UNFINISHED}{id}"));
    retry_if_removed(|| {
        make(runtime, access)?;
        make(&labs, access)?;
        access.create(&entry)
    })?;
    Ok(entry)
}

/// Retries: another lab that ends may remove the common directories between two steps of `create`.
pub(crate) fn retry_if_removed<T>(create: impl Fn() -> io::Result<T>) -> io::Result<T> {
    for _ in 1..8 {
        match create() {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            result => return result,
        }
    }
    create()
}

fn make(folder: &Path, access: DirAccess) -> io::Result<()> {
    match access.create(folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            check(folder)?;
            let mode = fs::symlink_metadata(folder)?.mode() & 0o777;
            // Left by an earlier lab that needed less access. A directory that the user named keeps its mode.
            if mode & access.mode() != access.mode() && std::env::var_os(RUNTIME_VARIABLE).is_none() {
                fs::set_permissions(folder, fs::Permissions::from_mode(mode | access.mode()))?;
            }
            Ok(())
        }
        result => result,
    }
}

/// Checks a directory's owner and mode. Another user's link or write access could control what root removes.
fn check(folder: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(folder)?;
    let refused = |reason: &str| Err(io::Error::new(ErrorKind::PermissionDenied, reason.to_owned()));
    if !metadata.is_dir() {
        return refused("it is not a folder");
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return refused("it belongs to another user");
    }
    if metadata.mode() & 0o022 != 0 {
        return refused("others may write to it");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_writable_by_others_is_rejected() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let open = folder.path().join("open");
        fs::create_dir(&open).expect("it is writable");
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).expect("it is ours");
        assert_eq!(check(&open).expect_err("others may write").to_string(), "others may write to it");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path(), &link).expect("it is writable");
        assert_eq!(check(&link).expect_err("a link").to_string(), "it is not a folder");
    }

    #[test]
    fn path_too_long_for_sockets_is_rejected() {
        let long = Path::new("/tmp").join("x".repeat(MAX_PATH_BYTES));
        assert_eq!(
            create_entry_in(&long, "k3x7ab", DirAccess::User).expect_err("it is too long").kind(),
            ErrorKind::InvalidInput
        );
    }
}
