//! HTTP/1.1 over TLS against real servers on loopback: conforming ones, and all the ways in which a handshake
//! or a session can fail.

mod specs;
mod tls_servers;

use http::Method;
use load::{
    ClientIdentity, Handshakes, LoadSpec, RequestTemplate, ScheduleSpec, ThinkTime, TlsClient, TlsVersion,
    Verification,
};
use results::{LoadResult, Pacing};
use rustls::version::{TLS12, TLS13};
use specs::{NETWORK, TEST_TIMEOUT};
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::num::NonZeroU64;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tls_servers::{Authority, Then, TlsServer, TlsStream, config, finish, reply};

/// A complete response with a body of two bytes.
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
/// On a busy machine threads stall for half a second.
const DURATION: Duration = Duration::from_secs(1);
/// Due at 100 requests/s.
const REQUESTS: u64 = 100;
const CONNECTIONS: u64 = 4;

fn trusting(authority: &Authority) -> Verification {
    Verification::Authorities(authority.file())
}

fn spec(
    urls: &[String],
    template: &RequestTemplate,
    verification: &Verification,
    identity: Option<&ClientIdentity>,
) -> LoadSpec {
    LoadSpec {
        connections: CONNECTIONS as usize,
        tls: Some(
            TlsClient::new(verification, identity.map_or(&[], std::slice::from_ref), Handshakes::default())
                .expect("usable TLS"),
        ),
        network: NETWORK,
        ..specs::spec(urls, template, specs::open_loop(100.0, DURATION), DURATION)
    }
}

fn run(spec: &LoadSpec) -> LoadResult {
    let started = Instant::now();
    let result = specs::run(spec);
    assert!(started.elapsed() < TEST_TIMEOUT, "nothing hangs: {:?}", started.elapsed());
    result
}

fn run_on(server: &TlsServer, verification: &Verification) -> LoadResult {
    run(&spec(&[server.url()], &RequestTemplate::default(), verification, None))
}

/// Asserts that every sent request was answered, and that the server counted the same number. On a busy
/// machine the last due requests may not have been sent.
fn assert_all_answered(result: &LoadResult, server: &TlsServer) {
    let requests = &result.requests;
    assert_eq!(requests.completed + requests.unsent, REQUESTS, "{requests:?}");
    assert!(requests.completed > 0, "{requests:?}");
    assert!(requests.errors.is_empty(), "{requests:?}");
    assert_eq!(server.requests.load(Ordering::SeqCst), requests.completed);
}

/// Asserts that no connection could be opened, all for this reason, and that the run ended at once.
fn assert_unreachable(result: &LoadResult, kind: &str) {
    assert_eq!(result.requests.scheduled, 0, "{kind}: {:?}", result.requests);
    let of_kind = result.requests.errors.get(kind).copied().unwrap_or_default();
    assert!(of_kind >= CONNECTIONS, "{kind}: {:?}", result.requests.errors);
    assert_eq!(result.requests.errors.len(), 1, "{kind}: {:?}", result.requests.errors);
    assert!(result.verdict.reasons[0].starts_with("unreachable:"), "{:?}", result.verdict);
}

fn answer(stream: &mut TlsStream, _: u64) -> Then {
    reply(stream, OK);
    Then::GoOn
}

#[test]
fn tls12_and_tls13_requests_are_counted_equally_by_both_sides() {
    let authority = Authority::new();
    for version in [&TLS12, &TLS13] {
        let server = TlsServer::start(config(&authority.issue_usual(), version, None), answer);
        let result = run_on(&server, &trusting(&authority));
        assert_all_answered(&result, &server);
        // Plaintext bytes are counted, not records.
        assert_eq!(result.bytes.received, result.requests.completed * OK.len() as u64);
        assert_eq!(result.connect_time_us.count, CONNECTIONS);
        assert_eq!(result.handshake_time_us.count, CONNECTIONS);
        assert!(result.handshake_time_us.min > 0.0);
    }
}

/// Number of sessions with this text in their name.
fn sessions(result: &LoadResult, of: &str) -> u64 {
    result.tls_sessions.iter().filter(|(name, _)| name.contains(of)).map(|(_, count)| count).sum()
}

