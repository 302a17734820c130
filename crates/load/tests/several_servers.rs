//! Several servers in one run: shares, roaming connections, slow or dead servers, names per host.
//!
//! The servers' own counts of requests are compared with the engine's.

mod http2_servers;
mod servers;
mod specs;
mod tls_servers;

use http2_servers::{Answer, Http2Server};
use load::{
    Address, Arrival, Handshakes, LoadSpec, Order, Protocol, RateStage, RequestTemplate, ScheduleSpec,
    ServerPer, TlsClient, Verification,
};
use results::{Figure, LoadResult};
use servers::{OK, TestServer, reply};
use socket2::{Domain, Socket, Type};
use specs::{NETWORK, Silent, run, so_many};
use std::collections::{BTreeSet, HashMap};
use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tls_servers::{Authority, TlsServer, TlsStream, config};

const SHORT: Duration = Duration::from_millis(400);

/// A run on one thread.
fn spec(urls: &[String], connections: usize, schedule: ScheduleSpec, duration: Duration) -> LoadSpec {
    LoadSpec {
        connections,
        network: NETWORK,
        ..specs::spec(urls, &RequestTemplate::default(), schedule, duration)
    }
}

fn open_spec(urls: &[String], connections: usize, rate: f64, duration: Duration) -> LoadSpec {
    spec(urls, connections, specs::open_loop(rate, duration), duration)
}

/// Asserts that every due request is accounted for and every sent one was answered. A machine that stalls for
/// a tenth of the window at its end leaves some unsent, which the verdict reports.
fn assert_all_answered(result: &LoadResult, due: u64) {
    let requests = &result.requests;
    assert_eq!((requests.completed + requests.unsent, requests.failed), (due, 0), "{requests:?}");
    assert!(requests.completed > 0, "{requests:?}");
    let hardly_any = requests.unsent * 100 <= due;
    assert!(hardly_any || result.verdict.saturated, "{requests:?}: {:?}", result.verdict);
}

fn good_server() -> TestServer {
    slow_server(Duration::ZERO)
}

fn slow_server(answer_time: Duration) -> TestServer {
    TestServer::start(move |stream, _| {
        std::thread::sleep(answer_time);
        reply(stream, OK)
    })
}

/// An address at which nothing listens, a different one each time. A port that was free a moment ago may be
/// another test's by now.
fn dead_address() -> SocketAddr {
    static COUNTED: AtomicU8 = AtomicU8::new(2);
    SocketAddr::from(([127, 0, 0, COUNTED.fetch_add(1, Ordering::Relaxed)], 1))
}

fn dead_url() -> String {
    format!("http://{}/", dead_address())
}

fn urls(servers: &[TestServer]) -> Vec<String> {
    servers.iter().map(TestServer::url).collect()
}

fn counted(servers: &[TestServer]) -> Vec<u64> {
    servers.iter().map(|server| server.requests.load(Ordering::SeqCst)).collect()
}

#[test]
fn dead_server_among_several_makes_result_invalid() {
    let server = good_server();
    let result = run(&open_spec(&[server.url(), dead_url()], 4, 100.0, SHORT));
    // Each has its share, some of which the machine may leave unsent at the end.
    assert_all_answered(&result, 40);
    assert!((1..=20).contains(&result.requests.completed), "{:?}", result.requests);
    let reasons = &result.verdict.reasons;
    assert!(reasons.iter().any(|reason| reason.starts_with("connections: 2 of 4 were open")), "{reasons:?}");
}

#[test]
fn excess_requests_for_dead_server_do_not_hold_up_others() {
    let server = good_server();
    let dead = dead_url();
    // After a third of the window 65 536 requests wait for the dead one, which is the maximum. One in a
    // thousand is for the other.
    let urls = [format!("999={dead}"), server.url()];
    let result = run(&open_spec(&urls, 2, 20_000.0, Duration::from_secs(9)));
    let completed = result.requests.completed;
    assert!((100..=220).contains(&completed), "{:?}", result.requests);
    let note = result.verdict.notes.iter().find(|note| note.starts_with("crowded-out:"));
    let host = dead.trim_start_matches("http://").trim_end_matches('/');
    assert!(note.is_some_and(|note| note.contains(host)), "{:?}", result.verdict);
}

