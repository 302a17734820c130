//! Messages between a runner and an attached client: JSON over HTTP on a port of the pod's loopback.

use serde::{Deserialize, Serialize};
use std::time::Duration;

pub const PROGRESS_PATH: &str = "/progress";
/// POST: ends the run with the results so far.
pub const INTERRUPT_PATH: &str = "/interrupt";
/// The run folder as a tar archive, once the run has ended. The query is the number of bytes that the client has.
pub const FOLDER_PATH: &str = "/folder";
/// POST: the folder was copied, so nothing here is needed any longer.
pub const FETCHED_PATH: &str = "/fetched";

/// Maximum time that [`PROGRESS_PATH`] waits for something new.
pub const PROGRESS_WAIT: Duration = Duration::from_secs(1);

/// Lines that a run has written to standard error from a given line on, without those dropped since.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct RunProgress {
    pub lines: Vec<String>,
    /// Number of the line after these.
    pub next: usize,
    /// Its exit status, once all its lines have been read; absent while it runs.
    pub ended: Option<u8>,
}
