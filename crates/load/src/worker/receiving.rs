//! The receiving side: network events, responses, failures.

use super::Worker;
use super::connection::State;
use super::sessions::StepOutcome;
use crate::clock::{Clock, Nanos, nanos};
use crate::error::ErrorKind;
use crate::network::{Event, Network, wall_clock};
use crate::protocol::{Codec, Parsed, ResponseEnd};
use crate::recorder::InFlightRequest;
use crate::usage::QueueWait;
use std::io;
use std::time::Duration;

/// Maximum size of output that a peer does not read, beyond its unanswered requests: acknowledgements of its frames, and requests
/// that it answered unread or that timed out. A peer that reads nothing is given up, as by the fleet.
const MAX_UNREAD_BYTES: usize = 32 << 20;

/// A time that is known to this is exact enough to look no closer.
const EXACT: Nanos = 50_000;

impl<C: Codec, N: Network> Worker<'_, C, N> {
    pub(super) fn handle_events(&mut self, clock: &Clock) -> io::Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let wall_turn = N::IN_TURNS.then(wall_clock);
        let turn = (N::IN_TURNS || self.times_messages).then(|| clock.now());
        // A client of a closed loop goes on before the next response is read: otherwise it would wait for all that came with its own.
        let goes_on_at_once = N::SENDS_AT_ONCE && self.following && !self.schedule.is_open();
        // Arrival of the bytes that the event before had.
        let mut came_before = None;
        loop {
            let came_with = came_before.take().filter(|_| self.network.has_more_of_read());
            let Some((slot, event)) = self.network.next_event(&mut buffer) else { break };
            // Read before the clock: a stall between the two makes responses late, never sooner than they came.
            let wall = wall_turn.unwrap_or_else(wall_clock);
            let now = turn.filter(|_| N::IN_TURNS).unwrap_or_else(|| clock.now());
            match event {
                Event::HandshakeStarted => self.handshake_started(slot, now),
                Event::Opened => self.opened(slot, now),
                Event::OpenFailed(error) => self.open_failed(slot, ErrorKind::of_connect(&error), now),
                Event::Received(length) => {
                    let came = came_with.unwrap_or_else(|| {
                        let arrived = self.network.arrived();
                        let age = arrived.map_or(Duration::ZERO, |came| wall.saturating_sub(came));
                        self.reading_lag = nanos(age);
                        now.saturating_sub(self.reading_lag)
                    });
                    came_before = Some(came);
                    self.received(slot, &buffer[..length], came);
                }
                Event::Ended => {
                    (self.reading_lag, self.is_last_of_read) = (0, true);
                    self.ended(slot, now);
                }
                Event::Truncated => self.truncated(slot, now),
                Event::Failed(error) => self.lose(slot, ErrorKind::of_transfer(&error), now),
            }
            if goes_on_at_once {
                self.send_due(clock)?;
            }
        }
        if let Some(turn) = turn.filter(|_| self.network.has_read_all()) {
            self.polled_at = turn;
        }
        self.slept = None;
        self.buffer = buffer;
        Ok(())
    }

    /// Lower bound of the times at which all that is read in this turn came. A thread that slept was woken by the first of it, which
    /// came no earlier than the thread then waited for a CPU; or the first had come before it fell asleep, since it last polled.
    fn came_after(&mut self) -> Nanos {
        let is_long = |(_, woken): &mut (Nanos, Nanos)| *woken > self.polled_at + EXACT;
        if let Some((began, woken)) = self.slept.take_if(is_long)
            && let Some(queued) = self.queue_wait.as_mut().and_then(QueueWait::since_last)
        {
            let awake = began.saturating_sub(self.polled_at);
            self.polled_at = self.polled_at.max(woken.saturating_sub(nanos(queued) + awake));
        }
        self.polled_at
    }

    fn received(&mut self, slot: usize, mut bytes: &[u8], now: Nanos) {
        // Such as the error of a server to which a PROXY header is a bad request: the next request was sent before it was read.
        if !C::MULTIPLEXED && self.connections[slot].was_ahead_of_request(now) {
            return self.lose(slot, ErrorKind::SurplusBytes, now);
        }
        self.connections[slot].heard(now);
        while !bytes.is_empty() {
            let connection = &mut self.connections[slot];
            let (taken, parsed) = match connection.codec.receive(bytes, &mut connection.outgoing) {
                Ok(progress) => progress,
                Err(error) => {
                    // Flush the protocol's last output, as far as it goes out at once.
                    self.flush(slot, now);
                    return self.lose(slot, error.0, now);
                }
            };
            bytes = &bytes[taken..];
            self.is_last_of_read = bytes.is_empty() && !self.network.has_more_of_read();
            let goes_on = match parsed {
                Parsed::Incomplete => {
                    if !C::MULTIPLEXED
                        && let Some(flight) = self.connections[slot].flight(0)
                    {
                        flight.first_byte_at.get_or_insert(now);
                    }
                    true
                }
                Parsed::EventStream(stream) => {
                    self.stream_begun(slot, stream, now);
                    true
                }
                Parsed::Response(end) => self.answered(slot, end, now),
                Parsed::Messages(stream, messages) => {
                    self.messages_came(slot, stream, messages, now);
                    true
                }
                Parsed::Failed(stream, kind) => self.request_failed(slot, stream, kind, now),
                Parsed::Room => {
                    self.has_got_room(slot, now);
                    // A request that was held for it may have been lost with it.
                    self.connections[slot].state == State::Open
                }
                Parsed::Closing => {
                    self.connections[slot].closing = true;
                    self.was_closed_in_order |= !self.following;
                    self.go_on(slot, now)
                }
            };
            if !goes_on {
                return;
            }
        }
        if C::MULTIPLEXED && self.exceeds_unread(slot) {
            return self.lose(slot, C::FLOODED, now);
        }
        self.flush(slot, now);
    }

    /// True if the peer sends, but does not read what this side sends. Without multiplexing there is one request at a time.
    fn exceeds_unread(&self, slot: usize) -> bool {
        let beyond = self.network.queued_bytes(slot).saturating_sub(MAX_UNREAD_BYTES);
        beyond > 0 && beyond > self.connections[slot].in_flight_bytes()
    }

    /// A response has begun that is a stream of events.
    fn stream_begun(&mut self, slot: usize, stream: usize, now: Nanos) {
        if !std::mem::replace(&mut self.times_messages, true) {
            self.queue_wait = QueueWait::of_thread();
        }
        if let Some(flight) = self.connections[slot].flight(stream) {
            self.recorder.stream_begun(flight, now);
        }
    }

    /// Messages of a stream are complete.
    fn messages_came(&mut self, slot: usize, stream: usize, messages: u32, now: Nanos) {
        let before = self.connections[slot].flight(stream).and_then(|flight| flight.message_at);
        let is_exact = messages == 1 && before != Some(now);
        let came_after = if is_exact { now } else { self.came_after() };
        if let Some(flight) = self.connections[slot].flight(stream) {
            self.recorder.messages(flight, messages, now, came_after);
        }
    }

    /// A response is complete. Returns true if the connection still exists.
    fn answered(&mut self, slot: usize, end: ResponseEnd, now: Nanos) -> bool {
        let connection = &mut self.connections[slot];
        if let Some(flight) = connection.ended(end.stream) {
            let is_back = connection.attempts().failures > 0;
            connection.served = true;
            if is_back {
                self.retry_at_once(slot, now);
            }
            self.in_flight -= 1;
            let kind = self.choices[flight.url].kind.as_deref();
            let expect = kind.map(|kind| &kind.expect);
            let kept = expect.and_then(|_| self.connections[slot].codec.take_kept(end.stream));
            let missing = self.receive_for_session(&flight, kept.as_deref());
            let check = expect.and_then(|expect| expect.fault(end.status, end.bytes, kept.as_deref()));
            let fault = check.or(missing);
            if let Some(fault) = fault {
                self.recorder.check_failed(&flight, now, end.status, fault);
            } else {
                let is_judged = expect.is_some_and(|expect| expect.status.is_some());
                self.response_came(&flight, &end, is_judged, now);
            }
            // A client of a closed loop goes on when it has read the response, however late that was.
            let outcome = if fault.is_some() { StepOutcome::Failed } else { StepOutcome::Done };
            self.request_over(flight.step, outcome, now + self.reading_lag);
        }
        // A server that responds before it has read the request may never read the rest of it.
        let read = C::MULTIPLEXED || self.network.has_sent_all(slot);
        self.connections[slot].closing |= !end.reusable || !read;
        self.go_on(slot, now)
    }

    /// Records a response. `is_judged`: a check has judged its status.
    fn response_came(&mut self, flight: &InFlightRequest, end: &ResponseEnd, is_judged: bool, now: Nanos) {
        self.recorder.completed(flight, now, end.status, end.bytes);
        self.recorder.read_late(flight, self.reading_lag);
        if is_judged {
            self.recorder.judged(flight, end.status);
        }
        if C::MULTIPLEXED && !self.is_last_of_read {
            let uncertainty = now.saturating_sub(self.came_after().max(flight.sent));
            self.recorder.read_with_others(flight, uncertainty);
        }
        if let Some(grpc) = end.grpc {
            self.recorder.call_ended(flight, grpc);
        }
    }

    /// A request has failed and its connection may continue. Returns true if it still exists.
    pub(super) fn request_failed(&mut self, slot: usize, stream: usize, kind: ErrorKind, now: Nanos) -> bool {
        if let Some(flight) = self.connections[slot].ended(stream) {
            self.in_flight -= 1;
            self.recorder.failed(&flight, now, kind);
            self.request_over(flight.step, StepOutcome::Failed, now);
        }
        self.go_on(slot, now)
    }

    /// After the end of a request: the connection may accept another one, or closes after its last one.
    /// Returns true if it still exists.
    fn go_on(&mut self, slot: usize, now: Nanos) -> bool {
        let connection = &mut self.connections[slot];
        connection.closing |= connection.requests >= self.requests_per_connection;
        if connection.closing && connection.in_flight == 0 {
            connection.codec.close(&mut connection.outgoing);
            self.flush(slot, now);
            self.close_and_reopen(slot, now);
            return false;
        }
        self.set_free(slot, now);
        true
    }

    /// The peer has closed its side of this connection.
    fn ended(&mut self, slot: usize, now: Nanos) {
        let connection = &mut self.connections[slot];
        match connection.codec.end() {
            Ok(Some(end)) => {
                self.answered(slot, end, now);
            }
            Ok(None) if connection.may_be_closed(now) => self.closed_idle(slot, now),
            Ok(None) => self.lose(slot, ErrorKind::Closed, now),
            Err(error) => self.lose(slot, error.0, now),
        }
    }

    /// The peer has closed its side without a close_notify: a response that ends there may be truncated.
    fn truncated(&mut self, slot: usize, now: Nanos) {
        // As after a close_notify: an idle connection may be closed.
        if self.connections[slot].may_be_closed(now) {
            self.closed_idle(slot, now);
        } else {
            self.lose(slot, ErrorKind::Closed, now);
        }
    }

    /// The peer has closed a connection without an unanswered request.
    fn closed_idle(&mut self, slot: usize, now: Nanos) {
        self.recorder.closed_idle(now);
        // It was not refused, even if it has carried no request.
        self.connections[slot].served = true;
        self.close_and_reopen(slot, now);
    }

    /// The connection is unusable: its requests have failed.
    pub(super) fn lose(&mut self, slot: usize, kind: ErrorKind, now: Nanos) {
        if self.connections[slot].in_flight == 0 && !self.fail_held(slot, kind, now) {
            self.recorder.error(kind, now);
        }
        let was_idle =
            matches!(kind, ErrorKind::Closed | ErrorKind::Reset) && self.connections[slot].was_idle();
        let ended: Vec<InFlightRequest> = self.connections[slot].all_ended().collect();
        for flight in ended {
            if was_idle {
                self.recorder.lost_on_idle(&flight);
            }
            self.in_flight -= 1;
            self.recorder.failed(&flight, now, kind);
            self.request_over(flight.step, StepOutcome::Failed, now);
        }
        self.close_and_reopen(slot, now);
    }
}
