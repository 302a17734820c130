//! How bytes move: non-blocking connections in numbered slots, and what happened to them.
//!
//! The interface is that of completions (opened, received, ended, failed), so that it can stand on readiness (epoll) as
//! well as on completion queues.

mod alarm;
mod arrival;
mod choice;
#[cfg(test)]
mod contract_tests;
mod epoll;
mod tls;
mod uring;

pub use choice::NetworkChoice;
pub(crate) use choice::{Foundation, foundations};
pub(crate) use epoll::EpollNetwork;
pub(crate) use tls::{ServerKey, TlsFailure, TlsNetwork};
pub(crate) use uring::UringNetwork;

use rustix::fd::OwnedFd;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, ipproto, sockopt};
use rustls::pki_types::ServerName;
use rustls::{CipherSuite, ProtocolVersion};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// Something that happened to the connection in a slot.
#[derive(Debug)]
pub(crate) enum Event {
    /// Its peer was reached and a TLS handshake begins, which [`Event::Opened`] or [`Event::OpenFailed`] ends.
    HandshakeStarted,
    /// It is open.
    Opened,
    /// It could not be opened.
    OpenFailed(io::Error),
    /// So many bytes stand at the start of the buffer.
    Received(usize),
    /// The peer will send no more.
    Ended,
    /// The same, but the end was not signed as TLS wants it: what was received may have been cut short by anybody.
    Truncated,
    /// It broke.
    Failed(io::Error),
}

/// What a TLS handshake agreed on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Security {
    pub(crate) version: ProtocolVersion,
    pub(crate) cipher: CipherSuite,
    /// An earlier session was resumed.
    pub(crate) resumed: bool,
    pub(crate) server_key: ServerKey,
}

/// Connections of one thread. A slot holds at most one connection.
pub(crate) trait Network {
    /// What events tell had happened when the wait for them returned, and what is sent goes out with the next one: one reading
    /// of the clock is true for all that lies between two waits.
    const IN_TURNS: bool = false;

    /// Begins to open a connection in a free slot, over TLS where there is a name of the server. [`Event::Opened`] or [`Event::OpenFailed`] follows.
    fn open(
        &mut self,
        slot: usize,
        address: SocketAddr,
        server_name: Option<&ServerName<'static>>,
    ) -> io::Result<()>;

    /// Sends all of these bytes, now as far as the kernel takes them, the rest as soon as it does.
    fn send(&mut self, slot: usize, bytes: &[u8]) -> io::Result<()>;

    /// Whether the kernel has taken everything that was to be sent in the slot.
    fn has_sent_all(&self, slot: usize) -> bool;

    /// How the connection in the slot, which is open, is secured; absent where it is plain.
    fn security(&mut self, _slot: usize) -> Option<Security> {
        None
    }

    /// Closes the connection in the slot, if there is one, at once. No event follows.
    fn close(&mut self, slot: usize);

    /// Waits for events, at most this long. Returns whether there are any.
    fn wait(&mut self, at_most: Duration) -> io::Result<bool>;

    /// From now on notes for connections that are opened when bytes come. `false`: it cannot, and does not.
    fn note_arrivals(&mut self) -> bool {
        false
    }

    /// Waits this long, whatever happens meanwhile. Returns whether there are events.
    fn sleep_through(&mut self, time: Duration) -> io::Result<bool> {
        self.wait(time)
    }

    /// How long ago the bytes came that were received last, before they were read; zero where that is not noted.
    fn came_ago(&self) -> Duration {
        Duration::ZERO
    }

    /// The next event since the last wait, its bytes read into `buffer`; absent where there is none.
    fn next_event(&mut self, buffer: &mut [u8]) -> Option<(usize, Event)>;
}

/// A TCP socket for an address, that sends without delay.
fn stream_socket(address: SocketAddr, flags: SocketFlags) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = flags | SocketFlags::CLOEXEC;
    let socket = net::socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    Ok(socket)
}
