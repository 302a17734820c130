//! A server in a thread, and a client that reads exactly what HTTP defines as a response. Every wait has a
//! timeout of one minute.

#![allow(dead_code, reason = "each test binary uses a part of this")]

use service::{Answer, Counters, Listener, Server, Settings};
use std::io::{BufRead as _, BufReader, PipeWriter, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Idle timeout that a test waits for: longer than a machine stalls before a connection's first bytes are read.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// Settings of a server on a free port.
pub fn settings(body_bytes: u64) -> Settings {
    Settings {
        answer: Answer { body_bytes, ..Answer::default() },
        ..Settings::new("127.0.0.1:0".parse().unwrap())
    }
}

/// A running server, stopped when dropped.
pub struct Running {
    listeners: Vec<Listener>,
    stop: Option<PipeWriter>,
    thread: Option<JoinHandle<Counters>>,
}

impl Running {
    pub fn start(settings: &Settings) -> Self {
        let server = Server::bind(settings).unwrap();
        let listeners = server.listeners().to_vec();
        let (stopped, stop) = std::io::pipe().unwrap();
        let thread = std::thread::spawn(move || server.run(stopped).unwrap());
        Self { listeners, stop: Some(stop), thread: Some(thread) }
    }

    /// Address of its plaintext HTTP listener.
    pub fn address(&self) -> SocketAddr {
        self.address_of(0)
    }

    pub fn address_of(&self, listener: usize) -> SocketAddr {
        self.listeners[listener].address
    }

    pub fn client(&self) -> Client {
        self.client_of(0)
    }

    pub fn client_of(&self, listener: usize) -> Client {
        let stream = TcpStream::connect(self.address_of(listener)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        stream.set_write_timeout(Some(TEST_TIMEOUT)).unwrap();
        Client { reader: BufReader::new(stream) }
    }

    pub fn stop(mut self) -> Counters {
        self.stop.take();
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking(), "the server panicked");
        }
    }
}

/// A connection of a client.
pub struct Client {
    reader: BufReader<TcpStream>,
}

/// A received response.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Response {
    pub fn text(self) -> (u16, String) {
        (self.status, String::from_utf8(self.body).unwrap())
    }
}

impl Client {
    pub fn stream(&self) -> TcpStream {
        self.reader.get_ref().try_clone().unwrap()
    }

    /// Sends as much of the text as the server accepts: it may respond and close before the end.
    pub fn send(&mut self, text: &str) {
        if let Err(error) = self.reader.get_mut().write_all(text.as_bytes()) {
            let closed = [std::io::ErrorKind::BrokenPipe, std::io::ErrorKind::ConnectionReset];
            assert!(closed.contains(&error.kind()), "{error}");
        }
    }

    pub fn get(&mut self, target: &str) -> Response {
        self.send(&format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
        self.read_response(false)
    }

    pub fn read_response(&mut self, head_only: bool) -> Response {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(self.reader.read_line(&mut head).unwrap(), 0, "the connection ended within {head:?}");
        }
        let status: u16 = head.strip_prefix("HTTP/1.1 ").unwrap()[..3].parse().unwrap();
        let length = head
            .split("Content-Length: ")
            .nth(1)
            .map_or(0, |rest| rest.lines().next().unwrap().parse().unwrap());
        let mut body = vec![0; if head_only { 0 } else { length }];
        self.reader.read_exact(&mut body).unwrap();
        Response { status, head, body }
    }

    /// Reads everything until the server closes the connection.
    pub fn read_rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        self.reader.read_to_end(&mut rest).unwrap();
        rest
    }
}
