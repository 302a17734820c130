//! Percentile curves from the histograms of valid trials, merged whole.

use experiment::Mode;
use experiment::schema::{HistogramSummary, LoadPoint, LoadResult, TrialRecord};
use statistics::LatencyHistogram;

/// A curve stops where fewer requests than this lie beyond it: what comes after is chance.
const LEAST_BEYOND: f64 = 10.0;
/// Points between two nines.
const STEPS_PER_NINE: usize = 24;

/// One point of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PercentilePoint {
    /// 0 to under 100.
    pub percentile: f64,
    /// Microseconds.
    pub time_us: f64,
}

/// The distributions of one mode under one load.
#[derive(Clone, Debug)]
pub struct Curve {
    /// The arrangement of proxies.
    pub mode: Mode,
    /// The load offered.
    pub load: LoadPoint,
    /// From the intended start.
    pub response: Vec<PercentilePoint>,
    /// From the actual send.
    pub service: Vec<PercentilePoint>,
}

impl Curve {
    /// The curve of one cell; absent where no valid trial has a histogram with enough requests.
    pub fn of_trials(mode: Mode, load: &LoadPoint, trials: &[TrialRecord]) -> Option<Self> {
        let results: Vec<&LoadResult> = trials
            .iter()
            .filter(|trial| trial.mode == mode && trial.load == *load && trial.verdict.valid)
            .filter_map(|trial| trial.result.as_ref())
            .collect();
        let response = points(&merged(results.iter().map(|result| &result.response_time_us)));
        let service = points(&merged(results.iter().map(|result| &result.service_time_us)));
        (!response.is_empty()).then(|| Self { mode, load: load.clone(), response, service })
    }

    /// Whether the service time is another curve to the eye: off by over 3 % and 10 µs somewhere.
    pub fn service_differs(&self) -> bool {
        self.response.iter().zip(&self.service).any(|(response, service)| {
            let difference_us = (response.time_us - service.time_us).abs();
            difference_us > 10.0 && difference_us > 0.03 * response.time_us
        })
    }
}

/// A histogram that cannot be read adds nothing: the figures beside it in the record are still shown.
fn merged<'a>(summaries: impl Iterator<Item = &'a HistogramSummary>) -> LatencyHistogram {
    let mut merged = LatencyHistogram::new();
    for summary in summaries {
        if let Ok(histogram) = LatencyHistogram::decode(&summary.histogram) {
            merged.merge(&histogram);
        }
    }
    merged
}

fn points(histogram: &LatencyHistogram) -> Vec<PercentilePoint> {
    let greatest = 100.0 * (1.0 - LEAST_BEYOND / histogram.count() as f64);
    if !greatest.is_finite() || greatest < 50.0 {
        return Vec::new();
    }
    percentiles(greatest)
        .into_iter()
        .map(|percentile| PercentilePoint { percentile, time_us: histogram.percentile_us(percentile) })
        .collect()
}

/// From 0 up to `greatest`, evenly on the axis of nines, the usual percentiles among them.
fn percentiles(greatest: f64) -> Vec<f64> {
    let mut percentiles = vec![50.0, 90.0, 99.0, 99.9, 99.99, 99.999, greatest];
    for step in 0..=5 * STEPS_PER_NINE {
        percentiles.push(100.0 * (1.0 - 10f64.powf(-(step as f64) / STEPS_PER_NINE as f64)));
    }
    percentiles.retain(|percentile| *percentile <= greatest);
    percentiles.sort_by(f64::total_cmp);
    percentiles.dedup_by(|later, earlier| {
        let alike = (*later - *earlier).abs() < 1e-9;
        // The round one stays: markers look for it.
        if alike && later.to_string().len() < earlier.to_string().len() {
            *earlier = *later;
        }
        alike
    });
    percentiles
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_curve_stops_where_ten_requests_are_left() {
        let mut histogram = LatencyHistogram::new();
        for us in 1..=20_000 {
            histogram.record(Duration::from_micros(us));
        }
        let points = points(&histogram);
        let last = points.last().unwrap();
        assert!((last.percentile - 99.95).abs() < 1e-9, "{last:?}");
        assert!((last.time_us / 19_990.0 - 1.0).abs() < 0.002, "{last:?}");
        for percentile in [0.0, 50.0, 90.0, 99.0, 99.9] {
            let found = points.iter().filter(|point| (point.percentile - percentile).abs() < 1e-6).count();
            assert_eq!(found, 1, "p{percentile}");
            assert!(points.iter().any(|point| point.percentile == percentile), "exactly p{percentile}");
        }
    }

    #[test]
    fn too_few_requests_make_no_curve() {
        let mut histogram = LatencyHistogram::new();
        for us in 1..=19 {
            histogram.record(Duration::from_micros(us));
        }
        assert_eq!(points(&histogram), []);
        assert_eq!(points(&LatencyHistogram::new()), []);
    }
}
