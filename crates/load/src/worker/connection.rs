//! One connection of a worker: its server, and the unanswered requests on it.

use super::retries::Retries;
use super::roaming::Attempts;
use crate::clock::Nanos;
use crate::lookups::Addresses;
use crate::protocol::Codec;
use crate::recorder::InFlightRequest;
use crate::target::{Address, Chosen};

/// Time without requests from which a connection is idle. No server closes connections so soon for being idle, and under load
/// few are idle for so long.
const MIN_IDLE: Nanos = 100_000_000;
/// The same for a connection that has served no request yet: a peer that refuses connections does so sooner.
const MIN_UNUSED: Nanos = 500_000_000;

/// Difference between the clocks of requests and of received bytes, beyond any that grows while bytes wait to be read: the wall clock
/// is slewed by 0.05 % at most.
const CLOCK_TOLERANCE: Nanos = 50_000;

/// State of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum State {
    /// Without a server: see [`super::roaming`].
    Unassigned,
    /// To be opened, but not before this time.
    Closed { retry_at: Nanos },
    /// Being opened since this time.
    Opening { since: Nanos },
    /// Connected, but the peer has not announced that it accepts requests; being opened since this time.
    Greeting { since: Nanos },
    /// Open for requests.
    Open,
}

/// A request whose connection is being opened.
pub(super) struct Held {
    pub(super) flight: InFlightRequest,
    pub(super) chosen: Chosen,
}

/// State of one connection.
pub(super) struct Connection<C> {
    /// Index of its server; the last one if it has none.
    pub(super) target: usize,
    attempts: Attempts,
    /// The first address that it is opened at.
    home: usize,
    /// The address that it was opened at last, if that is counted.
    pub(super) at: Option<Address>,
    /// The request that it is being opened for.
    pub(super) held: Option<Box<Held>>,
    /// Since when it cannot be opened: the start of the first attempt that failed.
    failing_since: Option<Nanos>,
    pub(super) codec: C,
    pub(super) state: State,
    /// While it is being opened: start of its TLS handshake.
    pub(super) handshake_since: Option<Nanos>,
    /// It has received a response since it was opened.
    pub(super) served: bool,
    /// It is in the queue of free connections.
    pub(super) queued: bool,
    pub(super) free_since: Nanos,
    /// With roaming: since when it has been open without an unanswered request; `None` if it is not.
    pub(super) idle_since: Option<Nanos>,
    /// Unanswered requests, by stream.
    flights: Vec<Option<InFlightRequest>>,
    pub(super) in_flight: usize,
    /// Requests started since it was opened.
    pub(super) requests: u64,
    /// It accepts no more requests and closes when the unanswered ones have ended.
    pub(super) closing: bool,
    /// When its last request was handed over to be sent.
    pub(super) asked_at: Nanos,
    /// When the peer last sent anything.
    pub(super) heard_at: Nanos,
    /// Its idle time before its unanswered requests, if nothing came since they began.
    idle_before: Nanos,
    /// Output that is not handed to the network yet.
    pub(super) outgoing: Vec<u8>,
}

impl<C: Codec> Connection<C> {
    /// A closed connection, which is to be opened at this one of its server's addresses first.
    pub(super) fn new(target: usize, address: usize, codec: C) -> Self {
        Self {
            target,
            attempts: Attempts { address, failures: 0 },
            home: address,
            at: None,
            held: None,
            failing_since: None,
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
            asked_at: 0,
            heard_at: 0,
            idle_before: 0,
            outgoing: Vec::new(),
            codec,
        }
    }

    /// The connection, being opened since `since`, is established for requests such as this one.
    pub(super) fn opened(&mut self, request: &C::Request, since: Nanos, now: Nanos) {
        (self.requests, self.closing, self.heard_at) = (0, false, now);
        self.outgoing.clear();
        self.codec.open(request, &mut self.outgoing);
        self.state = if self.codec.can_send() { State::Open } else { State::Greeting { since } };
    }

    /// It is open, or no longer its server's. Returns since when it could not be opened, if attempts had failed.
    pub(super) fn take_failing_since(&mut self) -> Option<Nanos> {
        self.failing_since.take()
    }

