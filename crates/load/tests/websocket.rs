//! WebSocket against a server of another implementation, and against servers that break its rules: counts only.

mod specs;

use http1::websocket::accept_of;
use load::{LoadSpec, Opening, Protocol, Replies, RequestTemplate, ScheduleSpec};
use results::{LoadResult, SpokenProtocol};
use specs::{NETWORK, TEST_TIMEOUT, run, so_many};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tungstenite::protocol::frame::CloseFrame;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Bytes, Message};

const REQUESTS: u64 = 20;

type Socket = tungstenite::WebSocket<TcpStream>;

/// A listener that serves each connection in a thread of its own; stops accepting when dropped.
struct Server {
    address: SocketAddr,
    stopping: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Server {
    fn start(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let stopping = Arc::new(AtomicBool::new(false));
        let (stop, serve) = (Arc::clone(&stopping), Arc::new(serve));
        let accepting = std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                let serve = Arc::clone(&serve);
                std::thread::spawn(move || {
                    stream.set_nodelay(true).expect("a TCP connection");
                    serve(stream);
                });
            }
        });
        Self { address, stopping, accepting: Some(accepting) }
    }

    /// A server by tungstenite, whose connections end when `serve` fails.
    fn foreign(serve: impl Fn(&mut Socket) -> tungstenite::Result<()> + Send + Sync + 'static) -> Self {
        Self::start(move |stream| {
            if let Ok(mut socket) = tungstenite::accept(stream) {
                // The client goes away at the end of its run.
                let _ = serve(&mut socket);
            }
        })
    }

    /// A server that answers the request for a connection with this head, or accepts it, and then sends these bytes.
    fn hostile(head: Option<&'static str>, bytes: Vec<u8>) -> Self {
        Self::start(move |mut stream| {
            let Some(key) = key_of_request(&stream) else { return };
            let accepted = format!("{SWITCH}Sec-WebSocket-Accept: {}\r\n\r\n", accept_of(key.as_bytes()));
            let head = head.unwrap_or(&accepted);
            let sent = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&bytes));
            if sent.is_ok() {
                let _ = stream.shutdown(Shutdown::Write);
                // Read to the end, so that no reset overtakes what was sent.
                let _ = std::io::copy(&mut stream, &mut std::io::sink());
            }
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        // Wakes the listener.
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            accepting.join().expect("the listener does not panic");
        }
    }
}

const SWITCH: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n";

/// Reads the head of a request. Returns its key, if it is one for a WebSocket.
fn key_of_request(stream: &TcpStream) -> Option<String> {
    let lines = BufReader::new(stream.try_clone().ok()?).lines().map_while(Result::ok);
    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    head.iter().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).map(ToOwned::to_owned)
}

/// A fixed number of messages of two clients.
fn spec(server: &Server, replies: Replies, body: &str) -> LoadSpec {
    let template =
        RequestTemplate { body: load::Body::with_ranges(body.as_bytes()), ..RequestTemplate::default() };
    let urls = [format!("ws://{}/chat", server.address)];
    let load = specs::spec(&urls, &template, so_many(2, REQUESTS), TEST_TIMEOUT);
    LoadSpec { protocol: Protocol::WebSocket(replies), network: NETWORK, connections: 2, ..load }
}

fn assert_all_completed(result: &LoadResult) {
    let requests = &result.requests;
    assert_eq!((requests.completed, requests.failed), (REQUESTS, 0), "{requests:?}");
    assert_eq!(result.protocol, SpokenProtocol::WebSocket);
    assert!(requests.status.is_empty(), "messages have no status");
}

/// Asserts counts of first events, gaps and events.
fn assert_events(result: &LoadResult, firsts: u64, gaps: u64) {
    let events = result.events.expect("streams");
    let count = |times: &Option<results::HistogramSummary>| times.as_ref().map_or(0, |times| times.count);
    let times = [&result.first_byte_us, &result.first_event_us, &result.event_gap_us].map(count);
    assert_eq!((times, events.received), ([firsts, firsts, gaps], firsts + gaps), "{events:?}");
}

#[test]
fn echoes_of_a_foreign_server_answer_their_messages() {
    let server = Server::foreign(|socket| {
        loop {
            let message = socket.read()?;
            match &message {
                Message::Text(text) => assert!(text.starts_with("order 7"), "{text}"),
                Message::Pong(content) => {
                    assert_eq!(&content[..], b"beat");
                    continue;
                }
                other => panic!("{other}"),
            }
            socket.send(Message::Ping(Bytes::from_static(b"beat")))?;
            socket.send(Message::Pong(Bytes::new()))?;
            socket.send(message)?;
        }
    });
    let result = run(&spec(&server, Replies::InOrder(1), "order {70..79}"));
    assert_all_completed(&result);
    // Two bytes of header; the client's have a mask of four.
    assert_eq!((result.bytes.sent, result.bytes.received), (REQUESTS * 14, REQUESTS * 10));
    assert!(result.events.is_none() && result.first_byte_us.is_none());
}

#[test]
fn as_many_messages_as_asked_for_are_unanswered_at_once() {
    let server = Server::foreign(|socket| {
        loop {
            // None is answered before all are there.
            let messages: Vec<Message> = (0..5).map(|_| socket.read()).collect::<Result<_, _>>()?;
            messages.into_iter().try_for_each(|message| socket.send(message))?;
        }
    });
    let mut load = spec(&server, Replies::InOrder(5), "x");
    (load.connections, load.schedule) = (1, so_many(5, REQUESTS));
    let result = run(&load);
    assert_all_completed(&result);
    assert_eq!((result.streams, result.connections), (5, 1));
    assert_eq!(result.arrival_uncertainty_us.map(|times| times.count), Some(REQUESTS));
}

