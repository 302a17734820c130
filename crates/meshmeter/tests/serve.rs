//! `meshmeter serve` as a process: readiness, signals, errors, memory, and the tiny form of its benchmark.

#[path = "../benches/serve_against_nginx/contest.rs"]
mod contest;

use contest::Contest;
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const MESHMETER: &str = env!("CARGO_BIN_EXE_meshmeter");

/// A running `meshmeter serve`, killed when dropped.
struct Serving {
    child: Child,
    address: String,
}

impl Serving {
    fn start(arguments: &[&str]) -> Self {
        let child = Command::new(MESHMETER)
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut serving = Self { child, address: String::new() };
        let mut line = String::new();
        BufReader::new(serving.child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        serving.address = line.trim().strip_prefix("listening on http://").unwrap().to_owned();
        serving
    }

    fn get(&self, target: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        write!(stream, "GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    }

    /// Sends a signal; gives the exit code, what was said on standard error, and how long it took.
    fn end(mut self, signal: Signal) -> (Option<i32>, String, Duration) {
        let process = Pid::from_raw(self.child.id() as i32).unwrap();
        let started = Instant::now();
        kill_process(process, signal).unwrap();
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said, started.elapsed())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn failing(arguments: &[&str]) -> (Option<i32>, String) {
    let Output { status, stderr, .. } =
        Command::new(MESHMETER).arg("serve").args(arguments).output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

#[test]
fn it_serves_as_its_options_say_and_counts_at_the_end() {
    let serving = Serving::start(&["--size", "1KB", "--status", "503", "--delay", "1ms", "--threads", "2"]);
    let response = serving.get("/");
    assert!(response.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{response}");
    assert_eq!(response.split_once("\r\n\r\n").unwrap().1.len(), 1000);
    assert!(serving.get("/meshmeter/counters").contains("{\"requests\":1,\"errors\":0,"));
    let (status, said, _) = serving.end(Signal::TERM);
    assert_eq!(status, Some(0));
    assert!(said.starts_with("served 1 requests, ") && said.ends_with(" bytes\n"), "{said}");
}

#[test]
fn a_signal_ends_it_at_once_even_in_a_stall() {
    let serving = Serving::start(&["--stall", "999s/1000s"]);
    // It stalls from the second second on: wait until it no longer answers.
    let mut stream = TcpStream::connect(&serving.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let answers = |stream: &mut TcpStream| {
        stream.write_all(b"GET /?size=0 HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        matches!(stream.read(&mut [0; 4096]), Ok(1..))
    };
    let started = Instant::now();
    while answers(&mut stream) {
        assert!(started.elapsed() < Duration::from_secs(5), "it never stalls");
    }
    let (status, said, took) = serving.end(Signal::INT);
    assert_eq!(status, Some(0), "{said}");
    assert!(took < Duration::from_secs(2), "it took {took:?}");
}

#[test]
fn what_cannot_be_served_is_one_line_a_hint_and_a_status() {
    let serving = Serving::start(&[]);
    let (status, said) = failing(&["--listen", &serving.address]);
    assert_eq!(status, Some(3));
    assert_eq!(
        said,
        format!(
            "error: listen on {}: Address already in use (os error 98)\n\
             hint: something listens there already: choose another port, or port 0 for any free one\n",
            serving.address
        )
    );
    // 192.0.2.0/24 is for documentation: no machine has it.
    let (status, said) = failing(&["--listen", "192.0.2.1:8080"]);
    assert_eq!(status, Some(3));
    assert!(said.contains("this machine has no such address"), "{said}");
    for (arguments, words) in [
        (["--listen", "localhost"], "expected an IP address and a port"),
        (["--size", "big"], "is not a size"),
        (["--delay", "5"], "a unit is missing"),
        (["--error-rate", "5"], "0% to 100%"),
        (["--stall", "2s/1s"], "above zero and below the period"),
        (["--threads", "0"], "not in 1..=1024"),
        (["--status", "99"], "not in 200..=599"),
        (["--idle-timeout", "0s"], "expected an idle timeout above zero"),
    ] {
        let (status, said) = failing(&arguments);
        assert_eq!(status, Some(2), "{arguments:?}: {said}");
        assert!(said.contains(words) && !said.contains("panicked"), "{arguments:?}: {said}");
    }
}

#[test]
fn no_free_files_left_is_no_spin() {
    let serving = Serving::start(&[]);
    let process = Pid::from_raw(serving.child.id() as i32);
    let few = Rlimit { current: Some(20), maximum: Some(20) };
    prlimit(process, Resource::Nofile, few).unwrap();
    let held: Vec<TcpStream> = (0..60).map(|_| TcpStream::connect(&serving.address).unwrap()).collect();
    let cpu_ms = |serving: &Serving| {
        let text = std::fs::read_to_string(format!("/proc/{}/schedstat", serving.child.id())).unwrap();
        text.split_whitespace().next().unwrap().parse::<u64>().unwrap() / 1_000_000
    };
    let before_ms = cpu_ms(&serving);
    // The time over which CPU is measured, not a wait for anything.
    std::thread::sleep(Duration::from_millis(500));
    let used_ms = cpu_ms(&serving) - before_ms;
    assert!(used_ms < 100, "waiting for room took {used_ms} ms of CPU in 500 ms");
    drop(held);
    assert!(serving.get("/").starts_with("HTTP/1.1 200 OK"));
}

#[test]
fn idle_it_takes_little_memory() {
    let serving = Serving::start(&["--size", "1KiB"]);
    serving.get("/");
    let status = std::fs::read_to_string(format!("/proc/{}/status", serving.child.id())).unwrap();
    let anonymous = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    let anonymous_kb: u64 = anonymous.trim().strip_suffix(" kB").unwrap().parse().unwrap();
    // Pages of the program itself differ between builds: the benchmark checks all of it, in a release build, against 5 MB.
    assert!(anonymous_kb < 1500, "{anonymous_kb} kB of its own");
}

#[test]
fn the_benchmark_runs_tiny() {
    let contest = Contest { meshmeter: Path::new(MESHMETER).into(), rounds: 1, seconds: 1, connections: 8 };
    let result = contest.run().unwrap_or_else(|error| panic!("{error}"));
    for server in &result.servers {
        assert!(server.idle_memory_bytes > 100_000, "{} has {} bytes", server.name, server.idle_memory_bytes);
        let rate = server.median(|round| round.requests_per_second);
        assert!(rate > 100.0, "{} answers {rate} a second", server.name);
    }
    assert!(result.requests_per_core_ratio().is_finite(), "{result}");
}
