//! TLS on top of another network: plaintext on this side, records on the other.
//!
//! [`TlsNetwork`] interprets events of the inner network for their slots. `session` is the TLS of one
//! connection and does no I/O; `failure` classifies errors. A slot without a server name is plaintext, and
//! its events pass through.
//!
//! A slot is reported as opened when its handshake is complete. One call of `send` encrypts everything into
//! one buffer and hands that to the inner network at once, except for requests beyond [`SEND_AT_ONCE_BYTES`].
//! Received records are decrypted in the buffer they were read into; only an incomplete record is kept with
//! its slot.
//!
//! Not supported: early data and kernel TLS.

mod failure;
mod outgoing;
mod server_key;
mod session;
#[cfg(test)]
mod session_tests;
mod turns;

pub(crate) use failure::TlsFailure;
pub(crate) use server_key::ServerKey;
pub(crate) use turns::TlsTurns;

use super::{Event, Network, Route, Security};
use crate::error::ErrorKind;
use outgoing::Outgoing;
use rustix::io::Errno;
use rustls::pki_types::ServerName;
use server_key::KnownKeys;
use session::{Session, Step};
use std::io;
use std::time::Duration;

/// Maximum bytes of records per read.
const READ_BYTES: usize = 64 * 1024;
/// Bytes of a request that are encrypted together; bounds the buffer.
const SEND_AT_ONCE_BYTES: usize = 256 * 1024;

/// A network that adds TLS to an inner one.
pub(crate) struct TlsNetwork<N> {
    inner: N,
    configs: TlsTurns,
    slots: Vec<Slot>,
    /// Received records; shared by all slots.
    incoming: Vec<u8>,
    /// Records to send; shared by all slots.
    outgoing: Outgoing,
    /// The slot that has more to report before the inner network is polled again.
    unfinished: Option<usize>,
    known_keys: KnownKeys,
}

struct Slot {
    /// Sent to the server and verified; `None` if the slot is plaintext.
    server_name: Option<ServerName<'static>>,
    /// Present while the connection is open.
    session: Option<Session>,
}

impl<N: Network> TlsNetwork<N> {
    /// Creates a network with this many slots.
    pub(crate) fn new(inner: N, configs: TlsTurns, slots: usize) -> Self {
        Self {
            inner,
            configs,
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

    /// Interprets an event of the inner network. `None`: nothing to report.
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
                // Reported first, so that the handshake's work does not count towards the connect time.
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

    /// Processes the first `length` bytes of `incoming`.
    fn received(&mut self, slot: usize, length: usize, buffer: &mut [u8]) -> Option<Event> {
        let session = self.slots[slot].session.as_mut()?;
        let step = session.receive(&mut self.incoming[..length], &mut self.outgoing, buffer);
        self.tell(slot, step)
    }

    /// Continues with a slot that has more to report, or starts its handshake.
    fn go_on(&mut self, slot: usize, buffer: &mut [u8]) -> Option<Event> {
        let Slot { server_name, session } = &mut self.slots[slot];
        if let (None, Some(server_name)) = (&session, server_name) {
            match Session::new(self.configs.take(), server_name) {
                Ok(new) => *session = Some(new),
                Err(error) => return Some(Event::OpenFailed(TlsFailure::from_error(&error, false).into())),
            }
        }
        let step = session.as_mut()?.receive(&mut [], &mut self.outgoing, buffer);
        self.tell(slot, step)
    }

    /// Sends the output of a step, and turns the step into an event.
    fn tell(&mut self, slot: usize, step: Step) -> Option<Event> {
        let sent =
            if self.outgoing.is_empty() { Ok(()) } else { self.inner.send(slot, self.outgoing.bytes()) };
        self.outgoing.clear();
        let established = self.slots[slot].session.as_ref().is_some_and(Session::is_established);
        match (step, sent) {
            // The original failure is reported, not the peer hanging up in response to it.
            (Step::Failed(failure), _) if established => Some(Event::Failed(failure.into())),
            (Step::Failed(failure), _) => Some(Event::OpenFailed(failure.into())),
            (_, Err(_)) if !established => {
                Some(Event::OpenFailed(TlsFailure(ErrorKind::TlsHandshake).into()))
            }
            (Step::NeedsMore, Ok(())) => None,
            // Data received before the connection broke is reported first; the failure is reported by its own
            // event.
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
    const SENDS_AT_ONCE: bool = N::SENDS_AT_ONCE;

    fn grow(&mut self) {
        self.slots.push(Slot { server_name: None, session: None });
        self.inner.grow();
    }

    fn open(
        &mut self,
        slot: usize,
        route: Route<'_>,
        server_name: Option<&ServerName<'static>>,
    ) -> io::Result<()> {
        self.close(slot);
        let known = &mut self.slots[slot].server_name;
        if known.as_ref() != server_name {
            *known = server_name.cloned();
        }
        self.inner.open(slot, route, server_name)
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

    fn queued_bytes(&self, slot: usize) -> usize {
        self.inner.queued_bytes(slot)
    }

    fn security(&mut self, slot: usize) -> Option<Security> {
        self.slots[slot].session.as_ref()?.security(&mut self.known_keys)
    }

    fn close(&mut self, slot: usize) {
        if self.unfinished == Some(slot) {
            self.unfinished = None;
        }
        if let Some(mut session) = self.slots[slot].session.take() {
            session.send_close_notify(&mut self.outgoing);
            if !self.outgoing.is_empty() {
                // The alert does not matter to a peer that is gone.
                let _ = self.inner.send(slot, self.outgoing.bytes());
                self.outgoing.clear();
            }
        }
        self.inner.close(slot);
    }

    fn wait(&mut self, at_most: Duration) -> io::Result<bool> {
        self.inner.wait(at_most)
    }

    fn sleep_through(&mut self, time: Duration) -> io::Result<bool> {
        self.inner.sleep_through(time)
    }

    fn arrived(&self) -> Option<Duration> {
        self.inner.arrived()
    }

    fn has_read_all(&self) -> bool {
        self.inner.has_read_all()
    }

    fn has_more_of_read(&self) -> bool {
        self.unfinished.is_some()
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
