//! Identities of simulated proxies.

use super::{HeldService, PROXY_NAMESPACE, Population};
use experiment::settings::fleet::ProxyKind;
use mesh::names::NODE;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

pub(super) const ZTUNNEL: &str = "ztunnel";

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Proxy {
    pub kind: ProxyKind,
    /// Name of its pod.
    pub name: String,
    pub namespace: String,
    pub address: Ipv4Addr,
    pub service_account: String,
    /// Labels of its pod.
    pub labels: BTreeMap<String, String>,
    pub node: String,
}

impl Population {
    pub(super) fn place_proxies(&self) -> Vec<Proxy> {
        let counts = self.settings.kinds.of(self.settings.proxies).unwrap_or_default();
        counts.into_iter().flat_map(|(kind, count)| self.proxies_of(kind, count)).collect()
    }

    fn proxies_of(&self, kind: ProxyKind, count: usize) -> Vec<Proxy> {
        match kind {
            ProxyKind::Sidecar => spread(&self.services, count, kind),
            ProxyKind::Gateway => spread(std::slice::from_ref(&self.gateways), count, kind),
            ProxyKind::Waypoint => spread(&self.waypoints, count, kind),
            ProxyKind::Ztunnel => (0..count).map(|number| self.ztunnel(number)).collect(),
        }
    }

    /// Each ztunnel is on a separate node.
    fn ztunnel(&self, number: usize) -> Proxy {
        Proxy {
            kind: ProxyKind::Ztunnel,
            name: format!("{ZTUNNEL}-{}", number + 1),
            namespace: PROXY_NAMESPACE.to_owned(),
            // Above the addresses of pods that replace others.
            address: Ipv4Addr::from(u32::from(super::LAST_ADDRESS) - number as u32),
            service_account: ZTUNNEL.to_owned(),
            labels: BTreeMap::from([("app".to_owned(), ZTUNNEL.to_owned())]),
            node: format!("{NODE}-{}", number + 1),
        }
    }
}

/// The first pods of all services, then their second pods, and so on.
fn spread(services: &[HeldService], count: usize, kind: ProxyKind) -> Vec<Proxy> {
    let most = services.iter().map(|service| service.replicas().len()).max().unwrap_or(0);
    let pods = (0..most).flat_map(|round| {
        services.iter().filter_map(move |service| Some((service, service.replicas().get(round)?)))
    });
    let proxy = |(service, replica): (&HeldService, &mesh::kubernetes::workloads::Replica)| Proxy {
        kind,
        name: replica.pod.clone(),
        namespace: service.namespace().to_owned(),
        address: replica.address,
        service_account: service.name().to_owned(),
        labels: service.workload().labels.clone(),
        node: NODE.to_owned(),
    };
    pods.take(count).map(proxy).collect()
}
