//! Objects of workloads: their accounts, Pods, Services and EndpointSlices. Pure.
//! Pods and EndpointSlices look as a cluster's kubelet and controllers would write them: a lab has neither.

use crate::istio::objects::waypoint;
use crate::names::NODE;
use experiment::Protocol;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// A placeholder: the lab's processes have no image.
const IMAGE: &str = "meshmeter/none";
const MAX_ENDPOINTS: usize = 1000;

#[derive(Clone, Debug)]
pub struct Workload {
    /// Name of the account and of the Service, and value of the label `app`.
    pub name: String,
    pub namespace: String,
    pub replicas: Vec<Replica>,
    pub labels: BTreeMap<String, String>,
    membership: Membership,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Replica {
    pub pod: String,
    pub address: Ipv4Addr,
}

impl Workload {
    /// A workload whose pods have the label `app` and the labels of their membership.
    pub fn new(name: &str, namespace: &str, replicas: Vec<Replica>, membership: Membership) -> Self {
        let labels = [("app", name)].into_iter().chain(membership.labels().iter().copied());
        let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Self { name: name.to_owned(), namespace: namespace.to_owned(), replicas, labels, membership }
    }

    pub fn single(name: &str, namespace: &str, address: Ipv4Addr, membership: Membership) -> Self {
        Self::new(name, namespace, vec![Replica { pod: name.to_owned(), address }], membership)
    }

    pub fn membership(&self) -> Membership {
        self.membership
    }

    pub fn objects(&self) -> Vec<Value> {
        let pods = self.replicas.iter().map(|replica| self.pod(replica));
        std::iter::once(service_account(&self.name, &self.namespace)).chain(pods).collect()
    }

    fn pod(&self, replica: &Replica) -> Value {
        let annotations: BTreeMap<_, _> = self.membership.annotations().iter().copied().collect();
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": replica.pod, "namespace": self.namespace, "labels": self.labels, "annotations": annotations},
            "spec": {
                "nodeName": NODE,
                "serviceAccountName": self.name,
                "automountServiceAccountToken": false,
                "containers": [{"name": self.name, "image": IMAGE}],
            },
        })
    }

    pub fn pod_statuses(&self) -> Vec<Value> {
        self.replicas.iter().map(|replica| self.pod_status(replica)).collect()
    }

    fn pod_status(&self, replica: &Replica) -> Value {
        let conditions = ["Initialized", "PodScheduled", "ContainersReady", "Ready"];
        let conditions = conditions.map(|condition| json!({"type": condition, "status": "True"}));
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": replica.pod, "namespace": self.namespace},
            "status": {
                "phase": "Running",
                "podIP": replica.address,
                "podIPs": [{"ip": replica.address}],
                "hostIP": replica.address,
                "conditions": conditions,
                "containerStatuses": [{
                    "name": self.name, "image": IMAGE, "imageID": "",
                    "ready": true, "started": true, "restartCount": 0, "state": {"running": {}},
                }],
            },
        })
    }

    pub fn service(&self, ports: &[ServicePort]) -> Value {
        let ports: Vec<Value> = ports
            .iter()
            .map(|port| json!({"name": port.name, "port": port.port, "targetPort": port.port, "protocol": "TCP"}))
            .collect();
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": {"selector": {"app": self.name}, "ports": ports},
        })
    }

    pub fn endpoint_slices(&self, ports: &[ServicePort]) -> Vec<Value> {
        let Self { name, namespace, .. } = self;
        let ports = ports.iter().map(|port| json!({"name": port.name, "port": port.port, "protocol": "TCP"}));
        let ports: Value = ports.collect();
        let endpoint = |replica: &Replica| {
            json!({
                "addresses": [replica.address],
                "conditions": {"ready": true, "serving": true, "terminating": false},
                "nodeName": NODE,
                "targetRef": {"kind": "Pod", "name": replica.pod, "namespace": namespace},
            })
        };
        let slice = |(number, replicas): (usize, &[Replica])| {
            let slice = if number == 0 { name.clone() } else { format!("{name}-{number}") };
            endpoint_slice(
                (namespace, &slice),
                name,
                &replicas.iter().map(endpoint).collect::<Vec<_>>(),
                &ports,
            )
        };
        self.replicas.chunks(MAX_ENDPOINTS).enumerate().map(slice).collect()
    }

    pub fn service_objects(&self, ports: &[ServicePort]) -> Vec<Value> {
        std::iter::once(self.service(ports)).chain(self.endpoint_slices(ports)).collect()
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Membership {
    Outside,
    /// A sidecar in the pod; other proxies connect to it with mutual TLS.
    Sidecar,
    Ambient,
    Waypoint,
}

impl Membership {
    /// Labels that Istio's injector or its gateway controller would set.
    fn labels(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Outside | Self::Ambient => &[],
            Self::Sidecar => {
                &[("security.istio.io/tlsMode", "istio"), ("service.istio.io/canonical-revision", "latest")]
            }
            Self::Waypoint => &[
                (waypoint::GATEWAY_NAME_LABEL, waypoint::NAME),
                ("gateway.istio.io/managed", "istio.io-mesh-controller"),
            ],
        }
    }

    /// Annotations that Istio's CNI agent would set.
    fn annotations(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Ambient => &[waypoint::REDIRECTED_ANNOTATION],
            Self::Outside | Self::Sidecar | Self::Waypoint => &[],
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ServicePort {
    /// Port name, by which Istio detects the protocol: it begins with `http`, `http2`, `grpc`, `tcp` or `tls`.
    pub name: &'static str,
    pub port: u16,
}

impl ServicePort {
    pub fn for_protocol(protocol: Protocol, port: u16) -> Self {
        let name = match protocol {
            Protocol::Http1 => "http-app",
            Protocol::Http2 => "http2-app",
            Protocol::Grpc => "grpc-app",
            Protocol::Tcp => "tcp-app",
        };
        Self { name, port }
    }
}

pub fn endpoint_slice(
    (namespace, name): (&str, &str),
    service: &str,
    endpoints: &[Value],
    ports: &Value,
) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": name, "namespace": namespace, "labels": {"kubernetes.io/service-name": service}},
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": ports,
    })
}

