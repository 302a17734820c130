//! The interface between a run and the place where it runs: one machine (the lab), a cluster, or memory in tests.
//!
//! [`Environment::deploy`] → [`Deployment`]. A deployment serves one or several trials; each is
//! [`begin_trial`](Deployment::begin_trial) → [`start`](Deployment::start) of the drivers' generators → where there are
//! several, [`release`](Deployment::release) of each once all are ready →
//! [`next_event`](Deployment::next_event) until every driver has ended, with a [`snapshot`](Deployment::snapshot) at both
//! ends of the measured window → [`end_trial`](Deployment::end_trial). Then [`finish`](Deployment::finish); dropping a
//! deployment takes it down too. A driver is a load or a fleet ([`DriverVerb`]); what a fleet asks for is done by
//! [`act`](Deployment::act).
//!
//! Input files go in as bytes and results come out as values: no process handles and no host paths, so that a cluster can
//! stand behind it.

use super::SentLoad;
use super::error::EnvironmentError;
use super::snapshot::Snapshot;
use super::spec::DeploymentSpec;
use crate::mode::{MeshKind, Mode};
use crate::schema::component::ComponentUsage;
use crate::schema::configuration::{ConfigurationPush, FurtherDomain};
use crate::schema::edge::EdgeRecord;
use crate::schema::event::LoadEvent;
use crate::schema::fleet::FleetResult;
use crate::schema::fleet_progress::{FleetAsk, FleetProgress};
use crate::schema::gateway::GatewayCounts;
use crate::schema::holdings::ProxyHoldings;
use crate::schema::host::{ComponentVersion, Host};
use crate::schema::load::LoadResult;
use crate::schema::path::PathProof;
use crate::schema::proxy::ProxySetup;
use crate::settings::components::ComponentsSettings;
use crate::settings::ingress::Scenario;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

/// A place where trials run.
pub trait Environment {
    /// The machine and the versions of the components.
    fn host(&self) -> Host;

    /// Versions of the components that this deployment needs besides.
    fn versions_for(&self, _spec: &DeploymentSpec) -> Vec<ComponentVersion> {
        Vec::new()
    }

    /// Checks that this mode can run here with these components. The error says what is missing and how to get it: nothing
    /// stands in for a mode.
    ///
    /// # Errors
    /// A component or a kernel feature that the mode needs is absent.
    fn check_mode(
        &self,
        mesh: MeshKind,
        mode: Mode,
        components: &ComponentsSettings,
    ) -> Result<(), EnvironmentError>;

    /// Checks that the services behind the filters of a scenario can run here.
    ///
    /// # Errors
    /// A program is absent.
    fn check_scenario(&self, _scenario: Scenario) -> Result<(), EnvironmentError> {
        Ok(())
    }

    /// Checks what the settings of this deployment need beyond its mode and scenario.
    ///
    /// # Errors
    /// A setting cannot be had with the components that are here.
    fn check_settings(&self, _spec: &DeploymentSpec) -> Result<(), EnvironmentError> {
        Ok(())
    }

    /// Starts every workload and proxy of the specification and waits until all serve. The environment keeps their logs
    /// under `label`, which is unique in a run.
    ///
    /// # Errors
    /// A component does not come up; what had been started is taken down again.
    fn deploy(
        &mut self,
        spec: &DeploymentSpec,
        label: &str,
    ) -> Result<Box<dyn Deployment + '_>, EnvironmentError>;
}

/// Running workloads and proxies. Dropping it takes them down.
pub trait Deployment {
    /// Begins a trial: reads the counters that prove the path, and memory before load. Logs and evidence of the trial are
    /// kept under `label`.
    ///
    /// # Errors
    /// A component has failed or does not respond.
    fn begin_trial(&mut self, label: &str) -> Result<(), EnvironmentError>;

    /// Starts the generators of the trial, each in a pod of its driver's place in the topology; side by side where starting
    /// takes long.
    ///
    /// # Errors
    /// The topology has no such driver or pod, or a generator cannot be started. Those that were started are killed by
    /// [`end_trial`](Self::end_trial), which may follow.
    fn start(&mut self, generators: &[DriverStart]) -> Result<(), EnvironmentError>;

    /// Tells a generator that was started as [`held`](DriverVerb::Load::held) and is [`Ready`](LoadEvent::Ready) when its window
    /// opens, by the wall clock. Its warm-up runs before.
    ///
    /// # Errors
    /// The generator cannot be told. One that has ended since is no error: its end is an event.
    fn release(&mut self, generator: &str, window_opens_at: SystemTime) -> Result<(), EnvironmentError>;

    /// How long [`release`](Self::release) may take to reach a generator, on a busy machine too: windows open later by this.
    fn release_delay(&self) -> Duration {
        Duration::ZERO
    }

