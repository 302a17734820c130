//! Running a command inside its own lab.
//!
//! [`enter`] makes two processes of one. The **outer** process is the one that the user started. It writes the lab down
//! in the registry, makes a PID namespace (and, for an ordinary user, a user namespace), starts the same command again as
//! that namespace's first process, waits for it, passes signals on, and removes what the kernel does not. The **inner**
//! process goes on with the command: it holds the lab's own network and mount namespaces and everything in them.
//! This is what makes "nothing is left behind" a promise of the kernel and not of ours: when the inner process ends, by
//! itself or by `kill -9`, the kernel kills every process of its PID namespace and frees its networks and mounts; and it
//! ends when the outer process does. Only control groups and the registry's folder can outlive a `kill -9` of both, and
//! those are written down before they are made. See `docs/decisions/0002-lab-namespaces.md`.

mod inner;
mod outer;

use self::inner::INSIDE_VARIABLE;
use crate::Result;
use crate::sandbox::lab::Lab;
use std::process::ExitCode;

#[derive(Debug)]
pub enum Entered {
    Inside(Lab),
    /// The outer process. The inner one has ended with this status and nothing of the lab remains: exit with it.
    Outside(ExitCode),
}

/// Enters a new lab. Must be called before any thread is started: only a process of one thread can make an ordinary
/// user's namespaces. `purpose` is shown by `meshmeter lab status`.
pub fn enter(purpose: &str) -> Result<Entered> {
    enter_with_ports(purpose, 0)
}

/// Like [`enter`], with `ports` of the machine's ports to forward: see [`Lab::forward_port`].
pub fn enter_with_ports(purpose: &str, ports: usize) -> Result<Entered> {
    enter_with(purpose, ports, || ())
}

/// Like [`enter`]. The inner process calls `on_machine` before it leaves the machine's network: threads that are started
/// there stay in that network, and end with the process.
pub fn enter_after(purpose: &str, on_machine: impl FnOnce()) -> Result<Entered> {
    enter_with(purpose, 0, on_machine)
}

fn enter_with(purpose: &str, ports: usize, on_machine: impl FnOnce()) -> Result<Entered> {
    match std::env::var_os(INSIDE_VARIABLE) {
        Some(directory) => inner::enter(directory.into(), ports, on_machine).map(Entered::Inside),
        None => outer::enter(purpose).map(Entered::Outside),
    }
}
