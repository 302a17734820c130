//! Live metrics of `meshmeter run`: a real Prometheus receives what the run measured, and the dashboard's
//! queries find it.

mod command;
mod receiver;

use command::{NOBODY, Serving, run, stderr, stdout};
use receiver::prometheus::Prometheus;
use results::{Host, TrialRecord};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

/// Timeout for Prometheus to show what it has accepted.
const SEEN_TIMEOUT: Duration = Duration::from_secs(60);
const EXPERIMENT: &str = "
name: live
topology: pair
mesh: envoy
modes: [none, gateway]
load: {protocol: http/1.1, payload: 1KiB, connections: 2, generators: 2, rate: [100], warmup: 500ms, duration: 3s}
proxy: {workers: [1, 2]}
repeats: 1
retakes: 0
";

struct Run {
    output: Output,
    trials: Vec<TrialRecord>,
    host: Host,
}

fn run_experiment(arguments: &[&str]) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("live.yaml");
    fs::write(&file, EXPERIMENT).unwrap();
    let out = folder.path().join("run");
    let fixed = [
        "run",
        file.to_str().unwrap(),
        "--seed",
        "1",
        "--noise-floor",
        "100ms",
        "--out",
        out.to_str().unwrap(),
    ];
    let output = run(&[&fixed, arguments].concat());
    // A busy machine may leave no trial valid; nothing else may go wrong.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}{}", stdout(&output), stderr(&output));
    let read = |name: &str| fs::read_to_string(out.join(name)).unwrap();
    let trials = read("trials.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    Run { output, trials, host: serde_json::from_str(&read("host.json")).unwrap() }
}

/// Every query of the dashboard's panels, with its title; variables match everything.
fn dashboard_queries() -> Vec<(String, String)> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dashboards/meshmeter.json");
    let dashboard: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let panels = panels.filter(|panel| panel["type"] != "row");
    let queries = panels.flat_map(|panel| {
        let title = panel["title"].as_str().unwrap().to_owned();
        let targets = panel["targets"].as_array().unwrap_or_else(|| panic!("{title} has queries"));
        targets.iter().map(move |target| {
            let query = target["expr"].as_str().unwrap();
            // A rate over a longer time than a trial's few seconds is lower than the trial's. Grafana uses
            // four times this interval.
            let is_rate = query.contains("$__rate_interval");
            assert_eq!(target["interval"].as_str(), is_rate.then_some("1s"), "{title}");
            let query = query.replace("$__rate_interval", "4s").replace("$__range", "5m");
            let query =
                ["$run", "$mode", "$generator"].iter().fold(query, |query, name| query.replace(name, ".*"));
            assert!(!query.contains('$'), "{title}: {query}");
            (title.clone(), query)
        })
    });
    queries.collect()
}

#[test]
fn dashboard_shows_a_run_from_real_prometheus() {
    let prometheus = Prometheus::start();
    let measured = run_experiment(&["--remote-write", &prometheus.url(), "--label", "team=mesh"]);
    let said = stderr(&measured.output);
    let export = measured.host.exports.first().expect("the run says what became of its metrics");
    assert_eq!((export.dropped(), export.failed_requests), (0, 0), "{export:?}: {said}");
    assert_eq!(measured.trials.len(), 3, "workers of proxies do not touch mode none: {said}");

    let last = |metric: &str, labels: &str| {
        prometheus.value(&format!(r#"sum(last_over_time({metric}{{run="live",team="mesh",{labels}}}[5m]))"#))
    };
    for trial in &measured.trials {
        let result = trial.result.as_ref().expect("a result");
        // An absent label equals an empty one.
        let workers = trial.factors.get("proxy.workers").map(ToString::to_string).unwrap_or_default();
        let labels = format!(
            r#"trial="{}",mode="{}",repeat="0",load="100/s",proxy_workers="{workers}""#,
            trial.index, trial.mode
        );
        let completed = last("meshmeter_requests_completed_total", &labels);
        assert_eq!(completed, result.requests.completed as f64, "{labels}");
        let merged = result.merged.as_ref().expect("the parts of two generators");
        let generators: Vec<&str> = merged.parts.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(generators.len(), 2, "{generators:?}");
        for generator in generators {
            let driver = &trial.drivers[0].name;
            let labels = format!(r#"{labels},generator="{generator}",driver="{driver}""#);
            assert!(last("meshmeter_requests_completed_total", &labels) > 0.0, "{labels}");
        }
        let infinite = format!(r#"{labels},le="+Inf""#);
        assert_eq!(last("meshmeter_response_time_seconds_bucket", &infinite), completed, "{labels}");
        for component in &trial.components {
            let labels = format!(r#"{labels},component="{}""#, component.name);
            check(last("meshmeter_component_cpu_cores", &labels), component.cpu_cores(), &labels);
        }
        for gateway in &trial.gateways {
            let labels = format!(r#"{labels},gateway="{}""#, gateway.name);
            let rate = last("meshmeter_gateway_requests_per_second", &labels);
            check(rate, gateway.requests_per_s, &labels);
        }
        let valid = if trial.verdict.valid { 1.0 } else { 0.0 };
        assert_eq!(last("meshmeter_trial_valid", &labels), valid);
    }
    // Without end markers the series would stay for five minutes. What was written last may be visible a
    // moment later.
    let is_over = || prometheus.query(r#"{run="live"}"#).is_empty();
    let began = Instant::now();
    while !is_over() {
        assert!(began.elapsed() < SEEN_TIMEOUT, "every series has ended");
        std::thread::yield_now();
    }

    // The panels of a generator's process only apply to `load`.
    let server = Serving::start(&[]);
    let arguments = ["load", "--rate", "100", "--duration", "3s", "--remote-write", &prometheus.url()];
    let load = run(&[&arguments[..], &[server.url().as_str()]].concat());
    assert!(matches!(load.status.code(), Some(0 | 1)), "{}", stderr(&load));

    let queries = dashboard_queries();
    assert!(queries.len() >= 12, "{queries:?}");
    for (title, query) in queries {
        let series = prometheus.query_range(&query);
        assert!(!series.is_empty(), "`{title}` shows nothing: {query}");
    }
}

/// The same figure, parsed from decimals in two ways.
fn check(figure: f64, expected: f64, what: &str) {
    assert!((figure - expected).abs() <= 1e-9 * expected.abs(), "{what}: {figure}, {expected}");
}

#[test]
fn run_continues_without_a_receiver() {
    let url = format!("http://{NOBODY}");
    let measured = run_experiment(&["--remote-write", &url, "--otlp", &url]);
    let said = stderr(&measured.output);
    assert_eq!(measured.trials.len(), 3, "{said}");
    for trial in &measured.trials {
        let requests = &trial.result.as_ref().expect("a result").requests;
        assert_eq!(requests.scheduled, 300, "{requests:?}");
    }
    for (export, name) in measured.host.exports.iter().zip(["remote write to", "OTLP to"]) {
        assert!(export.snapshots > 10 && export.delivered == 0, "{export:?}");
        assert_eq!(said.lines().filter(|line| line.contains(name)).count(), 1, "{said}");
    }
    assert_eq!(measured.host.exports.len(), 2);
}

#[test]
fn labels_set_by_a_run_are_rejected_before_it_begins() {
    let arguments = ["run", "sidecar-cost", "--dry-run", "--remote-write", "http://127.0.0.1:1"];
    let output = run(&[&arguments[..], &["--label", "mode=x"]].concat());
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("--label mode: a run sets this label itself"), "{}", stderr(&output));
}
