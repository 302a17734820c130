//! One connection of a worker: where it goes, what is unanswered on it.

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
    /// To be opened, not before this time.
    Closed { retry_at: Nanos },
    /// Being opened since this time.
    Opening { since: Nanos },
    /// Open.
    Open,
}

/// See the module.
pub(super) struct Connection<C> {
    /// Index of its target.
    pub(super) target: usize,
    /// Which of the target's addresses is to be tried next.
    address: usize,
    /// Which of the target's requests is next.
    request: usize,
    pub(super) codec: C,
    pub(super) state: State,
    /// While it is being opened: since when its TLS handshake goes on.
    pub(super) handshake_since: Option<Nanos>,
    /// Attempts in a row that brought no response: not opened, or closed before the first one.
    failures: u32,
    /// It has brought a response since it was opened.
    pub(super) served: bool,
    /// It stands in the queue of free connections.
    pub(super) queued: bool,
    pub(super) free_since: Nanos,
    /// Unanswered requests by stream.
    pub(super) flights: Vec<Option<Flight>>,
    pub(super) in_flight: usize,
    /// Bytes of the response that is being received.
    pub(super) response_bytes: u64,
}

impl<C: Codec> Connection<C> {
    pub(super) fn new(target: usize, codec: C) -> Self {
        Self {
            target,
            address: 0,
            request: 0,
            state: State::Closed { retry_at: 0 },
            handshake_since: None,
            failures: 0,
            served: false,
            queued: false,
            free_since: 0,
            flights: vec![None; codec.capacity()],
            in_flight: 0,
            response_bytes: 0,
            codec,
        }
    }

    /// Whether it may take another request.
    pub(super) fn has_room(&self) -> bool {
        self.state == State::Open && self.in_flight < self.codec.capacity()
    }

    /// Whether each address has been tried in vain, or one is open: nothing more to wait for before a run.
    pub(super) fn is_settled(&self, targets: &[Target]) -> bool {
        match self.state {
            State::Open => true,
            State::Opening { .. } => false,
            State::Closed { .. } => self.failures as usize >= targets[self.target].addresses.len(),
        }
    }

    /// The target's requests in turn.
    pub(super) fn next_request<'t>(&mut self, targets: &'t [Target]) -> &'t [u8] {
        let requests = &targets[self.target].requests;
        let request = &requests[self.request];
        self.request = (self.request + 1) % requests.len();
        request
    }

    /// The address to connect to. Another one after each failure, so that a dead address costs one attempt.
    pub(super) fn address(&self, targets: &[Target]) -> std::net::SocketAddr {
        let addresses = &targets[self.target].addresses;
        addresses[self.address % addresses.len()]
    }

    /// It is closed, from now on. Returns the state with the time at which it may be opened again: at once where it
    /// had served or another address has not been tried, else after a pause that doubles with each failure.
    pub(super) fn closed(&mut self, targets: &[Target], now: Nanos) -> State {
        if self.served {
            self.failures = 0;
            return State::Closed { retry_at: now };
        }
        self.failures = self.failures.saturating_add(1);
        let addresses = targets[self.target].addresses.len();
        self.address = (self.address + 1) % addresses;
        let in_vain = (self.failures as usize).saturating_sub(addresses.max(1));
        let pause = match in_vain {
            0 if (self.failures as usize) < addresses => 0,
            rounds => FIRST_BACKOFF.saturating_mul(1 << rounds.min(10)).min(MAX_BACKOFF),
        };
        State::Closed { retry_at: now + pause }
    }
}