pub fn namespace(name: &str, labels: &[(&str, &str)]) -> Value {
    let labels: BTreeMap<_, _> = labels.iter().copied().collect();
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
}

pub fn service_account(name: &str, namespace: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}})
}

pub fn node() -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(replicas: u8) -> Workload {
        let replica =
            |number| Replica { pod: format!("web-{number}"), address: Ipv4Addr::new(10, 77, number, 1) };
        Workload::new("web", "shop", (1..=replicas).map(replica).collect(), Membership::Sidecar)
    }

    #[test]
    fn endpoint_slices_list_all_replicas() {
        let slices = workload(3).endpoint_slices(&[ServicePort::for_protocol(Protocol::Grpc, 8080)]);
        let [slice] = &slices[..] else { panic!("{slices:?}") };
        let addresses: Vec<&Value> = slice["endpoints"].as_array().unwrap().iter().collect();
        let addresses: Vec<&str> =
            addresses.iter().map(|endpoint| endpoint["addresses"][0].as_str().unwrap()).collect();
        assert_eq!(addresses, ["10.77.1.1", "10.77.2.1", "10.77.3.1"]);
        assert_eq!(slice["ports"], json!([{"name": "grpc-app", "port": 8080, "protocol": "TCP"}]));
    }

    #[test]
    fn endpoint_slices_are_split_for_many_replicas() {
        let replica = |number: u32| Replica {
            pod: format!("web-{number}"),
            address: Ipv4Addr::from(0x0a4d_0000 + number),
        };
        let workload = Workload::new("web", "shop", (1..=2500).map(replica).collect(), Membership::Ambient);
        let slices = workload.endpoint_slices(&[]);
        let lengths: Vec<usize> =
            slices.iter().map(|slice| slice["endpoints"].as_array().unwrap().len()).collect();
        assert_eq!(lengths, [1000, 1000, 500]);
        let names: Vec<&Value> = slices.iter().map(|slice| &slice["metadata"]["name"]).collect();
        assert_eq!(names, ["web", "web-1", "web-2"]);
    }

    #[test]
    fn objects_are_one_account_and_one_pod_per_replica() {
        let workload = workload(2);
        let objects = workload.objects();
        let names: Vec<&Value> = objects.iter().map(|object| &object["metadata"]["name"]).collect();
        assert_eq!(names, ["web", "web-1", "web-2"]);
        assert_eq!(objects[2]["metadata"]["labels"]["app"], "web");
        assert_eq!(objects[2]["spec"]["serviceAccountName"], "web");
        assert_eq!(workload.pod_statuses()[1]["status"]["podIP"], "10.77.2.1");
    }
}
