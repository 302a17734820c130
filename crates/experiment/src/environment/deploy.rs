//! Interface between a run and its environment: one machine (the lab), a cluster, or memory in tests.
//!
//! [`Environment::deploy`] → [`Deployment`]. A deployment serves one or several trials. Each trial is:
//! [`begin_trial`](Deployment::begin_trial) → [`start`](Deployment::start) of the drivers' generators → if
//! there are several, [`release`](Deployment::release) of each once all are ready →
//! [`next_event`](Deployment::next_event) until every driver has ended, with a
//! [`snapshot`](Deployment::snapshot) at both ends of the measured window →
//! [`end_trial`](Deployment::end_trial). Then [`finish`](Deployment::finish); dropping a deployment takes it
//! down too. A driver is a load or a fleet ([`DriverVerb`]); requests from a fleet are handled by
//! [`act`](Deployment::act).
//!
//! Input files are passed as bytes and results are returned as values. There are no process handles and no
//! host paths, so a cluster can implement the interface.

use super::SentLoad;
use super::error::EnvironmentError;
use super::snapshot::{ComponentSnapshot, Snapshot};
use super::spec::DeploymentSpec;
use crate::mesh_kind::MeshKind;
use crate::settings::components::ComponentsSettings;
use crate::settings::ingress::Scenario;
use crate::topology::{Call, Topology};
use results::{
    ComponentUsage, ComponentVersion, ConfigurationPush, EdgeRecord, FleetAsk, FleetProgress, FleetResult,
    FurtherDomain, GatewayCounts, Host, LoadEvent, LoadResult, Mode, PathProof, ProxyFootprint, ProxySetup,
};
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

/// Environment that trials run in.
pub trait Environment {
    /// Machine and component versions.
    fn host(&self) -> Host;

    /// Component versions that this deployment needs in addition.
    fn versions_for(&self, _spec: &DeploymentSpec) -> Vec<ComponentVersion> {
        Vec::new()
    }

    /// Checks that this mode can run here with these components. The error names what is missing and how to
    /// get it: there are no substitutes for a mode.
    ///
    /// # Errors
    /// Returns an error if a component or kernel feature that the mode needs is absent.
    fn check_mode(
        &self,
        mesh: MeshKind,
        mode: Mode,
        components: &ComponentsSettings,
    ) -> Result<(), EnvironmentError>;

    /// Checks that the services behind a scenario's filters can run here.
    ///
    /// # Errors
    /// Returns an error if a program is absent.
    fn check_scenario(&self, _scenario: Scenario) -> Result<(), EnvironmentError> {
        Ok(())
    }

    /// Checks the settings of this deployment beyond its mode and scenario.
    ///
    /// # Errors
    /// Returns an error if the available components do not support a setting.
    fn check_settings(&self, _spec: &DeploymentSpec) -> Result<(), EnvironmentError> {
        Ok(())
    }

    /// Starts every workload and proxy of the specification and waits until all are ready. The environment
    /// keeps their logs under `label`, which is unique in a run.
    ///
    /// # Errors
    /// Returns an error if a component does not come up; components that were already started are taken down.
    fn deploy(
        &mut self,
        spec: &DeploymentSpec,
        label: &str,
    ) -> Result<Box<dyn Deployment + '_>, EnvironmentError>;
}

/// Running workloads and proxies. Dropping it takes them down.
pub trait Deployment {
    /// Begins a trial: reads the counters used for path verification, and memory before the load. Logs and
    /// evidence of the trial are kept under `label`.
    ///
    /// # Errors
    /// Returns an error if a component has failed or does not respond.
    fn begin_trial(&mut self, label: &str) -> Result<(), EnvironmentError>;

    /// Starts the generators of the trial, each in a pod of its driver's workload; in parallel if starting is
    /// slow.
    ///
    /// # Errors
    /// Returns an error if the topology has no such driver or pod, or if a generator cannot be started.
    /// Generators that were started are killed by [`end_trial`](Self::end_trial), which may follow.
    fn start(&mut self, generators: &[DriverStart]) -> Result<(), EnvironmentError>;

    /// Sends a generator that was started as [`held`](DriverVerb::Load::held) and is
    /// [`Ready`](LoadEvent::Ready) the wall-clock time at which its window opens. Its warm-up runs before
    /// that.
    ///
    /// # Errors
    /// Returns an error if the generator cannot be reached. A generator that has ended since is not an error:
    /// its end is an event.
    fn release(&mut self, generator: &str, window_opens_at: SystemTime) -> Result<(), EnvironmentError>;

    /// Maximum time that [`release`](Self::release) takes to reach a generator, even on a busy machine:
    /// windows open this much later.
    fn release_delay(&self) -> Duration {
        Duration::ZERO
    }

