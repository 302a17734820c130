//! Whether a result may be used, from the result and how it came about. docs/method.md gives each bound with its reason.

use crate::error::ErrorKind;
use experiment::schema::{LoadResult, Pacing, RequestCounts, Verdict};
use jiff::{SignedDuration, Timestamp};
use std::time::Duration;

/// Completed requests under this share of the scheduled ones: the offered rate was not achieved.
const ACHIEVED_FRACTION: f64 = 0.99;
/// Fewer connections than this share of those wanted were open at the start: the load was not the one asked for.
const OPEN_FRACTION: f64 = 0.99;
/// A target that half of the requests had to wait for so long, microseconds, was behind all the time.
const BEHIND_P50_US: f64 = 1000.0;
/// More requests than this share failed: latency tells of the errors, not of the service.
const ERROR_FRACTION: f64 = 0.01;
/// A worker thread on the CPU for more than this share of the window could not have sent more.
const BUSY_FRACTION: f64 = 0.95;
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
/// With more than this share of the possible requests under way on average, the connections were the limit.
const ALL_BUSY_FRACTION: f64 = 0.9;
/// A response time this many times the service time, at the 99th percentile, is worth a word …
const HIDDEN_FACTOR: f64 = 2.0;
/// … where it is more than this apart, microseconds.
const HIDDEN_US: f64 = 1000.0;

/// A wall clock that is off by more than this after the window was set meanwhile …
const CLOCK_TOLERANCE: Duration = Duration::from_millis(10);
/// … or by more than this share of the window: ntpd and adjtime(3) slew by 0.05 % at most.
const CLOCK_DRIFT: f64 = 0.001;

/// What the figures of a result do not tell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Circumstances<'a> {
    /// The user ended the run before its time.
    pub(crate) interrupted: bool,
    /// Connections that were open when the schedule started; absent where they roam.
    pub(crate) connections_at_start: Option<usize>,
    /// A fixed number of requests that a closed loop was to send.
    pub(crate) requests_wanted: Option<u64>,
    /// The agreed instant at which the window was to open …
    pub(crate) start_at: Option<Timestamp>,
    /// … and when it did.
    pub(crate) started_at: Timestamp,
    /// By how much the wall clock was set or drifted during the window.
    pub(crate) clock_moved: SignedDuration,
    /// Requests that were given up since too many waited for connections, and the server of most of them.
    pub(crate) crowded_out: Option<(&'a str, u64)>,
}

/// Judges a result.
pub(crate) fn judge(result: &LoadResult, circumstances: Circumstances<'_>) -> Verdict {
    let mut verdict = Verdict::default();
    if result.requests.scheduled == 0 {
        verdict.reasons.push(nothing_measured(result, circumstances.interrupted));
        return verdict;
    }
    if circumstances.interrupted {
        verdict
            .notes
            .push(format!("interrupted: ended early, after {:.1} s of the window", result.duration_s));
    }
    // Roaming connections need not all be open at the start.
    judge_connections(result, circumstances.connections_at_start.unwrap_or(result.connections), &mut verdict);
    judge_rate(result, &mut verdict);
    judge_errors(result, &mut verdict);
    judge_lag(result, &mut verdict);
    note_hidden_waiting(result, &mut verdict);
    note_crowded_out(&circumstances, &mut verdict);
    note_number(result, &circumstances, &mut verdict);
    note_clock(result, &circumstances, &mut verdict);
    verdict.valid = verdict.reasons.is_empty();
    verdict
}

fn nothing_measured(result: &LoadResult, interrupted: bool) -> String {
    if interrupted {
        return "interrupted: ended before the measured window".to_owned();
    }
    match commonest(result, |_| true) {
        Some((kind, _)) => format!("unreachable: {}", kind.meaning()),
        None => "nothing-measured: no request was due in the window".to_owned(),
    }
}

/// The commonest error among those of certain kinds, and how often any of these was seen.
fn commonest(result: &LoadResult, wanted: impl Fn(ErrorKind) -> bool) -> Option<(ErrorKind, u64)> {
    let count = |kind: &ErrorKind| result.requests.errors.get(kind.name()).copied().unwrap_or(0);
    let seen = || ErrorKind::ALL.into_iter().filter(|kind| wanted(*kind) && count(kind) > 0);
    seen().max_by_key(count).map(|kind| (kind, seen().map(|kind| count(&kind)).sum()))
}

