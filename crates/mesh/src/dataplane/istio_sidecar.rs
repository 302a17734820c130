//! Istio's sidecars: an Envoy in each pod, at both ends of a call.

use super::{MeshView, SERVICE_PORT, comes_from_outside};
use crate::envoy::hop::{Hop, Peer};
use crate::proof::{Accepts, Evidence};
use experiment::topology::{Call, WorkloadId};
use results::HopProtocol;

/// Handling, by a caller's sidecar or a gateway, of requests on this port that are for a service.
pub fn outbound(mesh: &dyn MeshView, callee: WorkloadId, port: u16) -> Hop {
    let peer = if mesh.is_member(callee) { Peer::Next } else { Peer::Nobody };
    let layer = mesh.layer(callee).between(None, between_proxies(mesh));
    let cluster = format!("outbound|{SERVICE_PORT}||{}", mesh.host_of(callee));
    Hop { peer, ..Hop::outbound(layer, port, cluster) }
}

/// Handling, by a sidecar, of requests for its workload.
pub fn inbound(mesh: &dyn MeshView, id: WorkloadId) -> Hop {
    Hop::inbound(mesh.layer(id).between(between_proxies(mesh), None), SERVICE_PORT)
}

/// Counters of the caller's sidecar that prove the path of a call.
pub fn at_caller(mesh: &dyn MeshView, call: Call) -> Evidence {
    outbound(mesh, call.to, SERVICE_PORT).evidence(mesh.spec().proxy.mtls.is_spoken())
}

/// Counters of the callee's sidecar. A gateway speaks mutual TLS as a sidecar does. The sidecar counts the connections of all
/// callers together: if some of them are outside the mesh, the others prove at their own sidecars that each connection was
/// encrypted.
pub fn at_callee(mesh: &dyn MeshView, call: Call) -> Evidence {
    let mtls = mesh.spec().proxy.mtls;
    let is_plaintext = |call: Call| !mtls.is_spoken() || comes_from_outside(mesh, call);
    let mut evidence = inbound(mesh, call.to).evidence(!is_plaintext(call));
    evidence.accepts = Some(Accepts::new(SERVICE_PORT, mtls));
    let mut others = mesh.spec().topology.calls.iter().filter(|other| other.to == call.to);
    if others.any(|other| is_plaintext(*other) != is_plaintext(call)) {
        evidence.encrypted = None;
        evidence.handshakes = evidence.handshakes.filter(|_| evidence.tls_expected);
    }
    evidence
}

/// Protocol that proxies speak with each other, if it is not the client's.
fn between_proxies(mesh: &dyn MeshView) -> Option<HopProtocol> {
    mesh.spec().istio.http2_upgrade.then_some(HopProtocol::Http2)
}
