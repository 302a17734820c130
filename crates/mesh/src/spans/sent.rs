//! The spans that a proxy sends.

/// The spans that a proxy sends.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SentSpans {
    /// Name of their sender, `service.name`; the replicas of a workload share it.
    pub sender: String,
    /// Spans per request that was forwarded once.
    pub spans_per_request: u64,
}
