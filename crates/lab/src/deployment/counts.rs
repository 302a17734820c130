//! Counts that services keep in a trial: requests to them and, for nodes of a graph, the calls that they
//! made.

use super::calls::Calls;
use super::{Edge, LabDeployment};
use crate::Result;
use crate::liveness;
use crate::running::{IN_WINDOW_TIMEOUT, RunningPod, RunningService, response_or_reason};
use experiment::environment::deploy::{DriverLoad, ServiceCount, expected_calls};
use experiment::environment::{EnvironmentError, error_chain};
use experiment::topology::WorkloadId;
use mesh::admin::AdminCause;
use mesh::concurrent::side_by_side;
use mesh::proof::edge::Sent;
use mesh::proof::{CallCounters, CountedService};
use mesh::service::{CallReading, ServiceReading};
use results::EdgeRecord;
use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

/// Maximum time that calls may still be under way after the drivers have ended.
const AT_REST_TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A reading per pod with a service, by the pod's name.
pub(super) type Readings = BTreeMap<String, Result<ServiceReading, String>>;

/// Calls of a service over an edge, summed over its pods; absent if drivers use the edge.
pub(super) type CallsOnEdge = Option<Result<Calls, String>>;

impl LabDeployment<'_> {
    pub(super) fn read_services_before(&mut self) -> Result<()> {
        let services = side_by_side(self.pods.services(), |(running, service)| {
            (running.name.clone(), service.read_counters())
        });
        for (name, counters) in services {
            match counters {
                Ok(counters) => drop(self.trial.services_before.insert(name, counters)),
                Err(error) if self.needs_service_counts() || self.has_nodes() => {
                    let operation = format!("read the counters of service {name} before the trial");
                    return Err(EnvironmentError::new(operation, error));
                }
                // These counts show what services did; no proof depends on them.
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Counters of all services. For nodes it waits until their calls have ended, at most
    /// [`AT_REST_TIMEOUT`].
    pub(super) fn services_at_rest(&self) -> Readings {
        let deadline = Instant::now() + AT_REST_TIMEOUT;
        let mut readings = self.read_services();
        while self.has_nodes() && Instant::now() < deadline && !self.lab.lab.stop_requested() {
            thread::sleep(POLL_INTERVAL);
            let before = progress(&readings);
            readings = self.read_services();
            // A request on its way between two nodes is in neither node's count.
            if progress(&readings) == before && before.1 == 0 {
                break;
            }
        }
        readings
    }

    fn read_services(&self) -> Readings {
        let read =
            side_by_side(self.pods.services(), |(running, service): (&RunningPod, &RunningService)| {
                let counters = response_or_reason(&service.container, || {
                    service.read_counters().map_err(|error| {
                        if matches!(error.cause, AdminCause::TimedOut(_)) {
                            liveness::mark_unresponsive(&service.container, None);
                        }
                        error_chain(&error.cause)
                    })
                });
                (running.name.clone(), counters)
            });
        read.into_iter().collect()
    }

    /// Readings of the nodes at the opening of the window, by pod. Those that cannot be read in time are missing.
    pub(super) fn nodes_at_opening(&self) -> BTreeMap<String, ServiceReading> {
        let topology = &self.spec.topology;
        let nodes = topology.workloads.iter().enumerate().filter(|(_, workload)| workload.script().is_some());
        let pods = nodes.flat_map(|(id, _)| &self.pods.workloads[id].pods);
        let deadline = Instant::now() + IN_WINDOW_TIMEOUT;
        let read = side_by_side(pods, |pod: &RunningPod| {
            let remaining = deadline.saturating_duration_since(Instant::now());
            let reading = (!remaining.is_zero()).then(|| pod.read_counters_within(remaining))??;
            Some((pod.name.clone(), reading))
        });
        read.into_iter().flatten().collect()
    }

    fn has_nodes(&self) -> bool {
        self.spec.topology.workloads.iter().any(|workload| workload.script().is_some())
    }

    /// Requests sent over each edge, with the callee's own count if that is needed.
    pub(super) fn counted_edges(
        &self,
        sent: &[DriverLoad],
        calls: &[CallsOnEdge],
        after: &Readings,
    ) -> Vec<(Sent, Vec<CountedService>)> {
        let topology = &self.spec.topology;
        let expected = expected_calls(topology, sent);
        let edges = self.edges.iter().zip(calls).map(|(edge, calls)| {
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
            let callee = &topology.workloads[edge.call.to];
            let is_needed = callee.script().is_some()
                || edge.stations.iter().any(|station| station.evidence.needs_service());
            let services = if is_needed { self.counted_services(edge.call.to, after) } else { Vec::new() };
            (sent, services)
        });
        edges.collect()
    }

    fn counted_services(&self, workload: WorkloadId, after: &Readings) -> Vec<CountedService> {
        let pods = self.pods.workloads[workload].pods.iter();
        pods.filter_map(|running| {
            let before = self.trial.services_before.get(&running.name);
            let after = after.get(&running.name)?.as_ref();
            Some(CountedService {
                before: before.map(|before| before.counters.clone()).unwrap_or_default(),
                after: after.map(|after| after.counters.clone()).map_err(Clone::clone),
            })
        })
        .collect()
    }

    /// One entry per edge of the deployment.
    pub(super) fn calls(&self, after: &Readings) -> Vec<CallsOnEdge> {
        self.edges.iter().map(|edge| self.calls_on(edge, after)).collect()
    }

    fn calls_on(&self, edge: &Edge, after: &Readings) -> CallsOnEdge {
        self.spec.topology.workloads[edge.call.from].script()?;
        let pods = &self.pods.workloads[edge.call.from].pods;
        let calls = pods.iter().map(|running| {
            let name = &running.name;
            let named =
                |reason: &str| if pods.len() == 1 { reason.to_owned() } else { format!("{name}: {reason}") };
            let before = self.trial.services_before.get(name);
            let before = before.ok_or_else(|| named("its counters before the trial are not known"))?;
            let after = after.get(name).ok_or_else(|| named("it is gone"))?;
            let after = after.as_ref().map_err(|reason| named(reason))?;
            // An edge that was never called is in neither reading.
            let none = CallReading::default();
            let opening = self.trial.nodes_at_opening.as_ref().and_then(|readings| readings.get(name));
            let [before, after] = [before, after].map(|reading| reading.calls.get(&edge.to).unwrap_or(&none));
            let opening = opening.map(|reading| reading.calls.get(&edge.to).unwrap_or(&none));
            Calls::between(before, opening, after)
                .ok_or_else(|| named("it started anew during the trial: its counters fell"))
        });
        Some(calls.reduce(|sum, own| Ok(sum?.and(own?))).unwrap_or_else(|| Ok(Calls::default())))
    }

    pub(super) fn edge_records(&self, calls: Vec<CallsOnEdge>) -> Vec<EdgeRecord> {
        let edges = self.edges.iter().zip(calls);
        edges.filter_map(|(edge, calls)| Some(calls?.ok()?.record(edge))).collect()
    }

    pub(super) fn service_counts(&self, after: &Readings) -> Vec<ServiceCount> {
        let workloads = self.spec.topology.workloads.iter().enumerate();
        let counts = workloads.filter(|(_, workload)| workload.serves()).map(|(id, workload)| {
            let components: Vec<String> = workload.pod_names().collect();
            let known = components.iter().all(|pod| self.trial.services_before.contains_key(pod));
            let counted = self.counted_services(id, after);
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

/// Requests and calls so far, and the number of calls under way.
fn progress(readings: &Readings) -> (u64, u64) {
    let readings = || readings.values().flatten();
    let calls = || readings().flat_map(|reading| reading.calls.values()).map(|calls| &calls.counters);
    let requests = readings().filter_map(|reading| reading.counters.get(CountedService::REQUESTS));
    let requests: u64 = requests.chain(calls().map(|calls| &calls.sent)).sum();
    (requests, calls().map(CallCounters::under_way).sum())
}
