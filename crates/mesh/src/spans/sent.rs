//! The spans that a proxy sends.

/// Spans of a proxy.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SentSpans {
    /// `service.name`; the replicas of a workload share it.
    pub sender: String,
    /// Per request that was forwarded once.
    pub spans_per_request: u64,
}
