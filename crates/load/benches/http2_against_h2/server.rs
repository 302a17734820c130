//! The server of both contenders: frames by hand, in a process of its own.
//!
//! It answers each request at once, with four fields and a body of 1 KB, and records when the kernel received the
//! request (`SO_TIMESTAMPNS`). What one read returns has the time of its last packet. It is much faster than either client, and
//! heeds no flow control: both clients grant windows that these runs do not fill.

use crate::contest::Outcome;
use crate::contest::process::{Place, pinned};
use crate::responses::{Fields, Kind, push_greeting, push_response, set_stream};
use crate::schedule::{Arrival, Lateness, Schedule};
use crate::timestamped::receive;
use http2::frame::{self, FrameHead, HEAD_BYTES, PREFACE, flag, kind};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::ReceiveTimestampns;
use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::io::Errno;
use serde_json::{Value, json};
use std::env;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};

/// First argument of the server process; the second is the rate of the load as JSON, `null` in a closed loop.
pub const SERVER: &str = "server";

/// Event data that no connection has as its number: of the listener, and of the end of standard input.
const LISTENER: u64 = u64::MAX;
const INPUT: u64 = u64::MAX - 1;
const MAX_EVENTS: usize = 256;
const BUFFER_BYTES: usize = 64 * 1024;
/// Fraction of the requests at the start that are not judged: connections are opened meanwhile.
const SETTLING: f64 = 0.2;

/// A server in another process, on the server's CPU.
pub struct ServerProcess {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
    pub address: SocketAddr,
}

/// A run as the server saw it.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub requests: u64,
    pub requests_per_second: f64,
    /// Lateness of the requests of an open loop, microseconds; NaN in a closed loop.
    pub late_p50_us: f64,
    pub late_p99_us: f64,
}

