//! Estimates of responses that are streams of events.

use crate::added_latency::AddedLatency;
use crate::clock::Clock;
use crate::estimate::Percentiles;
use crate::estimates::Estimates;
use crate::metric::Metric;
use serde::{Deserialize, Serialize};

/// Streams of events of a cell: estimates over its valid trials.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamSummary {
    /// From the intended start of each request to the first byte; absent in results from earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte_us: Option<Percentiles>,
    /// From the intended start of each request to the first event with content.
    pub first_event_us: Option<Percentiles>,
    /// From one event with content to the next of the same response.
    pub event_gap_us: Option<Percentiles>,
    /// Number of gaps at and beyond their 99th percentile: the minimum over the trials.
    pub gaps_beyond_p99: u64,
    /// What the mode adds to mode `none` at the same load; absent for `none`, and if there is nothing to compare with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<AddedStreamTimes>,
    /// Events per second, and CPU of all proxies per 1000 events.
    #[serde(flatten)]
    pub estimates: Estimates,
}

impl StreamSummary {
    /// Metrics of [`Self::estimates`].
    pub const METRICS: [Metric; 2] = [Metric::EventsPerS, Metric::ProxiesCpuSPer1000Events];

    /// Times by a clock of streams.
    #[must_use]
    pub fn times(&self, clock: Clock) -> Option<&Percentiles> {
        match clock {
            Clock::FirstByte => self.first_byte_us.as_ref(),
            Clock::FirstEvent => self.first_event_us.as_ref(),
            Clock::EventGap => self.event_gap_us.as_ref(),
            Clock::ResponseTime | Clock::ServiceTime | Clock::Convergence | Clock::FirstConfiguration => None,
        }
    }
}

/// Differences between the streams of two modes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AddedStreamTimes {
    /// Of the time to the first event with content.
    pub first_event_us: AddedLatency,
    /// Of the time from one event to the next.
    pub event_gap_us: AddedLatency,
}
