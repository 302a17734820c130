//! Figures that were sent to other systems while they were measured.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What became of the figures that were sent to one receiver. A receiver that fails has no part in any other figure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportRecord {
    /// Its URL, without credentials and query.
    pub to: String,
    /// `remote-write-1`, `remote-write-2` or `otlp`.
    pub protocol: String,
    /// Snapshots of all figures that were to be sent, about one per second.
    pub snapshots: u64,
    /// Of which the receiver took.
    pub delivered: u64,
    /// Samples in them, as far as the receiver told that it took fewer.
    pub samples: u64,
    /// Requests that failed, those included that were repeated with success.
    pub failed_requests: u64,
    /// Failed requests by cause, such as `HTTP 503` or `no response in 10 s`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<String, u64>,
}

impl ExportRecord {
    /// Snapshots that the receiver did not take.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.snapshots.saturating_sub(self.delivered)
    }
}
