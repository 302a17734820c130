//! One probe: how long it runs, how long to rest after it, and what its result shows.

use super::ProbeOutcome;
use crate::SAMPLES_BEYOND_A_PERCENTILE;
use crate::trials::shows_saturation;
use experiment::Objective;
use results::{BoundResult, Clock, LoadResult, Metric, ObjectiveResult};
use std::time::Duration;

/// Requests beyond a percentile that a probe's decision needs: twice the minimum for reporting the
/// percentile.
const BEYOND: f64 = 2.0 * SAMPLES_BEYOND_A_PERCENTILE;
/// Requests needed for an error bound p, as a multiple of 1/p: without any error in 3/p requests, the error
/// rate is below p with 95 % confidence (rule of three, Hanley and Lippman-Hand 1983).
const ERRORS: f64 = 3.0;
/// At a rate above the capacity by the precision, the queue reaches the bound of a response time after
/// bound/precision. Twice that time shows it at the median too.
const QUEUE_TIMES: f64 = 2.0;
/// Length of a confirming run relative to a probe.
const CONFIRMATION_TIMES: u32 = 2;
/// Minimum and maximum rest between two probes.
const REST: (Duration, Duration) = (Duration::from_millis(300), Duration::from_secs(10));
/// A thread on the CPU for more than this fraction of the window could not have sent more.
const BUSY_FRACTION: f64 = 0.95;
/// Kinds of errors caused by the generator itself.
const OWN_ERRORS: [&str; 2] = ["ports-exhausted", "files-exhausted"];

/// Limits on the length of probes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProbeLength {
    /// Minimum window.
    pub least: Duration,
    /// Maximum window, also for confirming runs.
    pub most: Duration,
    /// The search's precision, as a fraction.
    pub precision: f64,
}

impl ProbeLength {
    /// The window of a probe, and whether it is as long as the objective requires at this rate.
    #[must_use]
    pub fn at(&self, objective: &Objective, rate: f64, confirmation: bool) -> (Duration, bool) {
        let for_errors = objective.errors.filter(|bound| *bound > 0.0);
        let requests = objective.requests_needed(BEYOND).max(for_errors.map_or(0.0, |bound| ERRORS / bound));
        let slowest = objective.times().map(|(_, bound)| bound.as_secs_f64()).fold(0.0, f64::max);
        let needed_s = (requests / rate).max(QUEUE_TIMES * slowest / self.precision);
        let most_s = self.most.as_secs_f64();
        let needed = Duration::from_secs_f64(needed_s.min(most_s)).max(self.least);
        let times = if confirmation { CONFIRMATION_TIMES } else { 1 };
        let rounded = Duration::from_millis(((needed * times).as_millis() as u64).div_ceil(100) * 100);
        (rounded.min(self.most), needed_s <= most_s)
    }
}

/// How long to rest after a probe, so that its backlog does not affect the next one. If the probe did not
/// hold: as long as its slowest response, which waited for the whole backlog.
#[must_use]
pub fn rest_after(outcome: ProbeOutcome, result: &LoadResult) -> Duration {
    let (least, most) = REST;
    if outcome == ProbeOutcome::Held {
        return least;
    }
    let times = &result.response_time_us;
    // A request without a response waited longer than this.
    let slowest_us = times.max.or(result.censored_above_us).unwrap_or_default();
    Duration::from_secs_f64(slowest_us.max(0.0) / 1e6).clamp(least, most)
}

