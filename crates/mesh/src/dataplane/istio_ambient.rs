//! Istio's ambient mode: a ztunnel on the node of each pod, and with waypoints an Envoy per namespace between them.

use super::{MeshView, SERVICE_PORT};
use crate::envoy::hop::Hop;
use crate::istio::objects::{extra, policy};
use crate::istio::propagation::Expected;
use crate::proof::{Accepts, Evidence};
use crate::ztunnel::evidence::AmbientCall;
use experiment::dataplane::DataPlane;
use experiment::topology::{Call, WorkloadId};
use std::collections::BTreeSet;

pub fn has_waypoint(mesh: &dyn MeshView) -> bool {
    mesh.spec().parts().data_plane == DataPlane::ZtunnelWaypoint
}

/// True if a call goes through the waypoint of its callee: callers outside the mesh know no waypoints, and Services outside it
/// have none.
pub fn passes_waypoint(mesh: &dyn MeshView, call: Call) -> bool {
    has_waypoint(mesh) && in_mesh(mesh, call) == [true, true]
}

/// True for each end of a call that is a member.
fn in_mesh(mesh: &dyn MeshView, call: Call) -> [bool; 2] {
    [call.from, call.to].map(|id| mesh.is_member(id))
}

/// True if a call has one end in the mesh.
fn crosses_border(mesh: &dyn MeshView, call: Call) -> bool {
    let [from, to] = in_mesh(mesh, call);
    from != to
}

/// Members that serve requests, in a namespace of the mesh.
pub fn services(mesh: &dyn MeshView, namespace: &str) -> Vec<WorkloadId> {
    let workloads = mesh.spec().topology.workloads.iter().enumerate();
    let members = workloads.filter(|(id, workload)| workload.serves() && mesh.is_member(*id));
    members.map(|(id, _)| id).filter(|id| mesh.namespace_of(*id) == namespace).collect()
}

/// Counters of the ztunnels at the caller and at the callee that prove the path of a call; absent at an end outside the mesh.
/// `is_shared`: they also carry other pods.
pub fn evidence(mesh: &dyn MeshView, call: Call, is_shared: bool) -> (Option<Evidence>, Option<Evidence>) {
    let namespaces = [call.from, call.to].map(|id| mesh.namespace_of(id));
    let call = AmbientCall {
        protocol: mesh.workload(call.to).protocol,
        from: (&mesh.workload(call.from).name, &namespaces[0]),
        to: (&mesh.workload(call.to).name, &namespaces[1]),
        in_mesh: in_mesh(mesh, call),
        through_waypoint: passes_waypoint(mesh, call),
        accepts: Accepts::new(SERVICE_PORT, mesh.spec().proxy.mtls),
        is_shared_with_others: is_shared,
        is_beside_plaintext: mesh.spec().topology.calls.iter().any(|call| crosses_border(mesh, *call)),
    };
    call.evidence()
}

/// The hop to a Service at the waypoint of its namespace.
pub fn waypoint_hop(mesh: &dyn MeshView, id: WorkloadId) -> Hop {
    Hop::at_waypoint(mesh.layer(id), SERVICE_PORT, &mesh.host_of(id))
}

/// Prefixes of the statistics that prove paths through a namespace's waypoint and its connections to ztunnels.
pub fn waypoint_statistics(mesh: &dyn MeshView, namespace: &str) -> Vec<String> {
    Hop::waypoint_statistics(services(mesh, namespace).into_iter().map(|id| waypoint_hop(mesh, id)))
}

/// Configuration that the waypoint of a namespace must have received. Its routes are part of its listeners.
pub fn expected_of_waypoint(mesh: &dyn MeshView, namespace: &str) -> Vec<Expected> {
    let clusters = services(mesh, namespace).into_iter().map(|id| waypoint_hop(mesh, id).cluster);
    clusters
        .flat_map(|cluster| [Expected::Cluster(cluster.clone()), Expected::FilterChain(cluster)])
        .collect()
}

/// Configuration that every ztunnel must have received. `pods` are the namespaces and names of those pods that it may meet, and
/// whether they are in the mesh. It counts connections of a pod that it does not know as those of an unknown peer.
pub fn expected_of_ztunnel<'a>(
    mesh: &dyn MeshView,
    pods: impl IntoIterator<Item = (&'a str, &'a str, bool)>,
) -> Vec<Expected> {
    let (spec, behind_waypoint) = (mesh.spec(), has_waypoint(mesh));
    let workload = |(namespace, name, by_hbone): (&str, &str, bool)| Expected::AmbientWorkload {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        by_hbone,
    };
    let mut expected: Vec<Expected> = pods.into_iter().map(workload).collect();
    let outside = spec.topology.calls.iter().filter(|call| in_mesh(mesh, **call) == [true, false]);
    let outside: BTreeSet<WorkloadId> = outside.map(|call| call.to).collect();
    let outside = outside.into_iter().filter(|id| !mesh.workload(*id).is_external());
    expected.extend(
        outside.map(|id| Expected::AmbientService { host: mesh.host_of(id), behind_waypoint: false }),
    );
    let policy = |(namespace, name)| Expected::AmbientPolicy { namespace, name };
    for namespace in spec.topology.namespaces().into_iter().map(|name| mesh.namespace(name)) {
        for id in services(mesh, &namespace) {
            expected.push(Expected::AmbientService { host: mesh.host_of(id), behind_waypoint });
            // Rules that a waypoint checks do not go to ztunnel.
            let rules = if behind_waypoint { 0 } else { spec.istio.authorization.identities };
            let names = policy::policy_names(policy::IDENTITY_RULES, &mesh.workload(id).name, rules);
            expected.extend(names.into_iter().map(|name| policy((namespace.clone(), name))));
        }
        let own = extra::ztunnel_policies(spec.istio.extra.as_ref(), &namespace);
        expected.extend(own.into_iter().map(policy));
    }
    expected
}
