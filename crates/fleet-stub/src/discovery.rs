//! Requests of the aggregated discovery service, decoded by prost independently of the fleet's own code.

use prost::Message;
use std::collections::HashMap;

/// Path of the state-of-the-world method.
pub const STREAM_METHOD: &str =
    "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources";
/// Path of the delta method.
pub const DELTA_METHOD: &str =
    "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources";

#[derive(Clone, PartialEq, Message)]
pub struct DiscoveryRequest {
    #[prost(string, tag = "1")]
    pub version_info: String,
    #[prost(message, optional, tag = "2")]
    pub node: Option<Node>,
    #[prost(string, repeated, tag = "3")]
    pub resource_names: Vec<String>,
    #[prost(string, tag = "4")]
    pub type_url: String,
    #[prost(string, tag = "5")]
    pub response_nonce: String,
    #[prost(message, optional, tag = "6")]
    pub error_detail: Option<Status>,
}

#[derive(Clone, PartialEq, Message)]
pub struct DeltaDiscoveryRequest {
    #[prost(message, optional, tag = "1")]
    pub node: Option<Node>,
    #[prost(string, tag = "2")]
    pub type_url: String,
    #[prost(string, repeated, tag = "3")]
    pub resource_names_subscribe: Vec<String>,
    #[prost(string, repeated, tag = "4")]
    pub resource_names_unsubscribe: Vec<String>,
    #[prost(map = "string, string", tag = "5")]
    pub initial_resource_versions: HashMap<String, String>,
    #[prost(string, tag = "6")]
    pub response_nonce: String,
    #[prost(message, optional, tag = "7")]
    pub error_detail: Option<Status>,
}

/// The fields of the node that the stub uses.
#[derive(Clone, PartialEq, Message)]
pub struct Node {
    #[prost(string, tag = "1")]
    pub id: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Status {
    #[prost(int32, tag = "1")]
    pub code: i32,
    #[prost(string, tag = "2")]
    pub message: String,
}

/// A request of either variant.
#[derive(Debug, PartialEq)]
pub struct Request {
    pub node: Option<String>,
    pub type_url: String,
    /// Delta: names to subscribe to. State of the world: all names.
    pub names: Vec<String>,
    pub unsubscribed: Vec<String>,
    /// Delta: names that the client still holds from an earlier stream.
    pub held: Vec<String>,
    pub nonce: String,
    /// Reason why the client rejects the response with this nonce.
    pub rejection: Option<String>,
}

impl Request {
    /// Decodes the body of a message.
    pub fn decode(body: &[u8], delta: bool) -> Result<Self, prost::DecodeError> {
        if delta {
            let request = DeltaDiscoveryRequest::decode(body)?;
            return Ok(Self {
                node: request.node.map(|node| node.id),
                type_url: request.type_url,
                names: request.resource_names_subscribe,
                unsubscribed: request.resource_names_unsubscribe,
                held: request.initial_resource_versions.into_keys().collect(),
                nonce: request.response_nonce,
                rejection: request.error_detail.map(|status| status.message),
            });
        }
        let request = DiscoveryRequest::decode(body)?;
        Ok(Self {
            node: request.node.map(|node| node.id),
            type_url: request.type_url,
            names: request.resource_names,
            unsubscribed: Vec::new(),
            held: Vec::new(),
            nonce: request.response_nonce,
            rejection: request.error_detail.map(|status| status.message),
        })
    }
}
