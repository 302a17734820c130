//! Requests at gateways and at the drivers' targets, at both ends of the window. A gateway is a proxy in a
//! pod of its own whose L7 traffic is drivers' requests only.

use super::station::{ProxyId, Station};
use super::{Edge, LabDeployment};
use crate::observe;
use crate::running::{IN_WINDOW_TIMEOUT, Pods, Proxy, RunningPod};
use experiment::environment::{GatewaySnapshot, ServiceSnapshot};
use experiment::topology::{Topology, Workload};
use mesh::concurrent::side_by_side;
use mesh::envoy::traffic::Traffic;
use mesh::proof::edge::Replica;
use mesh::proof::{CountedService, Seen};
use results::GatewayCounts;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug)]
pub(super) struct Gateway {
    proxy: ProxyId,
    namespace: String,
    targets: BTreeSet<String>,
    traffic: Traffic,
}

pub(super) fn gateways(pods: &Pods, proxies: &[Proxy], edges: &[Edge], topology: &Topology) -> Vec<Gateway> {
    let of_workloads: BTreeSet<&str> = pods.of_workloads().map(|running| running.pod.name()).collect();
    let has_own_pod = |id: ProxyId| !of_workloads.contains(proxies[id].pod.as_str());
    let is_of_drivers = |id: ProxyId| {
        let mut edges = edges.iter().filter(|edge| passes(edge, id));
        edges.all(|edge| !edge.drivers.is_empty())
    };
    let mut gateways: Vec<Gateway> = Vec::new();
    for (edge, Station { proxies, evidence, .. }) in
        edges.iter().flat_map(|edge| edge.stations.iter().map(move |station| (edge, station)))
    {
        let (Some(traffic), Seen::Requests(_)) = (&evidence.traffic, &evidence.seen) else { continue };
        for id in proxies.iter().copied().filter(|id| has_own_pod(*id) && is_of_drivers(*id)) {
            if let Some(known) = gateways.iter_mut().find(|known| known.proxy == id) {
                known.targets.insert(edge.to.clone());
                known.traffic = known.traffic.clone().and(traffic);
            } else {
                gateways.push(Gateway {
                    proxy: id,
                    namespace: topology.workloads[edge.call.to].namespace.clone(),
                    targets: BTreeSet::from([edge.to.clone()]),
                    traffic: traffic.clone(),
                });
            }
        }
    }
    gateways
}

fn passes(edge: &Edge, proxy: ProxyId) -> bool {
    edge.stations.iter().any(|station| station.proxies.contains(&proxy))
}

/// Reads the gateways in parallel, each with its own timestamp. Those that do not respond are left out: the
/// measurement is usable without them.
pub(super) fn read_gateways(gateways: &[Gateway], proxies: &[Proxy]) -> Vec<GatewaySnapshot> {
    let read = side_by_side(gateways, |gateway| gateway.read(&proxies[gateway.proxy]));
    read.into_iter().flatten().collect()
}

/// Reads the drivers' targets, as [`read_gateways`] does with gateways.
pub(super) fn read_targets(targets: Vec<(&Workload, &RunningPod)>) -> Vec<ServiceSnapshot> {
    side_by_side(targets, |(workload, pod)| read_target(workload, pod)).into_iter().flatten().collect()
}

impl Gateway {
    fn read(&self, proxy: &Proxy) -> Option<GatewaySnapshot> {
        if proxy.container.failed().is_some() {
            return None;
        }
        let admin = proxy.counters.admin()?;
        let counters = self.traffic.read_counters(admin).ok()?;
        // A proxy that is out of CPU responds only when it runs again, and does not count anything before.
        let at = observe::now();
        let durations = self.traffic.read_durations(admin, &counters).ok().flatten();
        let (downstream, upstream) = durations.map(|read| (read.downstream, read.upstream)).unzip();
        Some(GatewaySnapshot {
            name: proxy.name.clone(),
            namespace: self.namespace.clone(),
            targets: self.targets.iter().cloned().collect(),
            at,
            counters,
            downstream,
            upstream,
        })
    }
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

    /// Requests at each gateway over the whole trial, by gateway name. Gateways that could not be read are
    /// left out.
    pub(super) fn gateway_counts(&self, replicas: &[Replica]) -> BTreeMap<String, GatewayCounts> {
        let counts = self.gateways.iter().filter_map(|gateway| {
            let Replica { name, before, after } = &replicas[gateway.proxy];
            let [before, after] =
                [before, after.as_ref().ok()?].map(|counters| gateway.traffic.counted(counters));
            Some((name.clone(), after.counts.since(&before.counts)))
        });
        counts.collect()
    }
}
