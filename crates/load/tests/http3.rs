//! HTTP/3 against servers on loopback, whose streams the tests write. `meshmeter serve` and Envoy are peers of the command's own tests.
//!
//! The server's own count of requests is compared with the engine's completed plus failed.

mod http3_servers;
mod specs;
mod tls_servers;

use http::Method;
use http3::ErrorCode;
use http3::quic::Link;
use http3_servers::*;
use load::{
    ClientIdentity, Handshakes, LoadSpec, Protocol, RequestTemplate, ScheduleSpec, ThinkTime, TlsClient,
    Verification,
};
use results::{LoadResult, SpokenProtocol};
use rustls::version::TLS13;
use specs::TEST_TIMEOUT;
use std::net::UdpSocket;
use std::num::NonZeroU64;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tls_servers::{Authority, config};

const DURATION: Duration = Duration::from_millis(400);
/// A timeout that a test waits for: long enough for a busy machine to finish everything else in time.
const TIMEOUT: Duration = Duration::from_secs(1);

fn tls(verification: &Verification, identity: Option<&ClientIdentity>, resumed_servers: usize) -> TlsClient {
    let handshakes = Handshakes { resumed_servers, ..Handshakes::default() };
    TlsClient::new(verification, identity.map_or(&[], std::slice::from_ref), handshakes).expect("usable TLS")
}

/// 200 requests/s on two connections with four streams each.
fn spec(url: &str, authority: &Authority) -> LoadSpec {
    spec_of(url, &RequestTemplate::default(), authority)
}

fn spec_of(url: &str, template: &RequestTemplate, authority: &Authority) -> LoadSpec {
    LoadSpec {
        protocol: Protocol::Http3 { streams: 4 },
        connections: 2,
        tls: Some(tls(&Verification::Authorities(authority.file()), None, 0)),
        ..specs::spec(&[url.to_owned()], template, specs::open_loop(200.0, DURATION), DURATION)
    }
}

fn closed_loop(clients: usize, requests: u64) -> ScheduleSpec {
    ScheduleSpec::Closed {
        clients,
        think_time: ThinkTime::Constant(Duration::ZERO),
        requests: Some(requests),
    }
}

fn serve(authority: &Authority, behaviour: impl Behaviour) -> Http3Server {
    Http3Server::start(config(&authority.issue_usual(), &TLS13, None), 100, behaviour)
}

fn run(spec: &LoadSpec) -> LoadResult {
    let started = Instant::now();
    let result = specs::run(spec);
    assert!(started.elapsed() < TEST_TIMEOUT, "nothing hangs: {:?}", started.elapsed());
    assert_eq!((result.protocol, result.streams), (SpokenProtocol::Http3, spec.protocol.streams()));
    result
}

fn assert_all_answered(result: &LoadResult, server: &Http3Server) {
    let requests = &result.requests;
    assert!(requests.completed > 0, "{requests:?}");
    assert_eq!(requests.completed, requests.sent, "{requests:?}");
    assert!(requests.errors.is_empty(), "{requests:?}");
    assert_eq!(server.requests.load(Ordering::SeqCst), requests.sent);
}

/// Asserts that there are failures and that all are of this kind.
fn assert_failed(result: &LoadResult, kind: &str) {
    let requests = &result.requests;
    assert!(requests.failed > 0, "{kind}: {requests:?}");
    assert_eq!(requests.errors.keys().collect::<Vec<_>>(), [kind], "{requests:?}");
}

/// Asserts that no connection could be opened, all for this reason.
fn assert_unreachable(result: &LoadResult, kind: &str) {
    assert_eq!(result.requests.completed, 0, "{kind}: {:?}", result.requests);
    assert_eq!(result.requests.errors.keys().collect::<Vec<_>>(), [kind], "{:?}", result.requests);
}

fn answer(link: &mut Link, id: u64, _: u64) {
    link.send(id, ok(b"hello"), true);
}

#[test]
fn all_requests_are_answered_and_handshakes_are_told() {
    let authority = Authority::new();
    let server = serve(&authority, answer);
    let result = run(&spec(&server.url(), &authority));
    assert_all_answered(&result, &server);
    assert_eq!(result.handshake_time_us.count, 2);
    let sessions: Vec<(&str, u64)> =
        result.tls_sessions.iter().map(|(session, count)| (session.as_str(), *count)).collect();
    assert_eq!(sessions, [("TLSv1_3 TLS13_AES_256_GCM_SHA384", 2)]);
    assert_eq!(result.tls_server_keys.get("ECDSA P-256"), Some(&2));
    assert_eq!(result.generator.network, Some(results::GeneratorNetwork::Epoll));
}

