//! Queries on a deployment that is coming up: its topology, members, names and addresses.

use super::FIRST_SERVICE_ADDRESS;
use super::Rollout;
use crate::istio::context::MeshContext;
use crate::running::PodPlace;
use crate::running::database::DATABASE_PORT;
use experiment::dataplane::Exit;
use experiment::environment::DeploymentSpec;
use experiment::topology::{Call, DriverPlacement, Runs, Topology, Workload, WorkloadId};
use mesh::dataplane::MeshView;
use mesh::dataplane::SERVICE_PORT;
use mesh::istio::objects::egress::{EXTERNAL_HOST, EXTERNAL_PORT};
use mesh::proof::Evidence;
use mesh::trial::place::{ProxyId, Station};
use std::net::{Ipv4Addr, SocketAddrV4};

impl<'a> Rollout<'a> {
    pub fn topology(&self) -> &'a Topology {
        &self.context.spec.topology
    }

    pub fn workload(&self, id: WorkloadId) -> &'a Workload {
        &self.topology().workloads[id]
    }

    pub fn members(&self) -> Vec<WorkloadId> {
        (0..self.topology().workloads.len()).filter(|id| self.is_member(*id)).collect()
    }

    pub fn calls_from(&self, id: WorkloadId) -> impl Iterator<Item = Call> {
        self.calls.range(Call { from: id, to: 0 }..=Call { from: id, to: WorkloadId::MAX }).copied()
    }

    pub fn calls_to(&self, id: WorkloadId) -> impl Iterator<Item = Call> {
        self.calls.iter().copied().filter(move |call| call.to == id)
    }

    pub fn is_called(&self, id: WorkloadId) -> bool {
        self.calls_to(id).next().is_some()
    }

    /// Names of the drivers that make a call.
    pub fn drivers_of(&self, call: Call) -> Vec<String> {
        let drivers = self.topology().drivers.iter();
        let drivers = drivers.filter(|driver| Call { from: driver.at, to: driver.target } == call);
        drivers.map(|driver| driver.name.clone()).collect()
    }

    /// Name for all sidecars of a workload; with one pod, the name of its sidecar.
    pub fn proxy_name(&self, id: WorkloadId) -> String {
        format!("{}-proxy", self.workload(id).qualified_name())
    }

    pub fn namespace_index(&self, id: WorkloadId) -> usize {
        let namespace = self.workload(id).namespace.as_str();
        self.namespaces
            .iter()
            .position(|known| *known == namespace)
            .expect("it is the namespace of a workload")
    }

    pub fn mesh(&self) -> &MeshContext<'a> {
        self.mesh.as_ref().expect("parts that need a control plane are of modes that have one")
    }

    pub fn mesh_mut(&mut self) -> &mut MeshContext<'a> {
        self.mesh.as_mut().expect("parts that need a control plane are of modes that have one")
    }

    pub fn mesh_namespace(&self, id: WorkloadId) -> &str {
        &self.mesh().namespaces.names()[self.namespace_index(id)]
    }

    pub fn endpoints_of(&self, id: WorkloadId) -> Vec<SocketAddrV4> {
        let port = match self.workload(id).runs {
            Runs::Database => DATABASE_PORT,
            Runs::ExternalService(_) => EXTERNAL_PORT,
            _ => SERVICE_PORT,
        };
        let pods = self.pods.workloads[id].pods.iter();
        pods.map(|running| SocketAddrV4::new(running.pod.address(), port)).collect()
    }

    pub fn places_of(&self, workloads: &[WorkloadId]) -> Vec<PodPlace> {
        let replicas = |id: WorkloadId| 0..self.pods.workloads[id].pods.len();
        let places = |&id: &_| replicas(id).map(move |replica| PodPlace::Workload(id, replica));
        workloads.iter().flat_map(places).collect()
    }

    /// Qualified name of a component that every namespace has, such as `pair-1/waypoint`.
    pub fn qualified(&self, namespace: usize, name: &str) -> String {
        match self.namespaces[namespace] {
            "" => name.to_owned(),
            namespace => format!("{namespace}/{name}"),
        }
    }

    /// Address that callers of a service connect to, which is that of its Service. Without a control plane it
    /// is the pod's address, or one that redirect rules lead to its pods.
    pub fn service_address(&self, id: WorkloadId) -> Ipv4Addr {
        let workload = &self.pods.workloads[id];
        workload.service_address.unwrap_or_else(|| match &workload.pods[..] {
            [running] => running.pod.address(),
            _ => Ipv4Addr::from(u32::from(FIRST_SERVICE_ADDRESS) + id as u32),
        })
    }

    /// Host and port that callers of a service use.
    pub fn authority_of(&self, id: WorkloadId) -> String {
        match &self.mesh {
            _ if self.workload(id).is_external() => match (self.mode.exit, self.endpoints_of(id)[0]) {
                (Exit::None, endpoint) => endpoint.to_string(),
                (_, endpoint) => format!("{EXTERNAL_HOST}:{}", endpoint.port()),
            },
            Some(_) => format!("{}:{SERVICE_PORT}", self.host_of(id)),
            None => format!("{}:{SERVICE_PORT}", self.service_address(id)),
        }
    }

    /// URL that a driver requests from this authority.
    pub fn url(&self, driver: &DriverPlacement, authority: &str, over_tls: bool) -> String {
        let protocol = self.workload(driver.target).protocol;
        format!("{}://{authority}{}", protocol.scheme(over_tls), protocol.path(&driver.endpoint))
    }

    /// The proxies in the pods of a workload; absent if it has none.
    pub fn station_beside(&self, id: WorkloadId, evidence: Evidence) -> Option<Station> {
        let proxies = self.pods.workloads[id].proxies.clone();
        let name = self.proxy_name(id);
        (!proxies.is_empty()).then_some(Station { name, proxies, side: None, evidence })
    }

    /// A station with a single proxy.
    pub fn station_of(&self, proxy: ProxyId, evidence: Evidence) -> Station {
        Station { name: self.proxies[proxy].name.clone(), proxies: vec![proxy], side: None, evidence }
    }
}

impl MeshView for Rollout<'_> {
    fn spec(&self) -> &DeploymentSpec {
        self.context.spec
    }

    fn namespace(&self, in_topology: &str) -> String {
        let index = self.namespaces.iter().position(|known| *known == in_topology);
        self.mesh().namespaces.names()[index.expect("it is a namespace of the topology")].clone()
    }
}
