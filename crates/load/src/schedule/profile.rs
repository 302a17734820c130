//! A rate over time, and its inverse: when is the k-th request due?

use crate::clock::{Nanos, SECOND, nanos};
use std::time::Duration;

/// A rate held for some time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateStage {
    /// Requests a second, offered by all threads together; 0 is a pause.
    pub rate: f64,
    /// For how long.
    pub duration: Duration,
}

/// Rates over the whole run, warm-up included.
///
/// Arrivals of rate 1 (the requests' ordinal numbers, or a unit Poisson process) pass through the inverse of the
/// cumulative rate: that turns them into arrivals of the rate wanted, whatever its shape.
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
    rate: f64,
}

impl RateProfile {
    /// A profile that opens with `warmup` at the first stage's rate.
    pub(crate) fn new(stages: &[RateStage], warmup: Duration) -> Self {
        let first_rate = stages.first().map_or(0.0, |stage| stage.rate);
        let mut profile = Self { stages: Vec::new(), end: 0, total_requests: 0.0 };
        profile.push(RateStage { rate: first_rate, duration: warmup });
        for stage in stages {
            profile.push(*stage);
        }
        profile
    }

    fn push(&mut self, stage: RateStage) {
        self.stages.push(CumulativeStage {
            start: self.end,
            requests_before: self.total_requests,
            rate: stage.rate,
        });
        self.total_requests += stage.rate * stage.duration.as_secs_f64();
        self.end += nanos(stage.duration);
    }

    /// The cumulative number of requests at `instant`.
    pub(crate) fn requests_until(&self, instant: Nanos) -> f64 {
        let instant = instant.min(self.end);
        let index = self.stages.partition_point(|stage| stage.start <= instant).saturating_sub(1);
        self.stages.get(index).map_or(0.0, |stage| {
            stage.requests_before + stage.rate * (instant - stage.start) as f64 / SECOND as f64
        })
    }

    /// When the cumulative number of requests reaches `requests`; absent beyond the end.
    pub(crate) fn instant_of(&self, requests: f64) -> Option<Nanos> {
        let index = self.stages.partition_point(|stage| stage.requests_before <= requests).checked_sub(1)?;
        let stage = &self.stages[index];
        if stage.rate <= 0.0 {
            return None;
        }
        let offset_s = (requests - stage.requests_before) / stage.rate;
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
    fn requests_are_due_at_even_distances() {
        let profile = RateProfile::new(&[RateStage { rate: 1000.0, duration: seconds(2) }], seconds(1));
        assert_eq!(profile.instant_of(0.0), Some(0));
        assert_eq!(profile.instant_of(1.0), Some(1_000_000));
        assert_eq!(profile.instant_of(2999.0), Some(2_999_000_000));
        assert_eq!(profile.instant_of(3000.0), None);
    }

    #[test]
    fn stages_follow_each_other_and_pauses_hold_no_request() {
        let stages = [
            RateStage { rate: 10.0, duration: seconds(1) },
            RateStage { rate: 0.0, duration: seconds(5) },
            RateStage { rate: 100.0, duration: seconds(1) },
        ];
        let profile = RateProfile::new(&stages, Duration::ZERO);
        assert_eq!(profile.instant_of(9.0), Some(900_000_000));
        assert_eq!(profile.instant_of(10.0), Some(6 * SECOND));
        assert_eq!(profile.instant_of(11.0), Some(6 * SECOND + 10_000_000));
        assert_eq!(profile.instant_of(110.0), None);
    }

    #[test]
    fn a_pause_at_the_end_is_no_request() {
        let stages =
            [RateStage { rate: 10.0, duration: seconds(1) }, RateStage { rate: 0.0, duration: seconds(1) }];
        let profile = RateProfile::new(&stages, Duration::ZERO);
        assert_eq!(profile.instant_of(10.0), None);
    }
}
