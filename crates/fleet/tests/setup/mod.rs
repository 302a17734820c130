//! Fleets for stubs.

use fleet::xds::{Mark, Presence, ProxyKind, ProxySpec, ResourceType};
use fleet::{BackoffSpec, ChangeMarks, Credentials, FleetSpec, Security, Selection, Target};
use fleet_stub::mark;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::time::Duration;

/// Name in the stubs' certificates.
pub const SERVER_NAME: &str = "istiod.istio-system.svc";

/// The proxy of a fleet with this number.
fn proxy(kind: ProxyKind, number: usize) -> ProxySpec {
    let [_, second, third, fourth] = (number as u32).to_be_bytes();
    ProxySpec {
        kind,
        name: format!("proxy-{number:05}"),
        namespace: "team-000".to_owned(),
        address: Ipv4Addr::new(10, 128 + second, third, fourth),
        service_account: "default".to_owned(),
        labels: BTreeMap::from([("app".to_owned(), "service-00000".to_owned())]),
        node: format!("node-{:03}", number % 100),
        cluster_id: "Kubernetes".to_owned(),
        istio_version: "1.31.0".to_owned(),
        dns_capture: false,
        on_demand: false,
        demands: Vec::new(),
    }
}

/// Proxies of one kind on a stub in plaintext; they reconnect soon after a loss.
pub fn fleet_of(kind: ProxyKind, number: usize, address: &str) -> FleetSpec {
    let proxies = (0..number).map(|number| (proxy(kind, number), Credentials::default())).collect();
    let backoff = BackoffSpec { base: Duration::from_millis(10), max: Duration::from_millis(100) };
    FleetSpec { backoff, threads: Some(1), ..FleetSpec::new(plaintext(address), proxies) }
}

/// A target for a stub's address, in plaintext.
pub fn plaintext(address: &str) -> Target {
    Target {
        address: address.to_owned(),
        server_name: SERVER_NAME.to_owned(),
        security: Security::Plaintext,
        roots: Vec::new().into(),
    }
}

/// Makes the proxies of a fleet connect to its first target over TLS and send a token.
pub fn show_token(spec: &mut FleetSpec, token: &str, roots: &str) {
    spec.targets[0].security = Security::Token;
    spec.targets[0].roots = roots.as_bytes().into();
    spec.proxies.iter_mut().for_each(|(_, credentials)| credentials.token = Some(token.into()));
}

/// A mark in endpoints, expected at one proxy.
pub fn endpoints_change(number: u32, proxy: usize) -> ChangeMarks {
    let mark = Mark {
        resource_type: ResourceType::Endpoints,
        presence: Presence::Present,
        resource: None,
        needle: mark(number).into_bytes(),
    };
    ChangeMarks {
        kind: "endpoint-added".to_owned(),
        marks: vec![mark],
        expected: Selection::Proxies(BTreeSet::from([proxy])),
        objects: 1,
    }
}
