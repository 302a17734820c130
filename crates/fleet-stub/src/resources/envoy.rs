//! Clusters, endpoints, listeners, routes and the name table of a sidecar. Numbers are field numbers of
//! Envoy's protos.

use super::{Resource, Service};
use crate::protobuf::{Message, any, entry, seconds, structure, wrapped};

/// Type URL of clusters.
pub const CLUSTER: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
/// Type URL of endpoints.
pub const ENDPOINTS: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";
/// Type URL of listeners.
pub const LISTENER: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";
/// Type URL of routes.
pub const ROUTES: &str = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";
/// Type URL of the name table.
pub const NAME_TABLE: &str = "type.googleapis.com/istio.networking.nds.v1.NameTable";

const UPSTREAM_TLS: &str = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext";
const RAW_BUFFER: &str = "type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer";
const HTTP_OPTIONS: &str = "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
const CONNECTION_MANAGER: &str =
    "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
const ROUTER: &str = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router";
const CORS: &str = "type.googleapis.com/envoy.extensions.filters.http.cors.v3.Cors";
const FAULT: &str = "type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault";

/// Enum values.
const EDS: u64 = 3;
const LEAST_REQUEST: u64 = 1;
const API_V3: u64 = 2;
const OUTBOUND: u64 = 2;
const SAN_TYPE_URI: u64 = 3;

/// A cluster whose endpoints come over EDS, with mutual TLS if the endpoint supports it.
pub fn cluster(service: Service) -> Resource {
    let name = service.cluster_name();
    let threshold = Message::default()
        .message(2, &wrapped(u64::from(u32::MAX)))
        .message(3, &wrapped(u64::from(u32::MAX)))
        .message(4, &wrapped(u64::from(u32::MAX)))
        .message(5, &wrapped(u64::from(u32::MAX)))
        .number(6, 1);
    let identity = structure(&[
        ("host", &service.host()),
        ("name", &service.name()),
        ("namespace", &service.namespace()),
    ]);
    let services = Message::default()
        .message(6, &Message::default().message(1, &Message::default().message(5, &identity)));
    let metadata = Message::default()
        .message(1, &entry("istio", &Message::default().message(1, &entry("services", &services))));
    let value = Message::default()
        .text(1, &name)
        .number(2, EDS)
        .message(3, &Message::default().message(1, &by_ads()).text(2, &name))
        .message(4, &seconds(10))
        .number(6, LEAST_REQUEST)
        .message(10, &Message::default().message(1, &threshold))
        .message(25, &metadata)
        .message(27, &Message::default().message(1, &Message::default()))
        .message(36, &entry("envoy.extensions.upstreams.http.v3.HttpProtocolOptions", &http_options()))
        .message(43, &mutual_tls(service))
        .message(43, &without_tls());
    Resource::new(name, CLUSTER, &value)
}

/// Endpoints of a service: two pods, and others given by address and metadata.
#[must_use]
pub fn endpoints(service: Service, others: &[(&str, &str)]) -> Resource {
    let name = service.cluster_name();
    let pods = (0..2).map(|replica| {
        let address = service.pod_ip(replica).map(|byte| byte.to_string()).join(".");
        endpoint(service, &address, &format!("{}-{replica}", service.name()))
    });
    let others = others.iter().map(|(address, workload)| endpoint(service, address, workload));
    let locality = Message::default()
        .message(1, &Message::default().text(1, "region-1").text(2, "zone-a"))
        .messages(2, pods.chain(others))
        .message(3, &wrapped(2));
    Resource::new(name.clone(), ENDPOINTS, &Message::default().text(1, &name).message(2, &locality))
}

fn endpoint(service: Service, address: &str, workload: &str) -> Message {
    let workload = format!("{workload};{};{};;Kubernetes", service.namespace(), service.name());
    let metadata = Message::default()
        .message(1, &entry("envoy.transport_socket_match", &structure(&[("tlsMode", "istio")])))
        .message(1, &entry("istio", &structure(&[("workload", &workload)])));
    Message::default()
        .message(1, &Message::default().message(1, &socket_address(address, service.port())))
        .number(2, 1)
        .message(3, &metadata)
        .message(4, &wrapped(1))
}

