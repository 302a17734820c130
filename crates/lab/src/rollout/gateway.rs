//! A gateway under a control plane: a proxy in a pod of its own, with a Service in front of it.

use super::Rollout;
use crate::Result;
use crate::istio::agent::{AgentSpec, ProxyKind};
use crate::running::{PodIdentity, PodPlace};
use mesh::kubernetes::workloads::{Membership, ServicePort, Workload};
use serde_json::Value;
use std::net::Ipv4Addr;

#[derive(Debug)]
pub(crate) struct GatewayPod {
    workload: Workload,
    ports: Vec<ServicePort>,
    namespace: usize,
    pub pod: usize,
}

impl GatewayPod {
    /// Creates one gateway per namespace of the topology in parallel, each with the ports of its Service, and
    /// describes them to the API.
    pub fn create_in(
        rollout: &mut Rollout<'_>,
        name: &str,
        membership: Membership,
        namespaces: Vec<(usize, Vec<ServicePort>)>,
    ) -> Result<Vec<Self>> {
        let names = namespaces.iter().map(|(namespace, _)| (rollout.qualified(*namespace, name), *namespace));
        let pods = rollout.create_proxy_pods(&names.collect::<Vec<_>>())?;
        let gateway = |(pod, (namespace, ports)): (usize, (usize, Vec<ServicePort>))| {
            let address = rollout.pods.infrastructure[pod].address();
            let in_mesh = &rollout.mesh().namespaces.names()[namespace];
            let workload = Workload::single(name, in_mesh, address, membership);
            Self { workload, ports, namespace, pod }
        };
        let gateways: Vec<Self> = pods.into_iter().zip(namespaces).map(gateway).collect();
        rollout.describe(&gateways.iter().map(|gateway| &gateway.workload).collect::<Vec<_>>())?;
        Ok(gateways)
    }

    /// Its proxy, to be started under this name. `statistics` are prefixes of the statistics that prove its
    /// path.
    pub fn agent(
        &self,
        rollout: &Rollout<'_>,
        name: &str,
        kind: ProxyKind,
        statistics: Vec<String>,
    ) -> AgentSpec {
        AgentSpec {
            place: PodPlace::Infrastructure(self.pod),
            name: rollout.qualified(self.namespace, name),
            kind,
            identity: PodIdentity::for_workload(&self.workload).next().expect("a gateway has one pod"),
            statistics,
            resources: rollout.context.proxy_resources(),
        }
    }

    pub fn service(&self) -> Vec<Value> {
        self.workload.service_objects(&self.ports)
    }

    pub fn address(&self) -> Ipv4Addr {
        self.workload.replicas[0].address
    }
}
