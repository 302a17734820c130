//! Checks how late the generator itself was, and whether measuring from the actual send would have hidden
//! waiting time.

use super::movement::Movement;
use results::{Figure, Figures, HistogramSummary, LoadResult, Pacing, Verdict};
use statistics::lost_cpu::{MOVED_SHARE, MOVED_SHARE_P50};

/// Generator lag may be this fraction of the median and of the mean …
const LAG_SHARE_P50: f64 = 0.10;
/// … if it is above this, microseconds …
const NEGLIGIBLE_LAG_P50_US: f64 = 5.0;
/// … except with economical pacing, if the lag is within the tolerance: then it becomes a note …
const ECONOMICAL_LAG_US: f64 = 100.0;
/// … and may have moved a percentile beyond the median by [`MOVED_SHARE`] if that is above this, microseconds: threads on a
/// shared machine occasionally wake this late. Below, it becomes a note.
const NEGLIGIBLE_MOVEMENT_US: f64 = 250.0;
/// The median may be moved by [`MOVED_SHARE_P50`], although the lag of most requests is small, if that is above this,
/// microseconds.
const NEGLIGIBLE_MOVEMENT_P50_US: f64 = 25.0;
/// A p99 response time this many times the p99 service time becomes a note …
const HIDDEN_FACTOR: f64 = 2.0;
/// … if they differ by more than this, microseconds.
const HIDDEN_US: f64 = 1000.0;

/// Checks late sending against the response times that include it.
pub(super) fn check_sending(result: &LoadResult, verdict: &mut Verdict) {
    let economical = result.generator.pacing.filter(|pacing| pacing.asked == Pacing::Economical);
    let tolerated_us = economical.map(|pacing| pacing.lag_tolerance_us.unwrap_or(ECONOMICAL_LAG_US));
    let lateness = Lateness {
        reason: "schedule-lag: the generator itself was",
        lag: &result.generator_lag_us,
        tolerated_us,
    };
    lateness.check(&result.response_time_us, verdict);
}

/// Checks how much sooner responses may have come than the last packet of their read. That is a bound and no measured lateness: as
/// much is allowed as economical pacing may be late.
pub(super) fn check_arrivals(result: &LoadResult, verdict: &mut Verdict) {
    let Some(lag) = &result.arrival_uncertainty_us else { return };
    let reason = "reading-lag: responses that were read together may be timed";
    let lateness = Lateness { reason, lag, tolerated_us: Some(ECONOMICAL_LAG_US) };
    lateness.check_mean_and_tail(&result.response_time_us, verdict);
}

/// One kind of lateness of the generator.
struct Lateness<'a> {
    /// Beginning of the reason.
    reason: &'a str,
    lag: &'a HistogramSummary,
    /// Lateness that economical pacing may have.
    tolerated_us: Option<f64>,
}

impl Lateness<'_> {
    fn check(&self, times: &HistogramSummary, verdict: &mut Verdict) {
        if times.count == 0 {
            return;
        }
        if let (Some(lag), Some(median)) = (self.lag.p50, times.p50)
            && lag > NEGLIGIBLE_LAG_P50_US
            && lag > LAG_SHARE_P50 * median
        {
            let text =
                format!("{} {lag:.0} µs late at the median, of {median:.0} µs response time", self.reason);
            if self.tolerated_us.is_none_or(|tolerated| lag > tolerated) {
                return verdict.spoil(text, Figures::times());
            }
            verdict.notes.push(format!("{text}, by economical pacing"));
        }
        self.check_mean_and_tail(times, verdict);
    }

    fn check_mean_and_tail(&self, times: &HistogramSummary, verdict: &mut Verdict) {
        let Some(movement) = Movement::new(times, self.lag) else { return };
        // The part of the tolerance above the default is allowed in addition.
        let chosen = self.tolerated_us.map_or(0.0, |tolerated| (tolerated - ECONOMICAL_LAG_US).max(0.0));
        let bounds = |figure| match figure {
            Figure::P50 => {
                (MOVED_SHARE_P50, NEGLIGIBLE_MOVEMENT_P50_US + self.tolerated_us.unwrap_or_default())
            }
            _ => (MOVED_SHARE, NEGLIGIBLE_MOVEMENT_US + chosen),
        };
        let Moved { mut spoiled, moved: mut texts, noted } = Moved::new(&movement, bounds);
        if let (Some(lag), Some(mean)) = (self.lag.mean, times.mean)
            && lag > NEGLIGIBLE_LAG_P50_US + self.tolerated_us.unwrap_or_default()
            && lag > LAG_SHARE_P50 * mean
        {
            spoiled = spoiled.with(Figure::Mean);
            texts.push(format!("the mean by {lag:.0} of {mean:.0} µs"));
        }
        if !spoiled.is_empty() {
            verdict.spoil(format!("{} late, which moves {}", self.reason, texts.join(", ")), spoiled);
        } else if let Some(text) = noted {
            verdict.notes.push(format!("{} late, which moves {text}", self.reason));
        }
    }
}

/// Percentiles that lateness can have moved by more than a share of their values.
struct Moved {
    /// Those moved by more than is negligible, and in words.
    spoiled: Figures,
    moved: Vec<String>,
    /// The 99th percentile, if it was moved by less.
    noted: Option<String>,
}

impl Moved {
    /// `bounds`: the share of a figure's value by which it may be moved, and by how many microseconds in any case.
    fn new(movement: &Movement, bounds: impl Fn(Figure) -> (f64, f64)) -> Self {
        let mut all = Self { spoiled: Figures::none(), moved: Vec::new(), noted: None };
        for figure in Figures::times_from(Figure::P50).iter() {
            let (share, negligible_us) = bounds(figure);
            let by_and_value = figure.quantile().and_then(|quantile| movement.of(quantile));
            let Some((by, value)) = by_and_value.filter(|(by, value)| *by > share * value) else {
                continue;
            };
            let text = format!("{} by up to {by:.0} of {value:.0} µs", figure.name());
            if by > negligible_us {
                all.spoiled = all.spoiled.with(figure);
                all.moved.push(text);
            } else if figure == Figure::P99 {
                all.noted = Some(text);
            }
        }
        all
    }
}

/// Adds a note if service time is much less than callers waited.
pub(super) fn note_hidden_waiting(result: &LoadResult, verdict: &mut Verdict) {
    let (Some(response), Some(service), Some(lag)) =
        (result.response_time_us.p99, result.service_time_us.p99, result.generator_lag_us.p99)
    else {
        return;
    };
    let hidden = response - service;
    // The generator's own lag says nothing about the service.
    let of_the_service = result.rate.offered.is_some() && lag < hidden / 2.0;
    if of_the_service && response > HIDDEN_FACTOR * service && hidden > HIDDEN_US {
        verdict.notes.push(format!(
            "service-time-hides: callers waited {:.1} ms at p99; service time, counted from the actual send as many tools \
             do, would show {:.1} ms (coordinated omission)",
            response / 1000.0,
            service / 1000.0
        ));
    }
}
