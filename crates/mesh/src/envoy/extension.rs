//! Extensions in Envoy's configuration: filters, transport sockets and the like, each with a typed configuration.

use serde_json::{Value, json};

/// An extension by its name. `kind`: type of its configuration, below `envoy.extensions`.
pub(crate) fn extension(name: &str, kind: &str, config: Value) -> Value {
    json!({"name": name, "typed_config": typed(kind, config)})
}

pub(super) fn typed(kind: &str, mut config: Value) -> Value {
    config["@type"] = json!(format!("type.googleapis.com/envoy.extensions.{kind}"));
    config
}

pub(super) fn http_connection_manager(config: Value) -> Value {
    extension(
        "envoy.filters.network.http_connection_manager",
        "filters.network.http_connection_manager.v3.HttpConnectionManager",
        config,
    )
}

/// The last filter of every chain.
pub(super) fn router() -> Value {
    extension("envoy.filters.http.router", "filters.http.router.v3.Router", json!({}))
}
