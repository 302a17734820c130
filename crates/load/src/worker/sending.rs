//! Sending what is due: choosing a connection, beginning a request on it, handing its bytes to the network.

use super::connection::Connection;
use super::{Backlog, LATE, Worker};
use crate::clock::{Clock, Nanos};
use crate::error::ErrorKind;
use crate::network::Network;
use crate::protocol::Codec;
use crate::recorder::Flight;
use crate::schedule::Schedule;
use std::io;

/// Buffers of requests up to this size are used again.
const KEPT_BUFFER_BYTES: usize = 256 * 1024;

impl<S: Schedule, C: Codec, N: Network> Worker<'_, S, C, N> {
    /// Sends every request that is due, as far as connections are free.
    pub(super) fn send_due(&mut self, clock: &Clock) -> io::Result<()> {
        while let Some(due) = self.schedule.next_due() {
            let now = clock.now();
            if due > now {
                break;
            }
            let Some(slot) = self.next_free() else {
                if self.backlog == Backlog::None {
                    self.backlog = Backlog::OfTarget;
                }
                self.flush_all(clock);
                return Ok(());
            };
            self.schedule.take();
            self.send(slot, due, clock);
        }
        self.flush_all(clock);
        self.backlog = Backlog::None;
        Ok(())
    }

    /// The connection that has been idle longest, taken off the queue.
    fn next_free(&mut self) -> Option<usize> {
        while let Some(slot) = self.free.pop_front() {
            self.connections[slot].queued = false;
            if self.has_room(slot) {
                return Some(slot);
            }
        }
        None
    }

    fn send(&mut self, slot: usize, due: Nanos, clock: &Clock) {
        let connection = &mut self.connections[slot];
        let (sent, could_send) = (clock.now(), due.max(connection.free_since));
        if self.backlog == Backlog::None && sent.saturating_sub(could_send) > LATE {
            self.backlog = Backlog::OfGenerator;
        }
        let could_send = if self.backlog == Backlog::OfGenerator { due } else { could_send };
        let before = out_of(connection, &mut self.buffers).len();
        let stream = connection.begin(&self.requests);
        let bytes = connection.outgoing.len() - before;
        let flight = Flight { due, could_send, sent, bytes };
        connection.begun(stream, flight);
        self.in_flight += 1;
        self.recorder.sent(&flight);
        if C::MULTIPLEXED {
            self.unsent.push(slot);
            // It has had room all along.
            self.queue(slot);
        } else {
            self.flush(slot, clock.now());
        }
    }

    /// Sends what connections have to send.
    fn flush_all(&mut self, clock: &Clock) {
        while let Some(slot) = self.unsent.pop() {
            self.flush(slot, clock.now());
        }
    }

    /// Sends what the connection has to send.
    pub(super) fn flush(&mut self, slot: usize, now: Nanos) {
        if self.connections[slot].outgoing.is_empty() {
            return;
        }
        let mut out = std::mem::take(&mut self.connections[slot].outgoing);
        let outcome = self.network.send(slot, &out);
        out.clear();
        if out.capacity() <= KEPT_BUFFER_BYTES {
            self.buffers.push(out);
        }
        if let Err(error) = outcome {
            self.lose(slot, ErrorKind::of_transfer(&error), now);
        }
    }

    /// Whether the connection may take another request.
    fn has_room(&self, slot: usize) -> bool {
        let connection = &self.connections[slot];
        connection.takes_requests() && connection.requests < self.requests_per_connection
    }

    /// The connection may have got room for a request.
    pub(super) fn set_free(&mut self, slot: usize, now: Nanos) {
        if self.has_room(slot) && !self.connections[slot].queued {
            self.connections[slot].free_since = now;
            self.queue(slot);
        }
    }

    /// Puts the connection into the queue if it may take a request.
    fn queue(&mut self, slot: usize) {
        if self.has_room(slot) && !self.connections[slot].queued {
            self.connections[slot].queued = true;
            self.free.push_back(slot);
        }
    }
}

/// Where the connection gathers what it has to send.
fn out_of<'c, C>(connection: &'c mut Connection<C>, buffers: &mut Vec<Vec<u8>>) -> &'c mut Vec<u8> {
    if connection.outgoing.capacity() == 0 {
        connection.outgoing = buffers.pop().unwrap_or_default();
    }
    &mut connection.outgoing
}
