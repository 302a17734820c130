//! One Envoy with a static file before each target, in a pod of its own.

use crate::Result;
use crate::components::Installed;
use crate::dataplane::static_envoy::callee;
use crate::deployment::part::Part;
use crate::deployment::rollout::Rollout;
use crate::deployment::station::{Destination, ProxyId, Station, Stations};
use crate::running::StaticEnvoyFactory;
use crate::running::service::SERVICE_PORT;
use experiment::topology::{Call, DriverPlacement, WorkloadId};
use mesh::envoy::bootstrap::Position;
use mesh::proof::Evidence;
use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::time::Duration;

const NAME: &str = "gateway";
const LISTENING_TIMEOUT: Duration = Duration::from_secs(20);

pub(super) struct StaticGateway<'a> {
    envoy: &'a Installed,
    gateways: BTreeMap<WorkloadId, Gateway>,
}

struct Gateway {
    evidence: Evidence,
    pod: usize,
    proxy: ProxyId,
}

impl<'a> StaticGateway<'a> {
    pub fn new(envoy: &'a Installed) -> Self {
        Self { envoy, gateways: BTreeMap::new() }
    }
}

impl Part for StaticGateway<'_> {
    fn start(&mut self, rollout: &mut Rollout<'_>) -> Result<()> {
        for driver in &rollout.topology().drivers {
            let target = driver.target;
            if self.gateways.contains_key(&target) {
                continue;
            }
            let namespace = rollout.namespace_index(target);
            let is_first = !self.gateways.keys().any(|other| rollout.namespace_index(*other) == namespace);
            let name =
                if is_first { NAME.to_owned() } else { format!("{NAME}-{}", rollout.workload(target).name) };
            let name = rollout.qualified(namespace, &name);
            let callee = callee(rollout, target)?;
            let evidence = callee.hop_of_gateway(SERVICE_PORT).evidence(false);
            let position = Position::Gateway { port: SERVICE_PORT, callee };
            let pod = rollout.create_proxy_pod(&name, namespace)?;
            let factory = StaticEnvoyFactory { context: &rollout.context, envoy: self.envoy };
            let started = factory.start(&mut rollout.pods.infrastructure[pod], &name, position, None)?;
            let proxy = rollout.add_proxies(vec![started])[0];
            self.gateways.insert(target, Gateway { evidence, pod, proxy });
        }
        Ok(())
    }

    fn proxies_are_ready(&mut self, rollout: &mut Rollout<'_>) -> Result<()> {
        self.gateways.values().try_for_each(|gateway| {
            let container = &rollout.proxies[gateway.proxy].container;
            let pod = &rollout.pods.infrastructure[gateway.pod];
            pod.wait_until_listening(container, SERVICE_PORT, LISTENING_TIMEOUT)
        })
    }

    fn stations(&self, rollout: &Rollout<'_>, call: Call) -> Stations {
        let station = |Gateway { evidence, proxy, .. }: &Gateway| {
            Station::of_one(&rollout.proxies, *proxy, evidence.clone())
        };
        let gateway = self.gateways.get(&call.to).filter(|_| !rollout.drivers_of(call).is_empty());
        Stations { at_caller: gateway.map(station).into_iter().collect(), ..Stations::default() }
    }

    fn destination(&self, rollout: &Rollout<'_>, driver: &DriverPlacement) -> Option<Destination> {
        let pod = &rollout.pods.infrastructure[self.gateways.get(&driver.target)?.pod];
        let url = rollout.url(driver, &SocketAddrV4::new(pod.address(), SERVICE_PORT).to_string(), false);
        Some(Destination { url, ..Destination::default() })
    }
}
