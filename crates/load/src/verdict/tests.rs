use super::*;
use results::{
    Arrivals, BurstArrivals, Figure, Figures, GrpcMessages, HistogramSummary, LatencyHistogram, Pacing,
    PacingUsage, Rates, RequestCounts, StreamEvents, WarmupCounts,
};
use std::time::Duration;

/// A thousand times, all equal to the median except the slowest 15.
fn times(p50_us: u64, p99_us: u64) -> HistogramSummary {
    let mut histogram = LatencyHistogram::new();
    (0..1000)
        .for_each(|index| histogram.record(Duration::from_micros(if index < 985 { p50_us } else { p99_us })));
    histogram.summary()
}

/// A thousand requests at 1000/s, answered after 100 µs at the median and 400 µs at p99.
fn result() -> LoadResult {
    let count = 1000;
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
        warmup: WarmupCounts { sent: 300, completed: 300, ..WarmupCounts::default() },
        response_time_us: times(100, 400),
        service_time_us: times(100, 400),
        schedule_lag_us: times(1, 10),
        generator_lag_us: times(1, 10),
        connect_time_us: times(50, 50),
        ..LoadResult::default()
    }
}

/// Kinds of the reasons and of the notes.
fn kinds(change: impl FnOnce(&mut LoadResult)) -> (Vec<String>, Vec<String>) {
    let mut result = result();
    change(&mut result);
    let context = RunContext { connections_at_start: Some(result.connections.min(10)), ..context() };
    let verdict = check(&result, context);
    assert_eq!(verdict.valid, verdict.is_usable(Figure::P50));
    assert_eq!(verdict.spoiled.len(), verdict.reasons.len());
    let kind = |text: &String| text.split(':').next().unwrap_or_default().to_owned();
    (verdict.reasons.iter().map(kind).collect(), verdict.notes.iter().map(kind).collect())
}

fn context() -> RunContext<'static> {
    RunContext {
        connections_at_start: Some(1),
        without_connection: 0.0,
        least_reached: None,
        without_warmup: false,
        requests_wanted: None,
        start_at: None,
        started_at: Timestamp::UNIX_EPOCH,
        clock_moved: SignedDuration::ZERO,
        servers_left_out: None,
        cpus: 4.0,
        crowded_out: None,
        growth: None,
        peer_limit: None,
        fallbacks: None,
        abandoned_addresses: &[],
        failed_lookups: None,
    }
}

fn notes(context: RunContext<'_>) -> String {
    check(&result(), context).notes.join("\n")
}

#[test]
fn name_that_could_not_be_looked_up_again_is_named() {
    let noted = |times| notes(RunContext { failed_lookups: Some(("shop:80", times)), ..context() });
    assert!(
        noted(1).contains("lookups: shop:80 could not be looked up once; new connections"),
        "{}",
        noted(1)
    );
    assert!(noted(3).contains("looked up 3 times"), "{}", noted(3));
}

fn expect(reasons: &[&str], notes: &[&str], change: impl FnOnce(&mut LoadResult)) {
    let found = kinds(change);
    assert_eq!((found.0.as_slice(), found.1.as_slice()), (&to_owned(reasons)[..], &to_owned(notes)[..]));
}

fn to_owned(kinds: &[&str]) -> Vec<String> {
    kinds.iter().map(|kind| (*kind).to_owned()).collect()
}

#[test]
fn limit_of_saturated_run_is_named() {
    let bound_by = |service_time_us, busy| {
        let mut result = result();
        (result.requests.unsent, result.rate.completed) = (500, 500.0);
        result.connections = 2;
        result.service_time_us.mean = Some(service_time_us);
        result.generator.busiest_thread_fraction = busy;
        check(&result, context()).reasons.join("; ")
    };
    // 500/s of 3.8 ms each are 1.9 requests in flight on 2 connections.
    assert!(bound_by(3800.0, 0.5).contains("all 2 connections were busy"), "{}", bound_by(3800.0, 0.5));
    assert!(bound_by(1000.0, 0.5).contains("the target did not keep up"), "{}", bound_by(1000.0, 0.5));
    assert!(bound_by(3800.0, 0.99).contains("the generator's CPU was full"), "{}", bound_by(3800.0, 0.99));
}

