//! External services, and the egress gateway in front of them.

use super::hops::{has_gateway, hop_of_gateway, leading, speaks_mutual_tls};
use super::sni_proxy;
use crate::Result;
use crate::certificates::CredentialFiles;
use crate::deployment::part::Part;
use crate::deployment::rollout::Rollout;
use crate::deployment::station::{Destination, ProxyId, Station, Stations};
use crate::istio::agent::ProxyKind;
use crate::running::GatewayPod;
use experiment::dataplane::Exit;
use experiment::environment::EnvironmentError;
use experiment::topology::{Call, DriverPlacement, WorkloadId};
use mesh::envoy::hop::Hop;
use mesh::istio::objects::egress::{
    self, EXTERNAL_HOST, EXTERNAL_PORT, GATEWAY, GATEWAY_PORT, SNI_PROXY_PORT,
};
use mesh::istio::propagation::Expected;
use mesh::kubernetes::workloads::{Membership, ServicePort};
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddrV4};

const GATEWAY_PROXY: &str = "egress-gateway";

struct Gateway {
    pod: GatewayPod,
    proxy: ProxyId,
}

pub(super) struct Egress {
    exit: Exit,
    gateway: Option<Gateway>,
    sni_proxy: Option<ProxyId>,
}

impl Egress {
    pub fn new(exit: Exit) -> Self {
        Self { exit, gateway: None, sni_proxy: None }
    }

    fn hop_of_gateway(&self, rollout: &Rollout<'_>) -> Hop {
        let external = external(rollout).ok().and_then(|id| rollout.endpoints_of(id).first().copied());
        hop_of_gateway(self.exit, external.map_or(EXTERNAL_PORT, |endpoint| endpoint.port()))
    }
}

impl Part for Egress {
    fn start(&mut self, rollout: &mut Rollout<'_>) -> Result<()> {
        external(rollout)?;
        if has_gateway(self.exit) {
            let port = ServicePort { name: "tls", port: GATEWAY_PORT };
            let pod = GatewayPod::create_in(rollout, GATEWAY, Membership::Outside, vec![(0, vec![port])])?
                .remove(0);
            let statistics = self.hop_of_gateway(rollout).statistics();
            let agent = pod.agent(rollout, GATEWAY_PROXY, ProxyKind::Router, statistics);
            let proxy = rollout.start_agents(vec![agent])?[0];
            self.gateway = Some(Gateway { pod, proxy });
        }
        Ok(())
    }

    fn proxies_are_ready(&mut self, rollout: &mut Rollout<'_>) -> Result<()> {
        if let Some(gateway) = self.gateway.as_ref().filter(|_| self.exit == Exit::Sni) {
            let destination = rollout.endpoints_of(external(rollout)?)[0];
            let pod = &mut rollout.pods.infrastructure[gateway.pod.pod];
            let started = sni_proxy::start(&rollout.context, pod, destination)?;
            self.sni_proxy = rollout.add_proxies(vec![started]).pop();
        }
        Ok(())
    }

    fn objects(&self, rollout: &Rollout<'_>) -> Vec<Value> {
        let Ok(external) = external(rollout) else { return Vec::new() };
        let addresses: Vec<Ipv4Addr> =
            rollout.endpoints_of(external).iter().map(|endpoint| *endpoint.ip()).collect();
        let (namespace, port) = (rollout.mesh_namespace(external), rollout.endpoints_of(external)[0].port());
        let mut objects = egress::objects(self.exit, namespace, &addresses, port);
        objects.extend(self.gateway.iter().flat_map(|gateway| gateway.pod.service()));
        objects
    }

    fn services_have_addresses(&self, rollout: &mut Rollout<'_>) -> Result<()> {
        let address = *rollout.endpoints_of(external(rollout)?)[0].ip();
        rollout.mesh().namespaces.add_name(0, address, &[EXTERNAL_HOST])
    }

    fn expected(&self, rollout: &Rollout<'_>) -> Vec<(ProxyId, Vec<Expected>)> {
        let (Some(gateway), Ok(external)) = (&self.gateway, external(rollout)) else { return Vec::new() };
        let next = match self.exit {
            Exit::Sni => vec![SocketAddrV4::new(Ipv4Addr::LOCALHOST, SNI_PROXY_PORT)],
            _ => rollout.endpoints_of(external),
        };
        vec![(gateway.proxy, leading(&self.hop_of_gateway(rollout), GATEWAY_PORT, next))]
    }

    fn stations(&self, rollout: &Rollout<'_>, call: Call) -> Stations {
        if !rollout.workload(call.to).is_external() {
            return Stations::default();
        }
        let gateway = self.gateway.iter().map(|gateway| {
            let evidence = self.hop_of_gateway(rollout).evidence(speaks_mutual_tls(self.exit));
            Station::of_one(&rollout.proxies, gateway.proxy, evidence)
        });
        let sni_proxy = self
            .sni_proxy
            .iter()
            .map(|proxy| Station::of_one(&rollout.proxies, *proxy, sni_proxy::evidence()));
        Stations { at_caller: gateway.chain(sni_proxy).collect(), ..Stations::default() }
    }

    fn destination(&self, rollout: &Rollout<'_>, driver: &DriverPlacement) -> Option<Destination> {
        let service = rollout.pods.workloads[driver.target].pods.first()?.service.as_ref()?;
        let files = CredentialFiles::in_folder(service.credentials.as_ref()?.path());
        Some(Destination {
            // Drivers start TLS themselves, whatever the protocol.
            url: rollout.url(driver, &format!("{EXTERNAL_HOST}:{EXTERNAL_PORT}"), true),
            arguments: vec![format!("--cacert={}", files.authority.display())],
        })
    }
}

/// The external service. Its public name resolves to one pod.
fn external(rollout: &Rollout<'_>) -> Result<WorkloadId> {
    let external = rollout.services().into_iter().filter(|id| rollout.workload(*id).is_external());
    let external: Vec<WorkloadId> = external.collect();
    match external[..] {
        [id] if rollout.workload(id).replicas == 1 => Ok(id),
        _ => Err(EnvironmentError::new(
            "lead calls out of the mesh",
            "its one external host is one pod of one workload, and the topology has another number",
        )),
    }
}
