//! Streams of events on a known schedule: what the generator reads against the server's own record of when it sent each.

mod servers;
mod specs;
mod tls_servers;

use jiff::Timestamp;
use load::{Handshakes, LoadSpec, RequestTemplate, TlsClient, Verification};
use nix::sys::socket::sockopt::Timestamping;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, TimestampingFlag, recvmsg, setsockopt};
use results::{HistogramSummary, LatencyHistogram, LoadResult};
use rustls::version::TLS13;
use servers::TestServer;
use specs::{NETWORK, open_loop, run};
use statistics::pauses::nearest_rank;
use std::io::{self, Write as _};
use std::net::TcpStream;
use std::os::fd::AsRawFd as _;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tls_servers::{Authority, Then, TlsServer, config, records};

const FIRST: Duration = Duration::from_millis(50);
const GAP: Duration = Duration::from_millis(10);
/// Events of a response: the last ten are one segment.
const SPACED: u32 = 10;
const TOGETHER: u32 = 10;
const RATE: f64 = 4.0;
const REQUESTS: u64 = 20;

const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n\
      3\r\n:\n\n\r\n39\r\ndata: {\"choices\":[{\"delta\":{\"role\":\"a\",\"content\":\"\"}}]}\n\n\r\n";
const EVENT: &[u8] = b"30\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"ab\"}}]}\n\n\r\n";
const END: &[u8] = b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n";

/// Times at which the segments with content were sent, by response.
type Sent = Arc<Mutex<Vec<Vec<Timestamp>>>>;

/// Sends a segment. Returns when it left by the kernel's record (`SO_TIMESTAMPING`): on a CPU that was idle, a write takes tens of
/// microseconds until then.
fn send(mut socket: &TcpStream, segment: &[u8]) -> io::Result<Timestamp> {
    socket.write_all(segment)?;
    // Over the loopback interface, a segment has left when its write returns.
    let mut notes = [0; 256];
    let noted = recvmsg::<()>(socket.as_raw_fd(), &mut [], Some(&mut notes), MsgFlags::MSG_ERRQUEUE)?;
    let left = noted.cmsgs()?.find_map(|note| match note {
        ControlMessageOwned::ScmTimestampsns(times) => Some(Duration::from(times.system)),
        _ => None,
    });
    Ok(Timestamp::UNIX_EPOCH + left.expect("the kernel notes departures"))
}

/// The exact median in microseconds. A histogram would round it, as that of the result is.
fn median_us(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    nearest_rank(&times, 0.5).expect("requests").as_nanos() as f64 / 1e3
}

/// Sends a response on its schedule: the head with frames that are no content, events, and several in one segment. `seal` makes
/// records of them.
fn respond(socket: &TcpStream, mut seal: impl FnMut(&[u8]) -> Vec<u8>, sent: &Sent) -> io::Result<()> {
    let begun = Instant::now();
    let departures =
        TimestampingFlag::SOF_TIMESTAMPING_TX_SOFTWARE | TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE;
    setsockopt(&socket, Timestamping, &departures)?;
    let mut times = Vec::new();
    send(socket, &seal(HEAD))?;
    for event in 0..=SPACED {
        std::thread::sleep((FIRST + GAP * event).saturating_sub(begun.elapsed()));
        let events = if event == SPACED { TOGETHER } else { 1 };
        times.push(send(socket, &seal(&EVENT.repeat(events as usize)))?);
    }
    sent.lock().expect("nobody panics").push(times);
    send(socket, &seal(END)).map(drop)
}

fn load(url: &str) -> LoadSpec {
    let duration = Duration::from_secs_f64(REQUESTS as f64 / RATE);
    LoadSpec {
        connections: 1,
        network: NETWORK,
        ..specs::spec(&[url.to_owned()], &RequestTemplate::default(), open_loop(RATE, duration), duration)
    }
}

/// Asserts that the medians of first events and of gaps are those of the server within 50 µs.
fn assert_read_back(what: &str, result: &LoadResult, sent: &Sent) {
    let sent = std::mem::take(&mut *sent.lock().expect("nobody panics"));
    let counts = result.events.expect("streams");
    assert_eq!((result.requests.completed, sent.len() as u64), (REQUESTS, REQUESTS), "{what}: {counts:?}");
    assert_eq!(counts.received, REQUESTS * u64::from(SPACED + TOGETHER), "{what}: {counts:?}");
    let started_at: Timestamp = result.started_at.parse().expect("a timestamp");
    let (mut first, mut gaps) = (Vec::new(), Vec::new());
    for (number, times) in sent.iter().enumerate() {
        let due = started_at + Duration::from_secs_f64(number as f64 / RATE);
        let since = |at: Timestamp, earlier| Duration::try_from(at.duration_since(earlier)).expect("later");
        first.push(since(times[0], due));
        gaps.extend(times.windows(2).map(|pair| since(pair[1], pair[0])));
    }
    // Those of one segment have no time between them.
    let read_gaps = result.event_gap_us.as_ref().expect("streams");
    let mut read_apart = LatencyHistogram::new();
    let read = LatencyHistogram::decode(&read_gaps.histogram).expect("the engine's own");
    for value in read.recorded().filter(|value| value.value_us > 0) {
        (0..value.count).for_each(|_| read_apart.record(Duration::from_micros(value.value_us)));
    }
    let together = read.count() - read_apart.count();
    // A machine that stalls reads others together, too.
    assert!(together >= REQUESTS * u64::from(TOGETHER - 1), "{what}: {counts:?}");
    let p50 = |times: &HistogramSummary| times.p50.expect("all are answered");
    let read_first = p50(result.first_event_us.as_ref().expect("streams"));
    for (name, truth, read) in [
        ("first event", median_us(first), read_first),
        ("gap", median_us(gaps), read_apart.percentile_us(50.0)),
    ] {
        assert!((truth - read).abs() <= 50.0, "{what}: {name} of {truth} µs reads {read} µs");
    }
    let read_byte = p50(result.first_byte_us.as_ref().expect("streams"));
    assert!(read_byte < read_first - 49e3, "{what}: the role is no first event: {read_byte} µs");
}

#[test]
fn first_events_and_gaps_read_as_the_server_sent_them() {
    let sent = Sent::default();
    let own = Arc::clone(&sent);
    let server = TestServer::start(move |stream, _| respond(stream, <[u8]>::to_vec, &own).is_ok());
    assert_read_back("HTTP/1.1", &run(&load(&server.url())), &sent);
}

#[test]
fn first_events_and_gaps_over_tls_read_as_the_server_sent_them() {
    let sent = Sent::default();
    let (own, authority) = (Arc::clone(&sent), Authority::new());
    let server = TlsServer::start(config(&authority.issue_usual(), &TLS13, None), move |stream, _| {
        let connection = &mut stream.conn;
        let seal = |content: &[u8]| {
            connection.writer().write_all(content).expect("memory");
            records(connection)
        };
        if respond(&stream.sock, seal, &own).is_ok() { Then::GoOn } else { Then::Truncate }
    });
    let verification = Verification::Authorities(authority.file());
    let tls = TlsClient::new(&verification, &[], Handshakes::default()).expect("usable TLS");
    let load = LoadSpec { tls: Some(tls), ..load(&server.url()) };
    assert_read_back("TLS", &run(&load), &sent);
}
