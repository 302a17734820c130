//! `meshmeter load` against `meshmeter serve`.

mod command;

use command::{
    NOBODY, Serving, await_first_second, meshmeter, minute_of_load, run, said, start, stderr, stdout,
};
use results::{Figure, LoadResult, Verdict};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn result_of(arguments: &[&str]) -> (LoadResult, Option<i32>) {
    let output = run(&[&["load", "--progress", "off", "--json", "-"], arguments].concat());
    let result = serde_json::from_slice(&output.stdout);
    (
        result.unwrap_or_else(|error| panic!("{error}: {}{}", stdout(&output), stderr(&output))),
        output.status.code(),
    )
}

#[test]
fn the_server_counts_what_the_generator_counts() {
    let server = Serving::start(&["--size", "1KiB"]);
    let (result, status) = result_of(&[
        "--rate",
        "200",
        "--connections",
        "4",
        "--warmup",
        "3s",
        "--duration",
        "3s",
        &server.url(),
    ]);
    let requests = &result.requests;
    // Requests that a machine that stalls for seconds leaves at the end of the warm-up or the window are given up and reported.
    assert_eq!((requests.scheduled, requests.failed), (600, 0), "{requests:?}");
    assert!((1..=600).contains(&result.warmup.sent), "{:?}", result.warmup);
    assert_eq!(requests.completed, 600 - requests.unsent, "{requests:?}");
    assert!(requests.unsent <= 6 || !result.verdict.valid, "{requests:?}");
    assert_eq!(server.requests(), requests.completed + result.warmup.sent);
    assert_eq!(requests.status.get("200").copied().unwrap_or(0), requests.completed);
    // Head and body of every response.
    assert!(result.bytes.received > requests.completed * 1024, "{:?}", result.bytes);
    assert!(matches!(status, Some(0 | 1)), "a busy machine may make the result invalid, no more: {status:?}");
}

#[test]
fn stalling_server_is_distinguished_from_fast_one() {
    let server = Serving::start(&["--stall", "300ms/3s"]);
    let (result, _) = result_of(&["--rate", "1000", "--connections", "4", "--duration", "6s", &server.url()]);
    // At least one whole stall lies in the window, whenever the generator began. A twentieth of the requests
    // are due in it, evenly spaced: the slowest hundredth waited for more than 4/5 of it. On a busy machine
    // they waited for longer, but not for less.
    let least_us = 0.95 * 0.8 * 300_000.0;
    let measured_us = result.response_time_us.p99.unwrap();
    assert!(measured_us >= least_us, "p99 {measured_us} µs, by arithmetic {least_us} µs at least");
    assert!(result.service_time_us.p99.unwrap() < 0.5 * measured_us, "{result:?}");
    // If the machine kept the generator itself from running for as long, the verdict says so.
    let Verdict { notes, reasons, .. } = &result.verdict;
    let said = |start: &str| notes.iter().chain(reasons).any(|text| text.starts_with(start));
    assert!(said("service-time-hides") || said("schedule-lag"), "{:?}", result.verdict);
}

#[test]
fn waits_caused_by_stopped_generator_are_not_attributed_to_server() {
    assert_stop_is_the_generators(1);
}

#[test]
fn waits_caused_by_stopped_generator_are_not_attributed_to_any_of_several_servers() {
    assert_stop_is_the_generators(2);
}

#[test]
fn requests_due_while_the_generator_was_stopped_until_the_end_are_not_the_servers() {
    let server = Serving::start(&[]);
    let mut child = start(
        meshmeter()
            .args(["load", "--progress", "plain", "--rate", "200", "--duration", "4s", "--json", "-"])
            .arg(server.url()),
    );
    let mut lines = said(&mut child);
    await_first_second(&mut lines, 4);
    let process = Pid::from_child(&child);
    kill_process(process, Signal::STOP).unwrap();
    // Not waiting for anything: the window ends meanwhile.
    std::thread::sleep(Duration::from_secs(4));
    kill_process(process, Signal::CONT).unwrap();
    let result: LoadResult = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
    assert!(result.requests.unsent > 0, "{:?}", result.requests);
    let reasons = &result.verdict.reasons;
    let is_named = reasons.iter().any(|reason| reason.starts_with("schedule-lag: the generator did not run"));
    assert!(is_named && !result.verdict.saturated, "{:?}", result.verdict);
}

