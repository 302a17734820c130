//! Failing callees: what is retried, what the caller responds, and what is counted.

use crate::graph::{
    LOOPBACK, Running, TEST_TIMEOUT, call, get, service, settings, start, topology, with_endpoints,
};
use experiment::protocol::Protocol;
use experiment::topology::distribution::Distribution;
use experiment::topology::script::{CallStep, Endpoint, QueryOperation, QueryStep, Step};
use experiment::topology::{Runs, Topology, Workload};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::mpsc;
use std::thread::spawn;
use std::time::{Duration, Instant};

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A node `web` whose script makes only this call, to a callee at `address`.
fn caller(protocol: Protocol, step: CallStep, address: SocketAddr) -> Running {
    let shop = caller_topology(protocol, step);
    let mut settings = settings(&shop, 0);
    settings.connect.insert(1, address.to_string());
    Running::start(&settings)
}

fn caller_topology(protocol: Protocol, step: CallStep) -> Topology {
    topology(vec![service("web", Protocol::Http1, vec![Step::Call(step)]), service("cart", protocol, vec![])])
}

/// Reads one request without a body.
fn read_request(stream: &mut TcpStream) {
    let mut received = Vec::new();
    let mut room = [0; 1024];
    while !received.ends_with(b"\r\n\r\n") {
        let length = stream.read(&mut room).unwrap();
        assert_ne!(length, 0, "a whole request comes");
        received.extend_from_slice(&room[..length]);
    }
}

fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind(LOOPBACK).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Counters of calls: sent, answered, failed, retries, resent, unsent.
fn counts(node: &Running) -> [u64; 6] {
    ["sent", "answered", "failed", "retries", "resent", "unsent"].map(|count| node.calls("cart", count))
}

/// A port that nobody else can use and that refuses connections: bound, but not listening.
fn refusing() -> (OwnedFd, SocketAddr) {
    let socket =
        rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM, None).unwrap();
    rustix::net::bind(&socket, &LOOPBACK).unwrap();
    let address = SocketAddr::try_from(rustix::net::getsockname(&socket).unwrap()).unwrap();
    (socket, address)
}

#[test]
fn database_refusing_connections_is_named_and_blocks_readiness() {
    let (_socket, address) = refusing();
    let query = QueryStep {
        to: 1,
        operation: QueryOperation::Find,
        collection: "flights".to_owned(),
        documents: 1,
        document_bytes: 100,
        probability: 1.0,
        timeout: TEST_TIMEOUT,
    };
    let web = service("web", Protocol::Http1, vec![Step::Query(query)]);
    let database = Workload { runs: Runs::Database, ..service("db", Protocol::Tcp, Vec::new()) };
    let mut settings = settings(&topology(vec![web, database]), 0);
    settings.connect.insert(1, address.to_string());
    let web = Running::start(&settings);
    let named = format!("database db at {address}: find flights: Connection refused");
    let (status, body) = get(web.address, "/");
    assert!(status == 502 && body.starts_with(&named), "{status}: {body}");
    // The error that the request waited for has also ended the first attempt to fill the collection, or soon
    // will.
    let not_ready = loop {
        let (status, body) = get(web.admin, "/health/ready");
        assert_eq!(status, 503, "{body}");
        if !body.contains("are being filled") {
            break body;
        }
        std::thread::yield_now();
    };
    assert!(not_ready.contains(&format!("database db at {address}: ")), "{not_ready}");
    assert!(not_ready.contains("Connection refused"), "{not_ready}");
    assert_eq!(["sent", "answered", "unsent"].map(|count| web.calls("db", count)), [0, 0, 1]);
    assert_eq!(web.end().errors, 0);
}

#[test]
fn callee_that_is_down_makes_caller_respond_bad_gateway() {
    let (_socket, address) = refusing();
    for protocol in Protocol::ALL {
        let web = caller(protocol, CallStep { retries: 2, ..CallStep::new(1) }, address);
        let (status, body) = get(web.address, "/");
        assert_eq!(status, 502, "{protocol}");
        assert!(body.starts_with(&format!("cart: connect to {address}: ")), "{protocol}: {body}");
        assert_eq!(counts(&web), [0, 0, 0, 0, 0, 3], "{protocol}");
        assert!(web.shown("/metrics").contains("meshmeter_requests_total{endpoint=\"/\",code=\"502\"} 1"));
        assert_eq!(web.end().errors, 0);
    }
}

#[test]
fn hanging_callee_times_out() {
    for protocol in Protocol::ALL {
        let (_listener, address) = listen();
        let timeout = Duration::from_millis(20);
        let web = caller(protocol, CallStep { timeout, retries: 1, ..CallStep::new(1) }, address);
        let (status, body) = get(web.address, "/");
        assert_eq!((status, body.as_str()), (502, "cart: no response within 20ms\n"), "{protocol}");
        assert_eq!(counts(&web), [2, 0, 2, 1, 0, 0], "{protocol}");
    }
}

