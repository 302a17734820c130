//! TLS over another network: plain bytes on this side, records on the other.
//!
//! [`TlsNetwork`] decides what an event of the inner network means for its slot; `session` is one connection's TLS and
//! does no I/O; `failure` names what goes wrong. A slot without a server name is plain, and its events pass through.
//!
//! A slot is told as opened when its handshake is complete. One call of `send` encrypts everything into one buffer and
//! hands that to the inner network at once, but for requests beyond [`SEND_AT_ONCE_BYTES`]. Received records are opened
//! where they were read to; only a record that is not whole yet is kept with its slot.
//!
//! Left out: early data, and TLS in the kernel.

mod failure;
mod outgoing;
mod server_key;
mod session;
#[cfg(test)]
mod session_tests;

pub(crate) use failure::TlsFailure;
pub(crate) use server_key::ServerKey;

use super::{Event, Network, Security};
use crate::error::ErrorKind;
use outgoing::Outgoing;
use rustix::io::Errno;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use server_key::KnownKeys;
use session::{Session, Step};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of records read at once.
const READ_BYTES: usize = 64 * 1024;
/// Bytes of a request that are encrypted together: bounds the buffer.
const SEND_AT_ONCE_BYTES: usize = 256 * 1024;

/// See the module.
pub(crate) struct TlsNetwork<N> {
    inner: N,
    config: Arc<ClientConfig>,
    slots: Vec<Slot>,
    /// Records as they came, for whichever slot.
    incoming: Vec<u8>,
    /// Records to be sent, for whichever slot.
    outgoing: Outgoing,
    /// The slot that has more to tell before the inner network is asked again.
    unfinished: Option<usize>,
    known_keys: KnownKeys,
}

struct Slot {
    /// Sent to the server and verified; absent: the slot is plain.
    server_name: Option<ServerName<'static>>,
    /// Present from the connection's opening to its close.
    session: Option<Session>,
}

impl<N: Network> TlsNetwork<N> {
    /// Room for so many connections.
    pub(crate) fn new(inner: N, config: Arc<ClientConfig>, slots: usize) -> Self {
        Self {
            inner,
            config,
            slots: (0..slots).map(|_| Slot { server_name: None, session: None }).collect(),
            incoming: vec![0; READ_BYTES],
            outgoing: Outgoing::default(),
            unfinished: None,
            known_keys: KnownKeys::default(),
        }
    }

    fn is_plain(&self, slot: usize) -> bool {
        self.slots[slot].server_name.is_none()
    }

    /// What an event of the inner network means. `None`: nothing to tell.
    fn interpret(&mut self, slot: usize, event: Event, buffer: &mut [u8]) -> Option<Event> {
        if self.is_plain(slot) {
            if let Event::Received(length) = event {
                buffer[..length].copy_from_slice(&self.incoming[..length]);
            }
            return Some(event);
        }
        let established = self.slots[slot].session.as_ref().is_some_and(Session::is_established);
        match event {
            Event::Opened => {
                // Told first, so that the work of the handshake is no part of the time to connect.
                self.unfinished = Some(slot);
                Some(Event::HandshakeStarted)
            }
            Event::Received(length) => self.received(slot, length, buffer),
            Event::Ended if established => Some(Event::Truncated),
            Event::Ended | Event::Failed(_) if !established => {
                Some(Event::OpenFailed(TlsFailure(ErrorKind::TlsHandshake).into()))
            }
            other => Some(other),
        }
    }

    /// Takes the first `length` bytes of `incoming`.
    fn received(&mut self, slot: usize, length: usize, buffer: &mut [u8]) -> Option<Event> {
        let session = self.slots[slot].session.as_mut()?;
        let step = session.receive(&mut self.incoming[..length], &mut self.outgoing, buffer);
        self.tell(slot, step)
    }

    /// Goes on with a slot that has more to tell, or begins its handshake.
    fn go_on(&mut self, slot: usize, buffer: &mut [u8]) -> Option<Event> {
        let Slot { server_name, session } = &mut self.slots[slot];
        if let (None, Some(server_name)) = (&session, server_name) {
            match Session::new(&self.config, server_name) {
                Ok(new) => *session = Some(new),
                Err(error) => return Some(Event::OpenFailed(TlsFailure::of(&error, false).into())),
            }
        }
        let step = session.as_mut()?.receive(&mut [], &mut self.outgoing, buffer);
        self.tell(slot, step)
    }