/// With fewer connections than were asked for the load was another one.
fn judge_connections(result: &LoadResult, at_start: usize, verdict: &mut Verdict) {
    let failed = commonest(result, ErrorKind::is_of_connecting);
    let why = failed.map_or("they were closed at once", |(kind, _)| kind.meaning());
    if (at_start as f64) < OPEN_FRACTION * result.connections as f64 {
        verdict
            .reasons
            .push(format!("connections: {at_start} of {} were open at the start; {why}", result.connections));
    } else if let Some((_, attempts)) = failed {
        let attempts = if attempts == 1 { "1 attempt".to_owned() } else { format!("{attempts} attempts") };
        verdict.notes.push(format!("connections: {attempts} to open one failed; {why}"));
    }
}

fn judge_rate(result: &LoadResult, verdict: &mut Verdict) {
    let Some(offered) = result.rate.offered else { return };
    let requests = &result.requests;
    if requests.unsent as f64 > (1.0 - ACHIEVED_FRACTION) * requests.scheduled as f64 {
        verdict.saturated = true;
        let who = bound(result);
        verdict.reasons.push(format!(
            "saturated: {:.0}/s completed of {offered:.0}/s offered; {} due requests were never sent, so that all \
             percentiles are lower bounds; {who}",
            result.rate.completed, requests.unsent
        ));
    } else if requests.late as f64 > (1.0 - ACHIEVED_FRACTION) * requests.scheduled as f64 {
        let late = format!("{} due requests were sent only after the end of the window", requests.late);
        // Behind in general, or at the end alone?
        if result.schedule_lag_us.p50 - result.generator_lag_us.p50 > BEHIND_P50_US {
            verdict.saturated = true;
            verdict
                .reasons
                .push(format!("saturated: the target did not keep up with {offered:.0}/s; {late}"));
        } else {
            verdict.notes.push(format!("behind-at-end: {late}, since the target stalled there"));
        }
    }
}

/// What kept the rate down.
fn bound(result: &LoadResult) -> String {
    let generator = &result.generator;
    let working =
        generator.pacing.map_or(generator.busiest_thread_fraction, |pacing| pacing.busiest_working_fraction);
    if working > BUSY_FRACTION {
        return "the generator's CPU was full (more --threads on free cores may send more)".to_owned();
    }
    // Little's law: requests under way = rate × time of each.
    let under_way = result.rate.completed * result.service_time_us.mean / 1e6;
    let most = (result.connections * result.streams.max(1)) as f64;
    if under_way > ALL_BUSY_FRACTION * most {
        let places = match result.streams {
            0 | 1 => format!("{} connections", result.connections),
            streams => format!("{streams} streams of {} connections", result.connections),
        };
        return format!(
            "all {places} were busy: with {:.1} ms for each request they carry no more (more --connections \
             show whether the target can)",
            result.service_time_us.mean / 1000.0
        );
    }
    "the target did not keep up on these connections".to_owned()
}

fn judge_errors(result: &LoadResult, verdict: &mut Verdict) {
    let fraction = result.requests.error_fraction();
    if fraction <= 0.0 {
        return;
    }
    let (list, share) = if fraction > ERROR_FRACTION {
        (&mut verdict.reasons, format!("{:.2} % of the requests", fraction * 100.0))
    } else {
        (&mut verdict.notes, format!("{:.3} % of the requests", fraction * 100.0))
    };
    let which = most_frequent_errors(&result.requests).join(", ");
    list.push(format!("errors: {share} failed or were answered with an error ({which})"));
}

/// Kinds of errors that a verdict names.
const ERRORS_NAMED: usize = 3;

