//! `meshmeter load --search` against a service with known capacity.

mod command;

use command::{Serving, meshmeter, run, said, start, stderr, stdout};
use results::SearchResult;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::process::Output;

/// 32 connections whose requests take slightly more than 40 ms carry at most 800 requests/s. Compared with
/// such times, a generator that a busy machine wakes some milliseconds late is accurate enough.
const DELAY: &[&str] = &["--delay", "40ms"];
const CONNECTIONS: &str = "32";
const CAPACITY: f64 = 800.0;

/// True if the machine kept the generator from running in some probe: the search then makes no promise about
/// its result.
fn is_disturbed(result: &SearchResult) -> bool {
    let mut disturbed =
        result.probes.iter().filter(|probe| probe.outcome.as_deref() == Some("generator-limited")).peekable();
    let is_so = disturbed.peek().is_some();
    for probe in disturbed {
        assert!(!probe.reason.is_empty() && !probe.result.verdict.valid, "{:?}", probe.result.verdict);
    }
    is_so
}

#[test]
fn the_highest_rate_that_holds_the_objective_is_found_with_its_curve() {
    let server = Serving::start(DELAY);
    let url = server.url();
    let arguments = [
        "--connections",
        CONNECTIONS,
        "--objective",
        "p90=200ms",
        "--search-precision",
        "10%",
        "--duration",
        "500ms",
        "--search-probe-max",
        "600ms",
        "--warmup",
        "100ms",
        "--json",
        "-",
        &url,
    ];
    let output = run(&[&["load", "--search", "--progress", "plain"], &arguments[..]].concat());
    let result: SearchResult = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", stdout(&output), stderr(&output)));
    // Every probe is complete, in the result and on standard error.
    assert_eq!(result.probes[0].phase, "capacity");
    // In a short window the last requests of all clients may exceed their share.
    assert!(result.probes[0].result.rate.completed < 1.15 * CAPACITY, "{:?}", result.probes[0].result.rate);
    for probe in &result.probes {
        assert!(!probe.result.response_time_us.histogram.is_empty());
        assert_eq!(probe.outcome.is_some(), probe.result.objective.is_some(), "{probe:?}");
    }
    assert_eq!(stderr(&output).lines().count(), result.probes.len());
    let rates: Vec<f64> = result.curve.iter().map(|point| point.rate).collect();
    assert!(rates.is_sorted(), "{rates:?}");
    // A busy machine carries less; no machine carries more. The queue of a short probe may hide a slight
    // overload.
    assert!(result.found.is_none_or(|found| found.rate < 1.15 * CAPACITY), "{}", stderr(&output));
    if is_disturbed(&result) {
        return;
    }
    let found = result.found.unwrap_or_else(|| panic!("nothing found: {}", stderr(&output)));
    assert!(found.rate > 0.3 * CAPACITY, "{found:?}: {}", stderr(&output));
    assert_eq!(output.status.code(), Some(0), "{:?}", result.verdict);
    assert!(found.confirmed && found.confirmations_held >= 2, "{found:?}");
    assert!(found.high.is_some_and(|high| high > found.rate), "{found:?}");
    assert_eq!(result.verdict.limit.as_deref(), Some("target"), "{:?}", result.verdict);
    assert!(rates.len() >= 9, "{rates:?}");
    assert!(rates[0] < 0.15 * found.rate && rates[rates.len() - 1] > 1.05 * found.rate, "{rates:?}");
}

#[test]
fn an_objective_that_never_holds_is_status_1_and_the_highest_rate_is_never_passed() {
    let server = Serving::start(DELAY);
    let url = server.url();
    let search = |objective: &str| {
        let arguments = [
            "--connections",
            CONNECTIONS,
            "--objective",
            objective,
            "--search-min",
            "100",
            "--search-max",
            "200",
            "--duration",
            "300ms",
            "--search-probe-max",
            "300ms",
            "--warmup",
            "50ms",
            "--progress",
            "json",
            "--search-confirmations",
            "1",
            &url,
        ];
        let output = run(&[&["load", "--search"], &arguments[..]].concat());
        let events = stderr(&output).lines().map_while(|line| serde_json::from_str(line).ok()).collect();
        (output, events)
    };
    // If the machine kept the generator from running in some probe, the only expectation is that this is
    // reported.
    let is_disturbed = |events: &[Value]| events.iter().any(|event| event["outcome"] == "generator-limited");
    let (never, events): (Output, Vec<Value>) = search("p50=1ms");
    assert!(
        is_disturbed(&events)
            || never.status.code() == Some(1) && stdout(&never).contains("not even at 100 requests/s"),
        "{}{}",
        stdout(&never),
        stderr(&never)
    );
    let before = server.requests();
    let (always, events) = search("p50=5s");
    assert!(
        is_disturbed(&events)
            || always.status.success() && stdout(&always).starts_with("At least 200 requests/s"),
        "{}{}",
        stdout(&always),
        stderr(&always)
    );
    assert!(server.requests() > before);
    assert!(events.len() > 2, "{}", stderr(&always));
    for event in events {
        assert!(event["rate"].as_f64().is_none_or(|rate| rate <= 200.0), "{event}");
    }
}

#[test]
fn an_interrupt_ends_a_search_with_the_best_bracket() {
    let server = Serving::start(DELAY);
    let mut child = start(
        meshmeter()
            .args([
                "load",
                "--search",
                "--progress",
                "plain",
                "--objective",
                "p50=1s",
                "--search-max",
                "1600",
                "--search-min",
                "10",
            ])
            .args([
                "--connections",
                CONNECTIONS,
                "--duration",
                "300ms",
                "--search-probe-max",
                "300ms",
                "--json",
                "-",
            ])
            .arg(server.url()),
    );
    let mut lines = said(&mut child);
    let held = lines.any(|line| line.ends_with("held"));
    if held {
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    }
    // The rest of its output must be drained.
    lines.for_each(drop);
    let output = child.wait_with_output().unwrap();
    let result: SearchResult = serde_json::from_slice(&output.stdout).unwrap();
    if !held {
        assert!(is_disturbed(&result), "a probe holds, if only the one at the lowest rate: {result:?}");
        return;
    }
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(result.verdict.end, "interrupted");
    assert!(result.found.is_some_and(|found| !found.confirmed && found.rate >= 10.0), "{:?}", result.found);
}

#[test]
fn unreachable_target_is_reported_once() {
    let output =
        run(&["load", "--search", "--progress", "off", "--objective", "p50=1ms", "http://127.0.0.1:1/"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("connect to 127.0.0.1:1: connection refused"), "{}", stderr(&output));
}

#[test]
fn usage_errors_of_search_say_what_was_expected() {
    let url = "http://127.0.0.1:1/";
    for (arguments, expected) in [
        (&["--search", url][..], "--objective"),
        (&["--search", "--objective", "p99=5ms", "--rate", "5", url], "cannot be used with"),
        (&["--search", "--objective", "p99=5ms", "--csv", "x.csv", url], "cannot be used with"),
        (&["--search", "--objective", "rate=5", url], "a search finds the rate"),
        (&["--search", "--objective", "p99=50s", url], "--timeout"),
        (&["--search", "--objective", "p99=5ms", "--search-max", "5", url], "--search-min"),
        (&["--search", "--objective", "p99=5ms", "--search-precision", "0.1%", url], "0.2%"),
    ] {
        let output = run(&[&["load"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{arguments:?}: {}", stderr(&output));
    }
}
