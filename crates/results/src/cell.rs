//! Estimates of one cell: mode × factors × load.

use crate::Mode;
use crate::added_latency::AddedLatency;
use crate::clock::Clock;
use crate::component::Role;
use crate::component_summary::{ComponentSummary, RoleTotal};
use crate::distribution::RequestDistribution;
use crate::disturbed::DisturbedTrials;
use crate::driver::{DriverObjective, DriverSummary};
use crate::edge::EdgeSummary;
use crate::estimate::{Estimate, Percentiles};
use crate::factor::{CellKey, Conditions, Factors};
use crate::figure::Figure;
use crate::fleet_summary::FleetSummary;
use crate::gateway::{CellRates, GatewaySummary};
use crate::host::ComponentVersion;
use crate::load_point::LoadPoint;
use crate::path::CellPath;
use crate::proxy::ProxySetup;
use crate::reservation::ReservationSummary;
use crate::service::ServiceSummary;
use crate::stream_summary::StreamSummary;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One cell (mode × factor values × load) with estimates over its valid trials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Mode.
    pub mode: Mode,
    /// Values of the factors that can touch the mode; empty in an experiment without factors.
    #[serde(default, skip_serializing_if = "Factors::is_empty")]
    pub factors: Factors,
    /// The load offered.
    pub load: LoadPoint,
    /// Trials recorded, including rerun ones.
    pub trials: usize,
    /// Repeats with a usable median. Each other figure has its own number of trials: `n` of its estimate.
    pub valid: usize,
    /// Number of `trials`, reruns included, that are excluded: their median is unusable.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub excluded: usize,
    /// Number of `trials` in which the target did not keep up with the offered rate.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub saturated_trials: usize,
    /// Number of `trials` with too many errors.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub error_trials: usize,
    /// Number of `trials` that failed: a component did not start or died.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed_trials: usize,
    /// Requests without a response, over the trials whose median is usable.
    #[serde(default, skip_serializing_if = "is_zero_count")]
    pub censored: u64,
    /// Figures that are spoiled in some trials, and excluded from the estimates there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spoiled: Vec<SpoiledTrials>,
    /// Figures that noise of the machine keeps out of the estimates; absent if it disturbed no trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbed: Option<DisturbedTrials>,
    /// Number of disturbed trials in the estimates, because the user accepted noise.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub noise_accepted: usize,
    /// Number of separate events at and beyond `p99`, `p99.9` and `p99.99`: the minimum over the trials.
    /// Events are episodes of slow requests if known, else requests. Empty in results from earlier versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub events_beyond: BTreeMap<String, u64>,
    /// The experiment's objective for this cell; absent if it has none, and in results from earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective: Option<DriverObjective>,
    /// Number of `trials` that are reruns, because the machine had disturbed an earlier take.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retakes: usize,
    /// `valid`, or the most common reason why not.
    pub verdict: String,
    /// Response time over the valid trials; absent if there is none.
    pub response_time_us: Option<Percentiles>,
    /// Service time over the valid trials: from the actual send, so without the schedule lag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_time_us: Option<Percentiles>,
    /// Distribution of all requests by both clocks; absent in a closed loop and if no trial is valid or
    /// saturated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distribution: Option<RequestDistribution>,
    /// Latency added relative to mode `none` at the same load; absent for `none` itself and if there is
    /// nothing to compare with.
    pub added_us: Option<AddedLatency>,
    /// Streams of events; absent if responses are not streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<StreamSummary>,
    /// Responses per second.
    pub rate_completed: Option<Estimate>,
    /// Fraction of sent requests that failed or were answered with an error status, over all trials, 0 to 1.
    pub errors: f64,
    /// Upper end of its one-sided 95 % confidence interval; absent if nothing was sent, and in results of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors_high: Option<f64>,
    /// Figures of each driver, in the order of the topology; empty in results from earlier versions.
    #[serde(default)]
    pub drivers: Vec<DriverSummary>,
    /// Requests and usage of each service, in the order of the topology; empty in results from earlier
    /// versions.
    #[serde(default)]
    pub services: Vec<ServiceSummary>,
    /// Calls between services, in the order of the topology; empty if services call no others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<EdgeSummary>,
    /// Proxies in their own pods that read the drivers' requests; empty if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gateways: Vec<GatewaySummary>,
    /// Load as counted by generators, gateways and destinations, per second; absent in results from earlier
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rates: Option<CellRates>,
    /// Proxies configured by the control plane, if equal in every trial. Absent if it configured none, if
    /// trials differ, and in results from earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxies: Option<ProxySetup>,
    /// Figures of the fleet; absent if drivers send requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<FleetSummary>,
    /// Mesh programs of its trials that differ between cells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<ComponentVersion>,
    /// Usage of each component.
    pub components: Vec<ComponentSummary>,
    /// Usage of all components of a role together: proxies, and control plane.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub totals: Vec<RoleTotal>,
    /// Resources reserved by its pods, and used of them; absent if no trial observed them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved: Option<ReservationSummary>,
    /// Path verification over the valid trials.
    pub path: CellPath,
}

