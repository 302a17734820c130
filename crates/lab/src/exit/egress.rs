//! External services, and the egress gateway in front of them.

use super::hops::{has_gateway, hop_of_gateway, leading, speaks_mutual_tls};
use super::sni_proxy;
use crate::Result;
use crate::certificates::CredentialFiles;
use crate::istio::agent::ProxyKind;
use crate::rollout::Rollout;
use crate::rollout::gateway::GatewayPod;
use crate::rollout::part::Part;
use crate::rollout::station::{Destination, Stations};
use experiment::dataplane::Exit;
use experiment::environment::EnvironmentError;
use experiment::topology::{Call, DriverPlacement, WorkloadId};
use mesh::envoy::hop::Hop;
use mesh::istio::objects::egress::{
    self, EXTERNAL_HOST, EXTERNAL_PORT, GATEWAY, GATEWAY_PORT, SNI_PROXY_PORT,
};
use mesh::istio::propagation::Expected;
use mesh::kubernetes::workloads::{Membership, ServicePort};
use mesh::trial::place::ProxyId;
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddrV4};

const GATEWAY_PROXY: &str = "egress-gateway";

#[derive(Default)]
pub(super) struct Egress {
    /// The external service, known once this has started. Its public name resolves to one pod.
    external: WorkloadId,
    gateway: Option<(GatewayPod, ProxyId)>,
    sni_proxy: Option<ProxyId>,
}

impl Egress {
    fn endpoint(&self, rollout: &Rollout<'_>) -> SocketAddrV4 {
        rollout.endpoints_of(self.external)[0]
    }

    fn hop_of_gateway(&self, rollout: &Rollout<'_>) -> Hop {
        hop_of_gateway(rollout.mode.exit, self.endpoint(rollout).port())
    }
}

impl Part for Egress {
    fn start(&mut self, rollout: &mut Rollout<'_>) -> Result<()> {
        self.external = external(rollout)?;
        rollout.mesh().namespaces.add_name(0, *self.endpoint(rollout).ip(), &[EXTERNAL_HOST])?;
        if has_gateway(rollout.mode.exit) {
            let port = ServicePort { name: "tls", port: GATEWAY_PORT };
            let pod = GatewayPod::create_in(rollout, GATEWAY, Membership::Outside, vec![(0, vec![port])])?
                .remove(0);
            let statistics = self.hop_of_gateway(rollout).statistics();
            let agent = pod.agent(rollout, GATEWAY_PROXY, ProxyKind::Router, statistics);
            let proxy = rollout.start_agents(&[agent])?[0];
            self.gateway = Some((pod, proxy));
        }
        Ok(())
    }

    fn proxies_are_ready(&mut self, rollout: &mut Rollout<'_>) -> Result<()> {
        if let Some((gateway, _)) = self.gateway.as_ref().filter(|_| rollout.mode.exit == Exit::Sni) {
            let destination = self.endpoint(rollout);
            let pod = &mut rollout.pods.infrastructure[gateway.pod];
            let started = sni_proxy::start(&rollout.context, pod, destination)?;
            self.sni_proxy = rollout.add_proxies(vec![started]).pop();
        }
        Ok(())
    }

    fn objects(&self, rollout: &Rollout<'_>) -> Vec<Value> {
        let (namespace, endpoint) = (rollout.mesh_namespace(self.external), self.endpoint(rollout));
        let mut objects = egress::objects(rollout.mode.exit, namespace, &[*endpoint.ip()], endpoint.port());
        objects.extend(self.gateway.iter().flat_map(|(pod, _)| pod.service()));
        objects
    }

    fn expected(&self, rollout: &Rollout<'_>) -> Vec<(ProxyId, Vec<Expected>)> {
        let next = match rollout.mode.exit {
            Exit::Sni => SocketAddrV4::new(Ipv4Addr::LOCALHOST, SNI_PROXY_PORT),
            _ => self.endpoint(rollout),
        };
        let expected = |proxy| (proxy, leading(&self.hop_of_gateway(rollout), GATEWAY_PORT, next));
        self.gateway.iter().map(|(_, proxy)| expected(*proxy)).collect()
    }

    fn stations(&self, rollout: &Rollout<'_>, call: Call) -> Stations {
        if !rollout.workload(call.to).is_external() {
            return Stations::default();
        }
        let of_gateway = || self.hop_of_gateway(rollout).evidence(speaks_mutual_tls(rollout.mode.exit));
        let gateway = self.gateway.iter().map(|(_, proxy)| (*proxy, of_gateway()));
        let sni_proxy = self.sni_proxy.map(|proxy| (proxy, sni_proxy::evidence()));
        let stations = gateway.chain(sni_proxy);
        let stations = stations.map(|(proxy, evidence)| rollout.station_of(proxy, evidence));
        Stations { at_caller: stations.collect(), ..Stations::default() }
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
