//! User and capabilities of a process.

use rustix::process::{Gid, Uid};
use rustix::thread::{CapabilitySet, CapabilitySets};
use std::fs;
use std::io;

#[derive(Clone, Copy, Debug)]
pub struct Rights {
    /// User and group to switch to; absent if they stay the same.
    pub user: Option<u32>,
    /// Capabilities to keep.
    pub keep: CapabilitySet,
}

impl Rights {
    /// Applies them to the calling process, which can gain no others from then on. Makes only system calls.
    pub fn apply(&self) -> io::Result<()> {
        drop_from_bounding_set(self.keep)?;
        if let Some(user) = self.user {
            rustix::thread::set_thread_groups(&[])?;
            let (user, group) = (Uid::from_raw(user), Gid::from_raw(user));
            rustix::thread::set_thread_res_gid(group, group, group)?;
            rustix::thread::set_thread_res_uid(user, user, user)?;
        }
        let sets = CapabilitySets {
            effective: self.keep,
            permitted: self.keep,
            inheritable: CapabilitySet::empty(),
        };
        rustix::thread::set_capabilities(None, sets)?;
        Ok(rustix::thread::set_no_new_privs(true)?)
    }
}

/// On exec root regains everything in the bounding set, so capabilities that are not kept leave that set too.
fn drop_from_bounding_set(keep: CapabilitySet) -> io::Result<()> {
    for number in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        if keep.contains(capability) {
            continue;
        }
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // The first capability number that this kernel does not know.
            Err(rustix::io::Errno::INVAL) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// True if this process has these capabilities.
pub fn has_capabilities(needed: CapabilitySet) -> bool {
    rustix::thread::capabilities(None).is_ok_and(|sets| sets.effective.contains(needed))
}

/// True if this user namespace has this user and group.
pub fn user_exists(id: u32) -> bool {
    let mapped = |file| fs::read_to_string(file).is_ok_and(|map| is_mapped(&map, id));
    mapped("/proc/self/uid_map") && mapped("/proc/self/gid_map")
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

#[cfg(test)]
mod tests {
    use super::*;

    const PROXY_USER: u32 = 1337;

    #[test]
    fn single_user_map_lacks_proxy_user() {
        assert!(is_mapped("         0          0 4294967295\n", PROXY_USER));
        assert!(!is_mapped("         0       1000          1\n", PROXY_USER));
        assert!(is_mapped("0 1000 1\n1337 100000 1\n", PROXY_USER));
        assert!(!is_mapped("", PROXY_USER));
    }
}
