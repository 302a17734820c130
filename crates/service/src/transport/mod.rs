//! How the bytes of one connection move: as they are, or through TLS. Nothing here waits.
//!
//! The socket is watched edge-triggered: a [`Transport`] remembers whether it may have something to read, and is asked no
//! more once it has nothing. What TLS has encrypted and the socket did not take is kept here and sent by [`Transport::flush`].

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

/// A connection's bytes, both ways.
#[derive(Debug)]
pub(crate) struct Transport {
    link: Link,
    session: Option<Box<Session>>,
}

impl Transport {
    /// Over a socket that does not block, with TLS where there is a configuration for it.
    pub(crate) fn new(socket: OwnedFd, tls: Option<&Arc<ServerConfig>>) -> Self {
        Self { link: Link::new(socket), session: tls.map(|config| Box::new(Session::new(config))) }
    }

    /// Notes that the socket has something to read, and whether the client will send no more behind it.
    pub(crate) fn has_input(&mut self, half_closed: bool) {
        self.link.has_input(half_closed);
    }

    /// Whether there may be something to read.
    pub(crate) fn is_readable(&self) -> bool {
        self.link.is_readable() || self.session.as_ref().is_some_and(|session| session.may_hold_more())
    }

    /// Whether closing it now takes nothing from the client: all it sent was read, and there is no farewell to say.
    pub(crate) fn may_close_at_once(&self) -> bool {
        self.session.is_none() && !self.link.is_readable()
    }

    /// Goes on with the TLS handshake: whether it is complete, as it always is without TLS.
    pub(crate) fn shake_hands(&mut self) -> io::Result<bool> {
        match &mut self.session {
            None => Ok(true),
            Some(session) => session.shake_hands(&mut self.link),
        }
    }

    /// Whether the TLS handshake has agreed on HTTP/2.
    pub(crate) fn has_agreed_on_http2(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.has_agreed_on(b"h2"))
    }

    /// Reads into the room that `into` has: how many bytes, 0 at the end of the stream, nothing where there is none now.
    pub(crate) fn receive(&mut self, into: &mut Vec<u8>) -> io::Result<Option<usize>> {
        let Some(session) = &mut self.session else { return self.link.receive(into) };
        let room = into.capacity() - into.len();
        session.receive(&mut self.link, |plain| {
            let length = plain.len().min(room);
            into.extend_from_slice(&plain[..length]);
            length
        })
    }

    /// The same into the room of a slice.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        let Some(session) = &mut self.session else { return self.link.read(into) };
        session.receive(&mut self.link, |plain| {
            let length = plain.len().min(into.len());
            into[..length].copy_from_slice(&plain[..length]);
            length
        })
    }

    /// Reads and throws away what the socket has, records of TLS or not: whether the stream has ended.
    pub(crate) fn drain(&mut self, room: &mut Vec<u8>) -> io::Result<bool> {
        while self.link.is_readable() {
            room.clear();
            if self.link.receive(room)? == Some(0) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Sends from the start of `pieces`, which hold a byte at least, and says how many bytes were taken.
    ///
    /// # Errors
    /// [`Errno::AGAIN`] where none was taken: the socket's next event says when to go on.
    pub(crate) fn send(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match &mut self.session {
            None => self.link.send(pieces),
            Some(session) => session.send(&mut self.link, pieces),
        }
    }

    /// Sends what was taken and is still here.
    ///
    /// # Errors
    /// [`Errno::AGAIN`] where some of it has to stay.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match &mut self.session {
            None => Ok(()),
            Some(session) => session.flush(&mut self.link),
        }
    }

    /// Says that nothing more will be sent.
    pub(crate) fn end_sending(&mut self) -> io::Result<()> {
        if let Some(session) = &mut self.session {
            session.say_goodbye();
            match session.flush(&mut self.link) {
                // A client that takes nothing does without the farewell.
                Ok(()) | Err(Errno::AGAIN) => {}
                Err(error) => return Err(error),
            }
        }
        shutdown(self.link.socket(), Shutdown::Write)
    }
}
