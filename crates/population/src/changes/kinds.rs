//! The sequence of changes of a population.

use super::marks::{Audience, Effect};
use super::{Change, Replaced, Undo, Write};
use crate::Result;
use crate::configuration::{POLICY_API, destination_rule, gateway_name, virtual_service};
use crate::{FIRST_ADDRESS, HeldService, LAST_ADDRESS, PORT, PROXY_NAMESPACE, Population};
use experiment::environment::EnvironmentError;
use experiment::settings::fleet::{ChangeKind, ProxyKind};
use experiment::xds::Presence;
use mesh::istio::objects::ingress::ISTIO_API;
use mesh::istio::objects::subject::object;
use mesh::kubernetes::object_ref::ObjectRef;
use mesh::kubernetes::workloads::{Replica, endpoint_slice};
use mesh::names::{SYSTEM_NAMESPACE, TRUST_DOMAIN, service_host};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::net::Ipv4Addr;

/// Maximum number of endpoints in one EndpointSlice.
const MAX_ENDPOINTS: usize = 1000;
const EXTERNAL_PORT: u16 = 443;
const WAYPOINT_CLASS: &str = "istio-waypoint";

/// An endless sequence of changes, deterministic for a seed. It tracks the mesh as the changes modify it:
/// each change must be performed before the next. Each mark has a number that no other change of the sequence uses.
#[derive(Debug)]
pub struct Changes {
    population: Population,
    services: Vec<HeldService>,
    /// Indices of services that already have a route or a rule, in which a change only replaces the mark.
    routed: Vec<usize>,
    ruled: Vec<usize>,
    audience: Audience,
    /// Namespaces with proxies that receive nothing from other namespaces. If empty, a change may be in any
    /// namespace.
    namespaces: HashSet<String>,
    /// Addresses of simulated sidecars: their pods are left alone as long as there are others.
    proxies: HashSet<Ipv4Addr>,
    used: HashSet<Ipv4Addr>,
    next_address: u32,
    number: usize,
    random: ChaCha8Rng,
}

impl Changes {
    pub fn new(population: &Population, seed: u64) -> Self {
        let services = population.services().to_vec();
        let settings = population.settings();
        let of_namespace = |kind| settings.scope && kind == ProxyKind::Sidecar || kind == ProxyKind::Waypoint;
        let proxies = population.proxies();
        let used: HashSet<Ipv4Addr> = services
            .iter()
            .flat_map(|service| service.replicas().iter().map(|replica| replica.address))
            .chain(proxies.iter().map(|proxy| proxy.address))
            .collect();
        Self {
            routed: (0..services.len()).take(settings.virtual_services_in_mesh()).collect(),
            ruled: (0..services.len()).take(settings.destination_rules).collect(),
            audience: Audience::new(population),
            namespaces: proxies
                .iter()
                .filter(|proxy| of_namespace(proxy.kind))
                .map(|proxy| proxy.namespace.clone())
                .collect(),
            proxies: proxies.iter().map(|proxy| proxy.address).collect(),
            next_address: u32::from(FIRST_ADDRESS) + used.len() as u32,
            used,
            services,
            number: 0,
            random: ChaCha8Rng::seed_from_u64(seed),
            population: population.clone(),
        }
    }

    /// The services as modified by the changes so far.
    pub fn services(&self) -> &[HeldService] {
        &self.services
    }

    /// The next change of a kind. Returns an error if the mesh has nothing to change in this way, or if the
    /// kind does not change objects.
    pub fn next(&mut self, kind: ChangeKind) -> Result<Change> {
        self.number += 1;
        let mark = format!("mark-{:06}", self.number);
        match kind {
            ChangeKind::EndpointAdded => self.endpoint_added(),
            ChangeKind::EndpointRemoved => self.endpoint_removed(),
            ChangeKind::PodRestarted => self.pod_restarted(),
            ChangeKind::RollingRestart => self.rolling_restart(),
            ChangeKind::ServiceAdded => self.service_added(&mark),
            ChangeKind::VirtualService => self.route_changed(&mark),
            ChangeKind::DestinationRule => self.rule_changed(&mark),
            ChangeKind::ServiceEntry => self.external_added(&mark),
            ChangeKind::RootPolicy => Ok(self.policy_added(&mark)),
            _ => Err(EnvironmentError::new(
                format!("make the change {}", kind.name()),
                "no object of the mesh makes it",
            )),
        }
    }

