//! fortio's histograms: counts between its own bounds, in seconds or bytes.

use results::{HistogramSummary, LatencyHistogram, SizeSummary};
use serde::Serialize;

/// The bounds of fortio's buckets (stats/stats.go, histogramBucketValues), in units of the resolution. One
/// more bucket holds everything beyond the last bound.
const BOUNDS: [u64; 56] = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 18, 20, 25, 30, 35, 40, 45, 50, 60, 70, 80, 90, 100,
    120, 140, 160, 180, 200, 250, 300, 350, 400, 450, 500, 600, 700, 800, 900, 1000, 2000, 3000, 4000, 5000,
    7500, 10_000, 20_000, 30_000, 40_000, 50_000, 75_000, 100_000,
];
/// Available resolutions in microseconds; the last one is fortio's default.
const RESOLUTIONS_US: [u64; 4] = [1, 10, 100, 1000];
/// Microseconds per second.
const US_IN_S: f64 = 1e6;

/// fortio's HistogramData.
#[derive(Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct HistogramData {
    count: u64,
    min: f64,
    max: f64,
    sum: f64,
    avg: f64,
    std_dev: f64,
    /// Null if there are no values, as in fortio.
    data: Option<Vec<Bucket>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    percentiles: Vec<Percentile>,
}

#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Bucket {
    start: f64,
    end: f64,
    /// Percentage of all values up to `end`.
    percent: f64,
    count: u64,
}

#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Percentile {
    percentile: f64,
    value: f64,
}

impl HistogramData {
    /// Histogram of a time distribution, in seconds. Requests without a response count with the lower bound
    /// of their time, `above_us`.
    pub(super) fn of_times(summary: &HistogramSummary, above_us: Option<f64>) -> Self {
        let histogram = LatencyHistogram::decode(&summary.histogram).unwrap_or_default();
        let count = histogram.count() + summary.censored;
        if count == 0 {
            return Self::default();
        }
        let above_us = above_us.unwrap_or_default().max(histogram.max_us());
        let (answered, censored) = (histogram.count() as f64, summary.censored as f64);
        let sum_us = histogram.mean_us() * answered + above_us * censored;
        let squares = (histogram.stddev_us().powi(2) + histogram.mean_us().powi(2)) * answered
            + above_us.powi(2) * censored;
        let avg_us = sum_us / count as f64;
        let std_dev_us = (squares / count as f64 - avg_us * avg_us).max(0.0).sqrt();
        let max_us = if summary.censored > 0 { above_us } else { histogram.max_us() };
        let percentiles = [
            (50.0, summary.p50),
            (75.0, summary.p75),
            (90.0, summary.p90),
            (99.0, summary.p99),
            (99.9, summary.p99_9),
        ];
        Self {
            count,
            min: if histogram.count() > 0 { summary.min } else { above_us } / US_IN_S,
            max: max_us / US_IN_S,
            sum: sum_us / US_IN_S,
            avg: avg_us / US_IN_S,
            std_dev: std_dev_us / US_IN_S,
            data: Some(buckets(&histogram, summary, above_us)),
            percentiles: percentiles
                .map(|(percentile, value_us)| Percentile {
                    percentile,
                    value: value_us.unwrap_or(above_us) / US_IN_S,
                })
                .into(),
        }
    }
}

