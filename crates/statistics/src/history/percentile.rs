//! Intervals of percentiles of one load, by its histogram.

use results::Estimate;
use results::foreign::{Step, at_rank};

/// Half-width of a 95 % interval of a binomial count, in standard deviations.
const NORMAL_95: f64 = 1.96;

/// A percentile with the interval between the ranks that it has in 95 % of samples.
///
/// Requests are counted as independent, or, if fewer separate events than requests are known beyond the percentile, as clusters of
/// equal size: the variance of the count is then that many times greater. The interval speaks of this load alone. `total` includes
/// requests without a response, which rank above all others: an end among them is open.
pub(super) fn with_interval(
    estimate: f64,
    steps: &[Step],
    total: u64,
    quantile: f64,
    events_beyond: Option<f64>,
) -> Estimate {
    let single = Estimate::single(estimate);
    if steps.is_empty() || total == 0 {
        return single;
    }
    let requests = total as f64;
    let beyond = requests * (1.0 - quantile);
    let clusters =
        events_beyond.filter(|events| *events > 0.0).map_or(1.0, |events| (beyond / events).max(1.0));
    let half = NORMAL_95 * (requests * quantile * (1.0 - quantile) * clusters).sqrt();
    let (low, high) = ((requests * quantile - half).floor(), (requests * quantile + half).ceil() + 1.0);
    let low = at_rank(steps, low.max(1.0) as u64).map(|step| step.from_us);
    let high = at_rank(steps, high as u64).map(|step| step.to_us);
    match (low, high) {
        (Some(low), Some(high)) => {
            Estimate { low: Some(low.min(estimate)), high: Some(high.max(estimate)), ..single }
        }
        _ => single,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps() -> Vec<Step> {
        (0..1000).map(|at| Step { from_us: f64::from(at), to_us: f64::from(at + 1), count: 10 }).collect()
    }

    #[test]
    fn interval_covers_the_ranks_of_a_binomial_count() {
        let median = with_interval(500.0, &steps(), 10_000, 0.5, None);
        // 5000 ± 98 requests, ten a step.
        assert_eq!((median.low, median.high), (Some(490.0), Some(510.0)));
        let clustered = with_interval(990.0, &steps(), 10_000, 0.99, Some(25.0));
        let plain = with_interval(990.0, &steps(), 10_000, 0.99, None);
        let width = |estimate: Estimate| estimate.high.unwrap() - estimate.low.unwrap();
        assert!(width(clustered) > width(plain), "{clustered:?} {plain:?}");
    }

    #[test]
    fn no_histogram_and_an_end_among_lost_requests_have_no_interval() {
        assert_eq!(with_interval(5.0, &[], 1000, 0.5, None), Estimate::single(5.0));
        assert_eq!(with_interval(999.0, &steps(), 10_150, 0.99, None).high, None);
    }
}
