//! Ways of opening connections, as servers see them.

mod recording_servers;
mod servers;
mod specs;

use load::{
    Address, Family, Handshakes, LoadSpec, Lookups, Opening, Protocol, ProxyProtocol, RequestTemplate,
    ScheduleSpec, ThinkTime, TlsClient, Verification,
};
use recording_servers::{Closing, RecordingServer};
use results::{ConnectionSettings, IdleCloses, LoadResult};
use servers::{OK, TestServer, reply};
use specs::{NETWORK, Silent, open_loop, run, so_many};
use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(400);
/// Window of a load that ends with its last request: long enough for a busy machine.
const LONG: Duration = Duration::from_secs(60);

fn spec(url: &str, template: &RequestTemplate, schedule: ScheduleSpec) -> LoadSpec {
    let ends_itself = matches!(schedule, ScheduleSpec::Closed { requests: Some(_), .. });
    let duration = if ends_itself { LONG } else { SHORT };
    LoadSpec { network: NETWORK, ..specs::spec(&[url.to_owned()], template, schedule, duration) }
}

#[test]
fn requests_go_to_unix_socket_with_host_and_path_of_the_url() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let server = RecordingServer::on_unix(&path);
    let unix_socket = Some(Address::unix_socket(&path).unwrap());
    let template = RequestTemplate { unix_socket, ..RequestTemplate::default() };
    for schedule in [open_loop(200.0, SHORT), so_many(4, 80)] {
        let before = server.requests();
        // The name has no address.
        let load = spec("http://shop.invalid/cart", &template, schedule);
        assert_eq!(load.targets.family, Family::Http);
        let result = run(&load);
        assert!(result.requests.completed > 0, "{result:?}");
        assert_eq!(result.requests.failed, 0, "{:?}", result.requests);
        assert_eq!(server.requests() - before, result.requests.completed);
        // Nothing says when the kernel had the responses.
        assert_eq!((result.reading_lag_us, result.arrival_uncertainty_us), (None, None));
        assert_eq!(result.generator.pacing.map(|pacing| pacing.answers_timed_by_kernel), Some(false));
        assert!(result.addresses.is_empty(), "{:?}", result.addresses);
    }
    let seen = server.seen();
    assert_eq!(seen.len(), 8);
    for head in seen.iter().flat_map(|seen| &seen.requests) {
        assert!(head.starts_with("GET /cart HTTP/1.1\r\nHost: shop.invalid\r\n"), "{head}");
    }
}

#[test]
fn removed_unix_socket_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let unix_socket = Some(Address::Unix(folder.path().join("gone").into()));
    let template = RequestTemplate { unix_socket, ..RequestTemplate::default() };
    let result = run(&spec("http://localhost/", &template, ScheduleSpec::closed(1)));
    let reasons = &result.verdict.reasons;
    assert_eq!(reasons, &["unreachable: there is no such unix socket"], "{result:?}");
}

#[test]
fn connections_come_from_source_addresses_in_turn() {
    let server = RecordingServer::on_tcp(Closing::Never);
    let mut load = spec(&server.url(), &RequestTemplate::default(), so_many(12, 60));
    (load.connections, load.threads) = (12, 2);
    // 127.0.0.1 to 127.0.0.6.
    let sources = "127.0.0.0/29".parse().unwrap();
    load.opening.sources = Some(sources);
    // The other version has no way from there.
    load.targets.servers[0].addresses.push(Address::Ip("[::1]:1".parse().unwrap()));
    load.targets.keep_reachable_from(&sources).unwrap();
    assert_eq!(load.targets.servers[0].addresses, [Address::Ip(server.address)]);
    assert_eq!(load.most_to_one_address(), Some((server.address, 12)));
    let result = run(&load);
    assert!(result.requests.completed > 0 && result.requests.failed == 0, "{:?}", result.requests);
    let mut connections: BTreeMap<IpAddr, usize> = BTreeMap::new();
    for seen in server.seen() {
        *connections.entry(seen.peer.unwrap().ip()).or_default() += 1;
    }
    let two_each = (1..=6).map(|host| (IpAddr::from([127, 0, 0, host]), 2)).collect();
    assert_eq!(connections, two_each);
    let settings = result.connection_settings.expect("they are not the usual ones");
    assert_eq!((settings.source.as_deref(), settings.unix_socket), (Some("127.0.0.0/29"), None));
}

#[test]
fn source_of_another_ip_version_is_error() {
    let mut load = spec("http://127.0.0.1:1/", &RequestTemplate::default(), ScheduleSpec::closed(1));
    let error = load.targets.keep_reachable_from(&"::1".parse().unwrap()).unwrap_err();
    let text = "the source address ::1 is IPv6, and `127.0.0.1:1` has no such address";
    assert_eq!(error.to_string(), text);
}

