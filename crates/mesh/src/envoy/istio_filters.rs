//! Bootstraps that tell Istio's build of Envoy from the upstream one: one with the filters that istiod sends
//! only to its own build, and one without them.

use super::extension::{http_connection_manager, router};
use serde_json::{Value, json};

/// HTTP filter names, each with its configuration type, as sent by istiod.
const FILTERS: [(&str, &str); 3] = [
    ("istio.metadata_exchange", "io.istio.http.peer_metadata.Config"),
    ("istio.alpn", "istio.envoy.config.filter.http.alpn.v2alpha1.FilterConfig"),
    ("istio.stats", "stats.PluginConfig"),
];

/// Bootstrap with or without Istio's filters, JSON.
pub fn bootstrap(has_istio_filters: bool) -> String {
    let filter = |(name, type_name)| {
        json!({"name": name, "typed_config": {
            "@type": "type.googleapis.com/udpa.type.v1.TypedStruct",
            "type_url": format!("type.googleapis.com/{type_name}"),
            "value": {},
        }})
    };
    let own = FILTERS.into_iter().filter(|_| has_istio_filters).map(filter);
    let filters: Vec<Value> = own.chain([router()]).collect();
    let manager = json!({"stat_prefix": "probe", "route_config": {}, "http_filters": filters});
    let manager = http_connection_manager(manager);
    // No port is opened: the configuration is only validated.
    let address = json!({"socket_address": {"address": "127.0.0.1", "port_value": 0}});
    let listener = json!({"name": "probe", "address": address, "filter_chains": [{"filters": [manager]}]});
    json!({"static_resources": {"listeners": [listener]}}).to_string()
}
