//! Counters of services in a trial: requests to them and, for nodes of a graph, the calls that they made.

use super::calls::Calls;
use super::place::{Edge, Place, Readings, need_services};
use crate::Result;
use crate::proof::edge::Sent;
use crate::proof::{CallCounters, CountedService};
use crate::service::{CallReading, ServiceReading};
use experiment::environment::deploy::{DriverLoad, ServiceCount, expected_calls};
use experiment::environment::{DeploymentSpec, EnvironmentError};
use experiment::topology::WorkloadId;
use results::EdgeRecord;
use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

/// Maximum time that calls may still be under way after the drivers have ended.
const AT_REST_TIMEOUT: Duration = Duration::from_secs(5);

/// Calls of a service over an edge, summed over its pods; absent if drivers use the edge.
pub(super) type CallsOnEdge = Option<Result<Calls, String>>;

/// Requests over an edge, and the counts of the callee's pods.
pub(super) type Counted = (Sent, Vec<CountedService>);

/// Readings of all pods with a service, by the pod's name.
#[derive(Debug, Default)]
pub(super) struct Services {
    /// Pods whose counters could not be read are missing.
    before: BTreeMap<String, ServiceReading>,
    /// Of nodes, at the opening of the window; absent until it opens.
    opening: Option<BTreeMap<String, ServiceReading>>,
    after: Readings,
}

impl Services {
    pub fn read_before(place: &impl Place) -> Result<Self> {
        let is_needed = needs_counts(place) || has_nodes(place.spec());
        let mut before = BTreeMap::new();
        for (name, reading) in place.read_services() {
            match reading {
                Ok(reading) => drop(before.insert(name, reading)),
                Err(reason) if is_needed => {
                    let operation = format!("read the counters of service {name} before the trial");
                    return Err(EnvironmentError::new(operation, reason));
                }
                // These counts show what services did; no proof depends on them.
                Err(_) => {}
            }
        }
        Ok(Self { before, ..Self::default() })
    }

    /// Reads the nodes if the window is not open yet.
    pub fn read_opening(&mut self, place: &impl Place) {
        self.opening.get_or_insert_with(|| place.read_in_window(&nodes(place.spec())));
    }

    /// Reads all services. For nodes it waits until their calls have ended, at most [`AT_REST_TIMEOUT`].
    pub fn read_at_rest(&mut self, place: &impl Place) {
        let deadline = Instant::now() + AT_REST_TIMEOUT;
        let mut readings = place.read_services();
        while has_nodes(place.spec()) && Instant::now() < deadline && !place.is_stopped() {
            thread::sleep(place.pace().rest_interval);
            let before = progress(&readings);
            readings = place.read_services();
            // A request on its way between two nodes is in neither node's count.
            if progress(&readings) == before && before.1 == 0 {
                break;
            }
        }
        self.after = readings;
    }

    pub fn read_again(&mut self, place: &impl Place) {
        self.after = place.read_services();
    }

    /// One entry per edge.
    pub fn calls(&self, place: &impl Place) -> Vec<CallsOnEdge> {
        place.edges().iter().map(|edge| self.calls_on(place.spec(), edge)).collect()
    }

    fn calls_on(&self, spec: &DeploymentSpec, edge: &Edge) -> CallsOnEdge {
        let caller = &spec.topology.workloads[edge.call.from];
        caller.script()?;
        let calls = caller.pod_names().map(|name| {
            let named = |reason: &str| {
                if caller.replicas == 1 { reason.to_owned() } else { format!("{name}: {reason}") }
            };
            let before = self.before.get(&name);
            let before = before.ok_or_else(|| named("its counters before the trial are not known"))?;
            let after = self.after.get(&name).ok_or_else(|| named("it is gone"))?;
            let after = after.as_ref().map_err(|reason| named(reason))?;
            // An edge that was never called is in neither reading.
            let none = CallReading::default();
            let opening = self.opening.as_ref().and_then(|readings| readings.get(&name));
            let [before, after] =
                [before, after].map(|reading| reading.calls.get(&edge.counted_as).unwrap_or(&none));
            let opening = opening.map(|reading| reading.calls.get(&edge.counted_as).unwrap_or(&none));
            Calls::between(before, opening, after)
                .ok_or_else(|| named("it started anew during the trial: its counters fell"))
        });
        Some(calls.reduce(|sum, own| Ok(sum?.and(own?))).unwrap_or_else(|| Ok(Calls::default())))
    }

