//! Counters of a stub, and complaints about its clients.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of texts of each kind.
const MAX_TEXTS: usize = 20;

/// A counter that many threads increment.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub fn add(&self, number: u64) {
        self.0.fetch_add(number, Ordering::Relaxed);
    }

    /// Increments the counter and returns its previous value.
    pub fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub connections: Count,
    pub streams: Count,
    pub requests: Count,
    pub responses: Count,
    pub body_bytes: Count,
    pub acknowledgements: Count,
    rejections: Count,
    texts: Mutex<Texts>,
}

#[derive(Debug, Default)]
struct Texts {
    rejections: Vec<String>,
    complaints: Vec<String>,
    unanswered: BTreeMap<String, u64>,
}

/// Current counters of a stub.
#[derive(Clone, Debug)]
pub struct Totals {
    /// Connections accepted.
    pub connections: u64,
    /// Discovery streams, open or not.
    pub streams: u64,
    /// Requests received.
    pub requests: u64,
    /// Responses passed to HTTP/2.
    pub responses: u64,
    /// Total size of their bodies.
    pub body_bytes: u64,
    /// Responses that clients acknowledged.
    pub acknowledgements: u64,
    /// Responses that clients rejected.
    pub rejections: u64,
    /// Reasons of the first twenty rejections.
    pub rejection_texts: Vec<String>,
    /// The first twenty protocol violations by clients.
    pub complaints: Vec<String>,
    /// Requests for types that the stub does not have, by type.
    pub unanswered: BTreeMap<String, u64>,
}

impl Counts {
    pub fn complain(&self, text: &str) {
        keep(&mut self.texts().complaints, text);
    }

    pub fn reject(&self, text: &str) {
        self.rejections.add(1);
        keep(&mut self.texts().rejections, text);
    }

    pub fn unanswered(&self, type_url: &str) {
        *self.texts().unanswered.entry(type_url.to_owned()).or_default() += 1;
    }

    pub fn totals(&self) -> Totals {
        let texts = self.texts();
        Totals {
            connections: self.connections.get(),
            streams: self.streams.get(),
            requests: self.requests.get(),
            responses: self.responses.get(),
            body_bytes: self.body_bytes.get(),
            acknowledgements: self.acknowledgements.get(),
            rejections: self.rejections.get(),
            rejection_texts: texts.rejections.clone(),
            complaints: texts.complaints.clone(),
            unanswered: texts.unanswered.clone(),
        }
    }

    fn texts(&self) -> MutexGuard<'_, Texts> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn keep(texts: &mut Vec<String>, text: &str) {
    if texts.len() < MAX_TEXTS {
        texts.push(text.to_owned());
    }
}
