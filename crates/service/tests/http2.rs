//! Plaintext HTTP/2 against the client of the `h2` library, and against raw bytes that a client would not
//! send.

mod client;

use client::{Client, IDLE_TIMEOUT, Running, settings};
use h2::client::{Builder, ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Method, Request, StatusCode};
use prost::bytes::Bytes;
use service::{Answer, Counters, Settings};
use std::io::{Read as _, Write as _};
use std::num::NonZeroU64;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// An HTTP/2 connection.
#[derive(Clone)]
struct Http2(SendRequest<Bytes>);

#[derive(Debug)]
struct Response {
    status: StatusCode,
    fields: HeaderMap,
    body: Vec<u8>,
}

impl Http2 {
    async fn connect(server: &Running) -> Self {
        Self::connect_with(server, &Builder::new()).await
    }

    async fn connect_with(server: &Running, builder: &Builder) -> Self {
        let socket = TcpStream::connect(server.address()).await.unwrap();
        socket.set_nodelay(true).unwrap();
        let (sender, connection) = builder.handshake(socket).await.unwrap();
        tokio::spawn(connection);
        Self(sender)
    }

    async fn send(
        &mut self,
        method: Method,
        target: &str,
        has_body: bool,
    ) -> Result<(ResponseFuture, SendStream<Bytes>), h2::Error> {
        std::future::poll_fn(|context| self.0.poll_ready(context)).await?;
        let uri = format!("http://shop{target}");
        let request = Request::builder().method(method).uri(uri).body(()).unwrap();
        self.0.send_request(request, !has_body)
    }

    async fn get(&mut self, target: &str) -> Result<Response, h2::Error> {
        let (response, _) = self.send(Method::GET, target, false).await?;
        read(response).await
    }
}

async fn read(response: ResponseFuture) -> Result<Response, h2::Error> {
    let (head, mut body) = response.await?.into_parts();
    let mut bytes = Vec::new();
    while let Some(piece) = body.data().await {
        let piece = piece?;
        bytes.extend_from_slice(&piece);
        body.flow_control().release_capacity(piece.len())?;
    }
    Ok(Response { status: head.status, fields: head.headers, body: bytes })
}

/// Runs a client's future with a timeout.
fn run<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(TEST_TIMEOUT, future).await.expect("it ends in time") })
}

#[test]
fn responses_equal_those_of_http1() {
    let server = Running::start(&settings(1024));
    run(async {
        let mut client = Http2::connect(&server).await;
        let mut http1 = server.client();
        for target in
            ["/", "/?size=3&status=404", "/?size=0", "/?status=204", "/?size=9000", "/?size=1MB", "/?delay=5"]
        {
            let response = client.get(target).await.unwrap();
            let expected = http1.get(target);
            assert_eq!(response.status.as_u16(), expected.status, "{target}");
            assert_eq!(response.body, expected.body, "{target}");
            if expected.status != 204 {
                assert_eq!(response.fields["content-length"], expected.body.len().to_string(), "{target}");
            }
            assert_eq!(
                response.fields.contains_key("content-type"),
                expected.head.contains("Content-Type"),
                "{target}"
            );
        }
        let (response, _) = client.send(Method::HEAD, "/?size=1GB", false).await.unwrap();
        let response = read(response).await.unwrap();
        assert_eq!(
            (&response.fields["content-length"], response.body.len()),
            (&"1000000000".parse().unwrap(), 0)
        );
    });
    let Counters { http1, http2, .. } = server.stop();
    assert_eq!((http1.requests, http1.answered, http1.connections), (7, 7, 1));
    assert_eq!((http2.requests, http2.answered, http2.connections), (8, 8, 1));
}

#[test]
fn counters_are_served_and_do_not_count_themselves() {
    let server = Running::start(&settings(0));
    let text = run(async {
        let mut client = Http2::connect(&server).await;
        client.get("/").await.unwrap();
        client.get("/meshmeter/counters").await.unwrap();
        String::from_utf8(client.get("/meshmeter/counters").await.unwrap().body).unwrap()
    });
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["requests"], 1);
    assert_eq!(
        json["protocols"]["http/2"],
        serde_json::json!({"connections": 1, "requests": 1, "answered": 1, "failed": 0, "incomplete": 0})
    );
}