#[test]
fn proxy_header_comes_first_with_addresses_of_its_connection() {
    for version in [ProxyProtocol::V1, ProxyProtocol::V2] {
        let server = RecordingServer::on_tcp(Closing::Never);
        let mut load = spec(&server.url(), &RequestTemplate::default(), so_many(4, 40));
        load.opening = Opening {
            proxy_protocol: Some(version),
            sources: Some("127.0.0.0/30".parse().unwrap()),
            ..Opening::default()
        };
        let result = run(&load);
        assert!(result.requests.completed > 0 && result.requests.failed == 0, "{:?}", result.requests);
        let seen = server.seen();
        assert_eq!(seen.len(), 4);
        for seen in seen.iter().filter(|seen| !seen.requests.is_empty()) {
            let peer = seen.peer.unwrap();
            let (IpAddr::V4(from), IpAddr::V4(to)) = (peer.ip(), server.address.ip()) else { panic!("IPv4") };
            let (ports, bytes) =
                ([peer.port(), server.address.port()], [from.octets(), to.octets()].concat());
            let expected = match version {
                ProxyProtocol::V1 => {
                    format!("PROXY TCP4 {from} {to} {} {}\r\n", ports[0], ports[1]).into_bytes()
                }
                ProxyProtocol::V2 => {
                    let start = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c".to_vec();
                    [start, bytes, ports.map(u16::to_be_bytes).concat()].concat()
                }
            };
            assert_eq!(seen.before, expected);
        }
        assert_eq!(result.connection_settings.unwrap().proxy_protocol, Some(version.version()));
    }
}

#[test]
fn proxy_header_of_unix_socket_names_no_addresses() {
    let cases: [(ProxyProtocol, &[u8]); 2] =
        [(ProxyProtocol::V1, b"PROXY UNKNOWN\r\n"), (ProxyProtocol::V2, b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0")];
    for (version, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let server = RecordingServer::on_unix(&path);
        let unix_socket = Some(Address::unix_socket(&path).unwrap());
        let template = RequestTemplate { unix_socket, ..RequestTemplate::default() };
        let mut load = spec("http://localhost/", &template, so_many(1, 5));
        (load.connections, load.opening.proxy_protocol) = (1, Some(version));
        assert_eq!(run(&load).requests.failed, 0);
        assert_eq!(server.seen()[0].before, expected);
    }
}

#[test]
fn proxy_header_precedes_tls() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        let mut start = [0; 16 + 12 + 2];
        listener.accept().unwrap().0.read_exact(&mut start).unwrap();
        start
    });
    let url = format!("https://{address}/");
    let mut load = spec(&url, &RequestTemplate::default(), ScheduleSpec::closed(1));
    (load.connections, load.opening.proxy_protocol) = (1, Some(ProxyProtocol::V2));
    load.tls = Some(TlsClient::new(&Verification::Off, &[], Handshakes::default()).unwrap());
    run(&load);
    let start = server.join().unwrap();
    assert_eq!(start[..12], *b"\r\n\r\n\0\r\nQUIT\n");
    // A TLS record with a handshake message.
    assert_eq!(start[28..], [0x16, 3]);
}

fn per_request(url: &str, schedule: ScheduleSpec) -> LoadSpec {
    let mut load = spec(url, &RequestTemplate::default(), schedule);
    (load.connections, load.opening.per_request) = (100, true);
    load
}

#[test]
fn each_request_has_a_connection_of_its_own() {
    for schedule in [open_loop(100.0, SHORT), so_many(3, 60)] {
        for closing in [Closing::Never, Closing::AfterFirst] {
            let server = RecordingServer::on_tcp(closing);
            let mut load = per_request(&server.url(), schedule.clone());
            load.threads = 2;
            load.opening.sources = Some("127.0.0.0/24".parse().unwrap());
            let result = run(&load);
            let requests = &result.requests;
            assert!(requests.completed > 0 && requests.failed == 0, "{requests:?}");
            // Before the start, one connection of each server shows that it can be reached.
            let mut carried: Vec<usize> = server.seen().iter().map(|seen| seen.requests.len()).collect();
            carried.sort_unstable();
            assert_eq!(carried.remove(0), 0);
            assert_eq!(carried.len() as u64, requests.sent);
            assert!(carried.iter().all(|requests| *requests == 1), "{carried:?}");
            assert_eq!(result.connect_time_us.count, requests.sent + 1);
            assert!(result.bytes.sent > 0 && result.bytes.sent.is_multiple_of(requests.sent), "{result:?}");
            assert!((1..=100).contains(&result.connections), "{}", result.connections);
            assert!(result.connection_settings.is_some_and(|settings| settings.new_per_request));
            assert_eq!(result.idle_closes, None);
        }
    }
}

