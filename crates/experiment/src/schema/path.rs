//! Proof that requests took the path that the mode names, of a trial and of a cell.

use super::hop::HopProof;
use super::tracing::TracingProof;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Whether the requests took the path that the mode names, from the proxies' own counters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PathProof {
    /// Every expected proxy saw every request, with TLS where it is claimed.
    pub proven: bool,
    /// What each proxy counted over the trial.
    pub proxies: Vec<ProxyProof>,
    /// What was missing; empty where the path is proven.
    pub reasons: Vec<String>,
    /// What the service itself counted; absent where the proxies' own counts suffice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceProof>,
    /// What was traced, and the spans that came of it; absent where nothing was to be traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracing: Option<TracingProof>,
    /// What was spoken between neighbours, from client to server; empty where there is no proxy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hops: Vec<HopProof>,
    /// Filters of the gateway; empty where the scenario has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<FilterProof>,
    /// The edges of a topology that has several; empty if it has one, which is then the path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<EdgeProof>,
}

/// What shows that a filter of the gateway acted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FilterProof {
    /// Name of the scenario that has this filter alone, such as `waf`.
    pub name: String,
    /// Requests that it, or the service behind it, checked in the trial, warm-up included; absent if unknown.
    pub checks: Option<u64>,
    /// Requests that the gateway received in the same time.
    pub requests: u64,
    /// Requests before the load that the filter must refuse or let pass.
    pub probes: Vec<FilterProbe>,
}

/// A probe of a filter, before the load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FilterProbe {
    /// What was sent, such as `an attack by script`.
    pub what: String,
    /// Statuses of the responses; empty where there were none.
    pub statuses: Vec<u16>,
}

/// Proof of one edge of a topology.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EdgeProof {
    /// Qualified name of the calling workload.
    pub from: String,
    /// Qualified name of the called workload.
    pub to: String,
    /// Every expected proxy saw every request of this edge, with TLS where it is claimed.
    pub proven: bool,
    /// What was missing; empty if the edge is proven.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}

/// What the service counted between the start of the generator and its end, warm-up included: the measure of proxies
/// that carry connections without reading the requests in them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServiceProof {
    /// Requests that it read whole.
    pub requests_received: u64,
    /// Connections that it accepted.
    pub connections: u64,
    /// Bytes that it read, without those of TLS.
    pub received_bytes: u64,
    /// Bytes that it sent, without those of TLS.
    pub sent_bytes: u64,
}

/// What one proxy counted between the start of the generator and its end, warm-up included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProxyProof {
    /// The component.
    pub name: String,
    /// Requests that arrived at the listener of this path; of a proxy that counts their bytes (ztunnel), those that these
    /// make; 0 where it carries what it does not read.
    pub requests_received: u64,
    /// Requests that the generator sent; 0 where it carries what it does not read.
    pub requests_expected: u64,
    /// What it carried unread; absent where it reads requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<StreamProof>,
    /// TLS handshakes completed with the peer proxy, as server or as client.
    pub tls_handshakes: u64,
    /// Whether the mode claims mutual TLS at this proxy.
    pub tls_expected: bool,
    /// Whether it would have taken plain text for the service too, by its own configuration; absent where it is not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub takes_plain_text: Option<bool>,
    /// The counters that this was read from, for those who check.
    pub counters: BTreeMap<String, u64>,
}

/// Connections that a proxy carried without reading the requests in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamProof {
    /// Connections that took this path through it.
    pub connections: u64,
    /// Connections that the service accepted; 0 where the path leads past this proxy.
    pub connections_expected: u64,
    /// Bytes from the client's side.
    pub received_bytes: u64,
    /// Bytes to the client's side.
    pub sent_bytes: u64,
}

/// Proof of the path over the valid trials of a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CellPath {
    /// Every valid trial proved it.
    pub proven: bool,
    /// The proxies on the path, in its order.
    pub proxies: Vec<String>,
    /// TLS was seen by every proxy that claims it; absent where none claims it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtls: Option<bool>,
    /// What was spoken between neighbours, from client to server, in all those trials; empty where there is no proxy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hops: Vec<HopProof>,
}