#[test]
fn bodies_beyond_every_window_arrive_whole() {
    let authority = Authority::new();
    let body = vec![b'r'; 1 << 20];
    let bytes = body.len() as u64;
    let server = serve(&authority, move |link: &mut Link, id: u64, _: u64| link.send(id, ok(&body), true));
    let template = RequestTemplate {
        method: Method::POST,
        body: vec![b'q'; 300_000].into(),
        ..RequestTemplate::default()
    };
    let mut spec = spec_of(&server.url(), &template, &authority);
    (spec.schedule, spec.duration) = (closed_loop(4, 20), TEST_TIMEOUT / 2);
    let result = run(&spec);
    assert_all_answered(&result, &server);
    assert_eq!(result.requests.completed, 20);
    assert!(result.bytes.sent > 20 * 300_000 && result.bytes.received > 20 * bytes, "{:?}", result.bytes);
}

#[test]
fn limit_of_the_server_is_kept() {
    let authority = Authority::new();
    let tls = config(&authority.issue_usual(), &TLS13, None);
    let server = Http3Server::start(tls, 1, answer);
    let mut spec = spec(&server.url(), &authority);
    (spec.schedule, spec.connections, spec.duration) = (closed_loop(4, 50), 1, TEST_TIMEOUT / 2);
    let result = run(&spec);
    assert_all_answered(&result, &server);
    assert_eq!(result.requests.completed, 50);
}

#[test]
fn each_request_can_have_a_connection_of_its_own() {
    let authority = Authority::new();
    let server = serve(&authority, answer);
    let mut spec = spec(&server.url(), &authority);
    spec.protocol = spec.protocol.with_one_stream();
    spec.opening.per_request = true;
    let result = run(&spec);
    assert_all_answered(&result, &server);
    assert!(result.handshake_time_us.count >= result.requests.completed, "{:?}", result.handshake_time_us);
}

#[test]
fn sessions_are_resumed_on_request() {
    let authority = Authority::new();
    for resumed_servers in [0, 1] {
        let server = serve(&authority, answer);
        let mut spec = spec(&server.url(), &authority);
        spec.tls = Some(tls(&Verification::Authorities(authority.file()), None, resumed_servers));
        spec.requests_per_connection = NonZeroU64::new(5);
        let result = run(&spec);
        assert_all_answered(&result, &server);
        let sessions = &result.tls_sessions;
        let resumed = sessions.keys().any(|session| session.contains("resumed"));
        assert_eq!(resumed, resumed_servers > 0, "{sessions:?}");
    }
}

#[test]
fn refused_certificates_are_named() {
    let authority = Authority::new();
    let server = serve(&authority, answer);
    let other = Authority::named("another authority");
    assert_unreachable(&run(&spec(&server.url(), &other)), "certificate-untrusted");
    let of_another_name = config(&authority.issue("shop.example", 2020, 2100), &TLS13, None);
    let server = Http3Server::start(of_another_name, 100, answer);
    assert_unreachable(&run(&spec(&server.url(), &authority)), "certificate-name");
}

#[test]
fn missing_client_certificate_is_named() {
    let authority = Authority::new();
    let server = Http3Server::start(config(&authority.issue_usual(), &TLS13, Some(&authority)), 100, answer);
    let result = run(&spec(&server.url(), &authority));
    assert!(result.requests.errors.contains_key("client-certificate"), "{:?}", result.requests);
    assert_eq!(result.requests.completed, 0);
}

#[test]
fn server_of_another_protocol_is_named() {
    let authority = Authority::new();
    let mut tls = config(&authority.issue_usual(), &TLS13, None);
    tls.alpn_protocols = vec![b"doq".to_vec()];
    let server = Http3Server::start(tls, 100, answer);
    assert_unreachable(&run(&spec(&server.url(), &authority)), "alpn-refused");
}

#[test]
fn ports_without_a_server_are_named() {
    let authority = Authority::new();
    // Bound, and never read.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", silent.local_addr().unwrap());
    assert_unreachable(&run(&LoadSpec { timeout: TIMEOUT, ..spec(&url, &authority) }), "handshake-timeout");
    drop(silent);
    assert_unreachable(&run(&spec(&url, &authority)), "connect-refused");
}

#[test]
fn failures_of_single_requests_are_named() {
    let authority = Authority::new();
    for (code, kind) in
        [(ErrorCode::RequestCancelled, "stream-reset"), (ErrorCode::RequestRejected, "stream-refused")]
    {
        let server = serve(&authority, move |link: &mut Link, id: u64, count: u64| match count % 2 {
            0 => link.reset(id, code as u64),
            _ => answer(link, id, count),
        });
        let result = run(&spec(&server.url(), &authority));
        assert_failed(&result, kind);
        assert!(result.requests.completed > 0, "the others go on: {:?}", result.requests);
        assert_eq!(result.handshake_time_us.count, 2, "on the same connections");
    }
}

