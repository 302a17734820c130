//! The timer that ends a wait. It stays armed across waits until its deadline changes.
//!
//! A timeout passed to each wait would be programmed when the wait begins and cancelled when an event ends
//! it. On a virtual machine each of these can be a hypervisor call: several microseconds, of which the
//! cancellation would fall between a response and its reading. docs/decisions/0006-pacing.md has figures.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use std::io;
use std::time::Duration;

/// Deadlines this close to each other count as equal: the caller read its "now" a little earlier than we do.
const TOLERANCE: Duration = Duration::from_micros(2);

/// A timer that ends waits.
pub(super) struct WakeTimer {
    timer: OwnedFd,
    /// Deadline, by the monotonic clock.
    armed: Option<Duration>,
}

impl WakeTimer {
    /// Creates a disarmed timer. Its descriptor must be watched for readability, edge-triggered.
    pub(super) fn new() -> io::Result<Self> {
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        Ok(Self { timer, armed: None })
    }

    /// Arms the timer to expire after this time; does nothing if it is already armed for then. Arming clears
    /// an earlier expiration, so the descriptor need not be read.
    pub(super) fn set(&mut self, after: Duration) -> io::Result<()> {
        let now = clock_gettime(ClockId::Monotonic);
        let now = Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32);
        let wanted = now.saturating_add(after);
        if self.armed.is_some_and(|armed| armed.abs_diff(wanted) <= TOLERANCE) {
            return Ok(());
        }
        let it_value = Timespec {
            tv_sec: i64::try_from(wanted.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(wanted.subsec_nanos()),
        };
        let setting = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &setting)?;
        self.armed = Some(wanted);
        Ok(())
    }

    /// Records that the timer has expired.
    pub(super) fn rang(&mut self) {
        self.armed = None;
    }
}

impl AsFd for WakeTimer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}
