//! Waits for the end of a process by its pidfd.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Waits until the process has ended, at most `timeout`. Signals do not interrupt the wait.
pub fn ends_within(process: &OwnedFd, timeout: Duration) -> bool {
    let give_up_at = Instant::now() + timeout;
    loop {
        // A timeout that the kernel cannot represent means no timeout.
        let left = Timespec::try_from(give_up_at.saturating_duration_since(Instant::now())).ok();
        match poll(&mut [PollFd::new(process, PollFlags::IN)], left.as_ref()) {
            Err(Errno::INTR) => {}
            polled => return polled.expect("an open file can be polled with any timeout") > 0,
        }
    }
}