#[test]
fn sessions_are_resumed_only_on_request_and_counted_separately() {
    let authority = Authority::new();
    for (version, name) in [(&TLS12, "TLSv1_2"), (&TLS13, "TLSv1_3")] {
        let server = TlsServer::start(config(&authority.issue_usual(), version, None), answer);
        for resumed_servers in [0, 1] {
            let mut spec = spec(&[server.url()], &RequestTemplate::default(), &trusting(&authority), None);
            (spec.connections, spec.requests_per_connection) = (1, NonZeroU64::new(1));
            spec.schedule =
                ScheduleSpec::Closed { clients: 1, think_time: ThinkTime::NONE, requests: Some(20) };
            spec.duration = TEST_TIMEOUT;
            let handshakes = Handshakes { version: None, resumed_servers };
            spec.tls = Some(TlsClient::new(&trusting(&authority), &[], handshakes).expect("usable TLS"));
            let result = run(&spec);
            assert_eq!(result.requests.completed, 20, "{:?}", result.requests);
            let (all, resumed) = (sessions(&result, name), sessions(&result, "resumed"));
            // The last connection may or may not be reopened.
            assert!((20..=21).contains(&all), "{:?}", result.tls_sessions);
            assert_eq!(resumed, if resumed_servers == 0 { 0 } else { all - 1 }, "{:?}", result.tls_sessions);
            assert_eq!(result.tls_server_keys, [("ECDSA P-256".to_owned(), all)].into());
        }
    }
}

#[test]
fn requested_version_is_the_only_one_offered() {
    let authority = Authority::new();
    let with_version = |server: &TlsServer, version| {
        let mut spec = spec(&[server.url()], &RequestTemplate::default(), &trusting(&authority), None);
        let handshakes = Handshakes { version: Some(version), ..Handshakes::default() };
        spec.tls = Some(TlsClient::new(&trusting(&authority), &[], handshakes).expect("usable TLS"));
        run(&spec)
    };
    let server = TlsServer::start(config(&authority.issue_usual(), &TLS12, None), answer);
    let result = with_version(&server, TlsVersion::V1_2);
    assert_eq!(sessions(&result, "TLSv1_2"), CONNECTIONS);
    assert_unreachable(&with_version(&server, TlsVersion::V1_3), "tls-alert");
}

#[test]
fn untrusted_certificates_are_distinguished_and_accepted_only_on_request() {
    let (authority, stranger) = (Authority::new(), Authority::named("a stranger"));
    for (identity, kind) in [
        (authority.issue("127.0.0.1", 2001, 2002), "certificate-expired"),
        (authority.issue("127.0.0.1", 2090, 2099), "certificate-expired"),
        (authority.issue("elsewhere.example", 2020, 2100), "certificate-name"),
        (stranger.issue_usual(), "certificate-untrusted"),
        (Authority::new().issue_usual(), "certificate-untrusted"),
    ] {
        let server = TlsServer::start(config(&identity, &TLS13, None), answer);
        assert_unreachable(&run_on(&server, &trusting(&authority)), kind);
        assert_eq!(server.requests.load(Ordering::SeqCst), 0);
        assert_all_answered(&run_on(&server, &Verification::Off), &server);
    }
}

#[test]
fn requested_server_name_is_verified() {
    let authority = Authority::new();
    let shop = authority.issue("shop.example", 2020, 2100);
    let server = TlsServer::start(config(&shop, &TLS13, None), |stream, _| {
        assert_eq!(stream.conn.server_name(), Some("shop.example"));
        answer(stream, 0)
    });
    let asking_for = |name: &str| {
        let template = RequestTemplate { sni: Some(name.to_owned()), ..RequestTemplate::default() };
        run(&spec(&[server.url()], &template, &trusting(&authority), None))
    };
    assert_all_answered(&asking_for("shop.example"), &server);
    assert_unreachable(&asking_for("other.example"), "certificate-name");
}

#[test]
fn servers_requiring_client_certificate_get_it_or_reject_before_run() {
    let (authority, stranger) = (Authority::new(), Authority::named("a stranger"));
    let identity = |from: &Authority| {
        let issued = from.issue("client.example", 2020, 2100);
        ClientIdentity { certificate: issued.certificate_file, key: issued.key_file }
    };
    for version in [&TLS12, &TLS13] {
        let config = || config(&authority.issue_usual(), version, Some(&authority));
        let showing = |server: &TlsServer, identity: Option<&ClientIdentity>| {
            run(&spec(&[server.url()], &RequestTemplate::default(), &trusting(&authority), identity))
        };
        let server = TlsServer::start(config(), answer);
        for shown in [None, Some(&identity(&stranger))] {
            let refused = showing(&server, shown);
            // With TLS 1.3 the rejection comes after the client's handshake: usually while a late rejection
            // is awaited, from a busy machine's server later than that.
            if version.version == rustls::ProtocolVersion::TLSv1_2 || refused.requests.scheduled == 0 {
                assert_unreachable(&refused, "client-certificate");
            }
            assert_eq!((refused.requests.completed, refused.verdict.valid), (0, false), "{refused:?}");
            let kinds: Vec<&String> = refused.requests.errors.keys().collect();
            assert_eq!(kinds, ["client-certificate"], "{:?}", refused.requests);
        }
        assert_all_answered(&showing(&server, Some(&identity(&authority))), &server);
    }
}