#[test]
fn slow_server_gets_its_share_and_does_not_hold_up_others() {
    let servers = [good_server(), slow_server(Duration::from_millis(50))];
    let urls = [format!("3={}", servers[0].url()), servers[1].url()];
    let mut spec = open_spec(&urls, 4, 100.0, Duration::from_secs(2));
    spec.targets.order = Order::Turn;
    // One connection for the slow server, which can answer 20 per second and gets 25.
    let result = run(&spec);
    assert_eq!(result.requests.scheduled, 200);
    let [fast, slow] = counted(&servers)[..] else { panic!("two servers count") };
    assert_eq!(fast + slow, result.requests.sent);
    assert!((slow..=150).contains(&fast) && slow <= 50, "{fast} and {slow}");
    // If the slow one held up all requests, waiting times would grow evenly: the median would be half of the
    // maximum. This covers answered requests only: what the slow one does not keep up with is never sent.
    let answered = results::LatencyHistogram::decode(&result.response_time_us.histogram).unwrap();
    let (usual_us, slowest_us) = (answered.percentile_us(50.0), answered.percentile_us(99.0));
    assert!(slowest_us > 100_000.0 && usual_us < slowest_us / 3.0, "{usual_us} and {slowest_us}");
}

#[test]
fn fewer_connections_than_servers_move_between_servers() {
    let servers = [(); 5].map(|()| good_server());
    let result = run(&open_spec(&urls(&servers), 2, 200.0, SHORT));
    assert_all_answered(&result, 80);
    let (completed, each) = (result.requests.completed, counted(&servers));
    assert_eq!(each.iter().sum::<u64>(), completed);
    assert!(completed < 80 || each == [16; 5], "{each:?}");
    // In rotation over five servers on two connections nearly each request needs a new connection; fewer if
    // several wait for a server.
    assert!(each.iter().all(|count| *count > 0), "{each:?}");
    assert!(result.connect_time_us.count > 5, "{}", result.connect_time_us.count);
}

#[test]
fn multiplexed_connections_roam() {
    let ok = |_, _| async { Answer::Body { status: 200, bytes: 10, trailers: false } };
    let servers = [(); 3].map(|()| Http2Server::of_h2(|_| {}, ok));
    let urls: Vec<_> = servers.iter().map(Http2Server::url).collect();
    let mut spec = open_spec(&urls, 1, 100.0, SHORT * 2);
    spec.protocol = Protocol::Http2 { streams: 4 };
    let result = run(&spec);
    let counted: u64 = servers.iter().map(Http2Server::counted).sum();
    assert_eq!((result.requests.sent, result.requests.failed), (counted, 0), "{:?}", result.requests);
    for server in &servers {
        assert!(server.counted() >= counted / 4, "{} of {counted}", server.counted());
    }
}

#[test]
fn roaming_connections_with_one_request_each_lose_none() {
    let servers = [(); 20].map(|()| good_server());
    let mut spec = spec(&urls(&servers), 3, so_many(6, 400), Duration::from_secs(60));
    spec.requests_per_connection = NonZeroU64::new(1);
    spec.threads = 2;
    let result = run(&spec);
    assert_eq!((result.requests.completed, result.requests.unsent), (400, 0), "{:?}", result.requests);
    // Each thread rotates over them; how many requests each thread sends is open.
    let each = counted(&servers);
    assert_eq!(each.iter().sum::<u64>(), 400);
    assert!(each.iter().all(|count| (18..=22).contains(count)), "{each:?}");
    assert!(result.connect_time_us.count >= 400, "{}", result.connect_time_us.count);
}

