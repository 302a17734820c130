//! Several URLs of `meshmeter load`.

mod command;

use command::{NOBODY, Serving, capturing, run, stderr};
use results::LoadResult;
use std::collections::BTreeSet;

fn result_of(arguments: &[&str]) -> LoadResult {
    let output = run(&[&["load", "--progress", "off", "--json", "-"], arguments].concat());
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)))
}

#[test]
fn url_with_tcp_in_query_sends_no_raw_message() {
    let server = Serving::start(&[]);
    let bytes_of = |query: &str| {
        let url = format!("{}?u={query}", server.url());
        result_of(&["--clients", "1", "--requests", "10", &url]).bytes.sent
    };
    assert_eq!(bytes_of("tcp://x"), bytes_of("abc://x"));
}

/// No other text of a result is like it: encoded histograms have no hyphens.
const PASSWORD: &str = "pass-word";

/// Answers the requests of one connection and returns them.
fn captured(arguments: &[&str], credentials: &str) -> Vec<String> {
    let (address, requests) = capturing();
    let url = format!("http://{credentials}{address}/");
    let result = result_of(&[&["--clients", "1", "--requests", "20"], arguments, &[&url]].concat());
    assert_eq!((result.requests.completed, result.requests.failed), (20, 0), "{:?}", result.requests);
    assert!(!format!("{result:?}").contains(PASSWORD), "{result:?}");
    requests.join().unwrap()
}

#[test]
fn headers_keep_their_case_and_ranges_are_drawn_per_request() {
    let options = ["-X", "POST", "-H", "X-User: u{1..1000}", "--body", "{\"id\": {1..1000}}"];
    let requests = captured(&options, &format!("user:{PASSWORD}@"));
    let all = |text: fn(&str) -> &str| requests.iter().map(|request| text(request)).collect::<BTreeSet<_>>();
    let users = all(|request| request.lines().find(|line| line.starts_with("X-User: u")).unwrap());
    let bodies = all(|request| request.rsplit("\r\n\r\n").next().unwrap());
    assert!(users.len() > 10 && bodies.len() > 10, "{requests:?}");
    assert!(bodies.iter().all(|body| serde_json::from_str::<serde_json::Value>(body).is_ok()), "{bodies:?}");
    // user:pass-word
    assert!(
        requests.iter().all(|request| request.contains("\r\nauthorization: Basic dXNlcjpwYXNzLXdvcmQ=\r\n"))
    );
}

#[test]
fn headers_that_contradict_the_body_are_usage_errors() {
    for header in ["Content-Length: 3", "Transfer-Encoding: chunked"] {
        let arguments = ["load", "--requests", "1", "-H", header, "--body", "hello", "http://127.0.0.1:1/"];
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        let said = stderr(&output);
        assert!(said.contains("contradicts the body") && said.contains("leave it out of --header"), "{said}");
    }
}

#[test]
fn connections_beyond_one_servers_limit_go_to_others() {
    let (heavy, light) = (Serving::start(&[]), Serving::start(&[]));
    let urls = [format!("9={}", heavy.url()), light.url()];
    let limit = ["--connections", "10", "--connections-per-server", "6"];
    let result =
        result_of(&[&["--rate", "100", "--duration", "200ms"], &limit[..], &[&urls[0], &urls[1]]].concat());
    assert_eq!(result.connect_time_us.count, 10);
    let reasons = &result.verdict.reasons;
    assert!(!reasons.iter().any(|reason| reason.starts_with("connections:")), "{reasons:?}");
}

#[test]
fn per_url_reports_counts_and_times_of_each_url() {
    let server = Serving::start(&[]);
    let urls = [format!("3={}", server.url()), format!("{}?delay=50ms", server.url())];
    let load = ["--rate", "100", "--duration", "3s", "--per-url", "--order", "turn", &urls[0], &urls[1]];
    let result = result_of(&load);
    let [fast, slow] = &result.per_url[..] else { panic!("{:?}", result.per_url) };
    assert_eq!([&fast.url, &slow.url], [&urls[0], &urls[1]]);
    assert_eq!(fast.sent + slow.sent, result.requests.sent);
    assert_eq!(fast.completed + slow.completed, result.requests.completed);
    assert_eq!(fast.response_time_us.count, fast.completed);
    assert!(fast.sent >= 3 * slow.sent - 3, "{} and {}", fast.sent, slow.sent);
    assert!(slow.response_time_us.min >= 50_000.0, "{:?}", slow.response_time_us);
    let together = result_of(&["--rate", "50", "--duration", "200ms", &urls[0], &urls[1]]);
    assert!(together.per_url.is_empty(), "only on request");
}

#[test]
fn dead_servers_among_roaming_connections_are_told() {
    let server = Serving::start(&[]);
    let urls = [server.url(), format!("http://{NOBODY}/")];
    let result = result_of(&["--rate", "50", "--duration", "4s", "--connections", "1", &urls[0], &urls[1]]);
    let notes = &result.verdict.notes;
    assert!(notes.iter().any(|note| note.contains("connection refused")), "{:?}", result.verdict);
}

#[test]
fn only_some_of_many_unreachable_servers_are_named() {
    let arguments = ["load", "--rate", "10", "--duration", "100ms", "http://127.0.0.1:{1..6}/"];
    let output = run(&arguments);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("127.0.0.1:3 and 3 others: connection refused"), "{}", stderr(&output));
}

#[test]
fn urls_that_cannot_be_used_are_explained() {
    for (urls, expected) in [
        (&["x=http://127.0.0.1:1/"][..], "hint: such as 3=http"),
        (&["http://127.0.0.1:1/{2..1}"], "must run upwards"),
        (&["http://{1..20000}.example/"], "hint: ranges in the path"),
        (&["tcp://127.0.0.1:1", "http://127.0.0.1:1/"], "hint: give each a run of its own"),
        (&["tcp://127.0.0.1:1/x"], "hint: such as tcp://"),
        (&["tcp://127.0.0.1"], "hint: such as tcp://"),
    ] {
        let output = run(&[&["load", "--rate", "10"], urls].concat());
        assert_eq!(output.status.code(), Some(2), "{urls:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{urls:?}: {}", stderr(&output));
    }
}