    /// Since when it cannot be opened. An attempt under way counts if it takes twice as long as `slowest`, the slowest that succeeded.
    pub(super) fn without_since(&self, slowest: Nanos, now: Nanos) -> Option<Nanos> {
        let is_hopeless = |since: &Nanos| now.saturating_sub(*since) > 2 * slowest;
        self.failing_since.or_else(|| self.opening_since().filter(is_hopeless))
    }

    fn opening_since(&self) -> Option<Nanos> {
        match self.state {
            State::Opening { since } | State::Greeting { since } => Some(since),
            State::Unassigned | State::Closed { .. } | State::Open => None,
        }
    }

    /// The clock gets another origin.
    pub(super) fn restart_times(&mut self) {
        (self.free_since, self.heard_at) = (0, 0);
        for time in [&mut self.handshake_since, &mut self.idle_since, &mut self.failing_since] {
            *time = time.map(|_| 0);
        }
        match &mut self.state {
            State::Closed { retry_at: time }
            | State::Opening { since: time }
            | State::Greeting { since: time } => *time = 0,
            State::Open | State::Unassigned => {}
        }
    }

    /// True if it accepts another request.
    pub(super) fn takes_requests(&self) -> bool {
        self.state == State::Open && !self.closing && self.codec.can_send()
    }

    /// Its server, if it has been idle since exactly this time.
    pub(super) fn server_if_idle(&self, since: Nanos) -> Option<usize> {
        (self.idle_since == Some(since)).then_some(self.target)
    }

    /// Assigns the closed connection to another server.
    pub(super) fn assign(&mut self, server: usize, attempts: Attempts) {
        (self.target, self.attempts) = (server, attempts);
        self.state = State::Closed { retry_at: 0 };
        (self.served, self.queued, self.idle_since, self.failing_since) = (false, false, None, None);
    }

    /// A request was started.
    pub(super) fn begun(&mut self, stream: usize, flight: InFlightRequest) {
        self.flights[stream] = Some(flight);
        self.asked_at = flight.sent;
        if self.in_flight == 0 {
            self.idle_before = flight.sent.saturating_sub(self.heard_at);
        }
        self.idle_since = None;
        self.in_flight += 1;
        self.requests += 1;
    }

    /// The peer has sent something.
    pub(super) fn heard(&mut self, now: Nanos) {
        (self.heard_at, self.idle_before) = (now, 0);
    }

    /// True if bytes that came at this time were there before its only unanswered request.
    pub(super) fn was_ahead_of_request(&self, came: Nanos) -> bool {
        self.in_flight > 0 && came + CLOCK_TOLERANCE < self.asked_at
    }

    /// True if it was idle before its unanswered requests: the peer may have closed it as they were sent.
    pub(super) fn was_idle(&self) -> bool {
        let least = if self.served { MIN_IDLE } else { MIN_UNUSED };
        self.in_flight > 0 && self.idle_before >= least
    }

    /// True if a peer that closes it now does not refuse it: it has no unanswered request, and has served or was open for a while.
    pub(super) fn may_be_closed(&self, now: Nanos) -> bool {
        let was_of_use = self.served || now.saturating_sub(self.heard_at) >= MIN_UNUSED;
        self.state == State::Open && self.in_flight == 0 && was_of_use
    }

    /// The request of a stream, unless it has ended.
    pub(super) fn flight(&mut self, stream: usize) -> Option<&mut InFlightRequest> {
        self.flights.get_mut(stream)?.as_mut()
    }

    /// Bytes of its unanswered requests.
    pub(super) fn in_flight_bytes(&self) -> usize {
        self.flights.iter().flatten().map(|flight| flight.bytes).sum()
    }

    /// The request of a stream has ended. Returns it, unless it had ended before.
    pub(super) fn ended(&mut self, stream: usize) -> Option<InFlightRequest> {
        let flight = self.flights.get_mut(stream)?.take()?;
        self.in_flight -= 1;
        Some(InFlightRequest { messages_sent: self.codec.messages_sent(stream), ..flight })
    }

    /// Ends all its requests.
    pub(super) fn all_ended(&mut self) -> impl Iterator<Item = InFlightRequest> {
        self.in_flight = 0;
        let codec = &self.codec;
        self.flights.iter_mut().enumerate().filter_map(|(stream, flight)| {
            Some(InFlightRequest { messages_sent: codec.messages_sent(stream), ..flight.take()? })
        })
    }

