//! `meshmeter.calibration/1`: the resolution of this machine, from the same mode measured against itself and
//! from known effects.

use crate::Mode;
use crate::component::Role;
use crate::estimate::Estimate;
use crate::load::Pacing;
use serde::{Deserialize, Serialize};

/// The value of [`Calibration::schema`].
pub const CALIBRATION_SCHEMA: &str = "meshmeter.calibration/1";

/// Result of `meshmeter doctor --calibrate`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Always [`CALIBRATION_SCHEMA`].
    pub schema: String,
    /// End of the calibration, RFC 3339.
    pub made_at: String,
    /// The calibrated machine.
    pub machine: CalibratedMachine,
    /// Requests/s of every trial.
    pub rate: f64,
    /// Connections of every trial.
    pub connections: usize,
    /// Measured window of every trial, seconds.
    pub window_s: f64,
    /// Pacing of every trial.
    pub pacing: Pacing,
    /// Repeats planned. [`ModeCalibration::repeats`] is lower if the calibration was cut short.
    pub repeats_planned: usize,
    /// The modes measured.
    pub modes: Vec<ModeCalibration>,
}

impl Calibration {
    /// True if it applies to a run of these modes: proxies vary more than a service without them.
    #[must_use]
    pub fn covers(&self, modes: &[Mode]) -> bool {
        let has_proxies = |mode: Mode| mode != Mode::None;
        let measured = self.modes.iter().any(|mode| mode.repeats > 0 && has_proxies(mode.mode));
        measured || !modes.iter().any(|mode| has_proxies(*mode))
    }
}

/// A machine, as identified by calibrations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CalibratedMachine {
    /// CPU model.
    pub cpu_model: String,
    /// CPUs available to the process.
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
    /// The mode compared with itself, each side in its own deployment.
    pub same: Vec<CalibratedDifference>,
    /// Known effects: times of slower servers, compared within a trial; CPU of services and proxies that compute.
    pub known: Vec<CalibratedDifference>,
    /// Standard deviations of the figures, used to extrapolate to other numbers of repeats.
    pub spreads: Vec<CalibratedSpread>,
    /// Smallest resolvable difference between two modes, for runs of several sizes.
    pub resolution: Vec<Resolution>,
}

/// A measured difference with known true value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CalibratedDifference {
    /// The figure.
    pub figure: CalibratedFigure,
    /// Whose CPU; absent for times, and for the CPU of service and proxies together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// True difference; 0 for a mode against itself.
    pub truth: f64,
    /// The measured difference. Absent if too few trials have the figure.
    #[serde(default)]
    pub estimate: Option<Estimate>,
}

/// A calibrated figure.
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

/// Variation of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CalibratedSpread {
    /// The figure.
    pub figure: CalibratedFigure,
    /// Mean over the repeats.
    pub mean: f64,
    /// Standard deviation of the difference between two deployments of a repeat.
    pub deviation: f64,
    /// The part of the deviation that a longer window does not reduce: all of it, except for the median.
    pub between_deployments: f64,
}

/// The smallest difference of two modes under one load whose interval excludes zero in four of five runs
/// (power 0.8).
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
