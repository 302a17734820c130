//! Envoy configuration of filters, identical in a static file and in Istio's `EnvoyFilter`.

use super::probe::{GLOBAL_LIMIT_HEADER, LOCAL_LIMIT_HEADER};
use super::{CREDENTIAL_HEADER, Filter, GatewayFilters, LIMIT_DOMAIN, LIMIT_PER_SECOND, PROBE_DESCRIPTOR};
use crate::envoy::extension::extension;
use crate::istio::token::ISSUER;
use serde_json::{Value, json};

/// Prefix of the names of the local rate limit's counters.
pub(super) const LOCAL_LIMIT_PREFIX: &str = "gateway_limit";
/// Envoy's default timeouts for its services are 20 to 200 ms. A busy machine exceeds them, and Envoy would
/// then reject the request or let it pass unchecked.
pub const SERVICE_TIMEOUT: &str = "5s";
/// Time until a probed limit admits another request.
const PROBED_LIMIT_INTERVAL: &str = "3600s";
const JWT_PROVIDER: &str = "run";

impl GatewayFilters {
    /// All filters of a gateway without a control plane, in chain order.
    pub fn http_filters(&self) -> Vec<Value> {
        self.filters.iter().map(|filter| self.http_filter(*filter)).collect()
    }

    /// One filter. Istio generates those for tokens, authorization and WebAssembly from its own objects.
    pub fn http_filter(&self, filter: Filter) -> Value {
        match filter {
            Filter::Jwt => self.jwt(),
            Filter::ExtAuthzGrpc => ext_authz(&json!({"grpc_service": grpc_service(filter)})),
            Filter::ExtAuthzHttp => ext_authz_http(),
            Filter::Wasm => self.wasm(),
            Filter::Waf => ext_proc(),
            Filter::LocalRateLimit => local_rate_limit(),
            Filter::GlobalRateLimit => global_rate_limit(),
        }
    }

    fn jwt(&self) -> Value {
        let provider =
            json!({"issuer": ISSUER, "local_jwks": {"inline_string": self.token_keys}, "forward": true});
        filter(
            "jwt_authn",
            "jwt_authn.v3.JwtAuthentication",
            json!({
                "providers": {JWT_PROVIDER: provider},
                "rules": [{"match": {"prefix": "/"}, "requires": {"provider_name": JWT_PROVIDER}}],
            }),
        )
    }

    fn wasm(&self) -> Value {
        let code = json!({"local": {"filename": self.wasm_module}});
        let vm = json!({"runtime": "envoy.wasm.runtime.v8", "code": code});
        let config = json!({"name": "meshmeter", "fail_open": false, "vm_config": vm});
        filter("wasm", "wasm.v3.Wasm", json!({"config": config}))
    }
}

fn filter(name: &str, kind: &str, config: Value) -> Value {
    extension(&format!("envoy.filters.http.{name}"), &format!("filters.http.{kind}"), config)
}

fn cluster(filter: Filter) -> String {
    filter.service().map(super::FilterService::cluster).unwrap_or_default()
}

fn grpc_service(filter: Filter) -> Value {
    json!({"envoy_grpc": {"cluster_name": cluster(filter)}, "timeout": SERVICE_TIMEOUT})
}

fn ext_authz(service: &Value) -> Value {
    let mut config = service.clone();
    config["transport_api_version"] = json!("V3");
    filter("ext_authz", "ext_authz.v3.ExtAuthz", config)
}

fn ext_authz_http() -> Value {
    let cluster = cluster(Filter::ExtAuthzHttp);
    let host = Filter::ExtAuthzHttp.service().map(super::FilterService::host).unwrap_or_default();
    let uri = json!({"uri": format!("http://{host}"), "cluster": cluster, "timeout": SERVICE_TIMEOUT});
    ext_authz(&json!({
        "http_service": {"server_uri": uri},
        "allowed_headers": {"patterns": [{"exact": CREDENTIAL_HEADER}]},
    }))
}

/// Sends request headers and bodies to the service. If a body exceeds the proxy's buffer, the service gets
/// the beginning.
fn ext_proc() -> Value {
    filter(
        "ext_proc",
        "ext_proc.v3.ExternalProcessor",
        json!({
            "grpc_service": grpc_service(Filter::Waf),
            "message_timeout": SERVICE_TIMEOUT,
            "processing_mode": {
                "request_header_mode": "SEND",
                "request_body_mode": "BUFFERED_PARTIAL",
                "request_trailer_mode": "SKIP",
                "response_header_mode": "SKIP",
                "response_body_mode": "NONE",
                "response_trailer_mode": "SKIP",
            },
        }),
    )
}

/// Every request takes from a shared bucket; a probing request also takes from a separate bucket.
fn local_rate_limit() -> Value {
    let bucket = |tokens: u32, interval: &str| json!({"max_tokens": tokens, "tokens_per_fill": tokens, "fill_interval": interval});
    let always = json!({"default_value": {"numerator": 100}});
    filter(
        "local_ratelimit",
        "local_ratelimit.v3.LocalRateLimit",
        json!({
            "stat_prefix": LOCAL_LIMIT_PREFIX,
            "token_bucket": bucket(LIMIT_PER_SECOND, "1s"),
            "filter_enabled": always,
            "filter_enforced": always,
            "rate_limits": [probed(LOCAL_LIMIT_HEADER)],
            "descriptors": [{
                "entries": [{"key": PROBE_DESCRIPTOR, "value": "1"}],
                "token_bucket": bucket(1, PROBED_LIMIT_INTERVAL),
            }],
        }),
    )
}

/// Rejects requests if the service does not respond: an uncounted request must not look like a counted one.
fn global_rate_limit() -> Value {
    let service = grpc_service(Filter::GlobalRateLimit);
    filter(
        "ratelimit",
        "ratelimit.v3.RateLimit",
        json!({
            "domain": LIMIT_DOMAIN,
            "timeout": SERVICE_TIMEOUT,
            "failure_mode_deny": true,
            "rate_limit_service": {"grpc_service": service, "transport_api_version": "V3"},
            "rate_limits": [
                {"actions": [{"generic_key": {"descriptor_value": "all"}}]},
                probed(GLOBAL_LIMIT_HEADER),
            ],
        }),
    )
}

fn probed(header: &str) -> Value {
    json!({"actions": [{"request_headers": {"header_name": header, "descriptor_key": PROBE_DESCRIPTOR}}]})
}

/// Limits of the rate limit service, in its file format.
pub fn service_limits() -> Value {
    let limit = |unit: &str, requests: u32| json!({"unit": unit, "requests_per_unit": requests});
    json!({"domain": LIMIT_DOMAIN, "descriptors": [
        {"key": "generic_key", "value": "all", "rate_limit": limit("second", LIMIT_PER_SECOND)},
        {"key": PROBE_DESCRIPTOR, "rate_limit": limit("hour", 1)},
    ]})
}