    /// The change that restores the size of the mesh; absent if the size did not change.
    pub fn undo(&mut self, change: &Change) -> Option<Change> {
        let (writes, expected) = match change.undo.as_ref()? {
            Undo::Delete(references) => {
                let opposite = |expected: &super::Expected| {
                    let mut expected = expected.clone();
                    expected.marks.iter_mut().for_each(|mark| mark.presence = mark.presence.opposite());
                    expected
                };
                let writes = references.iter().cloned().map(Write::Delete).collect();
                (writes, change.expected.iter().map(opposite).collect())
            }
            Undo::RemoveEndpoint { service, replica } => self.remove_endpoint(*service, replica),
            Undo::AddEndpoint { service, replica } => self.add_endpoint(*service, replica.clone()),
        };
        Some(Change { kind: change.kind, writes, expected, replaced: Vec::new(), undo: None })
    }

    fn endpoint_added(&mut self) -> Result<Change> {
        let service = self.pick(ChangeKind::EndpointAdded, |service| {
            (1..MAX_ENDPOINTS).contains(&service.replicas().len()) && !service.is_headless()
        })?;
        let replica = self.new_replica(service);
        let (writes, expected) = self.add_endpoint(service, replica.clone());
        let undo = Some(Undo::RemoveEndpoint { service, replica });
        Ok(Change { kind: ChangeKind::EndpointAdded, writes, expected, replaced: Vec::new(), undo })
    }

    fn endpoint_removed(&mut self) -> Result<Change> {
        let service = self.pick_with_pods(ChangeKind::EndpointRemoved)?;
        let victim = self.victim(service);
        let replica = self.services[service].replicas()[victim].clone();
        let (writes, expected) = self.remove_endpoint(service, &replica);
        let undo = Some(Undo::AddEndpoint { service, replica });
        Ok(Change { kind: ChangeKind::EndpointRemoved, writes, expected, replaced: Vec::new(), undo })
    }

    fn pod_restarted(&mut self) -> Result<Change> {
        let service = self.pick_with_pods(ChangeKind::PodRestarted)?;
        let position = self.victim(service);
        Ok(self.restart(ChangeKind::PodRestarted, service, &[position]))
    }

    fn rolling_restart(&mut self) -> Result<Change> {
        let service = self.pick_with_pods(ChangeKind::RollingRestart)?;
        let all: Vec<usize> = (0..self.services[service].replicas().len()).collect();
        Ok(self.restart(ChangeKind::RollingRestart, service, &all))
    }

    /// Deletes pods and replaces them by new ones, one after the other.
    fn restart(&mut self, kind: ChangeKind, service: usize, positions: &[usize]) -> Change {
        let mut change =
            Change { kind, writes: Vec::new(), expected: Vec::new(), replaced: Vec::new(), undo: None };
        for position in positions {
            let new = self.new_replica(service);
            let held = &mut self.services[service];
            let gone = std::mem::replace(&mut held.replicas_mut()[*position], new.clone());
            let held = &self.services[service];
            change.writes.extend(deleted_pod(held, &gone));
            change.writes.extend(created_pod(held, &new));
            change.writes.push(self.merged_slice(service));
            // The last endpoint arrives no earlier than the others.
            change.expected = self.expected_endpoint(service, &new, Presence::Present);
            self.used.remove(&gone.address);
            change.replaced.push(Replaced { namespace: held.namespace().to_owned(), gone, new });
        }
        change
    }

    fn add_endpoint(&mut self, service: usize, replica: Replica) -> (Vec<Write>, Vec<super::Expected>) {
        let expected = self.expected_endpoint(service, &replica, Presence::Present);
        let mut writes = created_pod(&self.services[service], &replica);
        self.used.insert(replica.address);
        self.services[service].replicas_mut().push(replica);
        writes.push(self.merged_slice(service));
        (writes, expected)
    }

    fn remove_endpoint(&mut self, service: usize, replica: &Replica) -> (Vec<Write>, Vec<super::Expected>) {
        let expected = self.expected_endpoint(service, replica, Presence::Gone);
        self.used.remove(&replica.address);
        self.services[service].replicas_mut().retain(|other| other.pod != replica.pod);
        let mut writes = vec![self.merged_slice(service)];
        writes.extend(deleted_pod(&self.services[service], replica));
        (writes, expected)
    }

    fn service_added(&mut self, mark: &str) -> Result<Change> {
        let namespace = self.pick_namespace(ChangeKind::ServiceAdded)?;
        let address = self.new_address();
        let port = json!({"name": PORT.name, "port": PORT.port, "protocol": "TCP"});
        let conditions = json!({"ready": true, "serving": true, "terminating": false});
        let endpoint = json!({"addresses": [address], "conditions": conditions});
        let mut service = object("v1", "Service", (&namespace, mark), &json!({"ports": [port]}));
        let mut slice = endpoint_slice((&namespace, mark), mark, &[endpoint], &json!([port]));
        self.population.label(&mut service);
        self.population.label(&mut slice);
        let host = service_host(mark, &namespace);
        let effect = Effect::Host { namespace: &namespace, host: &host, port: PORT.port, is_http: true };
        Ok(self.addition(ChangeKind::ServiceAdded, vec![service, slice], effect))
    }

