//! Linkerd's proxies: one in each pod, at both ends of a call.

use super::{MeshView, SERVICE_PORT};
use crate::linkerd::{Inbound, Outbound};
use crate::proof::Evidence;
use experiment::topology::Call;

/// Counters of the caller's proxy that prove the path of a call.
pub fn at_caller(mesh: &dyn MeshView, call: Call) -> Evidence {
    let (callee, namespace) = (mesh.workload(call.to), mesh.namespace_of(call.to));
    let outbound = Outbound { service: &callee.name, namespace: &namespace };
    outbound.evidence(callee.protocol, mesh.is_member(call.to))
}

/// Counters of the callee's proxy.
pub fn at_callee(mesh: &dyn MeshView, call: Call) -> Evidence {
    Inbound { port: SERVICE_PORT }.evidence(mesh.workload(call.to).protocol, mesh.is_member(call.from))
}
