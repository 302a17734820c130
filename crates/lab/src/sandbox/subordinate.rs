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
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct NoProxyUser {
    pub reason: String,
    pub hint: String,
}

/// A user and group that may be mapped in addition to our own.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Subordinate {
    user: u32,
    group: u32,
    newuidmap: PathBuf,
    newgidmap: PathBuf,
}

/// Both maps, to be written once the user namespace exists.
pub(crate) struct Mapping {
    users: Waiting,
    groups: Waiting,
}

struct Waiting {
    program: PathBuf,
    shell: Child,
}

impl Subordinate {
    pub(crate) fn find() -> Result<Self, NoProxyUser> {
        let (newuidmap, newgidmap) = (program("newuidmap")?, program("newgidmap")?);
        let user = rustix::process::getuid().as_raw();
        let names = names_of(&fs::read_to_string("/etc/passwd").unwrap_or_default(), user);
        let first = |file: &str| {
            let text = fs::read_to_string(file).unwrap_or_default();
            first_of(&text, &names, user).ok_or_else(|| not_given(file, &names, user))
        };
        Ok(Self { user: first("/etc/subuid")?, group: first("/etc/subgid")?, newuidmap, newgidmap })
    }

    pub(crate) fn prepare(self) -> io::Result<Mapping> {
        let process = std::process::id();
        let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
        Ok(Mapping {
            users: Waiting::start(self.newuidmap, process, user, self.user)?,
            groups: Waiting::start(self.newgidmap, process, group, self.group)?,
        })
    }
}

impl Mapping {
    /// Writes the maps of the calling process's namespace. On failure, the user map may already have been
    /// written.
    pub(crate) fn write(mut self) -> Result<(), NoProxyUser> {
        self.users.write()?;
        self.groups.write()
    }
}

impl Waiting {
    fn start(program: PathBuf, process: u32, own: u32, subordinate: u32) -> io::Result<Self> {
        let map = [process, 0, own, 1, PROXY_USER, subordinate, 1].map(|number| number.to_string());
        let shell = Command::new("/bin/sh")
            .args(["-c", "read -r go && exec \"$@\"", "sh"])
            .arg(&program)
            .args(map)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        Ok(Self { program, shell })
    }

    fn write(&mut self) -> Result<(), NoProxyUser> {
        let refused = |reason: String| {
            NoProxyUser {
            reason: format!("{} refuses: {reason}", self.program.display()),
            hint: "it must be setuid root (or have the capability for it) on a file system that is not mounted nosuid; \
                   run as root where that cannot be had"
                .to_owned(),
        }
        };
        let told = self.shell.stdin.take().map_or(Ok(()), |mut input| input.write_all(b"go\n"));
        let status = told.and_then(|()| self.shell.wait()).map_err(|error| refused(error.to_string()))?;
        if status.success() {
            return Ok(());
        }
        let said = self.shell.stderr.take().and_then(|output| io::read_to_string(output).ok());
        let said = said.as_deref().and_then(|said| said.lines().next()).unwrap_or_default().trim();
        Err(refused(if said.is_empty() { status.to_string() } else { said.to_owned() }))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // Without input the shell ends. If it has already ended, both calls fail or return its known status.
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
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

fn not_given(file: &str, names: &[String], user: u32) -> NoProxyUser {
    let name = names.first().cloned().unwrap_or_else(|| user.to_string());
    NoProxyUser {
        reason: format!("{file} gives {name} no range, of which a lab's proxies would have their own user"),
        hint: format!(
            "as root: `usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {name}` (another range where that is \
             somebody else's); or run as root"
        ),
    }
}

fn names_of(passwd: &str, user: u32) -> Vec<String> {
    let user = user.to_string();
    let name = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == user).then(|| name.to_owned())
    };
    passwd.lines().filter_map(name).collect()
}

/// First ID of the first range of a user, who is listed by name or number (subuid(5)).
fn first_of(ranges: &str, names: &[String], user: u32) -> Option<u32> {
    let user = user.to_string();
    ranges.lines().find_map(|line| {
        let mut fields = line.trim().split(':');
        let owner = fields.next()?;
        let (first, count): (u32, u32) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        (count > 0 && (owner == user || names.iter().any(|name| name == owner))).then_some(first)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subordinate_range_is_found_by_name_or_number() {
        let names = names_of("root:x:0:0::/root:/bin/sh\nada:x:1000:1000::/home/ada:/bin/sh\n", 1000);
        assert_eq!(names, ["ada"]);
        let ranges = "bob:100000:65536\nada:165536:65536\nada:300000:1\n";
        assert_eq!(first_of(ranges, &names, 1000), Some(165_536));
        assert_eq!(first_of("1000:7:1\n", &names, 1000), Some(7));
        assert_eq!(first_of("adam:7:1\nada:x:1\nada:5:0\nada\n\n", &names, 1000), None);
    }

    #[test]
    fn missing_range_is_reported_with_command_that_adds_it() {
        let missing = not_given("/etc/subuid", &["ada".to_owned()], 1000);
        assert!(missing.reason.starts_with("/etc/subuid gives ada no range"), "{}", missing.reason);
        assert!(missing.hint.contains("usermod --add-subuids 100000-165535 --add-subgids 100000-165535 ada"));
        assert!(program("no-such-program").unwrap_err().hint.contains("`uidmap`"));
    }
}
