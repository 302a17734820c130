//! ztunnel with a waypoint per namespace: an Envoy in its own pod, to which ztunnels send the namespace's
//! requests.

use super::ztunnel::Ztunnels;
use crate::Result;
use crate::deployment::part::Part;
use crate::deployment::rollout::Rollout;
use crate::deployment::station::Stations;
use crate::istio::agent::ProxyKind;
use crate::running::GatewayPod;
use crate::running::service::SERVICE_PORT;
use experiment::topology::{Call, WorkloadId};
use mesh::envoy::hop::Hop;
use mesh::istio::objects::waypoint::{NAME, gateway};
use mesh::istio::propagation::Expected;
use mesh::kubernetes::workloads::{Membership, ServicePort};
use mesh::names::{HBONE_PORT, READINESS_PORT};
use mesh::trial::place::ProxyId;

/// Ports of its Service as Istio's gateway controller creates it: readiness and HBONE.
const PORTS: [ServicePort; 2] = [
    ServicePort { name: "status-port", port: READINESS_PORT },
    ServicePort { name: "mesh", port: HBONE_PORT },
];

pub(super) struct Waypoints<'a> {
    pub ztunnels: Ztunnels<'a>,
    /// One per namespace, in the topology's order.
    pub waypoints: Vec<ProxyId>,
}

impl Part for Waypoints<'_> {
    fn start(&mut self, rollout: &mut Rollout<'_>) -> Result<()> {
        self.ztunnels.start(rollout)?;
        let namespaces: Vec<usize> = (0..rollout.mesh().namespaces.names().len()).collect();
        let with_ports = namespaces.iter().map(|namespace| (*namespace, PORTS.to_vec())).collect();
        let pods = GatewayPod::create_in(rollout, NAME, Membership::Waypoint, with_ports)?;
        let names = rollout.mesh().namespaces.names().iter().map(|name| gateway(name));
        let objects: Vec<_> = pods.iter().flat_map(GatewayPod::service).chain(names).collect();
        rollout.mesh_mut().namespaces.objects.apply(&objects)?;
        let agent = |(pod, namespace): (&GatewayPod, usize)| {
            pod.agent(rollout, NAME, ProxyKind::Waypoint, statistics(rollout, namespace))
        };
        let agents: Vec<_> = pods.iter().zip(namespaces).map(agent).collect();
        self.waypoints = rollout.start_agents(&agents)?;
        Ok(())
    }

    fn expected(&self, rollout: &Rollout<'_>) -> Vec<(ProxyId, Vec<Expected>)> {
        let mut all = self.ztunnels.expected(rollout);
        for (namespace, waypoint) in self.waypoints.iter().enumerate() {
            let services = services_of(rollout, namespace).into_iter();
            all.push((*waypoint, services.flat_map(|id| expected(rollout, id)).collect()));
        }
        all
    }

    fn stations(&self, rollout: &Rollout<'_>, call: Call) -> Stations {
        let evidence = hop(rollout, call.to).waypoint_evidence();
        let waypoint = self.waypoints.get(rollout.namespace_index(call.to));
        let mut stations = self.ztunnels.stations(rollout, call);
        stations.at_caller.extend(waypoint.map(|waypoint| rollout.station_of(*waypoint, evidence)));
        stations
    }
}

/// Prefixes of the statistics that prove paths through a namespace's waypoint and its connections to ztunnels.
fn statistics(rollout: &Rollout<'_>, namespace: usize) -> Vec<String> {
    Hop::waypoint_statistics(services_of(rollout, namespace).into_iter().map(|id| hop(rollout, id)))
}

fn services_of(rollout: &Rollout<'_>, namespace: usize) -> Vec<WorkloadId> {
    let services = rollout.services().into_iter();
    services.filter(|id| rollout.is_member(*id) && rollout.namespace_index(*id) == namespace).collect()
}

/// Expected configuration of a service at the waypoint. Its routes are part of its listeners.
fn expected(rollout: &Rollout<'_>, id: WorkloadId) -> [Expected; 2] {
    let cluster = hop(rollout, id).cluster;
    [Expected::Cluster(cluster.clone()), Expected::FilterChain(cluster)]
}

fn hop(rollout: &Rollout<'_>, id: WorkloadId) -> Hop {
    Hop::at_waypoint(rollout.layer(id), SERVICE_PORT, &rollout.host_of(id))
}
