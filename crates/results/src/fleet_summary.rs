//! Estimates of a cell whose driver is a fleet of simulated proxies.

use crate::component::is_istiod;
use crate::estimate::Estimate;
use crate::estimates::Estimates;
use crate::fleet::{ControlPlaneFigures, FleetResult};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A fleet over the trials of a cell. Each estimate is over the trials in which its figure is usable (`n`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetSummary {
    /// Requested number of proxies.
    pub proxies: u64,
    /// Proxies that never received a configuration or a change: the maximum over the trials.
    pub never: u64,
    /// Its metrics by key.
    #[serde(flatten)]
    pub estimates: Estimates,
    /// From the start of connecting to an open stream.
    pub connect_us: FleetTimes,
    /// From the start of connecting to the first complete configuration.
    pub first_configuration_us: FleetTimes,
    /// Convergence over all changes and proxies: from a change's acknowledgement to its arrival.
    pub convergence_us: FleetTimes,
    /// Changes by kind, in the order of the trials.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FleetChangeSummary>,
    /// Outages by cause.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<FleetOutageSummary>,
    /// Responses by short type, such as `cds`.
    pub pushes: BTreeMap<String, FleetPushSummary>,
    /// Responses that the fleet rejected, over all trials.
    pub rejections: u64,
    /// Protocol violations and broken streams by kind, over all trials.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub violations: BTreeMap<String, u64>,
    /// Usage of each component in the measured window, as read by the environment.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<FleetComponent>,
    /// Stages of istiod's push pipeline: `debounce`, `push_context`, `queue`, `push`, `convergence`; mean,
    /// milliseconds.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub istiod_chain_ms: BTreeMap<String, Estimate>,
}

/// A distribution over proxies, by trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetTimes {
    /// Median. Like the others, absent if it falls among proxies that were never reached in some trial.
    pub p50: Option<Estimate>,
    /// 90th percentile.
    pub p90: Option<Estimate>,
    /// 99th percentile.
    pub p99: Option<Estimate>,
    /// Time until the last proxy had it; for several changes, the slowest one. Absent if a proxy was never
    /// reached.
    pub last: Option<Estimate>,
    /// Number of values over all trials.
    pub count: u64,
    /// Proxies that were never reached, over all trials.
    pub never: u64,
}

/// Changes of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetChangeSummary {
    /// Kind, such as `endpoint-added`.
    pub kind: String,
    /// Number of changes in all trials.
    pub changes: usize,
    /// Proxies expected to receive each change: the maximum.
    pub expected: u64,
    /// Changes that could not be made, over all trials.
    #[serde(skip_serializing_if = "is_zero")]
    pub failed: usize,
    /// From the acknowledgement to the arrival.
    pub convergence_us: FleetTimes,
}

/// Proxies that lost their connection for one cause.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetOutageSummary {
    /// Cause, such as `istiod-killed`.
    pub cause: String,
    /// Disconnected proxies: the maximum over the trials.
    pub proxies: u64,
    /// From the disconnect until complete again.
    pub recovery_us: FleetTimes,
}

/// Usage of a component, from its cgroup.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetComponent {
    /// Name, such as `istiod`, `kube-apiserver`, `etcd`, `fleet`.
    pub name: String,
    /// Mean CPU, cores.
    pub cpu_cores: Option<Estimate>,
    /// Memory at the end of the window, bytes.
    pub memory_bytes: Option<Estimate>,
}

/// Responses of one resource type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetPushSummary {
    /// Number of responses.
    pub count: Option<Estimate>,
    /// Bytes of the response bodies.
    pub bytes: Option<Estimate>,
    /// Resources in the responses.
    pub resources: Option<Estimate>,
    /// Routes in these resources; absent for types other than `rds`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routes: Option<Estimate>,
}

impl FleetResult {
    /// Sum of a figure over all istiods; absent if one lacks it.
    #[must_use]
    pub fn of_istiods(&self, read: impl Fn(&ControlPlaneFigures) -> Option<f64>) -> Option<f64> {
        self.sum(ControlPlaneFigures::is_istiod, read)
    }

    /// Sum of a figure over the API server and etcd; absent if one lacks it.
    #[must_use]
    pub fn of_api(&self, read: impl Fn(&ControlPlaneFigures) -> Option<f64>) -> Option<f64> {
        self.sum(|figures| !figures.is_istiod(), read)
    }

    fn sum(
        &self,
        is_part: impl Fn(&ControlPlaneFigures) -> bool,
        read: impl Fn(&ControlPlaneFigures) -> Option<f64>,
    ) -> Option<f64> {
        let parts = self.control_plane.iter().filter(|figures| is_part(figures));
        let values: Vec<f64> = parts.map(read).collect::<Option<_>>()?;
        (!values.is_empty()).then(|| values.iter().sum())
    }
}

impl ControlPlaneFigures {
    /// True for figures of an istiod.
    #[must_use]
    pub fn is_istiod(&self) -> bool {
        is_istiod(&self.name)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}
