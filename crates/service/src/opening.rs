//! A connection during its TLS handshake, which has a timeout.

use crate::counters::Tally;
use crate::settings::Protocol;
use crate::shared::Shared;
use crate::transport::Transport;
use crate::turn::{LINGER_NS, Turn};
use rustix::io::{self, Errno};

/// Maximum duration of a handshake, from accepting the connection.
const MAX_HANDSHAKE_NS: u64 = 10_000_000_000;

/// A connection during its TLS handshake.
#[derive(Debug)]
pub(crate) struct Opening {
    transport: Transport,
    protocol: Protocol,
    until_ns: u64,
    /// The handshake failed, and the client must receive the alert before the connection ends.
    refused: bool,
}

/// What a connection becomes after the handshake.
#[derive(Debug)]
pub(crate) enum Opened {
    Http1(Transport),
    Http2(Transport),
    Tcp(Transport),
}

impl Opening {
    pub(crate) fn new(transport: Transport, protocol: Protocol, now_ns: u64) -> Self {
        Self { transport, protocol, until_ns: now_ns + MAX_HANDSHAKE_NS, refused: false }
    }

    pub(crate) fn has_input(&mut self, half_closed: bool) {
        self.transport.has_input(half_closed);
    }

    /// Runs one turn; `None` once the handshake is complete.
    pub(crate) fn turn(&mut self, shared: &mut Shared) -> Option<Turn> {
        self.step(shared).unwrap_or(Some(Turn::Close))
    }

    fn step(&mut self, shared: &mut Shared) -> io::Result<Option<Turn>> {
        if shared.now_ns() >= self.until_ns {
            return Ok(Some(Turn::Close));
        }
        if !self.refused {
            match self.transport.handshake() {
                Ok(true) => {
                    shared.tally.handshakes.add(1);
                    return Ok(None);
                }
                Ok(false) => return Ok(Some(Turn::WaitUntil(self.until_ns))),
                Err(Errno::PROTO) => {
                    self.refused = true;
                    self.until_ns = shared.now_ns() + LINGER_NS;
                    self.transport.end_sending()?;
                }
                Err(error) => return Err(error),
            }
        }
        let ended = self.transport.drain(&mut shared.received)?;
        Ok(Some(if ended { Turn::Close } else { Turn::WaitUntil(self.until_ns) }))
    }

    /// The connection after its handshake.
    pub(crate) fn into_opened(self) -> Opened {
        match self.protocol {
            Protocol::Tcp => Opened::Tcp(self.transport),
            Protocol::Http if self.transport.negotiated_http2() => Opened::Http2(self.transport),
            Protocol::Http => Opened::Http1(self.transport),
        }
    }

    /// Counts a handshake that did not succeed.
    pub(crate) fn count_end(&self, tally: &Tally) {
        tally.handshakes_failed.add(1);
    }
}
