//! `meshmeter.control-plane-size/1`: size of the control plane that a mesh needs, computed from runs.

use crate::estimate::Estimate;
use crate::factor::Factors;
use crate::size::{Prices, SizeMachine, SizeRun};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The value of [`ControlPlaneSize::schema`].
pub const CONTROL_PLANE_SIZE_SCHEMA: &str = "meshmeter.control-plane-size/1";

/// Full answer, with everything that it is based on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ControlPlaneSize {
    /// Always [`CONTROL_PLANE_SIZE_SCHEMA`].
    pub schema: String,
    /// The question.
    pub asked: ControlPlaneQuestion,
    /// Confidence level of every interval, 0 to 1. Intervals only cover the runs.
    pub confidence: f64,
    /// Formulas, one line per figure.
    pub formula: Vec<String>,
    /// Machine of all runs; absent if they are from several machines.
    pub machine: Option<SizeMachine>,
    /// Runs that the answer is based on.
    pub runs: Vec<SizeRun>,
    /// Caveats for the whole answer, said first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<ControlPlaneNote>,
    /// One answer per kind of fleet and values of factors that the laws do not contain.
    pub answers: Vec<ControlPlaneAnswer>,
    /// Reasons why there is no answer.
    pub refusals: Vec<ControlPlaneNote>,
    /// Published figures for comparison.
    pub published: Vec<String>,
}

/// The question: a mesh, its changes, and the size of an istiod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ControlPlaneQuestion {
    /// Services of the mesh.
    pub services: u64,
    /// Pods of the mesh.
    pub pods: u64,
    /// Connected proxies.
    pub proxies: u64,
    /// Namespaces, which share services and proxies evenly.
    pub namespaces: u64,
    /// True if sidecars are scoped to their own namespace.
    pub scope: bool,
    /// Pods per second that are added, removed or replaced.
    pub changes_per_s: f64,
    /// Other changes per second, by kind, such as `service-entry`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub other_changes_per_s: BTreeMap<String, f64>,
    /// Kinds of proxies, such as `sidecar`; absent: any kind in the runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// CPU limit of an istiod, cores; absent: CPU does not determine the number of replicas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub istiod_cpu_cores: Option<f64>,
    /// Memory limit of an istiod, bytes; absent: memory does not determine the number of replicas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub istiod_memory_bytes: Option<f64>,
    /// Share of each istiod's capacity kept free, 0 to 1.
    pub headroom: f64,
    /// Prices; absent: no cost is computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
}

/// Answer for one kind of fleet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ControlPlaneAnswer {
    /// Kinds of proxies.
    pub kinds: String,
    /// Values of the factors that the laws do not contain.
    #[serde(skip_serializing_if = "Factors::is_empty")]
    pub factors: Factors,
    /// Configuration per proxy, bytes.
    pub configuration_bytes: Option<Estimate>,
    /// CPU of one istiod that holds the whole mesh under the changes, cores.
    pub cpu_cores: Option<Estimate>,
    /// Memory of one istiod that holds the whole mesh, bytes.
    pub memory_bytes: Option<Estimate>,
    /// CPU time for the first configuration of all proxies, such as after a restart, seconds.
    pub connecting_cpu_s: Option<Estimate>,
    /// Cost of the requested changes, one entry per kind.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<AskedChange>,
    /// Number of istiods of the given size that share the proxies; absent if no size is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub istiods: Option<IstiodCount>,
    /// Cost per month of 730 hours; absent without prices, CPU or memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub monthly_cost: Option<Estimate>,
    /// Caveats: what the runs do not support.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<ControlPlaneNote>,
}

/// Cost of changes of one kind in the given mesh.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AskedChange {
    /// `churn`, or a kind of change, as given.
    pub kind: String,
    /// Kind of change whose measured figures are used.
    pub measured_as: String,
    /// Changes per second.
    pub per_s: f64,
    /// Proxies that receive a change.
    pub affected_proxies: f64,
    /// Responses per change and affected proxy.
    pub pushes: Option<Estimate>,
    /// Bytes per change and affected proxy.
    pub bytes: Option<Estimate>,
}

/// Number of istiods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct IstiodCount {
    /// From the estimates.
    pub estimate: u64,
    /// From the lower ends of their intervals; absent without an interval.
    pub low: Option<u64>,
    /// From the upper ends; absent without an interval.
    pub high: Option<u64>,
    /// `cpu` or `memory`: the resource that requires the most istiods.
    pub binds: String,
}

/// A caveat: something that the runs do not support, or an assumption beyond the measurements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ControlPlaneNote {
    /// Kind of the note.
    pub kind: ControlPlaneNoteKind,
    /// Detail that the note refers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Text of the note.
    #[serde(default)]
    pub text: String,
}

impl ControlPlaneNote {
    /// Creates a note without text.
    #[must_use]
    pub fn new(kind: ControlPlaneNoteKind, detail: Option<String>) -> Self {
        Self { kind, detail, text: String::new() }
    }
}

/// Kind of a note.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ControlPlaneNoteKind {
    /// Refusal: the runs were measured on different machines, kernels or versions of Meshmeter.
    MixedMachines,
    /// Runs that were cut short, or have interrupted trials.
    CutShort,
    /// Runs with noise of the machine accepted: figures are also those of trials that it disturbed.
    NoiseAccepted,
    /// Refusal: no run has a fleet of this kind.
    NotMeasured,
    /// Refusal: no trial is valid.
    NoValidTrial,
    /// A law cannot be fitted, or not for this mesh: the trials do not contain the necessary variation.
    Unresolved,
    /// Refusal: an istiod of the given size cannot hold the constant part of the mesh.
    IstiodTooSmall,
    /// The mesh is outside the measured range.
    Extrapolated,
    /// No repeats, so there are no intervals.
    NoInterval,
    /// Some cell deviates strongly from the law.
    LackOfFit,
    /// Versions of components differ between the runs.
    MixedComponents,
}
