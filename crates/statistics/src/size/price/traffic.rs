//! Requests through the proxies of a topology, and which proxies share them.

use experiment::dataplane::Proxies;
use experiment::topology::expected::ExpectedRequests;
use experiment::topology::{Call, Topology, Workload};
use results::{ComponentUsage, NODE_PROXY_NAMESPACE, Role};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Place of a proxy.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Kind {
    /// In each pod.
    Sidecar,
    /// On each node.
    NodeProxy,
    /// In each namespace.
    Waypoint,
}

impl Kind {
    /// Name for readers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sidecar => "sidecar",
            Self::NodeProxy => "node proxy",
            Self::Waypoint => "waypoint",
        }
    }
}

/// Proxies that share their requests evenly: kind, and qualified name of the workload, or namespace.
pub(super) type Key = (Kind, String);

/// Requests per second through all proxies of each key.
pub(super) type Requests = BTreeMap<Key, f64>;

/// Proxies of a key at the priced scale.
pub(super) struct Unit {
    pub key: Key,
    pub namespace: String,
    pub proxies: f64,
    /// Requests per second through each of them.
    pub requests_per_s: f64,
}

/// Places of waypoints, in modes that have them.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Waypoints {
    /// One for each namespace with a service in the mesh.
    #[default]
    PerNamespace,
    /// One for each service in the mesh.
    PerService,
    /// One for each of these namespaces. Requests to services of others pass the node proxies alone.
    Namespaces(BTreeSet<String>),
}

impl std::fmt::Display for Waypoints {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::PerNamespace => formatter.write_str("namespace"),
            Self::PerService => formatter.write_str("service"),
            Self::Namespaces(names) => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                write!(formatter, "[{}]", names.join(", "))
            }
        }
    }
}

impl Waypoints {
    /// Name of the waypoint of a service, if it has one.
    fn of(&self, service: &Workload) -> Option<String> {
        match self {
            Self::PerService => Some(service.qualified_name()),
            Self::Namespaces(names) if !names.contains(&service.namespace) => None,
            _ => Some(service.namespace.clone()),
        }
    }

    /// A named namespace that a topology does not have.
    pub(super) fn unknown(&self, topology: &Topology) -> Option<&str> {
        let Self::Namespaces(names) = self else { return None };
        let known = topology.namespaces();
        names.iter().map(String::as_str).find(|name| !known.contains(name))
    }
}

/// Calls of a topology by driver.
pub(super) struct Traffic<'a> {
    pub topology: &'a Topology,
    waypoints: Waypoints,
    /// By name of the driver: requests per request of it.
    expected: Vec<(&'a str, ExpectedRequests)>,
    /// Qualified name of the workload, by pod.
    pods: HashMap<String, String>,
}

impl<'a> Traffic<'a> {
    pub fn new(topology: &'a Topology) -> Self {
        // The reader of the topology has shown that requests die out.
        let expected = topology.expected_of_each().unwrap_or_default();
        let drivers = topology.drivers.iter().map(|driver| driver.name.as_str());
        let pods = topology.workloads.iter().flat_map(|workload| {
            let name = workload.qualified_name();
            workload.pod_names().map(move |pod| (pod, name.clone()))
        });
        let waypoints = Waypoints::default();
        Self { topology, waypoints, expected: drivers.zip(expected).collect(), pods: pods.collect() }
    }

    /// The same calls through waypoints at other places.
    pub fn with_waypoints(self, waypoints: Waypoints) -> Self {
        Self { waypoints, ..self }
    }

