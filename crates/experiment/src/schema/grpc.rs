//! What gRPC calls bring beside what every request brings.

use super::histogram::HistogramSummary;
use serde::{Deserialize, Serialize};

/// Names of the statuses of gRPC by their number.
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

/// Messages of the measured calls: of a call with streams there may be many.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GrpcMessages {
    /// Messages sent, of those calls that have ended.
    pub messages_sent: u64,
    /// Messages received whole.
    pub messages_received: u64,
    /// Calls that are answered with a stream: from one message of the server to its next one. In a dialogue, where the client
    /// answers each at once, this is the round trip of a message.
    pub message_time_us: HistogramSummary,
    /// Calls that are answered with a stream: from the intended start to the first message.
    pub first_message_time_us: HistogramSummary,
}
