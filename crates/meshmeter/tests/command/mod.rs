//! The command as a process, and a server to load.

#![allow(dead_code, reason = "each test binary uses a part of this")]

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Address without a listener. A port that was free a moment ago might be used by another test by now.
pub const NOBODY: &str = "127.0.0.1:1";

/// `meshmeter`, without arguments yet.
pub fn meshmeter() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_meshmeter"));
    command.stdin(Stdio::null());
    command
}

/// Runs the command until it exits.
pub fn run(arguments: &[&str]) -> Output {
    meshmeter().args(arguments).output().expect("the binary runs")
}

/// Starts the command with both outputs piped.
pub fn start(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs")
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Lines of a child's standard error, which must be piped.
pub fn said(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok)
}

/// `meshmeter load` of 200 requests/s for a minute that says its progress, with its result on standard output; without URLs yet.
pub fn minute_of_load() -> Command {
    let mut command = meshmeter();
    command.args(["load", "--progress", "plain", "--rate", "200", "--duration", "60s", "--json", "-"]);
    command
}

/// Reads until `meshmeter load --progress plain` reports the first of `seconds` seconds.
pub fn await_first_second(lines: &mut impl Iterator<Item = String>, seconds: u32) {
    let awaited = format!("1/{seconds} s");
    assert!(lines.any(|line| line.trim_start().starts_with(&awaited)), "the first second ends");
}

/// Address of a server that accepts one connection and answers its requests. The requests, heads and bodies, are returned when the
/// connection has ended.
pub fn capturing() -> (SocketAddr, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let requests = thread::spawn(move || {
        let mut connection = BufReader::new(listener.accept().expect("a connection").0);
        let mut requests = Vec::new();
        while let Some(request) = next_request(&mut connection) {
            let response = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
            connection.get_mut().write_all(response).expect("it reads");
            requests.push(request);
        }
        requests
    });
    (address, requests)
}

/// Head and body; `None` at the end of the connection.
pub fn next_request(connection: &mut BufReader<TcpStream>) -> Option<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if connection.read_line(&mut head).expect("a head") == 0 {
            return None;
        }
    }
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().expect("a length"))];
    connection.read_exact(&mut body).expect("a body");
    Some(head + &String::from_utf8(body).expect("text"))
}

/// `meshmeter serve` on a free port; killed when dropped.
pub struct Serving {
    child: Child,
    /// Base URLs of the listeners, plaintext HTTP first.
    listeners: Vec<String>,
}

impl Serving {
    pub fn start(arguments: &[&str]) -> Self {
        Self::of("serve", arguments)
    }

    /// Another command that serves.
    pub fn of(command: &str, arguments: &[&str]) -> Self {
        let child = start(meshmeter().args([command, "--listen", "127.0.0.1:0"]).args(arguments));
        let mut serving = Self { child, listeners: Vec::new() };
        // The server writes all lines at once.
        let mut lines = vec![0; 4096];
        let length =
            serving.child.stdout.take().expect("piped").read(&mut lines).expect("it says where it listens");
        let lines = String::from_utf8_lossy(&lines[..length]).into_owned();
        let urls = lines.lines().filter_map(|line| line.strip_prefix("listening on "));
        serving.listeners = urls.map(str::to_owned).collect();
        assert!(serving.listeners.first().is_some_and(|url| url.starts_with("http://")), "{lines:?}");
        serving
    }

    /// Base URLs of the listeners.
    pub fn listeners(&self) -> &[String] {
        &self.listeners
    }

    /// Host and port of the plaintext HTTP listener.
    pub fn authority(&self) -> &str {
        self.listeners[0].trim_start_matches("http://")
    }

    pub fn url(&self) -> String {
        format!("{}/", self.listeners[0])
    }

    pub fn process(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// The whole response to a GET.
    pub fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(self.authority()).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a limit above zero");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").expect("it reads");
        let mut response = String::new();
        stream.read_to_string(&mut response).expect("it answers");
        response
    }

    /// The server's own count of requests, without this one.
    pub fn requests(&self) -> u64 {
        let response = self.get("/meshmeter/counters");
        let (_, body) = response.split_once("\r\n\r\n").expect("a head and a body");
        let counters: serde_json::Value = serde_json::from_str(body).expect("JSON");
        counters["requests"].as_u64().expect("a count")
    }

    /// Sends a signal. Returns the exit code, standard error, and how long the exit took.
    pub fn end(mut self, signal: Signal) -> (Option<i32>, String, Duration) {
        let started = Instant::now();
        kill_process(self.process(), signal).expect("it runs");
        let mut said = String::new();
        self.child.stderr.take().expect("piped").read_to_string(&mut said).expect("it says text");
        (self.child.wait().expect("it is a child").code(), said, started.elapsed())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // A test may have ended it already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