impl ServerProcess {
    /// Starts this program as a server. `rate`: of an open loop.
    pub fn start(rate: Option<u32>) -> Outcome<Self> {
        let mut command = pinned(Place::Server, &env::current_exe()?)?;
        command.args([SERVER, &json!(rate).to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("start {command:?}: {error}"))?;
        let mut output = BufReader::new(child.stdout.take().ok_or("standard output was piped")?);
        let mut line = String::new();
        output.read_line(&mut line)?;
        let address = line.trim().parse().map_err(|error| format!("the server printed {line:?}: {error}"))?;
        Ok(Self { child, output, address })
    }

    /// Ends the server. Returns what it saw.
    pub fn stop(mut self) -> Outcome<Seen> {
        drop(self.child.stdin.take());
        let mut text = String::new();
        self.output.read_to_string(&mut text)?;
        let value: Value =
            serde_json::from_str(&text).map_err(|error| format!("the server printed {text:?}: {error}"))?;
        let figure = |key: &str| value[key].as_f64().unwrap_or(f64::NAN);
        Ok(Seen {
            requests: value["requests"].as_u64().ok_or("the server did not count")?,
            requests_per_second: figure("requests_per_second"),
            late_p50_us: figure("late_p50_us"),
            late_p99_us: figure("late_p99_us"),
        })
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // It ends when its input does.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Runs a server until standard input ends, and prints what it saw.
#[allow(clippy::print_stdout, reason = "the other side reads it")]
pub fn run(rate: &str) -> Outcome<()> {
    let rate: Option<u32> = serde_json::from_str(rate)?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    // Accepted connections inherit it.
    setsockopt(&listener, ReceiveTimestampns, &true)?;
    println!("{}", listener.local_addr()?);
    io::stdout().flush()?;
    let mut arrivals = EventLoop::new(listener)?.serve()?;
    arrivals.sort_by_key(|arrival| arrival.at);
    println!("{}", summary(&arrivals, rate));
    Ok(())
}

fn summary(arrivals: &[Arrival], rate: Option<u32>) -> Value {
    let settled = &arrivals[(arrivals.len() as f64 * SETTLING) as usize..];
    let per_second = match settled {
        [first, .., last] => (settled.len() - 1) as f64 / (last.at - first.at).as_secs_f64(),
        _ => f64::NAN,
    };
    let late = rate.map(|rate| Lateness::fitted(settled, f64::from(rate), Schedule::Load));
    let percentile_us = |percent: f64| late.as_ref().map(|late| late.percentile_us(percent));
    json!({
        "requests": arrivals.len(),
        "requests_per_second": per_second,
        "late_p50_us": percentile_us(50.0),
        "late_p99_us": percentile_us(99.0),
    })
}

/// A client's connection.
struct Peer {
    stream: TcpStream,
    /// Received, and not yet a whole frame.
    input: Vec<u8>,
    /// The preface has arrived.
    is_greeted: bool,
    /// The header fields are in the table of the connection.
    is_indexed: bool,
}

/// The first response of a connection, and the others.
struct Responses {
    first: Vec<u8>,
    other: Vec<u8>,
}

struct EventLoop {
    epoll: OwnedFd,
    listener: TcpListener,
    /// By number; absent once closed.
    peers: Vec<Option<Peer>>,
    arrivals: Vec<Arrival>,
    responses: Responses,
    buffer: Vec<u8>,
    out: Vec<u8>,
}

impl EventLoop {
    fn new(listener: TcpListener) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let watch = |data: u64| (epoll::EventData::new_u64(data), epoll::EventFlags::IN);
        let (data, flags) = watch(LISTENER);
        epoll::add(&epoll, &listener, data, flags)?;
        let (data, flags) = watch(INPUT);
        epoll::add(&epoll, io::stdin(), data, flags)?;
        let response = |fields| {
            let mut response = Vec::new();
            push_response(Kind::Plain, fields, &mut response);
            response
        };
        let responses = Responses { first: response(Fields::Added), other: response(Fields::Indexed) };
        Ok(Self {
            epoll,
            listener,
            peers: Vec::new(),
            arrivals: Vec::new(),
            responses,
            buffer: vec![0; BUFFER_BYTES],
            out: Vec::new(),
        })
    }

    fn serve(mut self) -> io::Result<Vec<Arrival>> {
        let mut events = Vec::with_capacity(MAX_EVENTS);
        loop {
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                match event.data.u64() {
                    INPUT => return Ok(self.arrivals),
                    LISTENER => self.accept()?,
                    peer => self.read(peer as usize),
                }
            }
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        let (mut stream, _) = self.listener.accept()?;
        stream.set_nodelay(true)?;
        let mut greeting = Vec::new();
        push_greeting(&mut greeting);
        let number = epoll::EventData::new_u64(self.peers.len() as u64);
        epoll::add(&self.epoll, &stream, number, epoll::EventFlags::IN)?;
        // A client that is gone already shows in its first read.
        let _ = stream.write_all(&greeting);
        self.peers.push(Some(Peer { stream, input: Vec::new(), is_greeted: false, is_indexed: false }));
        Ok(())
    }

    /// Reads what has arrived, and answers it. A client may leave at any time.
    fn read(&mut self, number: usize) {
        let Some(peer) = &mut self.peers[number] else { return };
        let is_open = match receive(&peer.stream, &mut self.buffer) {
            Ok((0, _)) | Err(_) => false,
            Ok((length, at)) => {
                peer.input.extend_from_slice(&self.buffer[..length]);
                let requests = peer.answer(&self.responses, &mut self.out);
                self.arrivals.extend((0..requests).map(|_| Arrival { connection: number, at }));
                let written = peer.stream.write_all(&self.out);
                self.out.clear();
                written.is_ok()
            }
        };
        if !is_open {
            self.peers[number] = None;
        }
    }
}

impl Peer {
    /// Handles the whole frames of the input; appends the answers. Returns the number of requests.
    fn answer(&mut self, responses: &Responses, out: &mut Vec<u8>) -> usize {
        let (mut start, mut requests) = (0, 0);
        if !self.is_greeted {
            if self.input.len() < PREFACE.len() {
                return 0;
            }
            (self.is_greeted, start) = (true, PREFACE.len());
        }
        while let Some(bytes) = self.input[start..].first_chunk::<HEAD_BYTES>() {
            let head = FrameHead::parse(bytes);
            let payload = start + HEAD_BYTES;
            let Some(payload) = self.input.get(payload..payload + head.length) else { break };
            match head.kind {
                kind::HEADERS => {
                    requests += 1;
                    let at = out.len();
                    out.extend_from_slice(if self.is_indexed { &responses.other } else { &responses.first });
                    self.is_indexed = true;
                    set_stream(&mut out[at..], head.stream);
                }
                kind::SETTINGS if !head.has(flag::ACK) => frame::push(kind::SETTINGS, flag::ACK, 0, &[], out),
                kind::PING if !head.has(flag::ACK) => frame::push(kind::PING, flag::ACK, 0, payload, out),
                _ => {}
            }
            start += HEAD_BYTES + head.length;
        }
        self.input.drain(..start);
        requests
    }
}
