//! The mesh of a fleet's control plane: namespaces, services with their pods, and Istio's configuration for
//! them, generated from numbers or from a topology. `changes/` has the changes of the mesh.
//! Pure: [`Population::new`] determines names and addresses; [`Population::namespaces`] and
//! [`Population::objects`] return the objects. Read `services.rs` first, then `configuration.rs`.
//!
//! Every object has the label [`FLEET_LABEL`] with the id of its run, by which it is updated and removed.

// Docs say only what a name does not: no field here is a contract.
#![allow(missing_docs)]

pub mod changes;
mod configuration;
mod held;
mod proxies;
mod remove;
mod services;
mod write;

pub use held::has_controllers;
pub use proxies::Proxy;
pub use remove::{Removed, remove};
pub use services::HeldService;
pub use write::Written;

use experiment::environment::EnvironmentError;
use experiment::settings::fleet::{FleetSettings, HeldTopology, HeldWorkload, ProxyKind};
use mesh::istio::objects::{ingress, waypoint};
use mesh::kubernetes::object_ref::Kind;
use mesh::kubernetes::workloads::{Membership, Replica, ServicePort, namespace, service_account};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// Label of every object, whose value is the id of the run that wrote it.
pub const FLEET_LABEL: &str = "meshmeter.io/fleet";
/// Port of every service.
pub const PORT: ServicePort = ServicePort { name: "http", port: 8080 };
/// Prefix of the namespaces of services, followed by a number from 1.
pub const NAMESPACE_PREFIX: &str = "fleet-";
/// Namespace (after the prefix) of the services of a topology that has only one namespace.
const DEFAULT_NAMESPACE: &str = "default";
/// Maximum length of a namespace's name.
const MAX_NAMESPACE_BYTES: usize = 63;
/// Namespace of gateways and ztunnels.
pub const PROXY_NAMESPACE: &str = "fleet-proxies";
/// Pods get addresses from the range reserved for benchmarks (RFC 2544).
pub(crate) const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
pub(crate) const LAST_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 19, 255, 254);
/// Maximum number of pods. The range has 131 072 addresses; the others are for pods that replace these.
const MAX_PODS: usize = 100_000;
/// One in this many services is headless.
const HEADLESS_EVERY: usize = 20;
/// Namespaced kinds of a population and its changes, in the order in which they are written.
const KINDS: [Kind; 15] = [
    ("v1", "ServiceAccount"),
    ("v1", "Secret"),
    ("rbac.authorization.k8s.io/v1", "Role"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    ("v1", "Service"),
    ("v1", "Pod"),
    ("discovery.k8s.io/v1", "EndpointSlice"),
    ("gateway.networking.k8s.io/v1", "Gateway"),
    ("networking.istio.io/v1", "DestinationRule"),
    ("networking.istio.io/v1", "Gateway"),
    ("networking.istio.io/v1", "ServiceEntry"),
    ("networking.istio.io/v1", "Sidecar"),
    ("networking.istio.io/v1", "VirtualService"),
    ("security.istio.io/v1", "AuthorizationPolicy"),
    ("security.istio.io/v1", "PeerAuthentication"),
];
const NAMESPACE: Kind = ("v1", "Namespace");
/// Kinds that changes write, whether or not the population has any.
const CHANGED_KINDS: [&str; 4] = ["DestinationRule", "ServiceEntry", "VirtualService", "AuthorizationPolicy"];
const GATEWAY_PORTS: [ServicePort; 1] = [ServicePort { name: "https", port: ingress::PORT }];
const WAYPOINT_PORTS: [ServicePort; 1] = [ServicePort { name: "mesh", port: mesh::names::HBONE_PORT }];

/// Result of most functions; its error names the operation.
pub(crate) type Result<T, E = EnvironmentError> = std::result::Result<T, E>;

/// Properties of the environment that the objects of a population depend on, in addition to the settings.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Placement {
    /// Valid as a label value: letters, digits, `-`, `_` and `.`.
    pub run_id: String,
    /// True if Kubernetes' controllers are running. Services then have no selector, since a controller would
    /// replace their endpoints.
    pub has_controllers: bool,
    /// True if pods are written although Kubernetes' controllers are running. Without pods, endpoints are
    /// only addresses.
    pub simulate_pods: bool,
}

#[derive(Clone, Debug)]
pub struct Population {
    settings: FleetSettings,
    placement: Placement,
    services: Vec<HeldService>,
    gateways: HeldService,
    /// One per namespace with waypoints.
    waypoints: Vec<HeldService>,
    proxies: Vec<Proxy>,
}

/// Allocates unique pod addresses.
struct Addresses(u32);

