//! `meshmeter load --objective`: outcome and exit status.

mod command;

use command::{Serving, await_first_second, minute_of_load, run, said, start, stderr, stdout};
use results::{LoadResult, SearchResult};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};

#[test]
fn an_objective_decides_the_exit_status_and_is_in_the_result() {
    let server = Serving::start(&["--delay", "5ms"]);
    let url = server.url();
    for (objective, load, met) in [
        // Even a machine that is busy or stalls for seconds keeps these bounds, and sends all requests.
        ("p50=3s,errors=0", &["--clients", "2", "--requests", "100"][..], true),
        ("p50=1ms,p90=3s", &["--rate", "500", "--duration", "1s"], false),
        ("rate=5000", &["--rate", "500", "--duration", "1s"], false),
    ] {
        let arguments = [load, &["--objective", objective, "--json", "-", &url]].concat();
        let output = run(&[&["load", "--progress", "off"], &arguments[..]].concat());
        let result: LoadResult = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}{}", stdout(&output), stderr(&output)));
        let judged = result.objective.expect("an objective was given");
        assert_eq!(judged.met, met, "{judged:?}");
        assert_eq!(judged.bounds.len(), objective.split(',').count());
        // A busy machine may make the result invalid, which is also status 1.
        assert_eq!(output.status.code(), Some(i32::from(!(met && result.verdict.valid))), "{judged:?}");
    }
}

#[test]
fn a_run_that_is_cut_short_meets_no_objective() {
    let server = Serving::start(&[]);
    let url = server.url();
    for warmup in ["0s", "60s"] {
        let objective = ["--warmup", warmup, "--objective", "p50=3s,errors=1%"];
        let mut child = start(minute_of_load().args(objective).arg(&url));
        let mut lines = said(&mut child);
        if warmup == "0s" {
            await_first_second(&mut lines, 60);
        } else {
            assert!(lines.any(|line| line.contains("warming up")), "it says so");
        }
        kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
        let output = child.wait_with_output().expect("it ends");
        let result: LoadResult = serde_json::from_slice(&output.stdout).expect("a result");
        let judged = result.objective.expect("an objective was given");
        assert!(!judged.met && !output.status.success(), "{warmup}: {:?}, {judged:?}", output.status);
        assert!(judged.notes.iter().any(|note| note.starts_with("cut short after ")), "{judged:?}");
    }
}

#[test]
fn undecidable_objectives_are_rejected() {
    let url = "http://127.0.0.1:1/";
    for (arguments, expected) in [
        (&["--rate", "100", "--duration", "1s", "--objective", "p99=5ms"][..], "it takes 10s"),
        (&["--rate", "100", "--objective", "p99=11s"], "--timeout"),
        (&["--clients", "1", "--objective", "achieved=99%"], "closed loop"),
        (&["--rate", "100", "--objective", "p98=1ms"], "p98"),
        (&["--rate", "100", "--objective", "p50=5ms,p99=1ms"], "never smaller"),
    ] {
        let output = run(&[&["load"], arguments, &[url]].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{arguments:?}: {}", stderr(&output));
    }
}

/// A server that redirects every request to a login, on its own address; it ends with the test.
fn redirecting() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/", listener.local_addr().expect("bound"));
    let redirect = |stream: TcpStream| -> std::io::Result<()> {
        let mut answers = stream.try_clone()?;
        for line in BufReader::new(stream).lines() {
            if line?.is_empty() {
                answers.write_all(b"HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n")?;
            }
        }
        Ok(())
    };
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            // A client that is gone has all that it wanted.
            std::thread::spawn(move || drop(redirect(stream)));
        }
    });
    url
}

#[test]
fn redirects_miss_an_objective_of_errors_if_they_are_not_expected() {
    let url = redirecting();
    let load = |options: &[&str]| {
        let common = ["load", "--progress", "off", "--objective", "errors=0%", "--json", "-", &url];
        run(&[&common[..], options].concat())
    };
    let measured = |expected: &[&str]| {
        let output = load(&[&["--clients", "2", "--requests", "50"], expected].concat());
        let result: LoadResult = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}{}", stdout(&output), stderr(&output)));
        (result, output.status.code())
    };
    for expected in [&[][..], &["--expect-status", "200,302"]] {
        let (result, _) = measured(expected);
        assert!(result.objective.as_ref().is_some_and(|objective| objective.met), "{result:?}");
        assert_eq!(
            result.verdict.notes.iter().any(|note| note.starts_with("redirects: ")),
            expected.is_empty()
        );
    }
    let (result, status) = measured(&["--expect-status", "2xx"]);
    assert_eq!((result.objective.map(|objective| objective.met), status), (Some(false), Some(1)));
    assert_eq!(result.requests.unexpected_status, Some(result.requests.status));
    assert!(
        result.verdict.reasons.iter().any(|reason| reason.starts_with("errors: 100.00 %")),
        "{:?}",
        result.verdict
    );

    let search = ["--search", "--search-max", "400", "--duration", "200ms", "--warmup", "100ms"];
    let output = load(&[&search[..], &["--expect-status", "2xx"]].concat());
    let found: SearchResult = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", stdout(&output), stderr(&output)));
    assert!(found.found.is_none(), "{:?}", found.found);
}

#[test]
fn expected_statuses_are_of_http_alone() {
    for (arguments, expected) in [
        (
            &["--expect-status", "1xx", "http://127.0.0.1:1/"][..],
            "a status such as 200, or a class such as 2xx",
        ),
        (
            &["--expect-status", "200", "grpc://127.0.0.1:1/"],
            "--expect-status is for http:// and https:// URLs",
        ),
        (
            &["--expect-status", "200", "tcp://127.0.0.1:1"],
            "--expect-status is for http:// and https:// URLs",
        ),
    ] {
        let output = run(&[&["load"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{arguments:?}: {}", stderr(&output));
    }
}
