//! Streams of events from servers that send them whole, cut, stalled, and over TLS: counts only.

mod http2_servers;
mod servers;
mod specs;
mod tls_servers;

use http2_servers::{DATA, END_HEADERS, END_STREAM, HEADERS, Http2Server};
use load::{
    Handshakes, LoadSpec, Protocol, RequestTemplate, ScheduleSpec, ThinkTime, TlsClient, Verification,
};
use results::{HistogramSummary, LoadResult, StreamEvents};
use rustls::version::TLS13;
use servers::{OK, TestServer, reply};
use specs::{NETWORK, TEST_TIMEOUT, run};
use std::io::Write as _;
use std::time::Duration;
use tls_servers::{Authority, Then, TlsServer, config, records};

const REQUESTS: u64 = 20;

const CHUNKED: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
const UNTIL_END: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
const TOKEN: &[u8] = b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
/// Frames of a stream that carry no token.
const ROLE: &[u8] =
    b": ping\n\ndata: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n";
const ENDING: &[u8] = b"data: {\"choices\":[],\"usage\":{\"completion_tokens\":3}}\n\ndata: [DONE]\n\n";

/// A fixed number of requests of two clients.
fn spec(url: &str) -> LoadSpec {
    let schedule = ScheduleSpec::Closed { clients: 2, think_time: ThinkTime::NONE, requests: Some(REQUESTS) };
    LoadSpec {
        network: NETWORK,
        ..specs::spec(&[url.to_owned()], &RequestTemplate::default(), schedule, TEST_TIMEOUT)
    }
}

fn chunk(content: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", content.len()).as_bytes(), content, b"\r\n"].concat()
}

/// Counts of a result with streams: of first bytes, first events, gaps, and events.
fn counts(result: &LoadResult) -> ([u64; 3], StreamEvents) {
    let count = |times: &Option<HistogramSummary>| times.as_ref().map_or(0, |times| times.count);
    let times = [&result.first_byte_us, &result.first_event_us, &result.event_gap_us].map(count);
    (times, result.events.expect("streams"))
}

/// Asserts that all requests were answered with three tokens each.
fn assert_tokens(result: &LoadResult) {
    let requests = &result.requests;
    assert_eq!((requests.completed, requests.failed), (REQUESTS, 0), "{requests:?}");
    let (times, events) = counts(result);
    assert_eq!((times, events.received), ([REQUESTS, REQUESTS, 2 * REQUESTS], 3 * REQUESTS), "{events:?}");
    let per_response = events.per_response;
    assert_eq!((per_response.count, per_response.min, per_response.max), (REQUESTS, 3, 3));
}

#[test]
fn tokens_are_counted_without_the_frames_around_them() {
    let server = TestServer::start(|stream, _| {
        let end = [chunk(ENDING), b"0\r\n\r\n".to_vec()].concat();
        let parts = [CHUNKED.to_vec(), chunk(ROLE), chunk(TOKEN), chunk(&TOKEN.repeat(2)), end];
        parts.iter().all(|part| reply(stream, part))
    });
    assert_tokens(&run(&spec(&server.url())));
}

#[test]
fn tokens_over_http2_are_counted_before_their_stream_ends() {
    let server = Http2Server::of_frames(|frames| {
        frames.greet(&[])?;
        loop {
            let stream = frames.next_request()?;
            let value = b"text/event-stream";
            let head = [http2_servers::STATUS_200, &[0x0f, 31 - 15, value.len() as u8], value].concat();
            frames.send(HEADERS, END_HEADERS, stream, &head)?;
            frames.send(DATA, 0, stream, &[ROLE, TOKEN].concat())?;
            frames.send(DATA, END_STREAM, stream, &TOKEN.repeat(2))?;
        }
    });
    let load = LoadSpec { protocol: Protocol::Http2 { streams: 4 }, ..spec(&server.url()) };
    assert_tokens(&run(&load));
}

