//! Estimates of one cell: mode × factors × load.

use super::component_summary::{ComponentSummary, RoleTotal};
use super::distribution::RequestDistribution;
use super::driver::{DriverObjective, DriverSummary};
use super::edge::EdgeSummary;
use super::estimate::{AddedLatency, Estimate, Percentiles};
use super::factor::{CellKey, Conditions, Factors};
use super::figure::Figure;
use super::fleet_summary::FleetSummary;
use super::gateway::{CellRates, GatewaySummary};
use super::host::ComponentVersion;
use super::load_point::LoadPoint;
use super::path::CellPath;
use super::proxy::ProxySetup;
use super::reservation::ReservationSummary;
use super::service::ServiceSummary;
use crate::mode::Mode;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One mode with one value of each factor under one load: estimates over its valid trials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The arrangement of proxies.
    pub mode: Mode,
    /// Values of the factors; empty in an experiment without any.
    #[serde(default, skip_serializing_if = "Factors::is_empty")]
    pub factors: Factors,
    /// The load offered.
    pub load: LoadPoint,
    /// Trials recorded, those that were taken again included.
    pub trials: usize,
    /// Repeats in which the median is usable. Each other figure has trials of its own: `n` of its estimate.
    pub valid: usize,
    /// Of `trials`, those in which the target did not keep up with the offered rate.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub saturated_trials: usize,
    /// Of `trials`, those with too many errors.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub error_trials: usize,
    /// Of `trials`, those that failed: a component did not start or died.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed_trials: usize,
    /// Requests without a response, over the trials whose median is usable.
    #[serde(default, skip_serializing_if = "is_zero_count")]
    pub censored: u64,
    /// Figures that are spoiled in some trials, and so in no estimate there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spoiled: Vec<SpoiledTrials>,
    /// Separate events at `p99`, `p99.9`, `p99.99` and beyond: the fewest of a trial. Episodes of slow requests where they are
    /// known, else requests. Empty in results of earlier versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub events_beyond: BTreeMap<String, u64>,
    /// The experiment's objective for this cell; absent where it has none, and in results of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective: Option<DriverObjective>,
    /// Of `trials`, those that were taken again since the machine had disturbed an earlier take.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retakes: usize,
    /// `valid`, or the commonest reason why not.
    pub verdict: String,
    /// Response time over the valid trials; absent where there is none.
    pub response_time_us: Option<Percentiles>,
    /// Service time over the valid trials: from the actual send, which leaves out waiting to be sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_time_us: Option<Percentiles>,
    /// All requests by both clocks; absent in a closed loop and where no trial is valid or saturated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distribution: Option<RequestDistribution>,
    /// What the mode adds to mode `none` at the same load; absent for `none` itself and where there is nothing to compare.
    pub added_us: Option<AddedLatency>,
    /// Responses per second.
    pub rate_completed: Option<Estimate>,
    /// Fraction of sent requests that failed or were answered with an error status, over all trials, 0 to 1.
    pub errors: f64,
    /// What each driver measured, in the order of the topology; empty in results of earlier versions.
    #[serde(default)]
    pub drivers: Vec<DriverSummary>,
    /// What each service served and used, in the order of the topology; empty in results of earlier versions.
    #[serde(default)]
    pub services: Vec<ServiceSummary>,
    /// Calls between services, in the order of the topology; empty where services call no others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<EdgeSummary>,
    /// Proxies in a pod of their own that read the drivers' requests; empty where there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gateways: Vec<GatewaySummary>,
    /// The load as generators, gateways and destinations each counted it, per second; absent in results of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rates: Option<CellRates>,
    /// The proxies that the control plane configured, in every trial; absent where it configured none, where trials differ, and
    /// in results of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxies: Option<ProxySetup>,
    /// Figures of the fleet; absent where drivers send requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<FleetSummary>,
    /// Programs of the mesh that its trials ran, of those that differ between cells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<ComponentVersion>,
    /// What each component used.
    pub components: Vec<ComponentSummary>,
    /// What all components of a role used together: of the proxies and of the control plane.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub totals: Vec<RoleTotal>,
    /// What its pods reserve, and what they used of it; absent where no trial observed them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved: Option<ReservationSummary>,
    /// Proof of the path over the valid trials.
    pub path: CellPath,
}

impl Cell {
    /// What identifies it.
    #[must_use]
    pub fn key(&self) -> CellKey<'_> {
        self.conditions().cell(self.mode)
    }

    /// Its factors and load.
    #[must_use]
    pub fn conditions(&self) -> Conditions<'_> {
        Conditions { factors: &self.factors, load: &self.load }
    }

    /// Places of the plan of which a trial was recorded: those that were taken again count once.
    #[must_use]
    pub fn places(&self) -> usize {
        self.trials - self.retakes.min(self.trials)
    }
}

/// A figure in the trials that have it spoiled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpoiledTrials {
    /// The figure.
    pub figure: Figure,
    /// Repeats without a take in which the figure is usable.
    pub trials: usize,
    /// How many of these trials each kind of reason spoils.
    pub reasons: BTreeMap<String, usize>,
    /// Least value in these trials, in the unit of the figure's estimates; absent where none has one. CPU and memory are those of
    /// all proxies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<f64>,
    /// Greatest value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub greatest: Option<f64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero_count(count: &u64) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}
