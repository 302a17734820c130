//! The whole distribution of a cell's requests on both clocks.
//!
//! Percentiles are over all requests together, from merged histograms: ten requests beyond the 99.999th
//! percentile take a million requests.

use crate::curve::whole;
use crate::trials::{SATURATED, is_valid, reason_kind, with_sound_tail};
use experiment::objective::SAMPLES_BEYOND_A_PERCENTILE;
use results::{
    AbsentPercentile, DistributionPoint, HistogramSummary, LatencyHistogram, LoadResult, RequestDistribution,
    TrialRecord, rank,
};

/// Percentiles of the usual HdrHistogram charts.
const PERCENTILES: [f64; 8] = [50.0, 75.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0];

/// True if saturation is the first reason that spoils a trial's figures.
pub(crate) fn is_saturated(trial: &TrialRecord) -> bool {
    reason_kind(trial) == SATURATED
}

/// Distribution over the trials of an open loop with a sound tail; if `verdict` is saturation, over all valid
/// and saturated trials. `None` if there are none, or if a histogram cannot be decoded.
pub(super) fn distribution(verdict: &str, trials: &[&TrialRecord]) -> Option<RequestDistribution> {
    let saturated = verdict == SATURATED;
    let entering = if saturated {
        let enters = |trial: &&TrialRecord| is_valid(trial) || is_saturated(trial);
        trials.iter().copied().filter(enters).collect()
    } else {
        with_sound_tail(trials)
    };
    let results: Vec<&LoadResult> = entering.into_iter().filter_map(|trial| trial.result.as_ref()).collect();
    if results.is_empty() || results.iter().any(|result| result.rate.offered.is_none()) {
        return None;
    }
    let response = merged(&results, |result| &result.response_time_us)?;
    let service = merged(&results, |result| &result.service_time_us)?;
    let due: u64 = results.iter().map(|result| result.requests.scheduled).sum();
    let due = due.max(response.count());
    let point = |percentile| point(percentile, due, &response, &service);
    Some(RequestDistribution {
        trials: results.len(),
        saturated,
        due,
        answered: response.count(),
        censored_above_us: results.iter().filter_map(|result| result.censored_above_us).reduce(f64::min),
        percentiles: PERCENTILES.into_iter().map(point).collect(),
    })
}

fn merged(results: &[&LoadResult], times: fn(&LoadResult) -> &HistogramSummary) -> Option<LatencyHistogram> {
    let all = results.iter().map(|result| times(result));
    whole(all).ok()?.filter(|whole| whole.count() > 0)
}

fn point(
    percentile: f64,
    due: u64,
    response: &LatencyHistogram,
    service: &LatencyHistogram,
) -> DistributionPoint {
    let answered = response.count();
    let fraction = percentile / 100.0;
    // The fraction is not exact in binary.
    let resolved = percentile >= 100.0
        || answered as f64 * (1.0 - fraction) >= SAMPLES_BEYOND_A_PERCENTILE * (1.0 - 1e-6);
    let at = |histogram: &LatencyHistogram, percentile| resolved.then(|| histogram.percentile_us(percentile));
    let among_answered = rank(due, fraction) <= answered;
    let unanswered = due.saturating_sub(answered);
    DistributionPoint {
        percentile,
        response_time_us: if resolved { response.percentile_with(percentile, unanswered) } else { None },
        answered_response_time_us: at(response, percentile),
        service_time_us: at(service, percentile),
        absent: match (resolved, among_answered) {
            (true, true) => None,
            (_, false) => Some(AbsentPercentile::Unanswered),
            (false, true) => Some(AbsentPercentile::TooFewRequests),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn times(from_us: u64, to_us: u64) -> LatencyHistogram {
        let mut histogram = LatencyHistogram::new();
        (from_us..=to_us).for_each(|us| histogram.record(Duration::from_micros(us)));
        histogram
    }

    fn points(due: u64, response: &LatencyHistogram, service: &LatencyHistogram) -> Vec<DistributionPoint> {
        PERCENTILES.into_iter().map(|percentile| point(percentile, due, response, service)).collect()
    }

    fn near(figure: Option<f64>, expected: f64) -> bool {
        figure.is_some_and(|figure| (figure / expected - 1.0).abs() < 0.002)
    }

    #[test]
    fn percentile_needs_ten_requests_beyond_it_but_maximum_needs_none() {
        let all = points(1000, &times(1, 1000), &times(1, 1000));
        assert!(near(all[0].response_time_us, 500.0) && near(all[3].service_time_us, 990.0), "{all:?}");
        let absent: Vec<_> = all.iter().map(|point| point.absent.is_some()).collect();
        assert_eq!(absent, [false, false, false, false, true, true, true, false]);
        assert_eq!((all[4].response_time_us, all[4].absent), (None, Some(AbsentPercentile::TooFewRequests)));
        assert!(near(all[7].response_time_us, 1000.0));
    }

    #[test]
    fn requests_without_response_rank_above_answered() {
        // Every second request was never sent: the median is the slowest response, and nothing beyond it is a
        // number.
        let all = points(2000, &times(1001, 2000), &times(1, 1000));
        assert!(near(all[0].response_time_us, 2000.0), "{:?}", all[0]);
        assert!(near(all[0].answered_response_time_us, 1500.0) && near(all[0].service_time_us, 500.0));
        for point in &all[1..] {
            assert_eq!((point.response_time_us, point.absent), (None, Some(AbsentPercentile::Unanswered)));
        }
        assert!(near(all[7].answered_response_time_us, 2000.0) && near(all[7].service_time_us, 1000.0));
    }
}
