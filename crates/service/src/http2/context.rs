//! State shared by the HTTP/2 connections of one worker.

use crate::counters::{Counters, Tally};
use crate::settings::{Answer, Settings};
use bytes::Bytes;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Maximum memory for all unfinished messages and unsent answers of one worker, so that slow clients cannot exhaust the memory.
pub(super) const MAX_HELD_BYTES: usize = 64 * 1024 * 1024;
/// Maximum size of the output buffer that a worker keeps.
const MAX_SPARE_BYTES: usize = 256 * 1024;

/// See the module.
#[derive(Debug)]
pub(crate) struct Context {
    pub answer: Answer,
    pub requests_per_connection: Option<NonZeroU64>,
    pub tally: Arc<Tally>,
    tallies: Arc<[Arc<Tally>]>,
    started: Instant,
    /// Memory still available for unfinished messages and unsent answers, bytes.
    pub(super) free_bytes: AtomicUsize,
    /// Buffer for the output of one turn, while no connection uses it.
    room: Mutex<Vec<u8>>,
}

impl Context {
    pub(crate) fn new(
        settings: &Settings,
        worker: usize,
        tallies: &Arc<[Arc<Tally>]>,
        started: Instant,
    ) -> Self {
        Self {
            answer: settings.answer,
            requests_per_connection: settings.requests_per_connection,
            tally: Arc::clone(&tallies[worker]),
            tallies: Arc::clone(tallies),
            started,
            free_bytes: AtomicUsize::new(MAX_HELD_BYTES),
            room: Mutex::default(),
        }
    }

    pub(crate) fn now_ns(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    pub(crate) fn counters(&self) -> Counters {
        Counters::sum(&self.tallies)
    }

    pub(super) fn take_room(&self) -> Vec<u8> {
        std::mem::take(&mut *self.room.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn give_back(&self, mut room: Vec<u8>) {
        room.clear();
        if room.capacity() <= MAX_SPARE_BYTES {
            *self.room.lock().unwrap_or_else(PoisonError::into_inner) = room;
        }
    }
}

/// Memory that is accounted for until this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    worker: Arc<Context>,
    bytes: usize,
}

impl Held {
    pub(crate) fn none(worker: &Arc<Context>) -> Self {
        Self { worker: Arc::clone(worker), bytes: 0 }
    }

    /// Accounts for this many bytes instead. Returns false, and accounts for none, if there is no memory for them.
    pub(crate) fn resize(&mut self, bytes: usize) -> bool {
        let before = std::mem::take(&mut self.bytes);
        let free_bytes = &self.worker.free_bytes;
        if before > 0 {
            free_bytes.fetch_add(before, Relaxed);
        }
        let is_held =
            bytes == 0 || free_bytes.fetch_update(Relaxed, Relaxed, |free| free.checked_sub(bytes)).is_ok();
        self.bytes = if is_held { bytes } else { 0 };
        is_held
    }

    /// These bytes, accounted for until the last part of them is dropped.
    pub(crate) fn until_gone(self, bytes: impl Into<Bytes>) -> Bytes {
        Bytes::from_owner(Kept { bytes: bytes.into(), _held: self })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.resize(0);
    }
}

struct Kept {
    bytes: Bytes,
    _held: Held,
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
