//! Starting a run by the wall clock, so that several generators measure the same period, and what that clock
//! did meanwhile.
//!
//! The window opens at the agreed instant, with the warm-up before it: results of several generators are
//! added over their windows. Connections are opened shortly before that, so that no server closes them as
//! idle. Once the schedule has started, only the monotonic clock counts. The wall clock is read at the edges
//! of the window to report how far it moved.

use crate::clock::{Clock, Nanos};
use crate::error::LoadError;
use crate::start::StartSignal;
use jiff::{SignedDuration, Timestamp};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Interval at which the run checks whether it should stop.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Connections are opened this much earlier than necessary.
const CONNECT_LEAD: Duration = Duration::from_secs(1);
/// Poll interval for the start signal.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(5);
/// The workers get their start this long before it, because a busy machine wakes this thread and them late.
/// Until then the wall clock may still be corrected.
const TELL_LEAD: Duration = Duration::from_millis(100);
/// A run still starts if this thread wakes late by no more than this. The lateness is measured, and the
/// verdict reports it if it matters.
const MAX_START_DELAY: Duration = Duration::from_millis(500);
/// Two clocks read within this time count as read at the same instant …
const TOGETHER: Duration = Duration::from_micros(20);
/// … in at most this many attempts. On a busy machine the best of them is used.
const ATTEMPTS: usize = 10;

/// Waits until it is time to open connections, which takes at most `connecting`, for a schedule that starts
/// at `start`. Fails if the start is past.
pub(super) fn await_connecting(
    start: Timestamp,
    connecting: Duration,
    stop: &AtomicBool,
) -> Result<(), LoadError> {
    until(start)?;
    sleep_until(start, CONNECT_LEAD + connecting, stop);
    Ok(())
}

/// Waits for the instant at which the window should open, after a warm-up; `None` if the run is stopped
/// before it. Fails if the warm-up should have started long ago.
pub(super) fn await_signal(
    signal: &StartSignal,
    warmup: Duration,
    stop: &AtomicBool,
) -> Result<Option<Timestamp>, LoadError> {
    while !stop.load(Ordering::Relaxed) {
        let Some(start) = signal.received() else {
            thread::sleep(SIGNAL_INTERVAL);
            continue;
        };
        return match until(start - warmup) {
            Err(LoadError::StartMissed(late)) if late > MAX_START_DELAY => Err(LoadError::StartMissed(late)),
            _ => Ok(Some(start)),
        };
    }
    Ok(None)
}

/// Waits until shortly before `start` and returns it as a monotonic instant, which may be past on a busy
/// machine. Fails if opening the connections took until long after `start`.
pub(super) fn await_start(start: Timestamp, stop: &AtomicBool) -> Result<Instant, LoadError> {
    sleep_until(start, TELL_LEAD, stop);
    let (at, time) = read_both_clocks();
    match between(time, start) {
        Ok(ahead) => Ok(at + ahead),
        Err(late) if late <= MAX_START_DELAY => at.checked_sub(late).ok_or(LoadError::StartMissed(late)),
        Err(late) => Err(LoadError::StartMissed(late)),
    }
}

fn until(start: Timestamp) -> Result<Duration, LoadError> {
    between(Timestamp::now(), start).map_err(LoadError::StartMissed)
}

/// Time until `start`, or as `Err` the time since then.
fn between(now: Timestamp, start: Timestamp) -> Result<Duration, Duration> {
    let ahead = start.duration_since(now);
    Duration::try_from(ahead).map_err(|_| ahead.unsigned_abs())
}

/// Reads the monotonic clock and the wall clock at the same instant. If this thread were descheduled between
/// the readings, one of the clocks would seem to have been set.
fn read_both_clocks() -> (Instant, Timestamp) {
    tightest(|| {
        let before = Instant::now();
        let time = Timestamp::now();
        let apart = before.elapsed();
        (apart, (before + apart / 2, time))
    })
}

