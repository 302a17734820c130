//! Export of figures to other systems during the measurement.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Outcome of the export to one receiver. A failing receiver does not affect any other figure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportRecord {
    /// URL, without credentials and query.
    pub to: String,
    /// `remote-write-1`, `remote-write-2` or `otlp`.
    pub protocol: String,
    /// Snapshots of all figures to send, about one per second.
    pub snapshots: u64,
    /// Snapshots that the receiver accepted.
    pub delivered: u64,
    /// Samples in accepted snapshots, less those that the receiver reported as rejected.
    pub samples: u64,
    /// Failed requests, including those that were retried successfully.
    pub failed_requests: u64,
    /// Failed requests by cause, such as `HTTP 503` or `no response in 10 s`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<String, u64>,
}

impl ExportRecord {
    /// Snapshots that the receiver did not accept.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.snapshots.saturating_sub(self.delivered)
    }
}
