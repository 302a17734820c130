//! Requests at gateways, at both ends of the window and over the whole trial. A gateway is a proxy in a pod of
//! its own whose L7 traffic is drivers' requests only.

use super::place::{Edge, ProxyId, RunningProxy, Station};
use crate::concurrent::side_by_side;
use crate::envoy::traffic::Traffic;
use crate::proof::Seen;
use crate::proof::edge::Replica;
use experiment::environment::GatewaySnapshot;
use experiment::topology::Topology;
use results::GatewayCounts;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A gateway, and the statistics of its traffic.
#[derive(Debug)]
pub struct Gateway {
    proxy: ProxyId,
    namespace: String,
    targets: BTreeSet<String>,
    traffic: Traffic,
}

/// Clock and precision of readings in the window.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    pub clock: fn() -> Duration,
    /// True if gateways flush their histograms when queried.
    pub has_durations: bool,
}

/// The gateways among the proxies for which `has_own_pod` holds.
pub fn gateways(edges: &[Edge], topology: &Topology, has_own_pod: impl Fn(ProxyId) -> bool) -> Vec<Gateway> {
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
pub fn read_gateways(
    gateways: &[Gateway],
    proxies: &[&dyn RunningProxy],
    reading: Reading,
) -> Vec<GatewaySnapshot> {
    let read = side_by_side(gateways, |gateway| gateway.read(proxies[gateway.proxy], reading));
    read.into_iter().flatten().collect()
}

/// Requests at each gateway over the whole trial, by gateway name. Gateways that could not be read are left
/// out.
pub fn gateway_counts(gateways: &[Gateway], replicas: &[Replica]) -> BTreeMap<String, GatewayCounts> {
    let counts = gateways.iter().filter_map(|gateway| {
        let Replica { name, before, after } = &replicas[gateway.proxy];
        let [before, after] =
            [before, after.as_ref().ok()?].map(|counters| gateway.traffic.counted(counters));
        Some((name.clone(), after.counts.since(&before.counts)))
    });
    counts.collect()
}

impl Gateway {
    fn read(
        &self,
        proxy: &dyn RunningProxy,
        Reading { clock, has_durations }: Reading,
    ) -> Option<GatewaySnapshot> {
        if proxy.failure().is_some() {
            return None;
        }
        let admin = proxy.source().admin()?;
        let counters = self.traffic.read_counters(admin).ok()?;
        // A proxy that is out of CPU responds only when it runs again, and does not count anything before.
        let at = clock();
        let durations = has_durations.then(|| self.traffic.read_durations(admin, &counters).ok().flatten());
        let (downstream, upstream) = durations.flatten().map(|read| (read.downstream, read.upstream)).unzip();
        Some(GatewaySnapshot {
            name: proxy.name().to_owned(),
            namespace: self.namespace.clone(),
            targets: self.targets.iter().cloned().collect(),
            at,
            counters,
            downstream,
            upstream,
        })
    }
}
