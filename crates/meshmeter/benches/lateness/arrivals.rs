//! A server that answers each request at once and records when the kernel received it.
//!
//! The kernel stamps a packet when it enters the network stack (`SO_TIMESTAMPNS`, socket(7)): on the loopback interface, while the
//! generator sends it. So an arrival does not depend on when the server reads it.

use crate::contest::process::{Place, cpu};
use crate::contest::{BODY_BYTES, Outcome};
use crate::schedule::Arrival;
use crate::timestamped::receive;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::ReceiveTimestampns;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::io::{self, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// Event data of the listener; no connection has this number.
const LISTENER: u64 = u64::MAX;
const MAX_EVENTS: usize = 256;
/// Requests are a few hundred bytes.
const BUFFER_BYTES: usize = 4096;
const END_OF_REQUEST: &[u8] = b"\r\n\r\n";
/// Interval at which a server without events checks whether it is stopped.
const STOP_POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// A server of one thread on the server's CPU.
pub struct ArrivalServer {
    pub url: String,
    is_stopped: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<Vec<Arrival>>>,
}

impl ArrivalServer {
    /// Starts the server on a free port.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses the listener or its timestamps.
    pub fn start() -> Outcome<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        // Accepted connections inherit it.
        setsockopt(&listener, ReceiveTimestampns, &true)?;
        let url = format!("http://{}/", listener.local_addr()?);
        let cpu = cpu(Place::Server)?;
        let is_stopped = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&is_stopped);
        let thread = thread::spawn(move || {
            let mut own = CpuSet::new();
            own.set(cpu);
            sched_setaffinity(None, &own)?;
            EventLoop::new(listener)?.serve(&stopped)
        });
        Ok(Self { url, is_stopped, thread })
    }

    /// Stops the server. Returns the requests in the order of their arrival.
    ///
    /// # Errors
    /// Returns an error if the server could not go on, or a request did not arrive as a whole.
    pub fn stop(self) -> Outcome<Vec<Arrival>> {
        self.is_stopped.store(true, Ordering::Relaxed);
        let mut arrivals = self.thread.join().map_err(|_| "the server panicked")??;
        arrivals.sort_by_key(|arrival| arrival.at);
        Ok(arrivals)
    }
}

/// Connections and arrivals of a server.
struct EventLoop {
    epoll: OwnedFd,
    listener: TcpListener,
    /// By number; absent once closed.
    connections: Vec<Option<TcpStream>>,
    response: Vec<u8>,
    arrivals: Vec<Arrival>,
}

impl EventLoop {
    fn new(listener: TcpListener) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &listener, epoll::EventData::new_u64(LISTENER), epoll::EventFlags::IN)?;
        let body = "x".repeat(BODY_BYTES);
        let response = format!("HTTP/1.1 200 OK\r\nContent-Length: {BODY_BYTES}\r\n\r\n{body}").into_bytes();
        Ok(Self { epoll, listener, connections: Vec::new(), response, arrivals: Vec::new() })
    }

    fn serve(mut self, is_stopped: &AtomicBool) -> io::Result<Vec<Arrival>> {
        let mut events = Vec::with_capacity(MAX_EVENTS);
        while !is_stopped.load(Ordering::Relaxed) {
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&STOP_POLL_INTERVAL)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                match event.data.u64() {
                    LISTENER => self.accept()?,
                    connection => self.answer(connection as usize)?,
                }
            }
        }
        Ok(self.arrivals)
    }

    fn accept(&mut self) -> io::Result<()> {
        let (stream, _) = self.listener.accept()?;
        stream.set_nodelay(true)?;
        let number = epoll::EventData::new_u64(self.connections.len() as u64);
        epoll::add(&self.epoll, &stream, number, epoll::EventFlags::IN)?;
        self.connections.push(Some(stream));
        Ok(())
    }

    /// Answers the request on a connection that is readable. A generator may leave at any time.
    fn answer(&mut self, connection: usize) -> io::Result<()> {
        let Some(stream) = &mut self.connections[connection] else { return Ok(()) };
        let mut buffer = [0; BUFFER_BYTES];
        let is_open = match receive(stream, &mut buffer) {
            Ok((0, _)) | Err(_) => false,
            Ok((length, at)) if buffer[..length].ends_with(END_OF_REQUEST) => {
                self.arrivals.push(Arrival { connection, at });
                stream.write_all(&self.response).is_ok()
            }
            Ok(_) => return Err(io::Error::other("a request did not arrive as a whole")),
        };
        if !is_open {
            self.connections[connection] = None;
        }
        Ok(())
    }
}
