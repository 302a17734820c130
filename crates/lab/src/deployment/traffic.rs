//! Requests at gateways and at the drivers' targets, at both ends of the window. A gateway is a proxy in a
//! pod of its own whose L7 traffic is drivers' requests only.

use super::station::ProxyId;
use super::{Edge, LabDeployment, Parts};
use crate::observe;
use crate::running::{Proxy, RunningPod, RunningService};
use experiment::environment::{GatewaySnapshot, ServiceSnapshot};
use experiment::schema::GatewayCounts;
use experiment::topology::{Topology, Workload};
use mesh::concurrent::side_by_side;
use mesh::envoy::traffic::Traffic;
use mesh::proof::edge::Replica;
use mesh::proof::{CountedService, Seen};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug)]
pub(super) struct Gateway {
    proxy: ProxyId,
    namespace: String,
    targets: Vec<String>,
    traffic: Traffic,
}

pub(super) fn gateways(parts: &Parts, topology: &Topology) -> Vec<Gateway> {
    let of_workloads: BTreeSet<&str> = parts.pods.of_workloads().map(|running| running.pod.name()).collect();
    let has_own_pod = |id: ProxyId| !of_workloads.contains(parts.proxies[id].pod.as_str());
    let is_of_drivers = |id: ProxyId| {
        let mut edges = parts.edges.iter().filter(|edge| passes(edge, id));
        edges.all(|edge| !edge.drivers.is_empty())
    };
    let mut gateways: Vec<Gateway> = Vec::new();
    for edge in &parts.edges {
        for station in &edge.stations {
            let Some(traffic) = &station.evidence.traffic else { continue };
            if !matches!(station.evidence.seen, Seen::Requests(_)) {
                continue;
            }
            for id in station.proxies.iter().copied().filter(|id| has_own_pod(*id) && is_of_drivers(*id)) {
                if let Some(known) = gateways.iter_mut().find(|known| known.proxy == id) {
                    known.targets.push(edge.to.clone());
                    known.traffic = known.traffic.clone().and(traffic);
                } else {
                    gateways.push(Gateway {
                        proxy: id,
                        namespace: topology.workloads[edge.call.to].namespace.clone(),
                        targets: vec![edge.to.clone()],
                        traffic: traffic.clone(),
                    });
                }
            }
        }
    }
    gateways.iter_mut().for_each(|gateway| {
        gateway.targets.sort();
        gateway.targets.dedup();
    });
    gateways
}

fn passes(edge: &Edge, proxy: ProxyId) -> bool {
    edge.stations.iter().any(|station| station.proxies.contains(&proxy))
}

/// A component that counts requests in the window.
pub(super) enum Source<'a> {
    Gateway(&'a Gateway, &'a Proxy),
    Service(&'a Workload, &'a RunningPod, &'a RunningService),
}

enum Read {
    Gateway(GatewaySnapshot),
    Service(ServiceSnapshot),
}

/// Reads all sources in parallel, each with its own timestamp. Sources that do not respond are left out: the
/// measurement is usable without them.
pub(super) fn read(sources: Vec<Source<'_>>) -> (Vec<GatewaySnapshot>, Vec<ServiceSnapshot>) {
    let (mut gateways, mut services) = (Vec::new(), Vec::new());
    let read = side_by_side(sources, |source| match source {
        Source::Gateway(gateway, proxy) => gateway.read(proxy).map(Read::Gateway),
        Source::Service(workload, pod, service) => read_service(workload, pod, service).map(Read::Service),
    });
    for snapshot in read.into_iter().flatten() {
        match snapshot {
            Read::Gateway(gateway) => gateways.push(gateway),
            Read::Service(service) => services.push(service),
        }
    }
    (gateways, services)
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
            targets: self.targets.clone(),
            at,
            counters,
            downstream,
            upstream,
        })
    }
}

fn read_service(workload: &Workload, pod: &RunningPod, service: &RunningService) -> Option<ServiceSnapshot> {
    if service.container.failed().is_some() {
        return None;
    }
    let reading = service.counters.read_in_window().ok()?;
    Some(ServiceSnapshot {
        name: workload.name.clone(),
        namespace: workload.namespace.clone(),
        pod: pod.name.clone(),
        at: observe::now(),
        requests: *reading.counters.get(CountedService::REQUESTS)?,
    })
}

impl LabDeployment<'_> {
    /// Gateways and the drivers' targets. A target whose bytes prove a path is left out: it would count this
    /// query too.
    pub(super) fn sources(&self) -> Vec<Source<'_>> {
        let gateways = self.gateways.iter().map(|gateway| {
            let proxy = &self.parts.proxies[gateway.proxy];
            Source::Gateway(gateway, proxy)
        });
        let topology = &self.spec.topology;
        let targets: BTreeSet<usize> = topology.drivers.iter().map(|driver| driver.target).collect();
        let targets = targets.into_iter().filter(|_| !self.needs_service_counts());
        let services = targets.flat_map(|id| {
            let pods = self.parts.pods.workloads[id].pods.iter();
            pods.filter_map(move |pod| {
                Some(Source::Service(&topology.workloads[id], pod, pod.service.as_ref()?))
            })
        });
        gateways.chain(services).collect()
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
