//! A second user and group for the labs of an ordinary user, from subordinate ID ranges.
//!
//! A user namespace whose map its owner writes has one user: the owner. Two setuid programs of shadow-utils,
//! `newuidmap` and `newgidmap`, can map more: the ranges that `/etc/subuid` and `/etc/subgid` assign to the
//! owner (subuid(5)), as rootless containers use them. A lab takes one user and one group for its proxies.
//! Inside the lab they have the ID that Istio's rules expect of proxies.
//!
//! The programs must run outside of the namespace, but the process that starts them is the one that enters
//! it. So they are started before the namespace is created, behind a shell that waits for a line of input.

use crate::sandbox::redirect::PROXY_USER;
use crate::sandbox::search_path::find_program;
use nix::unistd::{Gid, Uid, User};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct NoProxyUser {
    pub reason: String,
    pub hint: String,
}

/// Maps of users and groups with one more than our own, to be written once the user namespace exists.
pub(crate) struct Mapping {
    users: Waiting,
    groups: Waiting,
}

/// A program that writes a map, behind a shell.
struct Waiting {
    program: PathBuf,
    shell: Child,
}

impl Mapping {
    pub(crate) fn prepare() -> Result<Self, NoProxyUser> {
        let (newuidmap, newgidmap) = (program("newuidmap")?, program("newgidmap")?);
        let user = Uid::current();
        let name = User::from_uid(user).ok().flatten().map_or_else(|| user.to_string(), |user| user.name);
        let first = |file: &str| {
            let text = fs::read_to_string(file).unwrap_or_default();
            first_of(&text, &name, user.as_raw()).ok_or_else(|| not_given(file, &name))
        };
        let (first_user, first_group) = (first("/etc/subuid")?, first("/etc/subgid")?);
        Ok(Self {
            users: Waiting::start(newuidmap, user.as_raw(), first_user)?,
            groups: Waiting::start(newgidmap, Gid::current().as_raw(), first_group)?,
        })
    }

    /// Writes the maps of the calling process's namespace. On failure, the user map may already have been
    /// written.
    pub(crate) fn write(mut self) -> Result<(), NoProxyUser> {
        self.users.write()?;
        self.groups.write()
    }
}

impl Waiting {
    fn start(program: PathBuf, own: u32, subordinate: u32) -> Result<Self, NoProxyUser> {
        let map =
            [std::process::id(), 0, own, 1, PROXY_USER, subordinate, 1].map(|number| number.to_string());
        let shell = Command::new("/bin/sh")
            .args(["-c", "read -r go && exec \"$@\"", "sh"])
            .arg(&program)
            .args(map)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        match shell {
            Ok(shell) => Ok(Self { program, shell }),
            Err(error) => Err(refused(&program, &error.to_string())),
        }
    }

    fn write(&mut self) -> Result<(), NoProxyUser> {
        let told = self.shell.stdin.take().map_or(Ok(()), |mut input| input.write_all(b"go\n"));
        let status = told.and_then(|()| self.shell.wait());
        let status = status.map_err(|error| refused(&self.program, &error.to_string()))?;
        if status.success() {
            return Ok(());
        }
        let said = self.shell.stderr.take().and_then(|output| io::read_to_string(output).ok());
        let said = said.as_deref().and_then(|said| said.lines().next()).unwrap_or_default().trim();
        let status = status.to_string();
        Err(refused(&self.program, if said.is_empty() { &status } else { said }))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // Without input the shell ends. If it has already ended, both calls fail or return its known status.
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

fn refused(program: &Path, reason: &str) -> NoProxyUser {
    NoProxyUser {
        reason: format!("{} refuses: {reason}", program.display()),
        hint: "it must be setuid root (or have the capability for it) on a file system that is not mounted nosuid; \
               run as root if neither is possible"
            .to_owned(),
    }
}

fn program(name: &str) -> Result<PathBuf, NoProxyUser> {
    find_program(name).ok_or_else(|| NoProxyUser {
        reason: format!("{name} is not installed, which gives an ordinary user's lab a second user"),
        hint: "install it: package `uidmap` (Debian, Ubuntu), `shadow-utils` (Fedora, RHEL), `shadow` (Arch, Alpine: \
               `shadow-subids`); or run as root"
            .to_owned(),
    })
}

fn not_given(file: &str, name: &str) -> NoProxyUser {
    NoProxyUser {
        reason: format!("{file} gives {name} no range, of which a lab's proxies would have their own user"),
        hint: format!(
            "as root: `usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {name}` (another range where that is \
             somebody else's); or run as root"
        ),
    }
}

/// First ID of the first range of a user, who is listed by name or number (subuid(5)).
fn first_of(ranges: &str, name: &str, user: u32) -> Option<u32> {
    let user = user.to_string();
    ranges.lines().find_map(|line| {
        let mut fields = line.trim().split(':');
        let owner = fields.next()?;
        let (first, count): (u32, u32) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        (count > 0 && [name, &user].contains(&owner)).then_some(first)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subordinate_range_is_found_by_name_or_number() {
        let ranges = "bob:100000:65536\nada:165536:65536\nada:300000:1\n";
        assert_eq!(first_of(ranges, "ada", 1000), Some(165_536));
        assert_eq!(first_of("1000:7:1\n", "ada", 1000), Some(7));
        assert_eq!(first_of("adam:7:1\nada:x:1\nada:5:0\nada\n\n", "ada", 1000), None);
    }

    #[test]
    fn missing_range_is_reported_with_command_that_adds_it() {
        let missing = not_given("/etc/subuid", "ada");
        assert!(missing.reason.starts_with("/etc/subuid gives ada no range"), "{}", missing.reason);
        assert!(missing.hint.contains("usermod --add-subuids 100000-165535 --add-subgids 100000-165535 ada"));
        assert!(program("no-such-program").unwrap_err().hint.contains("`uidmap`"));
    }
}
