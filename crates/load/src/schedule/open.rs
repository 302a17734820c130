//! Open loop: requests are due at given instants, regardless of earlier ones.

use super::{Arrival, RateProfile, RateStage, Schedule, exponential};
use crate::clock::{Nanos, nanos};
use rand::SeedableRng as _;
use rand::rngs::ChaCha8Rng;
use std::time::Duration;

/// The slots of one thread of several. The threads' slots add up to the whole schedule: uniform ones
/// alternate, and Poisson processes add up to a Poisson process. Threads never fire at the same time.
pub(crate) struct OpenLoop {
    profile: RateProfile,
    arrivals: Arrivals,
    next_due: Option<Nanos>,
}

/// Arrivals of rate 1, of which this thread takes its share.
enum Arrivals {
    Uniform { ordinal: u64, step: u64 },
    Poisson { position: f64, mean_gap: f64, random: Box<ChaCha8Rng> },
}

impl OpenLoop {
    /// The share of `thread` among `threads`. `profile`: with the bursts, if there are any.
    pub(crate) fn new(
        profile: RateProfile,
        arrival: Arrival,
        seed: u64,
        thread: usize,
        threads: usize,
    ) -> Self {
        let arrivals = match arrival {
            Arrival::Uniform => Arrivals::Uniform { ordinal: thread as u64, step: threads as u64 },
            Arrival::Poisson | Arrival::Bursts(_) => {
                let mut random = ChaCha8Rng::seed_from_u64(seed);
                random.set_stream(thread as u64);
                Arrivals::Poisson { position: 0.0, mean_gap: threads as f64, random: Box::new(random) }
            }
        };
        let mut schedule = Self { profile, arrivals, next_due: None };
        if let Arrivals::Poisson { position, mean_gap, random } = &mut schedule.arrivals {
            *position = exponential(random, *mean_gap);
        }
        schedule.look_up();
        schedule
    }

    /// Drops most of the slots due before `at` without computing each of them: at high rates there may be
    /// billions. Returns how many.
    fn leap(&mut self, at: Nanos) -> u64 {
        // One request less, so that rounding never skips a slot that is due later.
        let position_then = self.profile.requests_until(at) - 1.0;
        let mut skipped = 0;
        match &mut self.arrivals {
            Arrivals::Uniform { ordinal, step } => {
                skipped = ((position_then - *ordinal as f64).max(0.0) / *step as f64) as u64;
                *ordinal += skipped * *step;
            }
            Arrivals::Poisson { position, mean_gap, random } => {
                while *position < position_then {
                    *position += exponential(random, *mean_gap);
                    skipped += 1;
                }
            }
        }
        self.look_up();
        skipped
    }

    fn look_up(&mut self) {
        let position = match &self.arrivals {
            Arrivals::Uniform { ordinal, .. } => *ordinal as f64,
            Arrivals::Poisson { position, .. } => *position,
        };
        self.next_due = self.profile.instant_of(position);
    }
}

impl Schedule for OpenLoop {
    fn is_open(&self) -> bool {
        true
    }

    fn next_due(&self) -> Option<Nanos> {
        self.next_due
    }

    fn take(&mut self) {
        match &mut self.arrivals {
            Arrivals::Uniform { ordinal, step } => *ordinal += *step,
            Arrivals::Poisson { position, mean_gap, random } => *position += exponential(random, *mean_gap),
        }
        self.look_up();
    }

    fn request_ended(&mut self, _at: Nanos) {}

    fn skip_until(&mut self, at: Nanos) -> u64 {
        let mut skipped = self.leap(at);
        while self.next_due.is_some_and(|due| due < at) {
            self.take();
            skipped += 1;
        }
        skipped
    }

    /// All of them, however many, are due within the window, which ends the run.
    fn used_up_since(&self) -> Option<Nanos> {
        None
    }
}

