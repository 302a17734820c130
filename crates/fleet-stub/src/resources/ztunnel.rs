//! Addresses and authorizations of a ztunnel. Numbers are field numbers of Istio's protos.

use super::{Resource, Service};
use crate::protobuf::{Message, entry};

/// Type URL of addresses.
pub const ADDRESS: &str = "type.googleapis.com/istio.workload.Address";
/// Type URL of authorizations.
pub const AUTHORIZATION: &str = "type.googleapis.com/istio.security.Authorization";

/// Type URL of workloads, which waypoints read about their peers.
pub const WORKLOAD: &str = "type.googleapis.com/istio.workload.Workload";

/// Enum values.
const HBONE: u64 = 1;
const NAMESPACE_SCOPE: u64 = 1;

/// A pod of a service, as sent to ztunnels; `suffix` is appended to its name.
#[must_use]
pub fn workload_address(service: Service, replica: usize, suffix: &str) -> Resource {
    let (id, value) = pod(service, replica, suffix);
    Resource::new(id, ADDRESS, &Message::default().message(1, &value))
}

/// A pod of a service, as sent to waypoints.
pub fn workload(service: Service, replica: usize) -> Resource {
    let (id, value) = pod(service, replica, "");
    Resource::new(id, WORKLOAD, &value)
}

fn pod(service: Service, replica: usize, suffix: &str) -> (String, Message) {
    let (name, namespace) = (service.name(), service.namespace());
    let pod = format!("{name}-{replica}{suffix}");
    let id = format!("Kubernetes//Pod/{namespace}/{pod}");
    let ports = Message::default()
        .message(1, &Message::default().number(1, u64::from(service.port())).number(2, 8080));
    let value = Message::default()
        .text(1, &pod)
        .text(2, &namespace)
        .bytes(3, &service.pod_ip(replica))
        .number(5, HBONE)
        .text(7, &name)
        .text(9, &format!("node-{:03}", service.0 % 100))
        .text(10, &name)
        .text(11, "latest")
        .text(13, &name)
        .text(18, "Kubernetes")
        .text(20, &id)
        .message(22, &entry(&format!("{namespace}/{}", service.host()), &ports));
    (id, value)
}

/// A service as sent to ztunnels.
pub fn service(service: Service) -> Resource {
    let address = service.cluster_ip().split('.').map(|byte| byte.parse().unwrap_or(0)).collect::<Vec<u8>>();
    let value = Message::default()
        .text(1, &service.name())
        .text(2, &service.namespace())
        .text(3, &service.host())
        .message(4, &Message::default().bytes(2, &address))
        .message(5, &Message::default().number(1, u64::from(service.port())).number(2, 8080));
    let name = format!("{}/{}", service.namespace(), service.host());
    Resource::new(name, ADDRESS, &Message::default().message(2, &value))
}

/// A policy of a service's namespace.
pub fn authorization(service: Service) -> Resource {
    let name = format!("policy-{}", service.name());
    let matched = Message::default().message(1, &Message::default().text(1, "team-000"));
    let rules = Message::default().message(2, &matched);
    let group = Message::default().message(1, &rules);
    let value = Message::default()
        .text(1, &name)
        .text(2, &service.namespace())
        .number(3, NAMESPACE_SCOPE)
        .message(5, &group);
    Resource::new(format!("{}/{name}", service.namespace()), AUTHORIZATION, &value)
}
