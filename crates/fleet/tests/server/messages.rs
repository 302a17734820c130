//! Messages of the delta variant, encoded and decoded by prost.

use prost::Message;
use std::collections::HashMap;

#[derive(Clone, PartialEq, Message)]
pub struct Any {
    #[prost(string, tag = "1")]
    pub type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Request {
    #[prost(string, tag = "2")]
    pub type_url: String,
    #[prost(string, repeated, tag = "3")]
    pub subscribe: Vec<String>,
    #[prost(map = "string, string", tag = "5")]
    pub held: HashMap<String, String>,
    #[prost(string, tag = "6")]
    pub nonce: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Resource {
    #[prost(string, tag = "1")]
    pub version: String,
    #[prost(message, optional, tag = "2")]
    pub resource: Option<Any>,
    #[prost(string, tag = "3")]
    pub name: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Response {
    #[prost(message, repeated, tag = "2")]
    pub resources: Vec<Resource>,
    #[prost(string, tag = "4")]
    pub type_url: String,
    #[prost(string, tag = "5")]
    pub nonce: String,
}

/// A cluster whose endpoints are discovered.
#[derive(Clone, PartialEq, Message)]
pub struct Cluster {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(uint64, tag = "2")]
    pub discovery_type: u64,
    #[prost(message, optional, tag = "3")]
    pub endpoints: Option<EndpointsConfig>,
}

#[derive(Clone, PartialEq, Message)]
pub struct EndpointsConfig {
    #[prost(message, optional, tag = "1")]
    pub source: Option<ConfigSource>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ConfigSource {
    #[prost(bytes = "vec", optional, tag = "3")]
    pub aggregated: Option<Vec<u8>>,
}

/// Endpoints, of which only the name matters here.
#[derive(Clone, PartialEq, Message)]
pub struct Endpoints {
    #[prost(string, tag = "1")]
    pub cluster: String,
    #[prost(string, repeated, tag = "15")]
    pub content: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct CertificateRequest {
    #[prost(string, tag = "1")]
    pub signing_request: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct CertificateResponse {
    #[prost(string, repeated, tag = "1")]
    pub chain: Vec<String>,
}
