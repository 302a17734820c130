//! Istio's ambient mode: ztunnel on every node, with a waypoint per namespace or without.

use super::istio::{self, control_plane};
use super::{Labels, MeshPlug, Need, PlugContext, SharedComponent};
use crate::Result;
use experiment::dataplane::DataPlane;
use experiment::schema::Role;
use mesh::istio::objects::waypoint;
use mesh::kubernetes::object_ref::ObjectRef;
use mesh::names::SYSTEM_NAMESPACE;
use serde_json::{Value, json};

#[derive(Clone, Debug)]
pub(super) struct Ambient {
    pub revision: Option<String>,
    pub data_plane: DataPlane,
}

impl Ambient {
    fn labels(&self) -> Labels {
        let labels = waypoint::namespace_labels(self.data_plane);
        labels.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    fn has_waypoint(&self) -> bool {
        self.data_plane.proxies().namespace.is_some()
    }
}

impl MeshPlug for Ambient {
    fn namespace_labels(&self) -> Labels {
        self.labels()
    }

    fn pod_labels(&self) -> Labels {
        self.labels()
    }

    fn objects(&self, context: &PlugContext<'_>) -> Vec<Value> {
        let namespaces = context.spec.topology.namespaces();
        let namespaces = namespaces.into_iter().filter(|_| self.has_waypoint());
        let gateways = namespaces.map(|namespace| {
            let mut gateway = waypoint::gateway(&context.settings.namespace(namespace));
            if let Some(revision) = &self.revision {
                gateway["metadata"]["labels"]["istio.io/rev"] = json!(revision);
            }
            gateway
        });
        gateways.chain(istio::objects(context)).collect()
    }

    fn check_settings(&self, context: &PlugContext<'_>) -> Result<()> {
        istio::check_settings(context.spec)
    }

    fn shared(&self) -> Vec<SharedComponent> {
        let ztunnel = SharedComponent {
            name: "ztunnel",
            role: Role::Proxy,
            namespace: Some(SYSTEM_NAMESPACE),
            selector: "app=ztunnel".to_owned(),
        };
        let waypoint = SharedComponent {
            name: "waypoint",
            role: Role::Proxy,
            namespace: None,
            selector: format!("{}={}", waypoint::GATEWAY_NAME_LABEL, waypoint::NAME),
        };
        let waypoint = self.has_waypoint().then_some(waypoint);
        [ztunnel].into_iter().chain(waypoint).chain([control_plane(self.revision.as_deref())]).collect()
    }

    fn needs(&self) -> Vec<Need> {
        let ztunnel = Need {
            object: ObjectRef::new("apps/v1", "DaemonSet", Some(SYSTEM_NAMESPACE), "ztunnel"),
            otherwise: "Istio's ambient mode is not installed in this cluster",
            hint: "install Istio with the profile `ambient`",
        };
        let gateway = Need {
            object: ObjectRef::new("gateway.networking.k8s.io/v1", "GatewayClass", None, "istio-waypoint"),
            otherwise: "Istio deploys no waypoints in this cluster",
            hint: "install the Gateway API's definitions before Istio",
        };
        [ztunnel].into_iter().chain(self.has_waypoint().then_some(gateway)).collect()
    }

    fn refusal(&self) -> Option<&'static str> {
        Some("ztunnel's counters are not read on clusters yet, so nothing would prove the path")
    }
}
