//! Privileges of a lab, and unshare(2).

use rustix::thread::{CapabilitySet, UnshareFlags};
use std::io;

#[derive(Clone, Copy, Debug, Eq, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Privileges {
    Root,
    /// Those of an ordinary user, in the lab's own user namespace.
    UserNamespace,
}

impl Privileges {
    /// Privileges of a lab that this process makes.
    pub(crate) fn available() -> Self {
        let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN;
        let available = rustix::thread::capabilities(None);
        if available.is_ok_and(|sets| sets.effective.contains(needed)) {
            Self::Root
        } else {
            Self::UserNamespace
        }
    }

    /// `root` or `user-namespace`, as in `host.json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::UserNamespace => "user-namespace",
        }
    }
}

/// unshare(2) for namespaces, but never for the table of open files.
#[allow(unsafe_code)]
pub(crate) fn unshare(namespaces: UnshareFlags) -> io::Result<()> {
    assert!(!namespaces.intersects(UnshareFlags::FILES), "the table of open files stays shared");
    // SAFETY: unshare is unsafe only where it unshares the table of open files, which was just ruled out.
    unsafe { rustix::thread::unshare_unsafe(namespaces) }?;
    Ok(())
}
