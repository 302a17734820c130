//! Movement of bytes: non-blocking connections in numbered slots, and their events.
//!
//! The interface is completion-based (opened, received, ended, failed), so that both readiness (epoll) and
//! completion queues (io_uring) can implement it.

mod choice;
#[cfg(test)]
mod contract_tests;
mod epoll;
mod proxy_header;
mod route;
mod rx_timestamp;
mod tls;
mod uring;
mod wake_timer;

pub use choice::IoBackendChoice;
pub(crate) use choice::{IoBackend, io_backends};
pub(crate) use epoll::EpollNetwork;
pub use proxy_header::ProxyProtocol;
pub(crate) use route::Route;
pub(crate) use rx_timestamp::wall_clock;
pub(crate) use tls::{ServerKey, TlsFailure, TlsNetwork, TlsTurns};
pub(crate) use uring::UringNetwork;

use rustix::fs::Timespec;
use rustix::thread::{ClockId, clock_nanosleep_relative};
use rustls::pki_types::ServerName;
use rustls::{CipherSuite, ProtocolVersion};
use std::io;
use std::time::Duration;

/// An event of the connection in a slot.
#[derive(Debug)]
pub(crate) enum Event {
    /// The connection is established and a TLS handshake begins; [`Event::Opened`] or
    /// [`Event::OpenFailed`] ends it.
    HandshakeStarted,
    /// The connection is open.
    Opened,
    /// The connection could not be opened.
    OpenFailed(io::Error),
    /// This many bytes are at the start of the buffer.
    Received(usize),
    /// The peer has closed its sending side.
    Ended,
    /// Like [`Event::Ended`], but without the close_notify that TLS requires: anybody may have truncated the
    /// data.
    Truncated,
    /// The connection broke.
    Failed(io::Error),
}

/// Result of a TLS handshake's negotiation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Security {
    pub(crate) version: ProtocolVersion,
    pub(crate) cipher: CipherSuite,
    /// An earlier session was resumed.
    pub(crate) resumed: bool,
    pub(crate) server_key: ServerKey,
}

/// Connections of one thread. Each slot holds at most one connection.
pub(crate) trait Network {
    /// True if events happened before the wait for them returned, and sends go out with the next wait. One
    /// clock reading is then valid for everything between two waits.
    const IN_TURNS: bool = false;

    /// True if [`Self::send`] hands the bytes to the kernel at once, and not with the next wait.
    const SENDS_AT_ONCE: bool;

    /// Adds a slot.
    fn grow(&mut self);

    /// Starts to open a connection in a free slot, over TLS if a server name is given. [`Event::Opened`] or
    /// [`Event::OpenFailed`] follows.
    fn open(
        &mut self,
        slot: usize,
        route: Route<'_>,
        server_name: Option<&ServerName<'static>>,
    ) -> io::Result<()>;

    /// Sends all of these bytes: now as far as the kernel accepts them, the rest as soon as it does.
    fn send(&mut self, slot: usize, bytes: &[u8]) -> io::Result<()>;

    /// True if the kernel has accepted everything sent in the slot.
    fn has_sent_all(&self, slot: usize) -> bool;

    /// Bytes sent in the slot that wait until the kernel can be given more.
    fn queued_bytes(&self, slot: usize) -> usize;

    /// Security of the open connection in the slot; `None` if it is plaintext.
    fn security(&mut self, _slot: usize) -> Option<Security> {
        None
    }

    /// Closes the connection in the slot at once, if there is one. No event follows.
    fn close(&mut self, slot: usize);

    /// Waits for events for at most this long. Returns true if there are any.
    fn wait(&mut self, at_most: Duration) -> io::Result<bool>;

    /// Waits this long regardless of events. Returns true if there are any.
    fn sleep_through(&mut self, time: Duration) -> io::Result<bool>;

    /// Arrival of the last of the bytes received last, by [`wall_clock`]; `None` if the kernel did not note it.
    fn arrived(&self) -> Option<Duration>;

    /// True if the events so far were all there was: what comes next came after them.
    fn has_read_all(&self) -> bool;

    /// True if the next event has more of the bytes received last.
    fn has_more_of_read(&self) -> bool {
        false
    }

    /// Next event since the last wait, with its bytes read into `buffer`; `None` when there are no more.
    fn next_event(&mut self, buffer: &mut [u8]) -> Option<(usize, Event)>;
}

/// Sleeps; a signal ends it early, as it would end a wait.
fn sleep(time: Duration) {
    let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
    let _ = clock_nanosleep_relative(ClockId::Monotonic, &time);
}
