//! The bytes of one connection: plaintext, or through TLS. Nothing here waits.
//!
//! The socket is watched edge-triggered: a [`Transport`] remembers whether it may be readable, and does not
//! read once it is drained. TLS records that the socket did not accept are kept here and sent by
//! [`Transport::flush`].

mod link;
mod session;

use link::Link;
use rustix::fd::OwnedFd;
use rustix::io::{self, Errno};
use rustix::net::{Shutdown, shutdown};
use rustls::ServerConfig;
use session::Session;
use std::io::IoSlice;
use std::sync::Arc;

/// Byte transport of a connection, in both directions.
#[derive(Debug)]
pub(crate) struct Transport {
    link: Link,
    session: Option<Box<Session>>,
}

impl Transport {
    /// A transport over a non-blocking socket, with TLS if there is a configuration for it.
    pub(crate) fn new(socket: OwnedFd, tls: Option<&Arc<ServerConfig>>) -> Self {
        Self { link: Link::new(socket), session: tls.map(|config| Box::new(Session::new(config))) }
    }

    /// Notes that the socket is readable, and whether the client has closed its sending side.
    pub(crate) fn has_input(&mut self, half_closed: bool) {
        self.link.has_input(half_closed);
    }

    /// True if there may be something to read.
    pub(crate) fn is_readable(&self) -> bool {
        self.link.is_readable() || self.session.as_ref().is_some_and(|session| session.may_hold_more())
    }

    /// True if closing it now loses nothing for the client: all input was read, and no close_notify is
    /// needed.
    pub(crate) fn may_close_at_once(&self) -> bool {
        self.session.is_none() && !self.link.is_readable()
    }

    /// Continues the TLS handshake. Returns true if it is complete, as it always is without TLS.
    pub(crate) fn handshake(&mut self) -> io::Result<bool> {
        match &mut self.session {
            None => Ok(true),
            Some(session) => session.handshake(&mut self.link),
        }
    }

    /// True if the TLS handshake selected HTTP/2.
    pub(crate) fn negotiated_http2(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.has_agreed_on(b"h2"))
    }

    /// Reads into the spare capacity of `into`: the number of bytes, 0 at the end of the stream, `None` if
    /// nothing is available.
    pub(crate) fn receive(&mut self, into: &mut Vec<u8>) -> io::Result<Option<usize>> {
        let Some(session) = &mut self.session else { return self.link.receive(into) };
        let room = into.capacity() - into.len();
        session.receive(&mut self.link, |plain| {
            let length = plain.len().min(room);
            into.extend_from_slice(&plain[..length]);
            length
        })
    }

    /// Like [`Self::receive`], but into a slice.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        let Some(session) = &mut self.session else { return self.link.read(into) };
        session.receive(&mut self.link, |plain| {
            let length = plain.len().min(into.len());
            into[..length].copy_from_slice(&plain[..length]);
            length
        })
    }

    /// Reads and discards available input, TLS records or not. Returns true at the end of the stream.
    pub(crate) fn drain(&mut self, room: &mut Vec<u8>) -> io::Result<bool> {
        while self.link.is_readable() {
            room.clear();
            if self.link.receive(room)? == Some(0) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Sends from the start of `pieces`, which hold at least one byte, and returns how many bytes were
    /// accepted. Fails with [`Errno::AGAIN`] if none was accepted: the socket's next event signals when to
    /// continue.
    pub(crate) fn send(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match &mut self.session {
            None => self.link.send(pieces),
            Some(session) => session.send(&mut self.link, pieces),
        }
    }

    /// Sends what was accepted and is still buffered here. Fails with [`Errno::AGAIN`] if some of it remains.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match &mut self.session {
            None => Ok(()),
            Some(session) => session.flush(&mut self.link),
        }
    }

    /// Announces that nothing more will be sent.
    pub(crate) fn end_sending(&mut self) -> io::Result<()> {
        if let Some(session) = &mut self.session {
            session.send_close_notify();
            match session.flush(&mut self.link) {
                // A client that reads nothing gets no close_notify.
                Ok(()) | Err(Errno::AGAIN) => {}
                Err(error) => return Err(error),
            }
        }
        shutdown(self.link.socket(), Shutdown::Write)
    }
}
