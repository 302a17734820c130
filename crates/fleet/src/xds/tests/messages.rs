//! Protocol messages encoded and decoded by prost, independently of the code under test.

use prost::Message;
use std::collections::HashMap;

#[derive(Clone, PartialEq, Message)]
pub(super) struct Any {
    #[prost(string, tag = "1")]
    pub(super) type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) value: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Node {
    #[prost(string, tag = "1")]
    pub(super) id: String,
    #[prost(string, tag = "2")]
    pub(super) cluster: String,
    #[prost(message, optional, tag = "3")]
    pub(super) metadata: Option<Struct>,
    #[prost(string, tag = "6")]
    pub(super) user_agent_name: String,
    #[prost(message, repeated, tag = "9")]
    pub(super) extensions: Vec<Extension>,
    #[prost(string, repeated, tag = "10")]
    pub(super) client_features: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Extension {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) category: String,
    #[prost(string, repeated, tag = "6")]
    pub(super) type_urls: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Struct {
    #[prost(map = "string, message", tag = "1")]
    pub(super) fields: HashMap<String, Value>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Value {
    #[prost(oneof = "ValueKind", tags = "2, 3, 4, 5, 6")]
    pub(super) kind: Option<ValueKind>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum ValueKind {
    #[prost(double, tag = "2")]
    Number(f64),
    #[prost(string, tag = "3")]
    Text(String),
    #[prost(bool, tag = "4")]
    Bool(bool),
    #[prost(message, tag = "5")]
    Map(Struct),
    #[prost(message, tag = "6")]
    List(List),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct List {
    #[prost(message, repeated, tag = "1")]
    pub(super) values: Vec<Value>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Status {
    #[prost(int32, tag = "1")]
    pub(super) code: i32,
    #[prost(string, tag = "2")]
    pub(super) message: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DeltaDiscoveryRequest {
    #[prost(message, optional, tag = "1")]
    pub(super) node: Option<Node>,
    #[prost(string, tag = "2")]
    pub(super) type_url: String,
    #[prost(string, repeated, tag = "3")]
    pub(super) subscribe: Vec<String>,
    #[prost(string, repeated, tag = "4")]
    pub(super) unsubscribe: Vec<String>,
    #[prost(map = "string, string", tag = "5")]
    pub(super) held: HashMap<String, String>,
    #[prost(string, tag = "6")]
    pub(super) nonce: String,
    #[prost(message, optional, tag = "7")]
    pub(super) error: Option<Status>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DiscoveryRequest {
    #[prost(string, tag = "1")]
    pub(super) version: String,
    #[prost(message, optional, tag = "2")]
    pub(super) node: Option<Node>,
    #[prost(string, repeated, tag = "3")]
    pub(super) names: Vec<String>,
    #[prost(string, tag = "4")]
    pub(super) type_url: String,
    #[prost(string, tag = "5")]
    pub(super) nonce: String,
    #[prost(message, optional, tag = "6")]
    pub(super) error: Option<Status>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Resource {
    #[prost(string, tag = "1")]
    pub(super) version: String,
    #[prost(message, optional, tag = "2")]
    pub(super) resource: Option<Any>,
    #[prost(string, tag = "3")]
    pub(super) name: String,
    #[prost(string, repeated, tag = "4")]
    pub(super) aliases: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DeltaDiscoveryResponse {
    #[prost(string, tag = "1")]
    pub(super) system_version: String,
    #[prost(message, repeated, tag = "2")]
    pub(super) resources: Vec<Resource>,
    #[prost(string, tag = "4")]
    pub(super) type_url: String,
    #[prost(string, tag = "5")]
    pub(super) nonce: String,
    #[prost(string, repeated, tag = "6")]
    pub(super) removed: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DiscoveryResponse {
    #[prost(string, tag = "1")]
    pub(super) version: String,
    #[prost(message, repeated, tag = "2")]
    pub(super) resources: Vec<Any>,
    #[prost(string, tag = "4")]
    pub(super) type_url: String,
    #[prost(string, tag = "5")]
    pub(super) nonce: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Cluster {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(int32, tag = "2")]
    pub(super) discovery_type: i32,
    #[prost(message, optional, tag = "3")]
    pub(super) eds: Option<EdsClusterConfig>,
    #[prost(message, optional, tag = "24")]
    pub(super) transport_socket: Option<TransportSocket>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct EdsClusterConfig {
    #[prost(message, optional, tag = "1")]
    pub(super) source: Option<ConfigSource>,
    #[prost(string, tag = "2")]
    pub(super) service_name: String,
}

/// Either the aggregated stream or a separate service.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ConfigSource {
    #[prost(message, optional, tag = "2")]
    pub(super) service: Option<Empty>,
    #[prost(message, optional, tag = "3")]
    pub(super) aggregated: Option<Empty>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Empty {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Listener {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, repeated, tag = "3")]
    pub(super) filter_chains: Vec<FilterChain>,
    #[prost(message, optional, tag = "19")]
    pub(super) api_listener: Option<ApiListener>,
    #[prost(message, optional, tag = "25")]
    pub(super) default_filter_chain: Option<FilterChain>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ApiListener {
    #[prost(message, optional, tag = "1")]
    pub(super) listener: Option<Any>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct FilterChain {
    #[prost(message, repeated, tag = "3")]
    pub(super) filters: Vec<Filter>,
    #[prost(message, optional, tag = "6")]
    pub(super) transport_socket: Option<TransportSocket>,
}

/// A network filter or, by its first and last field, an HTTP filter.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Filter {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "4")]
    pub(super) typed_config: Option<Any>,
    #[prost(message, optional, tag = "5")]
    pub(super) config_discovery: Option<ExtensionConfigSource>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ExtensionConfigSource {
    #[prost(message, optional, tag = "1")]
    pub(super) source: Option<ConfigSource>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct HttpConnectionManager {
    #[prost(string, tag = "2")]
    pub(super) stat_prefix: String,
    #[prost(message, optional, tag = "3")]
    pub(super) rds: Option<Rds>,
    #[prost(message, repeated, tag = "5")]
    pub(super) http_filters: Vec<Filter>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Rds {
    #[prost(message, optional, tag = "1")]
    pub(super) source: Option<ConfigSource>,
    #[prost(string, tag = "2")]
    pub(super) name: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TransportSocket {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "3")]
    pub(super) typed_config: Option<Any>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TlsContext {
    #[prost(message, optional, tag = "1")]
    pub(super) common: Option<CommonTlsContext>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct CommonTlsContext {
    #[prost(message, repeated, tag = "6")]
    pub(super) certificates: Vec<SdsSecretConfig>,
    #[prost(message, optional, tag = "8")]
    pub(super) combined: Option<CombinedValidationContext>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct CombinedValidationContext {
    #[prost(message, optional, tag = "2")]
    pub(super) secret: Option<SdsSecretConfig>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SdsSecretConfig {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "2")]
    pub(super) source: Option<ConfigSource>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RouteConfiguration {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, repeated, tag = "2")]
    pub(super) virtual_hosts: Vec<VirtualHost>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct VirtualHost {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, repeated, tag = "2")]
    pub(super) domains: Vec<String>,
    #[prost(message, repeated, tag = "3")]
    pub(super) routes: Vec<Named>,
}

/// A resource of which only the name and some content matter.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Named {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "100")]
    pub(super) content: String,
}
