//! `meshmeter load` of WebSockets against `meshmeter serve`.

mod command;

use command::{Serving, run, stderr, stdout};
use results::{LoadResult, SpokenProtocol};

/// Result of ten messages of two clients.
fn result_of(url: &str, arguments: &[&str]) -> LoadResult {
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
    let output = run(&[&usual, arguments, &[url]].concat());
    let result: LoadResult = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", stdout(&output), stderr(&output)));
    assert_eq!((result.requests.completed, result.requests.failed), (10, 0), "{:?}", result.requests);
    assert_eq!(result.protocol, SpokenProtocol::WebSocket);
    result
}

#[test]
fn messages_are_echoed_after_their_delay_with_and_without_tls() {
    let server = Serving::start(&["--tls"]);
    let secure =
        server.listeners().iter().find_map(|listener| listener.strip_prefix("https")).expect("a listener");
    for (url, options) in
        [(format!("ws://{}", server.authority()), &[][..]), (format!("wss{secure}"), &["--insecure"])]
    {
        let of_this = ["--body", "{\"id\": {10..99}}", "--streams", "2", "--connections", "1"];
        let result = result_of(&format!("{url}/ws?delay=5ms"), &[&of_this[..], options].concat());
        // Headers of two bytes, and a mask of four.
        assert_eq!((result.bytes.sent, result.bytes.received), (10 * 16, 10 * 12));
        assert!(result.response_time_us.min >= 4900.0, "{:?}", result.response_time_us);
        assert_eq!((result.streams, result.tls_sessions.is_empty()), (2, options.is_empty()));
    }
    assert_eq!(server.requests(), 20);
}

#[test]
fn pushed_messages_never_come_before_they_are_due() {
    // A connection is closed after its stream.
    let server = Serving::start(&["--connection-close-after", "1"]);
    let url = format!("ws://{}/?events=6&first=20ms&gap=2ms&event-bytes=40", server.authority());
    for pushes in ["6", "until-close"] {
        let result =
            result_of(&url, &["--body", "subscribe", "--pushes", pushes, "--requests-per-connection", "1"]);
        let events = result.events.expect("streams");
        assert_eq!(
            (events.received, events.per_response.min, events.per_response.max),
            (60, 6, 6),
            "{events:?}"
        );
        let first = result.first_event_us.expect("streams");
        assert!(first.count == 10 && first.min >= 19_900.0, "{first:?}");
        assert_eq!(result.event_gap_us.map(|gaps| gaps.count), Some(50));
    }
    assert_eq!(server.requests(), 20);
}

#[test]
fn server_without_that_path_cannot_be_reached() {
    let server = Serving::start(&[]);
    let output = run(&[
        "load",
        "--rate",
        "10",
        "--duration",
        "1s",
        &format!("ws://{}/?status=404", server.authority()),
    ]);
    assert_eq!(output.status.code(), Some(3));
    let shown = stderr(&output);
    assert!(shown.contains("answered the request for a WebSocket with status 404"), "{shown}");
    assert!(shown.contains("is the path right?"), "{shown}");
}

#[test]
fn options_without_effect_are_refused() {
    let url = "ws://127.0.0.1:1/";
    for (arguments, words) in [
        (&["--http", "2", url][..], "--http is for http:// and https:// URLs"),
        (&["-X", "POST", url], "--method is for http:// and https:// URLs"),
        (&["-H", "Connection: close", url], "`connection` is one of the request that opens a WebSocket"),
        (&["-H", "X-User: {1..9}", url], "the header `x-user` has a range of numbers"),
        (&["ws://127.0.0.1:1/{1..9}"], "the path of `ws://127.0.0.1:1/1` has a range of numbers"),
        (&["--pushes", "3", "http://127.0.0.1:1/"], "--pushes is for ws:// and wss:// URLs"),
        (&["--pushes", "0", url], "expected a number of messages from 1, or `until-close`"),
        (&["--pushes", "3", "--streams", "2", url], "cannot be used with"),
        (&["--insecure", url], "--insecure is for https://, grpcs://, wss:// and tls:// URLs"),
    ] {
        let output = run(&[&["load", "--rate", "10"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(words), "{arguments:?}: {}", stderr(&output));
    }
}
