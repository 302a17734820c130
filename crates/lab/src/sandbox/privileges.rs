//! Privileges of a lab, and unshare(2).

use rustix::thread::UnshareFlags;
use std::io;

#[derive(Clone, Copy, Debug, Eq, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Privileges {
    Root,
    /// Those of an ordinary user, in the lab's own user namespace.
    UserNamespace,
}

impl Privileges {
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
