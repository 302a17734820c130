//! The HTTP connection manager: the part of a proxy that parses and routes requests, and most of its cost.
//! Settings follow Istio's `buildHTTPConnectionManager` (pilot/pkg/networking/core/listener_builder.go).

use super::computing;
use super::extension::{extension, http_connection_manager, router, typed};
use super::spec::{Callee, Inbound, Position, ProxyConfiguration, gateway_prefix};
use crate::filters::GatewayFilters;
use experiment::environment::AccessLog;
use serde_json::{Value, json};

/// Requests from the application to every callee on this port.
pub(super) fn outbound(proxy: &ProxyConfiguration, port: u16) -> Value {
    let callees = proxy.position.callees().iter().filter(|callee| callee.address.port() == port);
    let hosts = callees.map(|callee| {
        json!({
            "name": format!("{}:{port}", callee.host),
            "domains": domains(callee),
            "routes": [outbound_route(callee)],
            "include_request_attempt_count": true,
        })
    });
    let manager = manager(proxy, &format!("outbound_0.0.0.0_{port}"), &hosts.collect::<Vec<_>>());
    http_connection_manager(manager)
}

/// Requests to the application.
pub(super) fn inbound(proxy: &ProxyConfiguration, Inbound { host, port, .. }: &Inbound) -> Value {
    let virtual_host = json!({
        "name": "inbound|http", "domains": ["*"],
        // Istio sets no timeout and no retries on inbound routes.
        "routes": [{"name": "default", "match": {"prefix": "/"},
                    "route": {"cluster": format!("inbound|{port}||"), "timeout": "0s"},
                    "decorator": {"operation": format!("{host}:80/*")}}],
    });
    let mut manager = manager(proxy, &format!("inbound_0.0.0.0_{port}"), &[virtual_host]);
    // Shows the application who called: x-forwarded-client-cert.
    manager["forward_client_cert_details"] = json!("APPEND_FORWARD");
    manager["set_current_client_cert_details"] = json!({"subject": true, "dns": true, "uri": true});
    http_connection_manager(manager)
}

/// Requests to a gateway, whose only server accepts any host.
pub(super) fn gateway(proxy: &ProxyConfiguration, port: u16) -> Value {
    let routes: Vec<Value> = proxy.position.callees().iter().map(outbound_route).collect();
    let virtual_host =
        json!({"name": "*", "domains": ["*"], "routes": routes, "include_request_attempt_count": true});
    http_connection_manager(manager(proxy, &gateway_prefix(port), &[virtual_host]))
}

/// Requests to one domain of a gateway, for this virtual host.
pub(super) fn domain(proxy: &ProxyConfiguration, port: u16, virtual_host: &Value) -> Value {
    let mut manager = manager(proxy, &gateway_prefix(port), std::slice::from_ref(virtual_host));
    manager["route_config"]["name"] = virtual_host["name"].clone();
    http_connection_manager(manager)
}

fn manager(proxy: &ProxyConfiguration, name: &str, virtual_hosts: &[Value]) -> Value {
    json!({
        "stat_prefix": name,
        // HTTP/1.1 or HTTP/2, detected from the peer's first bytes.
        "codec_type": "AUTO",
        "server_name": "istio-envoy",
        // A sidecar is not an edge: it trusts the x-forwarded-for that it gets. A gateway uses the peer's address.
        "use_remote_address": matches!(proxy.position, Position::Gateway { .. }),
        "normalize_path": true,
        "path_with_escaped_slashes_action": "KEEP_UNCHANGED",
        // Streams may idle: timeouts are set on routes.
        "stream_idle_timeout": "0s",
        "upgrade_configs": [{"upgrade_type": "websocket"}],
        "proxy_100_continue": true,
        // Adds an x-request-id to every request without one.
        "generate_request_id": true,
        "request_id_extension": {"typed_config": typed(
            "request_id.uuid.v3.UuidRequestIdConfig",
            json!({"use_request_id_for_trace_sampling": true}),
        )},
        "http_filters": http_filters(proxy),
        "access_log": access_log(proxy.access_log),
        "route_config": {"name": name, "validate_clusters": false, "virtual_hosts": virtual_hosts},
    })
}

/// Istio's chain without the filters that only its own build has (`istio.metadata_exchange`, `istio.alpn`,
/// `istio.stats`). Filters that do nothing until they are configured are kept: every request in a mesh passes
/// through them too.
fn http_filters(proxy: &ProxyConfiguration) -> Value {
    let mut filters = common_filters().to_vec();
    filters.extend((!proxy.cpu_time.is_zero()).then(|| computing::filter(proxy.cpu_time)));
    filters.extend(proxy.position.filters().into_iter().flat_map(GatewayFilters::http_filters));
    filters.push(router());
    filters.into()
}

