//! Additional measurements of gRPC calls: statuses, messages and their times.

use crate::clock::Nanos;
use crate::protocol::grpc::STATUSES;
use crate::recorder::InFlightRequest;
use experiment::schema::{GRPC_STATUS_NAMES, GrpcMessages};
use statistics::LatencyHistogram;
use std::collections::BTreeMap;

/// Additional measurements of gRPC calls. Only runs with gRPC have one.
#[derive(Clone, Debug)]
pub(crate) struct GrpcRecord {
    statuses: [u64; STATUSES],
    sent: u64,
    received: u64,
    message_time: LatencyHistogram,
    first_message_time: LatencyHistogram,
}

impl Default for GrpcRecord {
    fn default() -> Self {
        Self {
            statuses: [0; STATUSES],
            sent: 0,
            received: 0,
            message_time: LatencyHistogram::new(),
            first_message_time: LatencyHistogram::new(),
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

    /// Records messages of a stream that arrived together; at least one.
    pub(super) fn received(&mut self, flight: &mut InFlightRequest, messages: u32, at: Nanos) {
        self.received += u64::from(messages);
        match flight.message_at.replace(at) {
            None => self.first_message_time.record_ns(at.saturating_sub(flight.due)),
            Some(last) => self.message_time.record_ns(at.saturating_sub(last)),
        }
        for _ in 1..messages {
            self.message_time.record_ns(0);
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.statuses.iter_mut().zip(other.statuses) {
            *mine += theirs;
        }
        self.sent += other.sent;
        self.received += other.received;
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
            first_message_time_us: self.first_message_time.summary(),
        }
    }
}
