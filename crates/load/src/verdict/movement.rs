//! Upper bound on how far lateness can have moved a percentile of the response times.
//!
//! Without the lateness, a request that was up to x late would have been answered up to x earlier. So the
//! request of rank r would have taken at least R(r − k) − x, if k requests were later than x. This holds for
//! every x, so the minimum movement over all x is the bound.

use results::{HistogramSummary, LatencyHistogram, RecordedValue};

/// Values of a distribution, each with its cumulative count.
struct Ranked {
    values: Vec<RecordedValue>,
    count: u64,
}

impl Ranked {
    fn new(summary: &HistogramSummary) -> Option<Self> {
        let mut count = 0;
        let mut up_to = |value: RecordedValue| {
            count += value.count;
            RecordedValue { count, ..value }
        };
        let values = LatencyHistogram::decode(&summary.histogram).ok()?.recorded().map(&mut up_to).collect();
        Some(Self { values, count })
    }

    /// The value at a rank, from 1; 0 below that.
    fn at(&self, rank: u64) -> u64 {
        let index = self.values.partition_point(|value| value.count < rank);
        if rank == 0 { 0 } else { self.values.get(index).map_or(u64::MAX, |value| value.value_us) }
    }
}

/// Response times, and the lateness of requests.
pub(super) struct Movement {
    times: Ranked,
    requests: u64,
    lag: Ranked,
}

impl Movement {
    /// `None` if one of them has no values.
    pub(super) fn new(times: &HistogramSummary, lag: &HistogramSummary) -> Option<Self> {
        let (requests, times, lag) = (times.requests(), Ranked::new(times)?, Ranked::new(lag)?);
        (times.count > 0 && lag.count > 0).then_some(Self { times, requests, lag })
    }

    /// Maximum possible movement of a quantile, and its value, microseconds. `None` if the quantile falls
    /// among requests without a response.
    pub(super) fn of(&self, quantile: f64) -> Option<(f64, f64)> {
        let rank = results::rank(self.requests, quantile);
        if rank > self.times.count {
            return None;
        }
        let value = self.times.at(rank);
        let least_without = |lag: &RecordedValue| {
            let later = self.lag.count - lag.count;
            self.times.at(rank.saturating_sub(later)).saturating_sub(lag.value_us)
        };
        let without = self.lag.values.iter().map(least_without).max().unwrap_or(value);
        Some((value.saturating_sub(without) as f64, value as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn summary(values_us: impl IntoIterator<Item = u64>) -> HistogramSummary {
        let mut histogram = LatencyHistogram::new();
        values_us.into_iter().for_each(|us| histogram.record(Duration::from_micros(us)));
        histogram.summary()
    }

    #[test]
    fn lateness_of_few_requests_moves_only_percentiles_beyond_them() {
        // 1000 requests between 1000 and 1500 µs, of which five were 5 ms late.
        let times = summary((0..995).map(|index| 1000 + index / 2).chain([6000; 5]));
        let movement =
            Movement::new(&times, &summary((0..1000).map(|index| if index < 995 { 1 } else { 5000 })))
                .unwrap();
        let moved = |quantile| movement.of(quantile).unwrap().0;
        assert!(moved(0.5) <= 5.0 && moved(0.99) <= 10.0, "{} {}", moved(0.5), moved(0.99));
        assert!(moved(0.999) >= 4490.0 && moved(1.0) >= 4490.0, "{}", moved(0.999));
    }

    #[test]
    fn lateness_of_all_requests_moves_every_percentile_by_that_much() {
        let movement =
            Movement::new(&summary((0..1000).map(|index| 500 + index)), &summary([100; 1000])).unwrap();
        for quantile in [0.5, 0.9, 1.0] {
            assert_eq!(movement.of(quantile).unwrap().0, 100.0);
        }
    }

    #[test]
    fn percentile_without_response_cannot_be_moved() {
        let mut times = summary(1..=990);
        times.censored = 10;
        let movement = Movement::new(&times, &summary([1; 1000])).unwrap();
        assert_eq!(movement.of(0.99).map(|(_, value)| value), Some(990.0));
        assert_eq!(movement.of(0.999), None);
        assert!(Movement::new(&HistogramSummary::default(), &times).is_none());
    }
}
