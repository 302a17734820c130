//! A request from its sending to its end.

use crate::clock::Nanos;
use crate::target::SessionStep;

/// A request in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlightRequest {
    /// Index of its URL among those given, or of its kind.
    pub(crate) url: usize,
    /// Time at which it was due.
    pub(crate) due: Nanos,
    /// Time at which it was due and a connection was free for it, or would have been without a stall of the thread.
    pub(crate) sendable_at: Nanos,
    /// Time at which it was sent.
    pub(crate) sent: Nanos,
    /// Its size in bytes.
    pub(crate) bytes: usize,
    /// Arrival of the first byte of its response, if it was not the only one to arrive.
    pub(crate) first_byte_at: Option<Nanos>,
    /// Events of its response so far, if it is a stream of them.
    pub(crate) events: Option<u64>,
    /// Arrival of the last message of its response, for responses with several.
    pub(crate) message_at: Option<Nanos>,
    /// Number of its messages that were sent, known once it has ended; 0 if it has none.
    pub(crate) messages_sent: u64,
    /// Its place in a session, if it belongs to one.
    pub(crate) step: Option<SessionStep>,
}

impl InFlightRequest {
    /// A request that was just sent.
    pub(crate) fn new(url: usize, due: Nanos, sendable_at: Nanos, sent: Nanos, bytes: usize) -> Self {
        let (first_byte_at, events, message_at) = (None, None, None);
        let (messages_sent, step) = (0, None);
        Self { url, due, sendable_at, sent, bytes, first_byte_at, events, message_at, messages_sent, step }
    }

    /// The request at this place in a session.
    pub(crate) fn of_step(self, step: Option<SessionStep>) -> Self {
        Self { step, ..self }
    }

    /// True if the schedule made it due.
    pub(super) fn is_arrival(&self) -> bool {
        is_arrival(self.step)
    }
}

/// True if the schedule made a request due: it is not a later step of a session.
pub(super) fn is_arrival(step: Option<SessionStep>) -> bool {
    step.is_none_or(|step| step.is_first)
}
