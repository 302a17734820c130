//! Rates over time, and the inverse: when is the k-th request due?

use super::{Arrival, Bursts};
use crate::clock::{Nanos, SECOND, nanos};
use std::time::Duration;

/// A stage of the schedule: a constant rate, or a linear ramp from one rate to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateStage {
    /// Requests per second at its start, offered by all threads together; 0 is a pause.
    pub start_rate: f64,
    /// Requests per second at its end; different from the start rate for a ramp.
    pub end_rate: f64,
    /// Its length.
    pub duration: Duration,
}

impl RateStage {
    /// A constant rate.
    #[must_use]
    pub fn steady(rate: f64, duration: Duration) -> Self {
        Self::ramp(rate, rate, duration)
    }

    /// A linear ramp.
    #[must_use]
    pub fn ramp(start_rate: f64, end_rate: f64, duration: Duration) -> Self {
        Self { start_rate, end_rate, duration }
    }

    /// Number of requests due in the stage.
    #[must_use]
    pub fn requests(&self) -> f64 {
        f64::midpoint(self.start_rate, self.end_rate) * self.duration.as_secs_f64()
    }
}

/// Rate profile of the whole run, including the warm-up.
///
/// Arrivals of rate 1 (the requests' ordinal numbers, or a unit Poisson process) are mapped through the
/// inverse of the cumulative rate. That turns them into arrivals of the desired rate, whatever its shape.
#[derive(Clone, Debug)]
pub(crate) struct RateProfile {
    stages: Vec<CumulativeStage>,
    end: Nanos,
    total_requests: f64,
}

#[derive(Clone, Copy, Debug)]
struct CumulativeStage {
    start: Nanos,
    requests_before: f64,
    start_rate: f64,
    /// Change of the rate per second; negative if it falls.
    growth: f64,
}

impl CumulativeStage {
    fn rate_at(&self, instant: Nanos) -> f64 {
        self.start_rate + self.growth * (instant - self.start) as f64 / SECOND as f64
    }

    /// Requests from the start of the stage until `offset_s` seconds later: the area under the rate.
    fn requests_in(&self, offset_s: f64) -> f64 {
        offset_s * (self.start_rate + self.growth * offset_s / 2.0)
    }

    /// The inverse: seconds after its start at which the stage has yielded this many requests; `None` if it
    /// never does.
    fn offset_of(&self, requests: f64) -> Option<f64> {
        if requests <= 0.0 {
            return (self.start_rate > 0.0 || self.growth > 0.0).then_some(0.0);
        }
        // The root of growth/2·t² + rate·t = requests, in a form that loses no precision for small growth and
        // also holds for zero growth. At the end of a ramp to 0, rounding may yield slightly less than zero
        // under the root.
        let rate_then = (self.start_rate.powi(2) + 2.0 * self.growth * requests).max(0.0).sqrt();
        let sum = self.start_rate + rate_then;
        (sum > 0.0).then(|| 2.0 * requests / sum)
    }
}

impl RateProfile {
    /// A profile that starts with a warm-up at the first stage's start rate.
    pub(crate) fn new(stages: &[RateStage], warmup: Duration) -> Self {
        let first_rate = stages.first().map_or(0.0, |stage| stage.start_rate);
        let mut profile = Self { stages: Vec::new(), end: 0, total_requests: 0.0 };
        profile.push(RateStage::steady(first_rate, warmup));
        for stage in stages {
            profile.push(*stage);
        }
        profile
    }

    /// Cuts off everything at `end` and later.
    pub(crate) fn ending_at(self, end: Nanos) -> Self {
        Self { end: self.end.min(end), ..self }
    }

    /// The profile until `end` of a run, with its bursts if `arrival` has any.
    pub(crate) fn planned(
        stages: &[RateStage],
        arrival: Arrival,
        seed: u64,
        warmup: Duration,
        end: Nanos,
    ) -> Self {
        let profile = Self::new(stages, warmup).ending_at(end);
        match arrival {
            Arrival::Bursts(bursts) => profile.in_bursts(bursts, seed),
            Arrival::Uniform | Arrival::Poisson => profile,
        }
    }

    /// Rates that change with bursts: each stage in as many pieces.
    fn in_bursts(&self, bursts: Bursts, seed: u64) -> Self {
        let mut pieces = Self { stages: Vec::new(), end: 0, total_requests: 0.0 };
        let mut periods = bursts.periods(seed).peekable();
        for (index, stage) in self.stages.iter().enumerate() {
            let stage_end = self.stages.get(index + 1).map_or(self.end, |next| next.start.min(self.end));
            while pieces.end < stage_end
                && let Some(period) = periods.peek()
            {
                let (start, end) = (pieces.end, period.end.min(stage_end));
                let [from, to] = [start, end].map(|at| period.level * stage.rate_at(at).max(0.0));
                pieces.push(RateStage::ramp(from, to, Duration::from_nanos(end - start)));
                if end == period.end {
                    periods.next();
                }
            }
        }
        pieces
    }

    fn push(&mut self, stage: RateStage) {
        let duration_s = stage.duration.as_secs_f64();
        let growth = if duration_s > 0.0 { (stage.end_rate - stage.start_rate) / duration_s } else { 0.0 };
        self.stages.push(CumulativeStage {
            start: self.end,
            requests_before: self.total_requests,
            start_rate: stage.start_rate,
            growth,
        });
        self.total_requests += stage.requests();
        self.end += nanos(stage.duration);
    }

