//! A pod of the lab as the API knows it: its account, itself with its address, a Service before it.

use super::control_plane::NODE;
use super::objects;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// What its containers are said to be made of: processes of the lab have no image.
const IMAGE: &str = "meshmeter/none";

/// A pod and what goes with it.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The name of the pod, its service account and its label `app`.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its address.
    pub address: Ipv4Addr,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    membership: Membership,
}

impl Workload {
    /// A pod with the label `app`, and whatever labels its part in the mesh asks for.
    #[must_use]
    pub fn new(name: &str, namespace: &str, address: Ipv4Addr, membership: Membership) -> Self {
        let own = [("app", name)];
        let labels = own.iter().chain(membership.labels());
        let labels = labels.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self { name: name.to_owned(), namespace: namespace.to_owned(), address, labels, membership }
    }

    /// Its service account and the pod, as it is created.
    #[must_use]
    pub fn objects(&self) -> [Value; 2] {
        let Self { name, namespace, labels, membership, .. } = self;
        let annotations: BTreeMap<_, _> = membership.annotations().iter().copied().collect();
        [
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}),
            json!({
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": name,
                    "namespace": namespace,
                    "labels": labels,
                    "annotations": annotations,
                },
                "spec": {
                    "nodeName": NODE,
                    "serviceAccountName": name,
                    "automountServiceAccountToken": false,
                    "containers": [{"name": name, "image": IMAGE}],
                },
            }),
        ]
    }

    /// The pod as its kubelet would report it.
    #[must_use]
    pub fn running(&self) -> Value {
        let Self { name, namespace, address, .. } = self;
        let conditions = ["Initialized", "PodScheduled", "ContainersReady", "Ready"];
        let conditions: Vec<Value> =
            conditions.iter().map(|condition| json!({"type": condition, "status": "True"})).collect();
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace},
            "status": {
                "phase": "Running",
                "podIP": address,
                "podIPs": [{"ip": address}],
                "hostIP": address,
                "conditions": conditions,
                "containerStatuses": [{
                    "name": name,
                    "image": IMAGE,
                    "imageID": "",
                    "ready": true,
                    "started": true,
                    "restartCount": 0,
                    "state": {"running": {}},
                }],
            },
        })
    }

    /// A Service of the same name before it.
    #[must_use]
    pub fn service(&self, ports: &[ServicePort]) -> Value {
        let Self { name, namespace, .. } = self;
        let ports: Vec<Value> = ports
            .iter()
            .map(|port| json!({"name": port.name, "port": port.port, "targetPort": port.port, "protocol": "TCP"}))
            .collect();
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"selector": {"app": name}, "ports": ports},
        })
    }

    /// Its address behind that Service, as the endpoint controller of a cluster would write it.
    #[must_use]
    pub fn endpoints(&self, ports: &[ServicePort]) -> Value {
        let Self { name, namespace, address, .. } = self;
        let ports: Vec<Value> = ports
            .iter()
            .map(|port| json!({"name": port.name, "port": port.port, "protocol": "TCP"}))
            .collect();
        json!({
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": {"kubernetes.io/service-name": name},
            },
            "addressType": "IPv4",
            "endpoints": [{
                "addresses": [address],
                "conditions": {"ready": true, "serving": true, "terminating": false},
                "nodeName": NODE,
                "targetRef": {"kind": "Pod", "name": name, "namespace": namespace},
            }],
            "ports": ports,
        })
    }
}

/// A pod's part in the mesh.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Membership {
    /// None: no proxy stands beside it.
    Outside,
    /// A sidecar is in it, and proxies that call it speak mutual TLS with that.
    Sidecar,
    /// Its traffic goes through ztunnel.
    Ambient,
    /// It is a waypoint.
    Waypoint,
}

impl Membership {
    /// What Istio's injector would write onto the pod, or its gateway controller.
    fn labels(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Outside | Self::Ambient => &[],
            Self::Sidecar => {
                &[("security.istio.io/tlsMode", "istio"), ("service.istio.io/canonical-revision", "latest")]
            }
            Self::Waypoint => &[
                (objects::waypoint::GATEWAY_NAME_LABEL, objects::waypoint::NAME),
                ("gateway.istio.io/managed", "istio.io-mesh-controller"),
            ],
        }
    }

    /// What Istio's CNI agent would.
    fn annotations(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Ambient => &[objects::waypoint::REDIRECTED_ANNOTATION],
            Self::Outside | Self::Sidecar | Self::Waypoint => &[],
        }
    }
}

/// A port of a Service.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ServicePort {
    /// Its name, which tells Istio the protocol: `http-`, `http2-`, `grpc-` or `tcp-` and a word.
    pub name: &'static str,
    /// Its number, at the Service and at the pod.
    pub port: u16,
}
