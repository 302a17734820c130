//! Additional measurements of gRPC calls: statuses, messages and their times.

use crate::clock::Nanos;
use crate::protocol::grpc::STATUSES;
use crate::recorder::InFlightRequest;
use results::{GRPC_STATUS_NAMES, GrpcMessages, LatencyHistogram};
use std::collections::BTreeMap;

/// Additional measurements of gRPC calls. Only runs with gRPC have one.
#[derive(Clone, Debug)]
pub(crate) struct GrpcRecord {
    statuses: [u64; STATUSES],
    sent: u64,
    received: u64,
    message_time: LatencyHistogram,
    first_message_time: LatencyHistogram,
    /// Times from one message to the next that read 0, since one read returned both, and the longest that one of them may be.
    read_together: u64,
    read_together_within: Nanos,
}

impl Default for GrpcRecord {
    fn default() -> Self {
        Self {
            statuses: [0; STATUSES],
            sent: 0,
            received: 0,
            message_time: LatencyHistogram::new(),
            first_message_time: LatencyHistogram::new(),
            read_together: 0,
            read_together_within: 0,
        }
    }
}

impl GrpcRecord {
    /// Records the status of a call that has ended.
    pub(super) fn ended(&mut self, status: u8) {
        self.statuses[usize::from(status).min(STATUSES - 1)] += 1;
    }

    /// Counts the messages of a call that has ended.
    pub(super) fn count(&mut self, sent: u64, received: u64) {
        self.sent += sent;
        self.received += received;
    }

    /// Records messages of a stream that were read together; at least one. Those of a read have one time, that of its last packet,
    /// but came after `came_after`.
    pub(super) fn received(
        &mut self,
        flight: &mut InFlightRequest,
        messages: u32,
        at: Nanos,
        came_after: Nanos,
    ) {
        self.received += u64::from(messages);
        let later = u64::from(messages.saturating_sub(1));
        let mut together = later;
        match flight.message_at.replace(at) {
            None => self.first_message_time.record_ns(at.saturating_sub(flight.due)),
            Some(last) => {
                self.message_time.record_ns(at.saturating_sub(last));
                together += u64::from(last == at);
            }
        }
        self.message_time.record_zeros(later);
        if together > 0 {
            self.read_together += together;
            self.read_together_within =
                self.read_together_within.max(at.saturating_sub(came_after.max(flight.sent)));
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.statuses.iter_mut().zip(other.statuses) {
            *mine += theirs;
        }
        self.sent += other.sent;
        self.received += other.received;
        self.read_together += other.read_together;
        self.read_together_within = self.read_together_within.max(other.read_together_within);
        self.message_time.merge(&other.message_time);
        self.first_message_time.merge(&other.first_message_time);
    }

    /// Counts by status name.
    pub(crate) fn statuses(&self) -> BTreeMap<String, u64> {
        let named = GRPC_STATUS_NAMES.iter().zip(self.statuses);
        named.filter(|(_, count)| *count > 0).map(|(name, count)| ((*name).to_owned(), count)).collect()
    }

    /// Messages in the form of the result schema.
    pub(crate) fn messages(&self) -> GrpcMessages {
        GrpcMessages {
            messages_sent: self.sent,
            messages_received: self.received,
            message_time_us: self.message_time.summary(),
            read_together: self.read_together,
            read_together_within_us: self.read_together_within as f64 / 1e3,
            first_message_time_us: self.first_message_time.summary(),
        }
    }
}
