//! The service over real sockets: what clients see, and what misbehaving clients can do to it.

mod client;

use client::{Client, IDLE_TIMEOUT, Running, settings};
use service::{Answer, Settings};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

#[test]
fn connection_carries_many_requests() {
    let server = Running::start(&settings(1024));
    let mut client = server.client();
    for _ in 0..100 {
        let response = client.get("/");
        assert_eq!((response.status, response.body.len()), (200, 1024));
    }
    assert_eq!(client.get("/?size=3&status=404").text(), (404, "000".into()));
    let counters = server.stop();
    assert_eq!((counters.requests, counters.connections_accepted, counters.connections_open), (101, 1, 0));
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = Running::start(&settings(0));
    let mut client = server.client();
    let requests: String = (0..2000)
        .map(|index| {
            // Bodies that are copied, bodies that are not, and an occasional delay.
            let delay = if index % 500 == 7 { "&delay=1ms" } else { "" };
            format!("GET /?size={}{delay} HTTP/1.1\r\nHost: a\r\n\r\n", index * 17)
        })
        .collect();
    let mut writer = client.stream();
    let writing = std::thread::spawn(move || writer.write_all(requests.as_bytes()).unwrap());
    for index in 0..2000 {
        assert_eq!(client.read_response(false).body.len(), index * 17);
    }
    writing.join().unwrap();
    assert_eq!(server.stop().requests, 2000);
}

#[test]
fn request_bodies_of_every_framing_are_read() {
    let server = Running::start(&settings(5));
    let mut client = server.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
    client.send(&"x".repeat(100_000));
    assert_eq!(client.read_response(false).status, 200);
    client.send("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    for _ in 0..50 {
        client.send(&format!("800;x=y\r\n{}\r\n", "y".repeat(0x800)));
    }
    client.send("0\r\nTrailer: z\r\n\r\n");
    assert_eq!(client.read_response(false).status, 200);
    client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    assert_eq!(client.read_response(false).status, 100);
    client.send("ab");
    assert_eq!(client.read_response(false).status, 200);
    assert_eq!(server.stop().requests, 3);
}

