//! A gateway: a proxy in a pod of its own, with a Service before it. What `ingress` and the ways out have in common.

use super::Trial;
use crate::arrangement::started::Pods;
use crate::istio::agent::{Agent, AgentSpec, ProxyKind};
use crate::pod::{Pod, PodSpec};
use experiment::environment::EnvironmentError;
use mesh::kubernetes::workloads::{Membership, ServicePort, Workload};
use serde_json::Value;
use std::net::Ipv4Addr;

/// A gateway's pod, known to the API.
pub(super) struct Gateway {
    workload: Workload,
    ports: [ServicePort; 1],
}

impl Gateway {
    /// Makes its pod and tells the API of it.
    pub fn create(trial: &mut Trial<'_>, name: &str, port: ServicePort) -> Result<Self, EnvironmentError> {
        let spec = PodSpec::new(name).with_names(trial.site.namespace.name_files());
        let pod = trial.site.lab().create_pod(&spec)?;
        // It stands at the edge of the mesh: what it speaks with those who call it, its Gateway says.
        let workload =
            Workload::single(name, trial.site.namespace.name(), pod.address(), Membership::Outside);
        trial.pods.others.push(pod);
        super::tell_of_pods(&mut trial.site.namespace, &[&workload])?;
        Ok(Self { workload, ports: [port] })
    }

    /// Starts its proxy under this name. It need not be ready yet.
    pub fn start(
        &self,
        trial: &mut Trial<'_>,
        proxy: &str,
        statistics: &[String],
    ) -> Result<Agent, EnvironmentError> {
        let factory = trial.site.agents();
        factory.start(
            self.pod(&mut trial.pods),
            &AgentSpec {
                name: proxy,
                kind: ProxyKind::Router,
                workload: &self.workload,
                statistics,
                environment: &[],
            },
        )
    }

    /// Its Service and what is behind that.
    pub fn service(&self) -> Vec<Value> {
        self.workload.service_objects(&self.ports)
    }

    /// Its pod's address.
    pub fn address(&self) -> Ipv4Addr {
        self.workload.replicas[0].address
    }

    /// Its pod.
    pub fn pod<'a>(&self, pods: &'a mut Pods) -> &'a mut Pod {
        let pod = pods.others.iter_mut().find(|pod| pod.name() == self.workload.name);
        pod.expect("the gateway's pod was made with it")
    }
}
