//! The noise floor: readings of this machine when there is nothing to measure.
//!
//! Read [`measure`]. It divides its time between four measurements (a timer, a byte over loopback, a fixed
//! piece of work, pauses of each CPU) and reads the steal time meanwhile. A difference below these figures
//! cannot be told from the machine's own noise. Not included: the path between pods (mode `none` measures it)
//! and anything under load.

mod loopback;
mod pauses;

use self::loopback::{echo, loopback_pair};
use experiment::environment::{EnvironmentError, ErrorContext as _};
use lab::observe::read_times;
use results::Floor;
use rustix::thread::{ClockId, clock_nanosleep_absolute, current_timer_slack, set_current_timer_slack};
use rustix::time::{Timespec, clock_gettime};
use statistics::pauses::nearest_rank;
use std::hint::black_box;
use std::io::{self, Read as _, Write as _};
use std::num::NonZeroU64;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Enough for about a thousand timers, so that their 99th percentile rests on ten samples, and for a second
/// of pauses.
pub const USUAL_TIME: Duration = Duration::from_millis(2500);
/// Shares of the time. They add up to 1.
const TIMER_SHARE: f64 = 0.3;
const LOOPBACK_SHARE: f64 = 0.15;
const WORK_SHARE: f64 = 0.15;
const PAUSES_SHARE: f64 = 0.4;

/// Rounds that warm caches and are left out, for both round trips and work.
const WARMUP_ROUNDS: u64 = 50;
/// Steps of the fixed piece of work. Each depends on the one before; all together take about 100 µs on a
/// machine of 2026.
const WORK_STEPS: u32 = 80_000;

/// Measures the noise floor in about this time. Below half a second there are too few samples for a
/// meaningful 99th percentile.
pub fn measure(at_most: Duration) -> Result<Floor, EnvironmentError> {
    let started = Instant::now();
    let stolen_before_s = stolen_s()?;
    let timer_late_us = on_own_thread(|| timer_lateness_us(at_most.mul_f64(TIMER_SHARE)))
        .context("measure how late a timer is")?;
    let round_trip_us = loopback_round_trips_us(at_most.mul_f64(LOOPBACK_SHARE))
        .context("measure a round trip over loopback TCP")?;
    let work_us = round_times_us(at_most.mul_f64(WORK_SHARE), |round| {
        fixed_work(round);
        Ok(())
    })
    .context("time a fixed piece of work")?;
    let pauses = pauses::measure(at_most.mul_f64(PAUSES_SHARE)).context("look for pauses of the CPUs")?;
    let stolen_s = stolen_s()? - stolen_before_s;
    Ok(Floor {
        timer_late_p50_us: quantile(&timer_late_us, 0.5),
        timer_late_p99_us: quantile(&timer_late_us, 0.99),
        loopback_round_trip_p50_us: quantile(&round_trip_us, 0.5),
        loopback_round_trip_p99_us: quantile(&round_trip_us, 0.99),
        noise_fraction: (quantile(&work_us, 0.75) - quantile(&work_us, 0.25)) / quantile(&work_us, 0.5),
        steal_cores: stolen_s / started.elapsed().as_secs_f64(),
        pauses: Some(pauses),
    })
}

/// Runs `work` on a thread of its own, so that its settings do not stay on the caller's thread.
fn on_own_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("floor".into()).spawn_scoped(scope, work)?;
        thread.join().map_err(|_| io::Error::other("the measuring thread panicked"))?
    })
}

/// Sorted lateness of an absolute high-resolution timer, in microseconds. Sets the thread's timer slack to 1
/// ns.
fn timer_lateness_us(at_most: Duration) -> io::Result<Vec<f64>> {
    set_current_timer_slack(Some(NonZeroU64::MIN))?;
    debug_assert_eq!(current_timer_slack().ok(), Some(1));
    let end = now() + at_most;
    let mut late_us = Vec::new();
    while late_us.is_empty() || now() < end {
        // Aperiodic intervals of 300 to 800 µs, since a periodic tick could be met or missed every time. They
        // are multiples of the golden ratio (309 017 of 500 000), which spread evenly (Weyl).
        let due = now() + Duration::from_nanos(300_000 + late_us.len() as u64 * 309_017 % 500_000);
        let request = Timespec::try_from(due).map_err(io::Error::other)?;
        rustix::io::retry_on_intr(|| clock_nanosleep_absolute(ClockId::Monotonic, &request))?;
        late_us.push(microseconds(now().saturating_sub(due)));
    }
    late_us.sort_by(f64::total_cmp);
    Ok(late_us)
}

