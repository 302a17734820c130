//! Bursts: a Poisson process whose rate changes between two levels, a Markov-modulated Poisson process (Heffes and Lucantoni, "A
//! Markov Modulated Characterization of Packetized Voice and Data Traffic", 1986).
//!
//! With mean rate r, factor f, share s and mean length l of a burst, the rate between bursts is r / (1 + s (f - 1)), and f times that
//! in bursts. Times between bursts have the mean length l (1 - s) / s. The variance of the number of requests in a long time is this
//! many times its mean: 1 + 2 r l s (1 - s)² ((f - 1) / (1 + s (f - 1)))².

use super::exponential;
use crate::clock::{Nanos, nanos};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};
use std::time::Duration;

/// Stream of the random generator: the same for all threads, which are in a burst together.
const RANDOM_STREAM: u64 = (1 << 40) + 1;

/// Bursts of requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bursts {
    /// Rate in bursts, of that between them; above 1.
    pub factor: f64,
    /// Fraction of the time with a burst, in the long run; between 0 and 1.
    pub share: f64,
    /// Mean length of a burst.
    pub length: Duration,
}

/// A burst, or the time between two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Period {
    pub(crate) is_burst: bool,
    /// Its rate, of the mean rate.
    pub(crate) level: f64,
    pub(crate) start: Nanos,
    pub(crate) end: Nanos,
}

impl Bursts {
    /// Number of bursts to be expected in this time.
    #[must_use]
    pub fn expected(&self, time: Duration) -> f64 {
        self.share * time.as_secs_f64() / self.length.as_secs_f64()
    }

    /// Number of bursts in part of a run.
    pub(crate) fn count(&self, seed: u64, start: Nanos, end: Nanos) -> u64 {
        let periods = self.periods(seed).take_while(|period| period.start < end);
        periods.filter(|period| period.is_burst && period.end > start).count() as u64
    }

