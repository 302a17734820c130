//! Findings of a run as data. The crate `report` turns them into sentences.
//!
//! In result files a finding is one object: its kind, the fields of its content, and its sentence. Read [`Finding`] for
//! the kinds, [`mod@parts`] for what several of them have.

mod contents;
mod headline;
mod parts;

pub use contents::{
    Added, Convergence, Corner, CpuPayer, Decisive, Difference, DriversObjective, Effect, Event,
    ExcludedTrials, Footprint, FullMachine, GatewayCapacity, Greatest, GreatestAdded, LateGenerator, Law,
    LawCost, MachinePauses, ObjectiveOutcome, PathCheck, ProxyUsage, PublishedCheck, RejectedUpdates,
    Reservation, Reserving, Standing, Step, Timed, UnavailableModeReason,
};
pub use headline::{Headline, Loss, Nothing, Unanswered, ValuesHeadline};
pub use parts::{About, Against, Empty, Judged, Measured, OfCell, Trials, Usage, Value};

use serde::{Deserialize, Serialize};

/// Declares the kinds of findings with their contents.
macro_rules! findings {
    ($($(#[$doc:meta])+ $kind:ident($content:ty),)+) => {
        /// A finding.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind", rename_all = "kebab-case")]
        pub enum Finding {
            $($(#[$doc])+ $kind($content),)+
            /// A finding of a later version: only its sentence is known.
            #[default]
            #[serde(other)]
            Text,
        }

        /// Kind of a finding.
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
        pub enum FindingKind {
            $($(#[$doc])+ $kind,)+
            /// A finding of a later version.
            Text,
        }

        impl Finding {
            /// Kind of the finding.
            #[must_use]
            pub fn kind(&self) -> FindingKind {
                match self {
                    $(Self::$kind(_) => FindingKind::$kind,)+
                    Self::Text => FindingKind::Text,
                }
            }
        }
    };
}

findings! {
    /// Main answer of the run.
    Headline(Headline),
    /// Memory, propagation and requests as functions of the mesh size.
    MeshSize(Effect),
    /// Change from the minimum to the maximum of a factor.
    FactorEffect(Effect),
    /// Throughput as a function of a factor by a scaling law: its throughput at 1; shown unless the law has a lack of fit.
    Scaling(Effect),
    /// Value of a factor whose values are words, compared with the first one.
    FactorDifference(Difference),
    /// All factors at their last values, compared with all at their first.
    FactorCorner(Corner),
    /// Ranking of the modes: first the best, then each mode against the nearest better one that it differs
    /// from; then the same pairs under the other loads.
    Order(Standing),
    /// All CPUs of the machine were busy: its CPU limits the throughput.
    FullMachine(FullMachine),
    /// CPU of all proxies, and of the control plane, per request.
    CpuPerRequest(OfCell<About<CpuPayer, Measured>>),
    /// Latency that a mode adds to its baseline.
    AddedLatency(OfCell<Added>),
    /// CPU and memory per proxy.
    ProxyUsage(ProxyUsage),
    /// CPU of a proxy at the lowest and at the highest rate.
    CpuScaling(OfCell<Judged<Value>>),
    /// CPU and memory of the control plane.
    ControlPlane(Usage),
    /// Cost of a control plane by a law.
    ControlPlaneCost(LawCost),
    /// Convergence of a fleet, and CPU and memory of its control plane.
    Convergence(OfCell<Convergence>),
    /// Proxies of a fleet that missed a configuration or change: `n` of `of`.
    NotConverged(OfCell<Empty>),
    /// Reserved and used resources.
    Reservation(OfCell<Reservation>),
    /// Driver with the longest response times, compared with the median over all drivers.
    SlowestDriver(OfCell<Greatest>),
    /// Call whose median rose most from the baseline.
    GreatestAddedTime(OfCell<GreatestAdded>),
    /// Service whose CPU, including the proxies in its pods, rose most from the baseline.
    GreatestAddedCpu(OfCell<GreatestAdded>),
    /// Memory and configuration of the proxies before the load.
    Footprint(Footprint),
    /// Proxies that rejected updates of their configuration.
    RejectedUpdates(RejectedUpdates),
    /// Service time that hides queueing (coordinated omission).
    HiddenWaiting(OfCell<Value>),
    /// Trials of a cell that did not keep up with the offered rate, and the rate that they completed if any has a result.
    Saturation(OfCell<Judged<Option<Value>>>),
    /// Objective of a cell.
    Objective(OfCell<ObjectiveOutcome>),
    /// Drivers, in a cell with several, that did not meet the objective: `n` of `of`.
    DriverObjective(OfCell<DriversObjective>),
    /// Path verification of a mode.
    Path(PathCheck),
    /// A mode that could not run.
    UnavailableMode(UnavailableModeReason),
    /// The run was cut short: trials recorded, of those planned.
    CutShort(Trials),
    /// Trials excluded from all estimates, by reason and cell.
    ExcludedTrials(OfCell<ExcludedTrials>),
    /// Rerun trials, by cell.
    Reruns(OfCell<Empty>),
    /// Rerun limit reached; disturbed trials remain. Reruns, of those allowed.
    NoisyMachine(Trials),
    /// Figure of a mode that noise of the machine keeps out of the estimates: the median over its disturbed trials.
    Disturbed(OfCell<Value>),
    /// The generator was late more often with one mode than chance explains.
    LateGenerator(LateGenerator),
    /// Percentile with fewer than ten events beyond it.
    FewSamples(About<Event, Value>),
    /// Only one valid trial.
    SingleTrial(OfCell<Empty>),
    /// Percentile of a cell that pauses of the machine can cause.
    MachinePauses(OfCell<MachinePauses>),
    /// Agreement with a published figure.
    Published(PublishedCheck),
}

/// A finding with its text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StatedFinding {
    /// The finding.
    #[serde(flatten)]
    pub finding: Finding,
    /// Line that states it. Findings stated together in one line have the same text, and the same detail.
    #[serde(default)]
    pub text: String,
    /// Details that the line leaves out; empty if it has everything.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

impl From<Finding> for StatedFinding {
    fn from(finding: Finding) -> Self {
        Self { finding, ..Self::default() }
    }
}

#[cfg(test)]
mod tests;