#[test]
fn dead_server_does_not_keep_roaming_connection() {
    let servers = [good_server(), good_server()];
    let urls = [servers[0].url(), dead_url(), servers[1].url()];
    let result = run(&open_spec(&urls, 1, 300.0, SHORT * 3));
    // A third is for the dead server; requests waiting for the connection at the very end are dropped with
    // those.
    let requests = &result.requests;
    assert!((1..=240).contains(&requests.completed) && requests.failed == 0, "{requests:?}");
    // A machine that hardly lets it run has fewer of both. A connection that stays with the dead server is
    // refused again and again, and completes nothing.
    let refused = requests.errors.get("connect-refused").copied().unwrap_or(0);
    assert!(refused < 120 && refused <= requests.completed + 2, "{requests:?}");
}

#[test]
fn dead_server_that_holds_all_clients_of_a_closed_loop_is_named() {
    let (server, dead) = (good_server(), dead_address());
    // It was never open, and need not be at the start: connections go where they are needed.
    let result = run(&spec(&[server.url(), format!("http://{dead}/")], 1, ScheduleSpec::closed(4), SHORT));
    let LoadResult { requests, verdict, .. } = &result;
    let reasons = &verdict.reasons;
    let text = format!("those to {dead} could not be opened; connection refused");
    let is_named = |reason: &String| reason.starts_with("connections: for ") && reason.contains(&text);
    assert!(requests.unsent == 4 && reasons.iter().any(is_named), "{requests:?}, {verdict:?}");
    assert!(!verdict.is_usable(Figure::Throughput), "{verdict:?}");
}

#[test]
fn run_starts_if_only_last_of_many_servers_is_alive() {
    let server = good_server();
    let mut spec = open_spec(&[dead_url(), dead_url(), server.url()], 1, 60.0, SHORT);
    // Its first address is dead, too.
    spec.targets.servers[2].addresses.insert(0, dead_address().into());
    let result = run(&spec);
    // A third is for it; requests waiting for the connection at the very end are dropped with the dead
    // servers' requests.
    assert!((1..=8).contains(&result.requests.completed), "{:?}", result.requests);
    let all_dead = run(&open_spec(&[dead_url(), dead_url(), dead_url()], 1, 60.0, SHORT));
    assert!(all_dead.verdict.reasons[0].starts_with("unreachable:"), "{:?}", all_dead.verdict);
}

#[test]
fn connections_are_spread_over_the_addresses_of_a_name() {
    let servers = [good_server(), good_server(), good_server()];
    let addresses: Vec<SocketAddr> =
        servers.iter().map(|server| server.url()[7..].trim_end_matches('/').parse().unwrap()).collect();
    for threads in [1, 2, 3] {
        let mut spec = open_spec(&[servers[0].url()], 6, 300.0, SHORT);
        spec.threads = threads;
        // The other family is for when these fail.
        spec.targets.servers[0].addresses = addresses.iter().copied().map(Address::from).collect();
        spec.targets.servers[0].addresses.push(Address::Ip("[::1]:1".parse().unwrap()));
        let result = run(&spec);
        assert_all_answered(&result, 120);
        let two_each = addresses.iter().map(|address| (address.to_string(), 2)).collect();
        assert_eq!(result.addresses, two_each, "{threads} threads");
        assert!(
            result.verdict.notes.iter().all(|note| !note.starts_with("addresses:")),
            "{:?}",
            result.verdict
        );
    }
    // A connection that is replaced stays with its address: its load is that of one user.
    let counts = servers.map(|server| server.await_requests(1));
    assert!(counts.iter().all(|count| *count >= 60), "{counts:?}");
}

#[test]
fn address_that_all_its_connections_have_left_is_named() {
    let (server, dead) = (good_server(), dead_address());
    let mut spec = open_spec(&[server.url()], 2, 100.0, SHORT);
    spec.targets.servers[0].addresses.insert(0, dead.into());
    let result = run(&spec);
    assert_all_answered(&result, 40);
    // It gets no load, even if it returns.
    assert_eq!(result.addresses, [(server.address.to_string(), 2)].into());
    let note = format!("addresses: no connection was left at {dead} at the end of the window; ");
    assert!(result.verdict.notes.iter().any(|text| text.starts_with(&note)), "{:?}", result.verdict.notes);
}