/// Returns the shortest of several attempts, or the first that took less than [`TOGETHER`].
fn tightest<T>(mut attempt: impl FnMut() -> (Duration, T)) -> T {
    let (mut least, mut best) = attempt();
    for _ in 1..ATTEMPTS {
        if least <= TOGETHER {
            break;
        }
        let (took, value) = attempt();
        if took < least {
            (least, best) = (took, value);
        }
    }
    best
}

/// Sleeps until `lead` before `start` by the wall clock, which may be set meanwhile, or until `stop` is set.
fn sleep_until(start: Timestamp, lead: Duration, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        match until(start).ok().and_then(|ahead| ahead.checked_sub(lead)) {
            None | Some(Duration::ZERO) => return,
            Some(ahead) => thread::sleep(ahead.min(POLL_INTERVAL)),
        }
    }
}

/// The wall clock next to a run's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct WallClock {
    read: Timestamp,
    at: Nanos,
}

impl WallClock {
    pub(super) fn read(clock: &Clock) -> Self {
        let (at, read) = read_both_clocks();
        Self { read, at: clock.time_of(at) }
    }

    /// Wall-clock time at which the run's clock reads `at`, assuming that the wall clock is never set.
    pub(super) fn time_of(&self, at: Nanos) -> Timestamp {
        self.read + (signed(at) - signed(self.at))
    }

    /// How much the wall clock was set or drifted since; positive is forwards.
    pub(super) fn moved_until(&self, later: &Self) -> SignedDuration {
        later.read.duration_since(self.time_of(later.at))
    }
}

fn signed(nanos: Nanos) -> SignedDuration {
    SignedDuration::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_clock_is_distinguished_from_running_clock() {
        let read: Timestamp = "2026-11-20T12:00:00Z".parse().unwrap();
        let first = WallClock { read, at: 5_000_000_000 };
        assert_eq!(first.time_of(4_000_000_000), "2026-11-20T11:59:59Z".parse().unwrap());
        let later =
            |seconds| WallClock { read: read + SignedDuration::from_secs(seconds), at: 15_000_000_000 };
        assert_eq!(first.moved_until(&later(10)), SignedDuration::ZERO);
        assert_eq!(first.moved_until(&later(7)), SignedDuration::from_secs(-3));
    }

    #[test]
    fn interrupted_clock_readings_are_rejected() {
        let of = |took_us: &[u64]| {
            let mut attempts = took_us.iter().enumerate();
            let taken = tightest(|| {
                let (number, took_us) = attempts.next().expect("no more attempts than these");
                (Duration::from_micros(*took_us), number)
            });
            (taken, attempts.count())
        };
        assert_eq!(of(&[1, 1]), (0, 1), "the first is good");
        assert_eq!(of(&[15_000, 4000, 20, 1]), (2, 1), "those before were interrupted");
        assert_eq!(of(&[90, 80, 70, 60, 50, 40, 30, 21, 22, 23, 1]), (7, 1), "a machine that never lets it");
    }

    #[test]
    fn start_missed_briefly_is_kept_and_start_long_past_is_error() {
        let stop = AtomicBool::new(false);
        let past = Timestamp::now() - SignedDuration::from_millis(200);
        let now = Instant::now();
        match await_start(past, &stop) {
            Ok(start) => assert!(start < now, "it is not put off"),
            // Simulates oversleeping.
            Err(error) => {
                assert!(matches!(error, LoadError::StartMissed(by) if by > MAX_START_DELAY), "{error}");
            }
        }
        let long_past = Timestamp::now() - SignedDuration::from_secs(1);
        assert!(matches!(await_start(long_past, &stop), Err(LoadError::StartMissed(_))));
    }

    #[test]
    fn start_in_the_past_is_error() {
        let start = Timestamp::now() - SignedDuration::from_secs(2);
        let error = await_connecting(start, Duration::ZERO, &AtomicBool::new(false)).unwrap_err();
        assert!(matches!(error, LoadError::StartMissed(by) if by >= Duration::from_secs(2)), "{error}");
    }
}