#[test]
fn sound_result_is_valid_without_notes() {
    expect(&[], &[], |_| {});
}

#[test]
fn failed_connections_are_reported() {
    expect(&["connections"], &[], |result| {
        result.connections = 16;
        result.requests.errors.insert("connect-refused".into(), 56);
    });
    expect(&[], &["connections"], |result| {
        result.requests.errors.insert("connect-refused".into(), 1);
    });
    let note = |before: u64, in_window: u64| {
        let mut result = result();
        for (errors, count) in [(&mut result.warmup.errors, before), (&mut result.requests.errors, in_window)]
        {
            errors.extend((count > 0).then(|| ("connect-refused".to_owned(), count)));
        }
        check(&result, context()).notes.join("; ")
    };
    let attempts = |text: &str| format!("connections: {text}; connection refused: nothing listens there");
    assert_eq!(note(0, 1), attempts("1 attempt to open one failed"));
    assert_eq!(note(4, 0), attempts("4 attempts to open one failed before the window"));
    assert_eq!(note(4, 1), attempts("1 attempt to open one failed, and 4 before the window"));
}

#[test]
fn errors_of_the_warm_up_are_in_no_reason_of_the_window() {
    expect(&[], &[], |result| {
        result.warmup.failed = 500;
        result.warmup.errors.insert("timeout".into(), 500);
    });
    let mut result = result();
    result.warmup.errors.insert("timeout".into(), 500);
    result.requests.failed = 20;
    result.requests.errors.insert("reset".into(), 20);
    let reasons = check(&result, context()).reasons.join("; ");
    assert!(reasons.ends_with("(reset: 20)"), "{reasons}");
}

#[test]
fn time_without_connections_spoils_a_closed_loop_and_is_noted_in_an_open_one() {
    let verdict = |without_connection, offered| {
        let mut result = result();
        result.rate.offered = offered;
        result.requests.errors.insert("connect-refused".into(), 56);
        check(&result, RunContext { without_connection, ..context() })
    };
    let text = "connections: for 12 % of their time in the window, they could not be opened; \
                connection refused: nothing listens there";
    let closed = verdict(0.12, None);
    assert_eq!(
        (closed.reasons.as_slice(), closed.spoiled_figures()),
        (&[text.to_owned()][..], Figures::all())
    );
    let open = verdict(0.12, Some(1000.0));
    assert_eq!((open.reasons.len(), open.notes.as_slice()), (0, &[text.to_owned()][..]));
    assert!(verdict(0.01, None).notes[0].starts_with("connections: 56 attempts to open one failed"));
    // What was due meanwhile is named as the connections' fault.
    let mut unsent = result();
    unsent.requests.unsent = 500;
    let saturated = check(&unsent, RunContext { without_connection: 0.5, ..context() });
    assert!(
        saturated.reasons[0].ends_with("for 50 % of their time, connections could not be opened"),
        "{saturated:?}"
    );
    let one_of_several =
        check(&unsent, RunContext { least_reached: Some("a:1"), without_connection: 0.5, ..context() });
    assert!(
        one_of_several.reasons[0].ends_with("for 50 % of their time, connections to a:1 could not be opened")
    );
    let note = "connections: for 50 % of their time in the window, those to a:1 could not be opened; ";
    assert!(one_of_several.notes.iter().any(|text| text.starts_with(note)), "{one_of_several:?}");
}

#[test]
fn unsent_requests_are_saturation() {
    expect(&[], &[], |result| result.requests.unsent = 10);
    expect(&["saturated"], &[], |result| result.requests.unsent = 11);
}

#[test]
fn late_requests_are_saturation_only_if_target_was_always_behind() {
    expect(&[], &["behind-at-end"], |result| result.requests.late = 11);
    expect(&["saturated"], &[], |result| {
        result.requests.late = 11;
        result.schedule_lag_us = times(50_000, 50_000);
    });
}