/// Time that a client waits for the server's HTTP/2 settings.
const SETTINGS_DELAY: Duration = Duration::from_millis(20);

/// Answers one HTTP/2 request, and reads to the end of the connection.
fn serve_http2(mut stream: TcpStream) {
    const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
    /// Status 200 on stream 1, END_STREAM and END_HEADERS.
    const RESPONSE: &[u8] = &[0, 0, 1, 1, 5, 0, 0, 0, 1, 0x88];
    thread::sleep(SETTINGS_DELAY);
    stream.read_exact(&mut [0; 24]).unwrap();
    stream.write_all(SETTINGS).unwrap();
    loop {
        let mut head = [0; 9];
        if stream.read_exact(&mut head).is_err() {
            return;
        }
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        stream.read_exact(&mut vec![0; length as usize]).unwrap();
        if head[3] == 1 && stream.write_all(RESPONSE).is_err() {
            return;
        }
    }
}

#[test]
fn opening_is_in_response_time_of_the_request_that_it_is_for() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || serve_http2(stream.unwrap()));
        }
    });
    let mut load = per_request(&format!("http://{address}/"), open_loop(100.0, SHORT));
    load.protocol = Protocol::Http2 { streams: 1 };
    let result = run(&load);
    let requests = &result.requests;
    assert!(requests.completed > 0 && requests.failed == 0, "{requests:?}");
    let least_us = SETTINGS_DELAY.as_secs_f64() * 1e6;
    for times in [&result.response_time_us, &result.service_time_us] {
        assert!(times.min >= least_us, "{times:?}");
    }
    assert_eq!(result.connect_time_us.count, requests.sent + 1);
    // They were sent when they were due, each on a connection of its own.
    assert!(result.connections > 1, "{}", result.connections);
}

#[test]
fn requests_whose_connections_cannot_be_opened_fail_by_name() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut load =
        per_request(&format!("http://{}/", listener.local_addr().unwrap()), open_loop(100.0, SHORT));
    load.warmup = SHORT;
    // The connection that shows that it can be reached is the last.
    let server = thread::spawn(move || {
        let accepted = listener.accept().unwrap();
        drop(listener);
        (jiff::Timestamp::now(), accepted)
    });
    let result = run(&load);
    let (refusing_since, _) = server.join().unwrap();
    // A stall of the server's thread may last into the window.
    let started_at: jiff::Timestamp = result.started_at.parse().unwrap();
    let requests = &result.requests;
    assert_eq!((requests.completed, requests.failed), (0, requests.sent), "{requests:?}");
    assert_eq!(requests.errors.values().sum::<u64>(), requests.failed, "{requests:?}");
    let is_late = refusing_since > started_at || requests.sent == 0;
    assert!(is_late || requests.errors.contains_key("connect-refused"), "{requests:?}");
    assert!(!result.verdict.valid, "{:?}", result.verdict);
}

#[test]
fn connections_at_a_time_are_bounded_where_asked() {
    // Nobody accepts: the kernel opens connections, and no request is answered.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut load =
        per_request(&format!("http://{}/", listener.local_addr().unwrap()), open_loop(100.0, SHORT));
    // Long enough for a busy machine to open a connection.
    (load.connections, load.timeout) = (2, Duration::from_secs(1));
    let result = run(&load);
    assert_eq!(result.connections, 2);
    let requests = &result.requests;
    assert!(requests.unsent > 0 && requests.sent > 0, "{requests:?}");
    assert_eq!(requests.errors.get("timeout"), Some(&requests.failed), "{requests:?}");
    assert!(result.verdict.saturated, "{:?}", result.verdict);
}

#[test]
fn dead_address_of_a_name_costs_no_request_with_a_connection_of_its_own() {
    let server = RecordingServer::on_tcp(Closing::Never);
    let mut load = per_request(&server.url(), so_many(3, 60));
    load.targets.servers[0].addresses.insert(0, Address::Ip("127.0.0.1:1".parse().unwrap()));
    let result = run(&load);
    let requests = &result.requests;
    assert!(requests.completed > 0 && requests.failed == 0, "{requests:?}");
    assert!(result.verdict.notes.iter().any(|note| note.starts_with("addresses:")), "{:?}", result.verdict);
}

