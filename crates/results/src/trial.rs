//! `meshmeter.trial/1`: one line of `trials.jsonl`, the full record of one trial.

use crate::Mode;
use crate::clock::Clock;
use crate::component::ComponentUsage;
use crate::configuration::{ConfigurationPush, FurtherDomain};
use crate::driver::{DriverRecord, DriverView};
use crate::edge::EdgeRecord;
use crate::factor::{CellKey, Conditions, Factors};
use crate::fleet::FleetResult;
use crate::gateway::{GatewayRecord, TrialRates};
use crate::histogram::HistogramSummary;
use crate::host::ComponentVersion;
use crate::load::{LoadResult, is_possible};
use crate::load_point::LoadPoint;
use crate::machine::MachineUsage;
use crate::node::NodeUsage;
use crate::path::PathProof;
use crate::proxy::ProxySetup;
use crate::service::ServiceRecord;
use crate::verdict::Verdict;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The value of [`TrialRecord::schema`].
pub const TRIAL_SCHEMA: &str = "meshmeter.trial/1";

/// One trial: one cell, measured once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// Always [`TRIAL_SCHEMA`].
    pub schema: String,
    /// Place in execution order, from 0.
    pub index: usize,
    /// Repeat that this trial belongs to, from 0.
    pub repeat: usize,
    /// Mode.
    pub mode: Mode,
    /// Values of the factors that can touch the mode; empty in an experiment without factors.
    #[serde(default, skip_serializing_if = "Factors::is_empty")]
    pub factors: Factors,
    /// Load offered.
    pub load: LoadPoint,
    /// Start of the trial, RFC 3339.
    pub started_at: String,
    /// Deployment that the trial ran in; absent in results from earlier versions, where each trial had its
    /// own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<DeploymentUse>,
    /// How the trial ended.
    pub outcome: TrialOutcome,
    /// Whether its figures may enter estimates: the verdicts of its drivers, and observations of the
    /// environment.
    pub verdict: Verdict,
    /// Result of the only driver, or of all drivers merged; absent if none produced a result.
    pub result: Option<LoadResult>,
    /// Drivers as stored: the result of a single driver is in `result`. [`Self::drivers`] gives a uniform view.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drivers: Vec<DriverRecord>,
    /// Workloads that serve requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<ServiceRecord>,
    /// Calls between services; empty if services do not call each other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<EdgeRecord>,
    /// Proxies in their own pods that read the drivers' requests; empty if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gateways: Vec<GatewayRecord>,
    /// Load as counted by generators, gateways and destinations; absent if no driver has a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rates: Option<TrialRates>,
    /// Usage of each component in the generator's measured window.
    pub components: Vec<ComponentUsage>,
    /// Path verification.
    pub path: PathProof,
    /// Mesh programs that the trial ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<ComponentVersion>,
    /// CPU of the whole machine in the window; absent if it was not observed.
    pub machine: Option<MachineUsage>,
    /// CPU of the cluster nodes that have pods of the experiment, in the window; empty in a lab, and if nodes
    /// were not read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeUsage>,
    /// Last log lines of components that failed, by component.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub log_tails: BTreeMap<String, Vec<String>>,
    /// Suggested fixes for a failed trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
    /// Propagation time of the proxies' configuration; absent without a control plane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push: Option<ConfigurationPush>,
    /// Propagation time of one further domain at the gateway; absent without domains under a control plane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub further_domain: Option<FurtherDomain>,
    /// Proxies configured by the control plane; absent if it configured none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxies: Option<ProxySetup>,
    /// Number of the take and reason for the rerun; absent on the first take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retake: Option<Retake>,
}

impl TrialRecord {
    /// False if a load of the trial cannot have counted so much, or components cannot have used so much CPU: the record is
    /// damaged.
    #[must_use]
    pub fn has_possible_counts(&self) -> bool {
        let of_drivers = self.drivers.iter().filter_map(|driver| driver.result.as_ref());
        self.result.iter().chain(of_drivers).all(LoadResult::has_possible_counts)
            && self.components.iter().all(|component| {
                is_possible(component.cpu_cores()) && component.per_s(1).is_none_or(is_possible)
            })
    }

    /// Number of the take, from 1.
    #[must_use]
    pub fn take(&self) -> usize {
        self.retake.as_ref().map_or(1, |retake| retake.take)
    }

    /// Cell of the trial.
    #[must_use]
    pub fn cell(&self) -> CellKey<'_> {
        self.conditions().cell(self.mode)
    }

    /// Factors and load of the trial.
    #[must_use]
    pub fn conditions(&self) -> Conditions<'_> {
        Conditions { factors: &self.factors, load: &self.load }
    }

    /// Propagation time of a further domain at this gateway, seconds.
    #[must_use]
    pub fn further_domain_in_s(&self, gateway: &str) -> Option<f64> {
        self.further_domain.as_ref().filter(|domain| domain.gateway == gateway)?.in_force_s
    }

    /// Excludes the trial if its path proof is of another mode.
    #[must_use]
    pub fn with_proof_of_own_mode(mut self) -> Self {
        if let Some(reason) = self.path.require_mode(self.mode) {
            let of_drivers = self.drivers.iter_mut().map(|driver| &mut driver.verdict);
            let verdicts = [&mut self.verdict].into_iter().chain(of_drivers);
            verdicts.for_each(|verdict| verdict.spoil_by_path(&reason));
        }
        self
    }

    /// Every driver with its result.
    #[must_use]
    pub fn drivers(&self) -> Vec<DriverView<'_>> {
        let single = self.drivers.len() == 1;
        let view = |driver| {
            let view = DriverView::new(driver);
            if single {
                DriverView { result: self.result.as_ref(), verdict: &self.verdict, ..view }
            } else {
                view
            }
        };
        self.drivers.iter().map(view).collect()
    }

    /// Times that its load is about, of streams those until the first token; absent without a result of a load.
    #[must_use]
    pub fn leading_times(&self) -> Option<&HistogramSummary> {
        Clock::of_load(&self.load).of(self)
    }

    /// Lower bound of the times of [`Self::leading_times`] that fall among requests without a response, microseconds. Unknown of
    /// streams, whose responses may have begun.
    #[must_use]
    pub fn leading_above_us(&self) -> Option<f64> {
        self.result.as_ref()?.censored_above_us.filter(|_| self.load.stream.is_none())
    }

    /// Events with content per second of the window; absent unless responses are streams of events.
    #[must_use]
    pub fn events_per_s(&self) -> Option<f64> {
        let result = self.result.as_ref()?;
        Some(result.events?.received as f64 / result.duration_s).filter(|rate| rate.is_finite())
    }

    /// Result of the driver that is a fleet, if any.
    #[must_use]
    pub fn fleet(&self) -> Option<&FleetResult> {
        self.drivers.iter().find_map(|driver| driver.fleet.as_ref())
    }
}

/// Deployment of a trial.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct DeploymentUse {
    /// Number of the deployment in the run, from 0.
    pub number: usize,
    /// Position of the trial in the deployment, from 0: after the first, proxies have already carried load.
    pub trial: usize,
}

/// Why a trial was rerun.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Retake {
    /// Number of the take: 2 if the first was disturbed.
    pub take: usize,
    /// `index` of the previous take, with the same mode, load and repeat.
    pub of: usize,
    /// Reasons of the verdict that excluded the previous take from all estimates.
    pub because: Vec<String>,
}

/// How a trial ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrialOutcome {
    /// The generator ran for its whole duration.
    Finished,
    /// The user stopped the run; contains what was measured until then.
    Interrupted,
    /// A component could not be started or died.
    Failed,
}
