//! Waiting for the end of a process by its file (pidfd).

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Fails with `Interrupted` if this thread handles a signal meanwhile.
pub(crate) fn has_ended_within(process: &OwnedFd, timeout: Duration) -> io::Result<bool> {
    // A timeout beyond what the kernel can represent is none.
    let timeout = Timespec::try_from(timeout).ok();
    match poll(&mut [PollFd::new(process, PollFlags::IN)], timeout.as_ref()) {
        Ok(files) => Ok(files > 0),
        Err(Errno::INTR) => Err(io::Error::new(io::ErrorKind::Interrupted, "it was interrupted")),
        Err(error) => Err(error.into()),
    }
}

/// Like [`has_ended_within`], but signals do not interrupt it.
pub(crate) fn ends_within(process: &OwnedFd, timeout: Duration) -> bool {
    let give_up_at = Instant::now() + timeout;
    loop {
        let left = give_up_at.saturating_duration_since(Instant::now());
        match has_ended_within(process, left) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            ended => return ended.expect("an open file can be polled with any timeout"),
        }
    }
}
