//! HTTP/2 against real servers on loopback: one by another library, and ones that are scripted frame by
//! frame.
//!
//! The server's own count of requests is compared with the engine's completed plus failed.

mod http2_servers;
mod specs;
mod tls_servers;

use h2::Reason;
use http::{Method, Request};
use http2_servers::*;
use load::{LoadSpec, Protocol, RequestTemplate, ScheduleSpec, ThinkTime, TlsClient, Verification};
use results::{LoadResult, SpokenProtocol};
use specs::TEST_TIMEOUT;
use std::io::{self, Write as _};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tls_servers::{Authority, Then, TlsServer, config, reply};

const DURATION: Duration = Duration::from_millis(400);
/// A timeout that a test waits for: long enough for a busy machine to finish everything else in time.
const TIMEOUT: Duration = Duration::from_secs(1);

/// 200 requests/s on two connections with four streams each.
fn spec(url: &str) -> LoadSpec {
    spec_of(url, &RequestTemplate::default())
}

fn spec_of(url: &str, template: &RequestTemplate) -> LoadSpec {
    LoadSpec {
        protocol: Protocol::Http2 { streams: 4 },
        connections: 2,
        ..specs::spec(&[url.to_owned()], template, specs::open_loop(200.0, DURATION), DURATION)
    }
}

fn closed_loop(clients: usize) -> ScheduleSpec {
    ScheduleSpec::Closed { clients, think_time: ThinkTime::Constant(Duration::ZERO), requests: None }
}

fn run(spec: &LoadSpec) -> LoadResult {
    let started = Instant::now();
    let result = specs::run(spec);
    assert!(started.elapsed() < TEST_TIMEOUT, "nothing hangs: {:?}", started.elapsed());
    assert_eq!((result.protocol, result.streams), (SpokenProtocol::Http2, spec.protocol.streams()));
    result
}

/// Asserts that every sent request was answered, and that the server counted the same number.
fn assert_all_answered(result: &LoadResult, server: &Http2Server) {
    let requests = &result.requests;
    assert!(requests.completed > 0, "{requests:?}");
    assert_eq!(requests.completed, requests.sent, "{requests:?}");
    assert!(requests.errors.is_empty(), "{requests:?}");
    assert_eq!(server.counted(), requests.sent);
}

/// Asserts that there are failures and that all are of this kind.
fn assert_failed(result: &LoadResult, kind: &str) {
    let requests = &result.requests;
    assert!(requests.failed > 0, "{kind}: {requests:?}");
    assert_eq!(requests.errors.keys().collect::<Vec<_>>(), [kind], "{requests:?}");
}

async fn ok(_: Request<h2::RecvStream>, _: u64) -> Answer {
    Answer::Body { status: 200, bytes: 1000, trailers: false }
}

#[test]
fn multiplexed_requests_are_answered_and_counted_by_both_sides() {
    let server = Http2Server::of_h2(|_| {}, ok);
    let mut spec = spec(&server.url());
    spec.schedule = closed_loop(16);
    spec.threads = 2;
    let result = run(&spec);
    assert_all_answered(&result, &server);
    assert_eq!(server.connections.load(Ordering::SeqCst), 2);
    assert!(result.bytes.received > result.requests.completed * 1000);
    assert!(result.bytes.received < result.requests.completed * 1200);
}

#[test]
fn server_settings_are_honored() {
    // Byte by byte, if the window has room for one, in separate frames.
    const BODY_BYTES: usize = 600;
    // Unusual sizes of frames, windows, tables and stream limits.
    type SetUp = fn(&mut h2::server::Builder);
    let cases: [SetUp; 5] = [
        |builder| _ = builder.max_concurrent_streams(1),
        |builder| _ = builder.initial_window_size(1).initial_connection_window_size(65_535),
        |builder| _ = builder.max_frame_size(1 << 20).initial_window_size(1 << 20),
        |builder| _ = builder.initial_window_size(100).max_concurrent_streams(3),
        |builder| _ = builder.max_header_list_size(1000),
    ];
    for set_up in cases {
        let echo = |mut request: Request<h2::RecvStream>, _| async move {
            let body = request.body_mut();
            let mut bytes = 0;
            while let Some(Ok(data)) = body.data().await {
                bytes += data.len();
                let _ = body.flow_control().release_capacity(data.len());
            }
            Answer::Body { status: if bytes == BODY_BYTES { 200 } else { 400 }, bytes, trailers: true }
        };
        let server = Http2Server::of_h2(set_up, echo);
        let template = RequestTemplate {
            method: Method::POST,
            body: vec![b'x'; BODY_BYTES].into(),
            ..Default::default()
        };
        let mut spec = spec_of(&server.url(), &template);
        spec.schedule = closed_loop(8);
        let result = run(&spec);
        assert_all_answered(&result, &server);
        assert_eq!(result.requests.status.keys().collect::<Vec<_>>(), ["200"]);
        // However the body is sent, all of it is counted.
        assert!(result.bytes.sent > result.requests.sent * (BODY_BYTES as u64 + 9), "{:?}", result.bytes);
    }
}

