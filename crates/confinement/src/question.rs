//! A program that is run for what it prints.
//!
//! It may run outside of a lab, and as an ordinary user, so it gets all namespaces here. A thread without rights can make
//! a PID namespace only together with a user namespace, which it cannot leave again. So the child makes both, starts
//! another process, which becomes the program, and ends like it.

use crate::{
    Confinement, Init, Joinable, OTHER_STEP, Rights, View, fork, has_capabilities, in_child, unshare,
    user_exists,
};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Resource, Rlimit, Signal, WaitOptions};
use rustix::thread::{CapabilitySet, UnshareFlags};
use std::ffi::CStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// User whom questions are asked as.
const NOBODY: u32 = 65534;

/// Exit status of a program whose own is unknown, as of shells that could not run one.
const UNKNOWN_STATUS: i32 = 127;

/// Has a command run confined that only prints: it sees these files beside the system's programs, has processes and a
/// network of its own, which has no interfaces, and a user without rights. If it then cannot be started,
/// [`Confinement::explain`] says why.
pub fn confine_question(command: &mut Command, readable: Vec<PathBuf>) -> io::Result<Arc<Confinement>> {
    let view = View { readable, writable: Vec::new() };
    let confinement = Arc::new(Confinement::new(&view, Path::new("/"), Joinable::Nothing)?);
    let (identity, in_child_too) = (Identity::available(), Arc::clone(&confinement));
    in_child(command, move || isolate(&in_child_too, &identity));
    Ok(confinement)
}

/// Change of the command's user to one without rights.
#[derive(Clone, Debug)]
enum Identity {
    /// By a change of the user.
    Change,
    /// As our own user, in a user namespace with these maps of users and groups.
    Map([(&'static CStr, String); 3]),
}

impl Identity {
    fn available() -> Self {
        let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::SETUID | CapabilitySet::SETGID;
        if has_capabilities(needed) && user_exists(NOBODY) {
            return Self::Change;
        }
        let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        Self::Map([
            (c"/proc/self/setgroups", "deny".to_owned()),
            (c"/proc/self/uid_map", format!("{NOBODY} {user} 1")),
            (c"/proc/self/gid_map", format!("{NOBODY} {group} 1")),
        ])
    }
}

fn isolate(confinement: &Confinement, identity: &Identity) -> io::Result<()> {
    let user = enter_namespaces(identity).inspect_err(|_| confinement.report(OTHER_STEP))?;
    confinement.enter()?;
    Rights { user, keep: CapabilitySet::empty() }.apply()?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    confinement.filter_system_calls()
}

/// Returns in a process of new namespaces, with the user to change to.
fn enter_namespaces(identity: &Identity) -> io::Result<Option<u32>> {
    let namespaces = UnshareFlags::NEWNET | UnshareFlags::NEWPID;
    let user = match identity {
        Identity::Change => {
            unshare(namespaces)?;
            Some(NOBODY)
        }
        Identity::Map(maps) => {
            unshare(namespaces | UnshareFlags::NEWUSER)?;
            for (file, content) in maps {
                let file = rustix::fs::open(*file, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
                rustix::io::write(&file, content.as_bytes())?;
            }
            None
        }
    };
    become_program()?;
    Ok(user)
}

/// Returns in the second process of the new PID namespace. Its parent waits for it and ends like it.
fn become_program() -> io::Result<()> {
    // So that the parent ends if ours does, and its first process and the program with it.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // The parent repeats a program's end by a signal, which must not leave a dump of this process.
    rustix::process::setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    let init = Init::start()?;
    match fork()? {
        None => Ok(()),
        Some(program) => {
            // The starter waits for one of them to be closed.
            init.close_other_files();
            end_like(program)
        }
    }
}

/// Ends this process as that child ends.
#[allow(unsafe_code)]
fn end_like(child: Pid) -> ! {
    let status = loop {
        match rustix::process::waitpid(Some(child), WaitOptions::empty()) {
            Ok(Some((_, status))) if !status.stopped() => break Some(status),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => break None,
        }
    };
    if let Some(signal) = status.and_then(|status| status.terminating_signal()) {
        // SAFETY: installs no handler, and signals this process. The handlers of our program are copied.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::kill(libc::getpid(), signal);
        }
    }
    let code = status.and_then(|status| status.exit_status()).unwrap_or(UNKNOWN_STATUS);
    // SAFETY: ends the process without running anything of the copied one.
    unsafe { libc::_exit(code) }
}
