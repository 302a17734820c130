//! Schedule options of `meshmeter load`.

mod command;

use command::{NOBODY, Serving, meshmeter, run, said, start, stderr, stdout};
use jiff::Timestamp;
use results::{Arrivals, ClientStage, KindResult, LoadResult, RecordingFormat};
use std::io::Write as _;
use std::process::{Child, Stdio};
use std::time::Duration;
use tempfile::TempDir;

fn result_of(arguments: &[&str]) -> LoadResult {
    let output = run(&[&["load", "--progress", "off", "--json", "-"], arguments].concat());
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", stdout(&output), stderr(&output)))
}

#[test]
fn a_ramp_between_stages() {
    let server = Serving::start(&[]);
    let result = result_of(&["--stages", "0..400:1s,400:500ms,0:200ms,100..0:1s", &server.url()]);
    assert_eq!(result.requests.scheduled, 200 + 200 + 50);
    assert_eq!(server.requests(), result.requests.sent);
    assert!((result.duration_s - 2.7).abs() < 1e-6, "{}", result.duration_s);
}

#[test]
fn number_of_requests_ends_open_and_closed_loops() {
    let server = Serving::start(&["--delay", "1ms"]);
    let open = result_of(&["--rate", "500", "--requests", "101", &server.url()]);
    assert_eq!(open.requests.scheduled, 101);
    assert!((open.duration_s - 0.202).abs() < 1e-6, "{}", open.duration_s);
    let poisson = ["--rate", "500", "--arrival", "poisson", "--requests", "101", "--warmup", "100ms"];
    let poisson = result_of(&[&poisson[..], &[&server.url()]].concat());
    assert_eq!(poisson.requests.scheduled, 101);
    assert_eq!(poisson.arrivals, Some(Arrivals::Poisson));
    let bursts = ["--arrival", "bursts:factor=9,length=20ms", "--rate", "500", "--requests", "101"];
    let bursts =
        result_of(&[&bursts[..], &["--warmup", "100ms", "--duration", "1m", &server.url()]].concat());
    assert_eq!(bursts.requests.scheduled, 101);
    let Some(Arrivals::Bursts(of)) = bursts.arrivals else { panic!("{:?}", bursts.arrivals) };
    assert_eq!((of.factor, of.share, of.length_s), (9.0, 0.1, 0.02));
    let closed = result_of(&["--clients", "4", "--requests", "101", &server.url()]);
    assert_eq!(closed.requests.sent, 101);
    assert!(closed.duration_s >= 0.02, "{}", closed.duration_s);
}

#[test]
fn unlimited_rate_is_a_closed_loop_with_a_client_per_connection() {
    let server = Serving::start(&["--delay", "5ms"]);
    let result = result_of(&["--rate", "unlimited", "--connections", "3", "--duration", "3s", &server.url()]);
    assert_eq!((result.clients, result.rate.offered), (Some(3), None));
    assert!(result.requests.completed >= 3, "{:?}", result.requests);
}

/// A recording in a folder of its own.
fn recording(content: &str) -> (TempDir, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("recording");
    std::fs::write(&file, content).expect("written");
    let name = file.to_str().expect("UTF-8").to_owned();
    (folder, name)
}

#[test]
fn instants_of_a_file_are_the_schedule() {
    let server = Serving::start(&[]);
    let (_folder, file) = recording("0\n0.1\n1.2\nnever\n0.6\n2\n");
    let replay = ["--replay", &file, "--speed", "4", &server.url()];
    let result = result_of(&replay);
    assert_eq!((result.requests.scheduled, result.clients), (5, None));
    assert!((result.duration_s - 0.625).abs() < 1e-6, "{}", result.duration_s);
    assert_eq!(result.rate.offered, Some(5.0 / 0.625));
    assert_eq!(server.requests(), result.requests.sent);
    let Some(Arrivals::Replay(of)) = result.arrivals else { panic!("{:?}", result.arrivals) };
    assert_eq!((of.format, of.requests, of.speed), (RecordingFormat::Instants, 5, 4.0));
    let notes = result.verdict.notes.join("\n");
    assert!(
        notes.contains("replay: 1 line of ") && notes.contains("left out; the first is line 4"),
        "{notes}"
    );
    assert!(notes.contains("replay: 1 line was before an earlier one"), "{notes}");
    // The first part is the warm-up, and the last one is cut.
    let part = result_of(&[&["--warmup", "100ms", "--duration", "300ms"][..], &replay].concat());
    assert_eq!(part.requests.scheduled, 2);
    assert!(part.warmup.sent <= 2, "{:?}", part.warmup);
    let shares = ["1/2", "2/2"].map(|share| result_of(&[&["--share", share][..], &replay].concat()));
    assert_eq!(shares.map(|result| result.requests.scheduled), [3, 2]);
}

