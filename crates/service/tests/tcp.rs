//! Raw TCP: requests and replies of fixed sizes, whatever pieces they come in.

mod client;

use client::{Running, settings};
use service::{Answer, Listener, Protocol, Settings, TCP_REPLY_MODULUS, TcpSizes};
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

/// Settings of a server that speaks raw TCP on its second listener.
fn sizes(request_bytes: u64, reply_bytes: u64) -> Settings {
    let mut settings = settings(0);
    let address = settings.listeners[0].address;
    settings.listeners.push(Listener { address, protocol: Protocol::Tcp, tls: false });
    settings.tcp = TcpSizes {
        request_bytes: NonZeroU64::new(request_bytes).unwrap(),
        reply_bytes: NonZeroU64::new(reply_bytes).unwrap(),
    };
    settings
}

fn reply(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % usize::from(TCP_REPLY_MODULUS)) as u8).collect()
}

#[test]
fn every_request_gets_its_reply() {
    for (request_bytes, reply_bytes) in [(1, 1), (1000, 1), (1, 100_000), (70_000, 8192), (3, 8193)] {
        let server = Running::start(&sizes(request_bytes as u64, reply_bytes as u64));
        let mut stream = server.client_of(1).stream();
        let mut received = vec![0; reply_bytes];
        for _ in 0..10 {
            stream.write_all(&vec![b'?'; request_bytes]).unwrap();
            stream.read_exact(&mut received).unwrap();
            assert_eq!(received, reply(reply_bytes), "{request_bytes} for {reply_bytes}");
        }
        let counts = server.stop().tcp;
        assert_eq!((counts.connections, counts.requests, counts.answered), (1, 10, 10));
        assert_eq!((counts.failed, counts.incomplete), (0, 0));
    }
}

#[test]
fn requests_may_come_in_any_pieces() {
    let server = Running::start(&sizes(10, 300));
    let stream = server.client_of(1).stream();
    let mut writer = stream.try_clone().unwrap();
    let writing = std::thread::spawn(move || {
        for length in [1, 9, 25, 5, 100, 9_860] {
            writer.write_all(&vec![0; length]).unwrap();
        }
        writer.shutdown(Shutdown::Write).unwrap();
    });
    let mut received = Vec::new();
    (&stream).read_to_end(&mut received).unwrap();
    writing.join().unwrap();
    assert_eq!(received, reply(300).repeat(1000));
    assert_eq!(server.stop().tcp.answered, 1000);
}

#[test]
fn delays_and_limits_hold() {
    let answer = Answer { delay: Duration::from_millis(3), ..Answer::default() };
    let limit = NonZeroU64::new(2);
    let server = Running::start(&Settings { answer, requests_per_connection: limit, ..sizes(4, 2) });
    let mut stream = server.client_of(1).stream();
    let started = Instant::now();
    stream.write_all(b"onceTwiceMore").unwrap();
    let mut received = Vec::new();
    stream.read_to_end(&mut received).unwrap();
    assert_eq!(received, reply(2).repeat(2));
    assert!(started.elapsed() >= Duration::from_millis(6));
    let counts = server.stop().tcp;
    assert_eq!((counts.requests, counts.answered), (2, 2));
}

#[test]
fn injected_error_closes_connection_without_reply() {
    let answer = Answer { error_fraction: 1.0, ..Answer::default() };
    let server = Running::start(&Settings { answer, ..sizes(4, 2) });
    let mut stream = server.client_of(1).stream();
    stream.write_all(b"once").unwrap();
    assert_eq!(stream.read(&mut [0; 8]).unwrap(), 0);
    let counters = server.stop();
    assert_eq!((counters.errors, counters.tcp.requests, counters.tcp.failed), (1, 1, 1));
}

#[test]
fn requests_cut_off_by_client_are_counted() {
    let answer = Answer { delay: Duration::from_secs(3600), ..Answer::default() };
    let server = Running::start(&Settings { answer, ..sizes(4, 2) });
    let (mut waiting, mut unfinished) = (server.client_of(1).stream(), server.client_of(1).stream());
    waiting.write_all(b"once").unwrap();
    unfinished.write_all(b"on").unwrap();
    // The end shows that the server has read it.
    unfinished.shutdown(Shutdown::Write).unwrap();
    assert_eq!(unfinished.read(&mut [0; 8]).unwrap(), 0);
    let mut client = server.client();
    let mut counters = || client.get("/meshmeter/counters").text().1;
    let started = Instant::now();
    while !counters()
        .contains("\"tcp\":{\"connections\":2,\"requests\":1,\"answered\":0,\"failed\":0,\"incomplete\":1}")
    {
        assert!(started.elapsed() < Duration::from_secs(60), "{}", counters());
    }
    let counts = server.stop().tcp;
    assert_eq!((counts.requests, counts.failed, counts.incomplete), (1, 1, 1));
}

#[test]
fn client_that_does_not_read_is_not_read() {
    let server = Running::start(&sizes(1, 1_000_000));
    let mut stuck = server.client_of(1).stream();
    stuck.set_nonblocking(true).unwrap();
    let started = Instant::now();
    let (mut written, mut blocked_since) = (0, None);
    while blocked_since.is_none_or(|since: Instant| since.elapsed() < Duration::from_millis(300)) {
        match stuck.write(&[0; 65_536]) {
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
        assert!(started.elapsed() < Duration::from_secs(30), "{written} bytes were taken");
    }
    assert_eq!(server.client().get("/").status, 200);
    let counts = server.stop().tcp;
    assert_eq!((counts.requests - counts.failed - counts.answered, counts.incomplete), (0, 1));
}
