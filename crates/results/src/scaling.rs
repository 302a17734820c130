//! Throughput as a function of a CPU limit or a number of workers or replicas: a law with three parameters.

use crate::Mode;
use crate::estimate::Estimate;
use crate::factor::Factors;
use crate::load_point::LoadPoint;
use serde::{Deserialize, Serialize};

/// The value of [`ScalingLaw::law`]: the Universal Scalability Law.
pub const UNIVERSAL_SCALABILITY_LAW: &str = "usl";

/// Scaling laws of a run: the main one, and those of its other modes, factors and loads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scaling {
    /// Law of the first mode under the heaviest load.
    #[serde(flatten)]
    pub main: ScalingLaw,
    /// All other laws.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<ScalingLaw>,
}

impl Scaling {
    /// Every law, the main one first.
    pub fn laws(&self) -> impl Iterator<Item = &ScalingLaw> {
        std::iter::once(&self.main).chain(&self.others)
    }
}

/// Throughput as a function of one factor by the Universal Scalability Law: `X(N) = λ·N / (1 + σ·(N − 1) +
/// κ·N·(N − 1))`. N is the factor's value in its own unit (cores, workers, replicas).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScalingLaw {
    /// Always [`UNIVERSAL_SCALABILITY_LAW`].
    pub law: String,
    /// Dotted key of the factor, such as `gateway.cpu`.
    pub factor: String,
    /// Fitted figure: `throughput`, responses per second.
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
    /// Measured range of the factor; outside it, the law is extrapolated.
    pub measured: MeasuredRange,
    /// Factor value above which throughput falls; absent if the run shows no such value.
    pub peak: Option<Estimate>,
    /// Test of whether the law fits the measured values; absent if there are too few values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lack_of_fit: Option<LackOfFit>,
    /// Standard deviation of trials around the law within a repeat, as a fraction; absent if there are too
    /// few trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deviation: Option<f64>,
}

/// Parameters of the Universal Scalability Law. The interval of a parameter at zero starts at zero.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScalingParameters {
    /// λ: throughput of one core, worker or replica, responses per second. Extrapolated if 1 is outside the
    /// measured range.
    pub lambda: Estimate,
    /// σ: contention, the serial share of the work, 0 to 1.
    pub sigma: Estimate,
    /// κ: crosstalk, the cost of keeping shared data coherent.
    pub kappa: Estimate,
}

/// Throughput at one value of the factor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScalingResidual {
    /// Value of the factor.
    pub at: f64,
    /// Geometric mean of the trials, responses per second.
    pub measured: f64,
    /// Throughput given by the law, responses per second.
    pub fitted: f64,
    /// Number of trials.
    pub n: usize,
    /// True if all CPUs of the machine were busy: its CPU limited the throughput.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub machine_full: bool,
}

/// Measured range of a factor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasuredRange {
    /// Minimum.
    pub from: f64,
    /// Maximum.
    pub to: f64,
}

impl MeasuredRange {
    /// True if a value is within the range.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        (self.from..=self.to).contains(&value)
    }
}

/// Test of the law against the means of the values (F test of lack of fit).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LackOfFit {
    /// Probability of deviations at least this large if the law holds.
    pub chance: f64,
    /// True if the law does not fit the measured values (5 % level).
    pub shown: bool,
}

impl ScalingLaw {
    /// Throughput given by the law at a factor value, responses per second.
    #[must_use]
    pub fn throughput(&self, at: f64) -> f64 {
        let ScalingParameters { lambda, sigma, kappa } = self.parameters;
        lambda.estimate * at / (1.0 + sigma.estimate * (at - 1.0) + kappa.estimate * at * (at - 1.0))
    }
}
