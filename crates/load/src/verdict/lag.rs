//! How late the generator itself was, and whether counting from the actual send would have hidden waiting.

use experiment::schema::{HistogramSummary, LoadResult, Pacing, Verdict};

/// The generator's own lag may make up this share of the median response time …
const LAG_SHARE_P50: f64 = 0.10;
/// … beyond this, microseconds …
const NEGLIGIBLE_LAG_P50_US: f64 = 5.0;
/// … unless it was asked to be economical, and the lag is no more than it was to tolerate; then there is a note …
const ECONOMICAL_LAG_US: f64 = 100.0;
/// … and this share of the 99th percentile …
const LAG_SHARE_P99: f64 = 0.25;
/// … beyond this, microseconds: a thread of a shared machine is now and then woken so late. Below it there is a note.
const NEGLIGIBLE_LAG_P99_US: f64 = 250.0;
/// A response time this many times the service time, at the 99th percentile, is worth a word …
const HIDDEN_FACTOR: f64 = 2.0;
/// … where it is more than this apart, microseconds.
const HIDDEN_US: f64 = 1000.0;

/// The generator's own lag against the response times that it is in.
pub(super) fn judge(result: &LoadResult, verdict: &mut Verdict) {
    // In a closed loop nothing is due before the answer: lag means only that the generator was busy, which it may be.
    if result.rate.offered.is_none() {
        return;
    }
    let (lag, response) = (&result.generator_lag_us, &result.response_time_us);
    if response.count == 0 {
        return;
    }
    // Compared with a request without a response, no lateness matters.
    let percentiles = |times: &HistogramSummary| {
        let or_endless = |time: Option<f64>| time.unwrap_or(f64::INFINITY);
        (or_endless(times.p50), or_endless(times.p99))
    };
    let ((lag_p50, lag_p99), (response_p50, response_p99)) = (percentiles(lag), percentiles(response));
    let late = |name: &str, lag_us: f64, response_us: f64| {
        format!(
            "schedule-lag: the generator itself was {lag_us:.0} µs late at the {name}, of {response_us:.0} µs response time"
        )
    };
    let economical = result.generator.pacing.filter(|pacing| pacing.asked == Pacing::Economical);
    let tolerated_us = economical.map(|pacing| pacing.lag_tolerance_us.unwrap_or(ECONOMICAL_LAG_US));
    if lag_p50 > NEGLIGIBLE_LAG_P50_US && lag_p50 > LAG_SHARE_P50 * response_p50 {
        if tolerated_us.is_some_and(|tolerated| lag_p50 <= tolerated) {
            verdict.notes.push(format!("{}, by economical pacing", late("median", lag_p50, response_p50)));
        } else {
            verdict.reasons.push(late("median", lag_p50, response_p50));
        }
    }
    if lag_p99 > LAG_SHARE_P99 * response_p99 {
        // A tolerated lag of more than usual takes its own share of that.
        let chosen = tolerated_us.map_or(0.0, |tolerated| (tolerated - ECONOMICAL_LAG_US).max(0.0));
        let bearable = lag_p99 <= NEGLIGIBLE_LAG_P99_US + chosen;
        let list = if bearable { &mut verdict.notes } else { &mut verdict.reasons };
        list.push(late("p99", lag_p99, response_p99));
    }
}

/// Notes where service time would read much less than callers waited.
pub(super) fn note_hidden_waiting(result: &LoadResult, verdict: &mut Verdict) {
    let (Some(response), Some(service), Some(lag)) =
        (result.response_time_us.p99, result.service_time_us.p99, result.generator_lag_us.p99)
    else {
        return;
    };
    let hidden = response - service;
    // What the generator itself was late says nothing of the service.
    let of_the_service = result.rate.offered.is_some() && lag < hidden / 2.0;
    if of_the_service && response > HIDDEN_FACTOR * service && hidden > HIDDEN_US {
        verdict.notes.push(format!(
            "service-time-hides: callers waited {:.1} ms at p99; service time, counted from the actual send as many tools \
             do, would read {:.1} ms (coordinated omission)",
            response / 1000.0,
            service / 1000.0
        ));
    }
}
