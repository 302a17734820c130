use super::*;
use experiment::schema::{HistogramSummary, Pacing, PacingUsage, Rates, RequestCounts};

/// A thousand requests at 1000/s, answered after 100 µs at the median and 400 µs at p99.
fn result() -> LoadResult {
    let count = 1000;
    let times =
        |p50, p99| HistogramSummary { count, p50: Some(p50), p99: Some(p99), ..HistogramSummary::default() };
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
        result.service_time_us.mean = Some(service_time_us);
        result.generator.busiest_thread_fraction = busy;
        judge(&result, circumstances()).reasons.join("; ")
    };
    // 500/s of 3.8 ms each are 1.9 requests under way on 2 connections.
    assert!(bound_by(3800.0, 0.5).contains("all 2 connections were busy"), "{}", bound_by(3800.0, 0.5));
    assert!(bound_by(1000.0, 0.5).contains("the target did not keep up"), "{}", bound_by(1000.0, 0.5));
    assert!(bound_by(3800.0, 0.99).contains("the generator's CPU was full"), "{}", bound_by(3800.0, 0.99));
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
        result.schedule_lag_us.p50 = Some(50_000.0);
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
    expect(&["schedule-lag"], &[], |result| result.generator_lag_us.p50 = Some(11.0));
    // Asked for.
    let economical = PacingUsage { asked: Pacing::Economical, ..PacingUsage::default() };
    expect(&[], &["schedule-lag"], |result| {
        result.generator.pacing = Some(economical);
        result.generator_lag_us.p50 = Some(40.0);
    });
    expect(&["schedule-lag"], &[], |result| {
        result.generator.pacing = Some(economical);
        result.response_time_us.p50 = Some(500.0);
        result.generator_lag_us.p50 = Some(110.0);
    });
    let tolerant = PacingUsage { lag_tolerance_us: Some(400.0), ..economical };
    expect(&[], &["schedule-lag", "schedule-lag"], |result| {
        result.generator.pacing = Some(tolerant);
        (result.generator_lag_us.p50, result.generator_lag_us.p99) = (Some(200.0), Some(410.0));
    });
    expect(&[], &["schedule-lag"], |result| result.generator_lag_us.p99 = Some(150.0));
    expect(&["schedule-lag"], &[], |result| result.generator_lag_us.p99 = Some(300.0));
    // In a closed loop nothing is due before the answer.
    expect(&[], &[], |result| {
        result.rate.offered = None;
        result.generator_lag_us.p99 = Some(300.0);
    });
}

#[test]
fn waiting_that_service_time_hides_is_said_unless_the_generator_caused_it() {
    expect(&[], &["service-time-hides"], |result| result.response_time_us.p99 = Some(9000.0));
    expect(&["schedule-lag"], &[], |result| {
        result.response_time_us.p99 = Some(9000.0);
        result.generator_lag_us.p99 = Some(8000.0);
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
