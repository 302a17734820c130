//! Waiting in the `h2` client: the engine's economical pacing (`crates/load/src/pacing/pacer.rs`) on tokio.
//!
//! The thread sleeps until a timer with nanosecond resolution fires, late on purpose by a whole number of gaps, so that several
//! requests go out in one wake-up. Sleeps end early by their usual lateness; what is left is spun. Other than in the engine, tasks
//! run whenever something has arrived, and the longest wait that is spun is a constant.

use crate::contest::Outcome;
use rustix::fd::OwnedFd;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::io;
use std::time::{Duration, Instant};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::yield_now;

/// Maximum intended lateness of a request: the engine's default tolerance without its allowance for the sleep itself.
const MAX_SLACK: Duration = Duration::from_micros(60);
/// Shortest time worth a sleep.
const MIN_SLEEP: Duration = Duration::from_micros(5);
/// Longest wait that is spun: about the CPU time of a sleep.
const MAX_SPIN: Duration = Duration::from_micros(8);
/// Steps of the estimate, which converges to a lateness that one in five sleeps stays below.
const STEP_UP: Duration = Duration::from_nanos(100);
const STEP_DOWN: Duration = Duration::from_nanos(400);

pub struct Pacer {
    timer: AsyncFd<OwnedFd>,
    slack: Duration,
    usual_lateness: Duration,
}

impl Pacer {
    /// For a constant rate, requests per second.
    pub fn new(rate: u32) -> Outcome<Self> {
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        // SAFETY: the timer is the registration's own, and stays the same descriptor until both are dropped.
        #[allow(unsafe_code)]
        let timer = unsafe { AsyncFd::register_with_interest(timer, Interest::READABLE) };
        let gap = Duration::from_secs(1) / rate;
        let gaps = (MAX_SLACK.as_nanos() / gap.as_nanos().max(1_000)) as u32;
        Ok(Self { timer: timer.map_err(io::Error::from)?, slack: gap * gaps, usual_lateness: Duration::ZERO })
    }

    /// Waits until a request that is due then may be sent: not at all if it is due already.
    pub async fn wait_until(&mut self, due: Instant) -> Outcome<()> {
        let mut now = Instant::now();
        if now >= due {
            return Ok(());
        }
        let end = due + self.slack;
        while now < end {
            let ahead = end - now;
            if ahead > self.usual_lateness + MIN_SLEEP {
                self.sleep_until(end - self.usual_lateness, now).await?;
            } else if ahead > MAX_SPIN {
                self.sleep_until(now + MIN_SLEEP, now).await?;
            } else {
                yield_now().await;
            }
            now = Instant::now();
        }
        Ok(())
    }

    async fn sleep_until(&mut self, end: Instant, now: Instant) -> Outcome<()> {
        let time = end - now;
        let it_value = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        let setting = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
        // It clears an earlier expiration, so that the timer need not be read.
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &setting)?;
        self.timer.readable().await?.clear_ready();
        if let Some(late) = Instant::now().checked_duration_since(end) {
            self.usual_lateness = if late > self.usual_lateness {
                self.usual_lateness + STEP_UP
            } else {
                self.usual_lateness.saturating_sub(STEP_DOWN)
            };
        }
        Ok(())
    }
}
