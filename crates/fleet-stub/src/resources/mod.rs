//! Resources with the fields and proportions of those that istiod sends: per service, a sidecar gets a
//! cluster, its endpoints and a virtual host.
//!
//! Except for one listener per port, resources whose number does not depend on that of services are omitted,
//! such as a sidecar's inbound side.

mod envoy;
mod ztunnel;

pub use envoy::{CLUSTER, ENDPOINTS, LISTENER, NAME_TABLE, ROUTES, endpoints};
pub use ztunnel::{ADDRESS, AUTHORIZATION, WORKLOAD, workload_address};

use crate::protobuf::{Message, any};
use bytes::Bytes;

/// A resource of a configuration.
#[derive(Clone, Debug)]
pub struct Resource {
    /// Name that clients subscribe to.
    pub name: String,
    /// Encoded `google.protobuf.Any`.
    pub any: Bytes,
}

impl Resource {
    fn new(name: String, type_url: &str, value: &Message) -> Self {
        Self { name, any: Bytes::copy_from_slice(any(type_url, value).encoded()) }
    }
}

/// Resources of one type.
#[derive(Clone, Debug)]
pub struct Collection {
    /// Type URL of all of them.
    pub type_url: &'static str,
    /// In the order in which they are sent.
    pub resources: Vec<Resource>,
}

impl Collection {
    fn bytes(&self) -> usize {
        self.resources.iter().map(|resource| resource.any.len() + resource.name.len()).sum()
    }
}

/// Ports of the services; each has its own listener and routes.
const PORTS: [u16; 8] = [80, 8080, 9080, 9090, 3000, 5000, 8000, 8888];

/// A service of the mesh, given by its number.
#[derive(Clone, Copy, Debug)]
pub struct Service(usize);

impl Service {
    /// Namespace of the service; twenty services share one.
    fn namespace(self) -> String {
        format!("team-{:03}", self.0 / 20)
    }

    fn name(self) -> String {
        format!("service-{:05}", self.0)
    }

    fn host(self) -> String {
        format!("{}.{}.svc.cluster.local", self.name(), self.namespace())
    }

    fn port(self) -> u16 {
        PORTS[self.0 % PORTS.len()]
    }

    /// Name of its cluster and of its endpoints.
    #[must_use]
    pub fn cluster_name(self) -> String {
        format!("outbound|{}||{}", self.port(), self.host())
    }

    fn cluster_ip(self) -> String {
        format!("10.96.{}.{}", self.0 / 250 % 250, self.0 % 250 + 1)
    }

    fn pod_ip(self, replica: usize) -> [u8; 4] {
        let pod = self.0 * 2 + replica;
        [10, 64 + (pod / 62_500) as u8, (pod / 250 % 250) as u8, (pod % 250 + 1) as u8]
    }
}

/// Resources of a sidecar in a mesh of this many services with two pods each.
#[must_use]
pub fn for_sidecars(services: usize) -> Vec<Collection> {
    let all = || (0..services).map(Service);
    let routes =
        PORTS.iter().map(|port| envoy::routes(*port, all().filter(|service| service.port() == *port)));
    vec![
        Collection { type_url: CLUSTER, resources: all().map(envoy::cluster).collect() },
        Collection { type_url: ENDPOINTS, resources: all().map(|service| endpoints(service, &[])).collect() },
        Collection {
            type_url: LISTENER,
            resources: PORTS.iter().map(|port| envoy::listener(*port)).collect(),
        },
        Collection { type_url: ROUTES, resources: routes.collect() },
        Collection { type_url: NAME_TABLE, resources: vec![envoy::name_table(all())] },
    ]
}

/// Resources of a ztunnel in a mesh of this many services with two pods each.
#[must_use]
pub fn for_ztunnels(services: usize) -> Vec<Collection> {
    let all = || (0..services).map(Service);
    let pods = all().flat_map(|service| (0..2).map(move |replica| workload_address(service, replica, "")));
    let policies = all().filter(|service| service.0 % 20 == 0).map(ztunnel::authorization);
    vec![
        Collection { type_url: ADDRESS, resources: all().map(ztunnel::service).chain(pods).collect() },
        Collection { type_url: AUTHORIZATION, resources: policies.collect() },
    ]
}

/// Resources of a waypoint in addition to those of sidecars, in a mesh of this many services with two pods each.
#[must_use]
pub fn for_waypoints(services: usize) -> Vec<Collection> {
    let all = (0..services).map(Service);
    let pods = all.flat_map(|service| (0..2).map(move |replica| ztunnel::workload(service, replica)));
    vec![Collection { type_url: WORKLOAD, resources: pods.collect() }]
}

/// Number of services for which a sidecar without the name table gets about this many bytes.
#[must_use]
pub fn services_for_bytes(bytes: usize) -> usize {
    const SAMPLE: usize = 200;
    let collections = for_sidecars(SAMPLE);
    let asked_for = collections.iter().filter(|collection| collection.type_url != NAME_TABLE);
    let sample_bytes: usize = asked_for.map(Collection::bytes).sum();
    (bytes * SAMPLE).div_ceil(sample_bytes)
}

/// The service with this number.
#[must_use]
pub fn service(number: usize) -> Service {
    Service(number)
}
