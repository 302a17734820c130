//! The pods of a deployment: those of its workloads, and those of proxies with a pod of their own.

use super::database::DATABASE_PORT;
use super::service::{READY_TIMEOUT, RunningService};
use crate::Result;
use crate::pod::Pod;
use experiment::topology::WorkloadId;
use mesh::concurrent::try_side_by_side;
use mesh::kubernetes::object_ref::ObjectRef;
use mesh::service::ServiceReading;
use mesh::trial::place::ProxyId;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

/// All pods of a deployment. Dropping it takes them down in parallel.
#[derive(Debug, Default)]
pub(crate) struct Pods {
    pub workloads: Vec<RunningWorkload>,
    /// Pods of gateways, waypoints and node proxies.
    pub infrastructure: Vec<Pod>,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum PodPlace {
    Workload(WorkloadId, usize),
    Infrastructure(usize),
}

#[derive(Debug, Default)]
pub(crate) struct RunningWorkload {
    pub pods: Vec<RunningPod>,
    /// Proxies of the data plane, one per pod, or one for all pods of the node.
    pub proxies: Vec<ProxyId>,
    /// The workload as described to the API of a control plane.
    pub described: Option<mesh::kubernetes::workloads::Workload>,
    /// Address of its Service; absent until it is assigned, and without a control plane.
    pub service_address: Option<Ipv4Addr>,
}

#[derive(Clone, Debug)]
pub(crate) struct PodIdentity {
    pub pod: String,
    /// Service account of the workload, also its label `app`.
    pub account: String,
    pub namespace: String,
    pub labels: BTreeMap<String, String>,
}

impl PodIdentity {
    pub fn for_workload(workload: &mesh::kubernetes::workloads::Workload) -> impl Iterator<Item = Self> + '_ {
        workload.replicas.iter().map(|replica| Self {
            pod: replica.pod.clone(),
            account: workload.name.clone(),
            namespace: workload.namespace.clone(),
            labels: workload.labels.clone(),
        })
    }

    pub fn object_ref(&self) -> ObjectRef {
        ObjectRef::new("v1", "Pod", Some(&self.namespace), &self.pod)
    }
}

#[derive(Debug)]
pub(crate) struct RunningPod {
    pub pod: Pod,
    /// Name of the pod, also of the service in it as a component: `server`, or `pair-1/server-2`.
    pub name: String,
    pub identity: Option<PodIdentity>,
    /// The service; absent if the pod runs none.
    pub service: Option<RunningService>,
}

impl RunningPod {
    /// Counters of its service while load runs; `None` if it has none, or if they cannot be read in time.
    pub fn read_counters_within(&self, timeout: Duration) -> Option<ServiceReading> {
        let service = self.service.as_ref().filter(|service| service.container.failed_or_died().is_none())?;
        service.read_counters_within(timeout).ok()
    }
}

impl Pods {
    pub fn all(&self) -> impl Iterator<Item = &Pod> {
        self.of_workloads().map(|running| &running.pod).chain(&self.infrastructure)
    }

    pub fn of_workloads(&self) -> impl Iterator<Item = &RunningPod> {
        self.workloads.iter().flat_map(|workload| &workload.pods)
    }

    pub fn services(&self) -> impl Iterator<Item = (&RunningPod, &RunningService)> {
        self.of_workloads().filter_map(|running| Some((running, running.service.as_ref()?)))
    }

    /// Waits until every service listens, and nodes have filled the collections that they read.
    pub fn wait_for_services(&self) -> Result<()> {
        let databases = || self.services().filter(|(_, service)| service.port == DATABASE_PORT);
        try_side_by_side(self.services(), |(running, service)| {
            running.pod.wait_until_listening(&service.container, service.port, READY_TIMEOUT)?;
            let what = format!("{} has filled the collections that it reads", running.name);
            running.pod.wait_until(&service.container, &what, READY_TIMEOUT, || {
                databases()
                    .try_for_each(|(_, database)| database.container.check(format!("wait until {what}")))?;
                service.is_ready()
            })
        })
        .map(drop)
    }

    pub fn select(&mut self, places: &[PodPlace]) -> Vec<&mut Pod> {
        let workloads = self.workloads.iter_mut().enumerate().flat_map(|(id, workload)| {
            let pods = workload.pods.iter_mut().enumerate();
            pods.map(move |(replica, running)| (PodPlace::Workload(id, replica), &mut running.pod))
        });
        let infrastructure = self.infrastructure.iter_mut().enumerate();
        let infrastructure = infrastructure.map(|(index, pod)| (PodPlace::Infrastructure(index), pod));
        let mut all: BTreeMap<PodPlace, &mut Pod> = workloads.chain(infrastructure).collect();
        places.iter().map(|place| all.remove(place).expect("it is there, and asked for once")).collect()
    }

    /// Takes all pods down. If something cannot be removed, the rest is still removed.
    pub fn close(&mut self) -> Result<()> {
        let workloads = std::mem::take(&mut self.workloads);
        let of_workloads =
            workloads.into_iter().flat_map(|workload| workload.pods).map(|running| running.pod);
        let pods: Vec<Pod> = of_workloads.chain(std::mem::take(&mut self.infrastructure)).collect();
        Pod::close_all(pods)
    }
}

impl Drop for Pods {
    fn drop(&mut self) {
        // Anything that cannot be removed here is removed when the lab's first process ends.
        let _ = self.close();
    }
}
