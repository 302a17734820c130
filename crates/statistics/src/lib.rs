//! Histograms, intervals, comparison and findings: from trials to answers.
//!
//! Read [`summary`] for how trials become cells, [`calibration`] for what a machine resolves, [`interval`] for the
//! intervals, [`findings`] for what is concluded, [`words`] for figures as text, [`curve`] for whole distributions,
//! [`objective`] for the exit status, [`search`] for the highest rate that holds an objective, [`pauses`] for gaps that a
//! spinning thread sees, [`retakes`] for which trials are taken again, [`merge`] for the results of several generators,
//! [`episodes`] for separate events of slow requests, [`witnesses`] for real sidecars beside a fleet, [`copies`] for folding what namespaces have alike.

pub mod calibration;
pub mod control_plane;
pub mod copies;
pub mod curve;
pub mod episodes;
mod family;
mod figure_table;
pub mod findings;
mod fleet;
pub mod histogram;
pub mod interval;
pub mod merge;
mod noise;
pub mod objective;
pub mod pauses;
mod published;
pub mod retakes;
mod scaling;
pub mod search;
pub mod size;
mod student;
pub mod summary;
mod trials;
pub mod witnesses;
pub mod words;

pub use curve::{CurvePoint, Distribution, censored, merged, merged_convergence, percentile_curve};
pub use experiment::objective::SAMPLES_BEYOND_A_PERCENTILE;
pub use histogram::{
    DecodeError, EncodedNanoseconds, LatencyHistogram, NanosecondEncoder, PercentileStep, RecordedValue,
};
pub use merge::{MergeError, merge, merge_drivers};
pub use objective::{ObjectiveCheck, ObjectiveOutcome, is_missed, judge_result, objective_met};
pub use summary::summarize;
pub use trials::TrialsByCell;
