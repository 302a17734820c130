//! Sleeps shorter than a millisecond, accurate to a few microseconds: the runtime's own timers have ticks of
//! 1 ms.
//!
//! Each worker has one kernel timer, armed for the earliest sleeper.

use super::runtime::watched;
use rustix::fd::OwnedFd;
use rustix::io;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::unix::AsyncFd;

const NS_IN_S: u64 = 1_000_000_000;
const NEVER_NS: u64 = u64::MAX;

/// A worker's timer.
#[derive(Debug)]
pub(crate) struct PreciseTimer {
    timer: AsyncFd<OwnedFd>,
    /// By due time, and a number that makes keys unique.
    sleepers: RefCell<BTreeMap<(u64, u64), Waker>>,
    next_number: Cell<u64>,
    /// Expiry of the kernel timer. Sleepers that are dropped earlier, as timeouts are, leave it unchanged.
    rings_at_ns: Cell<u64>,
}

impl PreciseTimer {
    /// Must be called within a runtime.
    pub(crate) fn new() -> std::io::Result<Self> {
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        Ok(Self {
            timer: watched(timer)?,
            sleepers: RefCell::default(),
            next_number: Cell::new(0),
            rings_at_ns: Cell::new(NEVER_NS),
        })
    }

    /// Wakes sleepers while polled.
    pub(crate) async fn run(&self) -> std::io::Result<()> {
        loop {
            let mut ready = self.timer.readable().await?;
            // Fails if the timer was re-armed since it expired.
            let _ = io::read(&self.timer, &mut [0; 8]);
            ready.clear_ready();
            self.wake();
        }
    }

    /// Waits for this long.
    pub(crate) fn sleep(&self, duration: Duration) -> PreciseSleep<'_> {
        let duration_ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let number = self.next_number.get();
        self.next_number.set(number + 1);
        PreciseSleep { timer: self, key: (now_ns().saturating_add(duration_ns), number) }
    }

    /// Wakes sleepers that are due, and arms the timer for the next one.
    fn wake(&self) {
        let mut sleepers = self.sleepers.borrow_mut();
        let waiting = sleepers.split_off(&(now_ns(), u64::MAX));
        let due = std::mem::replace(&mut *sleepers, waiting);
        let next = sleepers.first_key_value().map(|((due_ns, _), _)| *due_ns);
        drop(sleepers);
        due.into_values().for_each(Waker::wake);
        self.rings_at_ns.set(NEVER_NS);
        if let Some(due_ns) = next {
            self.ring_at(due_ns);
        }
    }

    /// Arms the timer for this time, unless it expires earlier.
    fn ring_at(&self, due_ns: u64) {
        if self.rings_at_ns.get() <= due_ns {
            return;
        }
        self.rings_at_ns.set(due_ns);
        let due = Timespec {
            tv_sec: i64::try_from(due_ns / NS_IN_S).unwrap_or(i64::MAX),
            tv_nsec: (due_ns % NS_IN_S) as i64,
        };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: due };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)
            .expect("a timer can be set to any time");
    }
}

/// See [`PreciseTimer::sleep`].
#[derive(Debug)]
pub(crate) struct PreciseSleep<'t> {
    timer: &'t PreciseTimer,
    key: (u64, u64),
}

impl Future for PreciseSleep<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if now_ns() >= self.key.0 {
            return Poll::Ready(());
        }
        let mut sleepers = self.timer.sleepers.borrow_mut();
        let is_new = sleepers.insert(self.key, context.waker().clone()).is_none();
        drop(sleepers);
        if is_new {
            self.timer.ring_at(self.key.0);
        }
        Poll::Pending
    }
}

impl Drop for PreciseSleep<'_> {
    fn drop(&mut self) {
        self.timer.sleepers.borrow_mut().remove(&self.key);
    }
}

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * NS_IN_S + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::{join_all, select};
    use std::pin::pin;
    use std::time::Instant;

    /// Many concurrent sleepers, so that some start while others are due.
    #[test]
    fn sleepers_wake_on_time_and_never_early() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        runtime.block_on(async {
            let timer = PreciseTimer::new().unwrap();
            let sleepers = join_all((0..200).map(async |number| {
                for round in 0..20 {
                    let duration = Duration::from_micros((number * 37 + round * 91) % 700);
                    let started = Instant::now();
                    timer.sleep(duration).await;
                    assert!(started.elapsed() >= duration);
                }
            }));
            select(pin!(timer.run()), pin!(sleepers)).await;
        });
        // A dropped sleeper leaves nothing behind.
        runtime.block_on(async {
            let timer = PreciseTimer::new().unwrap();
            let long = timer.sleep(Duration::from_secs(3600));
            select(pin!(long), pin!(async {})).await;
            assert!(timer.sleepers.borrow().is_empty());
        });
    }
}
