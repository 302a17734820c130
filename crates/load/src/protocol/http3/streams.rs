//! The requests of a connection that are not answered, by slot and by stream identifier.

use crate::protocol::events::EventScanner;
use crate::protocol::http2::response::Response;
use crate::protocol::{Keep, KeptResponse};
use http3::frame::FrameReader;

/// A request and its response.
#[derive(Debug)]
pub(super) struct Stream {
    /// `None` if the slot is free.
    pub(super) id: Option<u64>,
    pub(super) reader: FrameReader,
    pub(super) response: Response,
    /// Trailers have come.
    pub(super) is_over: bool,
    /// Events of the response, once it is known to be a stream of them.
    pub(super) events: Option<Box<EventScanner>>,
    /// Kept parts of the response, until the next stream in this slot.
    pub(super) kept: Option<Box<KeptResponse>>,
}

/// The open streams of a connection.
#[derive(Debug)]
pub(super) struct Streams {
    slots: Vec<Stream>,
    free: Vec<usize>,
    /// Slots, indexed by the ordinal of their stream's identifier modulo the length. If a newer stream has
    /// overwritten the entry of a long-lived one, that one is found by a search.
    places: Box<[u32]>,
}

impl Streams {
    /// `most`: maximum number of concurrent streams.
    pub(super) fn new(most: usize) -> Self {
        let places = (2 * most).next_power_of_two();
        Self { slots: Vec::new(), free: Vec::new(), places: vec![0; places].into_boxed_slice() }
    }

    pub(super) fn reset(&mut self) {
        self.slots.clear();
        self.free.clear();
    }

    pub(super) fn open_count(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Opens a stream. Returns its slot.
    pub(super) fn open(&mut self, id: u64, response: Response, keep: Keep) -> usize {
        let stream = Stream {
            id: Some(id),
            reader: FrameReader::default(),
            response,
            is_over: false,
            events: None,
            kept: keep.begin(),
        };
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

    /// Closes an open stream. Returns its identifier.
    pub(super) fn close(&mut self, slot: usize) -> Option<u64> {
        let id = self.slots[slot].id.take()?;
        self.free.push(slot);
        Some(id)
    }

    /// The slot of an open stream.
    pub(super) fn find(&self, id: u64) -> Option<usize> {
        let slot = self.places[self.place(id)] as usize;
        if self.slots.get(slot).is_some_and(|stream| stream.id == Some(id)) {
            return Some(slot);
        }
        self.slots.iter().position(|stream| stream.id == Some(id))
    }

    fn place(&self, id: u64) -> usize {
        (id >> 2) as usize & (self.places.len() - 1)
    }

    pub(super) fn get(&mut self, slot: usize) -> &mut Stream {
        &mut self.slots[slot]
    }

    /// Takes what was kept of the response in a slot.
    pub(super) fn take_kept(&mut self, slot: usize) -> Option<Box<KeptResponse>> {
        self.slots.get_mut(slot)?.kept.take()
    }

    /// The slots of open streams from this identifier on.
    pub(super) fn from(&self, id: u64) -> Vec<usize> {
        let is_later = |stream: &Stream| stream.id.is_some_and(|own| own >= id);
        self.slots.iter().enumerate().filter(|(_, stream)| is_later(stream)).map(|(slot, _)| slot).collect()
    }
}
