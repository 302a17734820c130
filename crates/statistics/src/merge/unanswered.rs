//! Requests without a response, of all generators: what their percentiles are greater than.

use super::error::MergeError;
use super::placed::histogram;
use crate::unanswered_waits::UnansweredWaits;
use results::{HistogramSummary, LoadResult, UrlResult};

/// Requests without a response, as one generator knows them.
pub(super) struct Unanswered<'a> {
    waits_us: &'a [(f64, u64)],
    failed: u64,
    unsent: u64,
    censored: u64,
    above_us: Option<f64>,
}

impl<'a> Unanswered<'a> {
    pub(super) fn of_result(result: &'a LoadResult) -> Self {
        Self {
            waits_us: &result.unanswered_waits_us,
            failed: result.requests.failed,
            unsent: result.requests.unsent,
            censored: result.response_time_us.censored,
            above_us: result.censored_above_us,
        }
    }

    pub(super) fn of_url(record: &'a UrlResult) -> Self {
        Self {
            waits_us: &record.unanswered_waits_us,
            failed: record.failed,
            unsent: record.unsent,
            censored: record.response_time_us.censored,
            above_us: record.censored_above_us,
        }
    }

    /// True if it is known how long each request without a response had waited; of requests never sent, not all results have
    /// it.
    fn knows_waits(&self) -> bool {
        let known = UnansweredWaits::from_entries(self.waits_us).count();
        known >= self.failed && known.saturating_add(self.unsent) >= self.censored
    }
}

/// Waits of requests without a response, of all generators.
pub(super) fn waits(of: &[Unanswered<'_>]) -> UnansweredWaits {
    let mut all = UnansweredWaits::default();
    of.iter().for_each(|one| all.merge(&UnansweredWaits::from_entries(one.waits_us)));
    all
}

/// Lower bound of the least percentile of all response times that is among requests without a response, which had these waits.
pub(super) fn above_us(
    of: &[Unanswered<'_>],
    waits: &UnansweredWaits,
    times: &HistogramSummary,
) -> Result<Option<f64>, MergeError> {
    let greatest_us = histogram("the sum", "response_time_us", &times.histogram, times.count)?.max_us();
    if of.iter().all(Unanswered::knows_waits) {
        return Ok(waits.above_us(times.count, greatest_us, times.censored.saturating_sub(waits.count())));
    }
    // Some results have the bound alone. A request without a response ranks above all answers.
    let least_us = of.iter().filter_map(|one| one.above_us).reduce(f64::min);
    Ok(least_us.map(|least_us| least_us.max(greatest_us)))
}
