//! Connection maintenance: opening, reopening with back-off, timeouts.

use super::connection::{Connection, State};
use super::retries::Retries;
use super::roaming::{Reassignment, Roaming};
use super::sessions::StepOutcome;
use super::{OnSecond, Worker};
use crate::clock::{Clock, Nanos, nanos};
use crate::error::ErrorKind;
use crate::network::{Network, Route};
use crate::protocol::Codec;
use crate::recorder::InFlightRequest;
use crate::second::SecondCounts;
use crate::source::SourceTurns;
use crate::usage::QueueWait;
use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Maximum connections that one thread opens at once before the schedule starts, so that ten thousand do not come in one burst.
/// Afterwards the load says how many are opened: a limit would be the generator's, and look like the target's.
pub(super) const MAX_OPENING_BEFORE_START: usize = 64;
/// Maximum interval between two rounds of upkeep.
const MAX_UPKEEP_INTERVAL: Nanos = 100_000_000;
/// Minimum interval.
const MIN_UPKEEP_INTERVAL: Nanos = 1_000_000;
/// Minimum time that a peer gets to reject a client that considers its handshake complete.
const MIN_SECOND_THOUGHTS: Duration = Duration::from_millis(50);

impl<C: Codec, N: Network> Worker<'_, C, N> {
    /// Resets the times of connections, because the clock gets another origin.
    pub(super) fn restart_times(&mut self) {
        (self.next_upkeep, self.polled_at, self.retries) = (0, 0, Retries::default());
        self.recorder.start_seconds();
        self.pools.roaming.iter_mut().for_each(Roaming::restart_times);
        self.connections.iter_mut().for_each(Connection::restart_times);
    }

    /// Runs the upkeep when it is due, and hands over finished seconds.
    pub(super) fn look_after(&mut self, now: Nanos, on_second: &mut impl OnSecond) {
        if now >= self.next_upkeep {
            self.upkeep(now);
            let over = self.recorder.take_seconds(now, self.connections_open);
            self.hand_over(over, on_second);
        }
    }

    /// Hands over finished seconds.
    pub(super) fn hand_over(&mut self, seconds: Vec<SecondCounts>, on_second: &mut impl OnSecond) {
        for second in seconds {
            if let Some(spare) = on_second(second) {
                self.recorder.reuse(spare);
            }
        }
    }

    /// Opens closed connections that are due, and fails whatever takes too long.
    pub(super) fn upkeep(&mut self, now: Nanos) {
        self.addresses.refresh();
        self.fail_overdue(now);
        self.assign_connections(now);
        let usual = (self.timeline.timeout / 20).clamp(MIN_UPKEEP_INTERVAL, MAX_UPKEEP_INTERVAL);
        let mut next = now + usual;
        if let Some(roaming) = self.pools.roaming.as_ref().filter(|_| !self.pools.is_empty()) {
            next = next.min(roaming.next_turn(now));
        }
        let mut open = 0;
        for slot in 0..self.connections.len() {
            let is_due =
                matches!(self.connections[slot].state, State::Closed { retry_at } if retry_at <= now);
            if is_due && self.opening < self.max_opening {
                self.begin_to_open(slot, now);
            }
            match self.connections[slot].state {
                State::Open => open += 1,
                State::Opening { .. } | State::Greeting { .. } | State::Unassigned => {}
                State::Closed { retry_at } => next = next.min(retry_at),
            }
        }
        self.connections_open = open;
        // What this thread has waited for a CPU before is not part of its next sleep.
        self.queue_wait.as_mut().and_then(QueueWait::since_last);
        self.next_upkeep = next.max(now + MIN_UPKEEP_INTERVAL);
    }

    /// Fails requests and connection attempts that are older than the timeout.
    pub(super) fn fail_overdue(&mut self, now: Nanos) {
        let timeout = self.timeline.timeout;
        let Some(longest_ago) = now.checked_sub(timeout) else { return };
        for slot in 0..self.connections.len() {
            let connection = &self.connections[slot];
            match connection.state {
                State::Opening { since } if since <= longest_ago => {
                    let in_handshake = connection.handshake_since.is_some();
                    let kind =
                        if in_handshake { ErrorKind::HandshakeTimeout } else { ErrorKind::ConnectTimeout };
                    self.open_failed(slot, kind, now);
                }
                State::Greeting { since } if since <= longest_ago => {
                    self.open_failed(slot, C::NOT_GREETED, now);
                }
                State::Open if connection.in_flight > 0 => self.fail_overdue_requests(slot, longest_ago, now),
                _ => {}
            }
        }
    }

    /// Fails a connection's requests that were sent at `longest_ago` or earlier. They fail individually if
    /// the protocol supports that and the peer is still sending, otherwise together with the connection.
    fn fail_overdue_requests(&mut self, slot: usize, longest_ago: Nanos, now: Nanos) {
        while let Some(stream) = self.connections[slot].overdue(longest_ago) {
            let connection = &mut self.connections[slot];
            let is_heard = connection.heard_at > longest_ago;
            if !is_heard || !connection.codec.cancel(stream, &mut connection.outgoing) {
                return self.lose(slot, ErrorKind::Timeout, now);
            }
            if !self.request_failed(slot, stream, ErrorKind::Timeout, now) {
                return;
            }
        }
        self.flush(slot, now);
    }

    /// Fails all unanswered requests.
    pub(super) fn fail_in_flight(&mut self, now: Nanos, kind: ErrorKind) {
        for slot in 0..self.connections.len() {
            self.fail_held(slot, kind, now);
            let ended: Vec<InFlightRequest> = self.connections[slot].all_ended().collect();
            for flight in ended {
                self.in_flight -= 1;
                self.recorder.failed(&flight, now, kind);
                self.session_goes_on(flight.step, StepOutcome::Failed, now);
            }
        }
    }

    /// Before the schedule starts, waits once more as long as the slowest handshake took, if there was one.
    /// In TLS 1.3 the peer verifies the client's certificate only after the client considers the handshake
    /// complete.
    pub(super) fn wait_for_late_tls_rejection(&mut self, clock: &Clock, give_up: Nanos) -> io::Result<()> {
        let handshakes = &self.recorder.handshake_time;
        if handshakes.count() == 0 {
            return Ok(());
        }
        let slowest = Duration::from_micros(handshakes.max_us() as u64);
        let until = (clock.now() + nanos(slowest.max(MIN_SECOND_THOUGHTS))).min(give_up);
        while clock.now() < until && !self.stop.load(Ordering::Relaxed) {
            self.network
                .wait(Duration::from_nanos(until.saturating_sub(clock.now())).min(MIN_SECOND_THOUGHTS))?;
            self.handle_events(clock)?;
        }
        Ok(())
    }

    pub(super) fn begin_to_open(&mut self, slot: usize, now: Nanos) {
        let connection = &mut self.connections[slot];
        connection.served = false;
        let address = connection.address(&self.addresses);
        connection.at = self.addresses.are_counted(connection.target).then(|| address.clone());
        let route = Route { address, source: self.sources.as_mut().map(SourceTurns::take) };
        connection.state = State::Opening { since: now };
        connection.handshake_since = None;
        self.opening += 1;
        let server_name = self.targets[connection.target].server_name.as_ref();
        if let Err(error) = self.network.open(slot, route, server_name) {
            self.open_failed(slot, ErrorKind::of_connect(&error), now);
        }
    }

    /// The TCP connection is established: the connect time ends here.
    pub(super) fn handshake_started(&mut self, slot: usize, now: Nanos) {
        let connection = &mut self.connections[slot];
        if let State::Opening { since } = connection.state {
            connection.handshake_since = Some(now);
            self.recorder.connect_time.record_ns(now.saturating_sub(since));
        }
    }

    pub(super) fn opened(&mut self, slot: usize, now: Nanos) {
        let connection = &mut self.connections[slot];
        let State::Opening { since } = connection.state else { return };
        match connection.handshake_since.take() {
            Some(since) => self.recorder.handshake_time.record_ns(now.saturating_sub(since)),
            None => self.recorder.connect_time.record_ns(now.saturating_sub(since)),
        }
        connection.opened(&self.requests[connection.target][0], since, now);
        connection.at.iter().for_each(|address| self.recorder.opened_at(address));
        if let Some(security) = self.network.security(slot) {
            self.recorder.secured(security);
        }
        if connection.state == State::Open {
            self.is_open(slot, since, now);
            self.set_free(slot, now);
        }
        self.flush(slot, now);
    }

    /// The connection, being opened since `since`, accepts requests.
    fn is_open(&mut self, slot: usize, since: Nanos, now: Nanos) {
        self.opening -= 1;
        self.slowest_opening = self.slowest_opening.max(now.saturating_sub(since));
        self.is_reached(slot, now);
    }

    /// At the end, counts connections by address. Those that roam and those of single requests go to all addresses in turn, and if names
    /// are looked up again, none is to be anywhere.
    pub(super) fn count_addresses(&mut self) {
        if self.pools.roaming.is_some() || self.per_request.is_some() || self.addresses.may_change() {
            return;
        }
        for connection in self.connections.iter().filter(|one| self.addresses.are_counted(one.target)) {
            let (home, address) = connection.addresses(&self.addresses);
            self.recorder.ends_at(home, address);
        }
    }

    /// This connection, which could not be opened, is answered again: no other one waits for its address any longer.
    pub(super) fn retry_at_once(&mut self, slot: usize, now: Nanos) {
        let addresses = &self.addresses;
        let address = self.connections[slot].address(addresses);
        if !self.retries.is_back(address, now) {
            return;
        }
        let is_there = |server: usize| addresses.of(server).contains(address);
        let mut last_turn = now;
        for connection in &mut self.connections {
            if let State::Closed { retry_at } = &mut connection.state {
                *retry_at = if is_there(connection.target) { now.min(*retry_at) } else { *retry_at };
                last_turn = last_turn.max(*retry_at);
            }
        }
        if let Some(roaming) = &mut self.pools.roaming {
            last_turn = last_turn.max(roaming.retry_at_once(is_there, now));
        }
        self.retries.taken_until(last_turn);
        self.next_upkeep = now;
    }

    /// The peer has announced that it accepts requests, or more of them.
    pub(super) fn has_got_room(&mut self, slot: usize, now: Nanos) {
        let connection = &mut self.connections[slot];
        if let State::Greeting { since } = connection.state {
            connection.state = State::Open;
            self.is_open(slot, since, now);
        }
        self.set_free(slot, now);
    }

    pub(super) fn open_failed(&mut self, slot: usize, kind: ErrorKind, now: Nanos) {
        let has_other = self.connections[slot].has_untried_address(&self.addresses);
        if has_other {
            self.recorder.fell_back(kind);
        } else if !self.fail_held(slot, kind, now) {
            self.recorder.error(kind, now);
        }
        self.network.close(slot);
        self.opening -= 1;
        let connection = &mut self.connections[slot];
        connection.state = connection.closed(&self.addresses, &mut self.retries, now);
        if self.per_request.is_none() {
            self.release(slot, now);
        } else if has_other {
            self.begin_to_open(slot, now);
        } else {
            self.make_spare(slot, now);
        }
    }

    /// Releases a closed connection if connections roam; otherwise it is reopened when that is due.
    fn release(&mut self, slot: usize, now: Nanos) {
        let connection = &mut self.connections[slot];
        let State::Closed { retry_at } = connection.state else { return };
        if self.pools.roaming.is_some() {
            connection.state = State::Unassigned;
            let (attempts, failing_since) = (connection.attempts(), connection.take_failing_since());
            self.pools.release(connection.target, slot, retry_at, attempts, failing_since);
        }
        self.next_upkeep = self.next_upkeep.min(retry_at.max(now + MIN_UPKEEP_INTERVAL));
    }

    /// With roaming: assigns free connections to the servers that need one.
    pub(super) fn assign_connections(&mut self, now: Nanos) {
        while self.opening < self.max_opening {
            let connections = &self.connections;
            let is_idle = |slot: usize, since: Nanos| connections[slot].server_if_idle(since);
            let assignment = self.pools.next_assignment(now, is_idle);
            let (Some(Reassignment { slot, loser, server }), Some(roaming)) =
                (assignment, &mut self.pools.roaming)
            else {
                return;
            };
            if let Some(loser) = loser {
                self.network.close(slot);
                roaming.set_attempts(loser, self.connections[slot].attempts());
            }
            let spread = self.addresses.spread(server);
            self.connections[slot].assign(server, roaming.next_attempts(server, spread));
            self.begin_to_open(slot, now);
        }
    }

    /// Closes a connection whose requests have all ended, and reopens it now or later.
    pub(super) fn close_and_reopen(&mut self, slot: usize, now: Nanos) {
        self.network.close(slot);
        if let State::Opening { .. } | State::Greeting { .. } = self.connections[slot].state {
            self.opening -= 1;
        }
        if self.per_request.is_some() {
            return self.make_spare(slot, now);
        }
        let connection = &mut self.connections[slot];
        connection.state = connection.closed(&self.addresses, &mut self.retries, now);
        let at_once =
            connection.state == (State::Closed { retry_at: now }) && self.opening < self.max_opening;
        if at_once && self.pools.roaming.is_none() && self.may_send_more(now) {
            self.begin_to_open(slot, now);
        } else {
            self.release(slot, now);
        }
    }

    /// True if connections are still needed.
    fn may_send_more(&self, now: Nanos) -> bool {
        let has_waiting = || self.next_due().is_some() || !self.pools.is_empty();
        self.following && (now < self.timeline.end || has_waiting())
    }
}
