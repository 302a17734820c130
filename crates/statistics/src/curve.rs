//! Whole distributions of a cell: the merged histograms of its valid trials, and points for a plot.

use crate::trials::{TrialsByCell, with_sound_tail};
use experiment::objective::SAMPLES_BEYOND_A_PERCENTILE;
use results::{CellKey, DecodeError, LatencyHistogram};

/// Selects one of the generator's histograms.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Distribution {
    /// From the intended start of a request.
    ResponseTime,
    /// From the actual send of a request.
    ServiceTime,
    /// From the intended start to the actual send.
    ScheduleLag,
}

/// Merges one distribution over the trials of a cell with a sound tail, or with a sound median if none has a
/// sound tail. The merge is lossless. `None` if no trial is valid.
///
/// # Errors
/// Returns an error if a trial's histogram cannot be decoded.
pub fn merged(
    trials: &TrialsByCell<'_>,
    cell: CellKey<'_>,
    distribution: Distribution,
) -> Result<Option<LatencyHistogram>, DecodeError> {
    let mut whole: Option<LatencyHistogram> = None;
    let sound = with_sound_tail(trials.of(cell));
    for result in sound.into_iter().filter_map(|trial| trial.result.as_ref()) {
        let summary = match distribution {
            Distribution::ResponseTime => &result.response_time_us,
            Distribution::ServiceTime => &result.service_time_us,
            Distribution::ScheduleLag => &result.schedule_lag_us,
        };
        let histogram = LatencyHistogram::decode(&summary.histogram)?;
        match &mut whole {
            Some(whole) => whole.merge(&histogram),
            None => whole = Some(histogram),
        }
    }
    Ok(whole)
}

/// Times until changes arrived at the proxies of a cell's fleet, with the number of proxies never reached.
/// `None` if no trial has a fleet.
///
/// # Errors
/// Returns an error if a trial's histogram cannot be decoded.
pub fn merged_convergence(
    trials: &TrialsByCell<'_>,
    cell: CellKey<'_>,
) -> Result<Option<(LatencyHistogram, u64)>, DecodeError> {
    let mut whole: Option<(LatencyHistogram, u64)> = None;
    let sound = with_sound_tail(trials.of(cell));
    let fleets = sound.into_iter().filter_map(|trial| trial.fleet()).map(|fleet| &fleet.convergence_us);
    for times in fleets.filter(|times| times.count > 0) {
        let histogram = LatencyHistogram::decode(&times.histogram)?;
        let (arrivals, never) = whole.get_or_insert_with(|| (LatencyHistogram::new(), 0));
        arrivals.merge(&histogram);
        *never += times.censored;
    }
    Ok(whole)
}

/// Requests without a response in the trials of [`merged`]. They rank above every value of its histogram.
#[must_use]
pub fn censored(trials: &TrialsByCell<'_>, cell: CellKey<'_>) -> u64 {
    let sound = with_sound_tail(trials.of(cell)).into_iter();
    sound.filter_map(|trial| Some(trial.result.as_ref()?.response_time_us.censored)).sum()
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
