//! `meshmeter.trial/1`: one line of `trials.jsonl`, everything that one trial showed.

use super::component::{ComponentUsage, Role};
use super::configuration::{ConfigurationPush, FurtherDomain};
use super::driver::{DriverRecord, DriverView};
use super::edge::EdgeRecord;
use super::factor::{BACKGROUND_SERVICES, CellKey, Conditions, FactorValue, Factors};
use super::fleet::FleetResult;
use super::gateway::{GatewayRecord, TrialRates};
use super::host::ComponentVersion;
use super::load::LoadResult;
use super::load_point::LoadPoint;
use super::machine::MachineUsage;
use super::node::NodeUsage;
use super::path::PathProof;
use super::proxy::ProxySetup;
use super::service::ServiceRecord;
use super::verdict::Verdict;
use crate::mode::Mode;
use crate::topology::pair::{PAIR_DRIVER, PAIR_SERVER};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The value of [`TrialRecord::schema`].
pub const TRIAL_SCHEMA: &str = "meshmeter.trial/1";

/// One trial: one cell, once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// Always [`TRIAL_SCHEMA`].
    pub schema: String,
    /// Place in the order of execution, from 0.
    pub index: usize,
    /// Which repeat of the whole set of cells this trial belongs to, from 0.
    pub repeat: usize,
    /// The arrangement of proxies.
    pub mode: Mode,
    /// Values of the factors; empty in an experiment without any.
    #[serde(default, skip_serializing_if = "Factors::is_empty")]
    pub factors: Factors,
    /// The load offered.
    pub load: LoadPoint,
    /// When the trial began, RFC 3339.
    pub started_at: String,
    /// The deployment that the trial ran in; absent in results of earlier versions, where each had one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<DeploymentUse>,
    /// How the trial ended.
    pub outcome: TrialOutcome,
    /// Whether its figures may enter estimates: the verdicts of its drivers and what the environment saw.
    pub verdict: Verdict,
    /// What the only driver measured, or all of them together; absent where none got that far.
    pub result: Option<LoadResult>,
    /// Every driver, as stored: the result of a single one is `result`. Empty in results of earlier versions.
    /// [`Self::drivers`] gives the same view of all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drivers: Vec<DriverRecord>,
    /// Every workload that serves requests, as stored: empty in results of earlier versions. [`Self::services`] gives the
    /// same view of all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<ServiceRecord>,
    /// Calls between services; empty where services call no others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<EdgeRecord>,
    /// Proxies in a pod of their own that read the drivers' requests; empty where there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gateways: Vec<GatewayRecord>,
    /// The load as generators, gateways and destinations each counted it; absent where no driver has a result, and in results
    /// of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rates: Option<TrialRates>,
    /// What each component used in the generator's measured window.
    pub components: Vec<ComponentUsage>,
    /// Proof that the requests took the path that the mode names.
    pub path: PathProof,
    /// Programs of the mesh that the trial ran; empty in results of earlier versions, where all trials ran those of
    /// `host.json`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<ComponentVersion>,
    /// What the machine as a whole did in the window; absent where it was not observed.
    pub machine: Option<MachineUsage>,
    /// What the nodes of a cluster did in the window, those that have pods of the experiment; empty in a lab, and where nodes
    /// were not read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeUsage>,
    /// Last lines of the logs of components that failed, by component.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub log_tails: BTreeMap<String, Vec<String>>,
    /// What to do about a trial that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
    /// How long the control plane took to configure the proxies; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push: Option<ConfigurationPush>,
    /// How long one further domain took to be in force at the gateway; absent without domains under a control plane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub further_domain: Option<FurtherDomain>,
    /// The proxies that the control plane configured; absent where it configured none, and in results of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxies: Option<ProxySetup>,
    /// Which take it is and why, where the machine disturbed an earlier one; absent on the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retake: Option<Retake>,
}

impl TrialRecord {
    /// Which take of its place in the plan it is, from 1.
    #[must_use]
    pub fn take(&self) -> usize {
        self.retake.as_ref().map_or(1, |retake| retake.take)
    }

    /// The cell that it is a trial of.
    #[must_use]
    pub fn cell(&self) -> CellKey<'_> {
        self.conditions().cell(self.mode)
    }

    /// Its factors and load.
    #[must_use]
    pub fn conditions(&self) -> Conditions<'_> {
        Conditions { factors: &self.factors, load: &self.load }
    }

    /// Time until a further domain was in force at this gateway, seconds.
    #[must_use]
    pub fn further_domain_in_s(&self, gateway: &str) -> Option<f64> {
        self.further_domain.as_ref().filter(|domain| domain.gateway == gateway)?.in_force_s
    }

    /// Adds the factor that results of earlier versions have in their load alone: the number of background services.
    #[must_use]
    pub fn with_factors_of_load(mut self) -> Self {
        if let Some(services) = self.load.surrounding_services {
            let value = FactorValue::Number(services.into());
            self.factors.entry(BACKGROUND_SERVICES.to_owned()).or_insert(value);
        }
        self
    }

    /// Every driver with its result. Trials of earlier versions have one: the generator of the pair.
    #[must_use]
    pub fn drivers(&self) -> Vec<DriverView<'_>> {
        if self.drivers.is_empty() {
            return vec![DriverView {
                name: PAIR_DRIVER,
                namespace: "",
                target: PAIR_SERVER,
                result: self.result.as_ref(),
                verdict: &self.verdict,
            }];
        }
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

    /// Result of the driver that is a fleet; absent where none is.
    #[must_use]
    pub fn fleet(&self) -> Option<&FleetResult> {
        self.drivers.iter().find_map(|driver| driver.fleet.as_ref())
    }

    /// Every workload that serves requests. Trials of earlier versions have one: the server of the pair, whose requests are
    /// known only where the proof of the path needed them.
    #[must_use]
    pub fn services(&self) -> Cow<'_, [ServiceRecord]> {
        if !self.services.is_empty() {
            return Cow::Borrowed(&self.services);
        }
        let app = self.components.iter().find(|usage| usage.role == Role::App);
        let service = app.map(|app| ServiceRecord {
            name: PAIR_SERVER.to_owned(),
            replicas: 1,
            requests: self.path.service.as_ref().map(|service| service.requests_received),
            components: vec![app.name.clone()],
            ..ServiceRecord::default()
        });
        Cow::Owned(service.into_iter().collect())
    }
}

/// Which deployment a trial ran in.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct DeploymentUse {
    /// Number of the deployment in the run, from 0.
    pub number: usize,
    /// Place of the trial in it, from 0: trials after the first met proxies that had already carried load.
    pub trial: usize,
}

/// Why a trial was taken again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Retake {
    /// Which take it is: 2 where the first was disturbed.
    pub take: usize,
    /// `index` of the take before it, of the same mode, load and repeat.
    pub of: usize,
    /// Why the figures of that one are in no estimate: the reasons of its verdict.
    pub because: Vec<String>,
}

/// How a trial ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrialOutcome {
    /// The generator ran its whole time.
    Finished,
    /// The user stopped the run; what was measured until then is here.
    Interrupted,
    /// A component could not be started or died.
    Failed,
}
