//! Targets that are away for a while: nothing listens on their port.

use super::*;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use socket2::{Domain, Socket, Type};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Instant;

/// Connections that fit into a listener's queue at once.
const MOST_CONNECTIONS: usize = 1000;

/// A server that goes, and comes back to its port.
struct Away {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    running: JoinHandle<WasAway>,
}

struct WasAway {
    /// Absent if it was stopped before its end.
    outage: Option<Duration>,
    /// Requests that it has answered.
    answered: u64,
}

impl Away {
    /// Leaves for `outage` when `leaves` is true of the number of requests that it has read. Until then it answers those that `answers`
    /// selects by their number, and afterwards all of them, until it is stopped.
    fn when(
        leaves: impl Fn(u64) -> bool + Send + 'static,
        outage: Duration,
        answers: impl Fn(u64) -> bool + Send + 'static,
    ) -> Self {
        let listener = listen("127.0.0.1:0".parse().expect("an address"));
        let address = listener.local_addr().expect("bound");
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let running = std::thread::spawn(move || {
            let is_running = || !stopped.load(Ordering::SeqCst);
            let before = serve_while(listener, |read| is_running() && !leaves(read), answers);
            let left = Instant::now();
            while is_running() && left.elapsed() < outage {
                std::thread::sleep(Duration::from_micros(100));
            }
            if !is_running() {
                return WasAway { outage: None, answered: before };
            }
            let listener = listen(address);
            let outage = Some(left.elapsed());
            let after = serve_while(listener, |_| is_running(), |_| true);
            WasAway { outage, answered: before + after }
        });
        Self { address, stop, running }
    }

    fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    fn stop(self) -> WasAway {
        self.stop.store(true, Ordering::SeqCst);
        self.running.join().expect("the server does not panic")
    }
}

/// A listener with room for all connections at once. The standard library's has room for 128.
fn listen(address: SocketAddr) -> TcpListener {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.set_reuse_address(true).expect("an option of sockets");
    socket.bind(&address.into()).expect("the port is free");
    socket.listen(i32::try_from(2 * MOST_CONNECTIONS).expect("a small number")).expect("a bound socket");
    socket.into()
}

/// Answers requests on all connections while the number of those read is one to go on after; closes the listener and then them at the
/// end. Requests that `answers` does not select get no response. Returns the number of responses.
fn serve_while(listener: TcpListener, goes_on: impl Fn(u64) -> bool, answers: impl Fn(u64) -> bool) -> u64 {
    listener.set_nonblocking(true).expect("a socket");
    let mut streams: Vec<TcpStream> = Vec::new();
    let mut buffer = [0; 4096];
    let (mut read, mut answered) = (0, 0);
    while goes_on(read) {
        while let Ok((stream, _)) = listener.accept() {
            stream.set_nonblocking(true).expect("a socket");
            streams.push(stream);
        }
        streams.retain_mut(|stream| match stream.read(&mut buffer) {
            Ok(0) => false,
            // A request is a single short segment.
            Ok(_) => {
                let is_answered = answers(read);
                read += 1;
                answered += u64::from(is_answered);
                !is_answered || stream.write_all(OK).is_ok()
            }
            Err(error) => error.kind() == ErrorKind::WouldBlock,
        });
        std::thread::sleep(Duration::from_micros(100));
    }
    // Nobody connects to what is about to go.
    drop(listener);
    answered
}

/// Lets this process open both ends of all connections.
fn raise_files_limit() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).expect("the limit may be raised");
}

/// Asserts that exactly the requests with a response are those that the target answered.
fn assert_counts(result: &LoadResult, answered: u64, what: &str) {
    let requests = &result.requests;
    let unanswered = requests.scheduled - answered;
    assert_eq!(
        (requests.completed, requests.failed + requests.unsent),
        (answered, unanswered),
        "{what}: {requests:?}"
    );
    let waits: u64 = result.unanswered_waits_us.iter().map(|(_, count)| count).sum();
    assert_eq!((waits, result.response_time_us.censored), (unanswered, unanswered), "{what}: {requests:?}");
}