impl Cell {
    /// Key that identifies the cell.
    #[must_use]
    pub fn key(&self) -> CellKey<'_> {
        self.conditions().cell(self.mode)
    }

    /// Factors and load of the cell.
    #[must_use]
    pub fn conditions(&self) -> Conditions<'_> {
        Conditions { factors: &self.factors, load: &self.load }
    }

    /// Times by a clock of loads.
    #[must_use]
    pub fn times(&self, clock: Clock) -> Option<&Percentiles> {
        match clock {
            Clock::ResponseTime => self.response_time_us.as_ref(),
            Clock::ServiceTime => self.service_time_us.as_ref(),
            of_streams => self.streams.as_ref()?.times(of_streams),
        }
    }

    /// What the mode adds to its baseline by a clock of loads.
    #[must_use]
    pub fn added(&self, clock: Clock) -> Option<AddedLatency> {
        match clock {
            Clock::ResponseTime => self.added_us,
            Clock::FirstEvent => Some(self.streams.as_ref()?.added?.first_event_us),
            Clock::EventGap => Some(self.streams.as_ref()?.added?.event_gap_us),
            Clock::ServiceTime | Clock::FirstByte | Clock::Convergence | Clock::FirstConfiguration => None,
        }
    }

    /// Times that the cell's load is about: of streams those until the first token.
    #[must_use]
    pub fn leading_times(&self) -> Option<&Percentiles> {
        self.times(Clock::of_load(&self.load))
    }

    /// What the mode adds to its baseline in [`Self::leading_times`].
    #[must_use]
    pub fn leading_added(&self) -> Option<AddedLatency> {
        self.added(Clock::of_load(&self.load))
    }

    /// All components of a role together; absent if the cell has none.
    #[must_use]
    pub fn total(&self, role: Role) -> Option<&RoleTotal> {
        self.totals.iter().find(|total| total.role == role)
    }

    /// The call between services with the longest 99th percentile, and that in microseconds; absent if no caller timed its
    /// calls.
    #[must_use]
    pub fn slowest_call(&self) -> Option<(&EdgeSummary, f64)> {
        let p99 = |edge: &EdgeSummary| Some(edge.response_time_us?.p99?.estimate);
        let calls = self.edges.iter().filter_map(|edge| Some((edge, p99(edge)?)));
        calls.max_by(|(_, one), (_, other)| one.total_cmp(other))
    }

    /// Number of planned trials with at least one recorded take; reruns count once.
    #[must_use]
    pub fn places(&self) -> usize {
        self.trials - self.retakes.min(self.trials)
    }
}

/// A figure that is spoiled in some trials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpoiledTrials {
    /// The figure.
    pub figure: Figure,
    /// Repeats without any take in which the figure is usable.
    pub trials: usize,
    /// Number of these trials spoiled by each kind of reason.
    pub reasons: BTreeMap<String, usize>,
    /// Minimum in these trials, in the unit of the figure's estimates; absent if none has a value. CPU and
    /// memory are those of all proxies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<f64>,
    /// Maximum value.
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