impl Addresses {
    fn replicas(&mut self, name: &str, count: usize) -> Vec<Replica> {
        let replica = |number| {
            self.0 += 1;
            Replica { pod: format!("{name}-{number}"), address: Ipv4Addr::from(self.0 - 1) }
        };
        (1..=count).map(replica).collect()
    }
}

impl Population {
    /// A mesh of the topology in `settings`, or of numbers: then services and pods are spread evenly over the
    /// namespaces.
    pub fn new(settings: &FleetSettings, placement: &Placement) -> Result<Self> {
        if let Some(topology) = &settings.topology {
            return Self::with_services(settings, placement, shapes_of(topology)?);
        }
        let services = (0..settings.services).map(|number| {
            let namespace = number % settings.namespaces.max(1) + 1;
            let pods =
                settings.pods / settings.services + usize::from(number < settings.pods % settings.services);
            services::Shape {
                name: format!("service-{}", number + 1),
                ports: std::slice::from_ref(&PORT),
                namespace: format!("{NAMESPACE_PREFIX}{namespace}"),
                pods,
                is_headless: number % HEADLESS_EVERY == HEADLESS_EVERY - 1,
            }
        });
        Self::with_services(settings, placement, services.collect())
    }

    fn with_services(
        settings: &FleetSettings,
        placement: &Placement,
        shapes: Vec<services::Shape>,
    ) -> Result<Self> {
        check(settings, &shapes)?;
        let mut addresses = Addresses(FIRST_ADDRESS.into());
        let count = |kind| settings.count_of(kind);
        let is_ambient = count(ProxyKind::Ztunnel) + count(ProxyKind::Waypoint) > 0;
        let membership = if is_ambient && count(ProxyKind::Sidecar) == 0 {
            Membership::Ambient
        } else {
            Membership::Sidecar
        };
        let services: Vec<HeldService> = shapes
            .into_iter()
            .map(|shape| {
                let replicas = addresses.replicas(&shape.name, shape.pods);
                HeldService::new(&shape, replicas, membership, placement)
            })
            .collect();
        let mut infrastructure = |name: &str, ports, namespace: &str, pods, membership| {
            let shape = services::Shape {
                ports,
                name: name.to_owned(),
                namespace: namespace.to_owned(),
                pods,
                is_headless: false,
            };
            HeldService::new(&shape, addresses.replicas(name, pods), membership, placement)
        };
        let gateways = infrastructure(
            ingress::NAME,
            &GATEWAY_PORTS,
            PROXY_NAMESPACE,
            count(ProxyKind::Gateway),
            Membership::Outside,
        );
        let namespaces: BTreeSet<&str> = services.iter().map(|service| service.namespace()).collect();
        let waypoints = count(ProxyKind::Waypoint);
        let waypoints = namespaces.iter().enumerate().map_while(|(number, namespace)| {
            let pods = waypoints / namespaces.len() + usize::from(number < waypoints % namespaces.len());
            (pods > 0).then(|| {
                infrastructure(waypoint::NAME, &WAYPOINT_PORTS, namespace, pods, Membership::Waypoint)
            })
        });
        let waypoints: Vec<HeldService> = waypoints.collect();
        let mut population = Self {
            settings: settings.clone(),
            placement: placement.clone(),
            services,
            gateways,
            waypoints,
            proxies: Vec::new(),
        };
        population.proxies = population.place_proxies();
        Ok(population)
    }

    pub fn settings(&self) -> &FleetSettings {
        &self.settings
    }

    pub fn run_id(&self) -> &str {
        &self.placement.run_id
    }

    /// The services of the mesh, without those of gateways and waypoints.
    pub fn services(&self) -> &[HeldService] {
        &self.services
    }

    /// Identities for simulated proxies, in the order of kinds in the settings. They are those of pods,
    /// except for ztunnels, which have only an account and an address.
    pub fn proxies(&self) -> &[Proxy] {
        &self.proxies
    }

    /// Names of namespaces, in order.
    pub fn namespace_names(&self) -> Vec<&str> {
        let names: BTreeSet<&str> = self.services.iter().map(|service| service.namespace()).collect();
        names.into_iter().chain(self.has_proxy_namespace().then_some(PROXY_NAMESPACE)).collect()
    }

    fn has_proxy_namespace(&self) -> bool {
        self.has_gateways() || self.settings.count_of(ProxyKind::Ztunnel) > 0
    }

    fn has_gateways(&self) -> bool {
        self.settings.gateways > 0 || !self.gateways.replicas().is_empty()
    }