#[test]
fn streams_run_concurrently() {
    let server = Running::start(&settings(0));
    run(async {
        let mut client = Http2::connect(&server).await;
        let started = Instant::now();
        let mut responses = Vec::new();
        for index in 0..500 {
            let target = format!("/?delay=200ms&size={index}");
            responses.push(client.send(Method::GET, &target, false).await.unwrap().0);
        }
        for (index, response) in responses.into_iter().enumerate() {
            assert_eq!(read(response).await.unwrap().body.len(), index);
        }
        let took = started.elapsed();
        assert!(took >= Duration::from_millis(200), "answers are never early: {took:?}");
        assert!(
            took < TEST_TIMEOUT,
            "500 delays of 0.2 s, one after the other, take 100 s; these took {took:?}"
        );
    });
    assert_eq!(server.stop().http2.answered, 500);
}

#[test]
fn request_bodies_of_any_length_are_accepted() {
    let server = Running::start(&settings(7));
    run(async {
        let mut client = Http2::connect(&server).await;
        let (response, mut body) = client.send(Method::POST, "/", true).await.unwrap();
        // More than the windows of the stream and of the connection.
        let mut left = 5_000_000;
        while left > 0 {
            body.reserve_capacity(left);
            let length = std::future::poll_fn(|context| body.poll_capacity(context)).await.unwrap().unwrap();
            let length = length.min(left);
            body.send_data(Bytes::from(vec![b'x'; length]), false).unwrap();
            left -= length;
        }
        let mut trailers = HeaderMap::new();
        trailers.insert("checksum", "1".parse().unwrap());
        body.send_trailers(trailers).unwrap();
        assert_eq!(read(response).await.unwrap().body.len(), 7);
    });
    let counters = server.stop();
    assert_eq!((counters.http2.requests, counters.http2.answered), (1, 1));
    assert!(counters.bytes_received > 5_000_000);
}

#[test]
fn client_expecting_100_continue_gets_it() {
    let server = Running::start(&settings(7));
    run(async {
        let mut client = Http2::connect(&server).await;
        std::future::poll_fn(|context| client.0.poll_ready(context)).await.unwrap();
        let request = Request::post("http://shop/").header("expect", "100-continue").body(()).unwrap();
        let (mut response, mut body) = client.0.send_request(request, false).unwrap();
        let told = std::future::poll_fn(|context| response.poll_informational(context)).await;
        assert_eq!(told.unwrap().unwrap().status(), StatusCode::CONTINUE);
        body.send_data(Bytes::from_static(b"abc"), true).unwrap();
        assert_eq!(read(response).await.unwrap().status, StatusCode::OK);
    });
}

#[test]
fn closed_window_holds_up_only_its_own_response() {
    let server = Running::start(&settings(0));
    run(async {
        let mut builder = Builder::new();
        builder.initial_window_size(1000).initial_connection_window_size(1_000_000);
        let mut client = Http2::connect_with(&server, &builder).await;
        let (response, _) = client.send(Method::GET, "/?size=100KB", false).await.unwrap();
        let mut stuck: RecvStream = response.await.unwrap().into_body();
        let (small, _) = client.send(Method::GET, "/?size=5000", false).await.unwrap();
        let mut small_body = small.await.unwrap().into_body();
        for _ in 0..10 {
            assert_eq!(client.get("/?size=500").await.unwrap().body.len(), 500);
        }
        let mut bytes = 0;
        for body in [&mut small_body, &mut stuck] {
            while let Some(piece) = body.data().await {
                let length = piece.unwrap().len();
                body.flow_control().release_capacity(length).unwrap();
                bytes += length;
            }
        }
        assert_eq!(bytes, 105_000);
    });
    assert_eq!(server.stop().http2.answered, 12);
}

