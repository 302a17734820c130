//! The timer that ends a wait. It stays armed from wait to wait for as long as its instant stands.
//!
//! A timeout given with each wait would be programmed when the wait begins and taken back when news ends it. On a virtual
//! machine each of these can be a call of the hypervisor: several microseconds, of which the second half would lie between an
//! answer and its reading. docs/decisions/0006-pacing.md has figures.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use std::io;
use std::time::Duration;

/// Instants so near each other are the same: the caller's "now" was read a little earlier than ours.
const TOLERANCE: Duration = Duration::from_micros(2);

/// See the module.
pub(super) struct Alarm {
    timer: OwnedFd,
    /// When it is to ring, by the monotonic clock.
    armed: Option<Duration>,
}

impl Alarm {
    /// One that is not set. Its descriptor is to be watched for being readable, edge-triggered.
    pub(super) fn new() -> io::Result<Self> {
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        Ok(Self { timer, armed: None })
    }

    /// It is to ring after this time; nothing is done where it is to ring then already. Setting it clears what it rang
    /// before: it need not be read.
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

    /// It has rung.
    pub(super) fn rang(&mut self) {
        self.armed = None;
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}