fn common_filters() -> [Value; 3] {
    let grpc_stats = json!({"emit_filter_state": true, "stats_for_all_methods": false});
    [
        extension("envoy.filters.http.grpc_stats", "filters.http.grpc_stats.v3.FilterConfig", grpc_stats),
        extension("envoy.filters.http.fault", "filters.http.fault.v3.HTTPFault", json!({})),
        extension("envoy.filters.http.cors", "filters.http.cors.v3.Cors", json!({})),
    ]
}

/// The service's host name and its address. Other hosts get a 404, where Istio would pass them through: a
/// stray request must not look like a measured one.
fn domains(Callee { host, address, .. }: &Callee) -> [String; 4] {
    [host.clone(), format!("{host}:{}", address.port()), address.ip().to_string(), address.to_string()]
}

/// No timeout and Istio's default retries (pilot/pkg/networking/core/route/retry/retry.go): two, for requests
/// that the upstream cannot have handled. Retries are counted, and proofs of the path allow for them.
fn outbound_route(callee: &Callee) -> Value {
    let mut route = route(callee, &json!({"prefix": "/"}));
    route["name"] = json!("default");
    route["decorator"] = json!({"operation": format!("{}:80/*", callee.host)});
    route["route"]["retry_policy"] = retry_policy();
    route
}

pub(super) fn route(callee: &Callee, matched: &Value) -> Value {
    json!({
        "match": matched,
        "route": {
            "cluster": callee.cluster_name(),
            "timeout": "0s",
            "max_stream_duration": {"max_stream_duration": "0s", "grpc_timeout_header_max": "0s"},
        },
    })
}

pub(super) fn retry_policy() -> Value {
    json!({
        "num_retries": 2,
        "retry_on": "connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes",
        "host_selection_retry_max_attempts": "5",
        "retry_host_predicate": [extension(
            "envoy.retry_host_predicates.previous_hosts",
            "retry.host.previous_hosts.v3.PreviousHostsPredicate",
            json!({}),
        )],
    })
}

/// Istio's default text format (`EnvoyTextLogFormat`), without the one field that only its build knows.
const TEXT_FORMAT: &str = "[%START_TIME%] \"%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%\" \
    %RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %CONNECTION_TERMINATION_DETAILS% \
    \"%UPSTREAM_TRANSPORT_FAILURE_REASON%\" %BYTES_RECEIVED% %BYTES_SENT% %DURATION% \
    %RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% \"%REQ(X-FORWARDED-FOR)%\" \"%REQ(USER-AGENT)%\" \"%REQ(X-REQUEST-ID)%\" \
    \"%REQ(:AUTHORITY)%\" \"%UPSTREAM_HOST%\" %UPSTREAM_CLUSTER_RAW% %UPSTREAM_LOCAL_ADDRESS% \
    %DOWNSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_REMOTE_ADDRESS% %REQUESTED_SERVER_NAME% %ROUTE_NAME%\n";

fn access_log(format: AccessLog) -> Value {
    let format = match format {
        AccessLog::Off => return json!([]),
        AccessLog::Text => json!({"text_format_source": {"inline_string": TEXT_FORMAT}}),
        AccessLog::Json => json!({"json_format": json_fields()}),
    };
    let config = json!({"log_format": format});
    json!([extension("envoy.access_loggers.stdout", "access_loggers.stream.v3.StdoutAccessLog", config)])
}

/// The fields of Istio's default JSON format (`EnvoyJSONLogFormatIstio`).
fn json_fields() -> Value {
    json!({
        "start_time": "%START_TIME%",
        "route_name": "%ROUTE_NAME%",
        "method": "%REQ(:METHOD)%",
        "path": "%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%",
        "protocol": "%PROTOCOL%",
        "response_code": "%RESPONSE_CODE%",
        "response_flags": "%RESPONSE_FLAGS%",
        "response_code_details": "%RESPONSE_CODE_DETAILS%",
        "connection_termination_details": "%CONNECTION_TERMINATION_DETAILS%",
        "bytes_received": "%BYTES_RECEIVED%",
        "bytes_sent": "%BYTES_SENT%",
        "duration": "%DURATION%",
        "upstream_service_time": "%RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)%",
        "x_forwarded_for": "%REQ(X-FORWARDED-FOR)%",
        "user_agent": "%REQ(USER-AGENT)%",
        "request_id": "%REQ(X-REQUEST-ID)%",
        "authority": "%REQ(:AUTHORITY)%",
        "upstream_host": "%UPSTREAM_HOST%",
        "upstream_cluster": "%UPSTREAM_CLUSTER_RAW%",
        "upstream_local_address": "%UPSTREAM_LOCAL_ADDRESS%",
        "downstream_local_address": "%DOWNSTREAM_LOCAL_ADDRESS%",
        "downstream_remote_address": "%DOWNSTREAM_REMOTE_ADDRESS%",
        "requested_server_name": "%REQUESTED_SERVER_NAME%",
        "upstream_transport_failure_reason": "%UPSTREAM_TRANSPORT_FAILURE_REASON%",
    })
}
