//! Checks whether a lab's proxies can have a user of their own, 1337, as in Istio, and chooses the location
//! of that user's files.
//!
//! This needs privileges, that user in the map of the lab's user namespace (`subordinate.rs`), and
//! directories that it may pass through on the way to its own. In an ordinary user's lab, its files belong to
//! a different UID, so after `kill -9` only root could remove them. They are therefore in a tmpfs of the lab,
//! which goes with the lab.

use crate::Result;
use crate::sandbox::permission::refused;
use crate::sandbox::privileges::Privileges;
use crate::sandbox::redirect::PROXY_USER;
use crate::sandbox::registry::record::Record;
use crate::sandbox::registry::runtime_dir::RUNTIME_VARIABLE;
use crate::sandbox::subordinate::NoProxyUser;
use confinement::{has_capabilities, user_exists};
use experiment::environment::ErrorContext as _;
use rustix::mount::MountFlags;
use rustix::thread::CapabilitySet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

const FOLDER: &str = "proxies";

pub(crate) fn check(record: &Record, folder: &Path) -> Result<(), NoProxyUser> {
    if let Some(reason) = &record.no_proxy_user {
        return Err(reason.clone());
    }
    if !user_exists(PROXY_USER) {
        return Err(NoProxyUser {
            reason: format!("user and group {PROXY_USER} do not exist in this user namespace"),
            hint: "map more users into the container that this is, or run as root of the machine".to_owned(),
        });
    }
    if !has_capabilities(CapabilitySet::SETUID | CapabilitySet::SETGID | CapabilitySet::CHOWN) {
        return Err(NoProxyUser {
            reason: "the rights to run a process as another user are missing".to_owned(),
            hint: "add the capabilities SETUID, SETGID and CHOWN to the container that this is".to_owned(),
        });
    }
    if record.privileges == Privileges::Root {
        return Ok(());
    }
    let closed = folder.ancestors().find(|folder| !lets_others_pass(folder));
    closed.map_or(Ok(()), |closed| {
        Err(NoProxyUser {
            reason: format!("proxies could not pass through {} to their files", closed.display()),
            hint: format!("name a folder that others may pass through (mode 0711) in {RUNTIME_VARIABLE}, such as one in /tmp"),
        })
    })
}

fn lets_others_pass(folder: &Path) -> bool {
    fs::metadata(folder).is_ok_and(|metadata| metadata.mode() & 0o001 != 0)
}

pub(crate) fn mount_folder(private_dir: &Path) -> Result<PathBuf> {
    let operation = "mount a file system for the proxies' files";
    let folder = private_dir.join(FOLDER);
    // Its mode becomes that of the file system mounted there.
    fs::create_dir(&folder).context(operation)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    rustix::mount::mount("meshmeter", &folder, "tmpfs", flags, c"mode=0711,size=256m")
        .map_err(|error| refused(operation, io::Error::from(error)))?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn private_directory_lets_no_other_user_pass() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        assert!(!lets_others_pass(folder.path()));
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o711)).unwrap();
        assert!(lets_others_pass(folder.path()) && !lets_others_pass(Path::new("/nowhere")));
    }
}
