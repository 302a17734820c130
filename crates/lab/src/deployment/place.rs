//! Readings for the course of a trial.

use super::LabDeployment;
use crate::liveness;
use crate::observe;
use crate::running::{RunningPod, RunningService, failure};
use experiment::environment::{ComponentMemory, DeploymentSpec, ServiceSnapshot, error_chain};
use experiment::topology::{Workload, WorkloadId};
use mesh::admin::AdminCause;
use mesh::concurrent::side_by_side;
use mesh::proof::CountedService;
use mesh::service::ServiceReading;
use mesh::trial::course::{Course, KeepsCourse};
use mesh::trial::place::{
    Edge, IN_WINDOW_TIMEOUT, Pace, Place, ProxyId, Readings, RunningProxy, response_or_reason,
};
use results::Role;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

impl Place for LabDeployment<'_> {
    fn spec(&self) -> &DeploymentSpec {
        &self.spec
    }

    fn edges(&self) -> &[Edge] {
        &self.edges
    }

    fn proxies(&self) -> Vec<&dyn RunningProxy> {
        self.proxies.iter().map(|proxy| proxy as &dyn RunningProxy).collect()
    }

    fn read_services(&self) -> Readings {
        let read =
            side_by_side(self.pods.services(), |(running, service): (&RunningPod, &RunningService)| {
                let query = || {
                    service.read_counters().map_err(|error| {
                        if matches!(error.cause, AdminCause::TimedOut(_)) {
                            liveness::mark_unresponsive(&service.container, None);
                        }
                        error_chain(&error.cause)
                    })
                };
                (running.name.clone(), response_or_reason(|| failure(&service.container), query))
            });
        read.into_iter().collect()
    }

    fn read_in_window(&self, workloads: &[WorkloadId]) -> BTreeMap<String, ServiceReading> {
        let pods = workloads.iter().flat_map(|id| &self.pods.workloads[*id].pods);
        let deadline = Instant::now() + IN_WINDOW_TIMEOUT;
        let read = side_by_side(pods, |pod: &RunningPod| {
            let remaining = deadline.saturating_duration_since(Instant::now());
            let reading = (!remaining.is_zero()).then(|| pod.read_counters_within(remaining))??;
            Some((pod.name.clone(), reading))
        });
        read.into_iter().flatten().collect()
    }

    fn pods_behind(&self, _proxy: ProxyId, service: WorkloadId) -> Vec<(&str, &str)> {
        let pods = self.pods.workloads[service].pods.iter();
        let identities = pods.filter_map(|running| running.identity.as_ref());
        identities.map(|own| (own.namespace.as_str(), own.pod.as_str())).collect()
    }

    fn memory(&self) -> BTreeMap<String, ComponentMemory> {
        let watched = self.watched().into_iter().filter(|watched| watched.role != Role::Generator);
        watched.map(|watched| (watched.name.clone(), watched.memory())).collect()
    }

    fn pace(&self) -> Pace {
        Pace {
            settled_timeout: Duration::from_millis(500),
            settled_interval: Duration::from_millis(10),
            rest_interval: Duration::from_millis(20),
        }
    }

    fn is_stopped(&self) -> bool {
        self.lab.lab.stop_requested()
    }

    fn log_dir(&self) -> &Path {
        &self.trial.log_dir
    }
}

impl KeepsCourse for LabDeployment<'_> {
    fn course(&mut self) -> &mut Course {
        &mut self.course
    }
}

impl LabDeployment<'_> {
    /// Pods of the drivers' targets. They are left out if their bytes prove a path: they would count the query
    /// too.
    pub(super) fn targets(&self) -> Vec<(&Workload, &RunningPod)> {
        if self.needs_service_counts() {
            return Vec::new();
        }
        let topology = &self.spec.topology;
        let targets: BTreeSet<usize> = topology.drivers.iter().map(|driver| driver.target).collect();
        let pods =
            |id: usize| self.pods.workloads[id].pods.iter().map(move |pod| (&topology.workloads[id], pod));
        targets.into_iter().flat_map(pods).collect()
    }
}

/// Reads the drivers' targets in parallel, each with its own timestamp. Those that do not respond are left out.
pub(super) fn read_targets(targets: Vec<(&Workload, &RunningPod)>) -> Vec<ServiceSnapshot> {
    side_by_side(targets, |(workload, pod)| read_target(workload, pod)).into_iter().flatten().collect()
}

fn read_target(workload: &Workload, pod: &RunningPod) -> Option<ServiceSnapshot> {
    let reading = pod.read_counters_within(IN_WINDOW_TIMEOUT)?;
    Some(ServiceSnapshot {
        name: workload.name.clone(),
        namespace: workload.namespace.clone(),
        pod: pod.name.clone(),
        at: observe::now(),
        requests: *reading.counters.get(CountedService::REQUESTS)?,
    })
}
