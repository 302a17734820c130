//! Outputs of `meshmeter load` in formats of other programs, read back as these programs do.

mod command;

use base64::Engine as _;
use command::{NOBODY, Serving, await_first_second, meshmeter, run, said, start, stderr, stdout};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use results::LoadResult;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;

/// Histograms of an interval log by tag, with the start time of each second.
fn read_log(text: &str) -> BTreeMap<String, Vec<(f64, f64, Histogram<u64>)>> {
    let mut found: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for entry in IntervalLogIterator::new(text.as_bytes()) {
        if let LogEntry::Interval(interval) = entry.expect("a log as HdrHistogram has it") {
            let bytes =
                base64::engine::general_purpose::STANDARD.decode(interval.encoded_histogram()).unwrap();
            let histogram = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
            let tag = interval.tag().map(|tag| tag.as_str().to_owned()).unwrap_or_default();
            let (start, length) = (interval.start_timestamp(), interval.duration());
            found.entry(tag).or_default().push((start.as_secs_f64(), length.as_secs_f64(), histogram));
        }
    }
    found
}

fn read_csv(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().expect("a line of names").split(',').collect();
    let fields = |line: &str| {
        let fields: Vec<String> = line.split(',').map(str::to_owned).collect();
        assert_eq!(fields.len(), names.len(), "{line}");
        names.iter().map(|name| (*name).to_owned()).zip(fields).collect()
    };
    lines.map(fields).collect()
}

