//! Domains of an ingress gateway: one server per domain, certificates shared by adjacent domains, exact paths.
//! Istio's API has one `Gateway` per certificate and one `VirtualService` per domain. The Gateway API has
//! limits: a `Gateway` has at most 64 listeners, and an `HTTPRoute` has at most 128 matches, in rules of at most 64.

use super::ingress::{self, CREDENTIAL, ISTIO_API, KUBERNETES_API, NAME};
use super::subject::{Subject, object};
use super::traffic;
use experiment::environment::{DeploymentSpec, Estate, Scenario};
use experiment::mesh_settings::{IngressApi, IngressTls};
use serde_json::{Value, json};
use std::ops::Range;

const MAX_LISTENERS: usize = 64;
const MAX_MATCHES_OF_RULE: usize = 64;
const MAX_MATCHES_OF_ROUTE: usize = 128;

/// Name of the `Gateway` of a domain that is added while the gateway serves the others.
const FURTHER_GATEWAY: &str = "ingress-further";

/// Domains of a gateway, which all route to one Service.
#[derive(Clone, Copy, Debug)]
pub struct Domains<'a> {
    pub spec: &'a DeploymentSpec,
    pub subject: &'a Subject<'a>,
    /// Parent of the domains' names.
    pub public_name: &'a str,
    /// The path that exact paths are rewritten to.
    pub rewrite: &'a str,
}

/// Domains in one `Gateway`, which share a certificate.
struct Group {
    gateway: String,
    credential: usize,
    domains: Range<usize>,
}

/// Name of a certificate's Secret; certificates are numbered from 0.
pub fn credential_name(credential: usize) -> String {
    format!("{CREDENTIAL}-{}", credential + 1)
}

