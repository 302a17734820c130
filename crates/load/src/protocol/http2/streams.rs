//! The open streams of a connection with their slots and identifiers.

use super::response::Response;
use crate::protocol::events::EventScanner;
use crate::protocol::grpc::OutgoingMessages;
use crate::protocol::{Keep, KeptResponse};
use http2::frame::MAX_31_BITS;
use std::sync::Arc;

/// A request and its response.
#[derive(Debug)]
pub(super) struct Stream {
    /// 0 if the slot is free.
    pub(super) id: u32,
    /// Send window of the stream; negative if the peer has reduced its initial window.
    pub(super) send_window: i64,
    /// The part of the request's body, or of the call's current message, that is not sent.
    pub(super) body: Option<PendingBody>,
    /// The call's messages after the current one.
    pub(super) messages: Option<OutgoingMessages>,
    /// Content received since the last WINDOW_UPDATE to the peer.
    pub(super) received_bytes: u32,
    pub(super) response: Response,
    /// Events of the response, once it is known to be a stream of them.
    pub(super) events: Option<Box<EventScanner>>,
    /// Kept parts of the response, until the next stream in this slot.
    pub(super) kept: Option<Box<KeptResponse>>,
}

/// A body that waits for window.
#[derive(Clone, Debug)]
pub(super) struct PendingBody {
    pub(super) bytes: Arc<[u8]>,
    pub(super) sent: usize,
    /// The stream ends on this side after it.
    pub(super) is_last: bool,
}

impl PendingBody {
    pub(super) fn new(bytes: Arc<[u8]>, is_last: bool) -> Self {
        Self { bytes, sent: 0, is_last }
    }
}

impl Stream {
    /// True if there is content that may be sent by now, window permitting. Advances to the next message of a
    /// call.
    pub(super) fn has_content(&mut self) -> bool {
        if self.body.is_none() {
            let next = self.messages.as_mut().and_then(OutgoingMessages::next);
            self.body = next.map(|(bytes, is_last)| PendingBody::new(bytes, is_last));
        }
        self.body.is_some()
    }

    /// Appends at most `at_most` bytes of content, from as many messages as fit. Returns true if that is the
    /// end of it.
    pub(super) fn push_content(&mut self, at_most: usize, out: &mut Vec<u8>) -> bool {
        let mut room = at_most;
        while room > 0 && self.has_content() {
            let Some(body) = &mut self.body else { break };
            let step = room.min(body.bytes.len() - body.sent);
            out.extend_from_slice(&body.bytes[body.sent..body.sent + step]);
            body.sent += step;
            room -= step;
            if body.sent == body.bytes.len() {
                let is_last = body.is_last;
                self.body = None;
                if is_last {
                    return true;
                }
            }
        }
        false
    }

    /// True if the request is incomplete.
    pub(super) fn is_sending(&self) -> bool {
        self.body.is_some() || self.messages.as_ref().is_some_and(OutgoingMessages::is_unfinished)
    }
}

/// The open streams of a connection.
#[derive(Debug)]
pub(super) struct Streams {
    slots: Vec<Stream>,
    free: Vec<usize>,
    /// Slots, indexed by the ordinal of their stream's identifier modulo the length. If a newer stream has
    /// overwritten the entry of a long-lived one, that one is found by a search.
    places: Box<[u32]>,
    /// Identifier of the next stream.
    next_id: u32,
}

impl Streams {
    /// `most`: maximum number of concurrent streams.
    pub(super) fn new(most: usize) -> Self {
        let places = (2 * most).next_power_of_two();
        Self { slots: Vec::new(), free: Vec::new(), places: vec![0; places].into_boxed_slice(), next_id: 1 }
    }

    pub(super) fn reset(&mut self) {
        self.slots.clear();
        self.free.clear();
        self.next_id = 1;
    }

    pub(super) fn open_count(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// True if there are identifiers left.
    pub(super) fn has_identifiers(&self) -> bool {
        self.next_id <= MAX_31_BITS
    }

    /// True if this side ever opened a stream with this identifier.
    pub(super) fn was_opened(&self, id: u32) -> bool {
        id % 2 == 1 && id < self.next_id
    }

    /// Identifier of the next stream.
    pub(super) fn next_id(&self) -> u32 {
        self.next_id
    }

    /// Opens the next stream. There must be an identifier left.
    pub(super) fn open(&mut self, send_window: i64, response: Response, keep: Keep) -> usize {
        let id = self.next_id;
        self.next_id += 2;
        let (body, messages, events) = (None, None, None);
        let kept = keep.begin();
        let stream = Stream { id, send_window, body, messages, received_bytes: 0, response, events, kept };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot] = stream;
                slot
            }
            None => {
                self.slots.push(stream);
                self.slots.len() - 1
            }
        };
        let place = self.place(id);
        self.places[place] = slot as u32;
        slot
    }

    pub(super) fn close(&mut self, slot: usize) {
        let stream = &mut self.slots[slot];
        stream.id = 0;
        stream.body = None;
        self.free.push(slot);
    }

    /// The slot of an open stream.
    pub(super) fn find(&self, id: u32) -> Option<usize> {
        if id == 0 {
            return None;
        }
        let slot = self.places[self.place(id)] as usize;
        if self.slots.get(slot).is_some_and(|stream| stream.id == id) {
            return Some(slot);
        }
        self.slots.iter().position(|stream| stream.id == id)
    }

    /// Messages of a call that were sent; remains valid after its end until its slot is reused.
    pub(super) fn messages_sent(&self, slot: usize) -> u64 {
        self.slots.get(slot).and_then(|stream| stream.messages.as_ref()).map_or(0, OutgoingMessages::begun)
    }

    /// Takes what was kept of the response in a slot.
    pub(super) fn take_kept(&mut self, slot: usize) -> Option<Box<KeptResponse>> {
        self.slots.get_mut(slot)?.kept.take()
    }

    pub(super) fn get(&mut self, slot: usize) -> &mut Stream {
        &mut self.slots[slot]
    }

    /// The stream in a slot, if it is open.
    pub(super) fn open_in(&self, slot: usize) -> Option<&Stream> {
        self.slots.get(slot).filter(|stream| stream.id != 0)
    }

    /// Every open stream with its slot.
    pub(super) fn all_open(&mut self) -> impl Iterator<Item = (usize, &mut Stream)> {
        self.slots.iter_mut().enumerate().filter(|(_, stream)| stream.id != 0)
    }

    /// Continues with this identifier.
    #[cfg(test)]
    pub(super) fn skip_to(&mut self, id: u32) {
        self.next_id = id;
    }

    fn place(&self, id: u32) -> usize {
        (id as usize >> 1) & (self.places.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_found_after_any_number_of_others() {
        let mut streams = Streams::new(3);
        let lasting = streams.open(0, Response::default(), Keep::default());
        for round in 0..100 {
            let slot = streams.open(0, Response::default(), Keep::default());
            let id = streams.get(slot).id;
            assert_eq!(id, 3 + 2 * round);
            assert_eq!(streams.find(id), Some(slot));
            assert_eq!(streams.find(1), Some(lasting));
            assert_eq!(streams.open_count(), 2);
            streams.close(slot);
            assert_eq!(streams.find(id), None);
            assert!(streams.was_opened(id) && !streams.was_opened(id + 2) && !streams.was_opened(id + 1));
        }
        assert_eq!(streams.slots.len(), 2, "slots are used again");
        assert_eq!(streams.find(0), None);
    }
}
