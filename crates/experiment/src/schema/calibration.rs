//! Calibration: what this machine can resolve, from the same mode measured against itself and from known effects.

use super::component::Role;
use super::estimate::Estimate;
use super::load::Pacing;
use crate::mode::Mode;
use serde::{Deserialize, Serialize};

/// The value of [`Calibration::schema`].
pub const CALIBRATION_SCHEMA: &str = "meshmeter.calibration/1";

/// `meshmeter doctor --calibrate`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Always [`CALIBRATION_SCHEMA`].
    pub schema: String,
    /// When it ended, RFC 3339.
    pub made_at: String,
    /// The machine that it speaks of.
    pub machine: CalibratedMachine,
    /// Requests/s of every trial.
    pub rate: f64,
    /// Connections of every trial.
    pub connections: usize,
    /// Measured window of every trial, seconds.
    pub window_s: f64,
    /// Pacing of every trial.
    pub pacing: Pacing,
    /// Repeats planned. [`ModeCalibration::repeats`] is fewer where the calibration was cut short.
    pub repeats_planned: usize,
    /// The modes measured.
    pub modes: Vec<ModeCalibration>,
}

/// A machine, as calibrations are filed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CalibratedMachine {
    /// CPU model.
    pub cpu_model: String,
    /// CPUs that may be used.
    pub cpus: usize,
    /// Kernel release.
    pub kernel: String,
}

/// One mode of a calibration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModeCalibration {
    /// The mode.
    pub mode: Mode,
    /// Repeats that were measured completely.
    pub repeats: usize,
    /// The mode against itself, each in a deployment of its own.
    pub same: Vec<CalibratedDifference>,
    /// Known effects against the same without them: times of slower servers within a trial, CPU of service and proxies.
    pub known: Vec<CalibratedDifference>,
    /// Standard deviations of the figures, with which other numbers of repeats are extrapolated.
    pub spreads: Vec<CalibratedSpread>,
    /// The smallest difference between two modes that runs of several sizes resolve.
    pub resolution: Vec<Resolution>,
}

/// A difference whose truth is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CalibratedDifference {
    /// The figure.
    pub figure: CalibratedFigure,
    /// Whose CPU; absent for times, and for the CPU of service and proxies together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// The true difference; 0 of a mode against itself.
    pub truth: f64,
    /// The measured difference. Absent if too few trials have the figure.
    #[serde(default)]
    pub estimate: Option<Estimate>,
}

/// A figure that is calibrated.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CalibratedFigure {
    /// Median response time, microseconds.
    P50Us,
    /// 99th percentile of the response time, microseconds.
    P99Us,
    /// CPU of the service and all proxies, cores.
    CpuCores,
}

/// How much a figure varies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CalibratedSpread {
    /// The figure.
    pub figure: CalibratedFigure,
    /// Mean over the repeats.
    pub mean: f64,
    /// Standard deviation of the difference between two deployments of a repeat.
    pub deviation: f64,
    /// The part of it that a longer window does not reduce; all of it but for the median.
    pub between_deployments: f64,
}

/// The smallest difference that a run shows in four of five cases.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resolution {
    /// The figure.
    pub figure: CalibratedFigure,
    /// Repeats of the run.
    pub repeats: usize,
    /// Window of its trials, seconds.
    pub window_s: f64,
    /// The difference.
    pub difference: f64,
}