/// Counts between fortio's bounds, at the finest resolution that covers the maximum. Empty buckets are left
/// out. The first bucket starts at the minimum and the last one ends at the maximum.
fn buckets(histogram: &LatencyHistogram, summary: &HistogramSummary, above_us: f64) -> Vec<Bucket> {
    let reach = BOUNDS[BOUNDS.len() - 1] as f64;
    let fits = |resolution: &&u64| reach * **resolution as f64 >= histogram.max_us();
    let resolution_us = *RESOLUTIONS_US.iter().find(fits).unwrap_or(&1000);
    let mut buckets: Vec<Bucket> = Vec::new();
    let mut values = histogram.recorded().peekable();
    let (mut start_us, mut total) = (0, 0);
    for end_us in BOUNDS.map(|bound| bound * resolution_us).into_iter().chain([u64::MAX]) {
        let mut count = 0;
        while let Some(value) = values.next_if(|value| value.value_us <= end_us) {
            count += value.count;
        }
        if count > 0 {
            total += count;
            let start = if buckets.is_empty() { summary.min } else { start_us as f64 };
            buckets.push(Bucket {
                start: start / US_IN_S,
                end: end_us as f64 / US_IN_S,
                percent: 100.0 * total as f64 / summary.requests() as f64,
                count,
            });
        }
        start_us = end_us;
    }
    if let Some(last) = buckets.last_mut() {
        last.end = histogram.max_us() / US_IN_S;
    }
    if summary.censored > 0 {
        let start = histogram.max_us() / US_IN_S;
        buckets.push(Bucket { start, end: above_us / US_IN_S, percent: 100.0, count: summary.censored });
    }
    buckets
}

/// Sizes of responses. As in fortio, a failed request counts as a response of zero bytes.
pub(super) fn sizes(sizes: &SizeSummary, failed: u64) -> HistogramData {
    let count = sizes.count + failed;
    if count == 0 {
        return HistogramData::default();
    }
    let sum = sizes.mean * sizes.count as f64;
    let squares = (sizes.stddev.powi(2) + sizes.mean.powi(2)) * sizes.count as f64;
    let avg = sum / count as f64;
    let (min, max) = (if failed > 0 { 0.0 } else { sizes.min as f64 }, sizes.max as f64);
    HistogramData {
        count,
        min,
        max,
        sum,
        avg,
        std_dev: (squares / count as f64 - avg * avg).max(0.0).sqrt(),
        data: Some(vec![Bucket { start: min, end: max, percent: 100.0, count }]),
        percentiles: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn data(values_us: &[u64]) -> HistogramData {
        let mut histogram = LatencyHistogram::new();
        for us in values_us {
            histogram.record(Duration::from_micros(*us));
        }
        HistogramData::of_times(&histogram.summary(), None)
    }

    #[test]
    fn buckets_have_fortio_bounds_and_contain_every_value() {
        let found = data(&[29, 950, 1500, 1501, 7223]);
        let buckets = found.data.unwrap();
        let shape: Vec<_> = buckets.iter().map(|bucket| (bucket.start, bucket.end, bucket.count)).collect();
        assert_eq!(shape, [(29e-6, 30e-6, 1), (900e-6, 1e-3, 1), (1e-3, 2e-3, 2), (5e-3, 7223e-6, 1)]);
        assert_eq!(
            buckets.iter().map(|bucket| bucket.percent).collect::<Vec<_>>(),
            [20.0, 40.0, 80.0, 100.0]
        );
        assert_eq!((found.count, found.min, found.max), (5, 29e-6, 7223e-6));
    }

    #[test]
    fn resolution_covers_maximum() {
        let second = data(&[5, 999_000]);
        let (max, buckets) = (second.max, second.data.unwrap());
        assert_eq!((buckets[0].start, buckets[0].end), (5e-6, 10e-6));
        assert_eq!((buckets[1].start, buckets[1].end), (0.75, max));
        let hour = data(&[3_600_000_000]).data.unwrap();
        assert_eq!(hour.len(), 1);
        assert_eq!(hour[0].count, 1);
    }

    #[test]
    fn empty_histogram_matches_fortio() {
        let text = serde_json::to_string(&data(&[])).unwrap();
        let expected = r#"{"Count":0,"Min":0.0,"Max":0.0,"Sum":0.0,"Avg":0.0,"StdDev":0.0,"Data":null}"#;
        assert_eq!(text, expected);
    }

    #[test]
    fn failed_requests_count_as_empty_responses() {
        let all = SizeSummary { count: 3, min: 100, mean: 100.0, stddev: 0.0, max: 100 };
        let found = sizes(&all, 1);
        assert_eq!((found.count, found.min, found.avg), (4, 0.0, 75.0));
        // For 100, 100, 100 and 0.
        assert!((found.std_dev - 43.301).abs() < 0.001);
    }
}
