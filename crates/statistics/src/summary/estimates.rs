//! Estimates over the trials of a cell.

use crate::interval;
use experiment::objective::SAMPLES_BEYOND_A_PERCENTILE;
use results::{CensoredPercentiles, Estimate, Figure, Figures, HistogramSummary, LoadResult, Percentiles};
use std::collections::BTreeMap;

/// Verdict of a cell whose figures are usable.
pub const VALID: &str = "valid";

/// `valid` if more than half of `places` are valid, else the most common of these kinds of reasons.
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

/// Resolution of a histogram at a value: 1 µs, or a bucket of 3 significant digits above that.
pub(crate) fn resolution_us(value_us: f64) -> f64 {
    (value_us / 1024.0).max(0.5)
}

/// Figures of times that were measured once per repeat. `times` returns the distributions in which a figure
/// is usable, `mean` its estimate.
pub(super) fn percentiles<'a>(
    times: impl Fn(Figure) -> Vec<&'a HistogramSummary>,
    mean: impl Fn(Figure) -> Option<Estimate>,
) -> Option<Percentiles> {
    let resolved = |figure: Figure| {
        let beyond = 1.0 - figure.quantile()?;
        // The fraction is not exact in binary.
        let is_resolved = |times: &&HistogramSummary| {
            times.count as f64 * beyond >= SAMPLES_BEYOND_A_PERCENTILE * (1.0 - 1e-6)
        };
        mean(figure).filter(|_| times(figure).iter().all(is_resolved))
    };
    let greatest: Option<Vec<f64>> = times(Figure::Max).iter().map(|times| times.max).collect();
    let max = greatest.and_then(|all| {
        let greatest = all.iter().copied().reduce(f64::max)?;
        Some(Estimate { n: all.len(), ..Estimate::single(greatest) })
    });
    let any = Figures::times().iter().any(|figure| !times(figure).is_empty());
    any.then(|| Percentiles {
        mean: mean(Figure::Mean),
        p50: mean(Figure::P50),
        p75: mean(Figure::P75),
        p90: mean(Figure::P90),
        p95: mean(Figure::P95),
        p99: mean(Figure::P99),
        p99_9: mean(Figure::P99_9),
        p99_99: resolved(Figure::P99_99),
        max,
        censored: None,
    })
}

/// Marks the percentiles of the response time that fall among requests without a response in any result that
/// `usable` returns. In that case there is no maximum either.
pub(super) fn with_censored<'a>(
    percentiles: Percentiles,
    usable: impl Fn(Figure) -> Vec<&'a LoadResult>,
) -> Percentiles {
    let is_censored = |result: &&LoadResult, figure| {
        result.response_time_us.requests() > 0 && result.response_time_us.figure(figure).is_none()
    };
    let first = quantiles().find_map(|from| {
        let censored: Vec<&LoadResult> =
            usable(from).into_iter().filter(|result| is_censored(result, from)).collect();
        let above_us = censored.iter().filter_map(|result| result.censored_above_us).reduce(f64::min);
        (!censored.is_empty()).then_some(CensoredPercentiles { from, above_us })
    });
    let max = percentiles.max.filter(|_| first.is_none());
    Percentiles { max, censored: first, ..percentiles }
}

/// Like [`with_censored`], for times that do not record how long requests without a response waited.
pub(super) fn with_unanswered(percentiles: Percentiles, times: &[&HistogramSummary]) -> Percentiles {
    let is_absent =
        |from: &Figure| times.iter().any(|times| times.censored > 0 && times.figure(*from).is_none());
    let censored = quantiles().find(is_absent).map(|from| CensoredPercentiles { from, above_us: None });
    Percentiles { censored, ..percentiles }
}

fn quantiles() -> impl Iterator<Item = Figure> {
    Figure::ALL.into_iter().filter(|figure| figure.quantile().is_some())
}

/// Like [`percentiles`], with each figure estimated from its own cell alone. A figure that falls among
/// requests without a response in one of the results is absent.
pub(super) fn percentiles_alone<'a>(
    times: impl Fn(Figure) -> Vec<&'a HistogramSummary>,
) -> Option<Percentiles> {
    let mean = |figure: Figure| {
        let values: Vec<f64> =
            times(figure).iter().map(|times| times.figure(figure)).collect::<Option<_>>()?;
        interval::mean(&values, resolution_of(&values)).map(not_below_zero)
    };
    percentiles(&times, mean)
}

/// Resolution of histograms at the greatest of these values.
pub(super) fn resolution_of(values: &[f64]) -> f64 {
    resolution_us(values.iter().copied().fold(0.0, f64::max))
}

pub(super) fn estimate(values: impl Iterator<Item = f64>) -> Option<Estimate> {
    interval::mean(&values.collect::<Vec<_>>(), 0.0).map(not_below_zero)
}

/// Counts and times are never negative: the interval ends at zero, with the same coverage.
pub(super) fn not_below_zero(estimate: Estimate) -> Estimate {
    Estimate { low: estimate.low.map(|low| low.max(0.0)), ..estimate }
}
