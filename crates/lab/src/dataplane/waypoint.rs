//! ztunnel with a waypoint per namespace: an Envoy in its own pod, to which ztunnels send the namespace's
//! requests.

use super::ztunnel::Ztunnels;
use crate::Result;
use crate::istio::agent::ProxyKind;
use crate::rollout::Rollout;
use crate::rollout::gateway::GatewayPod;
use crate::rollout::part::Part;
use crate::rollout::station::Stations;
use experiment::topology::Call;
use mesh::dataplane::istio_ambient::{
    expected_of_waypoint, passes_waypoint, waypoint_hop, waypoint_statistics,
};
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
        let namespaces = rollout.mesh().namespaces.names().to_vec();
        let with_ports = (0..namespaces.len()).map(|namespace| (namespace, PORTS.to_vec())).collect();
        let pods = GatewayPod::create_in(rollout, NAME, Membership::Waypoint, with_ports)?;
        let gateways = namespaces.iter().map(|name| gateway(name));
        let objects: Vec<_> = pods.iter().flat_map(GatewayPod::service).chain(gateways).collect();
        rollout.mesh_mut().namespaces.objects.apply(&objects)?;
        let agent = |(pod, namespace): (&GatewayPod, &String)| {
            pod.agent(rollout, NAME, ProxyKind::Waypoint, waypoint_statistics(rollout, namespace))
        };
        let agents: Vec<_> = pods.iter().zip(&namespaces).map(agent).collect();
        self.waypoints = rollout.start_agents(&agents)?;
        Ok(())
    }

    fn expected(&self, rollout: &Rollout<'_>) -> Vec<(ProxyId, Vec<Expected>)> {
        let mut all = self.ztunnels.expected(rollout);
        for (namespace, waypoint) in rollout.mesh().namespaces.names().iter().zip(&self.waypoints) {
            all.push((*waypoint, expected_of_waypoint(rollout, namespace)));
        }
        all
    }

    fn stations(&self, rollout: &Rollout<'_>, call: Call) -> Stations {
        let mut stations = self.ztunnels.stations(rollout, call);
        if !passes_waypoint(rollout, call) {
            return stations;
        }
        let evidence = waypoint_hop(rollout, call.to).waypoint_evidence();
        let waypoint = self.waypoints.get(rollout.namespace_index(call.to));
        stations.at_caller.extend(waypoint.map(|waypoint| rollout.station_of(*waypoint, evidence)));
        stations
    }
}
