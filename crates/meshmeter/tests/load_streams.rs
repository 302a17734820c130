//! `meshmeter load` of streams of events against `meshmeter serve`.

mod command;

use command::{Serving, run, stderr, stdout};
use results::LoadResult;

/// Result of ten requests from two clients for this path.
fn result_of(server: &Serving, path: &str, arguments: &[&str]) -> LoadResult {
    // No machine stalls for longer than the timeout.
    let usual = [
        "load",
        "--progress",
        "off",
        "--json",
        "-",
        "--clients",
        "2",
        "--requests",
        "10",
        "--timeout",
        "60s",
    ];
    let url = format!("http://{}{path}", server.authority());
    let output = run(&[&usual, arguments, &[&url]].concat());
    let result: LoadResult = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", stdout(&output), stderr(&output)));
    assert_eq!((result.requests.completed, result.requests.failed), (10, 0), "{:?}", result.requests);
    result
}

/// Asserts that each of ten responses had this many events, and returns the times of the first and between them.
fn assert_events(result: &LoadResult, of_each: u64) -> (f64, f64) {
    let events = result.events.expect("streams");
    let per_response = events.per_response;
    assert_eq!((events.received, per_response.count), (10 * of_each, 10), "{events:?}");
    assert_eq!((per_response.min, per_response.max), (of_each, of_each));
    let [byte, first, gaps] = [&result.first_byte_us, &result.first_event_us, &result.event_gap_us]
        .map(|times| times.as_ref().expect("streams"));
    assert_eq!((byte.count, first.count, gaps.count), (10, 10, 10 * (of_each - 1)));
    (first.min, gaps.mean.expect("all are answered"))
}

#[test]
fn events_of_the_service_are_counted_and_never_come_before_they_are_due() {
    let server = Serving::start(&[]);
    for http in ["1.1", "2"] {
        let path = "/?events=12&first=20ms&gap=2ms&event-bytes=40";
        let result = result_of(&server, path, &["--http", http]);
        let (first_us, gap_us) = assert_events(&result, 12);
        assert!(first_us >= 19_900.0, "HTTP/{http}: {first_us}");
        // The schedule is absolute: late events make the gap before them longer, and those after it shorter.
        assert!(gap_us > 0.0, "HTTP/{http}: {gap_us}");
    }
    assert_eq!(server.requests(), 20);
}

#[test]
fn tokens_of_a_chat_are_counted_without_role_usage_and_end() {
    let server = Serving::start(&[]);
    let body =
        r#"{"messages": [], "stream": true, "max_tokens": 7, "stream_options": {"include_usage": true}}"#;
    for http in ["1.1", "2"] {
        let path = "/v1/chat/completions?first=20ms&gap=1ms";
        let result = result_of(&server, path, &["--http", http, "-X", "POST", "--body", body]);
        let (first_us, _) = assert_events(&result, 7);
        assert!(first_us >= 19_900.0, "HTTP/{http}: the role, which comes at once, is no token: {first_us}");
    }
    let body = r#"{"messages": [], "max_tokens": 7}"#;
    let whole = result_of(&server, "/v1/chat/completions", &["-X", "POST", "--body", body]);
    assert!(whole.events.is_none() && whole.first_byte_us.is_none());
}

#[test]
fn objective_names_the_first_event_or_the_gaps_of_streams() {
    let server = Serving::start(&[]);
    let url = format!("http://{}/?events=5&first=50ms&gap=5ms", server.authority());
    let plain = format!("http://{}/", server.authority());
    // Bounds on one side of what the service does, however late a machine is.
    for (url, objective, status, said) in [
        (&url, "first-event-p50=50s,event-gap-max=50s,first-byte-p50=50s", Some(0), "objective      met"),
        (&url, "first-event-p50=40ms,p50=50s", Some(1), "first-event-p50 "),
        (
            &plain,
            "first-event-p50=50s",
            Some(2),
            "first-event-p50 is of streams, and no response was a stream",
        ),
        (&plain, "p50=50s,event-gap-p99=50s", Some(2), "hint: p99 is of whole responses"),
    ] {
        let arguments =
            ["--clients", "2", "--requests", "10", "--timeout", "60s", "--objective", objective, url];
        let output = run(&[&["load", "--progress", "off"][..], &arguments].concat());
        assert_eq!(output.status.code(), status, "{objective}: {}{}", stdout(&output), stderr(&output));
        let text = stdout(&output) + &stderr(&output);
        assert!(text.contains(said), "{objective}: {text}");
    }
}

#[test]
fn search_by_first_events_is_refused_without_streams() {
    let server = Serving::start(&[]);
    let search = |target: &str| {
        let rates = ["--search-min", "200", "--search-max", "400", "--duration", "1s"];
        let objective = ["--body", "hello", "--objective", "first-event-p50=10ms", target];
        let output = run(&[&["load", "--search"], &rates[..], &objective].concat());
        (output.status.code(), stderr(&output))
    };
    let (status, said) = search(&server.url());
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("no response was a stream of events"), "{said}");
    let (status, said) = search("tcp://127.0.0.1:9");
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("raw has no streams of events (text/event-stream)"), "{said}");
    let (status, said) = search("ws://127.0.0.1:9/");
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("a WebSocket's messages are a stream with --pushes alone"), "{said}");
}
