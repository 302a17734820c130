//! Servers that violate the protocol, refuse or close connections, or do not exist.

use super::*;
use std::collections::BTreeMap;

#[test]
fn http1_server_faults_are_counted_by_kind() {
    type Behaviour = fn(&mut std::net::TcpStream, u64) -> bool;
    let cases: [(&str, Behaviour); 7] = [
        ("malformed-response", |stream, _| reply(stream, b"SSH-2.0-OpenSSH_9.2\r\n")),
        ("tls-response", |stream, _| reply(stream, b"\x15\x03\x01\x00\x02\x02\x46")),
        ("closed", |stream, _| {
            reply(stream, b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhal");
            false
        }),
        ("closed", |_, _| false),
        ("timeout", |_, _| true),
        ("head-too-large", |stream, _| {
            reply(stream, b"HTTP/1.1 200 OK\r\nA: b\r\n")
                && reply(stream, &b"A: bcdefghijkl\r\n".repeat(30_000))
        }),
        ("timeout", |stream, _| reply(stream, b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhal")),
    ];
    for (kind, behaviour) in cases {
        let server = TestServer::start(behaviour);
        let mut spec = usual(&server.url());
        spec.schedule = so_many(4, 12);
        if kind == "timeout" {
            // Connections open within it on a machine that stalls for seconds.
            (spec.timeout, spec.schedule) = (Duration::from_secs(4), so_many(4, 4));
        }
        let started = Instant::now();
        let result = run(&spec);
        assert!(started.elapsed() < TEST_TIMEOUT, "{kind}: nothing hangs");
        assert!(result.requests.sent >= 4, "{kind}: {:?}", result.requests);
        assert_eq!(result.requests.failed, result.requests.sent, "{kind}: {:?}", result.requests);
        assert_eq!(
            result.requests.errors.get(kind),
            Some(&result.requests.failed),
            "{kind}: {:?}",
            result.requests
        );
        assert_eq!(server.await_requests(result.requests.sent), result.requests.sent, "{kind}");
        assert!(!result.verdict.valid);
    }
}

#[test]
fn failures_of_the_warm_up_are_apart_from_those_of_the_window() {
    // The first requests get no response, however many of them are of the warm-up.
    const DROPPED: u64 = 8;
    let received = AtomicU64::new(0);
    let server = TestServer::start(move |stream, _| {
        received.fetch_add(1, Ordering::SeqCst) >= DROPPED && reply(stream, OK)
    });
    let mut load = open_spec(&server.url(), 100.0, Duration::from_millis(400));
    load.warmup = Duration::from_secs(1);
    let LoadResult { requests, warmup, verdict, .. } = run(&load);
    let of = |errors: &BTreeMap<String, u64>| errors.values().sum::<u64>();
    assert_eq!((of(&warmup.errors), of(&requests.errors)), (warmup.failed, requests.failed), "{requests:?}");
    // A machine that stalls through all of it leaves fewer to be dropped.
    let dropped = DROPPED.min(warmup.sent + requests.sent);
    assert_eq!(warmup.failed + requests.failed, dropped, "{warmup:?}");
    let is_named = verdict.reasons.iter().chain(&verdict.notes).any(|text| text.starts_with("errors: "));
    assert_eq!(is_named, requests.failed > 0, "{verdict:?}");
}

#[test]
fn connection_with_unread_request_is_not_reused() {
    // Only the head is read; the bodies of the requests would pile up.
    let server = TestServer::start(|stream, _| {
        reply(stream, OK);
        std::thread::sleep(Duration::from_secs(1));
        false
    });
    let template = RequestTemplate {
        method: Method::POST,
        body: vec![b'x'; 16 << 20].into(),
        ..RequestTemplate::default()
    };
    let mut spec = spec(&server.url(), so_many(1, 3), TEST_TIMEOUT);
    spec.targets = load::resolve(&spec.urls, &template).unwrap();
    spec.connections = 1;
    let result = run(&spec);
    assert_eq!(result.requests.completed, 3, "{:?}", result.requests);
    assert_eq!(result.connect_time_us.count, 3, "{:?}", result.requests);
}

#[test]
fn surplus_bytes_are_counted_and_response_stays_valid() {
    let server = TestServer::start(|stream, _| reply(stream, &[OK, b"surplus"].concat()));
    let result = run(&usual(&server.url()));
    assert_all_answered(&result);
    assert_eq!(result.requests.errors["surplus-bytes"], result.requests.completed);
}

#[test]
fn connections_closed_by_server_are_reopened() {
    let closing = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
    let server = TestServer::start(move |stream, _| {
        reply(stream, closing);
        false
    });
    let result = run(&usual(&server.url()));
    assert_all_answered(&result);
    assert!(result.requests.errors.is_empty(), "{:?}", result.requests.errors);
    assert!(result.connect_time_us.count >= result.requests.completed);
}

#[test]
fn body_ending_with_connection_is_complete() {
    let server = TestServer::start(|stream, _| {
        reply(stream, b"HTTP/1.1 200 OK\r\n\r\nas long as it lasts");
        false
    });
    let result = run(&usual(&server.url()));
    assert_all_answered(&result);
}

#[test]
fn error_statuses_complete_and_make_the_result_invalid() {
    let server = TestServer::start(|stream, ordinal| {
        let busy = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n";
        reply(stream, if ordinal.is_multiple_of(2) { busy } else { OK })
    });
    let result = run(&usual(&server.url()));
    assert_all_answered(&result);
    // On each of four connections every other one, starting with the first.
    let (busy, good) = (result.requests.status["503"], result.requests.status["200"]);
    assert_eq!(busy + good, result.requests.completed);
    assert!((good..=good + 4).contains(&busy), "{busy} and {good}");
    assert!(
        result.verdict.reasons.iter().any(|reason| reason.starts_with("errors:")),
        "{:?}",
        result.verdict
    );
}

#[test]
fn statuses_are_errors_if_they_are_not_expected() {
    let server = TestServer::start(|stream, ordinal| {
        let moved = b"HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n";
        let missing = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
        reply(stream, if ordinal.is_multiple_of(2) { moved } else { missing })
    });
    let run = |expected: &[&str]| {
        let patterns = expected.iter().map(|text| text.parse().unwrap()).collect();
        let expected_status = ExpectedStatuses::new(patterns);
        run(&LoadSpec { expected_status, ..usual(&server.url()) })
    };
    let noted = |result: &LoadResult| result.verdict.notes.iter().any(|note| note.starts_with("redirects: "));
    let reason = |result: &LoadResult| {
        result.verdict.reasons.iter().find(|reason| reason.starts_with("errors: ")).cloned()
    };

    let untold = run(&[]);
    let (moved, missing) = (untold.requests.status["302"], untold.requests.status["404"]);
    assert_eq!(untold.requests.error_statuses(), missing);
    assert!(reason(&untold).unwrap().ends_with(&format!("(status 404: {missing})")), "{:?}", untold.verdict);
    assert!(noted(&untold) && moved > 0, "{:?}", untold.verdict);
    assert_eq!((untold.expected_status, untold.requests.unexpected_status), (None, None));

    let strict = run(&["200"]);
    assert_all_answered(&strict);
    assert_eq!(strict.requests.error_fraction(), 1.0);
    assert_eq!(strict.requests.unexpected_status.as_ref(), Some(&strict.requests.status));
    assert!(reason(&strict).unwrap().contains("unexpected status 302: "), "{:?}", strict.verdict);
    assert!(!noted(&strict), "{:?}", strict.verdict);

    let lenient = run(&["3xx", "404"]);
    assert_eq!(lenient.requests.error_fraction(), 0.0);
    assert_eq!(lenient.requests.unexpected_status.as_ref().map(|statuses| statuses.len()), Some(0));
    assert_eq!(reason(&lenient), None);
    assert!(!noted(&lenient), "{:?}", lenient.verdict);
}

#[test]
fn closed_port_ends_run_at_once() {
    let started = Instant::now();
    let result = run(&open_spec(&format!("http://{NOBODY}/"), 100.0, Duration::from_secs(30)));
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    assert_eq!(result.requests.errors["connect-refused"], 4);
    assert!(result.verdict.reasons[0].starts_with("unreachable:"), "{:?}", result.verdict);
}

#[test]
fn address_without_route_is_reported() {
    // TEST-NET-1 (RFC 5737) in a separate network namespace would be rejected by routing; 240.0.0.0/4 is
    // rejected by any kernel.
    let result = run(&usual("http://255.255.255.255:80/"));
    let errors = &result.requests.errors;
    assert!(
        errors.contains_key("connect-unreachable") || errors.contains_key("connect-failed"),
        "{errors:?}"
    );
}

#[test]
fn dead_address_among_several_costs_attempt_but_no_request() {
    let server = TestServer::start(|stream, _| reply(stream, OK));
    let mut spec = usual(&server.url());
    spec.targets.servers[0].addresses.insert(0, Address::Ip(NOBODY.parse().unwrap()));
    let result = run(&spec);
    assert_all_answered(&result);
    assert!(result.requests.errors.is_empty(), "{:?}", result.requests.errors);
    // Every second connection begins with it.
    let note = "addresses: 2 connections fell back to another address of the name; at the first, ";
    assert!(result.verdict.notes.iter().any(|text| text.starts_with(note)), "{:?}", result.verdict.notes);
}

#[test]
fn connection_is_closed_after_its_number_of_requests() {
    let server = TestServer::start(|stream, ordinal| ordinal < 5 && reply(stream, OK));
    let mut spec = usual(&server.url());
    spec.requests_per_connection = NonZeroU64::new(5);
    let result = run(&spec);
    // The server would close a connection with a sixth request without responding.
    assert_all_answered(&result);
    assert!(result.connect_time_us.count >= result.requests.completed / 5, "{:?}", result.connect_time_us);
}

#[test]
fn interrupted_warm_up_is_not_unreachable_server() {
    let server = TestServer::start(|_, _| true);
    let stop = AtomicBool::new(false);
    /// Stops the run as soon as it has started.
    struct StopWarmUp<'a>(&'a AtomicBool);
    impl Observer for StopWarmUp<'_> {
        fn progress(&mut self, progress: Progress<'_>) {
            if let Progress::WarmingUp = progress {
                self.0.store(true, Ordering::SeqCst);
            }
        }
    }
    let mut spec = open_spec(&server.url(), 100.0, WINDOW);
    spec.warmup = Duration::from_secs(60);
    let result = load::run(&spec, &stop, &mut StopWarmUp(&stop)).unwrap();
    assert_eq!(result.verdict.reasons, ["interrupted: ended before the measured window"]);
}

#[test]
fn server_that_accepts_and_closes_is_retried_with_pauses() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let accepted = std::thread::spawn(move || {
        listener.set_nonblocking(true).unwrap();
        let (mut accepted, deadline) = (0_u32, Instant::now() + Duration::from_secs(2));
        while Instant::now() < deadline {
            match listener.accept() {
                Ok(_) => accepted += 1,
                Err(_) => std::thread::yield_now(),
            }
        }
        accepted
    });
    let result = run(&open_spec(&format!("http://{address}/"), 100.0, Duration::from_secs(1)));
    assert_eq!(result.requests.completed, 0);
    let accepted = accepted.join().unwrap();
    // Four connections, each retried after 10 ms, for as long as the server listens.
    assert!(accepted <= 4 * 201, "{accepted} connections");
}