    fn external_added(&mut self, mark: &str) -> Result<Change> {
        let namespace = self.pick_namespace(ChangeKind::ServiceEntry)?;
        let host = format!("{mark}.fleet.example");
        let spec = json!({
            "hosts": [host],
            "ports": [{"number": EXTERNAL_PORT, "name": "tls", "protocol": "TLS"}],
            "location": "MESH_EXTERNAL",
            "resolution": "DNS",
        });
        let mut entry = object(ISTIO_API, "ServiceEntry", (&namespace, mark), &spec);
        self.population.label(&mut entry);
        let effect = Effect::Host { namespace: &namespace, host: &host, port: EXTERNAL_PORT, is_http: false };
        Ok(self.addition(ChangeKind::ServiceEntry, vec![entry], effect))
    }

    /// Denies a nonexistent account. Policies without a target do not reach waypoints, which get a separate one.
    fn policy_added(&mut self, mark: &str) -> Change {
        let principal = format!("{TRUST_DOMAIN}/ns/{PROXY_NAMESPACE}/sa/{mark}");
        let rules = json!([{"from": [{"source": {"principals": [principal]}}]}]);
        let spec = json!({"action": "DENY", "rules": rules});
        let mut policies = vec![object(POLICY_API, "AuthorizationPolicy", (SYSTEM_NAMESPACE, mark), &spec)];
        if self.audience.has(ProxyKind::Waypoint) {
            let name = format!("{mark}-waypoints");
            let class =
                json!({"group": "gateway.networking.k8s.io", "kind": "GatewayClass", "name": WAYPOINT_CLASS});
            let mut of_waypoints =
                object(POLICY_API, "AuthorizationPolicy", (SYSTEM_NAMESPACE, &name), &spec);
            of_waypoints["spec"]["targetRefs"] = json!([class]);
            policies.push(of_waypoints);
        }
        policies.iter_mut().for_each(|policy| self.population.label(policy));
        self.addition(ChangeKind::RootPolicy, policies, Effect::RootPolicy { name: mark, mark })
    }

    fn route_changed(&mut self, mark: &str) -> Result<Change> {
        let kind = ChangeKind::VirtualService;
        let (service, is_there) = self.pick_configured(kind, &self.routed.clone())?;
        let held = &self.services[service];
        let mut route = virtual_service(held, mark);
        self.population.label(&mut route);
        let domain = self.number % self.population.domains().max(1) + 1;
        let gateway = gateway_name(domain);
        let mut effects = vec![Effect::Route { namespace: held.namespace(), mark }];
        let mut of_gateway = Vec::new();
        if self.audience.has(ProxyKind::Gateway) {
            effects.push(Effect::GatewayRoute { gateway: &gateway, mark });
            let mut route = self.population.gateway_route(domain, mark);
            self.population.label(&mut route);
            of_gateway.push(Write::Merge(route));
        }
        let mut change = self.configured(kind, route, is_there, &effects);
        change.writes.extend(of_gateway);
        Ok(change)
    }

    fn rule_changed(&mut self, mark: &str) -> Result<Change> {
        let kind = ChangeKind::DestinationRule;
        let (service, is_there) = self.pick_configured(kind, &self.ruled.clone())?;
        let held = &self.services[service];
        let mut rule = destination_rule(held, mark);
        self.population.label(&mut rule);
        Ok(self.configured(kind, rule, is_there, &[Effect::Subset { service: held, mark }]))
    }

