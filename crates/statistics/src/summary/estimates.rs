//! Estimates over the trials of a cell.

use crate::interval;
use experiment::schema::{Estimate, HistogramSummary, LoadResult, Percentiles, RequestCounts};
use std::collections::BTreeMap;

/// The verdict of a cell that may be used.
pub const VALID: &str = "valid";

/// `valid` if more than half of `places` are, else the commonest of these kinds of reasons.
pub(super) fn commonest_kind<'a>(
    kinds: impl Iterator<Item = &'a str>,
    valid: usize,
    places: usize,
) -> String {
    if valid * 2 > places {
        return VALID.to_owned();
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for kind in kinds {
        *counts.entry(kind).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map_or(VALID, |(kind, _)| kind).to_owned()
}

/// The least difference that a histogram tells apart at a value: 1 µs, and a bucket of 3 significant digits above.
pub(super) fn resolution_us(value_us: f64) -> f64 {
    (value_us / 1024.0).max(0.5)
}

pub(super) fn percentiles(results: &[&LoadResult]) -> Option<Percentiles> {
    percentiles_of(&results.iter().map(|result| &result.response_time_us).collect::<Vec<_>>())
}

/// Of the times of each trial.
pub(super) fn percentiles_of(times: &[&HistogramSummary]) -> Option<Percentiles> {
    let estimate = |read: fn(&HistogramSummary) -> f64| {
        let values: Vec<f64> = times.iter().map(|times| read(times)).collect();
        let greatest = values.iter().copied().fold(0.0, f64::max);
        interval::mean(&values, resolution_us(greatest)).map(not_below_zero)
    };
    Some(Percentiles {
        mean: estimate(|histogram| histogram.mean),
        p50: estimate(|histogram| histogram.p50)?,
        p90: estimate(|histogram| histogram.p90)?,
        p95: estimate(|histogram| histogram.p95),
        p99: estimate(|histogram| histogram.p99)?,
        p99_9: estimate(|histogram| histogram.p99_9)?,
    })
}

pub(super) fn estimate(values: impl Iterator<Item = f64>) -> Option<Estimate> {
    interval::mean(&values.collect::<Vec<_>>(), 0.0).map(not_below_zero)
}

/// What is counted or timed is never negative: an interval of it ends at zero, and holds the truth as often as before.
fn not_below_zero(estimate: Estimate) -> Estimate {
    Estimate { low: estimate.low.map(|low| low.max(0.0)), ..estimate }
}

/// Over all trials: an invalid trial's errors are errors too.
pub(super) fn error_fraction<'a>(counts: impl Iterator<Item = &'a RequestCounts>) -> f64 {
    let counts: Vec<&RequestCounts> = counts.collect();
    let sent: u64 = counts.iter().map(|requests| requests.sent).sum();
    let wrong: u64 = counts.iter().map(|requests| requests.failed + requests.error_statuses()).sum();
    match sent {
        0 if counts.iter().any(|requests| !requests.errors.is_empty()) => 1.0,
        0 => 0.0,
        _ => wrong as f64 / sent as f64,
    }
}