/// What a result says about the target, and the reason as text.
///
/// The response time includes the generator's own lateness: an objective that holds in spite of it holds. If
/// it does not hold, and the generator was late, the result says something about the target only if times without that lateness
/// miss the objective too.
#[must_use]
pub fn classify(result: &LoadResult, objective: &ObjectiveResult) -> (ProbeOutcome, String) {
    let requests = &result.requests;
    let own: Vec<&str> = OWN_ERRORS.into_iter().filter(|own| result.errors_of_run(own) > 0).collect();
    let saturated = shows_saturation(&result.verdict);
    if saturated && result.generator.busiest_working_fraction() > BUSY_FRACTION {
        return (ProbeOutcome::GeneratorLimited, "the generator's CPU was full".to_owned());
    }
    if !result.verdict.valid && !own.is_empty() {
        return (ProbeOutcome::GeneratorLimited, format!("the generator's own errors: {}", own.join(", ")));
    }
    if saturated || requests.scheduled == 0 || requests.completed == 0 {
        let reason = result.verdict.reasons.first().cloned();
        return (ProbeOutcome::Failed, reason.unwrap_or_else(|| "nothing was completed".to_owned()));
    }
    let misses: Vec<&BoundResult> = objective.bounds.iter().filter(|bound| !bound.holds).collect();
    let words = misses.iter().map(|bound| missed(bound)).collect::<Vec<_>>().join(", ");
    let lag = result.verdict.reasons.iter().find(|reason| is_of_generator(reason));
    let other = result.verdict.reasons.iter().find(|reason| !is_of_generator(reason));
    match (lag, other) {
        (Some(lag), _) if !misses.is_empty() && misses.iter().all(|bound| is_excused(bound, result)) => {
            (ProbeOutcome::GeneratorLimited, format!("{words}, but {lag}"))
        }
        _ if !misses.is_empty() => (ProbeOutcome::Failed, words),
        (_, Some(reason)) => (ProbeOutcome::Failed, reason.clone()),
        (_, None) => (ProbeOutcome::Held, String::new()),
    }
}

/// True if the reason is that the generator itself was late.
fn is_of_generator(reason: &str) -> bool {
    ["schedule-lag:", "reading-lag:"].iter().any(|kind| reason.starts_with(kind))
}

/// True if the generator's lateness may explain why a bound does not hold: without it, it would hold. Lateness does not explain that a
/// request has no response.
fn is_excused(bound: &BoundResult, result: &LoadResult) -> bool {
    if bound.measured.is_none() {
        return false;
    }
    match Metric::bounded(&bound.figure) {
        Some(metric) => time_of_target(metric, result).is_some_and(|time| time <= bound.limit),
        None => bound.figure != "errors",
    }
}

/// A time that the generator's lateness is not in: of a response the service time, of the begin of a stream what the same
/// figure of the lateness leaves. Lateness is in no time between events.
fn time_of_target(metric: Metric, result: &LoadResult) -> Option<f64> {
    let (measured, figure) = (result.time(metric)?, metric.spoiled_by());
    match metric.clock()? {
        Clock::ResponseTime => result.service_time_us.figure(figure),
        Clock::EventGap => Some(measured),
        _ => Some(measured - result.generator_lag_us.figure(figure)?),
    }
}

