//! The first process of a PID namespace.
//!
//! The kernel drops signals that the first process of a namespace does not handle, even its own, so a program in that place
//! would not end as it means to. It is the second process instead, beside one that only reaps orphans, as in a pod of
//! Kubernetes whose containers share their processes.

use crate::{close_all_files_but, fork};
use rustix::process::{Pid, WaitOptions};
use std::io::{self, PipeReader, PipeWriter, Read as _};
use std::os::fd::AsRawFd as _;

/// A running first process. It ends when this is dropped, or when the process that has it ends, and the kernel then kills
/// all others of its namespace.
#[derive(Debug)]
pub struct Init {
    pid: Pid,
    /// Absent once it was told to end. Its reading end is the first process's.
    alive: Option<PipeWriter>,
    is_reaped: bool,
}

impl Init {
    /// Starts it in the PID namespace that the calling thread has made for its children. Makes only system calls.
    pub(crate) fn start() -> io::Result<Self> {
        let (until_closed, alive) = io::pipe()?;
        match fork()? {
            Some(pid) => Ok(Self { pid, alive: Some(alive), is_reaped: false }),
            None => run(until_closed),
        }
    }

    /// Has it end, and all processes of its namespace with it.
    pub fn end(&mut self) {
        self.alive = None;
    }

    /// Reaps it if it has ended. Returns true once it is reaped. It ends after all others of its namespace, reaped ones.
    pub fn try_reap(&mut self) -> bool {
        if !self.is_reaped {
            self.is_reaped =
                !matches!(rustix::process::waitpid(Some(self.pid), WaitOptions::NOHANG), Ok(None));
        }
        self.is_reaped
    }

    /// In the process that holds it open for another one: closes all its other files.
    pub(crate) fn close_other_files(&self) {
        if let Some(alive) = &self.alive {
            close_all_files_but(alive.as_raw_fd());
        }
    }
}

/// The first process, a copy of one that may have had other threads: it makes only system calls.
#[allow(unsafe_code)]
fn run(mut until_closed: PipeReader) -> ! {
    close_all_files_but(until_closed.as_raw_fd());
    // Handlers are copies of our program's. The kernel itself reaps children of a process that ignores SIGCHLD.
    // SAFETY: the set of signals is initialised by sigfillset, and no handler is installed.
    unsafe {
        let mut all = std::mem::MaybeUninit::uninit();
        libc::sigfillset(all.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, all.as_ptr(), std::ptr::null_mut());
        libc::signal(libc::SIGCHLD, libc::SIG_IGN);
    }
    // Shown in process lists; a failure only affects how it looks.
    let _ = rustix::thread::set_name(c"init");
    let _ = until_closed.read(&mut [0]);
    // SAFETY: ends the process without running anything of the copied one.
    unsafe { libc::_exit(0) }
}
