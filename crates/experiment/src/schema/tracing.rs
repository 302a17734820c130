//! What became of tracing in a trial.

use serde::{Deserialize, Serialize};

/// What the proxies of a trial say that they traced, and what the collector of spans received of them, from the start of
/// the generator until all had come, warm-up included.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TracingProof {
    /// Share of requests that was to be traced, 0 to 1.
    pub fraction: f64,
    /// Each proxy that reads requests, from client to server.
    pub proxies: Vec<TracedProxy>,
}

impl TracingProof {
    /// Spans that the collector received of all proxies.
    #[must_use]
    pub fn spans_received(&self) -> u64 {
        self.proxies.iter().map(|proxy| proxy.spans_received).sum()
    }
}

/// One proxy that was to trace.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct TracedProxy {
    /// The component.
    pub name: String,
    /// Requests that arrived at it.
    pub requests: u64,
    /// Of which it traced, by its own count.
    pub requests_traced: u64,
    /// Its spans that the collector received. A gateway and a waypoint may send several for a request: one for what arrived,
    /// one for each time that they sent it on.
    pub spans_received: u64,
}
