//! A connection per request: opened when the request is due, closed after its response.
//!
//! The request is held by the connection that is being opened for it. It counts as sent from then on, so that its times include
//! the connection's. A slot has one connection at a time, and is spare without one; slots are added as they are needed.

use super::Worker;
use super::connection::{Connection, Held, State};
use super::roaming::Attempts;
use super::sessions::StepOutcome;
use crate::clock::Nanos;
use crate::error::ErrorKind;
use crate::network::Network;
use crate::protocol::Codec;

/// The slots of a thread that opens a connection per request.
pub(super) struct PerRequest {
    /// Maximum number of slots.
    most: usize,
    /// Slots without a connection, the one used last at the end.
    spare: Vec<usize>,
    /// Time at which a slot became spare after none was: requests due before waited for it.
    free_since: Nanos,
    /// Index of the address at which the next connection to each server begins.
    addresses: Vec<usize>,
}

impl<C: Codec, N: Network> Worker<'_, C, N> {
    /// The schedule starts. The connections that were opened to see whether the servers can be reached are closed.
    pub(super) fn begin_per_request(&mut self, most: usize) {
        for slot in 0..self.connections.len() {
            self.network.close(slot);
            self.connections[slot].state = State::Unassigned;
        }
        self.opening = 0;
        let spare = (0..self.connections.len().min(most)).rev().collect();
        self.per_request =
            Some(PerRequest { most, spare, free_since: 0, addresses: vec![0; self.targets.len()] });
    }

    /// True if a due request can be taken from the schedule.
    pub(super) fn takes_requests(&self) -> bool {
        match &self.per_request {
            Some(slots) => !slots.spare.is_empty() || self.connections.len() < slots.most,
            None => self.pools.takes_requests(),
        }
    }

    /// Takes the next request from the schedule and opens a connection for it. Returns false if there is the maximum of
    /// connections: the request stays in the schedule.
    pub(super) fn open_for_next(&mut self, due: Nanos, now: Nanos) -> bool {
        let Some(slot) = self.spare_slot() else { return false };
        let chosen = self.take_next(due);
        let Some(slots) = &mut self.per_request else { return false };
        if chosen.lacks_data {
            slots.spare.push(slot);
            self.lacks_data(due, &chosen, now);
            return true;
        }
        let address = &mut slots.addresses[chosen.server];
        let attempts = Attempts { address: *address, failures: 0 };
        let spread = self.addresses.spread(chosen.server);
        // Beyond those that connections are spread over it is one that was found when these failed.
        *address = if *address < spread { (*address + 1) % spread } else { *address };
        let free_since = slots.free_since;
        let flight = self.flight(0, &chosen, due, free_since, now);
        self.in_flight += 1;
        self.recorder.sent(&flight);
        let connection = &mut self.connections[slot];
        connection.assign(chosen.server, attempts);
        connection.held = Some(Box::new(Held { flight, chosen }));
        self.begin_to_open(slot, now);
        true
    }

    fn spare_slot(&mut self) -> Option<usize> {
        let slots = self.per_request.as_mut()?;
        if let Some(slot) = slots.spare.pop() {
            return Some(slot);
        }
        let slot = self.connections.len();
        (slot < slots.most).then(|| {
            self.network.grow();
            self.connections.push(Connection::new(0, 0, (self.make_codec)()));
            slot
        })
    }

    /// The connection accepts requests: sends the one that it was opened for.
    pub(super) fn send_held(&mut self, slot: usize, now: Nanos) {
        let connection = &mut self.connections[slot];
        let Some(held) = connection.held.take_if(|_| connection.state == State::Open) else { return };
        let address = connection.attempts().address;
        if let Some(slots) = &mut self.per_request
            && address >= self.addresses.spread(held.chosen.server)
        {
            slots.addresses[held.chosen.server] = address;
        }
        let flight = self.begin(slot, held.flight, &held.chosen);
        // It counts as sent since the connection is being opened.
        self.connections[slot].asked_at = now;
        self.recorder.sent_bytes(&flight);
        self.selector.reuse(held.chosen);
        self.flush(slot, now);
    }

    /// Fails the request that waits for the connection. Returns false if there is none.
    pub(super) fn fail_held(&mut self, slot: usize, kind: ErrorKind, now: Nanos) -> bool {
        let Some(held) = self.connections[slot].held.take() else { return false };
        self.in_flight -= 1;
        self.recorder.failed(&held.flight, now, kind);
        self.request_over(held.flight.step, StepOutcome::Failed, now);
        true
    }

    /// The connection in the slot is closed.
    pub(super) fn make_spare(&mut self, slot: usize, now: Nanos) {
        // A peer that accepts no requests has gone before it got one.
        self.fail_held(slot, ErrorKind::GoneAway, now);
        // It may have been lost while its last output was sent.
        if self.connections[slot].state == State::Unassigned {
            return;
        }
        self.connections[slot].state = State::Unassigned;
        let is_full = !self.takes_requests();
        if let Some(slots) = &mut self.per_request {
            if is_full {
                slots.free_since = now;
            }
            slots.spare.push(slot);
        }
    }
}
