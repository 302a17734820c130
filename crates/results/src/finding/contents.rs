//! Contents of findings by kind.

use super::headline::Unanswered;
use super::parts::{About, Against, Measured, OfCell, Trials, Usage, Value};
use crate::Mode;
use crate::driver::DriverObjective;
use crate::estimate::Estimate;
use crate::factor::{Conditions, FactorValue, Factors, OwnedCellKey};
use crate::finding_verdict::FindingVerdict;
use crate::load_point::LoadPoint;
use crate::metric::Metric;
use serde::{Deserialize, Serialize};

/// Effect of a factor on a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// The mode.
    pub mode: Mode,
    /// Values of the other factors.
    #[serde(default, skip_serializing_if = "Factors::is_empty")]
    pub factors: Factors,
    /// The load; absent for a figure before the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadPoint>,
    /// The factor; of the size of the mesh before the load, the proxy.
    pub subject: String,
    /// The effect.
    #[serde(flatten)]
    pub measured: Measured,
    /// Verdict on it.
    pub verdict: FindingVerdict,
    /// Number of repeats that it rests on.
    pub n: usize,
}

impl Effect {
    /// Factors and load; absent for a figure before the load.
    #[must_use]
    pub fn conditions(&self) -> Option<Conditions<'_>> {
        Some(Conditions { factors: &self.factors, load: self.load.as_ref()? })
    }
}

/// Value (in the factors of `place`) of a factor compared with the first one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// The cell with the value.
    #[serde(flatten)]
    pub place: OwnedCellKey,
    /// The factor.
    pub subject: String,
    /// First value of the factor.
    pub from: FactorValue,
    /// True if both values ran the same programs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub same_programs: bool,
    /// The difference: times in their unit, everything else as a fraction.
    #[serde(flatten)]
    pub measured: Measured,
    /// Verdict on it.
    pub verdict: FindingVerdict,
    /// Number of repeats that it rests on.
    pub n: usize,
}

/// All factors at their last values (those of `place`) compared with all at their first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Corner {
    /// The cell with the last values.
    #[serde(flatten)]
    pub place: OwnedCellKey,
    /// First value of each factor.
    pub from: Factors,
    /// The difference: times in their unit, everything else as a fraction.
    #[serde(flatten)]
    pub measured: Measured,
    /// Verdict on it.
    pub verdict: FindingVerdict,
    /// Number of repeats that it rests on.
    pub n: usize,
}

/// Place of a mode in the order of the modes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Standing {
    /// A mode against a better one.
    Against(Step),
    /// The best mode, or one that is not shown to differ from a better one, with the figure that it is ranked by.
    Alone(OfCell<Option<Measured>>),
}

impl Step {
    /// True if the mode is shown to be worse than the other.
    #[must_use]
    pub fn is_shown_worse(&self) -> bool {
        let is_rate = self.figure == Some(Metric::RateCompletedChange);
        let is_worse = |by: &Estimate| if is_rate { by.estimate < 0.0 } else { by.estimate > 0.0 };
        self.verdict == FindingVerdict::Shown && self.difference.as_ref().is_some_and(is_worse)
    }
}

impl Standing {
    /// Cell of the mode.
    #[must_use]
    pub fn place(&self) -> &OwnedCellKey {
        match self {
            Self::Against(step) => &step.place,
            Self::Alone(alone) => &alone.place,
        }
    }
}

/// A mode against a better one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The cell.
    #[serde(flatten)]
    pub place: OwnedCellKey,
    /// Trials that the difference rests on; absent if the mode was not measured here.
    #[serde(flatten)]
    pub trials: Option<Trials>,
    /// Figure of the difference; absent if the mode was not measured here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figure: Option<Metric>,
    /// Value of the mode itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// The better mode.
    pub against: Mode,
    /// The difference; absent if it is unknown.
    #[serde(default, rename = "estimate", skip_serializing_if = "Option::is_none")]
    pub difference: Option<Estimate>,
    /// Verdict on it.
    pub verdict: FindingVerdict,
}

/// Requests that a gateway carries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GatewayCapacity {
    /// The gateway.
    pub subject: String,
    /// Throughput of the gateway.
    #[serde(flatten)]
    pub measured: Measured,
    /// Requests per second and core of CPU that it used.
    pub per_core: Estimate,
    /// CPU limit of a replica, cores; absent without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_limit_cores: Option<f64>,
}