fn sum(lines: &[BTreeMap<String, String>], name: &str) -> u64 {
    lines.iter().map(|line| line[name].parse::<u64>().unwrap()).sum()
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn result_in(folder: &Path) -> LoadResult {
    serde_json::from_str(&read(folder, "r.json")).expect("a result")
}

/// All outputs, into one directory.
const ALL: [&str; 10] = [
    "--json",
    "r.json",
    "--csv",
    "r.csv",
    "--hdr",
    "r.hlog",
    "--percentiles",
    "r.hgrm",
    "--fortio",
    "r.fortio",
];

#[test]
fn every_output_counts_the_same_requests() {
    let server = Serving::start(&["--delay", "2ms", "--error-rate", "10%"]);
    let folder = tempfile::tempdir().unwrap();
    let load = || {
        let mut load = meshmeter();
        load.current_dir(&folder)
            .args(["load", "--progress", "off", "--rate", "100", "--connections", "4", "--threads", "2"])
            .args(["--duration", "2500ms", "--series-histograms", "--fortio-labels", "a b"])
            .args(ALL)
            .arg(server.url());
        let output = load.output().unwrap();
        (output, result_in(folder.path()))
    };
    // A machine that stalls at the end of the window leaves requests unsent: percentiles among these have no value.
    let mut loads = (0..10).map(|_| load());
    let (output, result) = loads.find(|(_, result)| result.requests.unsent == 0).expect("a whole window");
    assert!(stdout(&output).contains("response time"), "the text is still shown: {}", stderr(&output));
    let completed = result.requests.completed;
    assert_eq!(completed, 250, "{:?}", result.requests);

    let lines = read_csv(&read(folder.path(), "r.csv"));
    assert_eq!(lines.len(), result.series.len());
    assert_eq!((sum(&lines, "sent"), sum(&lines, "completed")), (result.requests.sent, completed));
    assert_eq!((lines[1]["t_s"].as_str(), lines[1]["offered_rate"].as_str()), ("1", "100"));
    assert_eq!(lines[2]["offered_rate"], "100", "the last second is half as long");
    assert_eq!(lines[0]["p99.9_us"].parse::<f64>().ok(), result.series[0].p99_9_us);

    let log = read_log(&read(folder.path(), "r.hlog"));
    assert_eq!(log.keys().map(String::as_str).collect::<Vec<_>>(), ["", "schedule-lag", "service-time"]);
    for (tag, summary) in [("", &result.response_time_us), ("service-time", &result.service_time_us)] {
        let mut whole = Histogram::<u64>::new(3).unwrap();
        log[tag].iter().for_each(|(_, _, interval)| whole.add(interval).unwrap());
        assert_eq!(whole.len(), completed, "{tag}");
        for (percentile, expected_us) in [(50.0, summary.p50), (99.0, summary.p99), (100.0, summary.max)] {
            let (read_us, expected_us) =
                (whole.value_at_percentile(percentile) as f64 / 1000.0, expected_us.unwrap());
            assert!((read_us / expected_us - 1.0).abs() < 0.002, "{tag} p{percentile}: {read_us} µs");
        }
    }
    let times: Vec<_> = log[""].iter().map(|(start, length, _)| (*start, *length)).take(3).collect();
    assert_eq!(times, [(0.0, 1.0), (1.0, 1.0), (2.0, 0.5)]);

    let percentiles = read(folder.path(), "r.hgrm");
    let last = percentiles.lines().rfind(|line| !line.starts_with('#')).unwrap();
    let last: Vec<&str> = last.split_whitespace().collect();
    let max_ms = format!("{:.3}", result.response_time_us.max.unwrap() / 1000.0);
    assert_eq!(last, [max_ms.as_str(), "1.000000000000", &completed.to_string()]);
    assert!(percentiles.contains(&format!("Total count    = {completed:>12}]")), "{percentiles}");

    let fortio: Value = serde_json::from_str(&read(folder.path(), "r.fortio")).unwrap();
    assert_eq!(fortio["DurationHistogram"]["Count"], completed);
    assert_eq!(
        fortio["DurationHistogram"]["Percentiles"][3]["Value"],
        result.response_time_us.p99.unwrap() / 1e6
    );
    assert_eq!(fortio["RetCodes"]["500"], result.requests.status["500"]);
    assert_eq!(fortio["Sizes"]["Sum"].as_f64().unwrap().round(), result.bytes.received as f64);
    assert_eq!((&fortio["Labels"], &fortio["NumThreads"]), (&Value::from("a b"), &Value::from(4)));

    assert_eq!(result.series_histograms.len(), result.series.len());
    let bytes = base64::engine::general_purpose::STANDARD.decode(&result.series_histograms[1]).unwrap();
    let second: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
    assert_eq!(second.len(), result.series[1].completed);
}

#[test]
fn unsent_requests_are_at_the_end_of_the_log() {
    let server = Serving::start(&["--delay", "100ms"]);
    let folder = tempfile::tempdir().unwrap();
    let load = ["load", "--rate", "100", "--connections", "1", "--duration", "1s"];
    let output = meshmeter()
        .current_dir(&folder)
        .args(load)
        .args(["--progress", "off", "--json", "r.json", "--hdr", "r.hlog"])
        .arg(server.url())
        .output()
        .unwrap();
    let result = result_in(folder.path());
    assert!(result.requests.unsent > 50 && result.response_time_us.p99.is_none(), "{}", stderr(&output));
    let mut whole = Histogram::<u64>::new(3).unwrap();
    read_log(&read(folder.path(), "r.hlog"))[""].iter().for_each(|(.., part)| whole.add(part).unwrap());
    assert_eq!(whole.len(), result.response_time_us.requests());
    let hour_ns = 3600.0 * 1e9;
    assert!(whole.value_at_percentile(99.0) as f64 > hour_ns, "beyond every answer");
}

#[test]
fn an_interrupt_keeps_every_output() {
    let server = Serving::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let mut child = meshmeter()
        .current_dir(&folder)
        .args(["load", "--progress", "plain", "--rate", "200", "--duration", "60s"])
        .args(ALL)
        .arg(server.url())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = said(&mut child);
    await_first_second(&mut lines, 60);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    child.wait().unwrap();
    let result = result_in(folder.path());
    let completed = result.requests.completed;
    assert!(completed > 0);
    assert_eq!(sum(&read_csv(&read(folder.path(), "r.csv")), "completed"), completed);
    let log = read_log(&read(folder.path(), "r.hlog"));
    let logged = log[""].iter().map(|(_, _, interval)| interval.len()).sum::<u64>();
    assert_eq!(logged, result.response_time_us.requests());
    assert!(read(folder.path(), "r.hgrm").contains("#[Max"));
    let fortio: Value = serde_json::from_str(&read(folder.path(), "r.fortio")).unwrap();
    assert_eq!(fortio["RetCodes"]["200"], completed);
}

#[test]
fn seconds_are_written_during_the_run_and_survive_kill() {
    let server = Serving::start(&[]);
    let mut child = meshmeter()
        .args(["load", "--progress", "off", "--rate", "100", "--duration", "60s", "--csv", "-"])
        .arg(server.url())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.next().unwrap().starts_with("t_s,"));
    assert!(lines.next().unwrap().starts_with("0,100,"), "the first second, 59 s before the end");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn failing_output_is_named_and_does_not_affect_others() {
    let server = Serving::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let output = meshmeter()
        .current_dir(&folder)
        .args(["load", "--progress", "off", "--clients", "1", "--requests", "20", "--json", "r.json"])
        .args(["--csv", "/dev/full", "--hdr", "r.hlog", "--fortio", "/dev/full", "--percentiles", "-"])
        .arg(server.url())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(
        stderr(&output).matches("write /dev/full: No space left on device").count(),
        2,
        "{}",
        stderr(&output)
    );
    let result = result_in(folder.path());
    assert_eq!(result.requests.completed, 20, "{:?}", result.requests);
    let logged = &read_log(&read(folder.path(), "r.hlog"))[""];
    let logged = logged.iter().map(|(_, _, interval)| interval.len()).sum::<u64>();
    assert_eq!(logged, result.response_time_us.requests());
    // Nothing else is written to standard output.
    assert!(stdout(&output).trim_start().starts_with("Value"), "{}", stdout(&output));
}

#[test]
fn unreachable_target_leaves_empty_outputs() {
    let folder = tempfile::tempdir().unwrap();
    let output = meshmeter()
        .current_dir(&folder)
        .args(["load", "--progress", "off", "--rate", "100"])
        .args(ALL)
        .arg(format!("http://{NOBODY}/"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(read_log(&read(folder.path(), "r.hlog")).is_empty());
    assert_eq!(read_csv(&read(folder.path(), "r.csv")).len(), 0);
    let fortio: Value = serde_json::from_str(&read(folder.path(), "r.fortio")).unwrap();
    assert_eq!(fortio["DurationHistogram"]["Data"], Value::Null);
}

#[test]
fn outputs_that_would_be_lost_are_rejected_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a");
    let (file, folder) = (file.to_str().unwrap(), folder.path().to_str().unwrap());
    for (arguments, expected) in [
        (&["--csv", "-", "--json", "-"][..], "--json and --csv cannot both write to standard output"),
        (&["--hdr", file, "--fortio", file], "--hdr and --fortio cannot both write to"),
        (&["--hdr", "/does/not/exist"], "--hdr: there is no folder `/does/not`"),
        (&["--percentiles", folder], "is a folder, not a file"),
        (&["--series-histograms"], "--json"),
        (&["--fortio-labels", "a"], "--fortio"),
    ] {
        let url = "http://127.0.0.1:1/";
        let output = run(&[&["load", "--rate", "1", "--duration", "60s", url], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn the_figures_so_far_are_served_while_it_runs() {
    let server = Serving::start(&["--error-rate", "10%"]);
    let mut child = start(
        meshmeter()
            .args(["load", "--progress", "plain", "--rate", "200", "--duration", "60s", "--connections", "3"])
            .args(["--metrics-listen", "0", "--json", "-"])
            .arg(server.url()),
    );
    let mut lines = said(&mut child);
    let listening = lines.find_map(|line| Some(line.strip_prefix("metrics: http://")?.to_owned())).unwrap();
    let authority = listening.strip_suffix("/metrics").unwrap().to_owned();
    await_first_second(&mut lines, 60);
    let page = get(&authority, "/metrics");
    let value = |name: &str| {
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name} is missing: {page}")).parse::<f64>().unwrap()
    };
    let completed = value("meshmeter_requests_completed_total");
    assert!(completed > 0.0, "{page}");
    let statuses =
        value("meshmeter_responses_total{code=\"200\"}") + value("meshmeter_responses_total{code=\"500\"}");
    assert_eq!(statuses, completed);
    for times in ["response_time", "service_time"] {
        assert_eq!(value(&format!("meshmeter_{times}_seconds_count")), completed, "{page}");
    }
    assert_eq!(value("meshmeter_schedule_lag_seconds_count"), value("meshmeter_requests_sent_total"));
    assert_eq!((value("meshmeter_offered_rate"), value("meshmeter_connections_open")), (200.0, 3.0));
    assert!(value("process_cpu_seconds_total") > 0.0 && value("process_resident_memory_bytes") > 1e6);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let result: LoadResult = serde_json::from_slice(&output.stdout).unwrap();
    assert!(result.requests.completed as f64 >= completed);
    assert!(std::net::TcpStream::connect(&authority).is_err(), "it ends with the run");
}

#[test]
fn address_in_use_is_reported_before_the_run() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = run(&["load", "--rate", "1", "--metrics-listen", &address, "http://127.0.0.1:1/"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains(&format!("listen on {address}")), "{}", stderr(&output));
}

/// The whole response to a GET.
fn get(authority: &str, path: &str) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(authority).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

#[test]
fn every_output_shows_p99_above_timeout_for_stalled_server() {
    // The server stalls for half of the time: each connection has a timeout in every stall. Connections open within it on a machine
    // that stalls for seconds.
    let server = Serving::start(&["--stall", "5s/10s"]);
    let folder = tempfile::tempdir().unwrap();
    let output = meshmeter()
        .current_dir(&folder)
        .args(["load", "--progress", "off", "--rate", "200", "--connections", "64", "--duration", "10s"])
        .args(["--timeout", "4s", "--objective", "p99=2s", "--series-histograms"])
        .args(ALL)
        .arg(server.url())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let result = result_in(folder.path());
    let (times, requests) = (&result.response_time_us, &result.requests);
    assert!(requests.failed >= 1, "{requests:?}");
    assert_eq!((times.count, times.censored), (requests.completed, requests.failed + requests.unsent));
    assert_eq!((times.p99, times.p99_9, times.max), (None, None, None));
    let above_us = result.censored_above_us.unwrap();
    assert!(above_us >= 4e6 || requests.unsent > 0, "{above_us}");
    let bound = &result.objective.as_ref().unwrap().bounds[0];
    assert_eq!((bound.measured, bound.holds), (None, false));

    let text = stdout(&output);
    let line = text.lines().find(|line| line.starts_with("response time")).unwrap();
    assert!(line.contains('>') && text.contains("without a response"), "{text}");
    let lines = read_csv(&read(folder.path(), "r.csv"));
    assert!(lines.iter().any(|line| line["p99_us"] == "inf"), "{lines:?}");

    let text = read(folder.path(), "r.hlog");
    assert!(text.contains("#[Without a response: "));
    let mut whole = Histogram::<u64>::new(3).unwrap();
    read_log(&text)[""].iter().for_each(|(_, _, interval)| whole.add(interval).unwrap());
    assert_eq!(whole.len(), times.count + times.censored);
    assert!(whole.value_at_percentile(99.0) as f64 > 4e9, "{} ns", whole.value_at_percentile(99.0));
    let text = read(folder.path(), "r.hgrm");
    assert!(text.contains(&format!("#[Without a response: {} requests", times.censored)), "{text}");
    let fortio: Value = serde_json::from_str(&read(folder.path(), "r.fortio")).unwrap();
    let fortio = &fortio["DurationHistogram"];
    assert_eq!(fortio["Count"], times.count + times.censored);
    assert_eq!(fortio["Percentiles"][3]["Value"], above_us / 1e6);
}