    /// Requests through the proxies of every kind, if drivers send at these rates; `None` if one of them is not known.
    /// A call passes the sidecar of either end, and the waypoint of the callee if both are in the mesh.
    pub fn requests(&self, rate: impl Fn(&str) -> Option<f64>) -> Option<Requests> {
        let workloads = &self.topology.workloads;
        let is_member = |id: usize| workloads[id].in_mesh && !workloads[id].is_external();
        let mut requests: Requests = [((Kind::NodeProxy, String::new()), 0.0)].into();
        for workload in workloads.iter().enumerate().filter(|(id, _)| is_member(*id)).map(|(_, one)| one) {
            requests.insert((Kind::Sidecar, workload.qualified_name()), 0.0);
            if let Some(waypoint) = self.waypoints.of(workload).filter(|_| workload.serves()) {
                requests.insert((Kind::Waypoint, waypoint), 0.0);
            }
        }
        let mut flows: BTreeMap<Call, f64> = BTreeMap::new();
        for (driver, expected) in &self.expected {
            let rate = rate(driver)?;
            for (call, per_request) in &expected.edges {
                *flows.entry(*call).or_default() += rate * per_request;
            }
        }
        let mut add = |kind: Kind, name: String, flow: f64| {
            *requests.entry((kind, name)).or_default() += flow;
        };
        for (call, flow) in flows {
            for id in [call.from, call.to].into_iter().filter(|id| is_member(*id)) {
                add(Kind::Sidecar, workloads[id].qualified_name(), flow);
                add(Kind::NodeProxy, String::new(), flow);
            }
            let waypoint = self.waypoints.of(&workloads[call.to]);
            if let Some(waypoint) = waypoint.filter(|_| is_member(call.from) && is_member(call.to)) {
                add(Kind::Waypoint, waypoint, flow);
            }
        }
        Some(requests)
    }

    /// Proxies of a data plane that serve these requests.
    pub fn units(&self, requests: &Requests, plane: Proxies, nodes: usize) -> Vec<Unit> {
        let workloads: HashMap<String, &Workload> =
            self.topology.workloads.iter().map(|one| (one.qualified_name(), one)).collect();
        let unit = |(key, flow): (&Key, &f64)| {
            let (proxies, namespace) = match key.0 {
                Kind::Sidecar => (workloads[&key.1].replicas, workloads[&key.1].namespace.as_str()),
                Kind::NodeProxy => (nodes, NODE_PROXY_NAMESPACE),
                Kind::Waypoint if self.waypoints == Waypoints::PerService => {
                    (1, workloads[&key.1].namespace.as_str())
                }
                Kind::Waypoint => (1, key.1.as_str()),
            };
            let proxies = proxies as f64;
            let (key, namespace) = (key.clone(), namespace.to_owned());
            Unit { key, namespace, proxies, requests_per_s: flow / proxies }
        };
        requests.iter().filter(|(key, _)| has(plane, key.0)).map(unit).collect()
    }

    /// Proxies of a trial by key. Waypoints that are not named by their namespace share the requests of all.
    pub fn proxies<'b>(
        &self,
        components: &'b [ComponentUsage],
        plane: Proxies,
    ) -> BTreeMap<Key, Vec<&'b ComponentUsage>> {
        let namespaces: BTreeSet<&str> =
            self.topology.workloads.iter().map(|workload| workload.namespace.as_str()).collect();
        let key = |usage: &ComponentUsage| {
            let pod = usage.name.strip_suffix("-proxy").and_then(|pod| self.pods.get(pod));
            if let Some(workload) = pod.filter(|_| plane.pod.is_some()) {
                return Some((Kind::Sidecar, workload.clone()));
            }
            if plane.node.is_some() && usage.name.contains("ztunnel") {
                return Some((Kind::NodeProxy, String::new()));
            }
            let namespace = usage.name.strip_suffix("waypoint").map(|name| name.trim_end_matches('/'));
            let namespace = namespace.filter(|name| namespaces.contains(name)).unwrap_or(ALL);
            plane.namespace.is_some().then(|| (Kind::Waypoint, namespace.to_owned()))
        };
        let mut proxies: BTreeMap<Key, Vec<&ComponentUsage>> = BTreeMap::new();
        for usage in components.iter().filter(|usage| usage.role == Role::Proxy) {
            if let Some(key) = key(usage) {
                proxies.entry(key).or_default().push(usage);
            }
        }
        proxies
    }
}

/// Name of waypoints that share the requests of all namespaces.
const ALL: &str = "*";

/// Requests per second through all proxies of a key.
pub(super) fn through(requests: &Requests, key: &Key) -> f64 {
    let of_kind = || requests.iter().filter(|(other, _)| other.0 == key.0).map(|(_, flow)| flow).sum();
    requests.get(key).copied().unwrap_or_else(of_kind)
}

/// True if a data plane has proxies of this kind.
pub(super) fn has(plane: Proxies, kind: Kind) -> bool {
    match kind {
        Kind::Sidecar => plane.pod.is_some(),
        Kind::NodeProxy => plane.node.is_some(),
        Kind::Waypoint => plane.namespace.is_some(),
    }
}
