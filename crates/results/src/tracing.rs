//! Tracing in a trial.

use serde::{Deserialize, Serialize};

/// Requests that the proxies of a trial report as traced, and spans that the collector received from them,
/// from the start of the generator until all had arrived, warm-up included.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TracingProof {
    /// Requested sampling fraction, 0 to 1.
    pub fraction: f64,
    /// Proxies that read requests, from client to server.
    pub proxies: Vec<TracedProxy>,
}

impl TracingProof {
    /// Spans received by the collector from all proxies.
    #[must_use]
    pub fn spans_received(&self) -> u64 {
        self.proxies.iter().map(|proxy| proxy.spans_received).sum()
    }
}

/// A proxy with tracing enabled.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct TracedProxy {
    /// Name of the component.
    pub name: String,
    /// Requests received.
    pub requests: u64,
    /// Requests traced, by its own count.
    pub requests_traced: u64,
    /// Spans received by the collector. A gateway or waypoint may send several per request: one for the
    /// received request, and one per forwarding attempt.
    pub spans_received: u64,
}
