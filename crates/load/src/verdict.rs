//! Whether a result may be used, from the result alone. docs/method.md gives each bound with its reason.

use crate::error::ErrorKind;
use experiment::schema::{LoadResult, Verdict};

/// Completed requests under this share of the scheduled ones: the offered rate was not achieved.
const ACHIEVED_FRACTION: f64 = 0.99;
/// More requests than this share failed: latency tells of the errors, not of the service.
const ERROR_FRACTION: f64 = 0.01;
/// A worker thread on the CPU for more than this share of the window could not have sent more.
const BUSY_FRACTION: f64 = 0.95;
/// The generator's own lag may make up this share of the median response time …
const LAG_SHARE_P50: f64 = 0.10;
/// … and of the 99th percentile.
const LAG_SHARE_P99: f64 = 0.25;
/// Lag below this is never held against a run, microseconds: it is about what a timer alone is late.
const NEGLIGIBLE_LAG_US: f64 = 50.0;
/// A response time this many times the service time, at the 99th percentile, is worth a word …
const HIDDEN_FACTOR: f64 = 2.0;
/// … where it is more than this apart, microseconds.
const HIDDEN_US: f64 = 1000.0;

/// Judges a result. `interrupted`: it was ended before its time.
pub(crate) fn judge(result: &LoadResult, interrupted: bool) -> Verdict {
    let mut verdict = Verdict::default();
    if result.requests.scheduled == 0 {
        verdict.reasons.push(nothing_measured(result, interrupted));
        return verdict;
    }
    if interrupted {
        verdict
            .notes
            .push(format!("interrupted: ended early, after {:.1} s of the window", result.duration_s));
    }
    judge_rate(result, &mut verdict);
    judge_errors(result, &mut verdict);
    judge_lag(result, &mut verdict);
    note_hidden_waiting(result, &mut verdict);
    verdict.valid = verdict.reasons.is_empty();
    verdict
}

fn nothing_measured(result: &LoadResult, interrupted: bool) -> String {
    let worst = result.requests.errors.iter().max_by_key(|(_, count)| **count).map(|(kind, _)| kind.as_str());
    match ErrorKind::ALL.into_iter().find(|kind| Some(kind.name()) == worst) {
        Some(kind) => format!("unreachable: {}", kind.meaning()),
        None if interrupted => "interrupted: ended before the measured window".to_owned(),
        None => "nothing-measured: no request was due in the window".to_owned(),
    }
}

fn judge_rate(result: &LoadResult, verdict: &mut Verdict) {
    let Some(offered) = result.rate.offered else { return };
    let requests = &result.requests;
    let generator_bound = result.generator.busiest_thread_fraction > BUSY_FRACTION;
    if requests.unsent as f64 > (1.0 - ACHIEVED_FRACTION) * requests.scheduled as f64 {
        verdict.saturated = true;
        let who = if generator_bound {
            "the generator's CPU was full (more --threads on free cores may send more)"
        } else {
            "the target did not keep up on these connections"
        };
        verdict.reasons.push(format!(
            "saturated: {:.0}/s completed of {offered:.0}/s offered; {} due requests were never sent, so that all \
             percentiles are lower bounds; {who}",
            result.rate.completed, requests.unsent
        ));
    }
}

fn judge_errors(result: &LoadResult, verdict: &mut Verdict) {
    let fraction = result.requests.error_fraction();
    if fraction > ERROR_FRACTION {
        verdict.reasons.push(format!(
            "errors: {:.2} % of the requests failed or were answered with an error",
            fraction * 100.0
        ));
    } else if fraction > 0.0 {
        verdict.notes.push(format!(
            "errors: {:.3} % of the requests failed or were answered with an error",
            fraction * 100.0
        ));
    }
}

fn judge_lag(result: &LoadResult, verdict: &mut Verdict) {
    // In a closed loop nothing is due before the answer: lag means only that the generator was busy, which it may be.
    if result.rate.offered.is_none() {
        return;
    }
    let (lag, response) = (&result.generator_lag_us, &result.response_time_us);
    for (name, lag_us, response_us, share) in
        [("median", lag.p50, response.p50, LAG_SHARE_P50), ("p99", lag.p99, response.p99, LAG_SHARE_P99)]
    {
        if response.count > 0 && lag_us > NEGLIGIBLE_LAG_US && lag_us > share * response_us {
            verdict.reasons.push(format!(
                "schedule-lag: the generator itself was {lag_us:.0} µs late at the {name}, of {response_us:.0} µs response time"
            ));
        }
    }
}

fn note_hidden_waiting(result: &LoadResult, verdict: &mut Verdict) {
    let (response, service) = (result.response_time_us.p99, result.service_time_us.p99);
    let hidden = response - service;
    // What the generator itself was late says nothing of the service.
    let of_the_service = result.rate.offered.is_some() && result.generator_lag_us.p99 < hidden / 2.0;
    if of_the_service && response > HIDDEN_FACTOR * service && hidden > HIDDEN_US {
        verdict.notes.push(format!(
            "service-time-hides: callers waited {:.1} ms at p99; service time, counted from the actual send as many tools \
             do, would read {:.1} ms (coordinated omission)",
            response / 1000.0,
            service / 1000.0
        ));
    }
}
