//! Bootstraps that tell Istio's build of Envoy from the upstream one: one with the filters that istiod sends
//! only to its own build, and one without them.

use serde_json::{Value, json};

/// HTTP filter names, each with its configuration type, as sent by istiod.
const FILTERS: [(&str, &str); 3] = [
    ("istio.metadata_exchange", "io.istio.http.peer_metadata.Config"),
    ("istio.alpn", "istio.envoy.config.filter.http.alpn.v2alpha1.FilterConfig"),
    ("istio.stats", "stats.PluginConfig"),
];

/// Bootstrap with Istio's filters, JSON.
pub fn bootstrap_with() -> String {
    let filter = |(name, type_name)| {
        json!({"name": name, "typed_config": {
            "@type": "type.googleapis.com/udpa.type.v1.TypedStruct",
            "type_url": format!("type.googleapis.com/{type_name}"),
            "value": {},
        }})
    };
    bootstrap(FILTERS.map(filter).to_vec())
}

/// Bootstrap without Istio's filters, JSON.
pub fn bootstrap_without() -> String {
    bootstrap(Vec::new())
}

fn bootstrap(mut filters: Vec<Value>) -> String {
    let router = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router";
    filters.push(json!({"name": "envoy.filters.http.router", "typed_config": {"@type": router}}));
    let manager = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
    let manager = json!({"name": "envoy.filters.network.http_connection_manager", "typed_config": {
        "@type": manager, "stat_prefix": "probe", "route_config": {}, "http_filters": filters,
    }});
    // No port is opened: the configuration is only validated.
    let address = json!({"socket_address": {"address": "127.0.0.1", "port_value": 0}});
    let listener = json!({"name": "probe", "address": address, "filter_chains": [{"filters": [manager]}]});
    json!({"static_resources": {"listeners": [listener]}}).to_string()
}