/// A load under which all CPUs of the machine were busy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FullMachine {
    /// Factor values.
    #[serde(default, skip_serializing_if = "Factors::is_empty")]
    pub factors: Factors,
    /// The load.
    pub load: LoadPoint,
    /// Busy CPU.
    #[serde(flatten)]
    pub busy: Value,
    /// Number of trials.
    pub n: usize,
}

/// User of CPU per request.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CpuPayer {
    /// All proxies.
    Proxies,
    /// The control plane.
    ControlPlane,
}

/// A percentile of a mode, and its difference to the baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Added {
    /// The percentile in the mode.
    #[serde(flatten)]
    pub value: Value,
    /// Difference to the baseline.
    #[serde(flatten)]
    pub added: Against,
    /// Share of the requests that pauses of the machine affect, if they can cause the percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
}

/// CPU or memory of a proxy, or of its copies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProxyUsage {
    /// The cell.
    #[serde(flatten)]
    pub place: OwnedCellKey,
    /// Trials that the estimate rests on; absent for copies.
    #[serde(flatten)]
    pub trials: Option<Trials>,
    /// The proxy; of copies, the name without its namespace.
    pub subject: String,
    /// Number of copies; absent for a single proxy.
    #[serde(default, rename = "candidates", skip_serializing_if = "Option::is_none")]
    pub copies: Option<usize>,
    /// The amount.
    #[serde(flatten)]
    pub measured: Measured,
}

impl From<Usage> for ProxyUsage {
    fn from(usage: Usage) -> Self {
        let OfCell { place, trials, content: About { subject, figure } } = usage;
        Self { place, trials: Some(trials), subject, copies: None, measured: figure }
    }
}

/// First slope of a law of a control plane.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LawCost {
    /// The law.
    #[serde(rename = "subject")]
    pub law: Law,
    /// Unit of the slope, such as `cores per bytes/s`.
    pub figure: String,
    /// The slope.
    pub value: f64,
    /// The slope with its interval.
    pub estimate: Estimate,
    /// Verdict on it: shown only if the law fits.
    pub verdict: FindingVerdict,
    /// Number of repeats that it rests on.
    pub n: usize,
}

/// Law of the cost of a control plane.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Law {
    /// CPU for changes.
    Changing,
    /// Memory.
    Memory,
    /// Size of a proxy's configuration.
    Configuration,
    /// CPU of first configurations.
    Connecting,
}

/// A figure of a fleet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Convergence {
    /// Number of proxies.
    #[serde(rename = "candidates")]
    pub proxies: u64,
    /// Event after which proxies are complete again; absent for changes of the mesh.
    #[serde(default, rename = "subject", skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// The figure.
    #[serde(flatten)]
    pub timed: Timed,
}

/// A figure of a fleet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Timed {
    /// A figure with its interval.
    Measured(Measured),
    /// A percentile that falls among proxies never reached.
    Never(Unanswered),
}

/// Resources that pods reserve, and used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reservation {
    /// Pods that reserve.
    #[serde(rename = "subject")]
    pub pods: Reserving,
    /// Reserved amount.
    #[serde(flatten)]
    pub reserved: Value,
    /// Used amount; absent if nothing is reserved, or the usage is unknown.
    #[serde(default, rename = "estimate", skip_serializing_if = "Option::is_none")]
    pub used: Option<Estimate>,
}

/// Pods that reserve resources.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reserving {
    /// The application.
    Application,
    /// The mesh.
    Mesh,
}

/// The greatest of several candidates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Greatest {
    /// The candidate: a driver, a call (`from → to`) or a service. Of copies in several namespaces, the name without its
    /// namespace.
    pub subject: String,
    /// Number of candidates.
    pub candidates: usize,
    /// Figure of the candidate.
    #[serde(flatten)]
    pub value: Value,
    /// Difference to its reference.
    #[serde(rename = "estimate")]
    pub difference: Estimate,
    /// Verdict on it.
    pub verdict: FindingVerdict,
}

/// The candidate whose figure rose most from the baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GreatestAdded {
    /// The candidate.
    #[serde(flatten)]
    pub greatest: Greatest,
    /// The baseline.
    pub against: Mode,
}

