//! Persistent connections, and nodes that lose nothing when they stop.

use crate::graph::{Running, TEST_TIMEOUT, call, get, service, start, topology, with_endpoints};
use experiment::protocol::Protocol;
use experiment::topology::distribution::Distribution;
use experiment::topology::script::{Endpoint, Step};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::{scope, yield_now};
use std::time::Instant;

const CLIENTS: u64 = 8;

#[test]
fn connections_are_reused_over_10_000_requests() {
    const MAX_WIDTH: usize = 32;
    let widths = [1, 8, 3, MAX_WIDTH, 2, 16];
    let calls: usize = widths.iter().sum();
    let rounds = 10_000 / calls + 1;
    let fan_out = |to: usize| {
        let steps = widths.map(|width| Step::Parallel((0..width).map(|_| call(to)).collect()));
        vec![Step::Sequence(steps.into())]
    };
    let endpoint =
        |path: &str, to: usize| Endpoint { path: path.to_owned(), steps: fan_out(to), ..Endpoint::default() };
    let shop = topology(vec![
        with_endpoints(
            "web",
            Protocol::Http1,
            vec![endpoint("/one", 1), endpoint("/two", 2), endpoint("/rpc", 3), endpoint("/raw", 4)],
        ),
        service("one", Protocol::Http1, vec![]),
        service("two", Protocol::Http2, vec![]),
        service("rpc", Protocol::Grpc, vec![]),
        service("raw", Protocol::Tcp, vec![]),
    ]);
    let nodes = start(&shop);
    for (callee, connections) in [("one", MAX_WIDTH), ("two", 1), ("rpc", 1), ("raw", MAX_WIDTH)] {
        for _ in 0..rounds {
            assert_eq!(get(nodes[0].address, &format!("/{callee}")).0, 200);
        }
        let counted = &nodes[0].counters()["calls"][callee];
        let count = |name: &str| counted[name].as_u64().unwrap() as usize;
        assert_eq!(count("answered"), rounds * calls, "{callee}: {counted}");
        assert_eq!((count("connections"), count("connections_open")), (connections, connections), "{callee}");
    }
}

/// Reads a response with a length; returns whether the connection stays open. `None`: the connection ended
/// before it.
fn read_response(reader: &mut BufReader<TcpStream>) -> Option<bool> {
    let (mut length, mut stays) = (0, true);
    let mut line = String::new();
    if reader.read_line(&mut line).unwrap_or(0) == 0 {
        return None;
    }
    assert!(line.starts_with("HTTP/1.1 200 "), "{line}");
    loop {
        line.clear();
        reader.read_line(&mut line).unwrap();
        if line == "\r\n" {
            break;
        }
        let (name, value) = line.trim_end().split_once(": ").unwrap();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap(),
            "connection" => stays = value != "close",
            _ => {}
        }
    }
    reader.read_exact(&mut vec![0; length]).unwrap();
    Some(stays)
}

/// Progress of all clients.
#[derive(Default)]
struct Progress {
    answered: AtomicU64,
    clients_answered: AtomicU64,
}

/// Sends requests one after the other until a response announces the end of the connection. Returns how many
/// were sent and how many were answered.
fn client(address: SocketAddr, progress: &Progress) -> (u64, u64) {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    let mut reader = BufReader::new(stream);
    let (mut sent, mut answered) = (0, 0);
    loop {
        if reader.get_mut().write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n").is_err() {
            return (sent, answered);
        }
        sent += 1;
        let Some(stays) = read_response(&mut reader) else { return (sent, answered) };
        answered += 1;
        progress.answered.fetch_add(1, Relaxed);
        progress.clients_answered.fetch_add(u64::from(answered == 1), Relaxed);
        if !stays {
            return (sent, answered);
        }
    }
}

#[test]
fn node_stopping_under_load_answers_every_request() {
    let nap = Step::Sleep(Distribution::Uniform { low: 0.0, high: 0.002 });
    let shop = topology(vec![
        service("web", Protocol::Http1, vec![call(1)]),
        service("cart", Protocol::Http1, vec![nap]),
    ]);
    let mut nodes = start(&shop);
    let web = nodes.remove(0);
    let (address, progress) = (web.address, Progress::default());
    let (counted, clients) = scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(|| client(address, &progress))).collect();
        // Connections after the stop signal are refused.
        await_count(|| progress.clients_answered.load(Relaxed), CLIENTS);
        await_count(|| progress.answered.load(Relaxed), 100);
        let counted = web.end();
        (counted, clients.into_iter().map(|client| client.join().unwrap()).collect::<Vec<_>>())
    });
    let (sent, answered) = clients.iter().fold((0, 0), |sum, client| (sum.0 + client.0, sum.1 + client.1));
    assert_eq!(sent, answered);
    assert_eq!((counted.http1.requests, counted.http1.answered, counted.http1.failed), (sent, sent, 0));
    assert_eq!(counted.connections_open, 0);
}

fn await_count(count: impl Fn() -> u64, enough: u64) {
    let started = Instant::now();
    while count() < enough {
        assert!(started.elapsed() < TEST_TIMEOUT, "nothing moves");
        yield_now();
    }
}

/// `web` stays and takes the load, `cart` stops: requests sent to it are answered, or refused and resent in
/// vain.
#[test]
fn calls_to_stopping_node_are_answered_or_never_begun() {
    for protocol in Protocol::ALL {
        let nap = Step::Sleep(Distribution::Uniform { low: 0.0, high: 0.002 });
        let shop = topology(vec![
            service("web", Protocol::Http1, vec![call(1)]),
            service("cart", protocol, vec![nap]),
        ]);
        let mut nodes = start(&shop);
        let (cart, web) = (nodes.remove(1), nodes.remove(0));
        let address = web.address;
        let (counted, calls) = scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(|| while get(address, "/").0 == 200 {});
            }
            await_count(|| count(&web, "answered"), 100);
            let counted = cart.end();
            await_count(|| count(&web, "unsent") + count(&web, "failed"), CLIENTS);
            (counted, web.counters()["calls"]["cart"].clone())
        });
        assert_eq!(calls["answered"], counted.requests, "{protocol}: {calls}");
        // Connections accepted by the kernel just before the listener was closed.
        let never_accepted = calls["connections"].as_u64().unwrap() - counted.connections_accepted;
        assert!(calls["failed"].as_u64().unwrap() <= never_accepted, "{protocol}: {calls}");
    }
}

fn count(web: &Running, name: &str) -> u64 {
    web.calls("cart", name)
}

#[test]
fn endless_request_is_cut_off_after_timeout() {
    let nap = Step::Sleep(Distribution::Fixed(3600.0));
    let mut nodes = start(&topology(vec![service("web", Protocol::Http1, vec![nap])]));
    let web = nodes.remove(0);
    let mut stream = TcpStream::connect(web.address).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
    await_count(|| web.counters()["requests"].as_u64().unwrap(), 1);
    let counted = web.end();
    assert_eq!((counted.http1.requests, counted.http1.failed), (1, 1));
    assert_eq!(stream.read(&mut [0; 100]).unwrap_or(0), 0);
}