#[test]
fn unanswered_requests_time_out_alone() {
    let authority = Authority::new();
    let server = serve(&authority, |link: &mut Link, id: u64, count: u64| {
        if count % 10 != 3 {
            answer(link, id, count);
        }
    });
    let mut spec = spec(&server.url(), &authority);
    (spec.timeout, spec.duration) = (TIMEOUT, 2 * TIMEOUT);
    spec.schedule = specs::open_loop(50.0, spec.duration);
    spec.protocol = Protocol::Http3 { streams: 100 };
    let result = run(&spec);
    assert_failed(&result, "timeout");
    assert!(result.requests.completed > 0, "{:?}", result.requests);
}

/// A server whose control stream is what `connected` makes of it.
struct Violating<F>(F);

impl<F: FnMut(&mut Link) + Send + 'static> Behaviour for Violating<F> {
    fn connected(&mut self, _: &mut Link) {}

    fn request(&mut self, link: &mut Link, _: u64, _: u64) {
        (self.0)(link);
    }
}

fn control_stream(bytes: &'static [u8], ends: bool) -> impl FnMut(&mut Link) + Send {
    move |link| {
        if let Some(id) = link.open_unidirectional() {
            link.send(id, bytes.into(), ends);
        }
    }
}

#[test]
fn violations_of_the_connection_are_named() {
    let authority = Authority::new();
    let tls = || config(&authority.issue_usual(), &TLS13, None);
    for (bytes, ends, kind) in [
        (&[0, 7, 1, 0][..], false, "http3-settings"),
        (&[0, 4, 0], true, "http3-control-closed"),
        (&[0, 4, 0, 0, 0], false, "http3-protocol"),
        (&[0, 4, 1, 6], false, "http3-frame"),
        (&[2, 0x3f, 0xe1, 0x1f], false, "http3-compression"),
    ] {
        let server = Http3Server::start(tls(), 100, Violating(control_stream(bytes, ends)));
        let result = run(&LoadSpec { timeout: TIMEOUT, ..spec(&server.url(), &authority) });
        assert!(result.requests.errors.contains_key(kind), "{kind}: {:?}", result.requests);
        assert_eq!(result.requests.completed, 0);
    }
}

#[test]
fn errors_of_the_server_are_named() {
    let authority = Authority::new();
    for (code, kind) in [(ErrorCode::ExcessiveLoad, "quic-closed"), (ErrorCode::None, "closed")] {
        let close = move |link: &mut Link| link.close(code as u64, Instant::now());
        let tls = config(&authority.issue_usual(), &TLS13, None);
        let server = Http3Server::start(tls, 100, Violating(close));
        assert_failed(&run(&spec(&server.url(), &authority)), kind);
    }
}

#[test]
fn requests_that_a_server_did_not_see_before_goaway_are_named() {
    let authority = Authority::new();
    let server = serve(&authority, GoingAway(3));
    let mut spec = spec(&server.url(), &authority);
    spec.connections = 1;
    let result = run(&spec);
    assert!(result.requests.completed > 0, "{:?}", result.requests);
    assert!(result.requests.errors.keys().all(|kind| kind == "goaway"), "{:?}", result.requests);
    assert!(result.handshake_time_us.count > 1, "another connection takes over");
}

/// Sends GOAWAY on the server's control stream with each request whose number has this divisor.
struct GoingAway(u64);

impl Behaviour for GoingAway {
    fn request(&mut self, link: &mut Link, id: u64, count: u64) {
        if count.is_multiple_of(self.0) {
            let mut frame = Vec::new();
            http3::control::push_goaway(id + 4, &mut frame);
            // The first stream of a server for itself.
            link.send(3, frame.into(), false);
        }
        answer(link, id, count);
    }
}

#[test]
fn server_that_goes_away_is_noticed_and_found_again() {
    let authority = Authority::new();
    let mut server = Some(serve(&authority, answer));
    let address = server.as_ref().unwrap().address;
    let mut spec = spec(&format!("https://{address}/"), &authority);
    (spec.duration, spec.timeout) = (2 * TIMEOUT, TIMEOUT);
    spec.schedule = specs::open_loop(100.0, spec.duration);
    let requests = std::sync::Arc::clone(&server.as_ref().unwrap().requests);
    let killer = std::thread::spawn(move || {
        while requests.load(Ordering::SeqCst) < 20 {
            std::thread::sleep(Duration::from_millis(1));
        }
        server.take();
    });
    let result = run(&spec);
    killer.join().unwrap();
    let errors = &result.requests.errors;
    assert!(result.requests.completed >= 20, "{:?}", result.requests);
    assert!(errors.contains_key("connect-refused"), "{errors:?}");
    assert!(errors.keys().all(|kind| ["reset", "connect-refused"].contains(&kind.as_str())), "{errors:?}");
}