#[test]
fn callee_closing_without_response_is_failed() {
    let (listener, address) = listen();
    spawn(move || {
        for stream in listener.incoming() {
            read_request(&mut stream.unwrap());
        }
    });
    let web = caller(Protocol::Http1, CallStep { retries: 1, ..CallStep::new(1) }, address);
    let (status, body) = get(web.address, "/");
    assert_eq!(status, 502, "{body}");
    assert!(body.starts_with("cart: "), "{body}");
    assert_eq!(counts(&web), [2, 0, 2, 1, 0, 0]);
}

#[test]
fn request_on_closing_connection_is_resent_on_another() {
    let (listener, address) = listen();
    spawn(move || {
        // The first connection answers once, and is closed when the next request comes: it may have been sent
        // before the caller noticed the end.
        let (mut first, _) = listener.accept().unwrap();
        read_request(&mut first);
        first.write_all(RESPONSE).unwrap();
        read_request(&mut first);
        drop(first);
        let (mut second, _) = listener.accept().unwrap();
        read_request(&mut second);
        second.write_all(RESPONSE).unwrap();
        // Open until the caller has finished.
        let _ = second.read(&mut [0]);
    });
    let web = caller(Protocol::Http1, CallStep::new(1), address);
    assert_eq!(get(web.address, "/").0, 200);
    assert_eq!(get(web.address, "/").0, 200);
    assert_eq!(counts(&web), [3, 2, 0, 0, 1, 0]);
    assert_eq!(web.calls("cart", "connections"), 2);
}

#[test]
fn connection_closed_by_callee_is_replaced() {
    let (listener, address) = listen();
    let (closed, is_closed) = mpsc::channel();
    spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            read_request(&mut stream);
            stream.write_all(RESPONSE).unwrap();
            drop(stream);
            closed.send(()).unwrap();
        }
    });
    let web = caller(Protocol::Http1, CallStep::new(1), address);
    for connections in 1..=3 {
        assert_eq!(get(web.address, "/").0, 200);
        is_closed.recv_timeout(TEST_TIMEOUT).unwrap();
        // It notices the end as soon as it polls: requesting counters makes it poll.
        let started = Instant::now();
        while web.calls("cart", "connections_open") > 0 {
            assert!(started.elapsed() < TEST_TIMEOUT, "the connection stays open");
        }
        assert_eq!(web.calls("cart", "connections"), connections);
    }
    assert_eq!(counts(&web), [3, 3, 0, 0, 0, 0]);
}

#[test]
fn callee_error_is_retried_and_counted_as_failed() {
    for protocol in [Protocol::Http1, Protocol::Http2, Protocol::Grpc, Protocol::Tcp] {
        let fails = Endpoint { error_fraction: 1.0, ..Endpoint::default() };
        let shop = topology(vec![
            service("web", Protocol::Http1, vec![Step::Call(CallStep { retries: 2, ..CallStep::new(1) })]),
            with_endpoints("cart", protocol, vec![fails]),
        ]);
        let nodes = start(&shop);
        let (status, body) = get(nodes[0].address, "/");
        let expected = match protocol {
            Protocol::Http1 | Protocol::Http2 => "cart: status 500\n",
            Protocol::Grpc => "cart: grpc-status 13: injected error\n",
            Protocol::Tcp => "cart: the connection was closed after 0 bytes of the reply\n",
        };
        assert_eq!((status, body.as_str()), (502, expected), "{protocol}");
        assert_eq!(counts(&nodes[0]), [3, 0, 3, 2, 0, 0], "{protocol}");
        assert_eq!(nodes[1].counters()["errors"], 3, "{protocol}");
    }
}

#[test]
fn error_propagates_to_every_caller_and_stops_later_steps() {
    for protocol in Protocol::ALL {
        let fails = Endpoint { error_fraction: 1.0, ..Endpoint::default() };
        let shop = topology(vec![
            service("web", Protocol::Http1, vec![Step::Parallel(vec![call(1), call(3)]), call(3)]),
            service("middle", protocol, vec![call(2)]),
            with_endpoints("cart", Protocol::Http1, vec![fails]),
            service("other", Protocol::Http1, vec![]),
        ]);
        let nodes = start(&shop);
        assert_eq!(get(nodes[0].address, "/").0, 502, "{protocol}");
        // The parallel branch ran to its end; the step after it was not started.
        assert_eq!((nodes[0].calls("middle", "failed"), nodes[0].calls("other", "answered")), (1, 1));
    }
}

#[test]
fn response_size_follows_distribution() {
    let sized = Endpoint {
        response_bytes: Distribution::Uniform { low: 20_000.0, high: 40_000.0 },
        ..Endpoint::default()
    };
    let shop = topology(vec![with_endpoints("web", Protocol::Http1, vec![sized])]);
    let nodes = start(&shop);
    let sizes: Vec<usize> = (0..20).map(|_| get(nodes[0].address, "/").1.len()).collect();
    assert!(sizes.iter().all(|size| (20_000..40_000).contains(size)), "{sizes:?}");
    assert!(sizes.iter().any(|size| *size != sizes[0]), "{sizes:?}");
}
