//! The messages of the protocol, as `proto/zds.proto` of github.com/istio/ztunnel has them, as far as they are used here.

use prost::{Enumeration, Message, Oneof};

/// What ztunnel says first.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Hello {
    /// The version of the protocol that it speaks.
    #[prost(enumeration = "Version", tag = "1")]
    pub version: i32,
}

/// Versions of the protocol.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Enumeration)]
#[repr(i32)]
pub(super) enum Version {
    /// Not to be used.
    NotUsed = 0,
    /// The only one so far.
    V1 = 1,
}

/// What ztunnel is told.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Request {
    /// One of these.
    #[prost(oneof = "Payload", tags = "1, 3")]
    pub payload: Option<Payload>,
}

/// The kinds of requests.
#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Payload {
    /// Here is a pod; its network namespace comes along as an open file.
    #[prost(message, tag = "1")]
    Add(AddWorkload),
    /// These were all pods that there are.
    #[prost(message, tag = "3")]
    SnapshotSent(SnapshotSent),
}

/// A pod.
#[derive(Clone, PartialEq, Message)]
pub(super) struct AddWorkload {
    /// The `metadata.uid` of its object.
    #[prost(string, tag = "1")]
    pub uid: String,
    /// Who it is.
    #[prost(message, optional, tag = "2")]
    pub workload: Option<WorkloadInfo>,
}

/// Who a pod is.
#[derive(Clone, Eq, Hash, PartialEq, Message)]
pub(super) struct WorkloadInfo {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its namespace.
    #[prost(string, tag = "2")]
    pub namespace: String,
    /// Its service account.
    #[prost(string, tag = "3")]
    pub service_account: String,
}

/// These were all.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct SnapshotSent {}

/// ztunnel's answer to each request.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Response {
    /// The only kind; without an error it means that the request was carried out.
    #[prost(message, optional, tag = "1")]
    pub acknowledgement: Option<Acknowledgement>,
}

/// Whether a request was carried out.
#[derive(Clone, Eq, Hash, PartialEq, Message)]
pub(super) struct Acknowledgement {
    /// Empty, or why not.
    #[prost(string, tag = "1")]
    pub error: String,
}