/// Stops a generator that loads this many servers, and asserts that the requests which wait meanwhile wait for the generator.
fn assert_stop_is_the_generators(count: usize) {
    let servers: Vec<Serving> = (0..count).map(|_| Serving::start(&["--delay", "1ms"])).collect();
    let requests = || servers.iter().map(Serving::requests).sum::<u64>();
    let urls = servers.iter().map(Serving::url);
    let mut child = start(minute_of_load().args(["--connections", "4"]).args(urls));
    let mut lines = said(&mut child);
    await_first_second(&mut lines, 60);
    let process = Pid::from_child(&child);
    kill_process(process, Signal::STOP).unwrap();
    let before = requests();
    // Not waiting for anything: this is how long the generator is stopped.
    std::thread::sleep(Duration::from_secs(2));
    kill_process(process, Signal::CONT).unwrap();
    let give_up = Instant::now() + Duration::from_secs(30);
    while requests() < before + 450 {
        assert!(Instant::now() < give_up, "the generator goes on");
        std::thread::sleep(Duration::from_millis(10));
    }
    kill_process(process, Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let result: LoadResult = serde_json::from_slice(&output.stdout).unwrap();
    // 400 of some 700 requests were due in the meantime, and had to wait for a connection afterwards. On a
    // busy machine they also wait for the server, for some hundred milliseconds, which is negligible in
    // comparison.
    let (own, all) = (result.generator_lag_us.p99.unwrap(), result.schedule_lag_us.p99.unwrap());
    assert!(all > 1_000_000.0, "{all}");
    assert!(own > 0.7 * all && own <= all, "own p99 {own} of {all}");
    assert!(
        result.verdict.reasons.iter().any(|reason| reason.starts_with("schedule-lag")),
        "{:?}",
        result.verdict
    );
    assert!(!result.verdict.is_usable(Figure::P99), "{:?}", result.verdict);
    assert!(
        !result.verdict.notes.iter().any(|note| note.starts_with("service-time-hides")),
        "{:?}",
        result.verdict
    );
}

#[test]
fn saturation_is_reported_and_fails_the_measurement() {
    let server = Serving::start(&["--delay", "20ms"]);
    let output = run(&[
        "load",
        "--progress",
        "off",
        "--rate",
        "2000",
        "--connections",
        "4",
        "--duration",
        "1s",
        &server.url(),
    ]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).starts_with("SATURATED"), "{}", stdout(&output));
}

#[test]
fn server_errors_are_counted_by_status() {
    let server = Serving::start(&["--error-rate", "50%"]);
    let (result, status) = result_of(&["--rate", "200", "--duration", "1s", &server.url()]);
    assert_eq!(status, Some(1));
    let requests = &result.requests;
    assert_eq!(requests.status["200"] + requests.status["500"], requests.completed);
    assert_eq!(requests.completed + requests.unsent, 200, "{requests:?}");
}

#[test]
fn refused_connection_is_a_one_line_error_with_hint() {
    let url = format!("http://{NOBODY}/");
    let output = run(&["load", "--progress", "off", "--rate", "100", "--duration", "20s", &url]);
    assert_eq!(output.status.code(), Some(3));
    let expected = format!(
        "error: connect to {NOBODY}: connection refused: nothing listens there\nhint: is the server running, and is the port \
         right?\n"
    );
    assert_eq!(stderr(&output), expected);
}

#[test]
fn load_without_rate_is_a_closed_loop_that_names_an_open_one() {
    let server = Serving::start(&[]);
    // As users type it, without a scheme.
    let address = server.url().trim_start_matches("http://").trim_end_matches('/').to_owned();
    let (result, _) = result_of(&["--duration", "200ms", &address]);
    assert_eq!((result.clients, result.connections), (Some(16), 16));
    assert_eq!(result.urls, [format!("http://{address}")]);
    let notes = &result.verdict.notes;
    let note = notes.iter().find(|note| note.starts_with("closed-loop: ")).expect("it says what it measured");
    assert!(note.contains("of 16 clients") && note.contains("the same command with `--rate "), "{note}");
    let (result, _) = result_of(&["--requests", "40", "--connections", "2", &address]);
    assert_eq!((result.clients, result.requests.sent), (Some(2), 40));
    let (result, _) = result_of(&["--clients", "2", "--duration", "200ms", &address]);
    assert!(!result.verdict.notes.iter().any(|note| note.starts_with("closed-loop: ")));
}

