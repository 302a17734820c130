//! Events that `meshmeter load --progress json` writes while it runs: one JSON object per line on standard
//! error.

use crate::load::SeriesPoint;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Event of a run of the generator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum LoadEvent {
    /// Waiting for the agreed start time.
    Waiting,
    /// Opening connections.
    Connecting,
    /// Connections are open; waiting for the start time.
    Ready,
    /// The start time came too late: the generator ends.
    StartMissed,
    /// The schedule has started; requests are not measured yet.
    WarmingUp,
    /// The measured window has just opened.
    WindowOpened,
    /// One second of the window has passed.
    Second(SeriesPoint),
    /// Details of the same second, if requested.
    SecondDetail(Box<SecondDetail>),
    /// The measured window has just closed; responses in flight are still awaited.
    WindowClosed,
}

/// All counts of a generator in one second of the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SecondDetail {
    /// Requests sent.
    pub sent: u64,
    /// Responses received completely.
    pub completed: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Requests due by the schedule; absent in closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<f64>,
    /// Failures by kind.
    pub errors: BTreeMap<String, u64>,
    /// Responses by status code.
    pub statuses: BTreeMap<String, u64>,
    /// Bytes of the requests.
    pub bytes_sent: u64,
    /// Bytes of the whole responses.
    pub bytes_received: u64,
    /// Connections open at the end of the second.
    pub connections_open: usize,
    /// Histogram of response times, encoded as in
    /// [`HistogramSummary::histogram`](crate::HistogramSummary::histogram).
    pub response_time_us: String,
    /// Histogram of service times, in the same encoding.
    pub service_time_us: String,
    /// Histogram of schedule lags, in the same encoding.
    pub schedule_lag_us: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_read_back() {
        let detail = SecondDetail {
            completed: 3,
            due: Some(2.5),
            statuses: BTreeMap::from([("200".to_owned(), 3)]),
            errors: BTreeMap::from([("timeout".to_owned(), 1)]),
            ..SecondDetail::default()
        };
        for event in [
            LoadEvent::Ready,
            LoadEvent::StartMissed,
            LoadEvent::Second(SeriesPoint { completed: 3, ..SeriesPoint::default() }),
            LoadEvent::SecondDetail(Box::new(detail)),
        ] {
            let line = serde_json::to_string(&event).unwrap();
            assert_eq!(serde_json::from_str::<LoadEvent>(&line).unwrap(), event, "{line}");
        }
    }
}