#[test]
fn backlog_that_grows_throughout_the_window_is_saturation() {
    let growth = Some(Growth { requests: [11, 45], response_time_ns: [180_000_000, 760_000_000] });
    let mut result = result();
    (result.duration_s, result.connections) = (10.0, 32);
    result.rate = Rates { offered: Some(54.0), sent: 54.0, completed: 49.5 };
    result.service_time_us = times(470_000, 800_000);
    let context = RunContext { connections_at_start: Some(32), growth, ..context() };
    let verdict = check(&result, context);
    let text = "saturated: 49.5/s completed of 54.0/s offered; unanswered requests grew throughout the window, from 11 to 45, \
                and their typical times from 180.0 to 760.0 ms; the target did not keep up on these connections";
    assert_eq!((verdict.saturated, verdict.reasons.as_slice()), (true, &[text.to_owned()][..]));
    assert_eq!(verdict.spoiled_figures(), Figures::times());
    // What was never sent says more.
    result.requests.unsent = 500;
    let verdict = check(&result, context);
    assert!(verdict.reasons.len() == 1 && verdict.reasons[0].contains("were never sent"), "{verdict:?}");
}

#[test]
fn servers_limit_of_streams_is_named_with_its_number() {
    let limited = |offered| {
        let mut result = result();
        (result.connections, result.streams, result.rate.offered) = (1, 32, offered);
        result.service_time_us.mean = Some(1000.0);
        check(&result, RunContext { peer_limit: Some(1), ..context() })
    };
    let note = "streams: the server allows 1 concurrent requests on a connection, fewer than the 32 requested (more \
                --connections reach more)";
    for offered in [None, Some(1000.0)] {
        assert!(limited(offered).notes.iter().any(|text| text == note), "{:?}", limited(offered));
    }
    let mut saturated = result();
    (saturated.connections, saturated.streams, saturated.requests.unsent) = (1, 32, 500);
    saturated.service_time_us.mean = Some(1000.0);
    let verdict = check(&saturated, RunContext { peer_limit: Some(1), ..context() });
    let limit = "all 1 streams that the server allows on each of 1 connections were busy";
    assert!(verdict.reasons[0].contains(limit), "{verdict:?}");
}

#[test]
fn few_errors_are_noted_and_many_are_a_reason() {
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
    let reasons = check(&result, context()).reasons;
    let expected = "errors: 90.00 % of the requests failed or were answered with an error \
                    (status 403: 800, status 503: 50, timeout: 40)";
    assert!(reasons.iter().any(|reason| reason == expected), "{reasons:?}");
}

#[test]
fn generator_lag_spoils_figures_it_affects() {
    expect(&["schedule-lag"], &[], |result| result.generator_lag_us = times(11, 11));
    // Economical pacing was requested.
    let economical = PacingUsage { asked: Pacing::Economical, ..PacingUsage::default() };
    expect(&[], &["schedule-lag"], |result| {
        result.generator.pacing = Some(economical);
        result.generator_lag_us = times(40, 40);
    });
    expect(&["schedule-lag"], &[], |result| {
        result.generator.pacing = Some(economical);
        result.response_time_us = times(500, 500);
        result.generator_lag_us = times(110, 110);
    });
    let tolerant = PacingUsage { lag_tolerance_us: Some(400.0), ..economical };
    expect(&[], &["schedule-lag", "schedule-lag"], |result| {
        result.generator.pacing = Some(tolerant);
        result.generator_lag_us = times(200, 410);
    });
    expect(&[], &["schedule-lag"], |result| result.generator_lag_us = times(1, 150));
    expect(&["schedule-lag"], &[], |result| result.generator_lag_us = times(1, 300));
}

#[test]
fn client_of_a_closed_loop_that_is_sent_late_is_the_generators_fault() {
    let of_closed_loop = |lag: HistogramSummary| {
        move |result: &mut LoadResult| {
            result.rate.offered = None;
            result.generator_lag_us = lag;
        }
    };
    expect(&[], &[], of_closed_loop(times(1, 10)));
    expect(&["schedule-lag"], &[], of_closed_loop(times(11, 11)));
    // A paused thread moves what lies beyond the requests that it delayed. The throughput is as it was.
    expect(&["schedule-lag"], &[], of_closed_loop(times(1, 300)));
    assert_eq!(spoiled(of_closed_loop(times(1, 300))), ["p99", "p99.9", "p99.99", "max"]);
}

