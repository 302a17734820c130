//! Events of responses that are streams of events (`text/event-stream`).

use crate::histogram::SizeSummary;
use serde::{Deserialize, Serialize};

/// Events with content: without comments, empty data, and the frames around the tokens of a language model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamEvents {
    /// Events received, those of responses that failed later included.
    pub received: u64,
    /// Events of each complete response.
    pub per_response: SizeSummary,
    /// Complete responses without an event.
    #[serde(default)]
    pub empty: u64,
    /// Times between events that read 0 because one read returned both.
    pub read_together: u64,
    /// The longest that one of them may be, microseconds.
    pub read_together_within_us: f64,
}
