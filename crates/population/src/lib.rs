//! The mesh that a fleet's control plane holds: namespaces, services with their pods, and Istio's configuration for them, from
//! numbers or from a topology; `changes/` is what changes in it. Pure: [`Population::new`] decides names and addresses, [`Population::namespaces`] and
//! [`Population::stages`] are the objects. Read `services.rs` first, then `configuration.rs`.
//!
//! Every object has the label [`FLEET_LABEL`] with the id of its run: the mark by which it is updated and removed.

// Docs are for what a name does not say: no fields here are a contract.
#![allow(missing_docs)]

pub mod changes;
mod configuration;
mod proxies;
mod remove;
mod services;
mod write;

pub use proxies::Proxy;
pub use remove::{Removed, remove};
pub use services::HeldService;
pub use write::Written;

use experiment::environment::EnvironmentError;
use experiment::settings::fleet::{FleetSettings, HeldTopology, HeldWorkload, ProxyKind};
use mesh::istio::objects::{ingress, waypoint};
use mesh::kubernetes::labelled::Kind;
use mesh::kubernetes::workloads::{Membership, Replica, ServicePort, namespace, service_account};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// Label whose value is the id of the run that wrote the object.
pub const FLEET_LABEL: &str = "meshmeter.io/fleet";
/// The port of every service.
pub const PORT: ServicePort = ServicePort { name: "http", port: 8080 };
/// Namespaces of services have this prefix and a number from 1.
pub const NAMESPACE_PREFIX: &str = "fleet-";
/// Namespace of the services of a topology that has a single one, behind the prefix.
const DEFAULT_NAMESPACE: &str = "default";
/// Length limit of a namespace's name.
const MAX_NAMESPACE_BYTES: usize = 63;
/// Namespace of gateways and ztunnels.
pub const PROXY_NAMESPACE: &str = "fleet-proxies";
/// Pods have the addresses that are reserved for benchmarks (RFC 2544).
pub(crate) const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
pub(crate) const LAST_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 19, 255, 254);
/// Of 131 072 addresses; the others are for pods that take the place of these.
const MAX_PODS: usize = 100_000;
/// One service in this number is headless.
const HEADLESS_EVERY: usize = 20;
/// Namespaced kinds that a population and its changes consist of, in the order of their writing.
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
/// Those that changes write, whether the population has any or not.
const CHANGED_KINDS: [&str; 4] = ["DestinationRule", "ServiceEntry", "VirtualService", "AuthorizationPolicy"];
const GATEWAY_PORTS: [ServicePort; 1] = [ServicePort { name: "https", port: ingress::PORT }];
const WAYPOINT_PORTS: [ServicePort; 1] = [ServicePort { name: "mesh", port: mesh::names::HBONE_PORT }];

/// What most functions return: their error names the operation.
pub(crate) type Result<T, E = EnvironmentError> = std::result::Result<T, E>;

/// Environment on which the objects of a population depend besides the settings.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Placement {
    /// A label's value: letters, digits, `-`, `_` and `.`.
    pub run_id: String,
    /// The API has Kubernetes' controllers: Services have no selector, since a controller would replace their endpoints.
    pub has_controllers: bool,
    /// Pods are written although the API has Kubernetes' controllers. Without, endpoints are addresses alone.
    pub simulate_pods: bool,
}

#[derive(Clone, Debug)]
pub struct Population {
    settings: FleetSettings,
    placement: Placement,
    services: Vec<HeldService>,
    gateways: HeldService,
    /// One per namespace that has waypoints.
    waypoints: Vec<HeldService>,
    proxies: Vec<Proxy>,
}

/// Addresses of pods, each once.
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
    /// A mesh of the topology in `settings`, or of numbers: then services and pods are spread over the namespaces evenly.
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

    /// The services of the mesh, those of gateways and waypoints not among them.
    pub fn services(&self) -> &[HeldService] {
        &self.services
    }

    /// Identities for simulated proxies: those of pods, except for ztunnels, which have an account and an address alone.
    /// In the order of kinds that the settings have.
    pub fn proxies(&self) -> &[Proxy] {
        &self.proxies
    }

    /// Names of namespaces, in their order.
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

    /// All objects but the namespaces, in the order of their writing.
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

    /// Values with the `status` of each pod.
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

/// Services of a topology. Their namespaces have the fleet's prefix: a fleet writes into namespaces of its own alone.
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
