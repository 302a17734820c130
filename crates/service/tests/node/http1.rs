//! Unusual but allowed uses of HTTP/1.1, and invalid ones.

use crate::graph::{LOOPBACK, Running, TEST_TIMEOUT, call, get, service, settings, start, topology};
use experiment::protocol::Protocol;
use experiment::topology::distribution::Distribution;
use experiment::topology::script::Step;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread::{spawn, yield_now};
use std::time::Instant;

/// Everything that is returned for these bytes.
fn exchange(node: &Running, sent: &[u8]) -> String {
    let mut stream = TcpStream::connect(node.address).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream.write_all(sent).unwrap();
    let mut received = String::new();
    stream.read_to_string(&mut received).unwrap();
    received
}

#[test]
fn pipelined_requests_of_any_framing_are_answered_in_order() {
    let nodes = start(&topology(vec![service("web", Protocol::Http1, vec![])]));
    let requests = [
        "GET /?a=b HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabcde",
        "PUT http://a/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        "PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx",
        "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /none HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
    ];
    let received = exchange(&nodes[0], requests.concat().as_bytes());
    let statuses: Vec<&str> = received.split("HTTP/1.1 ").skip(1).map(|response| &response[..3]).collect();
    assert_eq!(statuses, ["200", "200", "200", "100", "200", "200", "404", "200"], "{received}");
    let counted = nodes[0].counters();
    let http1 = &counted["protocols"]["http/1.1"];
    assert_eq!((&http1["requests"], &http1["answered"]), (&7.into(), &7.into()), "{counted}");
    assert_eq!(counted["rejected"], 0);
}

#[test]
fn malformed_requests_are_rejected_and_partial_ones_are_incomplete() {
    let nodes = start(&topology(vec![service("web", Protocol::Http1, vec![])]));
    for (sent, status) in [
        ("hello\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\n\r\n", "400"),
        ("PRI * HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", "501"),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "400"),
    ] {
        let received = exchange(&nodes[0], sent.as_bytes());
        assert!(received.starts_with(&format!("HTTP/1.1 {status} ")), "{sent}: {received}");
    }
    let mut stream = TcpStream::connect(nodes[0].address).unwrap();
    stream.write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(stream.read(&mut [0; 100]).unwrap(), 0);
    let counted = nodes[0].counters();
    assert_eq!(counted["rejected"], 4, "{counted}");
    let http1 = &counted["protocols"]["http/1.1"];
    // The body of malformed chunks was never complete either.
    assert_eq!((&http1["requests"], &http1["incomplete"]), (&0.into(), &2.into()), "{counted}");
}

#[test]
fn disconnected_client_ends_its_request() {
    let nap = Step::Sleep(Distribution::Fixed(3600.0));
    let nodes = start(&topology(vec![service("web", Protocol::Http1, vec![nap])]));
    let mut stream = TcpStream::connect(nodes[0].address).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let count = |name: &str| nodes[0].counters()["protocols"]["http/1.1"][name].as_u64().unwrap();
    let started = Instant::now();
    while count("requests") == 0 {
        assert!(started.elapsed() < TEST_TIMEOUT, "the request does not come");
        yield_now();
    }
    drop(stream);
    while count("failed") == 0 {
        assert!(started.elapsed() < TEST_TIMEOUT, "the request goes on");
        yield_now();
    }
}

#[test]
fn callee_may_respond_in_chunks_or_until_it_closes() {
    let listener = TcpListener::bind(LOOPBACK).unwrap();
    let address = listener.local_addr().unwrap();
    spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        for response in [
            "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\nok",
        ] {
            let mut received = Vec::new();
            while !received.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                received.extend(byte);
            }
            stream.write_all(response.as_bytes()).unwrap();
        }
    });
    let shop = topology(vec![
        service("web", Protocol::Http1, vec![call(1)]),
        service("cart", Protocol::Http1, vec![]),
    ]);
    let mut settings = settings(&shop, 0);
    settings.connect.insert(1, address.to_string());
    let web = Running::start(&settings);
    assert_eq!([get(web.address, "/").0, get(web.address, "/").0], [200, 200]);
    assert_eq!((web.calls("cart", "answered"), web.calls("cart", "connections")), (2, 1));
}