/// A listener on a port of all addresses, whose routes come over RDS.
pub fn listener(port: u16) -> Resource {
    let name = format!("0.0.0.0_{port}");
    let filter = |name: &str, type_url: &str| {
        Message::default().text(1, name).message(4, &any(type_url, &Message::default()))
    };
    let rds = Message::default().message(1, &by_ads()).text(2, &port.to_string());
    let manager = Message::default()
        .text(2, &format!("outbound_{name}"))
        .message(3, &rds)
        .message(5, &filter("envoy.filters.http.fault", FAULT))
        .message(5, &filter("envoy.filters.http.cors", CORS))
        .message(5, &filter("envoy.filters.http.router", ROUTER));
    let chain = Message::default().message(
        3,
        &Message::default()
            .text(1, "envoy.filters.network.http_connection_manager")
            .message(4, &any(CONNECTION_MANAGER, &manager)),
    );
    let value = Message::default()
        .text(1, &name)
        .message(2, &socket_address("0.0.0.0", port))
        .message(3, &chain)
        .number(16, OUTBOUND)
        .message(26, &wrapped(0));
    Resource::new(name, LISTENER, &value)
}

/// Routes of a port: one virtual host per service.
pub fn routes(port: u16, services: impl Iterator<Item = Service>) -> Resource {
    let name = port.to_string();
    let value =
        Message::default().text(1, &name).messages(2, services.map(virtual_host)).message(7, &wrapped(0));
    Resource::new(name, ROUTES, &value)
}

fn virtual_host(service: Service) -> Message {
    let (host, name, namespace) = (service.host(), service.name(), service.namespace());
    let domains = [
        host.clone(),
        name.clone(),
        format!("{name}.{namespace}.svc"),
        format!("{name}.{namespace}"),
        service.cluster_ip(),
    ];
    let retries = Message::default()
        .text(1, "connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes")
        .message(2, &wrapped(2))
        .message(5, &Message::default().text(1, "envoy.retry_host_predicates.previous_hosts"))
        .number(6, 5)
        .number(7, 503);
    let action = Message::default()
        .text(1, &service.cluster_name())
        .message(8, &Message::default())
        .message(9, &retries)
        .message(36, &Message::default().message(1, &Message::default()));
    let route = Message::default()
        .message(1, &Message::default().text(1, "/"))
        .message(2, &action)
        .message(5, &Message::default().text(1, &format!("{host}:{}/*", service.port())))
        .text(14, "default");
    let virtual_host = Message::default().text(1, &format!("{host}:{}", service.port()));
    let virtual_host = domains.iter().fold(virtual_host, |message, domain| message.text(2, domain));
    virtual_host.message(3, &route).number(14, 1)
}

/// Names and addresses of all services, in one resource.
pub fn name_table(services: impl Iterator<Item = Service>) -> Resource {
    let entries = services.map(|service| {
        let info = Message::default()
            .text(1, &service.cluster_ip())
            .text(2, "Kubernetes")
            .text(3, &service.name())
            .text(4, &service.namespace());
        entry(&service.host(), &info)
    });
    Resource::new(String::new(), NAME_TABLE, &Message::default().messages(1, entries))
}

fn by_ads() -> Message {
    Message::default().message(3, &Message::default()).message(4, &Message::default()).number(6, API_V3)
}

fn socket_address(address: &str, port: u16) -> Message {
    Message::default().message(1, &Message::default().text(2, address).number(3, u64::from(port)))
}

fn http_options() -> Message {
    let explicit = Message::default().message(1, &Message::default());
    any(HTTP_OPTIONS, &Message::default().message(3, &explicit))
}

fn mutual_tls(service: Service) -> Message {
    let secret = |name: &str| {
        let agent = Message::default()
            .number(1, 2)
            .number(8, API_V3)
            .message(4, &Message::default().message(1, &Message::default().text(1, "sds-grpc")));
        let source = Message::default().message(2, &agent).message(4, &Message::default()).number(6, API_V3);
        Message::default().text(1, name).message(2, &source)
    };
    let account = format!("spiffe://cluster.local/ns/{}/sa/{}", service.namespace(), service.name());
    let identity =
        Message::default().number(1, SAN_TYPE_URI).message(2, &Message::default().text(1, &account));
    let validation = Message::default()
        .message(1, &Message::default().message(15, &identity))
        .message(2, &secret("ROOTCA"));
    let common = Message::default()
        .message(1, &Message::default().number(1, 3).number(2, 4))
        .text(4, "istio-peer-exchange")
        .text(4, "istio")
        .message(6, &secret("default"))
        .message(8, &validation);
    let sni = format!("outbound_.{}_._.{}", service.port(), service.host());
    let context = Message::default().message(1, &common).text(2, &sni);
    let socket =
        Message::default().text(1, "envoy.transport_sockets.tls").message(3, &any(UPSTREAM_TLS, &context));
    Message::default()
        .text(1, "tlsMode-istio")
        .message(2, &structure(&[("tlsMode", "istio")]))
        .message(3, &socket)
}

fn without_tls() -> Message {
    let socket = Message::default()
        .text(1, "envoy.transport_sockets.raw_buffer")
        .message(3, &any(RAW_BUFFER, &Message::default()));
    Message::default().text(1, "tlsMode-disabled").message(2, &Message::default()).message(3, &socket)
}