#[test]
fn unresponsive_address_leaves_time_for_next() {
    let server = good_server();
    // Its queue is full: further connection attempts are dropped.
    let silent = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    silent.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    silent.listen(0).unwrap();
    let address = silent.local_addr().unwrap();
    let waiting = [(); 3].map(|()| {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.set_nonblocking(true).unwrap();
        // The connect does not complete at once.
        let _ = socket.connect(&address);
        socket
    });
    let mut spec = open_spec(&[server.url()], 2, 100.0, SHORT);
    spec.targets.servers[0].addresses.insert(0, address.as_socket().unwrap().into());
    spec.timeout = Duration::from_secs(2);
    let result = run(&spec);
    assert_all_answered(&result, 40);
    assert!(result.requests.errors.is_empty(), "{:?}", result.requests.errors);
    let note = "addresses: 1 connection fell back to another address of the name; at the first, ";
    assert!(result.verdict.notes.iter().any(|text| text.starts_with(note)), "{:?}", result.verdict.notes);
    drop(waiting);
}

#[test]
fn requests_waiting_for_roaming_connection_at_end_are_sent() {
    let servers = [slow_server(Duration::from_millis(20)), slow_server(Duration::from_millis(20))];
    // The last ten come faster than they can be answered, which leaves a backlog far below a tenth of the
    // window.
    let (quiet, busy) = (Duration::from_millis(3900), Duration::from_millis(100));
    let stages = vec![RateStage::steady(10.0, quiet), RateStage::steady(100.0, busy)];
    let schedule = ScheduleSpec::Open { stages, arrival: Arrival::Uniform };
    let result = run(&spec(&urls(&servers), 1, schedule, quiet + busy));
    assert_eq!((result.requests.completed, result.requests.unsent), (49, 0), "{:?}", result.requests);
    assert!(result.requests.late > 0, "{:?}", result.requests);
}

#[test]
fn closed_loop_rotates_over_servers() {
    let servers = [(); 3].map(|()| good_server());
    let result = run(&spec(&urls(&servers), 4, ScheduleSpec::closed(3), SHORT));
    let each = counted(&servers);
    assert_eq!(each.iter().sum::<u64>(), result.requests.sent);
    let spread = each.iter().max().unwrap() - each.iter().min().unwrap();
    assert!(spread <= 1 + result.requests.unsent, "{each:?}");
}

#[test]
fn fixed_number_of_requests_is_sent_despite_slow_server() {
    let servers = [good_server(), slow_server(Duration::from_millis(20))];
    for connections in [2, 1] {
        let before: u64 = counted(&servers).iter().sum();
        let result = run(&spec(&urls(&servers), connections, so_many(6, 21), Duration::from_secs(60)));
        assert_eq!((result.requests.completed, result.requests.unsent), (21, 0), "{:?}", result.requests);
        assert_eq!(counted(&servers).iter().sum::<u64>() - before, 21);
        assert!(result.duration_s < 30.0, "{}", result.duration_s);
    }
}

#[test]
fn no_client_is_lost_if_servers_close_at_once() {
    let servers = [good_server(), TestServer::start(|_, _| false), TestServer::start(|_, _| false)];
    for connections in [3, 2] {
        let before: u64 = counted(&servers).iter().sum();
        let mut spec = spec(&urls(&servers), connections, so_many(5, 18), Duration::from_secs(60));
        spec.warmup = Duration::from_millis(50);
        let result = run(&spec);
        assert_eq!((result.requests.sent, result.requests.unsent), (18, 0), "{:?}", result.requests);
        assert!(result.requests.completed >= 5, "{:?}", result.requests);
        let sent = result.requests.sent + result.warmup.sent;
        assert_eq!(counted(&servers).iter().sum::<u64>() - before, sent);
    }
}