/// Secrets reach the server; the only place that has them is the request.
#[test]
fn credentials_of_url_and_file_are_sent_and_nowhere_shown() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("headers");
    fs::write(&file, "X-Api-Key: s3cret\r\n\nX-Tenant: @shop\n").unwrap();
    let (url, headers) = (format!("tom:s3cret@{address}/"), format!("@{}", file.display()));
    let serving = std::thread::spawn(move || {
        let (mut client, _) = server.accept().unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            client.read_exact(&mut byte).unwrap();
            request.push(byte[0]);
        }
        client.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
        String::from_utf8(request).unwrap().to_ascii_lowercase()
    });
    let output =
        run(&["load", "--clients", "1", "--requests", "1", "--json", "-", "--header", &headers, &url]);
    let request = serving.join().unwrap();
    // tom:s3cret
    for line in ["authorization: basic dg9tonmzy3jlda==", "x-api-key: s3cret", "x-tenant: @shop"] {
        assert!(request.contains(&format!("\r\n{line}\r\n")), "{request}");
    }
    let shown = stdout(&output) + &stderr(&output);
    assert!(shown.contains(&format!("http://{address}/")) && !shown.contains("s3cret"), "{shown}");
}

#[test]
fn errors_show_no_password() {
    for arguments in [
        &["load", "--rate", "1", "ftp://tom:s3cret@127.0.0.1/"][..],
        &["load", "--rate", "1", "http://tom:s3cret@127.0.0.1:0/"],
        &["load", "--rate", "1", "http://tom:s3/cret@127.0.0.1:0/"],
        &["load", "--rate", "1", "http://tom:s3cret@127.0.0.1/{1..x}"],
        &["load", "--rate", "1", "tcp://tom:s3cret@127.0.0.1:9"],
        &["load", "--rate", "1", "--remote-write", "ftp://tom:s3cret@127.0.0.1/", "http://127.0.0.1/"],
        &["load", "--rate", "1", "--remote-write", "tom:s3cret@127.0.0.1", "http://127.0.0.1/"],
        &[
            "load",
            "--rate",
            "1",
            "--otlp",
            "http://127.0.0.1",
            "--otlp-header",
            "Authorization s3cret",
            "http://127.0.0.1/",
        ],
        &["load", "--rate", "1", "--header", "Authorization s3cret", "http://127.0.0.1/"],
        &["cluster", "rbac", "--prometheus", "http://tom:s3cret@127.0.0.1:9090"],
        &[
            "fleet",
            "--istiod",
            "127.0.0.1:1",
            "--istiod-metrics",
            "http://tom:s3cret@127.0.0.1:15014/metrics",
        ],
        &["lab", "install", "--istio", "1.30.4", "--registry", "https://tom:s3cret@127.0.0.1:1/istio"],
    ] {
        let output = run(arguments);
        assert_ne!(output.status.code(), Some(0), "{arguments:?}");
        let shown = stdout(&output) + &stderr(&output);
        assert!(shown.contains("error") && !shown.contains("cret"), "{arguments:?}: {shown}");
    }
}

#[test]
fn result_names_the_build_of_the_program() {
    let server = Serving::start(&[]);
    let (result, _) = result_of(&["--requests", "1", &server.url()]);
    let build = result.build.expect("this version writes it");
    assert_eq!(build.version, result.version);
    assert_eq!(build.commit.is_some(), build.modified.is_some(), "{build:?}");
    let line = stdout(&run(&["--version"]));
    assert_eq!(line, format!("meshmeter {}\n", build.describe()), "the result names the same build");
}

