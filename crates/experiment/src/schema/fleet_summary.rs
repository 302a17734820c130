//! Estimates of a cell whose driver is a fleet of simulated proxies.

use super::estimate::Estimate;
use super::fleet::{ControlPlaneFigures, FleetResult};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A fleet over the trials of a cell. Each figure has the trials in which it is usable: `n` of its estimate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetSummary {
    /// Proxies that the fleet was to have.
    pub proxies: u64,
    /// Proxies with a complete configuration and every change that was expected of them.
    pub converged: Option<Estimate>,
    /// Proxies that missed a configuration or a change for good: the most of a trial.
    pub never: u64,
    /// From the start of connecting to an open stream.
    pub connect_us: FleetTimes,
    /// From the start of connecting to the first complete configuration.
    pub first_configuration_us: FleetTimes,
    /// From a change's acknowledgement to its arrival: all changes and proxies.
    pub convergence_us: FleetTimes,
    /// Each kind of change, in the order of the trials' changes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FleetChangeSummary>,
    /// Each cause by which proxies lost their connection.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<FleetOutageSummary>,
    /// Length of the measurement, seconds.
    pub duration_s: Option<Estimate>,
    /// Writing the mesh, seconds.
    pub written_s: Option<Estimate>,
    /// Bytes received by all proxies.
    pub bytes_received: Option<Estimate>,
    /// Bytes received per proxy.
    pub bytes_per_proxy: Option<Estimate>,
    /// Responses per proxy.
    pub pushes_per_proxy: Option<Estimate>,
    /// Responses by short type, such as `cds`.
    pub pushes: BTreeMap<String, FleetPushSummary>,
    /// Responses that the fleet rejected, over all trials.
    pub rejections: u64,
    /// Violations of the protocol and broken streams by kind, over all trials.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub violations: BTreeMap<String, u64>,
    /// CPU of all istiods, seconds.
    pub istiod_cpu_s: Option<Estimate>,
    /// The same over the length of the measurement, cores.
    pub istiod_cpu_cores: Option<Estimate>,
    /// CPU of all istiods until every proxy had its first configuration, seconds.
    pub istiod_cpu_connecting_s: Option<Estimate>,
    /// CPU of all istiods while changes were made, seconds.
    pub istiod_cpu_changing_s: Option<Estimate>,
    /// Greatest resident memory of all istiods together, bytes.
    pub istiod_memory_bytes: Option<Estimate>,
    /// CPU of the API server and etcd, seconds.
    pub api_cpu_s: Option<Estimate>,
    /// What each component used in the measured window, as the environment read it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<FleetComponent>,
    /// Stages of istiod's own chain: `debounce`, `push_context`, `queue`, `push`, `convergence`; mean, milliseconds.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub istiod_chain_ms: BTreeMap<String, Estimate>,
    /// CPU of the fleet itself, cores.
    pub fleet_cpu_cores: Option<Estimate>,
    /// Greatest resident memory of the fleet itself, bytes.
    pub fleet_memory_bytes: Option<Estimate>,
    /// From the kernel's receipt of a response to its reading, 99th percentile.
    pub fleet_lag_p99_us: Option<Estimate>,
}

/// A distribution over proxies, by trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetTimes {
    /// Median; absent, like the others, if it lies among proxies never reached in some trial.
    pub p50: Option<Estimate>,
    /// 90th percentile.
    pub p90: Option<Estimate>,
    /// 99th percentile.
    pub p99: Option<Estimate>,
    /// Time until the last proxy had it, of several changes the slowest; absent if one was never reached.
    pub last: Option<Estimate>,
    /// Values over all trials.
    pub count: u64,
    /// Proxies never reached, over all trials.
    pub never: u64,
}

/// Changes of a kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetChangeSummary {
    /// Such as `endpoint-added`.
    pub kind: String,
    /// Changes in all trials together.
    pub changes: usize,
    /// Proxies that each must reach: the most.
    pub expected: u64,
    /// Changes that could not be made, over all trials.
    #[serde(skip_serializing_if = "is_zero")]
    pub failed: usize,
    /// From the acknowledgement to the arrival.
    pub convergence_us: FleetTimes,
}

/// Proxies that lost their connection by a cause.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetOutageSummary {
    /// Such as `istiod-killed`.
    pub cause: String,
    /// Proxies that were cut off: the most of a trial.
    pub proxies: u64,
    /// From being cut off to complete again.
    pub recovery_us: FleetTimes,
}

/// Usage of a component by its control group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetComponent {
    /// Such as `istiod`, `kube-apiserver`, `etcd`, `fleet`.
    pub name: String,
    /// Mean CPU, cores.
    pub cpu_cores: Option<Estimate>,
    /// Memory at the end of the window, bytes.
    pub memory_bytes: Option<Estimate>,
}

/// Responses of one type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetPushSummary {
    /// Responses.
    pub count: Option<Estimate>,
    /// Bytes of their bodies.
    pub bytes: Option<Estimate>,
    /// Resources in them.
    pub resources: Option<Estimate>,
}

impl FleetResult {
    /// The sum of a figure over all istiods; absent if one lacks it.
    #[must_use]
    pub fn of_istiods(&self, read: impl Fn(&ControlPlaneFigures) -> Option<f64>) -> Option<f64> {
        self.sum(ControlPlaneFigures::is_istiod, read)
    }

    /// The sum of a figure over the API server and etcd; absent if one lacks it.
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
    /// Whether they are those of an istiod.
    #[must_use]
    pub fn is_istiod(&self) -> bool {
        self.name.starts_with("istiod")
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}
