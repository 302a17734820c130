//! Confines a program that comes from a registry or an image: it sees a file system of its own with what it
//! needs of the machine's, its own processes only, and has no rights beyond its task.
//!
//! [`Confinement`] confines a process of a lab; the lab provides its network and its user. [`confine_question`]
//! confines a program that is run for its output only, such as its version, without a network, inside or
//! outside of a lab. See `docs/decisions/0026-confinement.md`.

// No field here is part of a contract; a doc comment that repeats the name would only add noise.
#![allow(missing_docs)]

mod init;
mod question;
mod rights;
mod root;
mod system_calls;

pub use init::Init;
pub use question::confine_question;
pub use rights::{Rights, has_capabilities, user_exists};
pub use root::View;
pub use system_calls::{Joinable, SystemCallFilter};

use root::Root;
use rustix::fs::{Mode, OFlags};
use rustix::process::Pid;
use rustix::thread::{LinkNameSpaceType, UnshareFlags};
use std::io::{self, PipeReader, PipeWriter, Read as _};
use std::os::fd::{AsFd as _, RawFd};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command};

/// A prepared confinement. It is used in a child between fork and exec, where its methods make only system
/// calls, and in the parent afterwards to learn what failed.
#[derive(Debug)]
pub struct Confinement {
    root: Root,
    filter: SystemCallFilter,
    /// From the child to the parent: the number of the step that failed.
    failed_step: (PipeReader, PipeWriter),
}

/// In place of the number of a step of [`Root`].
const OTHER_STEP: u16 = u16::MAX;

impl Confinement {
    /// `directory` becomes the working directory.
    pub fn new(view: &View, directory: &Path, joinable: Joinable) -> io::Result<Self> {
        let failed_step = io::pipe()?;
        // The parent also has the writing end, so the pipe never ends for it.
        rustix::io::ioctl_fionbio(&failed_step.0, true)?;
        let filter = SystemCallFilter::new(joinable);
        Ok(Self { root: Root::new(view, directory)?, filter, failed_step })
    }

    /// Enters the file system. Must come before rights are dropped, in a PID namespace of the process's own
    /// ([`spawn_in_pid_namespace`]): `/proc` shows that one.
    pub fn enter(&self) -> io::Result<()> {
        leave_session_keyring();
        let mut failed = OTHER_STEP;
        let entered = self.root.enter(|step| failed = u16::try_from(step).unwrap_or(OTHER_STEP));
        entered.inspect_err(|_| self.report(failed))
    }

    /// Filters system calls. Must come last.
    pub fn filter_system_calls(&self) -> io::Result<()> {
        self.filter.apply()
    }

    fn report(&self, failed_step: u16) {
        // Without it, the error alone is reported.
        let _ = rustix::io::write(&self.failed_step.1, &failed_step.to_ne_bytes());
    }

    /// For the parent, if the child could not be started: the error, with what this machine refused. Unchanged if the
    /// program itself could not be run.
    pub fn explain(&self, error: io::Error) -> io::Error {
        let mut number = [0; size_of::<u16>()];
        if (&self.failed_step.0).read_exact(&mut number).is_err() {
            return error;
        }
        let step = self.root.step(u16::from_ne_bytes(number).into());
        let step = step.unwrap_or_else(|| "make namespaces".to_owned());
        let remedy = match error.raw_os_error() {
            Some(libc::ENOSYS) => "; Linux 5.12 or newer is needed",
            _ => "",
        };
        io::Error::other(format!("it is not run, since it cannot be confined here: {step}: {error}{remedy}"))
    }
}

/// Leaves the keys of the login session, which may open file systems or network shares.
#[allow(unsafe_code)]
fn leave_session_keyring() {
    // SAFETY: takes no memory. Kernels without keys reject it, and then there is nothing to leave.
    unsafe { libc::syscall(libc::SYS_keyctl, libc::KEYCTL_JOIN_SESSION_KEYRING, 0) };
}

/// Starts a command in a PID namespace of its own, with a first process that must be kept until the command has ended.
/// Processes that the command leaves behind end with it.
pub fn spawn_in_pid_namespace(command: &mut Command) -> io::Result<(Child, Init)> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let own = rustix::fs::open("/proc/thread-self/ns/pid", flags, Mode::empty())?;
    unshare(UnshareFlags::NEWPID)?;
    let started = Init::start().and_then(|init| Ok((command.spawn()?, init)));
    // Otherwise this thread could start no other threads, and its next child would join the same namespace.
    let own_type = Some(LinkNameSpaceType::ProcessID);
    let returned = rustix::thread::move_into_link_name_space(own.as_fd(), own_type);
    let (mut child, init) = started?;
    if let Err(error) = returned {
        child.kill()?;
        child.wait()?;
        return Err(error.into());
    }
    Ok((child, init))
}

/// fork(2). Returns the child's PID in the parent, and nothing in the child. The child may only make system calls if this
/// process has other threads (signal-safety(7)).
#[allow(unsafe_code)]
fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: the callers within this crate make only system calls in the child.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid)),
    }
}

/// For a process that is only a copy of another one, whose files it would otherwise keep open.
#[allow(unsafe_code)]
fn close_all_files_but(kept: RawFd) {
    let kept = kept.cast_unsigned();
    // SAFETY: the process uses no other file any more. The kernel rejects a range that ends before it begins. musl has no
    // function for the call.
    unsafe {
        libc::syscall(libc::SYS_close_range, 0, kept.wrapping_sub(1), 0);
        libc::syscall(libc::SYS_close_range, kept + 1, u32::MAX, 0);
    }
}

/// Runs `step` in the child between fork and exec. It must make system calls only: no allocation, no locks.
#[allow(unsafe_code)]
pub fn in_child(command: &mut Command, step: impl FnMut() -> io::Result<()> + Send + Sync + 'static) {
    // SAFETY: the callers' steps make only system calls on values prepared beforehand, which is what is allowed between
    // fork and exec in a process with other threads (signal-safety(7)).
    unsafe {
        command.pre_exec(step);
    }
}

/// unshare(2) for namespaces, but never for the table of open files.
#[allow(unsafe_code)]
pub fn unshare(namespaces: UnshareFlags) -> io::Result<()> {
    assert!(!namespaces.intersects(UnshareFlags::FILES), "the table of open files stays shared");
    // SAFETY: unshare is unsafe only where it unshares the table of open files, which was just ruled out.
    unsafe { rustix::thread::unshare_unsafe(namespaces) }?;
    Ok(())
}