    /// Performs an action that a fleet requested ([`FleetProgress::Ask`]) and responds on the fleet's
    /// standard input, even on failure. May take as long as an istiod takes to start.
    fn act(&mut self, fleet: &str, ask: &FleetAsk);

    /// Waits at most `timeout` for the next event of any generator. Each started generator sends
    /// [`DriverEventKind::Ended`] once, as its last event.
    fn next_event(&mut self, timeout: Duration) -> Option<DriverEvent>;

    /// Asks a generator to end early and keep what it has measured. A generator that is stopped (frozen) is
    /// killed.
    fn interrupt(&mut self, generator: &str);

    /// Kills a generator that did not end when interrupted. It still sends [`DriverEventKind::Ended`].
    fn kill(&mut self, generator: &str);

    /// Reads the counters of every component and of the machine.
    ///
    /// # Errors
    /// Returns an error if a component is gone.
    fn snapshot(&mut self) -> Result<Snapshot, EnvironmentError>;

    /// CPU and memory of every component right now, for those who watch the trial; empty if reading takes more than looking at
    /// counters of this machine. Called at most once per second within the window.
    fn read_usage(&mut self) -> Vec<ComponentSnapshot> {
        Vec::new()
    }

    /// Adds components to the snapshot of the opening whose first counters within the window become known later. Called about
    /// twice per second until the window closes.
    fn complete_opening(&mut self, _opened: &mut Snapshot) {}

    /// Begins to sample the stacks of all components for a window of this length. They are stored beside the logs of the trial,
    /// by [`end_trial`](Self::end_trial).
    ///
    /// # Errors
    /// Returns an error if the profiler cannot be started.
    fn begin_profile(&mut self, _window: Duration) -> Result<(), EnvironmentError> {
        Ok(())
    }

    /// Ends the sampling, at the end of the window.
    fn end_profile(&mut self) {}

    /// Returns the first component that has failed. Cheap: may be called about once per second while load
    /// runs.
    fn health(&mut self, probe: HealthProbe) -> Option<ComponentFailure>;

    /// Ends a trial after its drivers: reads the counters again and returns the evidence. Unreadable counters
    /// become reasons why the path is not proven. Kills drivers that still run. Called once per trial, even
    /// if [`begin_trial`](Self::begin_trial) or [`start`](Self::start) failed.
    fn end_trial(&mut self, sent: &[DriverLoad]) -> TrialEvidence;

    /// Takes everything down.
    ///
    /// # Errors
    /// Returns an error if something could not be removed.
    fn finish(self: Box<Self>) -> Result<(), EnvironmentError>;
}

/// Thoroughness of [`Deployment::health`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HealthProbe {
    /// Finds exited components. Looks for stopped ones in turn, in a few at each call, so that polling costs little
    /// however many components there are: for use within the measured window.
    Polled,
    /// Finds exited and stopped components.
    Processes,
    /// Also finds components that run but do not respond. Takes seconds if one is unresponsive, and disturbs
    /// the others: only for use outside the measured window.
    Responses,
}

/// Failed component and its failure.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ComponentFailure {
    /// Name of the component.
    pub component: String,
    /// Failure as a phrase that continues after the name, such as `was ended by signal 9`.
    pub how: String,
}

/// Driver process to start: a load generator, or a fleet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DriverStart {
    /// Name of the driver in the topology.
    pub driver: String,
    /// Name of the process, unique in the trial: the driver's name if it has only one process.
    pub generator: String,
    /// Pod of the driver's workload that it runs in, counted from 0.
    pub pod: usize,
    /// Kind of process.
    pub verb: DriverVerb,
    /// Arguments of the verb, without those that the deployment adds: URL or istiods, certificates,
    /// kubeconfig, paths for results and events, and how it is held.
    pub arguments: Vec<Argument>,
}

/// Subcommand that a driver's process runs.
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
    /// URLs that a generator requests at `url`: one per query, or `url` itself without any. A fleet requests none.
    #[must_use]
    pub fn urls(&self, url: &str) -> Vec<String> {
        match self {
            Self::Load { queries, .. } if queries.is_empty() => vec![url.to_owned()],
            Self::Load { queries, .. } => queries.iter().map(|query| format!("{url}?{query}")).collect(),
            Self::Fleet => Vec::new(),
        }
    }

    /// True if it waits to be released.
    #[must_use]
    pub fn is_held(&self) -> bool {
        matches!(self, Self::Load { held: true, .. })
    }
}

/// Command-line argument of a driver.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Argument {
    /// Literal text.
    Text(String),
    /// Path of a file with this content, which the deployment provides to the driver.
    File {
        /// Text before the path, such as `@`.
        prefix: String,
        /// File name without directories.
        name: String,
        /// Bytes of the file.
        content: Vec<u8>,
    },
}

