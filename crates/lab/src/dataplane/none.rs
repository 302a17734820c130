//! No proxies: workloads talk to each other directly. Under a control plane they use the addresses of
//! Services.

use crate::Result;
use crate::istio::redirect::service_rules;
use crate::rollout::Rollout;
use experiment::dataplane::{DataPlane, Entry};
use mesh::dataplane::{MeshView, SERVICE_PORT};
use std::net::SocketAddrV4;

/// Routes callers without a proxy from Service addresses to pods, as kube-proxy does in a cluster.
pub(crate) fn route_services(rollout: &mut Rollout<'_>) -> Result<()> {
    for id in 0..rollout.topology().workloads.len() {
        let is_outside = rollout.mode.entry == Entry::Direct && !rollout.is_member(id);
        if rollout.mode.data_plane != DataPlane::None && !is_outside {
            continue;
        }
        let services = rollout.calls_from(id).filter(|call| !rollout.workload(call.to).is_external());
        let services = services.map(|call| {
            let address = SocketAddrV4::new(rollout.service_address(call.to), SERVICE_PORT);
            (address, rollout.endpoints_of(call.to))
        });
        // A pod's own address needs no rule.
        let services: Vec<_> = services
            .filter(|(address, endpoints)| !endpoints.iter().any(|endpoint| endpoint.ip() == address.ip()))
            .collect();
        if !services.is_empty() {
            let rules = service_rules(&services);
            let places = rollout.places_of(&[id]);
            rollout.change_pods(&places, |pod| pod.load_rules(rules.clone()))?;
        }
    }
    Ok(())
}
