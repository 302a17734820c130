//! Figures specific to gRPC calls.

use crate::histogram::HistogramSummary;
use serde::{Deserialize, Serialize};

/// Names of the gRPC status codes, by number.
pub const GRPC_STATUS_NAMES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// Messages of the measured calls. Streaming calls can have many.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GrpcMessages {
    /// Messages sent, in calls that have ended.
    pub messages_sent: u64,
    /// Messages received completely.
    pub messages_received: u64,
    /// Server-streaming calls: from one message of the server to the next. In a bidirectional call whose
    /// client responds to each message at once, this is the round-trip time of a message.
    pub message_time_us: HistogramSummary,
    /// Those times that read 0 because one read returned both messages.
    #[serde(default)]
    pub read_together: u64,
    /// The longest that one of them may be, microseconds.
    #[serde(default)]
    pub read_together_within_us: f64,
    /// Server-streaming calls: from the intended start to the first message.
    pub first_message_time_us: HistogramSummary,
}
