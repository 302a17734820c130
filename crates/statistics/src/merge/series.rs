//! Aligns the seconds of several generators.
//!
//! A second counts for that second after the earliest start in which most of it lies, so it is off by at most
//! half a second. Percentiles of a second are exact if every result has histograms per second. Otherwise the
//! maximum among the generators is used. That is an upper bound: the percentile of a union lies between those
//! of its parts.

use super::error::MergeError;
use super::placed::{Placed, histogram, seconds_between};
use results::{LatencyHistogram, LoadResult, SeriesPoint};
use std::collections::BTreeMap;

/// True if every second has a histogram.
pub(super) fn is_exact(result: &LoadResult) -> bool {
    result.series_histograms.len() == result.series.len()
}

/// The merged seconds, with their histograms if all results have them.
pub(super) fn merge(placed: &[Placed]) -> Result<(Vec<SeriesPoint>, Vec<String>), MergeError> {
    let Some(start) = placed.iter().map(|placed| placed.start).min() else {
        return Ok((Vec::new(), Vec::new()));
    };
    let exact = placed.iter().all(|placed| is_exact(&placed.part.result));
    let mut seconds: BTreeMap<i64, Second> = BTreeMap::new();
    for Placed { part, start: own_start, .. } in placed {
        let offset_s = seconds_between(start, *own_start);
        for (index, point) in part.result.series.iter().enumerate() {
            let second = seconds.entry((offset_s + point.t_s).round() as i64).or_default();
            second.add(point);
            // A second without a response has nothing to merge.
            if exact && point.completed > 0 {
                let text = &part.result.series_histograms[index];
                let field = format!("series_histograms[{index}]");
                second.times.get_or_insert_default().merge(&histogram(
                    &part.name,
                    &field,
                    text,
                    point.completed,
                )?);
            }
        }
    }
    let points = seconds.iter().map(|(index, second)| second.point(*index, exact)).collect();
    let histograms = seconds.values().map(|second| second.times.clone().unwrap_or_default().encode());
    Ok((points, if exact { histograms.collect() } else { Vec::new() }))
}

#[derive(Default)]
struct Second {
    /// Counts are summed, times are maxima.
    sum: SeriesPoint,
    times: Option<LatencyHistogram>,
}

impl Second {
    fn add(&mut self, point: &SeriesPoint) {
        let sum = &mut self.sum;
        sum.sent = sum.sent.saturating_add(point.sent);
        sum.completed = sum.completed.saturating_add(point.completed);
        sum.failed = sum.failed.saturating_add(point.failed);
        for (mine, theirs) in [
            (&mut sum.p50_us, point.p50_us),
            (&mut sum.p90_us, point.p90_us),
            (&mut sum.p99_us, point.p99_us),
            (&mut sum.p99_9_us, point.p99_9_us),
            (&mut sum.max_us, point.max_us),
        ] {
            // `None` ranks above any number.
            *mine = mine.zip(theirs).map(|(mine, theirs)| mine.max(theirs));
        }
    }

    fn point(&self, index: i64, exact: bool) -> SeriesPoint {
        let sum = SeriesPoint { t_s: index as f64, ..self.sum };
        match &self.times {
            Some(times) if exact => SeriesPoint {
                p50_us: times.percentile_with(50.0, sum.failed),
                p90_us: times.percentile_with(90.0, sum.failed),
                p99_us: times.percentile_with(99.0, sum.failed),
                p99_9_us: times.percentile_with(99.9, sum.failed),
                max_us: (sum.failed == 0).then(|| times.max_us()),
                ..sum
            },
            _ => sum,
        }
    }
}