/// Memory or configuration of proxies before the load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Footprint {
    /// Memory of a proxy, or the median of its copies.
    Memory {
        /// The memory.
        #[serde(flatten)]
        usage: Usage,
        /// Number of copies; absent for a single proxy.
        #[serde(default, rename = "candidates", skip_serializing_if = "Option::is_none")]
        copies: Option<usize>,
        /// Shown if this is most of the memory under load.
        verdict: FindingVerdict,
    },
    /// The largest configuration of any proxy.
    Configuration(Usage),
}

impl Footprint {
    /// The proxy with its memory or configuration.
    #[must_use]
    pub fn usage(&self) -> &Usage {
        match self {
            Self::Memory { usage, .. } | Self::Configuration(usage) => usage,
        }
    }
}

/// Proxies that rejected updates of their configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RejectedUpdates {
    /// The mode.
    pub mode: Mode,
    /// The first of these proxies.
    pub subject: String,
    /// Number of these proxies.
    #[serde(rename = "n")]
    pub rejecting: usize,
    /// Number of proxies.
    #[serde(rename = "of")]
    pub proxies: usize,
}

/// Objective of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObjectiveOutcome {
    /// The outcome.
    #[serde(rename = "subject")]
    pub outcome: DriverObjective,
    /// Not shown if the outcome is.
    pub verdict: FindingVerdict,
    /// First decisive figure; absent if the objective is met.
    #[serde(flatten)]
    pub decisive: Option<Decisive>,
}

/// Figure that decides an objective.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decisive {
    /// The figure.
    pub figure: Metric,
    /// Its value; absent if it falls among requests without a response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Response time with its interval; absent for errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
}

/// Drivers with one outcome of the objective.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DriversObjective {
    /// The outcome.
    #[serde(rename = "subject")]
    pub outcome: DriverObjective,
    /// Qualified name of the slowest of them.
    pub driver: String,
    /// Number of drivers of the cell.
    pub candidates: usize,
    /// Not shown if the outcome is.
    pub verdict: FindingVerdict,
    /// Figure of the slowest.
    #[serde(flatten)]
    pub decisive: Decisive,
}

/// Path verification of a mode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathCheck {
    /// The mode.
    pub mode: Mode,
    /// Number of proxies on the path.
    #[serde(rename = "candidates")]
    pub proxies: usize,
    /// Requests or connections, as the proxies count them.
    pub figure: Metric,
    /// Shown if every trial proved it.
    pub verdict: FindingVerdict,
    /// Trials that proved it.
    #[serde(flatten)]
    pub trials: Trials,
}

/// A mode that could not run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnavailableModeReason {
    /// The mode.
    pub mode: Mode,
    /// Factor values with which it could not run.
    #[serde(default, skip_serializing_if = "Factors::is_empty")]
    pub factors: Factors,
    /// The reason.
    #[serde(rename = "subject")]
    pub reason: String,
}

/// Trials excluded from all estimates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExcludedTrials {
    /// Kind of their first reason.
    #[serde(rename = "subject")]
    pub reason: String,
}

/// Late generator in more trials of one mode than chance explains.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LateGenerator {
    /// The mode.
    pub mode: Mode,
    /// Number of such trials of all modes.
    #[serde(rename = "candidates")]
    pub of_all_modes: usize,
    /// Probability of that by chance.
    #[serde(rename = "value")]
    pub p_value: f64,
    /// Such trials, of the mode's.
    #[serde(flatten)]
    pub trials: Trials,
}

/// Events beyond a percentile.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// Episodes of slow requests.
    Episodes,
    /// Requests.
    Requests,
}

/// Percentile of a cell that pauses of the machine can cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MachinePauses {
    /// The percentile.
    #[serde(flatten)]
    pub measured: Measured,
    /// Share of the requests that pauses affect: at least as large as the share beyond the percentile.
    pub share: f64,
}

/// Agreement with a published figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PublishedCheck {
    /// The published figure.
    pub subject: String,
    /// Ratio of this run's figure to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// This run's figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// Number of trials that it rests on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<usize>,
    /// Shown: agrees; not shown: differs.
    pub verdict: FindingVerdict,
}