    /// Bursts and the times between them, from the start of a run on, without end.
    pub(crate) fn periods(self, seed: u64) -> impl Iterator<Item = Period> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(RANDOM_STREAM);
        let calm_level = 1.0 / (1.0 + self.share * (self.factor - 1.0));
        let (mut is_burst, mut start) = (random.random_bool(self.share), 0);
        std::iter::repeat_with(move || {
            let burst_length = nanos(self.length) as f64;
            let (level, mean_length) = match is_burst {
                true => (calm_level * self.factor, burst_length),
                false => (calm_level, burst_length * (1.0 - self.share) / self.share),
            };
            let end = (start + exponential(&mut random, mean_length) as Nanos).max(start + 1);
            let period = Period { is_burst, level, start, end };
            (is_burst, start) = (!is_burst, end);
            period
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SECOND;
    use crate::schedule::{Arrival, OpenLoop, RateProfile, RateStage, Schedule as _};

    const BURSTS: Bursts = Bursts { factor: 5.0, share: 0.1, length: Duration::from_secs(1) };
    const RATE: f64 = 20.0;
    const WINDOW_S: u64 = 20;
    const WINDOWS: u64 = 2500;

    /// Requests of two threads together in each of many windows.
    fn counts(arrival: Arrival) -> Vec<f64> {
        let stages = [RateStage::steady(RATE, Duration::from_secs(WINDOW_S * WINDOWS))];
        let profile = RateProfile::planned(&stages, arrival, 3, Duration::ZERO, Nanos::MAX);
        let mut counts = vec![0.0; WINDOWS as usize];
        for thread in 0..2 {
            let mut schedule = OpenLoop::new(profile.clone(), arrival, 3, thread, 2);
            while let Some(due) = schedule.next_due() {
                counts[(due / (WINDOW_S * SECOND)) as usize] += 1.0;
                schedule.take();
            }
        }
        counts
    }

    /// Mean rate, and variance of a window's requests over their mean.
    fn mean_and_dispersion(counts: &[f64]) -> (f64, f64) {
        let windows = counts.len() as f64;
        let mean = counts.iter().sum::<f64>() / windows;
        let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / (windows - 1.0);
        (mean / WINDOW_S as f64, variance / mean)
    }

    #[test]
    fn mean_rate_is_kept_and_requests_are_as_dispersed_as_the_formula_says() {
        let (rate, dispersion) = mean_and_dispersion(&counts(Arrival::Poisson));
        assert!((rate / RATE - 1.0).abs() < 0.01 && (dispersion - 1.0).abs() < 0.1, "{rate} {dispersion}");
        let Bursts { factor, share, length } = BURSTS;
        let contrast = (factor - 1.0) / (1.0 + share * (factor - 1.0));
        let excess = 2.0 * RATE * length.as_secs_f64() * share * (1.0 - share).powi(2) * contrast.powi(2);
        // A window is not endless: the excess builds up at the rate at which the state is forgotten.
        let forgotten = WINDOW_S as f64 / (length.as_secs_f64() * (1.0 - share));
        let expected = 1.0 + excess * (1.0 - (1.0 - (-forgotten).exp()) / forgotten);
        let (rate, dispersion) = mean_and_dispersion(&counts(Arrival::Bursts(BURSTS)));
        assert!((rate / RATE - 1.0).abs() < 0.03, "{rate}");
        assert!((dispersion / expected - 1.0).abs() < 0.15, "{dispersion}, expected {expected}");
    }

    #[test]
    fn bursts_take_their_share_of_the_time_and_count_where_they_overlap_a_window() {
        let periods: Vec<Period> = BURSTS.periods(1).take(20_000).collect();
        assert!(
            periods.windows(2).all(|two| two[0].end == two[1].start && two[0].is_burst != two[1].is_burst)
        );
        let length = |period: &Period| (period.end - period.start) as f64;
        let of_bursts: Vec<f64> = periods.iter().filter(|period| period.is_burst).map(length).collect();
        let (total, all) = (of_bursts.iter().sum::<f64>(), periods.iter().map(length).sum::<f64>());
        assert!((total / all - 0.1).abs() < 0.005, "{}", total / all);
        assert!((total / 10_000.0 / 1e9 - 1.0).abs() < 0.05, "{total}");
        let ratio = periods[0].level / periods[1].level;
        assert!((ratio.max(1.0 / ratio) - 5.0).abs() < 1e-9, "{ratio}");
        let [first, second] =
            [0, 1].map(|skipped| periods.iter().filter(|period| period.is_burst).nth(skipped).unwrap());
        assert_eq!(BURSTS.count(1, first.start, second.start), 1);
        assert_eq!(BURSTS.count(1, first.end - 1, second.start + 1), 2);
        assert_eq!(BURSTS.count(1, first.end, second.start), 0);
    }

    #[test]
    fn stages_keep_their_shape_in_bursts() {
        let stages = [
            RateStage::ramp(0.0, 100.0, Duration::from_secs(2000)),
            RateStage::steady(0.0, Duration::from_secs(100)),
            RateStage::steady(50.0, Duration::from_secs(1000)),
        ];
        let plain = RateProfile::new(&stages, Duration::from_secs(10));
        let arrival = Arrival::Bursts(BURSTS);
        let profile = RateProfile::planned(&stages, arrival, 1, Duration::from_secs(10), Nanos::MAX);
        for second in [500, 1000, 2010, 2110, 3110] {
            let [expected, there] = [&plain, &profile].map(|profile| profile.requests_until(second * SECOND));
            assert!((there / expected - 1.0).abs() < 0.2, "{second}: {there} of {expected}");
        }
        let [before, after] = [2010, 2110].map(|second| profile.requests_until(second * SECOND));
        assert!((after - before).abs() < 1e-6, "a pause is one in bursts, too");
        let cut = RateProfile::planned(&stages, arrival, 1, Duration::from_secs(10), 700 * SECOND);
        assert_eq!(cut.requests_until(Nanos::MAX), profile.requests_until(700 * SECOND));
    }
}
