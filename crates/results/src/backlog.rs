//! The backlog of an open loop throughout its window.

use serde::{Deserialize, Serialize};

/// Requests and answers by slice of the window, from which the backlogs of several generators are judged together. Slices are equal
/// parts of the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Backlog {
    /// Requests from before the window that were under way when it began.
    pub under_way_at_start: u64,
    /// From the beginning of the window to its end.
    pub slices: Vec<BacklogSlice>,
}

/// Counts of one slice of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BacklogSlice {
    /// Requests that the schedule offers in it, on average.
    pub offered: f64,
    /// Requests that were due in it, whether or not they were sent.
    pub due: u64,
    /// Square roots of how long each of these took, or had waited when it was given up, nanoseconds, added up. Where requests
    /// overtake each other a few wait very long, which roots keep from deciding a mean.
    pub root_waits: f64,
    /// Requests that ended in it, whenever they were due.
    pub ended: u64,
}
