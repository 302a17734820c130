//! No proxies: workloads talk directly. Under a control plane they use the addresses of Services.

use crate::Result;
use crate::deployment::part::Part;
use crate::deployment::rollout::Rollout;
use crate::istio::redirect::{ServiceAddress, service_rules};
use crate::running::service::SERVICE_PORT;
use experiment::topology::WorkloadId;

pub(super) struct NoProxies;

impl Part for NoProxies {
    fn services_have_addresses(&self, rollout: &mut Rollout<'_>) -> Result<()> {
        for id in 0..rollout.topology().workloads.len() {
            let address = |to: WorkloadId| {
                let service = rollout.pods.workloads[to].service_address?;
                Some(ServiceAddress { service, port: SERVICE_PORT, endpoints: rollout.endpoints_of(to) })
            };
            let services: Vec<ServiceAddress> =
                rollout.calls_from(id).filter_map(|call| address(call.to)).collect();
            if !services.is_empty() {
                let rules = service_rules(&services);
                let places = rollout.places_of(&[id]);
                rollout.change_pods(&places, |pod| pod.load_rules(rules.clone()))?;
            }
        }
        Ok(())
    }
}
