//! One connection of a worker: where it goes, what is unanswered on it.

use super::pools::Attempts;
use crate::clock::Nanos;
use crate::protocol::Codec;
use crate::recorder::Flight;
use crate::target::Target;

/// First pause before a connection is tried again; doubled with each failure.
pub(super) const FIRST_BACKOFF: Nanos = 10_000_000;
/// Longest pause.
const MAX_BACKOFF: Nanos = 1_000_000_000;

/// How far a connection is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum State {
    /// For no server: see [`super::pools`].
    Unassigned,
    /// To be opened, not before this time.
    Closed { retry_at: Nanos },
    /// Being opened since this time.
    Opening { since: Nanos },
    /// Open since a while, but the peer has not said yet that it takes requests; being opened since this time.
    Greeting { since: Nanos },
    /// Open for requests.
    Open,
}

/// See the module.
pub(super) struct Connection<C> {
    /// Index of its server; the last one where it has none.
    pub(super) target: usize,
    attempts: Attempts,
    pub(super) codec: C,
    pub(super) state: State,
    /// While it is being opened: since when its TLS handshake goes on.
    pub(super) handshake_since: Option<Nanos>,
    /// It has brought a response since it was opened.
    pub(super) served: bool,
    /// It stands in the queue of free connections.
    pub(super) queued: bool,
    pub(super) free_since: Nanos,
    /// Where connections roam: since when it has been open without an unanswered request; absent where it is not so.
    pub(super) idle_since: Option<Nanos>,
    /// Unanswered requests by stream.
    flights: Vec<Option<Flight>>,
    pub(super) in_flight: usize,
    /// Requests begun since it was opened.
    pub(super) requests: u64,
    /// It takes no more requests and is closed when those unanswered have ended.
    pub(super) closing: bool,
    /// When the peer last sent anything.
    pub(super) heard_at: Nanos,
    /// What it has to send, until that is handed to the network.
    pub(super) outgoing: Vec<u8>,
}

impl<C: Codec> Connection<C> {
    pub(super) fn new(target: usize, codec: C) -> Self {
        Self {
            target,
            attempts: Attempts::default(),
            state: State::Closed { retry_at: 0 },
            handshake_since: None,
            served: false,
            queued: false,
            free_since: 0,
            idle_since: None,
            flights: vec![None; codec.streams()],
            in_flight: 0,
            requests: 0,
            closing: false,
            heard_at: 0,
            outgoing: Vec::new(),
            codec,
        }
    }

    /// It is open, and was being opened since that time.
    pub(super) fn opened(&mut self, since: Nanos, now: Nanos) {
        (self.requests, self.closing, self.heard_at) = (0, false, now);
        self.outgoing.clear();
        self.codec.open(&mut self.outgoing);
        self.state = if self.codec.has_room() { State::Open } else { State::Greeting { since } };
    }

    /// Whether it takes another request, as far as it is concerned.
    pub(super) fn takes_requests(&self) -> bool {
        self.state == State::Open && !self.closing && self.codec.has_room()
    }

    /// Its server, where it has been open without an unanswered request since just that time.
    pub(super) fn server_if_idle(&self, since: Nanos) -> Option<usize> {
        (self.idle_since == Some(since)).then_some(self.target)
    }

    /// It is for another server from now on, and closed.
    pub(super) fn assign(&mut self, server: usize, attempts: Attempts) {
        (self.target, self.attempts) = (server, attempts);
        self.state = State::Closed { retry_at: 0 };
        (self.served, self.queued, self.idle_since) = (false, false, None);
    }

    /// A request is on its way.
    pub(super) fn begun(&mut self, stream: usize, flight: Flight) {
        self.flights[stream] = Some(flight);
        self.idle_since = None;
        self.in_flight += 1;
        self.requests += 1;
    }

    /// The request of a stream, unless it has ended.
    pub(super) fn flight(&mut self, stream: usize) -> Option<&mut Flight> {
        self.flights.get_mut(stream)?.as_mut()
    }

    /// The request of a stream has ended. Returns it, unless it has ended before.
    pub(super) fn ended(&mut self, stream: usize) -> Option<Flight> {
        let flight = self.flights.get_mut(stream)?.take()?;
        self.in_flight -= 1;
        Some(Flight { messages_sent: self.codec.messages_sent(stream), ..flight })
    }

    /// All its requests have ended.
    pub(super) fn all_ended(&mut self) -> impl Iterator<Item = Flight> {
        self.in_flight = 0;
        let codec = &self.codec;
        self.flights.iter_mut().enumerate().filter_map(|(stream, flight)| {
            Some(Flight { messages_sent: codec.messages_sent(stream), ..flight.take()? })
        })
    }

    /// A stream whose request was sent at this time or before.
    pub(super) fn overdue(&self, sent: Nanos) -> Option<usize> {
        self.flights.iter().position(|flight| flight.is_some_and(|flight| flight.sent <= sent))
    }

    /// Whether each address has been tried in vain, or one is open: nothing more to wait for before a run.
    pub(super) fn is_settled(&self, targets: &[Target]) -> bool {
        match self.state {
            State::Open => true,
            State::Opening { .. } | State::Greeting { .. } => false,
            State::Unassigned => true,
            State::Closed { .. } => self.attempts.failures as usize >= targets[self.target].addresses.len(),
        }
    }

    /// The address to connect to. Another one after each failure, so that a dead address costs one attempt.
    pub(super) fn address(&self, targets: &[Target]) -> std::net::SocketAddr {
        let addresses = &targets[self.target].addresses;
        addresses[self.attempts.address % addresses.len()]
    }

    /// How connections to its server fared.
    pub(super) fn attempts(&self) -> Attempts {
        let failures = if self.served { 0 } else { self.attempts.failures };
        Attempts { failures, ..self.attempts }
    }

    /// It is closed, from now on. Returns the state with the time at which it may be opened again: at once where it
    /// had served or another address has not been tried, else after a pause that doubles with each failure.
    pub(super) fn closed(&mut self, targets: &[Target], now: Nanos) -> State {
        self.idle_since = None;
        if self.served {
            self.attempts.failures = 0;
            return State::Closed { retry_at: now };
        }
        let attempts = &mut self.attempts;
        attempts.failures = attempts.failures.saturating_add(1);
        let addresses = targets[self.target].addresses.len();
        attempts.address = (attempts.address + 1) % addresses;
        let in_vain = (attempts.failures as usize).saturating_sub(addresses.max(1));
        let pause = match in_vain {
            0 if (attempts.failures as usize) < addresses => 0,
            rounds => FIRST_BACKOFF.saturating_mul(1 << rounds.min(10)).min(MAX_BACKOFF),
        };
        State::Closed { retry_at: now + pause }
    }
}
