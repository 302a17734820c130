//! Confidence intervals, comparisons and findings: from trials to results.
//!
//! - [`summary`] – how trials become cells.
//! - [`calibration`] – the smallest difference that a machine can resolve.
//! - [`comparison`] – two sets of settings in one run: worse, better or equivalent.
//! - [`history`] – finished runs, and the variation between them.
//! - [`interval`] – confidence intervals.
//! - [`findings`] – conclusions.
//! - [`words`] – figures as text.
//! - [`curve`] – whole distributions.
//! - [`objective`] – the exit status.
//! - [`search`] – the highest rate that meets an objective.
//! - [`precision`] – how exactly a planned run will know a difference.
//! - [`backlog`] – whether requests without an answer grow in number.
//! - [`proportion`] – exact bounds of a share that was counted.
//! - [`lost_cpu`] – what CPU time that others took can have moved.
//! - [`pauses`] – gaps that a spinning thread sees.
//! - [`retakes`] – which trials are rerun.
//! - [`merge`] – results of several generators as one.
//! - [`episodes`] – separate events of slow requests.
//! - [`witnesses`] – real sidecars beside a fleet.
//! - [`copies`] – identical namespaces and replicas, folded.

pub mod backlog;
pub mod calibration;
pub mod comparison;
pub mod control_plane;
pub mod copies;
pub mod curve;
mod disturbance;
pub mod episodes;
mod family;
mod figure_table;
pub mod findings;
mod fleet;
pub mod history;
pub mod lost_cpu;
pub mod merge;
pub mod objective;
pub mod pauses;
pub mod precision;
pub mod proportion;
mod published;
pub mod retakes;
mod scaling;
pub mod search;
pub mod size;
pub mod summary;
mod trials;
mod unanswered_waits;
pub mod witnesses;
pub mod words;

pub use curve::{CurvePoint, censored, merged, percentile_curve};
pub use disturbance::{ACCEPTED, accepting_noise, summarize_accepting_noise};
pub use experiment::objective::SAMPLES_BEYOND_A_PERCENTILE;
pub use merge::{MergeError, merge, merge_drivers};
pub use noise::interval;
pub use objective::{ObjectiveCheck, ObjectiveOutcome, check_result, is_missed, objective_met};
pub use summary::summarize;
pub use trials::{TrialsByCell, is_excluded};
pub use unanswered_waits::UnansweredWaits;
