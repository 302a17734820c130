//! What a server counts of itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Counts since the start of a server.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counters {
    /// Requests read whole, those for the counters left out.
    pub requests: u64,
    /// Of which answered with an error because the error rate wanted it.
    pub errors: u64,
    /// Streams of bytes that were no proper request, answered with 4xx or 5xx and closed.
    pub rejected: u64,
    /// Connections accepted.
    pub connections_accepted: u64,
    /// Connections open now.
    pub connections_open: u64,
    /// Bytes received on all connections.
    pub bytes_received: u64,
    /// Bytes sent on all connections, heads and the answers with counters included.
    pub bytes_sent: u64,
}

impl Counters {
    /// The counters as a JSON object with the names of the fields, on one line.
    #[must_use]
    pub fn to_json(&self) -> String {
        let Self {
            requests,
            errors,
            rejected,
            connections_accepted,
            connections_open,
            bytes_received,
            bytes_sent,
        } = self;
        format!(
            "{{\"requests\":{requests},\"errors\":{errors},\"rejected\":{rejected},\
             \"connections_accepted\":{connections_accepted},\"connections_open\":{connections_open},\
             \"bytes_received\":{bytes_received},\"bytes_sent\":{bytes_sent}}}\n"
        )
    }

    /// The sum over all workers.
    pub(crate) fn sum(tallies: &[Arc<Tally>]) -> Self {
        let mut sum = Self::default();
        for tally in tallies {
            sum.requests += tally.requests.get();
            sum.errors += tally.errors.get();
            sum.rejected += tally.rejected.get();
            sum.connections_accepted += tally.connections_accepted.get();
            sum.connections_open += tally.connections_open.load(Relaxed) as u64;
            sum.bytes_received += tally.bytes_received.get();
            sum.bytes_sent += tally.bytes_sent.get();
        }
        sum
    }
}

/// One worker's counts, on cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Tally {
    pub requests: Count,
    pub errors: Count,
    pub rejected: Count,
    pub connections_accepted: Count,
    pub bytes_received: Count,
    pub bytes_sent: Count,
    /// Raised by the accepting worker, lowered by the one that serves.
    pub connections_open: AtomicUsize,
}

/// A count that one thread raises and any thread reads.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    /// Raises the count. A load and a store, cheaper than an atomic addition: only one thread writes.
    pub(crate) fn add(&self, amount: u64) {
        self.0.store(self.0.load(Relaxed) + amount, Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