    /// Does what a fleet has asked for ([`FleetProgress::Ask`]) and answers on its standard input, also where that fails.
    /// May take as long as an istiod takes to start.
    fn act(&mut self, fleet: &str, ask: &FleetAsk);

    /// Waits at most `timeout` for the next event of any generator. Each that was started sends
    /// [`DriverEventKind::Ended`] once, as its last event.
    fn next_event(&mut self, timeout: Duration) -> Option<DriverEvent>;

    /// Tells a generator to end early and keep what it has. One that is stopped (frozen) is killed.
    fn interrupt(&mut self, generator: &str);

    /// Kills a generator that did not end when it was told to. It still sends [`DriverEventKind::Ended`].
    fn kill(&mut self, generator: &str);

    /// Reads the counters of every component and of the machine.
    ///
    /// # Errors
    /// A component is gone.
    fn snapshot(&mut self) -> Result<Snapshot, EnvironmentError>;

    /// The first component that has failed. Cheap: may be called about once a second while load runs.
    fn health(&mut self, probe: HealthProbe) -> Option<ComponentFailure>;

    /// Ends a trial after its drivers: reads the counters again and returns the evidence. What could not be read is in it as
    /// a reason why the path is not proven. Kills drivers that still run. Called once per trial, also where
    /// [`begin_trial`](Self::begin_trial) or [`start`](Self::start) failed.
    fn end_trial(&mut self, sent: &[DriverLoad]) -> TrialEvidence;

    /// Takes everything down.
    ///
    /// # Errors
    /// Something could not be removed.
    fn finish(self: Box<Self>) -> Result<(), EnvironmentError>;
}

/// How thoroughly [`Deployment::health`] looks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HealthProbe {
    /// Exited and stopped components.
    Processes,
    /// Those, and components that run and do not respond. Takes seconds where one is unresponsive and disturbs the others:
    /// for when nothing is being measured.
    Responses,
}

/// A component that has failed, and how: words that continue after its name, such as `was ended by signal 9`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ComponentFailure {
    /// The component's name.
    pub component: String,
    /// The failure in words that continue after the name.
    pub how: String,
}

/// A process of a driver to start: a load generator, or a fleet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DriverStart {
    /// The driver's name in the topology.
    pub driver: String,
    /// The process's own name, unique in the trial: the driver's where it has a single one.
    pub generator: String,
    /// Which pod of the driver's workload it runs in, from 0.
    pub pod: usize,
    /// What it is.
    pub verb: DriverVerb,
    /// Arguments of the verb, without what the deployment knows itself: where the URL or the istiods are, certificates and
    /// kubeconfig, where results and events go, how it is held.
    pub arguments: Vec<Argument>,
}

/// What a driver's process does.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum DriverVerb {
    /// `meshmeter load`.
    Load {
        /// It opens its connections, reports [`LoadEvent::Ready`] and waits for [`Deployment::release`].
        held: bool,
        /// Queries of the URL, a URL each; empty: the URL alone.
        queries: Vec<String>,
    },
    /// `meshmeter fleet`.
    Fleet,
}

impl Default for DriverVerb {
    fn default() -> Self {
        Self::Load { held: false, queries: Vec::new() }
    }
}

impl DriverVerb {
    /// What a generator requests at `url`: one URL per query, the URL alone without any. A fleet requests nothing.
    #[must_use]
    pub fn urls(&self, url: &str) -> Vec<String> {
        match self {
            Self::Load { queries, .. } if queries.is_empty() => vec![url.to_owned()],
            Self::Load { queries, .. } => queries.iter().map(|query| format!("{url}?{query}")).collect(),
            Self::Fleet => Vec::new(),
        }
    }

    /// Whether it waits to be released.
    #[must_use]
    pub fn is_held(&self) -> bool {
        matches!(self, Self::Load { held: true, .. })
    }
}

/// An argument of a driver.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Argument {
    /// As it stands.
    Text(String),
    /// The path of a file with this content, which the deployment gives to the driver.
    File {
        /// File name without folders.
        name: String,
        /// Bytes of the file.
        content: Vec<u8>,
    },
}

/// Something that a generator reports.
#[derive(Clone, Debug, PartialEq)]
pub struct DriverEvent {
    /// The generator's name.
    pub generator: String,
    /// Kind of the event, with its content.
    pub kind: DriverEventKind,
}

/// Kinds of events.
#[derive(Clone, Debug, PartialEq)]
pub enum DriverEventKind {
    /// Progress of a load generator.
    Load(LoadEvent),
    /// Progress of a fleet.
    Fleet(FleetProgress),
    /// A line for people.
    Message(String),
    /// The generator has ended: its last event.
    Ended(Box<DriverEnd>),
}