    /// Requests sent over each edge, with the callee's own count if that is needed.
    pub fn counted(&self, place: &impl Place, sent: &[DriverLoad], calls: &[CallsOnEdge]) -> Vec<Counted> {
        let topology = &place.spec().topology;
        let expected = expected_calls(topology, sent);
        let edges = place.edges().iter().zip(calls).map(|(edge, calls)| {
            let sent = match calls {
                Some(calls) => Sent::Calls {
                    counted: calls.as_ref().map(|calls| calls.counters).map_err(Clone::clone),
                    expected: expected.get(&edge.call).copied().unwrap_or_default(),
                },
                None => {
                    let own = sent.iter().filter(|load| edge.drivers.contains(&load.driver));
                    Sent::Load(own.map(|load| &load.sent).sum())
                }
            };
            let is_needed = place.proves_all_services()
                || topology.workloads[edge.call.to].script().is_some()
                || edge.stations.iter().any(|station| station.evidence.needs_service());
            let services = if is_needed { self.of_workload(place.spec(), edge.call.to) } else { Vec::new() };
            (sent, services)
        });
        edges.collect()
    }

    fn of_workload(&self, spec: &DeploymentSpec, id: WorkloadId) -> Vec<CountedService> {
        let pods = spec.topology.workloads[id].pod_names();
        let counted = pods.filter_map(|name| {
            let before = self.before.get(&name);
            let after = self.after.get(&name)?.as_ref();
            Some(CountedService {
                before: before.map(|before| before.counters.clone()).unwrap_or_default(),
                after: after.map(|after| after.counters.clone()).map_err(Clone::clone),
            })
        });
        counted.collect()
    }

    /// Requests counted by each workload that serves.
    pub fn counts(&self, spec: &DeploymentSpec) -> Vec<ServiceCount> {
        let workloads = spec.topology.workloads.iter().enumerate();
        let counts = workloads.filter(|(_, workload)| workload.serves()).map(|(id, workload)| {
            let components: Vec<String> = workload.pod_names().collect();
            let known = components.iter().all(|pod| self.before.contains_key(pod));
            let counted = self.of_workload(spec, id);
            let counts_requests = |service: &CountedService| {
                service.after.as_ref().is_ok_and(|after| after.contains_key(CountedService::REQUESTS))
            };
            let is_known = known && counted.iter().all(counts_requests);
            let requests = counted.iter().map(|service| service.proof().requests_received).sum();
            ServiceCount {
                name: workload.name.clone(),
                namespace: workload.namespace.clone(),
                replicas: workload.replicas,
                requests: is_known.then_some(requests),
                components,
            }
        });
        counts.collect()
    }
}

/// Records of the calls between services.
pub(super) fn edge_records(edges: &[Edge], calls: Vec<CallsOnEdge>) -> Vec<EdgeRecord> {
    edges.iter().zip(calls).filter_map(|(edge, calls)| Some(calls?.ok()?.record(edge))).collect()
}

fn needs_counts(place: &impl Place) -> bool {
    place.proves_all_services() || need_services(place.edges())
}

fn nodes(spec: &DeploymentSpec) -> Vec<WorkloadId> {
    let workloads = spec.topology.workloads.iter().enumerate();
    workloads.filter(|(_, workload)| workload.script().is_some()).map(|(id, _)| id).collect()
}

fn has_nodes(spec: &DeploymentSpec) -> bool {
    !nodes(spec).is_empty()
}

/// Requests and calls so far, and the number of calls under way.
fn progress(readings: &Readings) -> (u64, u64) {
    let readings = || readings.values().flatten();
    let calls = || readings().flat_map(|reading| reading.calls.values()).map(|calls| &calls.counters);
    let requests = readings().filter_map(|reading| reading.counters.get(CountedService::REQUESTS));
    let requests: u64 = requests.chain(calls().map(|calls| &calls.sent)).sum();
    (requests, calls().map(CallCounters::under_way).sum())
}
