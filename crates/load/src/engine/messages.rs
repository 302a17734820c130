//! Messages between the threads of a run.

use crate::second::SecondCounts;
use crate::worker::WorkerOutcome;
use std::io;
use std::sync::mpsc::Sender;
use std::time::Instant;

/// From a worker to the thread that directs the run.
pub(super) enum FromWorker {
    /// Number of open connections.
    Connected(usize),
    /// Index of the worker, and its counts.
    Second(usize, Box<SecondCounts>),
    Done(usize, io::Result<Box<WorkerOutcome>>),
}

/// Channels to one worker.
pub(super) struct ToWorker {
    /// The instant at which the schedule starts.
    pub start: Sender<Instant>,
    /// Cleared seconds, for reuse.
    pub spare: Sender<SecondCounts>,
}
