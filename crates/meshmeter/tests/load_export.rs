//! Live metrics of `meshmeter load`, as their receivers see them, and receivers that fail.

mod command;
mod receiver;

use command::{NOBODY, Serving, await_first_second, meshmeter, run, said, start, stderr, stdout};
use receiver::prometheus::Prometheus;
use receiver::remote_write::Store;
use receiver::{Reply, Stub, otlp};
use results::{ExportRecord, LoadResult};
use rustix::process::{Pid, Signal, kill_process};
use std::process::Output;
use std::time::Duration;

/// Response headers of version 2.0 stubs: counts above those of any request.
const ALL_WRITTEN: &str = "\r\nX-Prometheus-Remote-Write-Samples-Written: 100000\
                           \r\nX-Prometheus-Remote-Write-Histograms-Written: 100000";

/// 400 requests in two seconds.
fn load(arguments: &[&str]) -> (Output, LoadResult) {
    let server = Serving::start(&[]);
    load_url(&server.url(), arguments)
}

/// A closed loop leaves no request unsent on a busy machine, so that its maximum has a value.
const CLOSED_LOOP: [&str; 2] = ["--clients", "1"];

/// An open loop, unless the arguments select a closed one.
fn load_url(url: &str, arguments: &[&str]) -> (Output, LoadResult) {
    let rate: &[&str] = if arguments.contains(&CLOSED_LOOP[0]) { &[] } else { &["--rate", "200"] };
    let output = meshmeter()
        .args(["load", "--progress", "off", "--duration", "2s", "--json", "-"])
        .args(rate)
        .args(arguments)
        .arg(url)
        .output()
        .unwrap();
    let result = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {} {}", stdout(&output), stderr(&output)));
    (output, result)
}

fn only_export(result: &LoadResult) -> &ExportRecord {
    assert_eq!(result.exports.len(), 1, "{:?}", result.exports);
    &result.exports[0]
}