    /// A stream whose request was sent at this time or earlier.
    pub(super) fn overdue(&self, sent: Nanos) -> Option<usize> {
        self.flights.iter().position(|flight| flight.is_some_and(|flight| flight.sent <= sent))
    }

    /// True if it is open, or if every address has failed: nothing more to wait for before a run. Further attempts count as little: with
    /// many connections one is always under way.
    pub(super) fn is_settled(&self, addresses: &Addresses<'_>) -> bool {
        match self.state {
            State::Open => true,
            State::Unassigned => true,
            State::Opening { .. } | State::Greeting { .. } | State::Closed { .. } => {
                self.attempts.failures as usize >= addresses.of(self.target).len()
            }
        }
    }

    /// The address to connect to: the next one after each failure, so that a dead address costs one attempt.
    pub(super) fn address<'t>(&self, addresses: &'t Addresses<'_>) -> &'t Address {
        let addresses = addresses.of(self.target);
        &addresses[self.attempts.address % addresses.len()]
    }

    /// The address that it was to be at, and the one that it is at, if it can be reached there.
    pub(super) fn addresses<'t>(&self, addresses: &'t Addresses<'_>) -> (&'t Address, Option<&'t Address>) {
        let is_there = self.state == State::Open || self.attempts().failures == 0;
        (&addresses.of(self.target)[self.home], is_there.then(|| self.address(addresses)))
    }

    /// True if the attempt under way is not the last of its server's addresses: its failure is not yet an error.
    pub(super) fn has_untried_address(&self, addresses: &Addresses<'_>) -> bool {
        (self.attempts().failures as usize) + 1 < addresses.of(self.target).len()
    }

    /// Outcome of recent attempts to connect to its server.
    pub(super) fn attempts(&self) -> Attempts {
        let failures = if self.served { 0 } else { self.attempts.failures };
        Attempts { failures, ..self.attempts }
    }

    /// Marks it as closed. Returns the state with the time at which it may be reopened. That is at once if it
    /// had served or an untried address is left, otherwise at its turn.
    pub(super) fn closed(&mut self, addresses: &Addresses<'_>, retries: &mut Retries, now: Nanos) -> State {
        self.idle_since = None;
        if self.served {
            self.attempts.failures = 0;
            return State::Closed { retry_at: now };
        }
        self.failing_since = self.failing_since.or(self.opening_since()).or(Some(now));
        let addresses = addresses.of(self.target).len();
        let attempts = &mut self.attempts;
        attempts.failures = attempts.failures.saturating_add(1);
        attempts.address = (attempts.address + 1) % addresses;
        let is_untried = (attempts.failures as usize) < addresses;
        State::Closed { retry_at: if is_untried { now } else { retries.next_turn(now) } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::raw::{ExpectedReply, Raw, RawRequest};

    const MS: Nanos = 1_000_000;

    fn opened() -> Connection<Raw> {
        let codec = Raw::new(ExpectedReply { bytes: 1, checked: false });
        let mut connection = Connection::new(0, 0, codec);
        connection.opened(&RawRequest::default(), 0, 10 * MS);
        connection
    }

    fn begin(connection: &mut Connection<Raw>, sent: Nanos) {
        connection.begun(0, InFlightRequest::new(0, sent, sent, sent, 1));
    }

    #[test]
    fn request_is_lost_to_idleness_if_its_connection_had_been_idle_and_nothing_came_since() {
        for (is_served, idle, expected) in [
            (true, 99 * MS, false),
            (true, 100 * MS, true),
            (false, 499 * MS, false),
            (false, 500 * MS, true),
        ] {
            let mut connection = opened();
            connection.served = is_served;
            assert!(!connection.was_idle(), "it has no request");
            begin(&mut connection, 10 * MS + idle);
            assert_eq!(connection.was_idle(), expected, "{is_served}, {idle}");
            connection.heard(11 * MS + idle);
            assert!(!connection.was_idle(), "the peer began to answer");
        }
    }

    #[test]
    fn connection_without_a_request_may_be_closed_once_it_was_of_use_or_open_for_a_while() {
        let mut connection = opened();
        assert_eq!([509, 510].map(|at| connection.may_be_closed(at * MS)), [false, true]);
        connection.served = true;
        assert!(connection.may_be_closed(11 * MS));
        begin(&mut connection, 12 * MS);
        assert!(!connection.may_be_closed(2000 * MS), "its request fails");
    }
}
