//! Pauses of a CPU, from the gaps that a spinning thread saw.

use results::{CpuPauses, LongPauses, rank};
use std::time::Duration;

/// Shorter gaps are not recorded.
pub const PAUSE_THRESHOLD: Duration = Duration::from_micros(20);
/// A pause of this length is not a kernel timer tick.
const NOTABLE: Duration = Duration::from_micros(100);
const LONG: Duration = Duration::from_millis(1);
/// Minimum lengths for which pauses are counted, in microseconds.
const LENGTHS_US: [u64; 9] = [50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000];

/// Time between two consecutive readings of the clock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Gap {
    /// Length of the gap.
    pub length: Duration,
    /// True if the scheduler ran something else meanwhile.
    pub switched: bool,
}

/// Pauses seen by a thread that spun on this CPU for `observed`.
#[must_use]
pub fn cpu_pauses(cpu: usize, observed: Duration, gaps: &[Gap]) -> CpuPauses {
    let mut lengths: Vec<Duration> = gaps.iter().filter(|gap| !gap.switched).map(|gap| gap.length).collect();
    lengths.sort_unstable();
    let observed_s = observed.as_secs_f64();
    let per_s = |count: usize| if observed_s > 0.0 { count as f64 / observed_s } else { 0.0 };
    let at_least = |length: Duration| lengths.iter().filter(|pause| **pause >= length).count();
    let paused: Duration = lengths.iter().sum();
    let quantile_us =
        |quantile: f64| nearest_rank(&lengths, quantile).map_or(0.0, |length| length.as_secs_f64() * 1e6);
    CpuPauses {
        cpu,
        observed_s,
        per_s: per_s(lengths.len()),
        notable_per_s: per_s(at_least(NOTABLE)),
        long_per_s: per_s(at_least(LONG)),
        fraction: if observed_s > 0.0 { paused.as_secs_f64() / observed_s } else { 0.0 },
        p50_us: quantile_us(0.5),
        p99_us: quantile_us(0.99),
        longest_us: quantile_us(1.0),
        by_length: LENGTHS_US.into_iter().map(|us| long_pauses(&lengths, us, observed_s)).collect(),
        switched_per_s: per_s(gaps.len() - lengths.len()),
    }
}

/// The value at a quantile (0 to 1) of sorted values; `None` if there are none.
#[must_use]
pub fn nearest_rank<T: Copy>(sorted: &[T], quantile: f64) -> Option<T> {
    sorted.get(rank(sorted.len() as u64, quantile) as usize - 1).copied()
}

/// Pauses of at least `us` microseconds, from lengths in ascending order.
fn long_pauses(lengths: &[Duration], us: u64, observed_s: f64) -> LongPauses {
    let long = &lengths[lengths.partition_point(|length| *length < Duration::from_micros(us))..];
    let share = |amount: f64| if observed_s > 0.0 { amount / observed_s } else { 0.0 };
    LongPauses {
        at_least_us: us as f64,
        per_s: share(long.len() as f64),
        fraction: share(long.iter().sum::<Duration>().as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scheduler_gaps_are_not_pauses() {
        let gap = |us, switched| Gap { length: Duration::from_micros(us), switched };
        let mut gaps = vec![gap(30, false); 98];
        gaps.extend([gap(400, false), gap(2_000, false), gap(9_000, true)]);
        let pauses = cpu_pauses(3, Duration::from_millis(500), &gaps);
        assert_eq!((pauses.cpu, pauses.per_s, pauses.switched_per_s), (3, 200.0, 2.0));
        assert_eq!((pauses.notable_per_s, pauses.long_per_s), (4.0, 2.0));
        assert_eq!((pauses.p50_us, pauses.p99_us, pauses.longest_us), (30.0, 400.0, 2_000.0));
        assert!((pauses.fraction - 0.01068).abs() < 1e-9, "{}", pauses.fraction);
        let of_length: Vec<(f64, f64)> =
            pauses.by_length.iter().map(|long| (long.at_least_us, long.per_s)).collect();
        assert_eq!(of_length[..5], [(50.0, 4.0), (100.0, 4.0), (200.0, 4.0), (500.0, 2.0), (1_000.0, 2.0)]);
        assert_eq!((pauses.by_length[5].per_s, pauses.by_length[6].per_s), (2.0, 0.0));
        assert!((pauses.by_length[4].fraction - 0.004).abs() < 1e-9);
    }

    #[test]
    fn cpu_without_pauses_has_zeros() {
        let pauses = cpu_pauses(0, Duration::from_secs(1), &[]);
        assert_eq!((pauses.per_s, pauses.fraction, pauses.longest_us), (0.0, 0.0, 0.0));
    }

    #[test]
    fn quantile_is_nearest_rank() {
        let values: Vec<u32> = (1..=100).collect();
        let found = [0.0, 0.5, 0.99, 1.0].map(|quantile| nearest_rank(&values, quantile));
        assert_eq!(found, [Some(1), Some(50), Some(99), Some(100)]);
        assert_eq!((nearest_rank(&[7], 0.5), nearest_rank::<u32>(&[], 0.5)), (Some(7), None));
    }
}