#[test]
fn requests_are_balanced_over_connections() {
    let counts = Arc::new(Mutex::new(HashMap::<SocketAddr, u64>::new()));
    let counted = Arc::clone(&counts);
    let server = TestServer::start(move |stream, _| {
        *counted.lock().unwrap().entry(stream.peer_addr().unwrap()).or_default() += 1;
        reply(stream, OK)
    });
    let mut spec = open_spec(&[server.url()], 100, 2000.0, Duration::from_secs(1));
    spec.threads = 2;
    let result = run(&spec);
    assert_all_answered(&result, 2000);
    let counts = counts.lock().unwrap();
    assert_eq!(counts.len(), 100);
    // The longest-idle one is next, so that only those that are busy for long get fewer: on a quiet machine
    // each has 20. If the most recently used one were next, a few would get nearly all.
    let mean = result.requests.completed / 100;
    assert!(counts.values().all(|count| (mean / 4..=3 * mean).contains(count)), "{counts:?}");
}

#[test]
fn each_host_of_range_has_its_name_in_tls_and_requests() {
    let authority = Authority::new();
    let identity = authority.issue("*.shops.example", 2020, 2100);
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let noting = Arc::clone(&seen);
    let server = TlsServer::of_bytes(
        config(&identity, &rustls::version::TLS13, None),
        move |stream: &mut TlsStream| {
            loop {
                let head = read_head(stream)?;
                let host = head.lines().find_map(|line| line.strip_prefix("Host: ")).unwrap_or_default();
                let name = stream.conn.server_name().unwrap_or_default();
                noting.lock().unwrap().insert((name.to_owned(), host.to_owned()));
                stream.write_all(OK)?;
                stream.flush()?;
            }
        },
    );
    let template =
        RequestTemplate { connect_to: Some(server.address.to_string()), ..RequestTemplate::default() };
    let url = "https://shop-{1..5}.shops.example/get/{1..9}".to_owned();
    let trusted = Verification::Authorities(authority.file());
    for (connections, server_per) in
        [(5, ServerPer::Request), (2, ServerPer::Request), (7, ServerPer::Connection)]
    {
        let mut spec = spec(&[server.url()], connections, so_many(connections, 200), Duration::from_secs(60));
        let targets = load::resolve(std::slice::from_ref(&url), &template).unwrap();
        spec.targets = load::Targets { server_per, ..targets };
        spec.tls = Some(TlsClient::new(&trusted, &[], Handshakes::default()).unwrap());
        let result = run(&spec);
        assert_eq!(
            (result.requests.completed, result.requests.errors.len()),
            (200, 0),
            "{:?}",
            result.requests
        );
        if server_per == ServerPer::Connection {
            assert_eq!(result.handshake_time_us.count, 7, "no connection changes its server");
        }
        let host = |number| format!("shop-{number}.shops.example");
        let expected: BTreeSet<_> = (1..=5).map(|number| (host(number), host(number))).collect();
        assert_eq!(std::mem::take(&mut *seen.lock().unwrap()), expected);
    }
}

fn read_head(stream: &mut TlsStream) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

#[test]
fn interrupt_ends_waiting_for_connections() {
    // All clients end up waiting for a dead server.
    let server = good_server();
    let urls = [server.url(), dead_url(), dead_url()];
    let spec = spec(&urls, 1, ScheduleSpec::closed(4), Duration::from_secs(60));
    let (stop, started) = (AtomicBool::new(false), Instant::now());
    std::thread::scope(|scope| {
        let running = scope.spawn(|| load::run(&spec, &stop, &mut Silent).expect("the engine runs"));
        while counted(std::slice::from_ref(&server))[0] == 0 && started.elapsed() < Duration::from_secs(20) {
            std::thread::yield_now();
        }
        stop.store(true, Ordering::SeqCst);
        let result = running.join().expect("no panic");
        assert_eq!(result.requests.sent, result.requests.completed + result.requests.failed);
        assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    });
}
