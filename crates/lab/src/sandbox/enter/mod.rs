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
use std::process::ExitCode;

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
    enter_with_ports(purpose, 0)
}

/// Like [`enter`], with this number of machine ports to forward: see [`Lab::forward_port`].
pub fn enter_with_ports(purpose: &str, ports: usize) -> Result<Entered> {
    enter_with(purpose, ports, || ())
}

/// Like [`enter`]. The inner process calls `on_machine` before it leaves the machine's network. Threads that
/// are started there stay in that network and end with the process.
pub fn enter_after(purpose: &str, on_machine: impl FnOnce()) -> Result<Entered> {
    enter_with(purpose, 0, on_machine)
}

fn enter_with(purpose: &str, ports: usize, on_machine: impl FnOnce()) -> Result<Entered> {
    match std::env::var_os(INSIDE_VARIABLE) {
        Some(directory) => inner::enter(directory.into(), ports, on_machine).map(Entered::Inside),
        None => outer::enter(purpose).map(Entered::Outside),
    }
}
