//! Finished runs, and a history of them: variation between runs, changes along a history, and verdicts on further runs.
//!
//! [`record`] reduces a run, a load or the result of another generator to a line of a history. [`environment`] says whether two
//! lines may be compared. [`change_points`] and [`bimodal`] judge the course of one figure, by bounds of [`tables`], [`course`] that
//! of all figures. [`prediction`] has the verdict on further runs of one figure, [`compare`] the comparison of all figures, with a
//! history or of two finished runs without one. The method and what else was tried: docs/decisions/0030-history.md.

mod bimodal;
mod change_points;
mod compare;
mod course;
mod environment;
mod percentile;
mod prediction;
mod record;
#[cfg(test)]
mod simulation_tests;
mod tables;

pub use compare::{History, Request, compare_runs, compare_with_history};
pub use course::course;
pub use record::{FinishedRun, Recorded, of_foreign, of_load, of_run};
