//! Servers on loopback that each behave in one particular way, for tests of the engine.

#![allow(dead_code, reason = "each test binary uses a part of this")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A complete response with a body of two bytes.
pub const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A running server; stops accepting when dropped.
pub struct TestServer {
    pub address: SocketAddr,
    /// Complete requests that the server has read.
    pub requests: Arc<AtomicU64>,
    stopping: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl TestServer {
    /// Starts a server that calls `answer` per complete request head, with the connection and the request's
    /// ordinal number on it. The connection is closed when `answer` returns false.
    pub fn start(answer: impl Fn(&mut TcpStream, u64) -> bool + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let requests = Arc::new(AtomicU64::new(0));
        let stopping = Arc::new(AtomicBool::new(false));
        let (counted, stop, answer) = (Arc::clone(&requests), Arc::clone(&stopping), Arc::new(answer));
        let accepting = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                let (Ok(stream), answer, counted) = (stream, Arc::clone(&answer), Arc::clone(&counted))
                else {
                    break;
                };
                std::thread::spawn(move || serve(stream, &*answer, &counted));
            }
        });
        Self { address, requests, stopping, accepting: Some(accepting) }
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// The request count once it reaches `expected`, or after a while. A client that cancels may be done
    /// before the server has read its bytes.
    pub fn await_requests(&self, expected: u64) -> u64 {
        let give_up = Instant::now() + Duration::from_secs(60);
        loop {
            let requests = self.requests.load(Ordering::SeqCst);
            if requests >= expected || Instant::now() >= give_up {
                return requests;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        // Wakes the listener.
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            accepting.join().expect("the listener does not panic");
        }
    }
}

fn serve(mut stream: TcpStream, answer: &dyn Fn(&mut TcpStream, u64) -> bool, counted: &AtomicU64) {
    stream.set_nodelay(true).expect("a TCP connection");
    let mut reader = BufReader::new(stream.try_clone().expect("a descriptor is left"));
    for ordinal in 0.. {
        let mut line = String::new();
        loop {
            line.clear();
            match reader.read_line(&mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) if line == "\r\n" => break,
                Ok(_) => {}
            }
        }
        counted.fetch_add(1, Ordering::SeqCst);
        if !answer(&mut stream, ordinal) {
            let _ = stream.shutdown(Shutdown::Write);
            // Read to the end, so that the close is orderly and no reset overtakes the response.
            let _ = stream.set_read_timeout(Some(Duration::from_secs(60)));
            let _ = reader.read_to_end(&mut Vec::new());
            return;
        }
    }
}

/// Sends a response.
pub fn reply(stream: &mut TcpStream, bytes: &[u8]) -> bool {
    stream.write_all(bytes).is_ok()
}

/// Blocks during the first `stall` of each `period` since `start`.
pub fn stalled(start: Instant, stall: Duration, period: Duration) {
    let position = Duration::from_nanos((start.elapsed().as_nanos() % period.as_nanos()) as u64);
    if position < stall {
        std::thread::sleep(stall - position);
    }
}