/// The kinds of errors and the statuses that were seen most, each with its count.
fn most_frequent_errors(requests: &RequestCounts) -> Vec<String> {
    let kinds = requests.errors.iter().map(|(kind, count)| (kind.clone(), *count));
    let statuses = requests.error_statuses_by_name();
    let mut all: Vec<(String, u64)> = kinds.chain(statuses).filter(|(_, count)| *count > 0).collect();
    all.sort_by(|(name, count), (other, others)| others.cmp(count).then_with(|| name.cmp(other)));
    all.truncate(ERRORS_NAMED);
    all.into_iter().map(|(name, count)| format!("{name}: {count}")).collect()
}

fn judge_lag(result: &LoadResult, verdict: &mut Verdict) {
    // In a closed loop nothing is due before the answer: lag means only that the generator was busy, which it may be.
    if result.rate.offered.is_none() {
        return;
    }
    let (lag, response) = (&result.generator_lag_us, &result.response_time_us);
    if response.count == 0 {
        return;
    }
    let late = |name: &str, lag_us: f64, response_us: f64| {
        format!(
            "schedule-lag: the generator itself was {lag_us:.0} µs late at the {name}, of {response_us:.0} µs response time"
        )
    };
    let economical = result.generator.pacing.filter(|pacing| pacing.asked == Pacing::Economical);
    let tolerated_us = economical.map(|pacing| pacing.lag_tolerance_us.unwrap_or(ECONOMICAL_LAG_US));
    if lag.p50 > NEGLIGIBLE_LAG_P50_US && lag.p50 > LAG_SHARE_P50 * response.p50 {
        if tolerated_us.is_some_and(|tolerated| lag.p50 <= tolerated) {
            verdict.notes.push(format!("{}, by economical pacing", late("median", lag.p50, response.p50)));
        } else {
            verdict.reasons.push(late("median", lag.p50, response.p50));
        }
    }
    if lag.p99 > LAG_SHARE_P99 * response.p99 {
        // A tolerated lag of more than usual takes its own share of that.
        let chosen = tolerated_us.map_or(0.0, |tolerated| (tolerated - ECONOMICAL_LAG_US).max(0.0));
        let bearable = lag.p99 <= NEGLIGIBLE_LAG_P99_US + chosen;
        let list = if bearable { &mut verdict.notes } else { &mut verdict.reasons };
        list.push(late("p99", lag.p99, response.p99));
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

fn note_crowded_out(circumstances: &Circumstances<'_>, verdict: &mut Verdict) {
    if let Some((server, requests)) = circumstances.crowded_out {
        verdict.notes.push(format!(
            "crowded-out: {requests} of the unsent requests could not even wait, most of them for {server}, which too many \
             waited for already; those for other servers went on"
        ));
    }
}

fn note_number(result: &LoadResult, circumstances: &Circumstances<'_>, verdict: &mut Verdict) {
    let Some(wanted) = circumstances.requests_wanted.filter(|wanted| *wanted > result.requests.sent) else {
        return;
    };
    if !circumstances.interrupted {
        verdict
            .notes
            .push(format!("requests: {} of {wanted} were sent when the time was over", result.requests.sent));
    }
}

/// Several generators agree on a time by their wall clocks.
fn note_clock(result: &LoadResult, circumstances: &Circumstances<'_>, verdict: &mut Verdict) {
    let moved = circumstances.clock_moved;
    if moved.unsigned_abs() > CLOCK_TOLERANCE.max(Duration::from_secs_f64(result.duration_s * CLOCK_DRIFT)) {
        verdict.notes.push(format!(
            "clock: the machine's clock was set by {:+.3} s during the window; started_at is by the clock as it was at its start",
            moved.as_secs_f64()
        ));
    }
    if let Some(wanted) = circumstances.start_at {
        let away = circumstances.started_at.duration_since(wanted);
        if away.unsigned_abs() > CLOCK_TOLERANCE {
            verdict.notes.push(format!(
                "start-at: the window opened {:+.3} s away from the agreed instant: the clock was set meanwhile",
                away.as_secs_f64()
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::schema::{HistogramSummary, PacingUsage, Rates, RequestCounts};

    /// A thousand requests at 1000/s, answered after 100 µs at the median and 400 µs at p99.
    fn result() -> LoadResult {
        let count = 1000;
        let times = |p50, p99| HistogramSummary { count, p50, p99, ..HistogramSummary::default() };
        LoadResult {
            duration_s: 1.0,
            threads: 1,
            connections: 1,
            rate: Rates { offered: Some(1000.0), sent: 1000.0, completed: 1000.0 },
            requests: RequestCounts {
                scheduled: count,
                sent: count,
                completed: count,
                ..RequestCounts::default()
            },
            response_time_us: times(100.0, 400.0),
            service_time_us: times(100.0, 400.0),
            schedule_lag_us: times(1.0, 10.0),
            generator_lag_us: times(1.0, 10.0),
            connect_time_us: times(50.0, 50.0),
            ..LoadResult::default()
        }
    }

    /// The kinds of the reasons and of the notes.
    fn kinds(change: impl FnOnce(&mut LoadResult)) -> (Vec<String>, Vec<String>) {
        let mut result = result();
        change(&mut result);
        let circumstances =
            Circumstances { connections_at_start: Some(result.connections.min(10)), ..circumstances() };
        let verdict = judge(&result, circumstances);
        assert_eq!(verdict.valid, verdict.reasons.is_empty());
        let kind = |text: &String| text.split(':').next().unwrap_or_default().to_owned();
        (verdict.reasons.iter().map(kind).collect(), verdict.notes.iter().map(kind).collect())
    }

    fn circumstances() -> Circumstances<'static> {
        Circumstances {
            interrupted: false,
            connections_at_start: Some(1),
            requests_wanted: None,
            start_at: None,
            started_at: Timestamp::UNIX_EPOCH,
            clock_moved: SignedDuration::ZERO,
            crowded_out: None,
        }
    }

    fn notes(circumstances: Circumstances<'_>) -> String {
        judge(&result(), circumstances).notes.join("\n")
    }

    fn expect(reasons: &[&str], notes: &[&str], change: impl FnOnce(&mut LoadResult)) {
        let found = kinds(change);
        assert_eq!((found.0.as_slice(), found.1.as_slice()), (&to_owned(reasons)[..], &to_owned(notes)[..]));
    }

    fn to_owned(kinds: &[&str]) -> Vec<String> {
        kinds.iter().map(|kind| (*kind).to_owned()).collect()
    }

    #[test]
    fn what_bounds_a_saturated_run_is_named() {
        let bound_by = |service_time_us, busy| {
            let mut result = result();
            (result.requests.unsent, result.rate.completed) = (500, 500.0);
            result.connections = 2;
            result.service_time_us.mean = service_time_us;
            result.generator.busiest_thread_fraction = busy;
            judge(&result, circumstances()).reasons.join("; ")
        };
        // 500/s of 3.8 ms each are 1.9 requests under way on 2 connections.
        assert!(bound_by(3800.0, 0.5).contains("all 2 connections were busy"), "{}", bound_by(3800.0, 0.5));
        assert!(bound_by(1000.0, 0.5).contains("the target did not keep up"), "{}", bound_by(1000.0, 0.5));
        assert!(
            bound_by(3800.0, 0.99).contains("the generator's CPU was full"),
            "{}",
            bound_by(3800.0, 0.99)
        );
    }

    #[test]
    fn a_sound_result_is_valid_without_a_word() {
        expect(&[], &[], |_| {});
    }

    #[test]
    fn connections_that_could_not_be_opened_are_told() {
        expect(&["connections"], &[], |result| {
            result.connections = 16;
            result.requests.errors.insert("connect-refused".into(), 56);
        });
        expect(&[], &["connections"], |result| {
            result.requests.errors.insert("connect-refused".into(), 1);
        });
    }

    #[test]
    fn requests_that_were_never_sent_are_saturation() {
        expect(&[], &[], |result| result.requests.unsent = 10);
        expect(&["saturated"], &[], |result| result.requests.unsent = 11);
    }

    #[test]
    fn requests_sent_after_the_end_are_saturation_only_where_the_target_was_always_behind() {
        expect(&[], &["behind-at-end"], |result| result.requests.late = 11);
        expect(&["saturated"], &[], |result| {
            result.requests.late = 11;
            result.schedule_lag_us.p50 = 50_000.0;
        });
    }

    #[test]
    fn few_errors_are_noted_and_many_are_held_against_it() {
        expect(&[], &["errors"], |result| result.requests.failed = 10);
        expect(&["errors"], &[], |result| result.requests.failed = 11);
        expect(&["errors"], &[], |result| {
            result.requests.status.insert("503".into(), 500);
        });
    }

    #[test]
    fn errors_are_named_with_their_counts() {
        let mut result = result();
        result.requests.sent = 1000;
        result.requests.status = [("200".into(), 100), ("403".into(), 800), ("503".into(), 50)].into();
        result.requests.errors = [("timeout".into(), 40), ("connection-lost".into(), 10)].into();
        result.requests.failed = 50;
        let reasons = judge(&result, circumstances()).reasons;
        let expected = "errors: 90.00 % of the requests failed or were answered with an error \
                        (status 403: 800, status 503: 50, timeout: 40)";
        assert!(reasons.iter().any(|reason| reason == expected), "{reasons:?}");
    }

    #[test]
    fn the_generators_lag_is_held_against_what_it_taints() {
        expect(&["schedule-lag"], &[], |result| result.generator_lag_us.p50 = 11.0);
        // Asked for.
        let economical = PacingUsage { asked: Pacing::Economical, ..PacingUsage::default() };
        expect(&[], &["schedule-lag"], |result| {
            result.generator.pacing = Some(economical);
            result.generator_lag_us.p50 = 40.0;
        });
        expect(&["schedule-lag"], &[], |result| {
            result.generator.pacing = Some(economical);
            result.response_time_us.p50 = 500.0;
            result.generator_lag_us.p50 = 110.0;
        });
        let tolerant = PacingUsage { lag_tolerance_us: Some(400.0), ..economical };
        expect(&[], &["schedule-lag", "schedule-lag"], |result| {
            result.generator.pacing = Some(tolerant);
            (result.generator_lag_us.p50, result.generator_lag_us.p99) = (200.0, 410.0);
        });
        expect(&[], &["schedule-lag"], |result| result.generator_lag_us.p99 = 150.0);
        expect(&["schedule-lag"], &[], |result| result.generator_lag_us.p99 = 300.0);
        // In a closed loop nothing is due before the answer.
        expect(&[], &[], |result| {
            result.rate.offered = None;
            result.generator_lag_us.p99 = 300.0;
        });
    }

    #[test]
    fn waiting_that_service_time_hides_is_said_unless_the_generator_caused_it() {
        expect(&[], &["service-time-hides"], |result| result.response_time_us.p99 = 9000.0);
        expect(&["schedule-lag"], &[], |result| {
            result.response_time_us.p99 = 9000.0;
            result.generator_lag_us.p99 = 8000.0;
        });
    }

    #[test]
    fn fewer_requests_than_wanted_are_noted() {
        assert_eq!(notes(Circumstances { requests_wanted: Some(1000), ..circumstances() }), "");
        let text = notes(Circumstances { requests_wanted: Some(1001), ..circumstances() });
        assert_eq!(text, "requests: 1000 of 1001 were sent when the time was over");
    }

    #[test]
    fn a_clock_that_was_set_is_noted() {
        let moved = |milliseconds| Circumstances {
            clock_moved: SignedDuration::from_millis(milliseconds),
            ..circumstances()
        };
        assert_eq!(notes(moved(-10)), "");
        assert!(notes(moved(-11)).starts_with("clock: the machine's clock was set by -0.011 s"));
        let start_at = Some(Timestamp::UNIX_EPOCH + SignedDuration::from_secs(3));
        let text = notes(Circumstances { start_at, ..circumstances() });
        assert!(text.starts_with("start-at: the window opened -3.000 s"), "{text}");
    }

    #[test]
    fn nothing_due_is_nothing_measured() {
        expect(&["nothing-measured"], &[], |result| result.requests.scheduled = 0);
        expect(&["unreachable"], &[], |result| {
            result.requests.scheduled = 0;
            result.requests.errors.insert("connect-refused".into(), 4);
        });
    }
}
