//! Gateways of a running deployment: where drivers send requests, and the gateways' counts of them.

use super::proof::ProxyCounters;
use super::{ClusterDeployment, RunningPod};
use crate::gateway::{self, Destination, Gateway};
use crate::objects::url;
use crate::worker::protocol::unix_ns;
use experiment::environment::GatewaySnapshot;
use experiment::topology::DriverPlacement;
use jiff::Timestamp;
use mesh::concurrent::side_by_side;
use mesh::envoy::traffic::Traffic;
use results::GatewayCounts;
use std::collections::BTreeMap;
use std::time::Duration;

impl ClusterDeployment<'_> {
    /// Target of a driver: a gateway, or the service itself.
    pub(super) fn destination_of(&self, driver: &DriverPlacement) -> Destination {
        let context = self.context();
        gateway::destination(&context, driver, self.certificates.as_ref()).unwrap_or_else(|| {
            let url = url(&self.spec.topology, driver.target, &driver.endpoint, &self.cluster.settings);
            Destination { probe_url: url.clone(), url, arguments: Vec::new(), is_gateway: false }
        })
    }

    fn traffic(&self) -> Vec<(Gateway, &RunningPod, Traffic)> {
        let context = self.context();
        let gateways = gateway::gateways(&context).into_iter().zip(&self.gateways);
        let read = gateways.filter_map(|(gateway, pod)| {
            let traffic = gateway.evidence(&context).traffic?;
            Some((gateway, pod, traffic))
        });
        read.collect()
    }

    /// Request counters of each gateway now. Gateways that do not respond are left out: the measurement is
    /// usable without them. Request durations are not read, since gateways in a cluster flush their
    /// histograms only every few seconds.
    pub(super) fn read_gateways(&self) -> Vec<GatewaySnapshot> {
        let topology = &self.spec.topology;
        let read = side_by_side(self.traffic(), |(gateway, pod, traffic)| {
            let admin = pod.proxy.as_ref()?.forward.admin(&pod.name);
            let counters = traffic.read_counters(&admin).ok()?;
            let at = Duration::from_nanos(unix_ns(Timestamp::now()));
            let target = &topology.workloads[gateway.target];
            Some(GatewaySnapshot {
                name: gateway.name,
                namespace: target.namespace.clone(),
                targets: vec![target.qualified_name()],
                at,
                counters,
                downstream: None,
                upstream: None,
            })
        });
        read.into_iter().flatten().collect()
    }

    /// Requests at each gateway over the whole trial, by gateway name. Gateways that could not be read are
    /// left out.
    pub(super) fn gateway_counts(&self, after: &ProxyCounters) -> BTreeMap<String, GatewayCounts> {
        let counts = self.traffic().into_iter().filter_map(|(gateway, _, traffic)| {
            let read = |counters: &ProxyCounters| {
                let counters = counters.get(&gateway.name)?.as_ref().ok()?;
                Some(traffic.counted(counters).counts)
            };
            let (before, after) = (read(&self.trial.proxies_before)?, read(after)?);
            Some((gateway.name.clone(), after.since(&before)))
        });
        counts.collect()
    }
}
