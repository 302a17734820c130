//! Privileges of a lab.

use rustix::thread::CapabilitySet;

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