#[test]
fn cancelled_requests_are_counted() {
    let server = Running::start(&settings(0));
    run(async {
        let mut client = Http2::connect(&server).await;
        let (response, mut stream) = client.send(Method::GET, "/?delay=1h", false).await.unwrap();
        let (_response, mut upload) = client.send(Method::POST, "/", true).await.unwrap();
        upload.send_data(Bytes::from_static(b"abc"), false).unwrap();
        // Both have arrived by the time a later one is answered.
        client.get("/").await.unwrap();
        stream.send_reset(Reason::CANCEL);
        drop(response);
        upload.send_reset(Reason::CANCEL);
        client.get("/").await.unwrap();
        let (_cut_off, _) = client.send(Method::GET, "/?delay=1h", false).await.unwrap();
        client.get("/").await.unwrap();
    });
    let counts = server.stop().http2;
    assert_eq!((counts.requests, counts.answered, counts.failed, counts.incomplete), (5, 3, 2, 1));
}

#[test]
fn request_limit_ends_connection_with_goaway() {
    let server = Running::start(&Settings { requests_per_connection: NonZeroU64::new(3), ..settings(10) });
    run(async {
        let socket = TcpStream::connect(server.address()).await.unwrap();
        let (sender, connection) = h2::client::handshake(socket).await.unwrap();
        let ended = tokio::spawn(connection);
        let mut client = Http2(sender);
        for _ in 0..3 {
            assert_eq!(client.get("/").await.unwrap().body.len(), 10);
        }
        // GOAWAY without an error: the connection ends, and nothing on it was lost.
        ended.await.unwrap().unwrap();
        assert!(client.get("/").await.is_err());
    });
    let counters = server.stop();
    assert_eq!((counters.http2.answered, counters.rejected), (3, 0));
}

#[test]
fn error_count_matches_error_rate() {
    let answer = Answer { error_fraction: 0.2, ..Answer::default() };
    let server = Running::start(&Settings { answer, seed: Some(7), ..settings(0) });
    let errors = run(async {
        let mut client = Http2::connect(&server).await;
        let mut errors = 0;
        for _ in 0..2000 {
            errors += u64::from(client.get("/").await.unwrap().status == StatusCode::INTERNAL_SERVER_ERROR);
        }
        errors
    });
    // Binomial: standard deviation 18, and the seed makes the count the same each time.
    assert!((310..=490).contains(&errors), "{errors}");
    assert_eq!(server.stop().errors, errors);
}

#[test]
fn stall_stops_every_stream() {
    let server = Running::start(&Settings { stall: Some("300ms/1s".parse().unwrap()), ..settings(0) });
    let longest = run(async {
        let mut client = Http2::connect(&server).await;
        let (started, mut longest) = (Instant::now(), Duration::ZERO);
        // It occurs every second; if a stalled machine makes the client miss most of it, another one follows.
        while longest < Duration::from_millis(250) && started.elapsed() < TEST_TIMEOUT / 2 {
            let asked = Instant::now();
            client.get("/").await.unwrap();
            longest = longest.max(asked.elapsed());
        }
        longest
    });
    assert!(longest >= Duration::from_millis(250), "the longest wait was {longest:?}");
}

#[test]
fn oversized_fields_are_rejected() {
    let server = Running::start(&settings(0));
    run(async {
        let mut client = Http2::connect(&server).await;
        std::future::poll_fn(|context| client.0.poll_ready(context)).await.unwrap();
        let request = Request::get("http://shop/").header("x", "y".repeat(100_000)).body(()).unwrap();
        let outcome = client.0.send_request(request, true).unwrap().0.await;
        assert!(
            outcome.as_ref().map_or(true, |response| response.status() == 431),
            "expected a refusal, got {outcome:?}"
        );
        assert_eq!(Http2::connect(&server).await.get("/").await.unwrap().status, StatusCode::OK);
    });
}