/// Sorted times of one byte to another thread and back over loopback TCP, in microseconds.
fn loopback_round_trips_us(at_most: Duration) -> io::Result<Vec<f64>> {
    let (mut near, far) = loopback_pair()?;
    thread::scope(|scope| {
        // The echo ends when `near` closes, or after a timeout without data.
        let echo = thread::Builder::new().name("floor-echo".into()).spawn_scoped(scope, move || echo(far))?;
        let mut byte = [b'.'];
        let times_us = round_times_us(at_most, |_| {
            near.write_all(&byte)?;
            near.read_exact(&mut byte)
        });
        drop(near);
        echo.join().map_err(|_| io::Error::other("the echoing thread panicked"))??;
        times_us
    })
}

/// Sorted times of the rounds of a measurement, in microseconds, without the first [`WARMUP_ROUNDS`].
fn round_times_us(at_most: Duration, mut work: impl FnMut(u64) -> io::Result<()>) -> io::Result<Vec<f64>> {
    let end = Instant::now() + at_most;
    let mut times_us = Vec::new();
    for round in 0.. {
        let started = Instant::now();
        work(round)?;
        if round >= WARMUP_ROUNDS {
            times_us.push(microseconds(started.elapsed()));
            if Instant::now() >= end {
                break;
            }
        }
    }
    times_us.sort_by(f64::total_cmp);
    Ok(times_us)
}

/// The same piece of work in each round.
fn fixed_work(round: u64) {
    let mut value = black_box(round);
    for _ in 0..WORK_STEPS {
        value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    }
    black_box(value);
}

/// Steal time since boot, in seconds, summed over all CPUs.
fn stolen_s() -> Result<f64, EnvironmentError> {
    let times = read_times(Path::new("/proc")).context("read the time stolen by the hypervisor")?;
    Ok(times.steal.as_secs_f64())
}

fn quantile(sorted: &[f64], quantile: f64) -> f64 {
    nearest_rank(sorted, quantile).expect("every measurement takes one sample at least")
}

fn now() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Monotonic)).unwrap_or_default()
}

fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_floor_is_measured_within_given_time() {
        let started = Instant::now();
        let floor = measure(Duration::from_millis(200)).unwrap();
        assert!(started.elapsed() < Duration::from_secs(60), "took {:?}", started.elapsed());
        assert!(floor.timer_late_p50_us > 0.0, "no timer wakes early or at once: {floor:?}");
        assert!(floor.timer_late_p50_us <= floor.timer_late_p99_us, "{floor:?}");
        assert!(floor.loopback_round_trip_p50_us > 1.0, "two system calls and two wake-ups: {floor:?}");
        assert!(floor.loopback_round_trip_p50_us <= floor.loopback_round_trip_p99_us, "{floor:?}");
        assert!(floor.noise_fraction.is_finite() && floor.noise_fraction >= 0.0, "{floor:?}");
        assert!(floor.steal_cores >= 0.0, "{floor:?}");
        let pauses = floor.pauses.clone().unwrap();
        assert!(!pauses.idle.is_empty() && pauses.idle.len() == pauses.loaded.len(), "{floor:?}");
        assert!(pauses.idle.iter().chain(&pauses.loaded).all(|cpu| cpu.observed_s > 0.0), "{floor:?}");
    }

    #[test]
    fn timer_slack_of_caller_is_unchanged() {
        let before = current_timer_slack().unwrap();
        measure(Duration::from_millis(20)).unwrap();
        assert_eq!(current_timer_slack().unwrap(), before);
    }
}