/// Describes a missed bound, such as `p99 6.20 ms, not 5.00 ms`.
fn missed(bound: &BoundResult) -> String {
    let Some(measured) = bound.measured else {
        return format!("{} among requests without a response", bound.figure);
    };
    let text = |figure: f64| match bound.unit.as_str() {
        "us" => crate::words::latency_value(figure),
        "fraction" => crate::words::percent(figure),
        _ => crate::words::rate(figure),
    };
    format!("{} {}, not {}", bound.figure, text(measured), text(bound.limit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::PacingUsage;

    fn objective(text: &str) -> Objective {
        text.parse().expect("an objective")
    }

    #[test]
    fn probe_length_covers_percentile_and_queue() {
        let length =
            ProbeLength { least: Duration::from_secs(3), most: Duration::from_secs(60), precision: 0.02 };
        let at = |text: &str, rate: f64| length.at(&objective(text), rate, false);
        assert_eq!(at("p99=5ms", 10_000.0), (Duration::from_secs(3), true));
        // Twenty of 20 000 requests lie beyond p99.9.
        assert_eq!(at("p99.9=5ms", 1_000.0), (Duration::from_secs(20), true));
        assert_eq!(at("p99.9=5ms", 100.0), (Duration::from_secs(60), false));
        // Three errors at the bound.
        assert_eq!(at("errors=0.01%", 1_000.0), (Duration::from_secs(30), true));
        // Two percent above the capacity fills a queue of 100 ms in five seconds.
        assert_eq!(at("p50=100ms", 10_000.0), (Duration::from_secs(10), true));
        let confirmation = length.at(&objective("p99.9=5ms"), 1_000.0, true);
        assert_eq!(confirmation, (Duration::from_secs(40), true));
    }

    fn result(change: impl FnOnce(&mut LoadResult)) -> LoadResult {
        let mut result: LoadResult =
            serde_json::from_str(include_str!("../../../meshmeter/tests/load-result.json"))
                .expect("a result as the generator writes it");
        result.verdict = Default::default();
        result.verdict.valid = true;
        result.generator.busiest_thread_fraction = 0.1;
        change(&mut result);
        result
    }

    fn judged(holds: bool) -> ObjectiveResult {
        let bound = BoundResult {
            figure: "p99".into(),
            unit: "us".into(),
            limit: 5000.0,
            measured: Some(if holds { 4000.0 } else { 6200.0 }),
            holds,
        };
        ObjectiveResult { met: holds, bounds: vec![bound], notes: Vec::new() }
    }

    #[test]
    fn missed_bound_is_failure_of_target() {
        assert_eq!(classify(&result(|_| {}), &judged(true)), (ProbeOutcome::Held, String::new()));
        let (outcome, reason) = classify(&result(|_| {}), &judged(false));
        assert_eq!((outcome, reason.as_str()), (ProbeOutcome::Failed, "p99 6.20 ms, not 5.00 ms"));
    }

    #[test]
    fn generator_lag_excuses_misses_and_keeps_met_bounds() {
        let late = result(|result| {
            result.verdict.valid = false;
            result.verdict.reasons = vec!["schedule-lag: late".into()];
        });
        assert_eq!(classify(&late, &judged(true)).0, ProbeOutcome::Held);
        assert_eq!(classify(&late, &judged(false)).0, ProbeOutcome::GeneratorLimited);
        // Too slow from the actual send on: that is not the generator's lateness.
        let slow = LoadResult {
            service_time_us: results::HistogramSummary { p99: Some(6100.0), ..Default::default() },
            ..late
        };
        assert_eq!(classify(&slow, &judged(false)).0, ProbeOutcome::Failed);
    }

    #[test]
    fn the_generators_lag_excuses_no_percentile_among_requests_without_a_response() {
        let late = result(|result| {
            result.verdict.valid = false;
            result.verdict.reasons = vec!["schedule-lag: late".into()];
        });
        let mut judged = judged(false);
        judged.bounds[0].measured = None;
        let (outcome, reason) = classify(&late, &judged);
        assert_eq!(
            (outcome, reason.as_str()),
            (ProbeOutcome::Failed, "p99 among requests without a response")
        );
    }

    #[test]
    fn saturation_is_the_targets_unless_the_generators_cpu_was_full() {
        let saturated = |busy: f64| {
            result(|result| {
                (result.verdict.valid, result.verdict.saturated) = (false, true);
                result.verdict.reasons = vec!["saturated: …".into()];
                result.generator.busiest_thread_fraction = busy;
            })
        };
        assert_eq!(classify(&saturated(0.5), &judged(true)).0, ProbeOutcome::Failed);
        assert_eq!(classify(&saturated(0.99), &judged(true)).0, ProbeOutcome::GeneratorLimited);
        let mut spinning = saturated(0.99);
        let pacing =
            PacingUsage { spinning_fraction: 0.6, busiest_working_fraction: 0.4, ..Default::default() };
        spinning.generator.pacing = Some(pacing);
        assert_eq!(
            classify(&spinning, &judged(true)).0,
            ProbeOutcome::Failed,
            "spinning does not count as work"
        );
    }

    #[test]
    fn rest_after_failure_is_as_long_as_backlog() {
        let slow = result(|result| result.response_time_us.max = Some(2e6));
        assert_eq!(rest_after(ProbeOutcome::Failed, &slow), Duration::from_secs(2));
        assert_eq!(rest_after(ProbeOutcome::Held, &slow), Duration::from_millis(300));
    }
}
