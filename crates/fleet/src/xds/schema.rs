//! The fields of responses and resources that a simulated proxy reads.

use super::walker::Slot::{
    ClusterType, EndpointsName, EndpointsSource, FilterName, FilterSource, Inner, Name, Nonce, OtherSource,
    Removed, Route, RoutesName, RoutesSource, SecretName, SecretSource, TypeUrl, Version, Wrapper,
    WrapperName, WrapperVersion,
};
use super::walker::{Schema, Step};
use experiment::xds::ResourceType;

/// Value of `Cluster.type` for endpoints over EDS.
pub(super) const CLUSTER_TYPE_EDS: u64 = 3;

/// `DeltaDiscoveryResponse`.
pub(super) static DELTA_RESPONSE: Schema = Schema(&[
    (2, Step::Message(Wrapper, &WRAPPER)),
    (6, Step::Text(Removed)),
    (4, Step::Text(TypeUrl)),
    (5, Step::Text(Nonce)),
    (8, Step::Message(Inner, &REMOVED_NAME)),
]);

static REMOVED_NAME: Schema = Schema(&[(1, Step::Text(Removed))]);

static WRAPPER: Schema = Schema(&[
    (2, Step::Resource),
    (3, Step::Text(WrapperName)),
    (1, Step::Text(WrapperVersion)),
    (8, Step::Message(Inner, &WRAPPER_NAME)),
]);

static WRAPPER_NAME: Schema = Schema(&[(1, Step::Text(WrapperName))]);

/// `DiscoveryResponse`.
pub(super) static RESPONSE: Schema = Schema(&[
    (2, Step::Resource),
    (1, Step::Text(Version)),
    (4, Step::Text(TypeUrl)),
    (5, Step::Text(Nonce)),
]);

/// Fields that are read from a resource. Usually that is the name, which the state-of-the-world variant has
/// nowhere else.
pub(super) fn of_resource(resource_type: ResourceType) -> &'static Schema {
    match resource_type {
        ResourceType::Clusters => &CLUSTER,
        ResourceType::Listeners => &LISTENER,
        ResourceType::Routes => &ROUTE_CONFIGURATION,
        ResourceType::Endpoints | ResourceType::Secrets | ResourceType::ExtensionConfigs => &NAMED,
        ResourceType::NameTables
        | ResourceType::Workloads
        | ResourceType::Addresses
        | ResourceType::Authorizations => &UNREAD,
    }
}

static UNREAD: Schema = Schema(&[]);

static NAMED: Schema = Schema(&[(1, Step::Text(Name))]);

/// Only counted: a proxy of many routes must not look like a proxy of one.
static ROUTE_CONFIGURATION: Schema =
    Schema(&[(1, Step::Text(Name)), (2, Step::Message(Inner, &VIRTUAL_HOST))]);

static VIRTUAL_HOST: Schema = Schema(&[(3, Step::Present(Route))]);

static CLUSTER: Schema = Schema(&[
    (1, Step::Text(Name)),
    (2, Step::Number(ClusterType)),
    (3, Step::Message(EndpointsSource, &ENDPOINTS_SOURCE)),
    (24, Step::Message(Inner, &TRANSPORT_SOCKET)),
    (43, Step::Message(Inner, &TRANSPORT_SOCKET_MATCH)),
]);

static ENDPOINTS_SOURCE: Schema =
    Schema(&[(1, Step::Message(Inner, &CONFIG_SOURCE)), (2, Step::Text(EndpointsName))]);

static TRANSPORT_SOCKET_MATCH: Schema = Schema(&[(3, Step::Message(Inner, &TRANSPORT_SOCKET))]);

static LISTENER: Schema = Schema(&[
    (1, Step::Text(Name)),
    (3, Step::Message(Inner, &FILTER_CHAIN)),
    (9, Step::Message(Inner, &LISTENER_FILTER)),
    (19, Step::Message(Inner, &API_LISTENER)),
    (25, Step::Message(Inner, &FILTER_CHAIN)),
]);

static FILTER_CHAIN: Schema =
    Schema(&[(3, Step::Message(Inner, &NETWORK_FILTER)), (6, Step::Message(Inner, &TRANSPORT_SOCKET))]);

static LISTENER_FILTER: Schema =
    Schema(&[(1, Step::Text(FilterName)), (5, Step::Message(FilterSource, &FILTER_SOURCE))]);

static API_LISTENER: Schema =
    Schema(&[(1, Step::Any(&[(HTTP_CONNECTION_MANAGER_URL, &HTTP_CONNECTION_MANAGER)]))]);

static NETWORK_FILTER: Schema = Schema(&[
    (1, Step::Text(FilterName)),
    (4, Step::Any(&[(HTTP_CONNECTION_MANAGER_URL, &HTTP_CONNECTION_MANAGER)])),
    (5, Step::Message(FilterSource, &FILTER_SOURCE)),
]);

const HTTP_CONNECTION_MANAGER_URL: &str =
    "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";

static HTTP_CONNECTION_MANAGER: Schema =
    Schema(&[(3, Step::Message(RoutesSource, &ROUTES_SOURCE)), (5, Step::Message(Inner, &HTTP_FILTER))]);

static ROUTES_SOURCE: Schema =
    Schema(&[(1, Step::Message(Inner, &CONFIG_SOURCE)), (2, Step::Text(RoutesName))]);

static HTTP_FILTER: Schema =
    Schema(&[(1, Step::Text(FilterName)), (5, Step::Message(FilterSource, &FILTER_SOURCE))]);

static FILTER_SOURCE: Schema = Schema(&[(1, Step::Message(Inner, &CONFIG_SOURCE))]);

static TRANSPORT_SOCKET: Schema = Schema(&[(
    3,
    Step::Any(&[
        ("type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext", &TLS_CONTEXT),
        ("type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext", &TLS_CONTEXT),
        (
            "type.googleapis.com/envoy.extensions.transport_sockets.quic.v3.QuicDownstreamTransport",
            &QUIC_TRANSPORT,
        ),
    ]),
)]);

static QUIC_TRANSPORT: Schema = Schema(&[(1, Step::Message(Inner, &TLS_CONTEXT))]);

static TLS_CONTEXT: Schema = Schema(&[(1, Step::Message(Inner, &COMMON_TLS_CONTEXT))]);

static COMMON_TLS_CONTEXT: Schema = Schema(&[
    (6, Step::Message(SecretSource, &SECRET_SOURCE)),
    (7, Step::Message(SecretSource, &SECRET_SOURCE)),
    (8, Step::Message(Inner, &COMBINED_VALIDATION_CONTEXT)),
]);

static COMBINED_VALIDATION_CONTEXT: Schema = Schema(&[(2, Step::Message(SecretSource, &SECRET_SOURCE))]);

static SECRET_SOURCE: Schema =
    Schema(&[(1, Step::Text(SecretName)), (2, Step::Message(Inner, &CONFIG_SOURCE))]);

/// Paths and other services; absent if the source is the aggregated stream.
static CONFIG_SOURCE: Schema = Schema(&[
    (1, Step::Present(OtherSource)),
    (2, Step::Present(OtherSource)),
    (8, Step::Present(OtherSource)),
]);