/// Length of the window in which exactly this many requests are due: it ends when the next one would be.
/// `None` if the stages yield fewer. With random arrivals the run time is proportional to the number of
/// requests.
#[must_use]
pub fn duration_of(
    requests: u64,
    stages: &[RateStage],
    arrival: Arrival,
    warmup: Duration,
    seed: u64,
    threads: usize,
) -> Option<Duration> {
    let profile = RateProfile::planned(stages, arrival, seed, warmup, Nanos::MAX);
    let window_start = nanos(warmup);
    let mut schedules: Vec<OpenLoop> =
        (0..threads).map(|thread| OpenLoop::new(profile.clone(), arrival, seed, thread, threads)).collect();
    if let Arrival::Uniform = arrival {
        let in_warmup: u64 = schedules.iter_mut().map(|schedule| schedule.skip_until(window_start)).sum();
        let end = profile.instant_of((in_warmup + requests) as f64)?;
        return Some(Duration::from_nanos(end - window_start));
    }
    for schedule in &mut schedules {
        schedule.skip_until(window_start);
    }
    for _ in 0..requests {
        schedules
            .iter_mut()
            .filter(|schedule| schedule.next_due.is_some())
            .min_by_key(|schedule| schedule.next_due)?
            .take();
    }
    let end = schedules.iter().filter_map(Schedule::next_due).min()?;
    Some(Duration::from_nanos(end - window_start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::share::GeneratorShare;

    fn slots(rate: f64, duration_s: u64, arrival: Arrival, seed: u64, threads: usize) -> Vec<Vec<Nanos>> {
        let stages = [RateStage::steady(rate, Duration::from_secs(duration_s))];
        (0..threads).map(|thread| due(&stages, arrival, seed, thread, threads)).collect()
    }

    fn due(stages: &[RateStage], arrival: Arrival, seed: u64, thread: usize, threads: usize) -> Vec<Nanos> {
        let profile = RateProfile::new(stages, Duration::ZERO);
        let mut schedule = OpenLoop::new(profile, arrival, seed, thread, threads);
        std::iter::from_fn(|| schedule.next_due().inspect(|_| schedule.take())).collect()
    }

    #[test]
    fn threads_alternate_and_never_fire_together() {
        let mut all: Vec<Nanos> = slots(1000.0, 1, Arrival::Uniform, 1, 3).concat();
        all.sort_unstable();
        let expected: Vec<Nanos> = (0..1000).map(|slot| slot * 1_000_000).collect();
        assert_eq!(all, expected);
    }

    #[test]
    fn generators_with_any_number_of_threads_split_schedule() {
        let stages = [RateStage::ramp(100.0, 1000.0, Duration::from_secs(1))];
        let of_generator = |index: usize, threads: usize| -> Vec<Nanos> {
            let share = GeneratorShare::new(index, 3).unwrap();
            let workers = (0..threads).map(|thread| share.worker(thread, threads));
            workers.flat_map(|(worker, workers)| due(&stages, Arrival::Uniform, 1, worker, workers)).collect()
        };
        let mut all = [of_generator(0, 1), of_generator(1, 4), of_generator(2, 2)].concat();
        all.sort_unstable();
        assert_eq!(all, due(&stages, Arrival::Uniform, 1, 0, 1));
    }

    #[test]
    fn threads_never_fire_together_on_a_ramp() {
        let stages = [RateStage::ramp(0.0, 1000.0, Duration::from_secs(2))];
        for arrival in [Arrival::Uniform, Arrival::Poisson] {
            let mut all: Vec<Nanos> = (0..3).flat_map(|thread| due(&stages, arrival, 1, thread, 3)).collect();
            all.sort_unstable();
            let before = all.len();
            all.dedup();
            assert_eq!(all.len(), before, "no two requests are due at once");
            // A quarter of the thousand falls into the first half of the time.
            let early = all.iter().filter(|at| **at < 1_000_000_000).count();
            let tolerance = if arrival == Arrival::Uniform { 1.0 } else { 5.0 * 250_f64.sqrt() };
            assert!((early as f64 - 250.0).abs() <= tolerance, "{early}");
        }
    }

    #[test]
    fn duration_of_requests_holds_exactly_these_requests() {
        let stages = [
            RateStage::ramp(0.0, 1000.0, Duration::from_secs(2)),
            RateStage::steady(50.0, Duration::from_secs(9)),
        ];
        for (arrival, threads) in [(Arrival::Uniform, 1), (Arrival::Uniform, 3), (Arrival::Poisson, 3)] {
            for (requests, warmup) in [(1, 0), (100, 0), (1100, 1)] {
                let warmup = Duration::from_secs(warmup);
                let duration =
                    duration_of(requests, &stages, arrival, warmup, 5, threads).expect("there are more");
                let end = nanos(warmup + duration);
                let in_window = (0..threads)
                    .map(|thread| {
                        let profile = RateProfile::new(&stages, warmup);
                        let mut schedule = OpenLoop::new(profile, arrival, 5, thread, threads);
                        schedule.skip_until(nanos(warmup));
                        schedule.skip_until(end)
                    })
                    .sum::<u64>();
                assert_eq!(in_window, requests, "{arrival:?} on {threads} threads");
            }
        }
        assert_eq!(duration_of(9999, &stages, Arrival::Uniform, Duration::ZERO, 5, 2), None);
        assert_eq!(duration_of(9999, &stages, Arrival::Poisson, Duration::ZERO, 5, 2), None);
    }

    #[test]
    fn poisson_gaps_have_mean_and_spread_of_exponential() {
        let due = &slots(1000.0, 100, Arrival::Poisson, 7, 1)[0];
        // 100 000 expected, standard deviation 316.
        assert!((due.len() as f64 - 100_000.0).abs() < 5.0 * 316.0, "{}", due.len());
        let gaps: Vec<f64> = due.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        let variation = variance.sqrt() / mean;
        assert!((variation - 1.0).abs() < 0.02, "coefficient of variation {variation}");
    }

    #[test]
    fn schedule_depends_only_on_seed() {
        let first = slots(500.0, 2, Arrival::Poisson, 3, 2);
        assert_eq!(first, slots(500.0, 2, Arrival::Poisson, 3, 2));
        assert_ne!(first, slots(500.0, 2, Arrival::Poisson, 4, 2));
        assert_ne!(first[0], first[1]);
    }

    #[test]
    fn skip_returns_number_of_dropped_slots() {
        let stages = [RateStage::steady(1000.0, Duration::from_secs(2))];
        let mut schedule =
            OpenLoop::new(RateProfile::new(&stages, Duration::ZERO), Arrival::Uniform, 0, 0, 1);
        assert_eq!(schedule.skip_until(1_000_000_000), 1000);
        assert_eq!(schedule.next_due(), Some(1_000_000_000));
        assert_eq!(schedule.skip_until(u64::MAX), 1000);
        assert_eq!(schedule.next_due(), None);
    }

    #[test]
    fn skip_leaves_same_slots_as_taking() {
        let stages = [(7.3, 7.3, 2), (0.0, 0.0, 1), (0.0, 1e4, 1), (1e4, 1e4, 2), (1e4, 0.0, 1)];
        let stages =
            stages.map(|(from, to, seconds)| RateStage::ramp(from, to, Duration::from_secs(seconds)));
        for arrival in [Arrival::Uniform, Arrival::Poisson] {
            for at in [0, 1, 137_000_000, 2_500_000_000, 3_000_000_001, 4_123_456_789, u64::MAX] {
                let profile = RateProfile::new(&stages, Duration::from_secs(1));
                let mut taking = OpenLoop::new(profile.clone(), arrival, 5, 1, 3);
                let mut skipping = OpenLoop::new(profile, arrival, 5, 1, 3);
                let mut taken = 0;
                while taking.next_due().is_some_and(|due| due < at) {
                    taking.take();
                    taken += 1;
                }
                assert_eq!(
                    (skipping.skip_until(at), skipping.next_due()),
                    (taken, taking.next_due()),
                    "{at}"
                );
            }
        }
    }

    #[test]
    fn backlog_of_any_length_is_dropped_at_once() {
        let stages = [RateStage::steady(1e7, Duration::from_secs(3600))];
        let mut schedule =
            OpenLoop::new(RateProfile::new(&stages, Duration::ZERO), Arrival::Uniform, 0, 0, 1);
        assert_eq!(schedule.skip_until(u64::MAX), 36_000_000_000);
    }
}