#[test]
fn requests_of_a_log_are_sent_and_their_queries_not_shown() {
    let server = Serving::start(&[]);
    let line = |at: &str, method: &str, path: &str| {
        format!(
            "10.0.0.1 - - [10/Oct/2023:13:55:{at} -0700] \"{method} {path} HTTP/1.1\" 200 5 \"-\" \"curl\"\n"
        )
    };
    let lines = [
        line("36", "GET", "/?bytes=10&token=s3cret"),
        line("36", "POST", "/"),
        line("37", "GET", "/?bytes=20&token=s3cret"),
    ];
    let (_folder, file) = recording(&lines.concat());
    let output =
        run(&["load", "--progress", "off", "--json", "-", "--replay", &file, "--speed", "2", &server.url()]);
    assert!(!stdout(&output).contains("s3cret"), "{}", stdout(&output));
    let result: LoadResult = serde_json::from_slice(&output.stdout).expect("a result");
    assert_eq!(result.requests.scheduled, 3);
    assert!((result.duration_s - 1.0).abs() < 1e-6, "{}", result.duration_s);
    // A machine that stalls leaves some unsent.
    let of_kind = |kind: &KindResult| kind.requests.sent + kind.requests.unsent;
    let kinds: Vec<(&str, u64)> =
        result.kinds.iter().map(|kind| (kind.name.as_str(), of_kind(kind))).collect();
    assert_eq!(kinds, [("GET", 2), ("POST", 1)]);
    let notes = result.verdict.notes.join("\n");
    assert!(notes.contains("times in whole seconds"), "{notes}");
    assert!(notes.contains("1 request of the recording had a method with a body"), "{notes}");
}