#[test]
fn open_streams_stay_within_servers_limit() {
    let open = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let (now_open, most_open) = (Arc::clone(&open), Arc::clone(&most));
    let server = Http2Server::of_h2(
        |builder| _ = builder.max_concurrent_streams(2),
        move |_, _| {
            let open = Arc::clone(&now_open);
            most_open.fetch_max(open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            async move {
                tokio::time::sleep(Duration::from_millis(5)).await;
                open.fetch_sub(1, Ordering::SeqCst);
                Answer::Body { status: 200, bytes: 0, trailers: false }
            }
        },
    );
    let mut spec = spec(&server.url());
    (spec.connections, spec.schedule) = (1, closed_loop(4));
    let result = run(&spec);
    assert_all_answered(&result, &server);
    assert_eq!(most.load(Ordering::SeqCst), 2);
}

#[test]
fn unanswered_request_times_out_alone() {
    let never_first = |_, ordinal| async move {
        if ordinal == 0 { Answer::Nothing } else { Answer::Body { status: 200, bytes: 10, trailers: false } }
    };
    let server = Http2Server::of_h2(|_| {}, never_first);
    let mut spec = spec(&server.url());
    spec.timeout = TIMEOUT;
    let result = run(&spec);
    assert_failed(&result, "timeout");
    assert_eq!(result.requests.failed, 1, "{:?}", result.requests);
    assert_eq!(server.await_counted(result.requests.sent), result.requests.sent);
    assert_eq!(server.connections.load(Ordering::SeqCst), 2, "the connection goes on");
}

#[test]
fn refused_and_reset_streams_are_distinguished() {
    let server = Http2Server::of_h2(
        |_| {},
        |_, ordinal| async move {
            match ordinal % 4 {
                0 => Answer::Reset(Reason::REFUSED_STREAM),
                1 => Answer::Reset(Reason::INTERNAL_ERROR),
                _ => Answer::Body { status: 200, bytes: 1, trailers: false },
            }
        },
    );
    let result = run(&spec(&server.url()));
    let errors = &result.requests.errors;
    assert_eq!(errors.keys().collect::<Vec<_>>(), ["stream-refused", "stream-reset"]);
    let counted = server.counted();
    assert_eq!(counted, result.requests.sent);
    assert_eq!(errors["stream-refused"], counted.div_ceil(4));
    assert_eq!(errors["stream-reset"], (counted + 2) / 4);
    assert_eq!(server.connections.load(Ordering::SeqCst), 2);
}

#[test]
fn connection_ends_after_its_number_of_requests() {
    let server = Http2Server::of_h2(|_| {}, ok);
    let mut spec = spec(&server.url());
    spec.requests_per_connection = NonZeroU64::new(10);
    let result = run(&spec);
    assert_all_answered(&result, &server);
    let connections = server.connections.load(Ordering::SeqCst);
    assert!(connections >= result.requests.sent / 10, "{connections} for {}", result.requests.sent);
}

#[test]
fn goaway_completes_processed_requests_and_fails_rest() {
    let server = Http2Server::of_frames(|frames| {
        frames.greet(&[])?;
        loop {
            // Four at once, of which it processes two.
            let streams = [(); 4].map(|()| frames.next_request());
            let [first, second, third, fourth] = streams;
            frames.send(
                GOAWAY,
                0,
                0,
                &[second.as_ref().map_or(0, |id| *id).to_be_bytes(), [0; 4]].concat(),
            )?;
            for stream in [first?, second?] {
                frames.answer(stream)?;
            }
            third.and(fourth)?;
        }
    });
    let mut spec = spec(&server.url());
    // The server waits for four each time: without a fixed number, any part of them could be left at the end
    // of the window.
    let schedule = ScheduleSpec::Closed { clients: 4, think_time: ThinkTime::NONE, requests: Some(40) };
    (spec.connections, spec.schedule) = (1, schedule);
    let result = run(&spec);
    assert_eq!(result.requests.sent, 40);
    assert_failed(&result, "goaway");
    assert_eq!(server.counted(), result.requests.sent);
    assert_eq!(result.requests.completed, result.requests.failed, "two and two");
    assert_eq!(result.bytes.received, result.requests.completed * ANSWER_BYTES);
    assert!(server.connections.load(Ordering::SeqCst) >= result.requests.sent / 4);
}

#[test]
fn graceful_close_costs_no_request() {
    let server = Http2Server::of_frames(|frames| {
        frames.greet(&[])?;
        for ordinal in 0.. {
            let stream = frames.next_request()?;
            if ordinal == 10 {
                frames.send(GOAWAY, 0, 0, &[u32::MAX.to_be_bytes(), [0; 4]].concat())?;
            }
            frames.answer(stream)?;
        }
        Ok(())
    });
    let mut spec = spec(&server.url());
    spec.schedule = closed_loop(8);
    let result = run(&spec);
    assert_all_answered(&result, &server);
    assert!(server.connections.load(Ordering::SeqCst) > 2);
}

#[test]
fn single_byte_delivery_makes_no_difference() {
    let server = Http2Server::of_frames(|frames| {
        frames.greet(&[])?;
        loop {
            let stream = frames.next_request()?;
            for byte in answer(stream) {
                frames.stream.write_all(&[byte])?;
            }
        }
    });
    let result = run(&spec(&server.url()));
    assert_all_answered(&result, &server);
    assert_eq!(result.bytes.received, result.requests.completed * ANSWER_BYTES);
}

#[test]
fn closed_window_times_requests_out() {
    let server = Http2Server::of_frames(|frames| {
        // No window on any stream, ever.
        frames.greet(&[(4, 0)])?;
        while frames.next()?.kind != GOAWAY {}
        Ok(())
    });
    let template =
        RequestTemplate { method: Method::POST, body: vec![b'x'; 100].into(), ..Default::default() };
    let mut spec = spec_of(&server.url(), &template);
    spec.timeout = TIMEOUT;
    let result = run(&spec);
    assert_failed(&result, "timeout");
    assert_eq!(result.requests.completed, 0);
    assert_eq!(server.await_counted(result.requests.sent), result.requests.sent);
}

#[test]
fn http2_server_faults_are_counted_by_kind() {
    type Behaviour = fn(&mut Frames, u32) -> io::Result<()>;
    let cases: [(&str, Behaviour); 11] = [
        ("closed", |_, _| Ok(())),
        ("closed", |frames, stream| frames.send(HEADERS, END_HEADERS, stream, STATUS_200)),
        ("closed", |frames, stream| frames.stream.write_all(&answer(stream)[..15])),
        ("goaway", |frames, _| frames.send(GOAWAY, 0, 0, &[[0xff; 4], 2_u32.to_be_bytes()].concat())),
        ("malformed-response", |frames, stream| frames.send(DATA, END_STREAM, stream, b"no head")),
        ("http2-protocol", |frames, stream| frames.send(HEADERS, END_HEADERS, stream + 1, STATUS_200)),
        ("http2-frame-size", |frames, _| frames.stream.write_all(b"garbage of no meaning at all")),
        ("http2-compression", |frames, stream| frames.send(HEADERS, END_HEADERS, stream, b"\xff\xff\xff")),
        ("http2-flow-control", |frames, _| frames.send(8, 0, 0, &[0x7f, 0xff, 0xff, 0xff])),
        ("http2-flood", |frames, _| frames.stream.write_all(&frame(PING, 0, 0, &[0; 8]).repeat(20_000))),
        ("head-too-large", |frames, stream| {
            frames.send(HEADERS, 0, stream, STATUS_200)?;
            frames.stream.write_all(&frame(9, 0, stream, b"\x00\x01a\x01b").repeat(30_000))
        }),
    ];
    for (kind, behaviour) in cases {
        let server = Http2Server::of_frames(move |frames| {
            frames.greet(&[])?;
            let stream = frames.next_request()?;
            behaviour(frames, stream)?;
            // Whether or not this side notices, it continues until the other side ends.
            if matches!(kind, "closed" | "goaway") {
                return Ok(());
            }
            loop {
                let frame = frames.next()?;
                if frame.kind == HEADERS && kind == "malformed-response" {
                    behaviour(frames, frame.stream)?;
                }
            }
        });
        let mut spec = spec(&server.url());
        (spec.connections, spec.protocol) = (1, Protocol::Http2 { streams: 1 });
        let result = run(&spec);
        assert_failed(&result, kind);
        assert_eq!(result.requests.completed, 0, "{kind}");
        assert_eq!(server.await_counted(result.requests.sent), result.requests.sent, "{kind}");
    }
}

/// Pings stay in proportion to content, so that only what the server does not read shows the fault.
#[test]
fn server_that_reads_nothing_loses_its_connection() {
    let server = Http2Server::of_frames(|frames| {
        frames.greet(&[])?;
        let stream = frames.next_request()?;
        frames.send(HEADERS, END_HEADERS, stream, STATUS_200)?;
        let pings =
            [frame(PING, 0, 0, &[0; 8]).repeat(10), frame(DATA, 0, stream, b"x")].concat().repeat(100);
        loop {
            frames.stream.write_all(&pings)?;
        }
    });
    let mut spec = spec(&server.url());
    (spec.connections, spec.protocol) = (1, Protocol::Http2 { streams: 1 });
    (spec.timeout, spec.schedule) = (TEST_TIMEOUT, closed_loop(1));
    assert_failed(&run(&spec), "http2-flood");
}

#[test]
fn non_http2_server_is_reported_before_run() {
    type Behaviour = fn(&mut Frames) -> io::Result<()>;
    let cases: [(&str, Behaviour); 6] = [
        ("not-http2", |frames| {
            frames.stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        }),
        ("not-http2", |frames| frames.stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n")),
        ("not-http2", |_| Ok(())),
        ("not-http2", |frames| frames.send(PING, 0, 0, &[0; 8])),
        ("tls-response", |frames| frames.stream.write_all(b"\x15\x03\x01\x00\x02\x02\x46")),
        ("settings-timeout", |frames| frames.next().map(drop)),
    ];
    for (kind, behaviour) in cases {
        let server = Http2Server::of_frames(move |frames| {
            behaviour(frames)?;
            if kind == "settings-timeout" {
                io::copy(&mut frames.stream, &mut io::sink())?;
            }
            Ok(())
        });
        let mut spec = spec(&server.url());
        if kind == "settings-timeout" {
            spec.timeout = TIMEOUT;
        }
        let result = run(&spec);
        let errors = &result.requests.errors;
        assert_eq!(errors.keys().collect::<Vec<_>>(), [kind], "{errors:?}");
        assert_eq!(result.requests.sent, 0);
        assert!(result.verdict.reasons[0].starts_with("unreachable:"), "{:?}", result.verdict);
    }
}

#[test]
fn alpn_selects_http2_or_connection_fails() {
    let authority = Authority::new();
    let tls = || {
        TlsClient::new(&Verification::Authorities(authority.file()), &[], load::Handshakes::default())
            .expect("usable TLS")
    };
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        // The server's ALPN: none, or another protocol.
        for offered in [vec![], vec![b"http/1.1".to_vec()]] {
            let mut config = config(&authority.issue_usual(), version, None);
            config.alpn_protocols = offered;
            let server = TlsServer::start(config, |_, _| Then::GoOn);
            let result = run(&LoadSpec { tls: Some(tls()), ..spec(&server.url()) });
            let errors = &result.requests.errors;
            assert_eq!(errors.keys().collect::<Vec<_>>(), ["alpn-refused"], "{errors:?}");
        }
        let mut config = config(&authority.issue_usual(), version, None);
        config.alpn_protocols = vec![b"http/1.1".to_vec(), b"h2".to_vec()];
        let server = TlsServer::of_bytes(config, |stream| {
            // The client's preface; then its frames, one request with each.
            let mut preface = [0; 24];
            io::Read::read_exact(stream, &mut preface)?;
            reply(stream, &frame(SETTINGS, 0, 0, b""));
            loop {
                let mut head = [0; 9];
                io::Read::read_exact(stream, &mut head)?;
                let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
                io::copy(&mut io::Read::take(&mut *stream, u64::from(length)), &mut io::sink())?;
                if head[3] == HEADERS {
                    reply(stream, &answer(u32::from_be_bytes([head[5], head[6], head[7], head[8]])));
                }
            }
        });
        let result = run(&LoadSpec { tls: Some(tls()), ..spec(&server.url()) });
        assert!(result.requests.errors.is_empty(), "{:?}", result.requests);
        assert!(result.requests.completed > 0);
        assert_eq!(result.tls_sessions.values().sum::<u64>(), 2);
        let session = result.tls_sessions.keys().next().expect("one kind");
        let expected =
            if version.version == rustls::ProtocolVersion::TLSv1_2 { "TLSv1_2" } else { "TLSv1_3" };
        assert!(session.starts_with(expected), "{session}");
    }
}