/// The spoiled figures.
fn spoiled(change: impl FnOnce(&mut LoadResult)) -> Vec<&'static str> {
    let mut result = result();
    change(&mut result);
    check(&result, context()).spoiled_figures().iter().map(Figure::name).collect()
}

#[test]
fn lateness_beyond_median_spoils_percentiles_it_moves() {
    let tail = ["p99", "p99.9", "p99.99", "max"];
    assert_eq!(spoiled(|result| result.generator_lag_us = times(1, 300)), tail);
    // Times without a response exceed any lateness.
    let unanswered = |result: &mut LoadResult| {
        result.generator_lag_us = times(1, 300);
        let mut histogram = LatencyHistogram::decode(&result.response_time_us.histogram).unwrap();
        histogram.record(Duration::from_micros(400));
        result.response_time_us = histogram.summary_with(9);
    };
    assert_eq!(spoiled(unanswered), ["p99"]);
    let median = spoiled(|result| result.generator_lag_us = times(11, 11));
    assert_eq!(median, ["mean", "p50", "p75", "p90", "p95", "p99", "p99.9", "p99.99", "max"]);
    // A few very late requests also move the mean.
    assert_eq!(spoiled(|result| result.generator_lag_us = times(1, 2000))[0], "mean");
}

#[test]
fn lateness_of_many_requests_spoils_a_median_that_it_can_have_moved() {
    let of = |counts: &[(u64, usize)]| {
        let mut histogram = LatencyHistogram::new();
        for (us, count) in counts {
            (0..*count).for_each(|_| histogram.record(Duration::from_micros(*us)));
        }
        histogram.summary()
    };
    // Two fifths were late by a millisecond. Without that, the median might have been 300 µs instead of 500.
    let late = of(&[(2, 600), (1000, 400)]);
    let moved = spoiled(|result| {
        result.response_time_us = of(&[(300, 400), (500, 200), (1500, 400)]);
        result.generator_lag_us = late.clone();
    });
    assert!(moved.contains(&"p50"), "{moved:?}");
    // Here it would have been the same: the late ones are all beyond it.
    let unmoved = spoiled(|result| {
        result.response_time_us = of(&[(300, 600), (1300, 400)]);
        result.generator_lag_us = late.clone();
    });
    assert!(!unmoved.contains(&"p50") && unmoved.contains(&"p90"), "{unmoved:?}");
}

#[test]
fn full_generator_thread_limits_closed_loop() {
    let full = |offered: Option<f64>| {
        move |result: &mut LoadResult| {
            result.rate.offered = offered;
            let pacing = PacingUsage { busiest_working_fraction: 0.97, ..PacingUsage::default() };
            result.generator.pacing = Some(pacing);
        }
    };
    expect(&["generator-full"], &[], full(None));
    expect(&[], &[], full(Some(1000.0)));
    let spoiled = spoiled(full(None));
    assert!(
        spoiled.contains(&"throughput") && spoiled.contains(&"p50") && !spoiled.contains(&"cpu"),
        "{spoiled:?}"
    );
}

#[test]
fn generator_threads_on_full_cpu_limit_closed_loop() {
    // Four threads that spin for a tenth of their time, using 4.3 CPU seconds per second of the window.
    let full = |result: &mut LoadResult| {
        let pacing = PacingUsage { spinning_fraction: 0.1, ..PacingUsage::default() };
        (result.generator.pacing, result.rate.offered) = (Some(pacing), None);
        (result.threads, result.generator.cpu_user_s) = (4, 4.3 * result.duration_s);
    };
    expect(&["generator-full"], &[], full);
    expect(&[], &[], |result| {
        full(result);
        result.generator.cpu_user_s -= 0.2 * result.duration_s;
    });
}

#[test]
fn saturation_and_errors_keep_unaffected_figures() {
    let saturated = spoiled(|result| result.requests.unsent = 11);
    assert!(
        saturated.contains(&"p50") && !saturated.contains(&"cpu") && !saturated.contains(&"memory"),
        "{saturated:?}"
    );
    let failed = spoiled(|result| result.requests.failed = 11);
    assert!(failed.contains(&"p50") && failed.contains(&"cpu") && !failed.contains(&"memory"), "{failed:?}");
}

