//! Throughput against a CPU limit, a number of workers or of replicas, as a law with three parameters.

use super::estimate::Estimate;
use super::factor::Factors;
use super::load_point::LoadPoint;
use crate::mode::Mode;
use serde::{Deserialize, Serialize};

/// The value of [`ScalingLaw::law`]: the Universal Scalability Law.
pub const UNIVERSAL_SCALABILITY_LAW: &str = "usl";

/// The scaling laws of a run: the main one, and those of its other modes, factors and loads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scaling {
    /// Of the first mode under the heaviest load.
    #[serde(flatten)]
    pub main: ScalingLaw,
    /// All others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<ScalingLaw>,
}

impl Scaling {
    /// Every law, the main one first.
    pub fn laws(&self) -> impl Iterator<Item = &ScalingLaw> {
        std::iter::once(&self.main).chain(&self.others)
    }
}

/// Throughput against one factor by the Universal Scalability Law:
/// `X(N) = λ·N / (1 + σ·(N − 1) + κ·N·(N − 1))`, N being the factor's value in its own unit (cores, workers, replicas).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScalingLaw {
    /// [`UNIVERSAL_SCALABILITY_LAW`].
    pub law: String,
    /// Dotted key of the factor, such as `gateway.cpu`.
    pub factor: String,
    /// What is fitted: `throughput`, responses per second.
    pub figure: String,
    /// The mode.
    pub mode: Mode,
    /// Values of the other factors; empty without any.
    #[serde(default, skip_serializing_if = "Factors::is_empty")]
    pub factors: Factors,
    /// The load: a closed loop, or the highest rate of an open loop whose highest rates saturate.
    pub load: LoadPoint,
    /// Parameters with their intervals.
    pub parameters: ScalingParameters,
    /// Measured and fitted throughput at each value of the factor, ascending.
    pub residuals: Vec<ScalingResidual>,
    /// The values between which the law is measured; elsewhere it is extrapolated.
    pub measured: MeasuredRange,
    /// The value of the factor beyond which throughput falls; absent where the run shows no such value.
    pub peak: Option<Estimate>,
    /// Whether the law describes the measured values; absent where they are too few to tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lack_of_fit: Option<LackOfFit>,
    /// Standard deviation of trials about the law within a repeat, as a fraction; absent where trials are too few.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deviation: Option<f64>,
}

/// Parameters of the Universal Scalability Law. One at zero has an interval that begins there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScalingParameters {
    /// λ: throughput of one core, worker or replica, responses per second. Extrapolated where 1 is outside the measured range.
    pub lambda: Estimate,
    /// σ: contention, the share of work that is serial, 0 to 1.
    pub sigma: Estimate,
    /// κ: crosstalk, the cost of keeping shared data coherent.
    pub kappa: Estimate,
}

/// Throughput at one value of the factor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScalingResidual {
    /// The factor's value.
    pub at: f64,
    /// Geometric mean of the trials, responses per second.
    pub measured: f64,
    /// By the law.
    pub fitted: f64,
    /// Number of trials.
    pub n: usize,
    /// All CPUs of the machine were busy: throughput was that of everything on it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub machine_full: bool,
}

/// The least and the greatest measured value of a factor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasuredRange {
    /// Least.
    pub from: f64,
    /// Greatest.
    pub to: f64,
}

impl MeasuredRange {
    /// Whether a value lies between the measured ones.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        (self.from..=self.to).contains(&value)
    }
}

/// Test of the law against the means of the values (F test of lack of fit).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LackOfFit {
    /// How likely deviations as great are where the law holds.
    pub chance: f64,
    /// The law does not describe the measured values (5 %).
    pub shown: bool,
}

impl ScalingLaw {
    /// Throughput by the law at a value of the factor, responses per second.
    #[must_use]
    pub fn throughput(&self, at: f64) -> f64 {
        let ScalingParameters { lambda, sigma, kappa } = self.parameters;
        lambda.estimate * at / (1.0 + sigma.estimate * (at - 1.0) + kappa.estimate * at * (at - 1.0))
    }
}
