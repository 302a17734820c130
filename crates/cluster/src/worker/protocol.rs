//! Messages between a run and its workers: JSON over HTTP on a port of the pod's loopback.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;

pub const START_PATH: &str = "/start";
pub const PROGRESS_PATH: &str = "/progress";
pub const INPUT_PATH: &str = "/input";
pub const SIGNAL_PATH: &str = "/signal";
pub const RESULT_PATH: &str = "/result";
pub const STATUS_PATH: &str = "/status";
pub const FINISH_PATH: &str = "/finish";

/// Maximum time that [`PROGRESS_PATH`] waits for something new.
pub const PROGRESS_WAIT: Duration = Duration::from_secs(1);

/// Starts a generator. A running one is killed.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Start {
    /// Distinguishes this generator's messages from those of an earlier one.
    pub number: u64,
    /// Arguments of Meshmeter, in order.
    pub arguments: Vec<StartArgument>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StartArgument {
    Text(String),
    /// The path of a file with this content.
    File {
        /// Text before the path.
        prefix: String,
        name: String,
        content_base64: String,
    },
}

/// A line for the generator's standard input.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Input {
    pub line: String,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    Interrupt,
    Kill,
}

/// Lines that a generator has written to standard error, starting with line `from`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Progress {
    /// The generator's number.
    pub number: u64,
    pub lines: Vec<String>,
    /// Number of the line after these. Lines dropped meanwhile count.
    pub next: usize,
    /// How it ended, once all its lines have been read; absent while it runs.
    pub ended: Option<End>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct End {
    /// Absent if a signal ended it.
    pub exit_code: Option<i32>,
    /// Size of its result in bytes; absent if it wrote none.
    pub result_bytes: Option<u64>,
    /// True if the kernel has meanwhile killed a process of the container at its memory limit.
    pub is_oom_killed: bool,
}

/// Clock and usage of a worker's container.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Status {
    /// Nanoseconds since 1970 by the worker's clock.
    pub now_ns: u64,
    /// Absent if the container does not see its cgroup.
    pub usage: Option<Usage>,
}

/// Counters of the worker's container since it started.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Usage {
    pub source: String,
    pub cpu_ns: u64,
    pub user_ns: u64,
    pub system_ns: u64,
    /// Working set, as the kubelet computes it.
    pub memory_bytes: Option<u64>,
    pub anonymous_bytes: Option<u64>,
    pub periods: Option<u64>,
    pub throttled_periods: Option<u64>,
    pub throttled_ns: Option<u64>,
    /// Bytes received by the pod.
    pub received_bytes: Option<u64>,
    pub sent_bytes: Option<u64>,
}

/// Nanoseconds since 1970.
pub fn unix_ns(time: Timestamp) -> u64 {
    u64::try_from(time.as_nanosecond()).unwrap_or_default()
}
