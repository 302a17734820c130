//! The waypoint: an HTTP proxy between two ztunnels.

use super::object;
use serde_json::{Value, json};

/// Its name: its pod's, its account's, its Service's, its Gateway's.
pub const NAME: &str = "waypoint";
/// The port that ztunnels reach it at.
pub const PORT: u16 = 15008;

/// The label of the pods of a gateway that the Gateway API describes.
pub const GATEWAY_NAME_LABEL: &str = "gateway.networking.k8s.io/gateway-name";

/// The label of a namespace whose pods are in the ambient mesh.
pub const AMBIENT_LABEL: (&str, &str) = ("istio.io/dataplane-mode", "ambient");

/// The label of a namespace whose Services have the waypoint before them.
pub const USE_WAYPOINT_LABEL: (&str, &str) = ("istio.io/use-waypoint", NAME);

/// The annotation of a pod whose traffic goes through ztunnel, which Istio's CNI agent sets once that is so.
pub const REDIRECTED_ANNOTATION: (&str, &str) = ("ambient.istio.io/redirection", "enabled");

/// The Gateway that says that there is a waypoint, for requests to Services.
#[must_use]
pub fn gateway(namespace: &str) -> Value {
    let spec = json!({
        "gatewayClassName": "istio-waypoint",
        "listeners": [{
            "name": "mesh",
            "port": PORT,
            "protocol": "HBONE",
            "allowedRoutes": {"namespaces": {"from": "Same"}},
        }],
    });
    let mut gateway = object("gateway.networking.k8s.io/v1", "Gateway", (namespace, NAME), &spec);
    gateway["metadata"]["labels"] = json!({"istio.io/waypoint-for": "service"});
    gateway
}

/// What makes a policy one of the waypoint.
pub(super) fn target() -> Value {
    json!([{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": NAME}])
}