#[test]
fn pushed_messages_are_the_events_of_their_subscription() {
    let server = Server::foreign(|socket| {
        loop {
            socket.read()?;
            for content in ["a", "", "b", "c"] {
                socket.send(Message::Ping(Bytes::new()))?;
                socket.send(Message::text(content))?;
            }
        }
    });
    let three = Replies::Pushed(NonZeroU64::new(3));
    let result = run(&spec(&server, three, "subscribe"));
    assert_all_completed(&result);
    assert_events(&result, REQUESTS, 2 * REQUESTS);
    let per_response = result.events.expect("streams").per_response;
    assert_eq!((per_response.min, per_response.max), (3, 3));
}

#[test]
fn streams_until_close_begin_with_their_connections() {
    let server = Server::foreign(|socket| {
        // Nothing was sent: the connection is the subscription.
        for content in ["a", "b"] {
            socket.send(Message::text(content))?;
        }
        socket.close(Some(CloseFrame { code: CloseCode::Normal, reason: "done".into() }))?;
        loop {
            socket.read()?;
        }
    });
    let mut load = spec(&server, Replies::Pushed(None), "");
    load.opening = Opening { per_request: true, ..Opening::default() };
    let result = run(&load);
    assert_all_completed(&result);
    assert_events(&result, REQUESTS, REQUESTS);
    assert_eq!(result.bytes.sent, 0);
}

/// Asserts that requests fail with this error alone, or connections if none can be opened.
fn assert_failed(result: &LoadResult, kind: &str) {
    let requests = &result.requests;
    assert_eq!(requests.completed, 0, "{kind}: {requests:?}");
    // Connections that are opened again are closed at the end of the run.
    let of_run = result.errors_of_run(kind);
    assert!(of_run > 0, "{kind}: {requests:?} {:?}", result.warmup);
    let others = requests.errors.iter().filter(|(other, _)| *other != kind && *other != "interrupted");
    assert_eq!(others.count(), 0, "{kind}: {requests:?}");
}

#[test]
fn servers_that_break_the_rules_fail_by_name() {
    let too_large = [&b"\x82\x7f"[..], &(65_u64 << 20).to_be_bytes()].concat();
    let pings = [&b"\x89\x7d"[..], &[b'x'; 125]].concat();
    for (kind, bytes) in [
        ("websocket-protocol", b"\x81\x81\0\0\0\0x".to_vec()),
        ("websocket-protocol", b"\xc1\x01x".to_vec()),
        ("websocket-protocol", b"\x80\x01x".to_vec()),
        ("websocket-protocol", b"\x89\x7e\x00\x80".to_vec()),
        ("websocket-message-size", too_large),
        ("close-too-large", b"\x88\x02\x03\xf1".to_vec()),
        ("close-policy", b"\x88\x06\x03\xf0no!!".to_vec()),
        ("close-application", b"\x88\x02\x10\x00".to_vec()),
        ("closed", b"\x81\x7e\x10\x00cut".to_vec()),
        ("websocket-flood", pings.repeat(600_000)),
    ] {
        // Sent once the first message is there: the connection is open until then.
        let server = Server::start(move |stream| {
            let Ok(mut socket) = tungstenite::accept(stream) else { return };
            if socket.read().is_ok() {
                let stream = socket.get_mut();
                let _ = stream.write_all(&bytes);
                let _ = stream.shutdown(Shutdown::Write);
                if kind != "websocket-flood" {
                    let _ = std::io::copy(stream, &mut std::io::sink());
                }
            }
        });
        let mut load = spec(&server, Replies::InOrder(1), "x");
        load.schedule = so_many(2, 2);
        assert_failed(&run(&load), kind);
    }
}

#[test]
fn connections_that_are_not_agreed_on_fail_by_name() {
    const OTHER_KEY: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
        Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
    for (kind, head) in [
        ("upgrade-invalid", OTHER_KEY),
        ("upgrade-refused", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
        ("upgrade-refused", "HTTP/1.1 426 Upgrade Required\r\n\r\n"),
        ("upgrade-redirected", "HTTP/1.1 301 Moved\r\nLocation: wss://a/\r\n\r\n"),
        ("upgrade-denied", "HTTP/1.1 403 Forbidden\r\n\r\n"),
        ("upgrade-not-found", "HTTP/1.1 404 Not Found\r\n\r\n"),
        ("upgrade-unavailable", "HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 503 Unavailable\r\n\r\n"),
        ("malformed-response", "220 mail.example ready\r\n"),
        ("tls-response", "\x15\x03\x03\x00\x02\x02\x28"),
        ("closed", "HTTP/1.1 101 Switching"),
    ] {
        let server = Server::hostile(Some(head), Vec::new());
        let result = run(&spec(&server, Replies::InOrder(1), "x"));
        assert_eq!(result.requests.sent, 0, "{kind}: no connection was opened");
        assert_failed(&result, kind);
        assert!(result.verdict.reasons.iter().any(|reason| reason.starts_with("unreachable: ")), "{kind}");
    }
    let silent = Server::start(|mut stream| {
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    let load = LoadSpec { timeout: Duration::from_millis(200), ..spec(&silent, Replies::InOrder(1), "x") };
    assert_failed(&run(&load), "upgrade-timeout");
}

#[test]
fn message_that_was_not_asked_for_ends_its_connection() {
    let server = Server::hostile(None, b"\x81\x02hi".to_vec());
    let mut load = spec(&server, Replies::InOrder(1), "x");
    load.schedule = ScheduleSpec::Closed { clients: 2, think_time: load::ThinkTime::NONE, requests: Some(4) };
    let result = run(&load);
    assert!(result.errors_of_run("surplus-bytes") > 0, "{:?}", result.requests);
}
