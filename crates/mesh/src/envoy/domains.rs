//! Domains of a gateway with static files, shaped like istiod's: one filter chain per domain, selected by
//! SNI, with its own connection manager and routes.

use super::connection_manager::{self, retry_policy, route};
use super::credentials::CredentialFiles;
use super::listener::{gateway_listener, tls_inspector};
use super::spec::{Callee, DomainHost, Domains, Position, ProxyConfiguration};
use super::tls;
use experiment::environment::Estate;
use serde_json::{Value, json};

/// Statistics prefix of the listener on this port.
pub fn listener_statistics(port: u16) -> String {
    format!("listener.0.0.0.0_{port}")
}

/// Statistics prefix that the path proof needs in addition to those of hops.
pub(super) fn statistics(position: &Position) -> Option<String> {
    match position {
        Position::Gateway { port, domains: Some(_), .. } => Some(listener_statistics(*port)),
        Position::Gateway { .. } | Position::Sidecar { .. } => None,
    }
}

pub(super) fn listener(proxy: &ProxyConfiguration, port: u16, callee: &Callee, domains: &Domains) -> Value {
    let chain = |host: &DomainHost| {
        let virtual_host = virtual_host(callee, domains, host);
        json!({
            "name": host.name,
            "filter_chain_match": {"server_names": [host.name]},
            "filters": [connection_manager::domain(proxy, port, &virtual_host)],
            "transport_socket": client_tls(domains, &host.credentials),
        })
    };
    let chains: Vec<Value> = domains.hosts.iter().map(chain).collect();
    let mut listener = gateway_listener(port, &chains);
    listener["listener_filters"] = json!([tls_inspector()]);
    listener
}

/// The retry policy is set on the virtual host, which keeps a file of many routes small. Istio repeats it in
/// each route.
fn virtual_host(callee: &Callee, domains: &Domains, host: &DomainHost) -> Value {
    let exact = |path: usize| {
        let mut route = route(callee, &json!({"path": Estate::path(path)}));
        route["route"]["prefix_rewrite"] = json!(domains.rewrite);
        route
    };
    let routes: Vec<Value> = match domains.paths {
        Some(paths) => (1..=paths).map(exact).collect(),
        None => vec![route(callee, &json!({"prefix": "/"}))],
    };
    json!({
        "name": host.name,
        "domains": [host.name, format!("{}:*", host.name)],
        "routes": routes,
        "retry_policy": retry_policy(),
        "include_request_attempt_count": true,
    })
}

fn client_tls(domains: &Domains, credentials: &CredentialFiles) -> Value {
    let mut context = tls::context(credentials, &["h2", "http/1.1"]);
    if domains.is_tls12 {
        context["tls_params"]["tls_maximum_protocol_version"] = json!("TLSv1_2");
    }
    if domains.takes_certificates {
        context["validation_context"] = json!({"trusted_ca": {"filename": credentials.authority}});
    }
    tls::downstream(&context, domains.takes_certificates)
}
