//! `meshmeter.progress/1`: `progress.jsonl`, the trial that a run measures right now. The file is there while the run goes on.

use crate::load::SeriesPoint;
use serde::{Deserialize, Serialize};

/// The value of [`TrialUnderWay::schema`].
pub const PROGRESS_SCHEMA: &str = "meshmeter.progress/1";

/// First line of `progress.jsonl`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrialUnderWay {
    /// Always [`PROGRESS_SCHEMA`].
    pub schema: String,
    /// Trials that have ended.
    pub ended: u64,
    /// Trials of the run: those that have ended, this one, and those that follow. Reruns are added when they are due.
    pub trials: u64,
    /// Mode, load, factors and repeat, such as `sidecar at 1000/s, repeat 2`.
    pub title: String,
    /// Start of the trial, RFC 3339.
    pub started_at: String,
    /// Estimated time from the start of this trial to the end of the run, seconds.
    pub rest_s: f64,
}

/// Further line of `progress.jsonl`: a second of a generator's window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GeneratorSecond {
    /// Name of the generator.
    pub generator: String,
    /// Requests and response times of the second.
    pub second: SeriesPoint,
}

/// Further line of `progress.jsonl`: usage of the components at a moment of the window, at most one per second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ComponentsSecond {
    /// Time since the window opened, seconds.
    pub t_s: f64,
    /// Components that could be read twice.
    pub components: Vec<ComponentSecond>,
}

/// Usage of a component since the reading before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ComponentSecond {
    /// Name of the component, as in `components[]` of the trial.
    pub name: String,
    /// CPU time per time.
    pub cpu_cores: f64,
    /// Memory at the moment, as [`ComponentUsage::memory_bytes`](crate::ComponentUsage::memory_bytes) counts it; absent if
    /// unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}
