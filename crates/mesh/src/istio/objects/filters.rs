//! Filters of an ingress gateway, written as Istio's users write them: authorization by a policy with action
//! `CUSTOM` and the mesh's extension providers, tokens by `RequestAuthentication`, WebAssembly by
//! `TrafficExtension`. Istio has no objects for rate limits and external processing: an `EnvoyFilter` adds these.

use super::egress::service_entry;
use super::subject::object;
use super::{ingress, policy};
use crate::filters::{CREDENTIAL_HEADER, Filter, FilterService, GatewayFilters, SERVICE_TIMEOUT};
use serde_json::{Value, json};
use std::net::Ipv4Addr;

const SECURITY_API: &str = "security.istio.io/v1";

/// Providers required in the mesh configuration. The services they name may be absent from a deployment.
pub(super) fn extension_providers() -> Vec<Value> {
    let provider = |filter: Filter, kind: &str, mut provider: Value| {
        let service = filter.service().expect("an authorization service is asked");
        provider["service"] = json!(service.host());
        provider["port"] = json!(service.port);
        provider["timeout"] = json!(SERVICE_TIMEOUT);
        json!({"name": filter.name(), kind: provider})
    };
    vec![
        provider(Filter::ExtAuthzGrpc, "envoyExtAuthzGrpc", json!({})),
        provider(
            Filter::ExtAuthzHttp,
            "envoyExtAuthzHttp",
            json!({"includeRequestHeadersInCheck": [CREDENTIAL_HEADER]}),
        ),
    ]
}

/// Objects of a gateway's filters and of the services behind them, which the gateway calls in plaintext.
pub fn objects(filters: &GatewayFilters, namespace: &str) -> Vec<Value> {
    let entry = |(service, address): &(FilterService, Ipv4Addr)| {
        let protocol = if service.speaks_grpc { ("grpc", "GRPC") } else { ("http", "HTTP") };
        let port = (service.port, protocol.0, protocol.1);
        service_entry((namespace, service.name), &service.host(), port, Some(&[*address]))
    };
    let mut objects: Vec<Value> = filters.services.iter().map(entry).collect();
    let mut patches = Vec::new();
    for &filter in &filters.filters {
        match filter {
            Filter::Jwt => {
                let attach = |policy: &mut Value| policy["selector"] = selector();
                objects.extend(policy::tokens((namespace, ingress::NAME), &filters.token_keys, attach));
            }
            Filter::ExtAuthzGrpc | Filter::ExtAuthzHttp => objects.push(ext_authz(namespace, filter)),
            Filter::Wasm => objects.push(wasm(filters, namespace)),
            Filter::Waf | Filter::LocalRateLimit | Filter::GlobalRateLimit => {
                patches.push(before_router(&filters.http_filter(filter)));
            }
        }
    }
    if !patches.is_empty() {
        let spec = json!({"workloadSelector": {"labels": {"app": ingress::NAME}}, "configPatches": patches});
        objects.push(object("networking.istio.io/v1alpha3", "EnvoyFilter", (namespace, "filters"), &spec));
    }
    objects
}

fn selector() -> Value {
    json!({"matchLabels": {"app": ingress::NAME}})
}

fn ext_authz(namespace: &str, filter: Filter) -> Value {
    let spec = json!({
        "selector": selector(),
        "action": "CUSTOM",
        "provider": {"name": filter.name()},
        "rules": [{"to": [{"operation": {"paths": ["*"]}}]}],
    });
    object(SECURITY_API, "AuthorizationPolicy", (namespace, filter.name()), &spec)
}

fn wasm(filters: &GatewayFilters, namespace: &str) -> Value {
    let url = format!("file://{}", filters.wasm_module.display());
    let spec = json!({"selector": selector(), "wasm": {"url": url, "failStrategy": "FAIL_CLOSE"}});
    object("extensions.istio.io/v1alpha1", "TrafficExtension", (namespace, "gateway-wasm"), &spec)
}

/// Inserts a filter before the router and behind those inserted earlier.
fn before_router(filter: &Value) -> Value {
    json!({
        "applyTo": "HTTP_FILTER",
        "match": {"context": "GATEWAY", "listener": {"filterChain": {"filter": {
            "name": "envoy.filters.network.http_connection_manager",
            "subFilter": {"name": "envoy.filters.http.router"},
        }}}},
        "patch": {"operation": "INSERT_BEFORE", "value": filter},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::environment::Scenario;

    #[test]
    fn gateway_with_all_filters_has_their_objects() {
        let filters = Filter::for_scenario(Scenario::AllFilters);
        let services = filters.iter().filter_map(|filter| Some((filter.service()?, Ipv4Addr::LOCALHOST)));
        let filters = GatewayFilters { services: services.collect(), filters, ..GatewayFilters::default() };
        let objects = objects(&filters, "mesh-1");
        let kinds: Vec<&str> = objects.iter().filter_map(|object| object["kind"].as_str()).collect();
        let expected = [
            "ServiceEntry",
            "ServiceEntry",
            "ServiceEntry",
            "RequestAuthentication",
            "AuthorizationPolicy",
            "AuthorizationPolicy",
            "TrafficExtension",
            "EnvoyFilter",
        ];
        assert_eq!(kinds, expected);
        let patches = objects.last().unwrap()["spec"]["configPatches"].as_array().unwrap();
        let names = patches.iter().map(|patch| patch["patch"]["value"]["name"].as_str().unwrap());
        let expected = [
            "envoy.filters.http.ext_proc",
            "envoy.filters.http.local_ratelimit",
            "envoy.filters.http.ratelimit",
        ];
        assert_eq!(names.collect::<Vec<_>>(), expected);
    }
}