    /// Changes an object, or creates it if the population has none.
    fn configured(&self, kind: ChangeKind, object: Value, is_there: bool, effects: &[Effect<'_>]) -> Change {
        let undo = (!is_there).then(|| Undo::Delete(vec![reference(&object)]));
        let writes = vec![if is_there { Write::Merge(object) } else { Write::Create(object) }];
        let expected = self.audience.expected(effects, Presence::Present);
        Change { kind, writes, expected, replaced: Vec::new(), undo }
    }

    fn addition(&self, kind: ChangeKind, objects: Vec<Value>, effect: Effect<'_>) -> Change {
        let undo = Some(Undo::Delete(objects.iter().map(reference).collect()));
        let expected = self.audience.expected(&[effect], Presence::Present);
        let writes = objects.into_iter().map(Write::Create).collect();
        Change { kind, writes, expected, replaced: Vec::new(), undo }
    }

    fn expected_endpoint(
        &self,
        service: usize,
        replica: &Replica,
        presence: Presence,
    ) -> Vec<super::Expected> {
        let (pod, address) = (replica.pod.as_str(), replica.address);
        let service = &self.services[service];
        self.audience.expected(&[Effect::Endpoint { service, pod, address }], presence)
    }

    fn merged_slice(&self, service: usize) -> Write {
        let service = &self.services[service];
        let mut slice = service.endpoint_slices().pop().unwrap_or_else(|| {
            endpoint_slice((service.namespace(), service.name()), service.name(), &[], &json!([]))
        });
        self.population.label(&mut slice);
        Write::Merge(slice)
    }

    /// A random service that satisfies `is_one` and whose changes reach proxies.
    fn pick(&mut self, kind: ChangeKind, is_one: impl Fn(&HeldService) -> bool) -> Result<usize> {
        let count = self.services.len();
        let start = self.random.random_range(0..count);
        let mut positions = (start..count).chain(0..start);
        let found = positions.find(|position| {
            let service = &self.services[*position];
            self.is_seen(service.namespace()) && is_one(service)
        });
        found.ok_or_else(|| {
            let reason = "no service of the mesh can change so and is in the configuration of a proxy";
            let hint = "more services and pods, or no scope";
            EnvironmentError::new(format!("make the change {}", kind.name()), reason).with_hint(hint)
        })
    }

    fn is_seen(&self, namespace: &str) -> bool {
        self.namespaces.is_empty() || self.namespaces.contains(namespace)
    }

    /// A service with several pods if there is any, so that it keeps an endpoint.
    fn pick_with_pods(&mut self, kind: ChangeKind) -> Result<usize> {
        let has = |least: usize| {
            move |service: &HeldService| {
                (least..=MAX_ENDPOINTS).contains(&service.replicas().len()) && !service.is_headless()
            }
        };
        self.pick(kind, has(2)).or_else(|_| self.pick(kind, has(1)))
    }

    fn pick_namespace(&mut self, kind: ChangeKind) -> Result<String> {
        let service = self.pick(kind, |_| true)?;
        Ok(self.services[service].namespace().to_owned())
    }

    /// One of these services, or any other if none of them reaches proxies; the flag is true if it is one of these.
    fn pick_configured(&mut self, kind: ChangeKind, configured: &[usize]) -> Result<(usize, bool)> {
        let seen: Vec<usize> = configured
            .iter()
            .copied()
            .filter(|service| self.is_seen(self.services[*service].namespace()))
            .collect();
        if seen.is_empty() {
            let names: HashSet<(String, String)> =
                configured.iter().map(|service| self.name_of(*service)).collect();
            let is_free = |service: &HeldService| {
                !names.contains(&(service.namespace().to_owned(), service.name().to_owned()))
            };
            return Ok((self.pick(kind, is_free)?, false));
        }
        Ok((seen[self.random.random_range(0..seen.len())], true))
    }

    fn name_of(&self, service: usize) -> (String, String) {
        let service = &self.services[service];
        (service.namespace().to_owned(), service.name().to_owned())
    }

    /// Index of a pod of a service: the last one that is not a simulated proxy, or any.
    fn victim(&mut self, service: usize) -> usize {
        let replicas = self.services[service].replicas();
        let other = replicas.iter().rposition(|replica| !self.proxies.contains(&replica.address));
        other.unwrap_or_else(|| self.random.random_range(0..replicas.len()))
    }

    fn new_replica(&mut self, service: usize) -> Replica {
        let address = self.new_address();
        let number = u32::from(address) - u32::from(FIRST_ADDRESS);
        Replica { pod: format!("{}-r{number}", self.services[service].name()), address }
    }

    /// An unused address. Addresses are reused only once all others have been used.
    fn new_address(&mut self) -> Ipv4Addr {
        loop {
            if self.next_address > u32::from(LAST_ADDRESS) {
                self.next_address = u32::from(FIRST_ADDRESS);
            }
            let address = Ipv4Addr::from(self.next_address);
            self.next_address += 1;
            if self.used.insert(address) {
                return address;
            }
        }
    }
}

fn reference(object: &Value) -> ObjectRef {
    ObjectRef::from_object(object).expect("objects of changes have names")
}

fn created_pod(service: &HeldService, replica: &Replica) -> Vec<Write> {
    let pod = service.with_replicas(vec![replica.clone()]);
    let created = pod.pods().into_iter().map(Write::Create);
    created.chain(pod.pod_statuses().into_iter().map(Write::Status)).collect()
}

fn deleted_pod(service: &HeldService, replica: &Replica) -> Option<Write> {
    let pod = ObjectRef::new("v1", "Pod", Some(service.namespace()), &replica.pod);
    service.has_pods().then_some(Write::Delete(pod))
}