#[test]
fn connections_present_their_certificates_in_turn_over_all_threads() {
    let authority = Authority::new();
    let identities: Vec<ClientIdentity> = (1..=3)
        .map(|number| authority.issue(&format!("client-{number}"), 2020, 2100))
        .map(|issued| ClientIdentity { certificate: issued.certificate_file, key: issued.key_file })
        .collect();
    let presented = Arc::new(Mutex::new(BTreeMap::new()));
    let seen = Arc::clone(&presented);
    let server = TlsServer::start(
        config(&authority.issue_usual(), &TLS13, Some(&authority)),
        move |stream, ordinal| {
            let certificate = stream.conn.peer_certificates().expect("it is required")[0].to_vec();
            if ordinal == 0 {
                *seen.lock().expect("no panic").entry(certificate).or_insert(0) += 1;
            }
            answer(stream, ordinal)
        },
    );
    let mut spec = spec(&[server.url()], &RequestTemplate::default(), &trusting(&authority), None);
    spec.tls =
        Some(TlsClient::new(&trusting(&authority), &identities, Handshakes::default()).expect("usable"));
    (spec.threads, spec.connections) = (2, 4);
    spec.schedule = specs::so_many(4, 60);
    spec.opening.per_request = true;
    let result = run(&spec);
    assert_eq!(result.requests.completed, 60, "{:?}", result.requests);
    assert_eq!(result.connection_settings.and_then(|settings| settings.client_certificates), Some(3));
    let presented = presented.lock().expect("no panic");
    assert_eq!((presented.len(), presented.values().sum::<u64>()), (3, 60), "{:?}", presented.values());
    // Each of the two threads takes its own turns, and how many requests each sends is not fixed.
    assert!(presented.values().all(|count| (18..=22).contains(count)), "{:?}", presented.values());
}

