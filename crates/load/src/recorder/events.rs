//! Additional measurements of responses that are streams of events.

use super::messages::MessageTimes;
use super::sizes::Sizes;
use crate::clock::Nanos;
use crate::recorder::InFlightRequest;
use results::{HistogramSummary, LatencyHistogram, StreamEvents};

/// Additional measurements of streams of events. Only runs with such responses have one.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventRecord {
    first_byte: LatencyHistogram,
    pub(super) times: MessageTimes,
    per_response: Sizes,
    /// Whole streams without an event.
    empty: u64,
    /// Streams that failed, and those of them that had an event.
    failed: u64,
    failed_after_event: u64,
}

impl EventRecord {
    /// Records the beginning of a stream whose first byte came at this time.
    pub(super) fn begun(&mut self, flight: &InFlightRequest, first_byte_at: Nanos) {
        self.first_byte.record_ns(first_byte_at.saturating_sub(flight.due));
    }

    /// Records the end of a stream with this many events, whole or not.
    pub(super) fn ended(&mut self, events: u64, is_whole: bool) {
        if is_whole {
            self.per_response.record(events);
            self.empty += u64::from(events == 0);
        } else {
            self.failed += 1;
            self.failed_after_event += u64::from(events > 0);
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.first_byte.merge(&other.first_byte);
        self.times.merge(&other.times);
        self.per_response.merge(&other.per_response);
        self.empty += other.empty;
        self.failed += other.failed;
        self.failed_after_event += other.failed_after_event;
    }

    /// From the intended start to the first byte. `unanswered`: all requests without a whole response.
    pub(crate) fn first_byte(&self, unanswered: u64) -> HistogramSummary {
        self.first_byte.summary_with(unanswered.saturating_sub(self.failed))
    }

    /// From the intended start to the first event. `unanswered`: all requests without a whole response. Streams without an event
    /// rank with them.
    pub(crate) fn first_event(&self, unanswered: u64) -> HistogramSummary {
        self.times.first.summary_with(self.empty + unanswered.saturating_sub(self.failed_after_event))
    }

    /// From one event to the next; `None` if no response had two.
    pub(crate) fn gaps(&self) -> Option<HistogramSummary> {
        (self.times.next.count() > 0).then(|| self.times.next.summary())
    }

    /// Counts in the form of the result schema.
    pub(crate) fn counts(&self) -> StreamEvents {
        StreamEvents {
            received: self.times.received,
            per_response: self.per_response.summary(),
            empty: self.empty,
            read_together: self.times.read_together,
            read_together_within_us: self.times.read_together_within_us(),
        }
    }
}