#[test]
fn an_outage_is_as_long_as_the_target_was_away() {
    raise_files_limit();
    for (connections, rate) in [(8, 200.0), (MOST_CONNECTIONS, 1000.0)] {
        for outage in [50, 1300, 5000].map(Duration::from_millis) {
            let what = format!("{connections} connections, {outage:?}");
            // It leaves in the window, whenever that opens.
            let leaves = move |read| read as f64 >= rate / 2.0;
            let server = Away::when(leaves, outage, |_| true);
            let duration = outage + Duration::from_millis(1500);
            let load = LoadSpec {
                connections,
                ..spec(&server.url(), Protocol::Http1, open_loop(rate, duration), duration)
            };
            let result = run(&load);
            let answered =
                LatencyHistogram::decode(&result.response_time_us.histogram).expect("the engine's own");
            let longest_ms =
                answered.recorded().map(|value| value.value_us).max().unwrap_or_default() as f64 / 1e3;
            let WasAway { outage, answered } = server.stop();
            let truth_ms = outage.expect("the load is longer than that").as_secs_f64() * 1e3;
            assert_counts(&result, answered, &what);
            let requests = &result.requests;
            // The requests on the connections that were cut have failed, all others were answered after it.
            assert!(requests.failed <= connections as u64 && requests.unsent == 0, "{what}: {requests:?}");
            assert!(longest_ms > truth_ms - 20.0, "{what}: {longest_ms} of {truth_ms} ms");
            if result.generator_lag_us.max.unwrap_or_default() < 2e3 {
                assert!(longest_ms < truth_ms + 20.0, "{what}: {longest_ms} of {truth_ms} ms");
            }
        }
    }
}

#[test]
fn requests_without_an_answer_are_counted_exactly_in_an_outage() {
    const ANSWERED: u64 = 300;
    const LOST: u64 = 100;
    raise_files_limit();
    let leaves = |read| read >= ANSWERED + LOST;
    let server = Away::when(leaves, Duration::from_millis(50), |number| number < ANSWERED);
    let duration = Duration::from_secs(2);
    let load = LoadSpec {
        connections: MOST_CONNECTIONS,
        ..spec(&server.url(), Protocol::Http1, open_loop(1000.0, duration), duration)
    };
    let result = run(&load);
    let WasAway { outage, answered } = server.stop();
    assert_counts(&result, answered, "an outage");
    // A machine that stalls through the window leaves it too few requests to go.
    assert!(outage.is_none() || result.requests.failed >= LOST, "{:?}", result.requests);
}

#[test]
fn clients_without_a_connection_wait_until_the_end_of_a_closed_loop() {
    // Refuses all connections after some answers.
    let server = Away::when(|read| read >= 40, Duration::MAX, |_| true);
    // Some of it is left on a machine that stalls for seconds.
    let duration = Duration::from_secs(3);
    let load = spec(&server.url(), Protocol::Http1, ScheduleSpec::closed(8), duration);
    let begun = Instant::now();
    let result = run(&load);
    let since_begun = begun.elapsed();
    server.stop();
    let LoadResult { requests, response_time_us: times, verdict, .. } = &result;
    // Each of the 8 clients waits for a connection, whatever became of its last request.
    assert_eq!((requests.unsent, times.censored), (8, requests.failed + 8), "{requests:?}");
    assert_eq!((times.max, times.mean), (None, None));
    assert_eq!(result.unanswered_waits_us.iter().map(|(_, count)| count).sum::<u64>(), times.censored);
    let longest = longest_wait(&result);
    assert!(longest > Duration::ZERO && longest <= since_begun, "{longest:?} of {since_begun:?}");
    let is_named = verdict.reasons.iter().any(|reason| reason.starts_with("connections: for "));
    assert!(is_named && !verdict.is_usable(Figure::Throughput), "{verdict:?}");
}
