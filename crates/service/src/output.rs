//! Unsent output of a connection.

use crate::content::Filler;
use crate::shared::Shared;
use crate::transport::Transport;
use rustix::io::{self, Errno};
use std::io::IoSlice;

/// Maximum calls per turn for one response: 4 MiB, after which other connections get their turn.
const CALLS_PER_TURN: usize = 16;

/// Bytes that the transport has not accepted yet, and the filler after them.
#[derive(Debug, Default)]
pub(crate) struct Output {
    unsent: Vec<u8>,
    filler: Filler,
}

/// Result of sending.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Sent {
    All,
    UntilBlocked,
    /// There is more, and the socket may accept it: other connections get their turn first.
    Some,
}

impl Output {
    /// No output; filler will repeat this text.
    pub(crate) fn new(filler: &'static [u8]) -> Self {
        Self { unsent: Vec::new(), filler: Filler::new(filler, 0) }
    }

    /// True if any output waits besides what is being composed.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.unsent.is_empty() || self.filler.bytes() > 0
    }

    /// Adds this much filler after what is being composed.
    pub(crate) fn send_filler(&mut self, bytes: u64) {
        self.filler = self.filler.again(bytes);
    }

    /// Sends the unsent bytes, or else the worker's composed output for this connection, then the filler.
    pub(crate) fn send(&mut self, transport: &mut Transport, shared: &mut Shared) -> io::Result<Sent> {
        if !self.is_waiting() && shared.composed.is_empty() {
            return flush(transport);
        }
        // Nothing is composed while anything is unsent.
        let unsent = std::mem::take(&mut self.unsent);
        let composed = std::mem::take(&mut shared.composed);
        let bytes = if unsent.is_empty() { &composed } else { &unsent };
        let mut at = 0;
        let sent = self.send_pieces(transport, bytes, &mut at, shared);
        if at < bytes.len() {
            self.unsent = bytes[at..].to_vec();
        }
        shared.composed = composed;
        shared.composed.clear();
        sent
    }

    fn send_pieces(
        &mut self,
        transport: &mut Transport,
        bytes: &[u8],
        at: &mut usize,
        shared: &Shared,
    ) -> io::Result<Sent> {
        for _ in 0..CALLS_PER_TURN {
            let length = match self.send_once(transport, &bytes[*at..]) {
                Ok(length) => length,
                Err(Errno::AGAIN) => return Ok(Sent::UntilBlocked),
                Err(error) => return Err(error),
            };
            shared.tally.bytes_sent.add(length as u64);
            *at += self.filler.sent_after(&bytes[*at..], length);
            if *at == bytes.len() && self.filler.bytes() == 0 {
                return flush(transport);
            }
        }
        Ok(Sent::Some)
    }

    fn send_once(&self, transport: &mut Transport, bytes: &[u8]) -> io::Result<usize> {
        if self.filler.bytes() == 0 {
            return transport.send(&[IoSlice::new(bytes)]);
        }
        let (slices, used) = self.filler.slices(bytes);
        transport.send(&slices[..used])
    }
}

fn flush(transport: &mut Transport) -> io::Result<Sent> {
    match transport.flush() {
        Ok(()) => Ok(Sent::All),
        Err(Errno::AGAIN) => Ok(Sent::UntilBlocked),
        Err(error) => Err(error),
    }
}
