//! Interface of the course of a trial to the place where it runs.

use crate::admin::AdminError;
use crate::proof::Evidence;
use crate::proxy::CounterSource;
use crate::service::ServiceReading;
use crate::spans::SentSpans;
use experiment::environment::{ComponentMemory, DeploymentSpec, error_chain};
use experiment::topology::{Call, Topology, WorkloadId};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Timeout for reading services while load runs. Slow ones must not delay the monitoring of the others.
pub const IN_WINDOW_TIMEOUT: Duration = Duration::from_secs(1);

/// Index of a proxy in [`Place::proxies`].
pub type ProxyId = usize;

/// Readings of services by the names of their pods, or why they could not be read.
pub type Readings = BTreeMap<String, Result<ServiceReading, String>>;

/// A running deployment.
pub trait Place {
    fn spec(&self) -> &DeploymentSpec;

    /// All calls of the topology.
    fn edges(&self) -> &[Edge];

    fn proxies(&self) -> Vec<&dyn RunningProxy>;

    /// Counters of the services in all pods that have one.
    fn read_services(&self) -> Readings;

    /// Counters of the pods of these workloads while load runs. Those that cannot be read in time are missing.
    fn read_in_window(&self, workloads: &[WorkloadId]) -> BTreeMap<String, ServiceReading>;

    /// Namespaces and names of the pods of a service that a proxy serves.
    fn pods_behind(&self, proxy: ProxyId, service: WorkloadId) -> Vec<(&str, &str)>;

    /// Memory of each component except the drivers, by its name; empty if it cannot be read at a given moment.
    fn memory(&self) -> BTreeMap<String, ComponentMemory>;

    /// True if every service is held against its callers, also those whose requests proxies count.
    fn proves_all_services(&self) -> bool {
        false
    }

    fn pace(&self) -> Pace;

    /// True once the user has stopped the run.
    fn is_stopped(&self) -> bool;

    /// Directory of the trial's logs.
    fn log_dir(&self) -> &Path;
}

/// Times of the readings after the load.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Time that proxies may take to read what was sent to them.
    pub settled_timeout: Duration,
    pub settled_interval: Duration,
    /// Time between two readings of services that still call each other.
    pub rest_interval: Duration,
}

/// A proxy of a running deployment.
pub trait RunningProxy: Sync {
    /// Name in results.
    fn name(&self) -> &str;

    fn source(&self) -> &dyn CounterSource;

    /// Its failure, as a reason; absent if it runs. A failed proxy is not queried: it would respond late
    /// or never, and this says more.
    fn failure(&self) -> Option<String> {
        None
    }

    /// Reason why its counters could not be read.
    fn reason(&self, error: &AdminError) -> String {
        error_chain(&error.cause)
    }

    /// Spans that it sends if requests are traced; absent if it sends none.
    fn spans(&self) -> Option<&SentSpans> {
        None
    }
}

impl dyn RunningProxy + '_ {
    /// Its counters, or why they are missing.
    pub(super) fn read_counters(&self) -> Result<BTreeMap<String, u64>, String> {
        self.response_or_reason(|| self.source().counters().map_err(|error| self.reason(&error)))
    }

    /// Response to a query, or the reason for none.
    pub(super) fn response_or_reason<T>(
        &self,
        query: impl FnOnce() -> Result<T, String>,
    ) -> Result<T, String> {
        response_or_reason(|| self.failure(), query)
    }
}

/// Response of a component to a query, or the reason for none. A failed component is not queried.
pub fn response_or_reason<T>(
    failure: impl Fn() -> Option<String>,
    query: impl FnOnce() -> Result<T, String>,
) -> Result<T, String> {
    match failure() {
        Some(how) => Err(how),
        None => query().map_err(|reason| failure().unwrap_or(reason)),
    }
}

/// A call, with the proxies on its path.
#[derive(Debug)]
pub struct Edge {
    pub call: Call,
    /// Qualified names of its ends.
    pub from: String,
    pub to: String,
    /// Name of the callee in the counters of its caller.
    pub counted_as: String,
    /// Names of the drivers that make the call.
    pub drivers: Vec<String>,
    /// In order from caller to callee.
    pub stations: Vec<Station>,
}

impl Edge {
    /// An edge whose caller counts it under the callee's qualified name.
    pub fn new(topology: &Topology, call: Call, stations: Vec<Station>) -> Self {
        let [from, to] = [call.from, call.to].map(|id| topology.workloads[id].qualified_name());
        let drivers = topology.drivers.iter();
        let drivers = drivers.filter(|driver| Call { from: driver.at, to: driver.target } == call);
        let drivers = drivers.map(|driver| driver.name.clone()).collect();
        Self { call, from, counted_as: to.clone(), to, drivers, stations }
    }
}

/// A proxy on the path of a call, or one proxy per replica if several share its requests.
#[derive(Clone, Debug)]
pub struct Station {
    pub name: String,
    pub proxies: Vec<ProxyId>,
    /// The end of the path, if a proxy is at both.
    pub side: Option<&'static str>,
    pub evidence: Evidence,
}

/// True if some path is proven by the services' own counters alone.
pub fn need_services(edges: &[Edge]) -> bool {
    edges.iter().flat_map(|edge| &edge.stations).any(|station| station.evidence.needs_service())
}