#[test]
fn streams_that_end_in_the_middle_have_failed_by_name_with_their_events() {
    let two = TOKEN.repeat(2);
    let cut = [&two, &TOKEN[..20]].concat();
    for (kind, response) in [
        ("closed", [CHUNKED, &chunk(&two)].concat()),
        ("event-cut", [CHUNKED, &chunk(&cut), b"0\r\n\r\n"].concat()),
        ("event-cut", [UNTIL_END, &cut].concat()),
        // A stream of tokens ends with [DONE], whatever ends the response.
        ("closed", [UNTIL_END, &two].concat()),
    ] {
        let server = TestServer::start(move |stream, _| {
            reply(stream, &response);
            false
        });
        let result = run(&spec(&server.url()));
        let requests = &result.requests;
        assert_eq!(
            (requests.completed, requests.errors.get(kind)),
            (0, Some(&requests.failed)),
            "{requests:?}"
        );
        assert_eq!((requests.failed, result.response_time_us.censored), (REQUESTS, REQUESTS), "{kind}");
        let (times, events) = counts(&result);
        assert_eq!((times, events.received), ([REQUESTS; 3], 2 * REQUESTS), "{kind}: {events:?}");
        assert_eq!(events.per_response.count, 0, "{kind}");
        // Their first events are known.
        assert_eq!(result.first_event_us.map(|times| times.censored), Some(0), "{kind}");
    }
}

#[test]
fn stalled_streams_time_out_and_rank_above_all_first_events() {
    // The second stream of a connection stalls after its head.
    let server = TestServer::start(|stream, ordinal| {
        let whole = [&chunk(TOKEN)[..], b"0\r\n\r\n"].concat();
        let stalls = ordinal == 1;
        reply(stream, CHUNKED) && (stalls || reply(stream, &whole))
    });
    let mut load = spec(&server.url());
    load.schedule = ScheduleSpec::Closed { clients: 2, think_time: ThinkTime::NONE, requests: Some(4) };
    load.connections = 2;
    load.timeout = Duration::from_secs(1);
    let result = run(&load);
    let requests = &result.requests;
    // A machine that stalls lets the others time out, too.
    assert!(requests.failed >= 1, "{requests:?}");
    assert_eq!(requests.errors.get("timeout"), Some(&requests.failed), "{requests:?}");
    let first_event = result.first_event_us.as_ref().expect("streams");
    assert_eq!(first_event.count + first_event.censored, requests.sent + requests.unsent);
    assert_eq!(first_event.max, None, "{first_event:?}");
}

#[test]
fn responses_of_other_types_are_no_streams() {
    let server = TestServer::start(|stream, _| reply(stream, OK));
    let result = run(&spec(&server.url()));
    assert_eq!(result.requests.completed, REQUESTS, "{:?}", result.requests);
    assert!(result.first_byte_us.is_none() && result.events.is_none());
}

#[test]
fn events_in_several_tls_records_of_one_segment_have_one_time() {
    let authority = Authority::new();
    let server = TlsServer::start(config(&authority.issue_usual(), &TLS13, None), |stream, _| {
        for part in std::iter::once(CHUNKED.to_vec()).chain(vec![chunk(b"data: x\n\n"); 10]) {
            stream.conn.writer().write_all(&part).expect("memory");
        }
        stream.conn.writer().write_all(b"0\r\n\r\n").expect("memory");
        // One write is one segment here.
        stream.sock.write_all(&records(&mut stream.conn)).expect("a client that reads");
        Then::GoOn
    });
    let verification = Verification::Authorities(authority.file());
    let tls = TlsClient::new(&verification, &[], Handshakes::default()).expect("usable TLS");
    let result = run(&LoadSpec { tls: Some(tls), ..spec(&server.url()) });
    let (times, events) = counts(&result);
    assert_eq!((times, events.received), ([REQUESTS, REQUESTS, 9 * REQUESTS], 10 * REQUESTS), "{events:?}");
    assert_eq!(events.read_together, 9 * REQUESTS);
    assert_eq!(result.event_gap_us.and_then(|gaps| gaps.max), Some(0.0));
}
