//! Checks whether a lab's proxies can have a user of their own, 1337, as in Istio, and chooses the location
//! of that user's files.
//!
//! This needs privileges, that user in the map of the lab's user namespace (`subordinate.rs`), and
//! directories that it may pass through on the way to its own. In an ordinary user's lab, its files belong to
//! a different UID, so after `kill -9` only root could remove them. They are therefore in a tmpfs of the lab,
//! which goes with the lab.

use crate::Result;
use crate::sandbox::permission::{can_change_user, refused};
use crate::sandbox::privileges::Privileges;
use crate::sandbox::redirect::PROXY_USER;
use crate::sandbox::registry::record::Record;
use crate::sandbox::registry::runtime_dir::RUNTIME_VARIABLE;
use crate::sandbox::subordinate::NoProxyUser;
use experiment::environment::ErrorContext as _;
use rustix::mount::MountFlags;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

const FOLDER: &str = "proxies";

pub(crate) fn check(record: &Record, folder: &Path) -> Result<(), NoProxyUser> {
    if let Some(reason) = &record.no_proxy_user {
        return Err(reason.clone());
    }
    if !exists(PROXY_USER) {
        return Err(NoProxyUser {
            reason: format!("user and group {PROXY_USER} do not exist in this user namespace"),
            hint: "map more users into the container that this is, or run as root of the machine".to_owned(),
        });
    }
    if !can_change_user() {
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

/// True if this user namespace has this user and group.
pub(crate) fn exists(id: u32) -> bool {
    let mapped = |file| fs::read_to_string(file).is_ok_and(|map| is_mapped(&map, id));
    mapped("/proc/self/uid_map") && mapped("/proc/self/gid_map")
}

fn lets_others_pass(folder: &Path) -> bool {
    fs::metadata(folder).is_ok_and(|metadata| metadata.mode() & 0o001 != 0)
}

/// True if a user namespace's map contains this user or group (user_namespaces(7)).
fn is_mapped(map: &str, id: u32) -> bool {
    map.lines().any(|line| {
        let mut fields = line.split_ascii_whitespace().map(str::parse::<u64>);
        let (Some(Ok(inside)), Some(Ok(_outside)), Some(Ok(length))) =
            (fields.next(), fields.next(), fields.next())
        else {
            return false;
        };
        (inside..inside.saturating_add(length)).contains(&u64::from(id))
    })
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
    fn single_user_map_lacks_proxy_user() {
        assert!(is_mapped("         0          0 4294967295\n", PROXY_USER));
        assert!(!is_mapped("         0       1000          1\n", PROXY_USER));
        assert!(is_mapped("0 1000 1\n1337 100000 1\n", PROXY_USER));
        assert!(!is_mapped("", PROXY_USER));
    }

    #[test]
    fn private_directory_lets_no_other_user_pass() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        assert!(!lets_others_pass(folder.path()));
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o711)).unwrap();
        assert!(lets_others_pass(folder.path()) && !lets_others_pass(Path::new("/nowhere")));
    }
}