#[test]
fn non_tls_server_ends_run_at_once() {
    type Behaviour = fn(TcpStream);
    /// Reads something, sends `bytes`, and closes.
    fn say(mut stream: TcpStream, bytes: &[u8]) {
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(bytes);
        finish(&mut stream);
    }
    let cases: [(&str, Behaviour); 7] = [
        ("tls-handshake", |stream| say(stream, b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")),
        ("tls-handshake", |stream| say(stream, b"")),
        ("tls-handshake", drop),
        ("tls-handshake", |stream| say(stream, &[0xff; 70_000])),
        // The beginning of a record, and the beginning of a handshake message in a complete record.
        ("tls-handshake", |stream| say(stream, b"\x16\x03\x03\x00\x7a\x02\x00")),
        ("tls-handshake", |stream| say(stream, b"\x16\x03\x03\x00\x05\x02\x00\x00\x70\x03")),
        ("handshake-timeout", |mut stream| {
            let _ = stream.read_to_end(&mut Vec::new());
        }),
    ];
    for (kind, behaviour) in cases {
        let server = TlsServer::start_plain(behaviour);
        let mut spec = spec(&[server.url()], &RequestTemplate::default(), &Verification::Off, None);
        if kind == "handshake-timeout" {
            spec.timeout = Duration::from_millis(500);
        }
        assert_unreachable(&run(&spec), kind);
    }
}

#[test]
fn truncated_or_corrupted_handshake_fails() {
    let authority = Authority::new();
    let behind = TlsServer::start(config(&authority.issue_usual(), &TLS13, None), answer);
    let address = behind.address;
    // Forwards the server's first bytes, and then something else.
    let relay = |length: usize, flip: bool| {
        TlsServer::start_plain(move |mut stream| {
            let mut server = TcpStream::connect(address).expect("it listens");
            let mut hello = [0; 4096];
            let read = stream.read(&mut hello).unwrap_or(0);
            let _ = server.write_all(&hello[..read]);
            let mut flight = vec![0; length];
            if server.read_exact(&mut flight).is_ok() {
                if flip {
                    flight[length - 1] ^= 1;
                }
                let _ = stream.write_all(&flight);
            }
            finish(&mut stream);
        })
    };
    for length in [1, 5, 60, 127, 140, 400] {
        assert_unreachable(&run_on(&relay(length, false), &trusting(&authority)), "tls-handshake");
    }
    // Within the encrypted extensions, which no longer decrypt: the record is complete only after more bytes.
    assert_unreachable(&run_on(&relay(400, true), &trusting(&authority)), "tls-handshake");
}

#[test]
fn records_arriving_byte_by_byte_are_reassembled() {
    let authority = Authority::new();
    let behind = TlsServer::start(config(&authority.issue_usual(), &TLS13, None), answer);
    let address = behind.address;
    let relay = TlsServer::start_plain(move |mut client| {
        let mut server = TcpStream::connect(address).expect("it listens");
        let (mut from_server, mut to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
        std::thread::spawn(move || {
            let mut byte = [0];
            // Separate segments, because the connection does not delay writes.
            while from_server.read_exact(&mut byte).is_ok() && to_client.write_all(&byte).is_ok() {}
        });
        let _ = std::io::copy(&mut client, &mut server);
        finish(&mut server);
    });
    let result = run_on(&relay, &trusting(&authority));
    assert_all_answered(&result, &behind);
}

#[test]
fn server_without_alpn_protocol_is_reported() {
    let authority = Authority::new();
    let mut config = config(&authority.issue_usual(), &TLS13, None);
    config.alpn_protocols = vec![b"h2".to_vec()];
    let server = TlsServer::start(config, answer);
    assert_unreachable(&run_on(&server, &trusting(&authority)), "alpn-refused");
}

#[test]
fn body_ending_with_connection_is_complete_only_with_close_notify() {
    let authority = Authority::new();
    let endless = b"HTTP/1.1 200 OK\r\n\r\nas long as it lasts";
    for version in [&TLS12, &TLS13] {
        let config = || config(&authority.issue_usual(), version, None);
        let signed = TlsServer::start(config(), |stream, _| {
            reply(stream, endless);
            Then::Close
        });
        assert_all_answered(&run_on(&signed, &trusting(&authority)), &signed);

        let cut = TlsServer::start(config(), |stream, _| {
            reply(stream, endless);
            Then::Truncate
        });
        let result = run_on(&cut, &trusting(&authority));
        assert_eq!(result.requests.completed, 0, "{:?}", result.requests);
        assert_eq!(result.requests.errors["closed"], result.requests.failed);
        assert_eq!(cut.requests.load(Ordering::SeqCst), result.requests.sent);

        // A content length proves completeness just as a close_notify does.
        let counted = TlsServer::start(config(), |stream, _| {
            reply(stream, OK);
            Then::Truncate
        });
        let result = run_on(&counted, &trusting(&authority));
        // A request may be sent before the end of its connection is noticed: the server never reads that one.
        let read = counted.requests.load(Ordering::SeqCst);
        assert!(
            (result.requests.completed..=result.requests.sent).contains(&read),
            "{read}: {:?}",
            result.requests
        );
        assert!(result.requests.completed > 0, "{:?}", result.requests);
        assert!(result.handshake_time_us.count >= result.requests.completed, "each handshake is a full one");
    }
}

#[test]
fn key_updates_and_tickets_do_not_disturb() {
    let authority = Authority::new();
    let mut config = config(&authority.issue_usual(), &TLS13, None);
    config.send_tls13_tickets = 8;
    let server = TlsServer::start(config, |stream, _| {
        stream.conn.refresh_traffic_keys().expect("the handshake is over");
        answer(stream, 0)
    });
    assert_all_answered(&run_on(&server, &trusting(&authority)), &server);
}

#[test]
fn bodies_of_any_size_pass_in_records_of_any_size() {
    let authority = Authority::new();
    let large = [b"HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n".as_slice(), &[b'y'; 300_000]].concat();
    let server = TlsServer::start(config(&authority.issue_usual(), &TLS13, None), move |stream, ordinal| {
        if ordinal % 2 == 0 {
            reply(stream, &large);
        } else {
            OK.iter().for_each(|byte| reply(stream, &[*byte]));
        }
        Then::GoOn
    });
    let template = RequestTemplate {
        method: Method::POST,
        body: vec![b'x'; 600_000].into(),
        ..RequestTemplate::default()
    };
    let mut spec = spec(&[server.url()], &template, &trusting(&authority), None);
    // The test server reads byte by byte.
    spec.schedule = ScheduleSpec::Closed { clients: 4, think_time: ThinkTime::NONE, requests: Some(8) };
    spec.duration = TEST_TIMEOUT;
    let result = run(&spec);
    assert_eq!(result.requests.completed, 8, "{:?}", result.requests);
    assert!(result.requests.errors.is_empty(), "{:?}", result.requests.errors);
    assert_eq!(result.requests.completed, server.requests.load(Ordering::SeqCst));
    assert!(result.bytes.received > 600_000);
}

#[test]
fn late_reading_over_tls_is_in_no_time_of_a_closed_loop_and_delays_its_clients() {
    // One thread reads for many clients.
    const CLIENTS: usize = 32;
    let authority = Authority::new();
    let server = TlsServer::start(config(&authority.issue_usual(), &TLS13, None), answer);
    let result = run(&LoadSpec {
        connections: CLIENTS,
        pacing: Pacing::Economical,
        schedule: ScheduleSpec::closed(CLIENTS),
        ..spec(&[server.url()], &RequestTemplate::default(), &trusting(&authority), None)
    });
    specs::assert_reading_is_in_no_time(&result, CLIENTS);
}

#[test]
fn garbage_after_handshake_is_tls_protocol_error() {
    let authority = Authority::new();
    let server = TlsServer::start(config(&authority.issue_usual(), &TLS13, None), |stream, _| {
        let _ = stream.sock.write_all(&[0x17, 3, 3, 0, 40]).and_then(|()| stream.sock.write_all(&[7; 40]));
        Then::Truncate
    });
    let result = run_on(&server, &trusting(&authority));
    assert_eq!(result.requests.errors["tls-protocol"], result.requests.failed, "{:?}", result.requests);
    assert!(result.requests.failed > 0);
    assert_eq!(server.requests.load(Ordering::SeqCst), result.requests.sent);
}

#[test]
fn run_may_mix_plain_and_tls_servers() {
    let authority = Authority::new();
    let plain = TlsServer::start_plain(|mut stream| {
        let mut request = [0; 4096];
        while stream.read(&mut request).is_ok_and(|read| read > 0) && stream.write_all(OK).is_ok() {}
    });
    let server = TlsServer::start(config(&authority.issue_usual(), &TLS13, None), answer);
    let urls = [format!("http://{}/", plain.address), server.url()];
    let result = run(&spec(&urls, &RequestTemplate::default(), &trusting(&authority), None));
    assert_eq!(result.requests.completed + result.requests.unsent, REQUESTS, "{:?}", result.requests);
    assert!(result.requests.errors.is_empty(), "{:?}", result.requests.errors);
    assert_eq!(result.connect_time_us.count, CONNECTIONS);
    assert_eq!(result.handshake_time_us.count, CONNECTIONS / 2);
    let over_tls = server.requests.load(Ordering::SeqCst);
    assert!((1..result.requests.completed).contains(&over_tls), "{over_tls}");
}

#[test]
fn invalid_certificate_files_are_named_in_errors() {
    let authority = Authority::new();
    let usual = authority.issue_usual();
    let other = authority.issue("other.example", 2020, 2100);
    let empty = authority.folder().join("empty.pem");
    std::fs::write(&empty, "no certificate here\n").unwrap();
    let identity = |certificate: &std::path::Path, key: &std::path::Path| ClientIdentity {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
    };
    let trusted = Verification::Authorities;
    for (verification, identity, expected) in [
        (trusted("/does/not/exist".into()), None, "read the certificates in `/does/not/exist`"),
        (trusted(empty.clone()), None, "there is no certificate in `"),
        (trusted("/dev/zero".into()), None, "read the certificates in `/dev/zero`"),
        (Verification::Off, Some(identity(&usual.certificate_file, &empty)), "there is no private key in `"),
        (Verification::Off, Some(identity(&usual.key_file, &usual.key_file)), "there is no certificate in `"),
        (
            Verification::Off,
            Some(identity(&usual.certificate_file, &other.key_file)),
            "use the certificate in `",
        ),
    ] {
        let error = TlsClient::new(&verification, identity.as_slice(), Handshakes::default())
            .unwrap_err()
            .to_string();
        assert!(error.starts_with(expected), "{error}, expected {expected}");
    }
}
