//! Whole distributions of a cell: the merged histograms of its valid trials, and points for a plot.

use crate::trials::{TrialsByCell, with_sound_tail};
use experiment::objective::SAMPLES_BEYOND_A_PERCENTILE;
use results::{CellKey, Clock, DecodeError, HistogramSummary, LatencyHistogram};

/// Merges a distribution over the trials of a cell with a sound tail, or with a sound median if none has a
/// sound tail. The merge is lossless. `None` if no such trial has values.
///
/// # Errors
/// Returns an error if a trial's histogram cannot be decoded.
pub fn merged(
    trials: &TrialsByCell<'_>,
    cell: CellKey<'_>,
    clock: Clock,
) -> Result<Option<LatencyHistogram>, DecodeError> {
    whole(sound(trials, cell, clock))
}

/// Requests without a response, or proxies never reached, in the trials of [`merged`]. They rank above every value of its
/// histogram.
#[must_use]
pub fn censored(trials: &TrialsByCell<'_>, cell: CellKey<'_>, clock: Clock) -> u64 {
    sound(trials, cell, clock).map(|times| times.censored).sum()
}

fn sound<'a>(
    trials: &TrialsByCell<'a>,
    cell: CellKey<'_>,
    clock: Clock,
) -> impl Iterator<Item = &'a HistogramSummary> {
    let trials = with_sound_tail(trials.of(cell)).into_iter();
    trials.filter_map(move |trial| clock.of(trial)).filter(|times| times.count > 0)
}

/// Merges distributions; `None` without any.
pub(crate) fn whole<'a>(
    all: impl Iterator<Item = &'a HistogramSummary>,
) -> Result<Option<LatencyHistogram>, DecodeError> {
    let mut whole: Option<LatencyHistogram> = None;
    for times in all {
        let histogram = LatencyHistogram::decode(&times.histogram)?;
        match &mut whole {
            Some(whole) => whole.merge(&histogram),
            None => whole = Some(histogram),
        }
    }
    Ok(whole)
}

/// A point of a percentile curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// Percentile, 0 to 100.
    pub percentile: f64,
    /// Value at this percentile in microseconds.
    pub value_us: f64,
}

/// Points of a percentile curve on a logarithmic "nines" axis, evenly spaced in −log₁₀(1 − p) with
/// `points_per_decade` points per decade.
///
/// The curve runs from the minimum to the last percentile with at least ten recorded values beyond it;
/// further out it would only draw chance. Empty if the histogram is empty.
#[must_use]
pub fn percentile_curve(histogram: &LatencyHistogram, points_per_decade: usize) -> Vec<CurvePoint> {
    let count = histogram.count();
    if count == 0 || points_per_decade == 0 {
        return Vec::new();
    }
    let decades = (count as f64 / SAMPLES_BEYOND_A_PERCENTILE).log10().max(0.0);
    let last = (decades * points_per_decade as f64).floor() as usize;
    (0..=last)
        .map(|step| {
            let percentile = 100.0 * (1.0 - 10_f64.powf(-(step as f64) / points_per_decade as f64));
            CurvePoint { percentile, value_us: histogram.percentile_us(percentile) }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn percentile_curve_rises_and_ends_with_ten_values_beyond() {
        let mut histogram = LatencyHistogram::new();
        for us in 1..=100_000 {
            histogram.record(Duration::from_micros(us));
        }
        let curve = percentile_curve(&histogram, 10);
        assert_eq!(curve.len(), 41);
        assert!(
            curve
                .windows(2)
                .all(|pair| pair[0].percentile < pair[1].percentile && pair[0].value_us <= pair[1].value_us)
        );
        let p90 = curve[10];
        assert!(
            (p90.percentile - 90.0).abs() < 1e-9 && (p90.value_us / 90_000.0 - 1.0).abs() < 0.002,
            "{p90:?}"
        );
        assert!((curve[40].percentile - 99.99).abs() < 1e-9);
        assert!(percentile_curve(&LatencyHistogram::new(), 10).is_empty());
    }
}
