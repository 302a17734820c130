//! Messages of the protocol from `proto/zds.proto` of github.com/istio/ztunnel, as far as they are used here.

use prost::{Message, Oneof};

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Hello {
    #[prost(int32, tag = "1")]
    pub version: i32,
}

/// The only version of the protocol so far.
pub(super) const VERSION: i32 = 1;

#[derive(Clone, PartialEq, Message)]
pub(super) struct Request {
    #[prost(oneof = "Payload", tags = "1, 3")]
    pub payload: Option<Payload>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Payload {
    #[prost(message, tag = "1")]
    Add(AddWorkload),
    /// All pods have been sent; an empty message.
    #[prost(message, tag = "3")]
    SnapshotSent(()),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct AddWorkload {
    /// The `metadata.uid` of the pod's object.
    #[prost(string, tag = "1")]
    pub uid: String,
    #[prost(message, optional, tag = "2")]
    pub workload: Option<WorkloadInfo>,
}

#[derive(Clone, Eq, Hash, PartialEq, Message)]
pub(super) struct WorkloadInfo {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub namespace: String,
    #[prost(string, tag = "3")]
    pub service_account: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Response {
    /// The only kind of response. Without an error, the request was carried out.
    #[prost(message, optional, tag = "1")]
    pub acknowledgement: Option<Acknowledgement>,
}

#[derive(Clone, Eq, Hash, PartialEq, Message)]
pub(super) struct Acknowledgement {
    /// Empty on success, otherwise the reason for the failure.
    #[prost(string, tag = "1")]
    pub error: String,
}
