//! Additional measurements of gRPC calls: statuses, messages and their times.

use super::messages::MessageTimes;
use crate::protocol::grpc::STATUSES;
use results::{GRPC_STATUS_NAMES, GrpcMessages};
use std::collections::BTreeMap;

/// Additional measurements of gRPC calls. Only runs with gRPC have one.
#[derive(Clone, Debug, Default)]
pub(crate) struct GrpcRecord {
    statuses: [u64; STATUSES],
    sent: u64,
    pub(super) times: MessageTimes,
}

impl GrpcRecord {
    /// Records the status of a call that has ended.
    pub(super) fn ended(&mut self, status: u8) {
        self.statuses[usize::from(status).min(STATUSES - 1)] += 1;
    }

    /// Counts the messages of a call that has ended.
    pub(super) fn count(&mut self, sent: u64, received: u64) {
        self.sent += sent;
        self.times.received += received;
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.statuses.iter_mut().zip(other.statuses) {
            *mine += theirs;
        }
        self.sent += other.sent;
        self.times.merge(&other.times);
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
            messages_received: self.times.received,
            message_time_us: self.times.next.summary(),
            read_together: self.times.read_together,
            read_together_within_us: self.times.read_together_within_us(),
            first_message_time_us: self.times.first.summary(),
        }
    }
}