    /// The cumulative number of requests at `instant`.
    pub(crate) fn requests_until(&self, instant: Nanos) -> f64 {
        let instant = instant.min(self.end);
        let index = self.stages.partition_point(|stage| stage.start <= instant).saturating_sub(1);
        self.stages.get(index).map_or(0.0, |stage| {
            stage.requests_before + stage.requests_in((instant - stage.start) as f64 / SECOND as f64)
        })
    }

    /// Number of requests between two instants.
    pub(crate) fn requests_between(&self, from: Nanos, until: Nanos) -> f64 {
        let ends = self.stages.iter().skip(1).map(|next| next.start).chain([self.end]);
        let of_stage = |(stage, end): (&CumulativeStage, Nanos)| {
            let [from, until] = [from, until.min(self.end).min(end)].map(|at| at.max(stage.start));
            let [before, all] = [from.min(until), until]
                .map(|at| stage.requests_in((at - stage.start) as f64 / SECOND as f64));
            all - before
        };
        self.stages.iter().zip(ends).map(of_stage).sum()
    }

    /// When the cumulative number of requests reaches `requests`; `None` beyond the end.
    pub(crate) fn instant_of(&self, requests: f64) -> Option<Nanos> {
        let index = self.stages.partition_point(|stage| stage.requests_before <= requests).checked_sub(1)?;
        let stage = &self.stages[index];
        let offset_s = stage.offset_of(requests - stage.requests_before)?;
        let instant = stage.start + (offset_s * SECOND as f64).round() as Nanos;
        (instant < self.end).then_some(instant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn requests_are_due_at_even_intervals() {
        let profile = RateProfile::new(&[RateStage::steady(1000.0, seconds(2))], seconds(1));
        assert_eq!(profile.instant_of(0.0), Some(0));
        assert_eq!(profile.instant_of(1.0), Some(1_000_000));
        assert_eq!(profile.instant_of(2999.0), Some(2_999_000_000));
        assert_eq!(profile.instant_of(3000.0), None);
    }

    #[test]
    fn stages_follow_each_other_and_pauses_have_no_requests() {
        let stages = [
            RateStage::steady(10.0, seconds(1)),
            RateStage::steady(0.0, seconds(5)),
            RateStage::steady(100.0, seconds(1)),
        ];
        let profile = RateProfile::new(&stages, Duration::ZERO);
        assert_eq!(profile.instant_of(9.0), Some(900_000_000));
        assert_eq!(profile.instant_of(10.0), Some(6 * SECOND));
        assert_eq!(profile.instant_of(11.0), Some(6 * SECOND + 10_000_000));
        assert_eq!(profile.instant_of(110.0), None);
    }

    #[test]
    fn pause_at_end_has_no_request() {
        let stages = [RateStage::steady(10.0, seconds(1)), RateStage::steady(0.0, seconds(1))];
        let profile = RateProfile::new(&stages, Duration::ZERO);
        assert_eq!(profile.instant_of(10.0), None);
    }

    #[test]
    fn ramp_yields_area_under_its_rate() {
        // From 0 to 100/s in 10 s: 5·t² requests after t seconds.
        let up = RateProfile::new(&[RateStage::ramp(0.0, 100.0, seconds(10))], Duration::ZERO);
        for (requests, at_s) in [(0.0, 0), (5.0, 1), (20.0, 2), (405.0, 9)] {
            assert_eq!(up.instant_of(requests), Some(at_s * SECOND), "{requests}");
        }
        assert_eq!(up.instant_of(500.0), None);
        // And from 100/s down to 0, mirrored.
        let down = RateProfile::new(&[RateStage::ramp(100.0, 0.0, seconds(10))], Duration::ZERO);
        for (requests, at_s) in [(0.0, 0), (95.0, 1), (480.0, 8), (495.0, 9)] {
            assert_eq!(down.instant_of(requests), Some(at_s * SECOND), "{requests}");
        }
        assert_eq!(down.instant_of(500.0), None);
    }

    #[test]
    fn requests_of_a_window_do_not_depend_on_what_is_before() {
        let stages = [RateStage::steady(33.3, seconds(2)), RateStage::ramp(33.3, 0.1, seconds(1))];
        for warmup in [0, 3] {
            let profile = RateProfile::new(&stages, seconds(warmup)).ending_at((warmup + 2) * SECOND);
            let start = warmup * SECOND;
            assert_eq!(profile.requests_between(start, start + SECOND), 33.3);
            assert_eq!(profile.requests_between(start, start + 9 * SECOND), 66.6);
            assert_eq!(profile.requests_between(start + SECOND, start), 0.0);
        }
    }

    #[test]
    fn ramp_inverse_round_trips() {
        let stages = [
            RateStage::ramp(0.0, 500.0, seconds(3)),
            RateStage::steady(500.0, seconds(2)),
            RateStage::ramp(500.0, 500.001, seconds(2)),
            RateStage::ramp(500.0, 20.0, seconds(5)),
            RateStage::ramp(20.0, 0.0, seconds(1)),
        ];
        let profile = RateProfile::new(&stages, seconds(1));
        let total: f64 = stages.iter().map(RateStage::requests).sum();
        let mut last = 0;
        for ordinal in 0..total as u64 {
            let at = profile.instant_of(ordinal as f64).expect("within the run");
            assert!(ordinal == 0 || at > last, "{ordinal} is due at {at}, the one before at {last}");
            assert!((profile.requests_between(0, at) - profile.requests_until(at)).abs() < 1e-6, "{ordinal}");
            let there = profile.requests_until(at);
            assert!((there - ordinal as f64).abs() < 1e-5, "{ordinal}: {there}");
            last = at;
        }
    }
}