impl Domains<'_> {
    /// Objects of all domains.
    pub fn objects(&self) -> Vec<Value> {
        self.groups().iter().flat_map(|group| self.group_objects(group)).collect()
    }

    /// Number and objects of one more domain after the others, with the last certificate.
    pub fn further(&self) -> (usize, Vec<Value>) {
        let estate = self.estate();
        let domain = estate.domains + 1;
        let group = Group {
            gateway: FURTHER_GATEWAY.to_owned(),
            credential: estate.credentials() - 1,
            domains: domain..domain + 1,
        };
        (domain, self.group_objects(&group))
    }

    fn estate(&self) -> &Estate {
        &self.spec.ingress
    }

    fn groups(&self) -> Vec<Group> {
        let estate = self.estate();
        let most = match self.spec.istio.ingress.api {
            IngressApi::Istio => usize::MAX,
            IngressApi::Kubernetes => MAX_LISTENERS,
        };
        let mut groups: Vec<Group> = Vec::new();
        for domain in 1..=estate.domains {
            let credential = estate.credential_of(domain);
            match groups.last_mut() {
                Some(group) if group.credential == credential && group.domains.len() < most => {
                    group.domains.end = domain + 1;
                }
                _ => {
                    let gateway = format!("{NAME}-{}", groups.len() + 1);
                    groups.push(Group { gateway, credential, domains: domain..domain + 1 });
                }
            }
        }
        groups
    }

    fn group_objects(&self, group: &Group) -> Vec<Value> {
        let domains = group.domains.clone();
        match self.spec.istio.ingress.api {
            IngressApi::Istio => {
                let services = domains.map(|domain| self.virtual_service(domain, &group.gateway));
                [self.istio_gateway(group)].into_iter().chain(services).collect()
            }
            IngressApi::Kubernetes => {
                let routes = domains.flat_map(|domain| self.http_routes(domain, &group.gateway));
                [self.kubernetes_gateway(group)].into_iter().chain(routes).collect()
            }
        }
    }

    fn protocol(&self) -> &'static str {
        if self.spec.ingress_tls() == IngressTls::Off { "HTTP" } else { "HTTPS" }
    }

    fn host(&self, domain: usize) -> String {
        Estate::domain(domain, self.public_name)
    }

    fn object(&self, api_version: &str, kind: &str, name: &str, spec: &Value) -> Value {
        object(api_version, kind, (self.subject.namespace, name), spec)
    }

    fn istio_gateway(&self, group: &Group) -> Value {
        let (tls, protocol) = (self.spec.ingress_tls(), self.protocol());
        let server = |domain: usize| {
            let name = format!("{}-d{domain}", protocol.to_lowercase());
            let credential = credential_name(group.credential);
            let mut server = ingress::istio_server(tls, (&name, protocol), &self.host(domain), &credential);
            if self.estate().scenario == Scenario::Tls12 {
                server["tls"]["maxProtocolVersion"] = json!("TLSV1_2");
            }
            server
        };
        let servers: Vec<Value> = group.domains.clone().map(server).collect();
        ingress::istio_gateway((self.subject.namespace, &group.gateway), &servers)
    }

    /// Has one route for all exact paths of the domain; istiod generates a route per path.
    fn virtual_service(&self, domain: usize, gateway: &str) -> Value {
        let mut route = traffic::route(&self.spec.istio, self.subject);
        if let Some(paths) = self.estate().paths {
            let exact = |path| json!({"uri": {"exact": Estate::path(path)}});
            route["match"] = (1..=paths).map(exact).collect();
            route["rewrite"] = json!({"uri": self.rewrite});
        }
        let spec = json!({"hosts": [self.host(domain)], "gateways": [gateway], "http": [route]});
        self.object(ISTIO_API, "VirtualService", &listener_name(domain), &spec)
    }

    fn kubernetes_gateway(&self, group: &Group) -> Value {
        let listener = |domain: usize| {
            let (name, credential) = (listener_name(domain), credential_name(group.credential));
            let port = (name.as_str(), self.protocol());
            ingress::kubernetes_listener(self.spec.ingress_tls(), port, Some(&self.host(domain)), &credential)
        };
        let listeners: Vec<Value> = group.domains.clone().map(listener).collect();
        ingress::kubernetes_gateway((self.subject.namespace, &group.gateway), &listeners)
    }

    fn http_routes(&self, domain: usize, gateway: &str) -> Vec<Value> {
        let rule = ingress::kubernetes_rule(&self.spec.istio, self.subject);
        let rules: Vec<Vec<Value>> = match self.estate().paths {
            None => vec![vec![rule]],
            Some(paths) => {
                let paths: Vec<usize> = (1..=paths).collect();
                let rules = |paths: &[usize]| {
                    paths.chunks(MAX_MATCHES_OF_RULE).map(|paths| self.exact_rule(&rule, paths)).collect()
                };
                paths.chunks(MAX_MATCHES_OF_ROUTE).map(rules).collect()
            }
        };
        let route = |(index, rules): (usize, Vec<Value>)| {
            let name = match index {
                0 => listener_name(domain),
                index => format!("{}-{}", listener_name(domain), index + 1),
            };
            let spec = json!({
                "parentRefs": [{"name": gateway, "sectionName": listener_name(domain)}],
                "hostnames": [self.host(domain)],
                "rules": rules,
            });
            self.object(KUBERNETES_API, "HTTPRoute", &name, &spec)
        };
        rules.into_iter().enumerate().map(route).collect()
    }

    fn exact_rule(&self, rule: &Value, paths: &[usize]) -> Value {
        let mut rule = rule.clone();
        let exact = |path: &usize| json!({"path": {"type": "Exact", "value": Estate::path(*path)}});
        rule["matches"] = paths.iter().map(exact).collect();
        let rewrite = json!({"type": "ReplaceFullPath", "replaceFullPath": self.rewrite});
        let filter = json!({"type": "URLRewrite", "urlRewrite": {"path": rewrite}});
        match rule["filters"].as_array_mut() {
            Some(filters) => filters.push(filter),
            None => rule["filters"] = json!([filter]),
        }
        rule
    }
}

