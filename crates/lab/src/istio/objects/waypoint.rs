//! The waypoint: an HTTP proxy between two ztunnels.

use super::object;
use serde_json::{Value, json};

/// Its name: its pod's, its account's, its Service's, its Gateway's.
pub const NAME: &str = "waypoint";
/// The port that ztunnels reach it at.
pub const PORT: u16 = 15008;

/// The label of the pods of a gateway that the Gateway API describes.
pub const GATEWAY_NAME_LABEL: &str = "gateway.networking.k8s.io/gateway-name";

/// Labels of a namespace whose pods are in the ambient mesh; with a waypoint before its Services, where there is one.
#[must_use]
pub fn namespace_labels(has_waypoint: bool) -> Value {
    let mut labels = json!({"istio.io/dataplane-mode": "ambient"});
    if has_waypoint {
        labels["istio.io/use-waypoint"] = json!(NAME);
    }
    labels
}

/// The annotation of a pod whose traffic goes through ztunnel, which Istio's CNI agent sets once that is so.
#[must_use]
pub fn redirected_annotation() -> (&'static str, &'static str) {
    ("ambient.istio.io/redirection", "enabled")
}

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
