//! State shared by the HTTP/2 connections of one worker.

use crate::counters::{Counters, Tally};
use crate::settings::{Answer, Settings};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Maximum memory for all unfinished messages of one worker, so that slow clients cannot exhaust the memory.
const MAX_HELD_BYTES: usize = 64 * 1024 * 1024;
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
    /// Memory still available for unfinished messages, bytes.
    free_bytes: AtomicUsize,
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

    /// Accounts for an unfinished message of this length. Returns false if there is no memory for it.
    pub(crate) fn hold(&self, bytes: usize) -> bool {
        let held = self.free_bytes.fetch_update(Relaxed, Relaxed, |free| free.checked_sub(bytes));
        held.is_ok()
    }

    /// Releases accounted memory.
    pub(crate) fn release(&self, bytes: usize) {
        self.free_bytes.fetch_add(bytes, Relaxed);
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
