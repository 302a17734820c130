//! The waypoint: an HTTP proxy between two ztunnels.

use super::subject::object;
use crate::names::HBONE_PORT;
use experiment::dataplane::{DataPlane, Proxies};
use experiment::environment::DeploymentSpec;
use serde_json::{Value, json};

pub const NAME: &str = "waypoint";
pub const GATEWAY_NAME_LABEL: &str = "gateway.networking.k8s.io/gateway-name";
pub const AMBIENT_LABEL: (&str, &str) = ("istio.io/dataplane-mode", "ambient");
pub const USE_WAYPOINT_LABEL: (&str, &str) = ("istio.io/use-waypoint", NAME);
/// Keeps a Service in a namespace with a waypoint off it.
pub const WITHOUT_WAYPOINT_LABEL: (&str, &str) = (USE_WAYPOINT_LABEL.0, "none");
/// Annotation that Istio's CNI agent sets on a pod whose traffic goes through ztunnel.
pub const REDIRECTED_ANNOTATION: (&str, &str) = ("ambient.istio.io/redirection", "enabled");

pub fn gateway(namespace: &str) -> Value {
    let spec = json!({
        "gatewayClassName": "istio-waypoint",
        "listeners": [{
            "name": "mesh",
            "port": HBONE_PORT,
            "protocol": "HBONE",
            "allowedRoutes": {"namespaces": {"from": "Same"}},
        }],
    });
    let mut gateway = object("gateway.networking.k8s.io/v1", "Gateway", (namespace, NAME), &spec);
    gateway["metadata"]["labels"] = json!({"istio.io/waypoint-for": "service"});
    gateway
}

pub fn namespace_labels(data_plane: DataPlane) -> impl Iterator<Item = (&'static str, &'static str)> {
    let Proxies { node, namespace, .. } = data_plane.proxies();
    node.map(|_| AMBIENT_LABEL).into_iter().chain(namespace.map(|_| USE_WAYPOINT_LABEL))
}

/// Label of a Service in modes with waypoints. They are for members of the mesh alone.
pub fn service_label(data_plane: DataPlane, is_member: bool) -> Option<(&'static str, &'static str)> {
    let label = if is_member { USE_WAYPOINT_LABEL } else { WITHOUT_WAYPOINT_LABEL };
    data_plane.proxies().namespace.map(|_| label)
}

pub(super) fn is_used(spec: &DeploymentSpec) -> bool {
    spec.parts().data_plane.proxies().namespace.is_some()
}

/// Attaches a resource of a namespace to its waypoint, in modes where waypoints read requests.
pub(super) fn attach(resource: &mut Value, spec: &DeploymentSpec) {
    if is_used(spec) {
        resource["targetRefs"] =
            json!([{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": NAME}]);
    }
}