/// Name of a domain's listener, which its routes refer to.
fn listener_name(domain: usize) -> String {
    format!("d{domain}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::{MeshKind, Protocol};
    use results::Mode;
    use std::collections::BTreeSet;
    use std::sync::Arc;

    const SUBJECT: Subject<'_> = Subject {
        namespace: "mesh-1",
        service: "server",
        port: 8080,
        callers: &[],
        protocol: Protocol::Http1,
        endpoints: &["/"],
    };

    fn objects(api: IngressApi, estate: &Estate) -> Vec<Value> {
        let mut spec = DeploymentSpec::new(MeshKind::Istio, Mode::Ingress);
        Arc::make_mut(&mut spec.istio).ingress.api = api;
        spec.ingress = Arc::new(Estate { declared: true, ..estate.clone() });
        Domains { spec: &spec, subject: &SUBJECT, public_name: "shop.example", rewrite: "/" }.objects()
    }

    fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
        objects.iter().filter(|object| object["kind"] == kind).collect()
    }

    fn strings(values: impl IntoIterator<Item = Value>) -> BTreeSet<String> {
        values.into_iter().map(|value| value.as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn istio_api_has_gateway_per_certificate_and_virtual_service_per_domain() {
        let objects =
            objects(IngressApi::Istio, &Estate { domains: 25, paths: Some(3), ..Estate::default() });
        let (gateways, services) = (of_kind(&objects, "Gateway"), of_kind(&objects, "VirtualService"));
        assert_eq!((gateways.len(), services.len(), objects.len()), (10, 25, 35));
        let servers = gateways.iter().flat_map(|gateway| gateway["spec"]["servers"].as_array().unwrap());
        let hosts = strings(servers.map(|server| server["hosts"][0].clone()));
        assert_eq!(hosts.len(), 25);
        assert_eq!(hosts, strings(services.iter().map(|service| service["spec"]["hosts"][0].clone())));
        let route = &services[0]["spec"]["http"][0];
        assert_eq!(route["match"].as_array().unwrap().len(), 3);
        assert_eq!(route["match"][2]["uri"]["exact"], "/get/3");
        assert_eq!(route["rewrite"]["uri"], "/");
    }

    #[test]
    fn gateway_api_objects_stay_within_limits() {
        let estate = Estate { domains: 150, paths: Some(200), credentials: Some(2), ..Estate::default() };
        let objects = objects(IngressApi::Kubernetes, &estate);
        let (gateways, routes) = (of_kind(&objects, "Gateway"), of_kind(&objects, "HTTPRoute"));
        let listeners = |gateway: &&Value| gateway["spec"]["listeners"].as_array().unwrap().len();
        assert_eq!(gateways.iter().map(listeners).collect::<Vec<_>>(), [64, 11, 64, 11]);
        assert_eq!(routes.len(), 300);
        let matches = |route: &Value| {
            let rules = route["spec"]["rules"].as_array().unwrap().iter();
            rules.map(|rule| rule["matches"].as_array().unwrap().len()).collect::<Vec<_>>()
        };
        assert_eq!((matches(routes[0]), matches(routes[1])), (vec![64, 64], vec![64, 8]));
        let names = routes.iter().map(|route| route["metadata"]["name"].clone());
        assert_eq!(strings(names).len(), 300);
        // Each route is attached to the listener of its own host.
        for route in routes {
            let parent = &route["spec"]["parentRefs"][0];
            let gateway = gateways.iter().find(|one| one["metadata"]["name"] == parent["name"]).unwrap();
            let listeners = gateway["spec"]["listeners"].as_array().unwrap().iter();
            let mut named = listeners.filter(|listener| listener["name"] == parent["sectionName"]);
            assert_eq!(named.next().unwrap()["hostname"], route["spec"]["hostnames"][0]);
        }
    }
}
