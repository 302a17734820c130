//! What `meshmeter load --progress json` tells while it runs: one JSON object a line on standard error.

use super::load::SeriesPoint;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An event of a run of the generator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum LoadEvent {
    /// The agreed instant of the start is awaited.
    Waiting,
    /// Connections are being opened.
    Connecting,
    /// They are open, and the instant of the start is awaited.
    Ready,
    /// The schedule has started; nothing is measured yet.
    WarmingUp,
    /// The measured window has just opened.
    WindowOpened,
    /// A second of the window is over.
    Second(SeriesPoint),
    /// More of the same second, where it was asked for.
    SecondDetail(Box<SecondDetail>),
    /// The measured window has just closed; answers on their way are still awaited.
    WindowClosed,
}

/// Everything that a generator counted in one second of the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SecondDetail {
    /// Requests sent.
    pub sent: u64,
    /// Responses received whole.
    pub completed: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Requests due by the schedule; absent in closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<f64>,
    /// What went wrong, by kind.
    pub errors: BTreeMap<String, u64>,
    /// Responses by status code.
    pub statuses: BTreeMap<String, u64>,
    /// Bytes of the requests.
    pub bytes_sent: u64,
    /// Bytes of the whole responses.
    pub bytes_received: u64,
    /// Connections open at its end.
    pub connections_open: usize,
    /// Histogram, encoded as in [`HistogramSummary::histogram`](super::HistogramSummary::histogram), of response times.
    pub response_time_us: String,
    /// The same of service times.
    pub service_time_us: String,
    /// The same of schedule lags.
    pub schedule_lag_us: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_as_they_were_written() {
        let detail = SecondDetail {
            completed: 3,
            due: Some(2.5),
            statuses: BTreeMap::from([("200".to_owned(), 3)]),
            errors: BTreeMap::from([("timeout".to_owned(), 1)]),
            ..SecondDetail::default()
        };
        for event in [
            LoadEvent::Ready,
            LoadEvent::Second(SeriesPoint { completed: 3, ..SeriesPoint::default() }),
            LoadEvent::SecondDetail(Box::new(detail)),
        ] {
            let line = serde_json::to_string(&event).unwrap();
            assert_eq!(serde_json::from_str::<LoadEvent>(&line).unwrap(), event, "{line}");
        }
    }
}
