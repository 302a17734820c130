//! No proxies: workloads talk to each other directly. Under a control plane they use the addresses of
//! Services.

use super::Kind;
use crate::Result;
use crate::deployment::part::Nothing;
use crate::deployment::rollout::Rollout;
use crate::istio::redirect::{ServiceAddress, service_rules};
use crate::running::service::SERVICE_PORT;
use experiment::dataplane::{DataPlane, Entry};

pub(super) const KIND: Kind = Kind { check: |_, _, _| Ok(()), part: |_| Ok(Box::new(Nothing)) };

/// Routes callers without a proxy from Service addresses to pods, as kube-proxy does in a cluster.
pub(crate) fn route_services(rollout: &mut Rollout<'_>) -> Result<()> {
    for id in 0..rollout.topology().workloads.len() {
        let is_outside = rollout.mode.entry == Entry::Direct && !rollout.is_member(id);
        if rollout.mode.data_plane != DataPlane::None && !is_outside {
            continue;
        }
        let services = rollout.calls_from(id).filter(|call| !rollout.workload(call.to).is_external());
        let services = services.map(|call| ServiceAddress {
            service: rollout.service_address(call.to),
            port: SERVICE_PORT,
            endpoints: rollout.endpoints_of(call.to),
        });
        // A pod's own address needs no rule.
        let services: Vec<ServiceAddress> = services
            .filter(|address| !address.endpoints.iter().any(|endpoint| *endpoint.ip() == address.service))
            .collect();
        if !services.is_empty() {
            let rules = service_rules(&services);
            let places = rollout.places_of(&[id]);
            rollout.change_pods(&places, |pod| pod.load_rules(rules.clone()))?;
        }
    }
    Ok(())
}
