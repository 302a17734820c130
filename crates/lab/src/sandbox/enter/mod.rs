//! Running a command inside its own lab.
//!
//! [`enter`] splits the command into two processes. The **outer** process is the one that the user started.
//! It records the lab in the registry, creates a PID namespace (and, for an ordinary user, a user namespace),
//! and starts the same command again as that namespace's first process. Then it waits for it, forwards
//! signals, and removes what the kernel does not. The **inner** process carries on with the command: it holds
//! the lab's own network and mount namespaces and everything in them.
//!
//! With this, the kernel guarantees that nothing is left behind. When the inner process ends, by itself or by
//! `kill -9`, the kernel kills every process of its PID namespace and frees its networks and mounts. The
//! inner process also ends when the outer one does. Only cgroups and the registry's directory can outlive a
//! `kill -9` of both, and those are recorded before they are created. See
//! `docs/decisions/0002-lab-namespaces.md`.

mod inner;
mod outer;

use self::inner::INSIDE_VARIABLE;
use crate::Result;
use crate::sandbox::lab::Lab;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitCode, ExitStatus};

#[derive(Debug)]
pub enum Entered {
    Inside(Lab),
    /// The outer process. The inner one has ended with this status and nothing of the lab remains; exit with
    /// it.
    Outside(ExitCode),
}

/// Enters a new lab. Must be called before any thread is started: only a single-threaded process can create a
/// user namespace. `meshmeter lab status` shows `purpose`.
pub fn enter(purpose: &str) -> Result<Entered> {
    enter_after(purpose, || ())
}

/// Like [`enter`]. The inner process calls `on_machine` before it leaves the machine's network. Sockets and
/// threads that are created there stay in that network; threads end with the process.
pub fn enter_after(purpose: &str, on_machine: impl FnOnce()) -> Result<Entered> {
    match std::env::var_os(INSIDE_VARIABLE) {
        Some(directory) => inner::enter(directory.into(), on_machine).map(Entered::Inside),
        None => outer::enter(purpose).map(Entered::Outside),
    }
}

/// True in the inner process, which [`enter`] starts.
pub fn is_inside() -> bool {
    std::env::var_os(INSIDE_VARIABLE).is_some()
}

/// Exit code as shells report it: the command's status, or 128 + the number of the signal that ended it.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    u8::try_from(code).unwrap_or(u8::MAX)
}
