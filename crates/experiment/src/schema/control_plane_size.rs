//! `meshmeter.control-plane-size/1`: what a control plane takes for a mesh, by what runs measured.

use super::estimate::Estimate;
use super::factor::Factors;
use super::size::{Prices, SizeMachine, SizeRun};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The value of [`ControlPlaneSize::schema`].
pub const CONTROL_PLANE_SIZE_SCHEMA: &str = "meshmeter.control-plane-size/1";

/// The whole answer, with everything that it rests on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ControlPlaneSize {
    /// Always [`CONTROL_PLANE_SIZE_SCHEMA`].
    pub schema: String,
    /// What was asked.
    pub asked: ControlPlaneQuestion,
    /// Level of every interval, 0 to 1. An interval covers the runs alone.
    pub confidence: f64,
    /// The formula, a line per figure.
    pub formula: Vec<String>,
    /// The machine of all runs; absent where they are of several.
    pub machine: Option<SizeMachine>,
    /// The runs.
    pub runs: Vec<SizeRun>,
    /// One per kind of fleet and values of the factors that the laws do not contain.
    pub answers: Vec<ControlPlaneAnswer>,
    /// Reasons for which there is no answer.
    pub refusals: Vec<ControlPlaneNote>,
    /// Figures of others to set beside it.
    pub published: Vec<String>,
}

/// What was asked: a mesh, its changes, and the size of an istiod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ControlPlaneQuestion {
    /// Services of the mesh.
    pub services: u64,
    /// Pods of the mesh.
    pub pods: u64,
    /// Proxies that are connected.
    pub proxies: u64,
    /// Namespaces that share services and proxies evenly.
    pub namespaces: u64,
    /// Sidecars are told of their own namespace alone.
    pub scope: bool,
    /// Pods per second that come, go or are replaced.
    pub changes_per_s: f64,
    /// Other changes per second, by kind, such as `service-entry`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub other_changes_per_s: BTreeMap<String, f64>,
    /// Kinds of proxies, such as `sidecar`; absent: whatever the runs have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// CPU limit of an istiod, cores; absent: replicas are not counted by CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub istiod_cpu_cores: Option<f64>,
    /// Memory limit of an istiod, bytes; absent: replicas are not counted by memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub istiod_memory_bytes: Option<f64>,
    /// Share of each istiod that stays free, 0 to 1.
    pub headroom: f64,
    /// Prices; absent: no cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
}

/// What one kind of fleet takes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ControlPlaneAnswer {
    /// Kinds of proxies.
    pub kinds: String,
    /// Values of the factors that the laws do not contain.
    #[serde(skip_serializing_if = "Factors::is_empty")]
    pub factors: Factors,
    /// Configuration of a proxy, bytes.
    pub configuration_bytes: Option<Estimate>,
    /// CPU of one istiod that holds the whole mesh under the changes, cores.
    pub cpu_cores: Option<Estimate>,
    /// Memory of one istiod that holds the whole mesh, bytes.
    pub memory_bytes: Option<Estimate>,
    /// CPU time for the first configuration of all proxies, such as after a restart, seconds.
    pub connecting_cpu_s: Option<Estimate>,
    /// What the asked changes make istiod send, an entry per kind.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<AskedChange>,
    /// istiods of the asked size that share the proxies; absent if no size is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub istiods: Option<IstiodCount>,
    /// Cost per month of 730 hours; absent without prices, CPU or memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub monthly_cost: Option<Estimate>,
    /// What the runs do not support.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<ControlPlaneNote>,
}

/// Changes of one kind in the asked mesh.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AskedChange {
    /// As asked: `churn`, or a kind of change.
    pub kind: String,
    /// The kind of change whose measured figures stand for it.
    pub measured_as: String,
    /// Changes per second.
    pub per_s: f64,
    /// Proxies that a change is sent to.
    pub affected_proxies: f64,
    /// Responses per change and affected proxy.
    pub pushes: Option<Estimate>,
    /// Bytes per change and affected proxy.
    pub bytes: Option<Estimate>,
}

/// A number of istiods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct IstiodCount {
    /// By the estimates.
    pub estimate: u64,
    /// By the ends of their intervals; absent without an interval.
    pub low: Option<u64>,
    /// See `low`.
    pub high: Option<u64>,
    /// `cpu` or `memory`: what asks for most.
    pub binds: String,
}

/// Something that the runs do not support, or that an answer rests on beside what was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ControlPlaneNote {
    /// What it is about.
    pub kind: ControlPlaneNoteKind,
    /// What it names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// In words.
    #[serde(default)]
    pub text: String,
}

impl ControlPlaneNote {
    /// Without words.
    #[must_use]
    pub fn new(kind: ControlPlaneNoteKind, detail: Option<String>) -> Self {
        Self { kind, detail, text: String::new() }
    }
}

/// What a note is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ControlPlaneNoteKind {
    /// Refusal: the runs were measured on different machines, kernels or versions of Meshmeter.
    MixedMachines,
    /// Refusal: no run has a fleet of this kind.
    NotMeasured,
    /// Refusal: no trial is valid.
    NoValidTrial,
    /// A law cannot be fitted, or not for this mesh: the trials do not tell what it needs.
    Unresolved,
    /// Refusal: an istiod of the asked size does not hold the mesh's constant part.
    IstiodTooSmall,
    /// The mesh lies outside what was measured.
    Extrapolated,
    /// Without repeats there are no intervals.
    NoInterval,
    /// Some cell lies far from the law.
    LackOfFit,
    /// Versions of components differ between the runs.
    MixedComponents,
}
