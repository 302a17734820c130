//! Estimates over the trials of a cell.

use crate::interval;
use experiment::TimeFigure;
use experiment::objective::SAMPLES_BEYOND_A_PERCENTILE;
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
pub(crate) fn resolution_us(value_us: f64) -> f64 {
    (value_us / 1024.0).max(0.5)
}

/// Figures of the response time.
pub(super) fn percentiles(results: &[&LoadResult]) -> Option<Percentiles> {
    clock_percentiles(results, |result| &result.response_time_us)
}

/// Figures of one of a result's distributions. A request without a response ranks above all others.
pub(super) fn clock_percentiles(
    results: &[&LoadResult],
    times: fn(&LoadResult) -> &HistogramSummary,
) -> Option<Percentiles> {
    let all = percentiles_of(&results.iter().map(|result| times(result)).collect::<Vec<_>>())?;
    let is_answered = |result: &&LoadResult| result.requests.failed + result.requests.unsent == 0;
    Some(Percentiles { max: all.max.filter(|_| results.iter().all(is_answered)), ..all })
}

/// Of the times of each trial.
pub(super) fn percentiles_of(times: &[&HistogramSummary]) -> Option<Percentiles> {
    let estimate = |figure: TimeFigure| {
        let values: Vec<f64> = times.iter().map(|times| figure.of(times)).collect::<Option<_>>()?;
        let greatest = values.iter().copied().fold(0.0, f64::max);
        interval::mean(&values, resolution_us(greatest)).map(not_below_zero)
    };
    let resolves_p99_99 = times.iter().all(|times| times.count as f64 * 1e-4 >= SAMPLES_BEYOND_A_PERCENTILE);
    let greatest = times.iter().map(|times| times.max).collect::<Option<Vec<f64>>>();
    let greatest = greatest.and_then(|all| all.into_iter().reduce(f64::max));
    (!times.is_empty()).then(|| Percentiles {
        mean: estimate(TimeFigure::Mean),
        p50: estimate(TimeFigure::P50),
        p75: estimate(TimeFigure::P75),
        p90: estimate(TimeFigure::P90),
        p95: estimate(TimeFigure::P95),
        p99: estimate(TimeFigure::P99),
        p99_9: estimate(TimeFigure::P99_9),
        p99_99: estimate(TimeFigure::P99_99).filter(|_| resolves_p99_99),
        max: greatest.map(|max| Estimate { n: times.len(), ..Estimate::single(max) }),
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