/// Event reported by a generator.
#[derive(Clone, Debug, PartialEq)]
pub struct DriverEvent {
    /// Name of the generator.
    pub generator: String,
    /// Kind and content of the event.
    pub kind: DriverEventKind,
}

/// Kinds of events.
#[derive(Clone, Debug, PartialEq)]
pub enum DriverEventKind {
    /// Progress of a load generator.
    Load(LoadEvent),
    /// Progress of a fleet.
    Fleet(FleetProgress),
    /// Human-readable line.
    Message(String),
    /// The generator has ended; this is its last event.
    Ended(Box<DriverEnd>),
}

/// How a generator ended.
#[derive(Clone, Debug, PartialEq)]
pub struct DriverEnd {
    /// Exit code; absent if a signal ended it.
    pub exit_code: Option<i32>,
    /// Its result, or the reason why there is none.
    pub result: Result<DriverResult, String>,
    /// Last lines of its output.
    pub last_lines: Vec<String>,
}

/// Result of a driver.
#[derive(Clone, Debug, PartialEq)]
pub enum DriverResult {
    /// Result of `meshmeter load`.
    Load(Box<LoadResult>),
    /// Result of `meshmeter fleet`.
    Fleet(Box<FleetResult>),
}

impl DriverResult {
    /// Result of the load; absent for a fleet.
    #[must_use]
    pub fn load(&self) -> Option<&LoadResult> {
        match self {
            Self::Load(result) => Some(result),
            Self::Fleet(_) => None,
        }
    }

    /// Result of the fleet; absent for a load.
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

/// Requests that a driver sent over a whole trial, warm-up included. The counters on the path are compared
/// with them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DriverLoad {
    /// Name of the driver in the topology.
    pub driver: String,
    /// Requests over the whole trial.
    pub sent: SentLoad,
}

/// Number of requests over each edge that follow from the drivers' loads.
#[must_use]
pub fn expected_calls(topology: &Topology, loads: &[DriverLoad]) -> BTreeMap<Call, f64> {
    let mut calls: BTreeMap<Call, f64> = BTreeMap::new();
    for load in loads {
        // Endless scripts are rejected before anything starts.
        let Ok(expected) = topology.expected(&load.driver) else { continue };
        for (call, requests) in expected.edges {
            *calls.entry(call).or_default() += load.sent.requests as f64 * requests;
        }
    }
    calls
}

/// Evidence collected in one trial, in addition to the snapshots.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrialEvidence {
    /// Result of path verification.
    pub path: PathProof,
    /// Requests counted by each workload that serves requests.
    pub services: Vec<ServiceCount>,
    /// Requests counted by each gateway over the whole trial, by name.
    pub gateways: BTreeMap<String, GatewayCounts>,
    /// Calls between services, counted by the callers; calls of drivers are in the drivers' results.
    pub edges: Vec<EdgeRecord>,
    /// Memory before and after the load and proxy footprint, by component.
    pub footprints: BTreeMap<String, Footprint>,
    /// Last log lines of components that failed.
    pub log_tails: BTreeMap<String, Vec<String>>,
    /// Suggested fixes for these failures.
    pub hints: Vec<String>,
    /// Notes on usable figures: how they were read, and what could not be read.
    pub notes: Vec<String>,
    /// Propagation time of the configuration; absent without a control plane.
    pub push: Option<ConfigurationPush>,
    /// Propagation of a further domain added after the load; absent without domains under a control plane.
    pub further_domain: Option<FurtherDomain>,
    /// Mesh programs that the deployment ran.
    pub versions: Vec<ComponentVersion>,
    /// Proxies configured by a control plane; absent if there are none.
    pub proxies: Option<ProxySetup>,
}

/// Requests that a workload served over a whole trial, warm-up included.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ServiceCount {
    /// Name of the workload.
    pub name: String,
    /// Namespace in the topology; empty if the topology has a single one.
    pub namespace: String,
    /// Number of pods.
    pub replicas: usize,
    /// Sum of the requests that its pods answered; absent if they could not be read.
    pub requests: Option<u64>,
    /// Names of the components that are its pods.
    pub components: Vec<String>,
}

/// Memory of a component outside the measured window, and the footprint that a proxy reports.
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
    pub holdings: Option<ProxyFootprint>,
}

impl Footprint {
    /// Copies these values into the usage of the component.
    pub fn add_to(self, component: &mut ComponentUsage) {
        component.memory_before_load_bytes = self.memory_before_load_bytes;
        component.memory_after_load_bytes = self.memory_after_load_bytes;
        component.memory_anonymous_before_load_bytes = self.memory_anonymous_before_load_bytes;
        component.memory_anonymous_after_load_bytes = self.memory_anonymous_after_load_bytes;
        component.holdings = self.holdings;
    }
}