#[test]
fn preface_may_arrive_bytewise_and_rest_must_be_valid() {
    let server = Running::start(&settings(0));
    let stream = server.client().stream();
    for byte in PREFACE.chunks(1) {
        (&stream).write_all(byte).unwrap();
    }
    (&stream).write_all(b"this is no frame, and never will be one").unwrap();
    // SETTINGS, then GOAWAY (type 7), then the end.
    let mut answer = Vec::new();
    (&stream).read_to_end(&mut answer).unwrap();
    assert!(has_frame(&answer, 7), "{answer:?}");

    let mut unfinished = server.client();
    unfinished.send("PRI * HT");
    drop(unfinished);
    let counters = server.stop();
    assert_eq!((counters.rejected, counters.http2.connections, counters.http1.connections), (1, 1, 0));
}

/// True if a frame of this type is in `frames`.
fn has_frame(mut frames: &[u8], kind: u8) -> bool {
    while let Some((head, rest)) = frames.split_first_chunk::<9>() {
        if head[3] == kind {
            return true;
        }
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        frames = rest.get(length..).unwrap_or_default();
    }
    false
}

#[test]
fn idle_connections_are_closed_and_delayed_ones_are_not() {
    let server = Running::start(&Settings { idle_timeout: IDLE_TIMEOUT, ..settings(0) });
    let mut silent: Client = server.client();
    silent.send(std::str::from_utf8(PREFACE).unwrap());
    run(async {
        let response = Http2::connect(&server).await.get("/?delay=5s").await.unwrap();
        assert_eq!(response.status, StatusCode::OK);
    });
    // The server's first frames, and the end.
    assert!(has_frame(&silent.read_rest(), 4));
}

#[test]
fn endless_resets_take_no_memory_and_delay_no_one() {
    let server = Running::start(&settings(0));
    run(async {
        let mut hostile = Http2::connect(&server).await;
        let mut sent = 0;
        // The server closes a connection that does this for too long.
        while let Ok((response, mut stream)) = hostile.send(Method::GET, "/?delay=1h", false).await
            && sent < 20_000
        {
            stream.send_reset(Reason::CANCEL);
            drop(response);
            tokio::task::yield_now().await;
            sent += 1;
        }
        let mut client = Http2::connect(&server).await;
        assert_eq!(client.get("/").await.unwrap().status, StatusCode::OK);
    });
    let counts = server.stop().http2;
    assert_eq!(counts.requests, counts.answered + counts.failed);
    assert_eq!(counts.answered, 1);
}

#[test]
fn streams_of_events_equal_those_of_http1() {
    let server = Running::start(&settings(0));
    let body = br#"{"messages": [], "stream": true, "max_tokens": 4}"#;
    let (events, head, tokens, whole) = run(async {
        let mut client = Http2::connect(&server).await;
        let events = client.get("/?events=30&first=2ms&gap=1ms&event-bytes=4").await.unwrap();
        let (response, _) = client.send(Method::HEAD, "/?events=3", false).await.unwrap();
        let head = read(response).await.unwrap();
        let mut chat = async |body: &'static [u8]| {
            let (response, mut stream) =
                client.send(Method::POST, "/v1/chat/completions?gap=1ms", true).await.unwrap();
            for (number, part) in body.chunks(7).enumerate() {
                stream.send_data(Bytes::from_static(part), (number + 1) * 7 >= body.len()).unwrap();
            }
            read(response).await.unwrap()
        };
        (events, head, chat(body).await, chat(br#"{"messages": []}"#).await)
    });
    assert_eq!(
        (events.status, &events.fields["content-type"]),
        (StatusCode::OK, &"text/event-stream".parse().unwrap())
    );
    assert_eq!(String::from_utf8(events.body).unwrap(), "data: 0123\n\n".repeat(30));
    assert_eq!((&head.fields["content-type"], head.body.len()), (&events.fields["content-type"], 0));
    let tokens = String::from_utf8(tokens.body).unwrap();
    assert_eq!(tokens.matches(r#""content":"0123456789abcdef""#).count(), 4, "{tokens}");
    assert!(tokens.ends_with("data: [DONE]\n\n") && !tokens.contains("usage"), "{tokens}");
    assert_eq!(whole.fields["content-type"], "application/json");
    let counters = server.stop();
    assert_eq!((counters.http2.requests, counters.http2.answered), (4, 4));
}
