//! Istio's configuration for the services of a population.

use super::{FLEET_LABEL, HeldService, PORT, PROXY_NAMESPACE, Population};
use experiment::environment::MutualTls;
use experiment::mesh_settings::IngressTls;
use mesh::istio::objects::ingress::{self, Credential, ISTIO_API};
use mesh::istio::objects::subject::object;
use mesh::istio::objects::{estate, policy, traffic};
use mesh::names::TRUST_DOMAIN;
use serde_json::{Value, json};

/// Number of adjacent domains that share a certificate.
const DOMAINS_OF_CREDENTIAL: usize = 10;
/// Mark of a configuration that no change has modified yet. Marks of changes have the same length.
pub(crate) const UNCHANGED: &str = "mark-000000";
pub(crate) const POLICY_API: &str = "security.istio.io/v1";

impl Population {
    pub(super) fn configuration(&self) -> Vec<Value> {
        let settings = &self.settings;
        let namespaces = self.namespace_names().into_iter().filter(|name| *name != PROXY_NAMESPACE);
        let of_namespaces = namespaces.flat_map(|namespace| {
            let scope = traffic::sidecar_scope(settings.scope, namespace);
            std::iter::once(policy::peer_authentication(namespace, MutualTls::Strict)).chain(scope)
        });
        let routes = self.services.iter().take(settings.virtual_services_in_mesh());
        let rules = self.services.iter().take(settings.destination_rules);
        let mut objects: Vec<Value> = of_namespaces.collect();
        objects.extend(rules.map(|service| destination_rule(service, UNCHANGED)));
        objects.extend(routes.map(|service| virtual_service(service, UNCHANGED)));
        objects.extend((0..settings.policies).map(|number| self.policy(number)));
        if self.has_gateways() {
            objects.extend(self.credentials());
            objects.extend((1..=self.domains()).map(|number| self.gateway(number)));
            objects.extend((1..=self.domains()).map(|number| self.gateway_route(number, UNCHANGED)));
            let routed = self.services.iter().take(settings.virtual_services_of_gateways());
            objects.extend(routed.enumerate().map(|(place, service)| self.service_route(place, service)));
        }
        objects
    }

    /// Number of domains, each with a Gateway. Without any Gateway, gateways would have no listener.
    pub(crate) fn domains(&self) -> usize {
        if self.has_gateways() { self.settings.gateways.max(1) } else { 0 }
    }

    /// Allows the accounts of two other services to call one service.
    fn policy(&self, number: usize) -> Value {
        let service = &self.services[number % self.services.len()];
        let principal = |offset: usize| {
            let caller = &self.services[(number + offset) % self.services.len()];
            format!("{TRUST_DOMAIN}/ns/{}/sa/{}", caller.namespace(), caller.name())
        };
        let rules = json!([{"from": [{"source": {"principals": [principal(1), principal(7)]}}]}]);
        let spec =
            json!({"selector": {"matchLabels": {"app": service.name()}}, "action": "ALLOW", "rules": rules});
        let name = format!("policy-{}", number + 1);
        object(POLICY_API, "AuthorizationPolicy", (service.namespace(), &name), &spec)
    }

    /// Certificates, and the gateways' permission to read them.
    fn credentials(&self) -> Vec<Value> {
        let domains: Vec<String> = (1..=self.domains()).map(domain).collect();
        let pairs: Vec<(String, [String; 2])> = domains
            .chunks(DOMAINS_OF_CREDENTIAL)
            .enumerate()
            .map(|(number, domains)| (estate::credential_name(number), self_signed(domains)))
            .collect();
        let mut credentials = Vec::with_capacity(pairs.len());
        for (name, [certificate, key]) in &pairs {
            credentials.push(Credential { name, certificate, key, client_authority: "" });
        }
        ingress::credentials(IngressTls::Simple, PROXY_NAMESPACE, &credentials)
    }

    fn gateway(&self, number: usize) -> Value {
        let server = json!({
            "port": {"number": ingress::PORT, "name": "https", "protocol": "HTTPS"},
            "hosts": [domain(number), format!("*.{}", domain(number))],
            "tls": {"mode": "SIMPLE", "credentialName": estate::credential_name((number - 1) / DOMAINS_OF_CREDENTIAL)},
        });
        let selector = json!({"app": ingress::NAME, FLEET_LABEL: self.run_id()});
        let spec = json!({"selector": selector, "servers": [server]});
        object(ISTIO_API, "Gateway", (PROXY_NAMESPACE, &gateway_name(number)), &spec)
    }

    /// Routes a domain to a service.
    pub(crate) fn gateway_route(&self, number: usize, mark: &str) -> Value {
        let name = gateway_name(number);
        let service = self.services.get(number % self.services.len().max(1));
        let host = service.map(HeldService::host).unwrap_or_default();
        let spec = json!({"hosts": [domain(number)], "gateways": [name], "http": [route(&host, mark)]});
        object(ISTIO_API, "VirtualService", (PROXY_NAMESPACE, &name), &spec)
    }

    /// Routes a name of its own, in one of the domains, to a service.
    fn service_route(&self, place: usize, service: &HeldService) -> Value {
        let number = place % self.domains() + 1;
        let name = format!("route-{}", place + 1);
        let spec = json!({
            "hosts": [format!("{name}.{}", domain(number))],
            "gateways": [gateway_name(number)],
            "http": [route(&service.host(), UNCHANGED)],
        });
        object(ISTIO_API, "VirtualService", (PROXY_NAMESPACE, &name), &spec)
    }
}

fn domain(number: usize) -> String {
    format!("domain-{number}.fleet.example")
}

pub(crate) fn gateway_name(number: usize) -> String {
    format!("{}-{number}", ingress::NAME)
}

pub(crate) fn virtual_service(service: &HeldService, mark: &str) -> Value {
    let host = service.host();
    let spec = json!({"hosts": [host], "http": [route(&host, mark)]});
    object(ISTIO_API, "VirtualService", (service.namespace(), service.name()), &spec)
}

/// A route named after the mark, which proxies receive in their routes.
fn route(host: &str, mark: &str) -> Value {
    json!({
        "name": mark,
        "route": [{"destination": {"host": host, "port": {"number": PORT.port}}}],
        "timeout": "10s",
        "retries": {"attempts": 2},
    })
}

/// A rule with a subset named after the mark, which proxies receive in the name of a cluster.
pub(crate) fn destination_rule(service: &HeldService, mark: &str) -> Value {
    let spec = json!({
        "host": service.host(),
        "trafficPolicy": {"connectionPool": {"http": {"http2MaxRequests": 1000}}},
        "subsets": [{"name": mark, "labels": {"version": "v1"}}],
    });
    object(ISTIO_API, "DestinationRule", (service.namespace(), service.name()), &spec)
}

/// A certificate of these domains and its key, PEM. Nothing verifies it: it only has to be sent to gateways.
fn self_signed(domains: &[String]) -> [String; 2] {
    let made = rcgen::generate_simple_self_signed(domains).expect("domains are valid names");
    [made.cert.pem(), made.signing_key.serialize_pem()]
}