    fn is_ambient(&self) -> bool {
        !self.waypoints.is_empty() || self.settings.count_of(ProxyKind::Ztunnel) > 0
    }

    pub fn namespaces(&self) -> Vec<Value> {
        let object = |name: &str| {
            let is_of_services = name != PROXY_NAMESPACE;
            let has_waypoint = self.waypoints.iter().any(|waypoint| waypoint.namespace() == name);
            let labels = [
                (is_of_services && self.is_ambient()).then_some(waypoint::AMBIENT_LABEL),
                has_waypoint.then_some(waypoint::USE_WAYPOINT_LABEL),
                Some((FLEET_LABEL, self.run_id())),
            ];
            namespace(name, &labels.into_iter().flatten().collect::<Vec<_>>())
        };
        self.namespace_names().into_iter().map(object).collect()
    }

    /// All objects except the namespaces, in the order in which they are written.
    pub fn objects(&self) -> Vec<Value> {
        let mut objects: Vec<Value> = self.held().flat_map(HeldService::objects).collect();
        if self.settings.count_of(ProxyKind::Ztunnel) > 0 {
            objects.push(service_account(proxies::ZTUNNEL, PROXY_NAMESPACE));
        }
        objects.extend(self.waypoints.iter().map(|waypoint| waypoint::gateway(waypoint.namespace())));
        objects.extend(self.configuration());
        objects.extend(self.held().flat_map(HeldService::endpoint_slices));
        for object in &mut objects {
            self.label(object);
        }
        objects
    }

    /// References to pods, each with its `status`.
    pub fn statuses(&self) -> Vec<Value> {
        self.held().flat_map(HeldService::pod_statuses).collect()
    }

    fn held(&self) -> impl Iterator<Item = &HeldService> {
        let gateways = self.has_gateways().then_some(&self.gateways);
        self.services.iter().chain(gateways).chain(&self.waypoints)
    }

    pub(crate) fn label(&self, object: &mut Value) {
        object["metadata"]["labels"][FLEET_LABEL] = json!(self.run_id());
    }
}

/// Services of a topology. Their namespaces get the fleet's prefix: a fleet writes only into its own namespaces.
fn shapes_of(topology: &HeldTopology) -> Result<Vec<services::Shape>> {
    let refused = |reason: String| {
        Err(EnvironmentError::new("lay out the mesh of the fleet", reason)
            .with_hint("rename it in a copy of the topology"))
    };
    let shape = |workload: &HeldWorkload| {
        let HeldWorkload { name, namespace, pods } = workload;
        let namespace = if namespace.is_empty() { DEFAULT_NAMESPACE } else { namespace };
        let namespace = format!("{NAMESPACE_PREFIX}{namespace}");
        if name == waypoint::NAME {
            return refused(format!("a fleet has a service `{name}` of its own"));
        }
        if namespace == PROXY_NAMESPACE || namespace.len() > MAX_NAMESPACE_BYTES {
            return refused(format!("a fleet cannot have a namespace `{namespace}` for services"));
        }
        Ok(services::Shape {
            name: name.clone(),
            namespace,
            pods: *pods,
            is_headless: false,
            ports: std::slice::from_ref(&PORT),
        })
    };
    topology.workloads.iter().map(shape).collect()
}

fn check(settings: &FleetSettings, shapes: &[services::Shape]) -> Result<()> {
    let pods: usize = shapes.iter().map(|shape| shape.pods).sum();
    let services = shapes.len();
    let sidecars = settings.count_of(ProxyKind::Sidecar);
    let all = pods + settings.count_of(ProxyKind::Gateway) + settings.count_of(ProxyKind::Waypoint);
    let refused = |reason: String, hint: &str| {
        Err(EnvironmentError::new("lay out the mesh of the fleet", reason).with_hint(hint))
    };
    if shapes.is_empty() {
        return refused("it has no services".to_owned(), "a mesh to hold has at least one service");
    }
    if sidecars > pods {
        let reason = format!("{sidecars} sidecars are more than its {pods} pods");
        return refused(reason, "each sidecar takes the identity of a pod: more pods, or fewer proxies");
    }
    if all + settings.count_of(ProxyKind::Ztunnel) > MAX_PODS {
        let reason = format!(
            "its {all} pods and its ztunnels are more than the {MAX_PODS} addresses that it may have"
        );
        return refused(reason, "pods have addresses of 198.18.0.0/15");
    }
    for (what, count) in
        [("VirtualServices", settings.virtual_services), ("DestinationRules", settings.destination_rules)]
    {
        if count > services {
            let reason = format!("{count} {what} are more than its {services} services");
            return refused(reason, "each is of another service");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