#[test]
fn recordings_that_cannot_be_replayed_are_usage_errors() {
    let url = "http://127.0.0.1:1/";
    let log = "[2024-01-01T00:00:00Z] \"GET / HTTP/1.1\" 200\n";
    for (content, arguments, expected) in [
        ("", &[url][..], "it has no requests"),
        ("1\nwords\nmore\n", &[url], "the first of them is line 2, and only 1 are instants"),
        ("\u{0}\u{1}", &[url], "no line is understood, the first of them is line 1"),
        (
            "0\n259200\n",
            &[url],
            "takes 72h, and one run takes 24h at most; after its first 1 request there is none for 72h",
        ),
        ("0\n259200\n", &[url], "--speed 73 replays it within an hour"),
        ("0\n1\n", &["--warmup", "1m", url], "no request is due in the window"),
        ("0\n1\n", &["--rate", "1", url], "cannot be used with"),
        ("0\n1\n", &["--arrival", "poisson", url], "a recording has its own arrivals"),
        ("0\n1\n", &["--speed", "0", url], "from 0.001 to 1000000"),
        (log, &["-X", "POST", url], "--method: the recording has the methods"),
        (log, &[url, url], "goes to one URL"),
        (log, &["http://127.0.0.1:1/{1..2}"], "has ranges of numbers"),
        (log, &["tcp://127.0.0.1:1"], "replayed over HTTP"),
    ] {
        let (_folder, file) = recording(content);
        let output = run(&[&["load", "--replay", &file], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{content:?} {arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{content:?} {arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn profile_of_a_day_is_compressed() {
    let server = Serving::start(&[]);
    let (_folder, file) = recording("time,rate\n00:00,100\n06:00,300\n18:00,300\n");
    let profile = ["--profile", &file, "--duration", "1s", &server.url()];
    let result = result_of(&profile);
    assert_eq!((result.requests.scheduled, result.rate.offered), (250, Some(250.0)));
    assert_eq!(server.requests(), result.requests.sent);
    let steps = result_of(&[&["--profile-steps", "--profile-scale", "0.5"][..], &profile].concat());
    assert_eq!(steps.requests.scheduled, 125);
}

#[test]
fn clients_of_a_closed_loop_grow_over_the_window() {
    let server = Serving::start(&["--delay", "1ms"]);
    let result = result_of(&["--clients", "1..9", "--duration", "400ms", &server.url()]);
    assert_eq!((result.clients, result.connections, result.rate.offered), (Some(9), 9, None));
    let stage = |from, to, duration_s| ClientStage { from, to, duration_s };
    assert_eq!(result.client_stages, [stage(1, 9, 0.4)]);
    assert_eq!(result.requests.scheduled, result.requests.completed + result.requests.unsent);
    let stages =
        ["--clients", "2:100ms,2..0:200ms", "--warmup", "50ms", "--think-time", "5ms", &server.url()];
    let result = result_of(&stages);
    assert_eq!(result.client_stages, [stage(2, 2, 0.1), stage(2, 0, 0.2)]);
    assert!((result.duration_s - 0.3).abs() < 1e-6, "{}", result.duration_s);
}

#[test]
fn several_generators_begin_to_measure_at_the_same_instant() {
    let server = Serving::start(&[]);
    // Enough time to start two programs, even on a machine that stalls for seconds.
    let start = (Timestamp::now() + Duration::from_secs(6)).to_string();
    let url = server.url();
    let arguments = ["--rate", "100", "--duration", "200ms", "--warmup", "100ms", "--start-at", &start, &url];
    let started = std::thread::scope(|scope| {
        let generators = [0, 1].map(|_| scope.spawn(|| result_of(&arguments).started_at));
        generators.map(|generator| generator.join().expect("it ends").parse::<Timestamp>().expect("RFC 3339"))
    });
    let wanted: Timestamp = start.parse().unwrap();
    for started in started {
        let away = started.duration_since(wanted).unsigned_abs();
        assert!(away < Duration::from_millis(2), "{away:?} away");
    }
}

/// A generator that waits for its start time.
fn start_held(share: &str, url: &str) -> Child {
    let options = ["load", "--rate", "101", "--duration", "1s", "--connections", "5", "--threads", "1"];
    let options = [&options[..], &["--start-at", "-", "--progress", "json", "--json", "-", "--share", share]];
    start(meshmeter().args(options.concat()).arg(url).stdin(Stdio::piped()))
}

#[test]
fn generators_connect_first_and_start_on_signal() {
    let server = Serving::start(&[]);
    let mut generators = ["1/2", "2/2"].map(|share| start_held(share, &server.url()));
    for generator in &mut generators {
        assert!(said(generator).any(|line| line.contains("\"ready\"")), "its connections are open");
    }
    assert_eq!(server.requests(), 0);
    let start = Timestamp::now() + Duration::from_secs(1);
    for generator in &mut generators {
        writeln!(generator.stdin.take().expect("piped"), "{start}").expect("it listens");
    }
    let results = generators.map(|generator| {
        let output = generator.wait_with_output().expect("it ends");
        serde_json::from_slice::<LoadResult>(&output.stdout).expect("a result")
    });
    assert_eq!(results.each_ref().map(|result| result.requests.scheduled), [51, 50]);
    assert_eq!(results.each_ref().map(|result| result.connections), [3, 2]);
    assert_eq!(server.requests(), results.iter().map(|result| result.requests.sent).sum::<u64>());
    for result in results {
        let away = result.started_at.parse::<Timestamp>().expect("RFC 3339").duration_since(start);
        assert!(away.unsigned_abs() < Duration::from_millis(2), "{away:?} away");
        assert!(result.start_delay_us.is_some());
    }
}

#[test]
fn generator_without_start_time_sends_nothing() {
    let server = Serving::start(&[]);
    for (line, expected) in [("", "ended without an instant"), ("noon\n", "`noon` on standard input")] {
        let mut generator = start_held("1/2", &server.url());
        generator.stdin.take().expect("piped").write_all(line.as_bytes()).expect("it listens");
        let output = generator.wait_with_output().expect("it ends");
        assert!(!output.status.success() && stderr(&output).contains(expected), "{}", stderr(&output));
    }
    assert_eq!(server.requests(), 0);
}

#[test]
fn result_has_lag_tolerance() {
    let server = Serving::start(&[]);
    let tolerated = |options: &[&str]| {
        let url = server.url();
        let result = result_of(&[&["--rate", "200", "--duration", "200ms"], options, &[&url]].concat());
        result.generator.pacing.expect("it says how it waited").lag_tolerance_us
    };
    assert_eq!(tolerated(&[]), None);
    assert_eq!(tolerated(&["--pacing", "economical"]), Some(100.0));
    assert_eq!(tolerated(&["--pacing", "economical", "--lag-tolerance", "400us"]), Some(400.0));
}

/// A file that plans a window has trials whose generators accept it.
#[test]
fn a_window_has_the_same_limit_in_files_and_options() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (duration, is_allowed) in [("2h", true), ("24h", true), ("25h", false)] {
        let file = folder.path().join("experiment.yaml");
        let text = format!("{{name: t, modes: [none], load: {{rate: 1, duration: {duration}}}, repeats: 1}}");
        std::fs::write(&file, text).expect("written");
        let planned = run(&["run", "--dry-run", file.to_str().expect("UTF-8")]);
        assert_eq!(planned.status.success(), is_allowed, "{duration}: {}", stderr(&planned));
        // Nothing listens there: only an option that is not valid ends earlier.
        let loaded = run(&["load", "--rate", "1", "--duration", duration, &format!("http://{NOBODY}/")]);
        assert_eq!(loaded.status.code() != Some(2), is_allowed, "{duration}: {}", stderr(&loaded));
        for refused in [planned, loaded].iter().filter(|_| !is_allowed) {
            assert!(stderr(refused).contains("at most 24h"), "{}", stderr(refused));
        }
    }
}

#[test]
fn usage_errors_of_schedules_say_what_was_expected() {
    let url = "http://127.0.0.1:1/";
    for (arguments, expected) in [
        (&["--stages", "100->200:1s", url][..], "is not a rate"),
        (&["--stages", "100..:1s", url], "is not a rate"),
        (&["--stages", "0..0:1s", url], "every stage has the rate 0"),
        (&["--stages", "100:1s", "--requests", "101", url], "only 100 of 101"),
        (&["--rate", "0", url], "is not a rate"),
        (&["--rate", "100", "--arrival", "bursts:factor=1", url], "a factor above 1"),
        (&["--rate", "100", "--arrival", "bursts:length=1us", url], "at most 50000 bursts"),
        (
            &["--clients", "2", "--arrival", "bursts", url],
            "in a closed loop responses bring the next requests",
        ),
        (&["--arrival", "poisson", url], "in a closed loop responses bring the next requests"),
        (&["--rate", "100", "--arrival", "burst", url], "possible values: uniform, poisson, bursts"),
        (&["--search", "--objective", "p99=5ms", "--arrival", "bursts", url], "a probe has few bursts"),
        (&["--rate", "100", "--think-time", "10ms", url], "cannot be used with"),
        (&["--clients", "1", "--think-time", "gauss:10ms", url], "exp:10ms"),
        (&["--profile", "/nowhere/day.csv", url], "the profile `/nowhere/day.csv`: No such file"),
        (&["--rate", "1", "--profile-scale", "2", url], "are for --profile"),
        (&["--rate", "1", "--speed", "2", url], "--speed is for --replay"),
        (&["--clients", "0", url], "at least a client"),
        (&["--clients", "1..9:1m", "--duration", "1m", url], "stages of clients have their own durations"),
        (&["--clients", "1..9", "--requests", "9", url], "needs a time to change over"),
        (&["--clients", "1..9", "--connections", "9", "--share", "1/10", url], "cannot be divided"),
        (&["--rate", "100", "--start-at", "noon", url], "+5s"),
        (&["--rate", "100", "--start-at", "2020-01-01T00:00:00Z", url], "is past"),
        (&["--rate", "100", "--start-at", "+1s", "--warmup", "2s", url], "warm-up"),
        (&["--rate", "100", "--requests", "0", url], "--requests"),
        (&["--rate", "100", "--share", "3/2", url], "such as 3/18"),
        (&["--clients", "2", "--connections", "9", "--share", "1/3", url], "2 clients cannot be divided"),
        (&["--rate", "100", "--connections", "2", "--share", "1/3", url], "2 connections cannot be divided"),
    ] {
        let output = run(&[&["load"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{arguments:?}: {}", stderr(&output));
    }
}
