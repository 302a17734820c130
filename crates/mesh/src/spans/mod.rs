//! Spans of a trial's proxies: the counts of the collector (`meshmeter collect-spans`), and what they prove
//! ([`tracing`]).

pub mod tracing;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Path at which the collector serves [`Received`].
pub const COUNTERS_PATH: &str = "/counters";

#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Received {
    /// Requests with spans.
    pub exports: u64,
    pub unreadable: u64,
    /// Number of spans by sender.
    pub spans: BTreeMap<String, u64>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SentSpans {
    /// `service.name`; shared by the replicas of a workload.
    pub sender: String,
    /// Expected spans per request that is forwarded once.
    pub spans_per_request: u64,
}