#[test]
fn usage_errors_say_what_was_expected() {
    for (arguments, expected) in [
        (&["--rate", "100", "ftp://127.0.0.1/"][..], "scheme `ftp`"),
        (&["--share", "1/2", "http://127.0.0.1/"], "--share needs a load to share"),
        (&["--rate", "-5", "http://127.0.0.1/"], "--rate"),
        (&["--rate", "100", "--duration", "10", "http://127.0.0.1/"], "a unit is missing"),
        (&["--rate", "100", "--clients", "5", "http://127.0.0.1/"], "cannot be used with"),
        (&["--stages", "100", "http://127.0.0.1/"], "500:30s"),
        (&["--rate", "1", "--header", "nonsense", "http://127.0.0.1/"], "Accept: text/plain"),
        (&["--rate", "1", "--header", "@/does/not/exist", "http://127.0.0.1/"], "read /does/not/exist"),
        (&["--rate", "1", "--body", "@/does/not/exist", "http://127.0.0.1/"], "/does/not/exist"),
        (&["--rate", "1", "--json", "/does/not/exist.json", "http://127.0.0.1/"], "no folder `/does/not`"),
        (&["--stages", "0:1s", "http://127.0.0.1/"], "every stage has the rate 0"),
        (&["--rate", "1", "--http", "4", "http://127.0.0.1/"], "1.1"),
        (&["--rate", "1", "--http", "3", "http://127.0.0.1/"], "is for https:// URLs"),
        (&["--rate", "1"], "URL"),
        (&["--rate", "1", "--lag-tolerance", "1ms", "http://127.0.0.1/"], "add --pacing economical"),
        (&["--rate", "1", "--lag-tolerance", "1s", "http://127.0.0.1/"], "at most 10ms"),
    ] {
        let output = run(&[&["load"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{arguments:?}: {}", stderr(&output));
        assert!(!stderr(&output).contains("panicked"), "{arguments:?}");
    }
}

#[test]
fn result_that_cannot_be_written_is_still_printed() {
    let server = Serving::start(&[]);
    let output = run(&[
        "load",
        "--progress",
        "off",
        "--rate",
        "100",
        "--duration",
        "200ms",
        "--json",
        "/dev/full",
        &server.url(),
    ]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stdout(&output).contains("response time"), "{}", stdout(&output));
    assert!(stderr(&output).contains("/dev/full"), "{}", stderr(&output));
}

#[test]
fn result_that_cannot_be_printed_is_still_written() {
    let server = Serving::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("result.json");
    let status = meshmeter()
        .args(["load", "--progress", "off", "--rate", "100", "--duration", "200ms", "--json"])
        .arg(&file)
        .arg(server.url())
        .stdout(std::fs::File::options().write(true).open("/dev/full").unwrap())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(3));
    let result: LoadResult = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(result.requests.completed + result.requests.unsent, 20);
}

#[test]
fn a_pause_between_stages_sends_nothing() {
    let server = Serving::start(&[]);
    let (result, _) = result_of(&["--stages", "100:1s,0:1s,200:1s", &server.url()]);
    let requests = &result.requests;
    assert_eq!((requests.scheduled, requests.failed), (300, 0), "{requests:?}");
    assert_eq!(requests.completed, 300 - requests.unsent, "{requests:?}");
    assert_eq!(server.requests(), requests.completed);
    // A machine that stalled sends later, never earlier.
    for (seconds, at_most) in [(1.0, 100), (2.0, 100), (3.0, 300)] {
        let until = result.series.iter().filter(|point| point.t_s < seconds);
        let sent: u64 = until.map(|point| point.sent).sum();
        assert!((1..=at_most).contains(&sent), "{sent} in the first {seconds} s, of {at_most}");
    }
}

#[test]
fn a_soft_limit_on_open_files_is_raised() {
    let server = Serving::start(&[]);
    let command = format!(
        "ulimit -Sn 64; exec {} load --progress off --json - --rate 100 --duration 200ms --connections 200 {}",
        env!("CARGO_BIN_EXE_meshmeter"),
        server.url()
    );
    let output = std::process::Command::new("sh").args(["-c", &command]).output().unwrap();
    let result: LoadResult = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result.connect_time_us.count, 200, "{:?}", result.requests.errors);
}

/// `nohup` starts a program with this signal ignored.
#[test]
fn a_hangup_that_is_ignored_at_the_start_ends_no_run() {
    let server = Serving::start(&[]);
    let mut load = minute_of_load();
    load.arg(server.url());
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' HUP; exec \"$@\"", "sh"]).arg(load.get_program()).args(load.get_args());
    let mut child = start(&mut shell);
    let mut lines = said(&mut child);
    await_first_second(&mut lines, 60);
    kill_process(Pid::from_child(&child), Signal::HUP).unwrap();
    assert!(lines.any(|line| line.trim_start().starts_with("3/60 s")), "it goes on");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let result: LoadResult = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
    assert!(result.duration_s >= 3.0, "{}", result.duration_s);
}

#[test]
fn an_interrupt_ends_the_run_with_the_results_so_far() {
    let server = Serving::start(&[]);
    let mut child = start(minute_of_load().arg(server.url()));
    let mut lines = said(&mut child);
    await_first_second(&mut lines, 60);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let result: LoadResult = serde_json::from_slice(&output.stdout).unwrap();
    assert!((1.0..30.0).contains(&result.duration_s), "{}", result.duration_s);
    assert!(result.requests.scheduled >= 200 && result.requests.completed > 0, "{:?}", result.requests);
    assert!(result.verdict.notes.iter().any(|note| note.starts_with("interrupted")), "{:?}", result.verdict);
}