    /// Sends what a step left to be sent, and makes an event of the step.
    fn tell(&mut self, slot: usize, step: Step) -> Option<Event> {
        let sent =
            if self.outgoing.is_empty() { Ok(()) } else { self.inner.send(slot, self.outgoing.bytes()) };
        self.outgoing.clear();
        let established = self.slots[slot].session.as_ref().is_some_and(Session::is_established);
        match (step, sent) {
            // What went wrong first is told, not that the peer has hung up on hearing it.
            (Step::Failed(failure), _) if established => Some(Event::Failed(failure.into())),
            (Step::Failed(failure), _) => Some(Event::OpenFailed(failure.into())),
            (_, Err(_)) if !established => {
                Some(Event::OpenFailed(TlsFailure(ErrorKind::TlsHandshake).into()))
            }
            (Step::NeedsMore, Ok(())) => None,
            // What was received before the connection broke is told first; that it broke is told by its events.
            (Step::NeedsMore, Err(error)) => Some(Event::Failed(error)),
            (Step::Established, _) => {
                self.unfinished = Some(slot);
                Some(Event::Opened)
            }
            (Step::Received { length, more }, _) => {
                self.unfinished = more.then_some(slot);
                Some(Event::Received(length))
            }
            (Step::Ended, _) => Some(Event::Ended),
        }
    }
}

impl<N: Network> Network for TlsNetwork<N> {
    fn open(
        &mut self,
        slot: usize,
        address: SocketAddr,
        server_name: Option<&ServerName<'static>>,
    ) -> io::Result<()> {
        self.close(slot);
        let known = &mut self.slots[slot].server_name;
        if known.as_ref() != server_name {
            *known = server_name.cloned();
        }
        self.inner.open(slot, address, server_name)
    }

    fn send(&mut self, slot: usize, bytes: &[u8]) -> io::Result<()> {
        if self.is_plain(slot) {
            return self.inner.send(slot, bytes);
        }
        let Some(session) = self.slots[slot].session.as_mut() else { return Err(Errno::NOTCONN.into()) };
        for part in bytes.chunks(SEND_AT_ONCE_BYTES) {
            let encrypted = session.encrypt(part, &mut self.outgoing);
            let sent = encrypted
                .map_err(io::Error::from)
                .and_then(|()| self.inner.send(slot, self.outgoing.bytes()));
            self.outgoing.clear();
            sent?;
        }
        Ok(())
    }

    fn has_sent_all(&self, slot: usize) -> bool {
        self.inner.has_sent_all(slot)
    }

    fn security(&mut self, slot: usize) -> Option<Security> {
        self.slots[slot].session.as_ref()?.security(&mut self.known_keys)
    }

    fn close(&mut self, slot: usize) {
        if self.unfinished == Some(slot) {
            self.unfinished = None;
        }
        if let Some(mut session) = self.slots[slot].session.take() {
            session.say_goodbye(&mut self.outgoing);
            if !self.outgoing.is_empty() {
                // A peer that is gone need not hear it.
                let _ = self.inner.send(slot, self.outgoing.bytes());
                self.outgoing.clear();
            }
        }
        self.inner.close(slot);
    }

    fn wait(&mut self, at_most: Duration) -> io::Result<bool> {
        self.inner.wait(at_most)
    }

    fn note_arrivals(&mut self) -> bool {
        self.inner.note_arrivals()
    }

    fn sleep_through(&mut self, time: Duration) -> io::Result<bool> {
        self.inner.sleep_through(time)
    }

    fn came_ago(&self) -> Duration {
        self.inner.came_ago()
    }

    fn next_event(&mut self, buffer: &mut [u8]) -> Option<(usize, Event)> {
        loop {
            let (slot, event) = if let Some(slot) = self.unfinished.take() {
                (slot, self.go_on(slot, buffer))
            } else {
                let (slot, event) = self.inner.next_event(&mut self.incoming)?;
                (slot, self.interpret(slot, event, buffer))
            };
            if let Some(event) = event {
                return Some((slot, event));
            }
        }
    }
}
