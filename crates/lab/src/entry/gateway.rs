//! One Envoy with a static file before each target, in a pod of its own.

use crate::Result;
use crate::components::Installed;
use crate::deployment::part::Part;
use crate::deployment::rollout::Rollout;
use crate::deployment::station::{Destination, ProxyId, Station, Stations};
use crate::running::service::SERVICE_PORT;
use crate::running::{PodPlace, StaticEnvoyFactory};
use experiment::environment::EnvironmentError;
use experiment::topology::{Call, DriverPlacement, WorkloadId};
use mesh::envoy::bootstrap::Position;
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
    position: Position,
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
            let name = rollout.qualified(namespace, NAME);
            let pod = rollout.create_proxy_pod(&name, namespace)?;
            let service = match rollout.endpoints_of(target)[..] {
                [service] => service,
                _ => {
                    return Err(EnvironmentError::new(
                        format!("configure {name}"),
                        "a static file knows one callee with one pod",
                    ));
                }
            };
            let position = Position::Gateway { port: SERVICE_PORT, service };
            let protocol = rollout.workload(target).protocol;
            let factory = StaticEnvoyFactory { context: &rollout.context, envoy: self.envoy };
            let places = [PodPlace::Infrastructure(pod)];
            let started = rollout
                .pods
                .select(&places)
                .into_iter()
                .map(|pod| factory.start(pod, &name, (position, protocol)));
            let started = started.collect::<Result<_, _>>()?;
            let proxy = rollout.add_proxies(started)[0];
            self.gateways.insert(target, Gateway { position, pod, proxy });
        }
        Ok(())
    }

    fn proxies_are_ready(&mut self, rollout: &mut Rollout<'_>) -> Result<()> {
        self.gateways.values().try_for_each(|gateway| {
            let container = &rollout.proxies[gateway.proxy].container;
            let pod = &rollout.pods.infrastructure[gateway.pod];
            pod.wait_until_listening(container, gateway.position.listening_port(), LISTENING_TIMEOUT)
        })
    }

    fn stations(&self, rollout: &Rollout<'_>, call: Call) -> Stations {
        let station = |Gateway { position, proxy, .. }: &Gateway| Station {
            name: rollout.proxies[*proxy].name.clone(),
            proxies: vec![*proxy],
            side: None,
            evidence: position.evidence(rollout.workload(call.to).protocol, false),
        };
        Stations {
            at_caller: self.gateways.get(&call.to).map(station).into_iter().collect(),
            ..Stations::default()
        }
    }

    fn destination(&self, rollout: &Rollout<'_>, driver: &DriverPlacement) -> Option<Destination> {
        let pod = &rollout.pods.infrastructure[self.gateways.get(&driver.target)?.pod];
        let url = rollout.url(driver, &SocketAddrV4::new(pod.address(), SERVICE_PORT).to_string(), false);
        Some(Destination { url, ..Destination::default() })
    }
}