/// How a generator ended.
#[derive(Clone, Debug, PartialEq)]
pub struct DriverEnd {
    /// Exit code; absent where a signal ended it.
    pub exit_code: Option<i32>,
    /// Its result, or why there is none.
    pub result: Result<DriverResult, String>,
    /// The last lines that it wrote.
    pub last_lines: Vec<String>,
}

/// Result of a driver.
#[derive(Clone, Debug, PartialEq)]
pub enum DriverResult {
    /// Of `meshmeter load`.
    Load(Box<LoadResult>),
    /// Of `meshmeter fleet`.
    Fleet(Box<FleetResult>),
}

impl DriverResult {
    /// Result of a load.
    #[must_use]
    pub fn load(&self) -> Option<&LoadResult> {
        match self {
            Self::Load(result) => Some(result),
            Self::Fleet(_) => None,
        }
    }

    /// Result of a fleet.
    #[must_use]
    pub fn fleet(&self) -> Option<&FleetResult> {
        match self {
            Self::Load(_) => None,
            Self::Fleet(result) => Some(result),
        }
    }
}

impl From<LoadResult> for DriverResult {
    fn from(result: LoadResult) -> Self {
        Self::Load(Box::new(result))
    }
}

impl From<FleetResult> for DriverResult {
    fn from(result: FleetResult) -> Self {
        Self::Fleet(Box::new(result))
    }
}

impl Default for DriverResult {
    fn default() -> Self {
        LoadResult::default().into()
    }
}

/// Requests that a driver sent over a whole trial, warm-up included: what the counters on the path are held against.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DriverLoad {
    /// The driver's name in the topology.
    pub driver: String,
    /// Requests over the whole trial.
    pub sent: SentLoad,
}

/// Evidence of one trial, beside the snapshots.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrialEvidence {
    /// Proof of the path.
    pub path: PathProof,
    /// Requests counted by each workload that serves them.
    pub services: Vec<ServiceCount>,
    /// Requests counted by each gateway over the whole trial, by name.
    pub gateways: BTreeMap<String, GatewayCounts>,
    /// Calls between services, counted by the callers; those of drivers are in the drivers' results.
    pub edges: Vec<EdgeRecord>,
    /// By component: memory before and after load, and what proxies hold.
    pub footprints: BTreeMap<String, Footprint>,
    /// Last log lines of components that failed.
    pub log_tails: BTreeMap<String, Vec<String>>,
    /// Remedies for these failures.
    pub hints: Vec<String>,
    /// What a reader should know of figures that are usable: how they were read, and what could not be read.
    pub notes: Vec<String>,
    /// Time until the configuration had propagated; absent without a control plane.
    pub push: Option<ConfigurationPush>,
    /// A further domain that was put in force after the load; absent without domains under a control plane.
    pub further_domain: Option<FurtherDomain>,
    /// Programs of the mesh that the deployment ran.
    pub versions: Vec<ComponentVersion>,
    /// The proxies that a control plane configured; absent where there are none.
    pub proxies: Option<ProxySetup>,
}

/// Requests that a workload served over a whole trial, warm-up included.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ServiceCount {
    /// The workload's name.
    pub name: String,
    /// Its namespace in the topology; empty where that has a single one.
    pub namespace: String,
    /// Number of pods.
    pub replicas: usize,
    /// Requests that its pods answered, the sum; absent where they could not be read.
    pub requests: Option<u64>,
    /// The components that are its pods.
    pub components: Vec<String>,
}

/// Memory of a component outside the measured window, and a proxy's own account of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Footprint {
    /// Memory before the drivers started, bytes.
    pub memory_before_load_bytes: Option<u64>,
    /// Memory after the drivers had ended, bytes.
    pub memory_after_load_bytes: Option<u64>,
    /// Anonymous memory before the drivers started, bytes.
    pub memory_anonymous_before_load_bytes: Option<u64>,
    /// Anonymous memory after the drivers had ended, bytes.
    pub memory_anonymous_after_load_bytes: Option<u64>,
    /// Configuration and heap as reported by the proxy; absent for other components.
    pub holdings: Option<ProxyHoldings>,
}

impl Footprint {
    /// Adds it to the usage of its component.
    pub fn add_to(self, component: &mut ComponentUsage) {
        component.memory_before_load_bytes = self.memory_before_load_bytes;
        component.memory_after_load_bytes = self.memory_after_load_bytes;
        component.memory_anonymous_before_load_bytes = self.memory_anonymous_before_load_bytes;
        component.memory_anonymous_after_load_bytes = self.memory_anonymous_after_load_bytes;
        component.holdings = self.holdings;
    }
}