/// One client that thinks longer than a connection must be idle to count as such, and sends this many requests.
fn pensive_client(closing: Closing, requests: u64) -> LoadResult {
    let server = RecordingServer::on_tcp(closing);
    let think_time = ThinkTime::Constant(Duration::from_millis(150));
    let schedule = ScheduleSpec::Closed { clients: 1, think_time, requests: Some(requests) };
    let mut load = spec(&server.url(), &RequestTemplate::default(), schedule);
    load.connections = 1;
    let result = run(&load);
    assert_eq!(result.requests.sent, requests);
    result
}

#[test]
fn requests_lost_on_idle_connections_are_counted_and_explained() {
    let result = pensive_client(Closing::InsteadOfSecond, 6);
    assert_eq!((result.requests.completed, result.requests.failed), (3, 3), "{:?}", result.requests);
    assert_eq!(result.idle_closes, Some(IdleCloses { connections: 0, requests: 3 }));
    let note = result.verdict.notes.iter().find(|note| note.starts_with("idle-connections: 3 of 6 requests"));
    assert!(note.is_some_and(|note| note.contains("keep-alive timeout")), "{:?}", result.verdict);
}

#[test]
fn connections_closed_without_a_request_are_counted() {
    let result = pensive_client(Closing::AfterFirst, 4);
    // A server that stalls between its response and the close meets the next request.
    let IdleCloses { connections, requests } = result.idle_closes.expect("it closes each connection");
    assert_eq!(result.requests.failed, requests, "{:?}", result.requests);
    assert!((3..=4).contains(&(connections + requests)), "{connections} and {requests}");
    assert_eq!(result.connection_settings, None::<ConnectionSettings>);
}

#[test]
fn request_on_busy_connection_is_not_lost_to_idleness() {
    let server = RecordingServer::on_tcp(Closing::InsteadOfSecond);
    let mut load = spec(&server.url(), &RequestTemplate::default(), so_many(1, 100));
    load.connections = 1;
    let result = run(&load);
    assert!(result.requests.errors.contains_key("closed"), "{:?}", result.requests);
    // A machine that stalls may leave it idle now and then.
    let lost = result.idle_closes.map_or(0, |closes| closes.requests);
    assert!(lost < result.requests.failed, "{lost} of {:?}", result.requests);
}

#[test]
fn new_connections_go_to_the_addresses_found_last() {
    static NEW: OnceLock<SocketAddr> = OnceLock::new();
    static LOOKUPS: AtomicU64 = AtomicU64::new(0);
    /// Finds another address than before the run, and then none.
    fn look_up(endpoint: &str) -> io::Result<Vec<SocketAddr>> {
        assert_eq!(endpoint, "shop.test:80");
        match LOOKUPS.fetch_add(1, Ordering::SeqCst) {
            0 => Ok(NEW.get().copied().into_iter().collect()),
            _ => Err(io::Error::other("the resolver is away")),
        }
    }
    let stop = Arc::new(AtomicBool::new(false));
    let stops = Arc::clone(&stop);
    let old = TestServer::start(|stream, _| reply(stream, OK));
    let new = TestServer::start(move |stream, _| {
        stops.fetch_or(LOOKUPS.load(Ordering::SeqCst) >= 3, Ordering::SeqCst);
        reply(stream, OK)
    });
    NEW.set(new.address).expect("set once");
    let think_time = ThinkTime::Constant(Duration::from_millis(2));
    let schedule = ScheduleSpec::Closed { clients: 1, think_time, requests: None };
    let mut load = spec(&old.url(), &RequestTemplate::default(), schedule);
    "shop.test:80".clone_into(&mut load.targets.servers[0].authority);
    let lookups = Lookups { every: Duration::from_millis(20), look_up };
    load.opening = Opening { per_request: true, lookups: Some(lookups), ..Opening::default() };
    load.duration = LONG;
    let result = load::run(&load, &stop, &mut Silent).expect("the engine runs");
    assert_eq!(result.requests.failed, 0, "{:?}", result.requests);
    let at: Vec<&String> = result.addresses.keys().collect();
    let mut expected = [old.address.to_string(), new.address.to_string()];
    expected.sort();
    assert_eq!(at, expected.iter().collect::<Vec<_>>(), "{:?}", result.addresses);
    let note = result.verdict.notes.iter().find(|note| note.starts_with("lookups: shop.test:80 could not"));
    assert!(note.is_some_and(|note| note.contains("addresses found last")), "{:?}", result.verdict);
    assert_eq!(result.connection_settings.and_then(|settings| settings.lookups_every_s), Some(0.02));
}
