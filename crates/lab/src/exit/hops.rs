//! Hops of an exit: what a caller's sidecar and an egress gateway forward, and the evidence that they did.

use crate::redirect::OUTBOUND_PORT;
use crate::rollout::Rollout;
use experiment::dataplane::Exit;
use experiment::topology::{Call, WorkloadId};
use mesh::envoy::hop::{Hop, Layer, Peer};
use mesh::istio::objects::egress::{
    EXTERNAL_HOST, GATEWAY, GATEWAY_PORT, SNI_PROXY_HOST, SNI_PROXY_PORT, SUBSET,
};
use mesh::istio::propagation::Expected;
use mesh::names::service_host;
use std::net::SocketAddrV4;

pub(super) fn has_gateway(exit: Exit) -> bool {
    matches!(exit, Exit::Gateway | Exit::GatewayMtls | Exit::Sni)
}

/// True if the sidecar speaks mutual TLS with the gateway, around the client's own TLS.
pub(crate) fn speaks_mutual_tls(exit: Exit) -> bool {
    matches!(exit, Exit::GatewayMtls | Exit::Sni)
}

pub(crate) fn hop_of_caller(rollout: &Rollout<'_>, call: Call) -> Hop {
    let (exit, port) = (rollout.mode.exit, rollout.endpoints_of(call.to)[0].port());
    let (peer, cluster) = if has_gateway(exit) {
        let gateway = service_host(GATEWAY, rollout.mesh_namespace(call.from));
        (Peer::Next, format!("outbound|{GATEWAY_PORT}|{SUBSET}|{gateway}"))
    } else {
        (Peer::Nobody, external_cluster(port))
    };
    Hop { peer, ..Hop::outbound(Layer::L4, port, cluster) }
}

/// `port` is the port of the external service.
pub(super) fn hop_of_gateway(exit: Exit, port: u16) -> Hop {
    let cluster = if exit == Exit::Sni {
        format!("outbound|{SNI_PROXY_PORT}||{SNI_PROXY_HOST}")
    } else {
        external_cluster(port)
    };
    let peer = Peer::Previous(format!("0.0.0.0_{GATEWAY_PORT}"));
    Hop { peer, ..Hop::outbound(Layer::L4, GATEWAY_PORT, cluster) }
}

fn external_cluster(port: u16) -> String {
    format!("outbound|{port}||{EXTERNAL_HOST}")
}

/// Statistics of a sidecar that increase if traffic did not bypass it. Usually every redirected connection
/// counts, known destination or not. For a workload that also calls others inside the mesh, only unknown
/// destinations count.
pub(crate) fn past_the_sidecar(rollout: &Rollout<'_>, id: WorkloadId) -> Vec<String> {
    let redirected = format!("listener.0.0.0.0_{OUTBOUND_PORT}.downstream_cx_total");
    let calls_inside = rollout.calls_from(id).any(|call| !rollout.workload(call.to).is_external());
    let unknown = ["PassthroughCluster", "BlackHoleCluster"];
    let unknown = unknown.map(|cluster| format!("cluster.{cluster}.upstream_cx_total"));
    (!calls_inside).then_some(redirected).into_iter().chain(unknown).collect()
}

pub(crate) fn expected_of_caller(rollout: &Rollout<'_>, call: Call, hop: &Hop) -> Vec<Expected> {
    if rollout.mode.exit == Exit::Bypass {
        return Vec::new();
    }
    let service = rollout.endpoints_of(call.to)[0];
    let gateway = rollout.pods.infrastructure.first().filter(|_| has_gateway(rollout.mode.exit));
    let next = gateway.map_or(service, |gateway| SocketAddrV4::new(gateway.address(), GATEWAY_PORT));
    leading(hop, service.port(), next)
}

/// Expects that a proxy listens on this port and routes its connections to this address.
pub(super) fn leading(hop: &Hop, port: u16, next: SocketAddrV4) -> Vec<Expected> {
    vec![
        Expected::Endpoint(hop.cluster.clone(), next),
        Expected::Listener(format!("0.0.0.0_{port}")),
        Expected::route(hop, EXTERNAL_HOST),
    ]
}