#[test]
fn prometheus_has_every_figure_of_a_load_and_sees_its_series_end() {
    let prometheus = Prometheus::start();
    let server = Serving::start(&["--error-rate", "10%"]);
    let url = prometheus.url();
    let send = |generator: &str, more: &[&str]| {
        let arguments = ["--remote-write", &url, "--label", generator, "--label", "team=mesh"];
        let arguments: Vec<&str> = arguments.iter().chain(more).copied().collect();
        let (output, result) = load_url(&server.url(), &arguments);
        let export = only_export(&result);
        assert_eq!((export.dropped(), export.failed_requests), (0, 0), "{export:?}: {}", stderr(&output));
        // One per second and per phase.
        assert!(export.snapshots >= 5 && export.samples > 5 * 20, "{export:?}");
        result
    };
    let classic = send("generator=classic", &[]);
    let native =
        send("generator=native", &[&CLOSED_LOOP[..], &["--remote-write-histograms", "native"]].concat());

    for (generator, result) in [("classic", &classic), ("native", &native)] {
        let last = |metric: &str| {
            prometheus.value(&format!("sum(last_over_time({metric}[5m]))").replace("GENERATOR", generator))
        };
        let labels = r#"{generator="GENERATOR",team="mesh",job="meshmeter"}"#;
        let completed = result.requests.completed as f64;
        assert_eq!(last(&format!("meshmeter_requests_completed_total{labels}")), completed);
        assert_eq!(last(&format!("meshmeter_responses_total{labels}")), completed);
        let failed = result.requests.status.get("500").copied().unwrap_or(0) as f64;
        assert_eq!(last(r#"meshmeter_responses_total{generator="GENERATOR",code="500"}"#), failed);
        assert_eq!(last(&format!("meshmeter_received_bytes_total{labels}")), result.bytes.received as f64);
        // Nothing is left of them: their series have ended.
        assert!(prometheus.query(&format!(r#"{{generator="{generator}"}}"#)).is_empty());
    }
    let count = r#"last_over_time(meshmeter_response_time_seconds_count{generator="classic"}[5m])"#;
    assert_eq!(prometheus.value(count), classic.requests.completed as f64);
    let infinite =
        r#"last_over_time(meshmeter_response_time_seconds_bucket{generator="classic",le="+Inf"}[5m])"#;
    assert_eq!(prometheus.value(infinite), classic.requests.completed as f64);

    // A bucket of a native histogram is 0.27 % wide, one of Meshmeter's histograms 0.1 %.
    let series = r#"meshmeter_response_time_seconds{generator="native"}"#;
    let kept = prometheus.query(&format!("{series}[5m]"));
    let last_s = kept[0]["histograms"].as_array().unwrap().last().unwrap()[0].as_f64().unwrap();
    let histogram = format!("{series} @ {last_s:.3}");
    assert_eq!(prometheus.value(&format!("histogram_count({histogram})")), native.requests.completed as f64);
    for (quantile, expected_us) in [(0.5, native.response_time_us.p50), (0.9, native.response_time_us.p90)] {
        let read_us = prometheus.value(&format!("histogram_quantile({quantile}, {histogram})")) * 1e6;
        // Each rank between the values of two requests belongs to one of them.
        assert!(
            (read_us / expected_us.unwrap() - 1.0).abs() < 0.02,
            "{quantile}: {read_us}, {expected_us:?}"
        );
    }
    let trend =
        r#"last_over_time(meshmeter_response_time_quantile_seconds{generator="native",quantile="1"}[5m])"#;
    let greatest_us = native.response_time_us.max.unwrap();
    assert!((1.0..=greatest_us * 1.001).contains(&(prometheus.value(trend) * 1e6)));
}

#[test]
fn version_2_matches_its_definition() {
    let stub = Stub::taking(ALL_WRITTEN);
    let (output, result) =
        load(&[&CLOSED_LOOP[..], &["--remote-write", &stub.url(), "--remote-write-version", "2"]].concat());
    let export = only_export(&result);
    assert_eq!((export.dropped(), export.failed_requests), (0, 0), "{export:?}: {}", stderr(&output));
    assert_eq!(export.protocol, "remote-write-2");
    let received = stub.received();
    assert!(received.iter().all(|request| request.path == "/api/v1/write"));
    let store = Store::read(&received);
    for (labels, samples) in &store.0 {
        let (last, before) = samples.split_last().unwrap();
        assert!(last.is_stale(), "{labels:?} ends");
        assert!(before.iter().any(|sample| !sample.is_stale()), "{labels:?}");
        assert!(labels["generator"].ends_with(|letter: char| letter.is_ascii_digit()), "{labels:?}");
    }
    let completed = store.series("meshmeter_requests_completed_total", &[]);
    assert_eq!(completed[completed.len() - 2].value, result.requests.completed as f64);
    let times = store.series("meshmeter_response_time_seconds", &[]);
    let buckets = times[times.len() - 2].buckets.as_ref().unwrap();
    assert_eq!(buckets.iter().map(|(_, _, count)| count).sum::<u64>(), result.requests.completed);
    // The last value is in the last bucket.
    let (above, up_to, _) = buckets.last().unwrap();
    let greatest_s = result.response_time_us.max.unwrap() / 1e6;
    assert!(above * 0.998 < greatest_s && greatest_s <= up_to * 1.002, "{above} {greatest_s} {up_to}");
    assert!(store.0.keys().all(|labels| !labels.contains_key("le")), "no classic histograms beside them");
}

#[test]
fn requests_without_a_response_are_infinitely_slow() {
    let server = Serving::start(&["--delay", "1h"]);
    let stub = Stub::taking(ALL_WRITTEN);
    let (_, result) = load_url(
        &server.url(),
        &["--remote-write", &stub.url(), "--remote-write-version", "2", "--timeout", "4s"],
    );
    assert!(result.requests.failed > 0 && result.requests.completed == 0, "{:?}", result.requests);
    let store = Store::read(&stub.received());
    let times = store.series("meshmeter_response_time_seconds", &[]);
    let buckets = times[times.len() - 2].buckets.as_ref().unwrap();
    let (above, _, count) = buckets.last().unwrap();
    assert_eq!((*count, *above), (result.requests.failed, f64::INFINITY));
    let median = store.series("meshmeter_response_time_quantile_seconds", &[("quantile", "0.5")]);
    assert!(median.iter().any(|sample| sample.value == f64::INFINITY), "{median:?}");
}

#[test]
fn otlp_requests_decode_to_all_metrics() {
    let stub = Stub::taking("");
    let (output, result) =
        load(&["--otlp", &stub.url(), "--otlp-header", "X-Tenant: one", "--label", "generator=g"]);
    let export = only_export(&result);
    assert_eq!((export.dropped(), export.failed_requests), (0, 0), "{export:?}: {}", stderr(&output));
    let received = stub.received();
    assert!(received.iter().all(|request| request.header("x-tenant") == Some("one")));
    let metrics = otlp::read(&received);
    let points = &metrics["meshmeter_requests_completed_total"];
    let (last, before) = points.split_last().unwrap();
    assert_eq!((last.flags, last.value), (1, None), "the series ends");
    let completed = result.requests.completed as f64;
    assert_eq!(before.last().unwrap().value, Some(completed));
    assert!(before.iter().all(|point| point.start_ns > 0 && point.start_ns <= point.time_ns));
    assert_eq!(last.attributes["generator"], "g");
    let times = &metrics["meshmeter_response_time_seconds"];
    assert_eq!(times[times.len() - 2].value, Some(completed));
    let phases: Vec<&str> =
        metrics["meshmeter_phase"].iter().map(|point| point.attributes["phase"].as_str()).collect();
    assert!(phases.contains(&"measuring") && phases.contains(&"draining"), "{phases:?}");
}

#[test]
fn failing_receiver_changes_no_figure_and_is_reported_once() {
    let status = |status: &'static str| Stub::start(move |_, _| Some(status.to_owned()));
    let (silent, refuses, breaks) =
        (Stub::start(|_, _| None), status("400 Bad Request"), status("500 Internal Server Error"));
    let busy = status("429 Too Many Requests\r\nRetry-After: 3600");
    let cases = [
        (format!("http://{NOBODY}"), "Connection refused"),
        (silent.url(), "not delivered: no response"),
        (refuses.url(), "HTTP 400"),
        (breaks.url(), "HTTP 500"),
        (busy.url(), "HTTP 429"),
        ("http://no-such-host.invalid:9090".to_owned(), "remote write to"),
    ];
    std::thread::scope(|scope| {
        for (url, expected) in &cases {
            scope.spawn(move || {
                let (output, result) = load(&["--remote-write", url]);
                let said = stderr(&output);
                // A busy machine may spoil a load; a receiver does not.
                let expected_code = if result.verdict.valid { 0 } else { 1 };
                assert_eq!(output.status.code(), Some(expected_code), "{url}: {said}");
                let requests = &result.requests;
                assert_eq!((requests.scheduled, requests.failed), (400, 0), "{url}");
                assert_eq!(requests.completed + requests.unsent, 400, "{url}");
                let export = only_export(&result);
                assert!(export.snapshots >= 5, "{url}: {export:?}");
                assert_eq!(export.delivered, 0, "{url}: {export:?}");
                let told = said.lines().filter(|line| line.contains("remote write")).count();
                assert!(told == 1 && said.contains(expected), "{url}: {said}");
            });
        }
    });
    let attempts = refuses.received().len();
    assert!(attempts >= 1, "each request was made once");
    assert_eq!(busy.received().len(), 1, "it asked to be left alone for an hour");
}

#[test]
fn data_rejected_by_receiver_is_resent_in_order() {
    let answer = |number: usize| -> Reply {
        Some(match number {
            0 => "503 Service Unavailable".to_owned(),
            1 => "429 Too Many Requests\r\nRetry-After: 1".to_owned(),
            _ => format!("204 No Content{ALL_WRITTEN}"),
        })
    };
    let stub = Stub::start(move |number, _| answer(number));
    let (output, result) = load(&["--remote-write", &stub.url(), "--remote-write-version", "2"]);
    let export = only_export(&result);
    assert_eq!((export.dropped(), export.failed_requests), (0, 2), "{export:?}: {}", stderr(&output));
    assert_eq!(export.errors["HTTP 503"] + export.errors["HTTP 429"], 2);
    let received = stub.received();
    assert!(received[2].at - received[1].at >= Duration::from_secs(1), "the receiver asked for a second");
    // Reading checks the order.
    let store = Store::read(&received[2..]);
    let completed = store.series("meshmeter_requests_completed_total", &[]);
    assert_eq!(completed[completed.len() - 2].value, result.requests.completed as f64);
}

#[test]
fn version_1_receivers_are_detected_when_sent_version_2() {
    let stub = Stub::taking("");
    let (output, result) = load(&["--remote-write", &stub.url(), "--remote-write-version", "2"]);
    assert_eq!(only_export(&result).delivered, 0);
    assert!(stderr(&output).contains("use --remote-write-version 1"), "{}", stderr(&output));
}

#[test]
fn https_receivers_are_verified_against_given_ca() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let (own, other) = (file("own.pem"), file("other.pem"));
    let receiver = |authority: &str| {
        Serving::start(&["--tls-listen", "127.0.0.1:0", "--tls-name", "127.0.0.1", "--tls-ca-out", authority])
    };
    let (receiver, _other) = (receiver(&own), receiver(&other));
    let url = receiver.listeners().iter().find(|listener| listener.starts_with("https://")).unwrap();
    std::thread::scope(|scope| {
        for option in ["--remote-write", "--otlp"] {
            for (authority, is_trusted) in [(&own, true), (&other, false)] {
                scope.spawn(move || {
                    let (output, result) = load(&[option, url, "--export-cacert", authority]);
                    let export = only_export(&result);
                    let what = format!("{option} {is_trusted}: {export:?}: {}", stderr(&output));
                    assert!(export.snapshots >= 5, "{what}");
                    if is_trusted {
                        assert_eq!((export.dropped(), export.failed_requests), (0, 0), "{what}");
                    } else {
                        assert_eq!(export.delivered, 0, "{what}");
                        assert!(stderr(&output).contains("certificate"), "{what}");
                    }
                });
            }
        }
    });
    assert!(receiver.requests() > 0);
}

#[test]
fn an_interrupted_load_ends_its_series() {
    let server = Serving::start(&[]);
    let stub = Stub::taking(ALL_WRITTEN);
    let mut child = start(
        meshmeter()
            .args(["load", "--progress", "plain", "--rate", "100", "--duration", "60s", "--json", "-"])
            .args(["--remote-write", &stub.url(), "--remote-write-version", "2"])
            .arg(server.url()),
    );
    await_first_second(&mut said(&mut child), 60);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let result: LoadResult = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(only_export(&result).dropped(), 0, "{:?}", result.exports);
    let store = Store::read(&stub.received());
    assert!(store.0.values().all(|samples| samples.last().unwrap().is_stale()));
}

#[test]
fn invalid_options_are_reported_before_anything_is_sent() {
    let url = "http://127.0.0.1:1/";
    for (arguments, expected) in [
        (&["--remote-write", "127.0.0.1:9090"][..], "such as http://127.0.0.1:9090/api/v1/write"),
        (&["--otlp", "grpc://127.0.0.1:4317"], "such as http://127.0.0.1:4318/v1/metrics"),
        (&["--remote-write-version", "2"], "--remote-write"),
        (
            &["--remote-write", url, "--remote-write-header", "Content-Type: text/plain"],
            "set by the protocol",
        ),
        (&["--remote-write", url, "--label", "le=1"], "have a label `le` of their own"),
        (&["--remote-write", url, "--export-interval", "500ms"], "whole seconds"),
        (&["--remote-write", url, "--export-cacert", "/nowhere"], "with an https:// URL"),
        (&["--otlp", "https://127.0.0.1:1/", "--export-cacert", "/nowhere"], "/nowhere: No such file"),
        (&["--otlp", "https://127.0.0.1:1/", "--export-cacert", "/dev/null"], "no certificate in PEM"),
        (&["--remote-write", url, "--search", "--objective", "p99=1s"], "cannot be used with"),
    ] {
        let output = run(&[&["load", "--rate", "1", "--duration", "60s", url], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{arguments:?}: {}", stderr(&output));
    }
}