#[test]
fn head_response_has_no_body_and_close_is_honored() {
    let server = Running::start(&settings(1024));
    let mut client = server.client();
    client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
    let response = client.read_response(true);
    assert!(response.head.contains("Content-Length: 1024"), "{}", response.head);
    client.send("GET /?size=1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let response = client.read_response(false);
    assert!(response.head.contains("Connection: close"), "{}", response.head);
    assert_eq!(client.read_rest(), b"");

    let mut old = server.client();
    old.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert!(old.read_response(false).head.contains("Connection: keep-alive"));
    old.send("GET / HTTP/1.0\r\n\r\n");
    assert!(old.read_response(false).head.contains("Connection: close"));
    assert_eq!(old.read_rest(), b"");
}

#[test]
fn request_limit_closes_connection() {
    let server = Running::start(&Settings { requests_per_connection: NonZeroU64::new(2), ..settings(1) });
    let mut client = server.client();
    assert!(!client.get("/").head.contains("Connection"));
    assert!(client.get("/").head.contains("Connection: close"));
    assert_eq!(client.read_rest(), b"");
}

#[test]
fn garbage_is_answered_and_closed() {
    let server = Running::start(&settings(1));
    let long = format!("GET / HTTP/1.1\r\nHost: a\r\nx: {}\r\n\r\n", "y".repeat(200_000));
    for (bytes, status) in [
        ("\x16\x03\x01\x02\x00\x01", 400),
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("PRI * HTTP/2.0\r\n\r\nSMS\r\n\r\n", 505),
        (&long, 431),
    ] {
        let mut client = server.client();
        client.send(bytes);
        assert_eq!(client.read_response(false).status, status, "{:?}", &bytes[..bytes.len().min(40)]);
        assert_eq!(client.read_rest(), b"");
    }
    let (status, text) = server.client().get("/?delay=soon").text();
    assert_eq!(status, 400);
    assert!(text.contains("query `delay`: `soon` is not a duration: expected"), "{text}");
    assert_eq!(server.stop().rejected, 4);
}

#[test]
fn request_may_arrive_bytewise() {
    let server = Running::start(&settings(10));
    let mut client = server.client();
    for byte in
        "POST /?size=7 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n".chars()
    {
        client.send(&byte.to_string());
    }
    assert_eq!(client.read_response(false).body.len(), 7);
}

#[test]
fn half_closed_client_still_gets_responses() {
    let server = Running::start(&settings(10));
    let mut client = server.client();
    client.send("GET /?delay=20ms HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
    client.stream().shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.read_response(false).status, 200);
    assert_eq!(client.read_response(false).status, 200);
    assert_eq!(client.read_rest(), b"");
}

#[test]
fn responses_are_never_early() {
    let server = Running::start(&Settings {
        answer: Answer { delay: Duration::from_millis(3), ..Answer::default() },
        ..settings(0)
    });
    let mut client = server.client();
    for (target, at_least_us) in [("/", 3000), ("/?delay=250us", 250), ("/?delay=20ms", 20_000)] {
        for _ in 0..10 {
            let started = Instant::now();
            assert_eq!(client.get(target).status, 200);
            assert!(
                started.elapsed() >= Duration::from_micros(at_least_us),
                "{target}: {:?}",
                started.elapsed()
            );
        }
    }
}

#[test]
fn delays_of_different_connections_run_concurrently() {
    let server = Running::start(&settings(0));
    let mut clients: Vec<Client> = (0..50).map(|_| server.client()).collect();
    let started = Instant::now();
    for client in &mut clients {
        client.send("GET /?delay=1s HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    for client in &mut clients {
        assert_eq!(client.read_response(false).status, 200);
    }
    let took = started.elapsed();
    assert!(
        took < Duration::from_secs(25),
        "50 delays of a second, one after the other, take 50 s; these took {took:?}"
    );
}

#[test]
fn error_count_matches_error_rate() {
    let server = Running::start(&Settings { seed: Some(7), ..settings(0) });
    let mut client = server.client();
    let requests = 10_000;
    let errors = (0..requests).filter(|_| client.get("/?error-rate=20%").status == 500).count();
    // Binomial: standard deviation 40, and the seed makes the count the same each time.
    assert!((1800..=2200).contains(&errors), "{errors} of {requests}");
    assert_eq!(client.get("/?error-rate=100%").status, 500);
    assert_eq!(client.get("/?error-rate=0").status, 200);
    assert_eq!(server.stop().errors, errors as u64 + 1);
}

#[test]
fn stall_stops_all_connections_of_all_threads() {
    /// Most of a stall.
    const STALLED: Duration = Duration::from_millis(250);
    let server =
        Running::start(&Settings { stall: Some("300ms/1s".parse().unwrap()), threads: 2, ..settings(0) });
    let waits: Vec<Vec<Duration>> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|_| {
                let mut client = server.client();
                scope.spawn(move || {
                    let (started, mut waits) = (Instant::now(), Vec::new());
                    // It occurs every second; if a stalled machine makes a client miss most of it, another
                    // one follows.
                    while (waits.iter().max() < Some(&STALLED) || waits.len() <= 3)
                        && started.elapsed() < Duration::from_secs(30)
                    {
                        let asked = Instant::now();
                        client.get("/");
                        waits.push(asked.elapsed());
                    }
                    waits
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    for waits in &waits {
        let longest = waits.iter().max().unwrap();
        assert!(*longest >= STALLED, "the longest wait was {longest:?}");
        assert!(waits.len() > 3, "outside of the stall it answers: {waits:?}");
    }
}

#[test]
fn bodies_do_not_depend_on_how_they_are_sent() {
    let server = Running::start(&settings(0));
    let mut client = server.client();
    let large = client.get("/?size=1000000").body;
    assert_eq!(large.len(), 1_000_000);
    for size in [1, 8192, 8193, 16_384, 16_385, 300_000] {
        assert_eq!(client.get(&format!("/?size={size}")).body, &large[..size], "{size}");
    }
}

#[test]
fn client_that_does_not_read_is_not_read() {
    let server = Running::start(&settings(0));
    let mut stuck = server.client().stream();
    stuck.set_nonblocking(true).unwrap();
    let request = "GET /?size=100KB HTTP/1.1\r\nHost: a\r\n\r\n".repeat(100);
    // Writing succeeds until the kernel's buffers on both sides are full.
    let mut written = 0;
    let deadline = Instant::now() + Duration::from_secs(30);
    let mut blocked_since = None;
    while blocked_since.is_none_or(|since: Instant| since.elapsed() < Duration::from_millis(300)) {
        match stuck.write(&request.as_bytes()[written % 41..]) {
            Ok(length) => {
                written += length;
                blocked_since = None;
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                blocked_since.get_or_insert_with(Instant::now);
                std::thread::yield_now();
            }
            Err(error) => panic!("{error}"),
        }
        assert!(Instant::now() < deadline && written < 100_000_000, "{written} bytes were taken");
    }
    // Others are served nevertheless.
    assert_eq!(server.client().get("/").status, 200);
}

#[test]
fn idle_connections_are_closed_and_delayed_ones_are_not() {
    let server = Running::start(&Settings { idle_timeout: IDLE_TIMEOUT, ..settings(0) });
    let (mut silent, mut unfinished, mut delayed) = (server.client(), server.client(), server.client());
    unfinished.send("GET / HT");
    delayed.send("GET /?delay=5s HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(silent.read_rest(), b"");
    assert_eq!(unfinished.read_rest(), b"");
    assert_eq!(delayed.read_response(false).status, 200);
}

#[test]
fn connections_over_the_limit_wait_for_their_turn() {
    let server = Running::start(&Settings { max_connections: Some(2), threads: 2, ..settings(0) });
    let (mut first, mut second, mut third) = (server.client(), server.client(), server.client());
    assert_eq!((first.get("/").status, second.get("/").status), (200, 200));
    third.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let counters = first.get("/meshmeter/counters").text().1;
    assert!(counters.contains("\"connections_open\":2"), "{counters}");
    drop(first);
    assert_eq!(third.read_response(false).status, 200);
}

#[test]
fn threads_get_equal_shares_of_the_connections() {
    let server = Running::start(&Settings { threads: 4, ..settings(0) });
    let mut clients: Vec<Client> = (0..8).map(|_| server.client()).collect();
    for client in &mut clients {
        assert_eq!(client.get("/").status, 200);
    }
    let counters = clients[0].get("/meshmeter/counters").text().1;
    assert!(
        counters.contains("\"requests\":8,") && counters.contains("\"connections_open\":8,"),
        "{counters}"
    );
}

#[test]
fn counters_count_what_the_client_saw() {
    let server = Running::start(&Settings { threads: 2, ..settings(100) });
    let (mut sent, mut received) = (0, 0);
    for _ in 0..3 {
        let mut stream = server.client().stream();
        let request = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        stream.write_all(request).unwrap();
        sent += request.len();
        received += stream.read_to_end(&mut Vec::new()).unwrap();
    }
    let counters = server.stop();
    assert_eq!(counters.requests, 3);
    assert_eq!((counters.bytes_received, counters.bytes_sent), (sent as u64, received as u64));
}

#[test]
fn requests_cut_off_by_client_are_counted() {
    let server = Running::start(&settings(100));
    let (mut unfinished_head, mut unfinished_body, mut delayed, mut unread) =
        (server.client(), server.client(), server.client(), server.client());
    unfinished_head.send("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HT");
    assert_eq!(unfinished_head.read_response(false).status, 200);
    unfinished_body.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabc");
    delayed.send("GET /?delay=1h HTTP/1.1\r\nHost: a\r\n\r\n");
    unread.send("GET /?size=1GB HTTP/1.1\r\nHost: a\r\n\r\n");
    unread.stream().read_exact(&mut [0; 100]).unwrap();
    drop((unfinished_head, unfinished_body, unread));
    let mut client = server.client();
    let mut counters = || client.get("/meshmeter/counters").text().1;
    let started = Instant::now();
    // `delayed` is still in progress.
    let expected = "\"requests\":3,\"answered\":1,\"failed\":1,\"incomplete\":2}";
    while !counters().contains(expected) {
        assert!(started.elapsed() < Duration::from_secs(60), "{}", counters());
    }
    let counts = server.stop().http1;
    assert_eq!((counts.requests, counts.answered, counts.failed, counts.incomplete), (3, 1, 2, 2));
    drop(delayed);
}

#[test]
fn address_in_use_is_error_and_free_again_afterwards() {
    // On an address that no other test listens on or connects from, so nobody takes its ports in the
    // meantime.
    let server = Running::start(&Settings::new("127.0.0.9:0".parse().unwrap()));
    let address = server.address();
    // A connection that the server closes leaves TIME_WAIT on its side.
    server.client().send("GET / HTTP/1.0\r\n\r\n");
    let again = service::Server::bind(&Settings::new(address)).unwrap_err();
    assert_eq!(again.to_string(), format!("listen on {address}"));
    assert!(again.hint().is_some_and(|hint| hint.contains("another port")));
    server.stop();
    Running::start(&Settings::new(address)).client().get("/");
    assert!(TcpStream::connect(address).is_err(), "a stopped server does not listen");
}

/// The content of a chunked body, and the number of its chunks.
fn dechunked(mut body: &[u8]) -> (String, usize) {
    let (mut content, mut chunks) = (Vec::new(), 0);
    loop {
        let end = body.windows(2).position(|pair| pair == b"\r\n").expect("the size of a chunk");
        let length = usize::from_str_radix(std::str::from_utf8(&body[..end]).unwrap(), 16).unwrap();
        let chunk = &body[end + 2..];
        if length == 0 {
            assert_eq!(chunk, b"\r\n");
            return (String::from_utf8(content).unwrap(), chunks);
        }
        content.extend_from_slice(&chunk[..length]);
        chunks += 1;
        body = &chunk[length + 2..];
    }
}

#[test]
fn stream_of_events_is_as_long_as_its_query_says() {
    let server = Running::start(&settings(0));
    let target = "/?events=20&first=2ms&gap=exp:1ms&event-bytes=40";
    let request =
        |connection: &str| format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: {connection}\r\n\r\n");
    // Two on one connection; the last closes it.
    let mut client = server.client();
    client.send(&(request("keep-alive") + &request("close")));
    let received = String::from_utf8(client.read_rest()).unwrap();
    let responses: Vec<&str> = received.split("HTTP/1.1 200 OK\r\n").skip(1).collect();
    assert_eq!(responses.len(), 2, "{received}");
    for response in responses {
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("Content-Type: text/event-stream\r\nTransfer-Encoding: chunked"), "{head}");
        let (content, chunks) = dechunked(body.as_bytes());
        let event = "data: 0123456789abcdef0123456789abcdef01234567\n\n";
        assert_eq!((content, chunks), (event.repeat(20), 20));
    }
    let mut old = server.client();
    old.send("GET /?events=2&event-bytes=1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    let received = String::from_utf8(old.read_rest()).unwrap();
    assert!(received.ends_with("Connection: close\r\n\r\ndata: 0\n\ndata: 0\n\n"), "{received}");
    let mut head = server.client();
    head.send("HEAD /?events=3 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert!(head.read_rest().ends_with(b"Connection: close\r\n\r\n"));
    assert_eq!(server.client().get("/?events=3&status=204").status, 204);
    let counters = server.stop();
    assert_eq!((counters.requests, counters.errors), (5, 0));
    assert_eq!(counters.http1.answered, 5);
}

#[test]
fn stream_whose_client_leaves_has_failed() {
    let server = Running::start(&settings(0));
    let mut client = server.client();
    client.send("GET /?events=2&gap=1h HTTP/1.1\r\nHost: a\r\n\r\n");
    // The first event has come: the second never will.
    let mut received = Vec::new();
    let mut buffer = [0; 1024];
    while !received.ends_with(b"\n\n\r\n") {
        let length = client.stream().read(&mut buffer).unwrap();
        received.extend_from_slice(&buffer[..length]);
    }
    drop(client);
    let counters = server.stop();
    assert_eq!((counters.http1.answered, counters.http1.failed), (0, 1));
}

#[test]
fn chat_completion_is_a_stream_of_tokens_if_its_request_says_so() {
    let server = Running::start(&settings(0));
    let chat = |json: &str, query: &str| {
        let length = json.len();
        let mut client = server.client();
        client.send(&format!(
            "POST /v1/chat/completions?{query} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
        ));
        for part in json.as_bytes().chunks(11) {
            client.send(std::str::from_utf8(part).unwrap());
        }
        let received = String::from_utf8(client.read_rest()).unwrap();
        let (head, body) = received.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    };
    let json =
        r#"{"messages": [], "stream": true, "max_tokens": 5, "stream_options": {"include_usage": true}}"#;
    let (head, body) = chat(json, "gap=1ms&event-bytes=3");
    assert!(head.contains("text/event-stream"), "{head}");
    let (content, _) = dechunked(body.as_bytes());
    let data: Vec<&str> = content.split_terminator("\n\n").collect();
    assert_eq!(data.len(), 1 + 5 + 3, "{content}");
    assert!(data[0].contains(r#""role":"assistant""#), "{content}");
    assert!(data[1..6].iter().all(|data| data.contains(r#""content":"012""#)), "{content}");
    assert!(
        data[6].contains(r#""finish_reason":"length""#) && data[7].contains(r#""choices":[]"#),
        "{content}"
    );
    assert_eq!(data[8], "data: [DONE]");
    let (head, body) = chat(r#"{"messages": [], "max_tokens": 2}"#, "gap=1ms&event-bytes=2");
    assert!(head.contains("application/json") && body.contains(r#""content":"0101""#), "{head}\n{body}");
    let (head, body) = chat("{}", "");
    let error = |body: &str| serde_json::from_str::<serde_json::Value>(body).unwrap()["error"].clone();
    assert!(
        head.starts_with("HTTP/1.1 400") && error(&body)["type"] == "invalid_request_error",
        "{head}\n{body}"
    );
    assert!(error(&body)["message"].as_str().unwrap().contains("`messages`"), "{body}");
    for (json, query, status) in [
        ("{}", "gap=x", "400"),
        (json, "error-rate=1", "500"),
        (r#"{"messages": []}"#, "error-rate=1", "500"),
    ] {
        let (head, body) = chat(json, query);
        assert!(
            head.starts_with(&format!("HTTP/1.1 {status}")) && head.contains("application/json"),
            "{head}"
        );
        assert!(error(&body)["message"].is_string(), "{body}");
    }
    assert_eq!(server.client().get("/v1/chat/completions?size=3").text(), (200, "000".into()));
    let counters = server.stop();
    assert_eq!((counters.requests, counters.errors), (7, 2));
}
