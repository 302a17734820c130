//! The sending side: choosing a connection, starting a request on it, handing its bytes to the network.

use super::Worker;
use super::buffers::Buffers;
use super::connection::Connection;
use super::pools::Waiting;
use super::retries::RETRY_PAUSE;
use super::sessions::StepOutcome;
use crate::clock::{Clock, Nanos};
use crate::error::ErrorKind;
use crate::network::Network;
use crate::protocol::Codec;
use crate::recorder::InFlightRequest;
use crate::target::Chosen;
use std::io;

/// Maximum requests sent before responses are polled again. If requests become due faster than this thread
/// can send them, it would otherwise never read a response.
const MAX_SENDS_PER_TURN: usize = 1000;
/// The same where they go out with the next wait, one after the other, and all count as sent before it: what that leaves out of a
/// thread's lateness is at most the time of this many sends. As many responses are read before their clients of a closed loop go on.
pub(super) const MAX_SENDS_PER_SUBMISSION: usize = 64;

impl<C: Codec, N: Network> Worker<'_, C, N> {
    /// Sends due requests as far as connections are free, and up to [`MAX_SENDS_PER_TURN`] or [`MAX_SENDS_PER_SUBMISSION`].
    pub(super) fn send_due(&mut self, clock: &Clock) -> io::Result<()> {
        let mut left = if N::SENDS_AT_ONCE { MAX_SENDS_PER_TURN } else { MAX_SENDS_PER_SUBMISSION };
        self.send_waiting(clock, &mut left);
        let mut turn = None;
        while left > 0
            && let Some(due) = self.next_due()
        {
            let now = turn.filter(|now| N::IN_TURNS && due <= *now).unwrap_or_else(|| clock.now());
            turn = Some(now);
            if due > now {
                break;
            }
            if !self.send_next(due, now) {
                self.backlogs.connections_are_busy(0, due);
                self.flush_all(clock);
                return Ok(());
            }
            self.pacer.sent(due);
            left -= 1;
        }
        self.flush_all(clock);
        if left > 0 {
            let pools = &self.pools;
            self.backlogs.work_off(|server| !pools.has_waiting(server));
        }
        Ok(())
    }

    /// Takes the next request from the schedule, and sends it or lets it wait for its server. If too many
    /// wait for that server, it is dropped. Returns `false` if it stays in the schedule.
    fn send_next(&mut self, due: Nanos, now: Nanos) -> bool {
        if self.per_request.is_some() {
            return self.open_for_next(due, now);
        }
        if self.pools.is_one() {
            let Some(slot) = self.next_free(0) else { return false };
            let chosen = match self.one_pool {
                false => self.take_next(due),
                true => {
                    self.schedule.take();
                    self.selector.choose_of(self.connections[slot].target)
                }
            };
            if chosen.lacks_data {
                self.queue(slot);
                self.lacks_data(due, &chosen, now);
            } else {
                self.send(slot, due, chosen, now);
            }
            return true;
        }
        let chosen = self.take_next(due);
        if chosen.lacks_data {
            self.lacks_data(due, &chosen, now);
            return true;
        }
        let slot = if self.pools.has_waiting(chosen.server) { None } else { self.next_free(chosen.server) };
        match slot {
            Some(slot) => self.send(slot, due, chosen, now),
            // A client of a closed loop would retry at once, and there are at most as many requests as
            // clients.
            None if self.schedule.is_open() && self.pools.is_crowded_by(chosen.server) => {
                self.recorder.crowded_out(due, now, &chosen);
                self.cut_session(&chosen);
            }
            None => {
                self.backlogs.thread_stalled(chosen.server, due, now);
                self.backlogs.connections_are_busy(chosen.server, due);
                self.pools.wait(Waiting { due, chosen });
                self.assign_connections(now);
            }
        }
        true
    }

    /// The data of a request have ended: it fails unsent. A client of a closed loop pauses, and does not run through all the requests
    /// of the window at once.
    pub(super) fn lacks_data(&mut self, due: Nanos, chosen: &Chosen, now: Nanos) {
        let flight = InFlightRequest::new(chosen.choice, due, now, now, 0).of_step(chosen.step);
        self.recorder.sent(&flight);
        self.recorder.failed(&flight, now, ErrorKind::DataEnded);
        self.request_over(chosen.step, StepOutcome::Dropped, now + RETRY_PAUSE);
    }

    /// Sends requests that waited for connections which are free now, up to `left`, and has connections opened for those
    /// still waiting.
    fn send_waiting(&mut self, clock: &Clock, left: &mut usize) {
        self.send_ready(clock, left);
        if self.pools.roaming.is_some() {
            self.assign_connections(clock.now());
        }
    }

    fn send_ready(&mut self, clock: &Clock, left: &mut usize) {
        while *left > 0
            && let Some(server) = self.pools.next_ready()
        {
            while self.pools.has_waiting(server) {
                let Some(slot) = self.next_free(server) else { break };
                let Some(Waiting { due, chosen }) = self.pools.take_waiting(server) else { break };
                self.send(slot, due, chosen, clock.now());
                *left -= 1;
                if *left == 0 {
                    return self.pools.stays_ready(server);
                }
            }
        }
    }

    /// The pool of a connection: that of its server, unless all connections share one.
    pub(super) fn pool_of(&self, slot: usize) -> usize {
        if self.one_pool { 0 } else { self.connections[slot].target }
    }

    /// Takes the longest-idle connection of a pool off the queue.
    fn next_free(&mut self, pool: usize) -> Option<usize> {
        while let Some(slot) = self.pools.next_free(pool) {
            // The connection of an outdated entry may belong to another server now.
            if self.pool_of(slot) == pool {
                self.connections[slot].queued = false;
                if self.can_send(slot) {
                    return Some(slot);
                }
            }
        }
        None
    }

    fn send(&mut self, slot: usize, due: Nanos, chosen: Chosen, sent: Nanos) {
        let free_since = self.connections[slot].free_since;
        let flight = self.flight(self.pool_of(slot), &chosen, due, free_since, sent);
        let flight = self.begin(slot, flight, &chosen);
        self.in_flight += 1;
        self.recorder.sent(&flight);
        self.selector.reuse(chosen);
        if C::MULTIPLEXED {
            self.unsent.push(slot);
            // It had room all along.
            self.queue(slot);
        } else {
            self.flush(slot, sent);
        }
    }

    /// A request that is sent now, on a connection of this pool that could have carried it since `free_since`.
    pub(super) fn flight(
        &mut self,
        pool: usize,
        chosen: &Chosen,
        due: Nanos,
        free_since: Nanos,
        sent: Nanos,
    ) -> InFlightRequest {
        self.backlogs.thread_stalled(pool, due.max(free_since), sent);
        let sendable_at = self.backlogs.of(pool).sendable_at(due, free_since, sent);
        InFlightRequest::new(chosen.choice, due, sendable_at, sent, 0).of_step(chosen.step)
    }

    /// Begins the request on an open connection. Returns it with its size.
    pub(super) fn begin(&mut self, slot: usize, flight: InFlightRequest, chosen: &Chosen) -> InFlightRequest {
        let connection = &mut self.connections[slot];
        let before = out_of(connection, &mut self.buffers).len();
        let request = &self.requests[chosen.server][chosen.request];
        let values = match &mut self.sessions {
            None => chosen.numbers.as_slice().into(),
            Some(sessions) => sessions.values(chosen, self.targets),
        };
        let stream = connection.codec.begin(request, values, &mut connection.outgoing);
        let begun = connection.outgoing.len() - before - C::OVERHEAD_BYTES;
        let bytes = begun + connection.codec.blocked_bytes(stream);
        let flight = InFlightRequest { bytes, ..flight };
        connection.begun(stream, flight);
        flight
    }

    /// Sends the output of all connections.
    fn flush_all(&mut self, clock: &Clock) {
        while let Some(slot) = self.unsent.pop() {
            self.flush(slot, clock.now());
        }
    }

    /// Sends the output of a connection.
    pub(super) fn flush(&mut self, slot: usize, now: Nanos) {
        if self.connections[slot].outgoing.is_empty() {
            return;
        }
        let out = std::mem::take(&mut self.connections[slot].outgoing);
        let outcome = self.network.send(slot, &out);
        self.buffers.give_back(out);
        if let Err(error) = outcome {
            self.lose(slot, ErrorKind::of_transfer(&error), now);
        }
    }

    /// True if the connection may accept another request.
    fn can_send(&self, slot: usize) -> bool {
        let connection = &self.connections[slot];
        connection.takes_requests() && connection.requests < self.requests_per_connection
    }

    /// The connection may have room for a request again, or has no unanswered ones left.
    pub(super) fn set_free(&mut self, slot: usize, now: Nanos) {
        if self.per_request.is_some() {
            return self.send_held(slot, now);
        }
        if self.can_send(slot) && !self.connections[slot].queued {
            self.connections[slot].free_since = now;
            self.queue(slot);
        }
        self.note_idle(slot, now);
    }

    /// Adds the connection to its server's queue if it may accept a request.
    fn queue(&mut self, slot: usize) {
        if self.can_send(slot) && !self.connections[slot].queued {
            self.connections[slot].queued = true;
            self.pools.add_free(self.pool_of(slot), slot);
        }
    }

    /// With roaming: a connection without unanswered requests may go to another server.
    fn note_idle(&mut self, slot: usize, now: Nanos) {
        let connection = &mut self.connections[slot];
        if let Some(roaming) = &mut self.pools.roaming
            && connection.in_flight == 0
            && connection.idle_since.is_none()
        {
            connection.idle_since = Some(now);
            let connections = &self.connections;
            roaming.add_idle(slot, now, |slot, since| connections[slot].server_if_idle(since));
        }
    }
}

/// The buffer in which the connection collects its output.
fn out_of<'c, C>(connection: &'c mut Connection<C>, buffers: &mut Buffers) -> &'c mut Vec<u8> {
    if connection.outgoing.capacity() == 0 {
        connection.outgoing = buffers.take();
    }
    &mut connection.outgoing
}
