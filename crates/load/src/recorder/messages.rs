//! Times of the messages of streams: those of gRPC calls, and the events of streams of events.

use crate::clock::Nanos;
use crate::recorder::InFlightRequest;
use results::LatencyHistogram;

/// Messages that were received, and when.
#[derive(Clone, Debug, Default)]
pub(super) struct MessageTimes {
    pub(super) received: u64,
    /// From the intended start of a request to the first message of its response.
    pub(super) first: LatencyHistogram,
    /// From one message to the next.
    pub(super) next: LatencyHistogram,
    /// Times from one message to the next that read 0, since one read returned both, and the longest that one of them may be.
    pub(super) read_together: u64,
    read_together_within: Nanos,
}

impl MessageTimes {
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
            None => self.first.record_ns(at.saturating_sub(flight.due)),
            Some(last) => {
                self.next.record_ns(at.saturating_sub(last));
                together += u64::from(last == at);
            }
        }
        self.next.record_zeros(later);
        if together > 0 {
            self.read_together += together;
            self.read_together_within =
                self.read_together_within.max(at.saturating_sub(came_after.max(flight.sent)));
        }
    }

    pub(super) fn read_together_within_us(&self) -> f64 {
        self.read_together_within as f64 / 1e3
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.received += other.received;
        self.read_together += other.read_together;
        self.read_together_within = self.read_together_within.max(other.read_together_within);
        self.next.merge(&other.next);
        self.first.merge(&other.first);
    }
}