#[test]
fn hidden_waiting_is_noted_unless_generator_caused_it() {
    expect(&[], &["service-time-hides"], |result| result.response_time_us = times(100, 9000));
    expect(&["schedule-lag"], &[], |result| {
        result.response_time_us = times(100, 9000);
        result.generator_lag_us = times(1, 8000);
    });
}

#[test]
fn fewer_requests_than_wanted_are_noted() {
    assert_eq!(notes(RunContext { requests_wanted: Some(1000), ..context() }), "");
    let text = notes(RunContext { requests_wanted: Some(1001), ..context() });
    assert_eq!(text, "requests: 1000 of 1001 were sent when the time was over");
}

#[test]
fn cold_start_is_noted() {
    let text = notes(RunContext { without_warmup: true, ..context() });
    assert!(text.starts_with("warm-up: none, so the times include the first requests"), "{text}");
    // A ramp from 0 warms nothing up.
    let mut from_zero = result();
    from_zero.warmup = WarmupCounts::default();
    let text = check(&from_zero, context()).notes.join("\n");
    assert!(text.starts_with("warm-up: no request was due in it, so the times include"), "{text}");
}

#[test]
fn responses_read_together_spoil_figures_that_their_arrival_can_have_moved() {
    // Of 1000 responses, all or some may have come sooner than their times say.
    let within = |uncertain: HistogramSummary| {
        move |result: &mut LoadResult| {
            (result.response_time_us, result.service_time_us) = (times(400, 900), times(400, 900));
            result.arrival_uncertainty_us = Some(uncertain);
        }
    };
    expect(&[], &[], within(times(0, 0)));
    expect(&[], &[], within(times(100, 100)));
    expect(&["reading-lag"], &[], within(times(300, 300)));
    assert!(!spoiled(within(times(0, 500))).contains(&"p50"));
    assert_eq!(spoiled(within(times(0, 500))), ["p99", "p99.9", "p99.99", "max"]);
    let moved = spoiled(within(times(300, 300)));
    assert!(["mean", "p50", "p99"].iter().all(|figure| moved.contains(figure)), "{moved:?}");
}

#[test]
fn messages_read_together_are_noted() {
    let with = |read_together, read_together_within_us| {
        move |result: &mut LoadResult| {
            let message_time_us = times(0, 100);
            let messages = GrpcMessages {
                message_time_us,
                read_together,
                read_together_within_us,
                ..GrpcMessages::default()
            };
            result.grpc = Some(messages);
        }
    };
    expect(&[], &["messages"], with(300, 2000.0));
    expect(&[], &[], with(300, 50.0));
    expect(&[], &[], with(3, 2000.0));
    expect(&[], &["events"], |result| {
        let within =
            StreamEvents { read_together: 300, read_together_within_us: 2000.0, ..StreamEvents::default() };
        (result.event_gap_us, result.events) = (Some(times(0, 100)), Some(within));
    });
}

#[test]
fn few_bursts_are_noted() {
    let bursts = |count| {
        move |result: &mut LoadResult| {
            let bursts = BurstArrivals { factor: 5.0, share: 0.1, length_s: 1.0, count };
            result.arrivals = Some(Arrivals::Bursts(bursts));
        }
    };
    expect(&[], &["bursts"], bursts(19));
    expect(&[], &[], bursts(20));
    expect(&[], &[], |result| result.arrivals = Some(Arrivals::Poisson));
}

#[test]
fn set_clock_is_noted() {
    let moved =
        |milliseconds| RunContext { clock_moved: SignedDuration::from_millis(milliseconds), ..context() };
    assert_eq!(notes(moved(-10)), "");
    assert!(notes(moved(-11)).starts_with("clock: the machine's clock was set by -0.011 s"));
    let start_at = Some(Timestamp::UNIX_EPOCH + SignedDuration::from_secs(3));
    let text = notes(RunContext { start_at, ..context() });
    assert!(text.starts_with("start-at: the window opened -3.000 s"), "{text}");
}

#[test]
fn nothing_due_means_nothing_measured() {
    expect(&["nothing-measured"], &[], |result| result.requests.scheduled = 0);
    expect(&["unreachable"], &[], |result| {
        result.requests.scheduled = 0;
        result.requests.errors.insert("connect-refused".into(), 4);
    });
}
