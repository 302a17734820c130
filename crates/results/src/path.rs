//! Path verification of trials and cells.

use crate::Mode;
use crate::hop::HopProof;
use crate::tracing::TracingProof;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Whether the requests took the path of the mode, from the proxies' own counters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PathProof {
    /// True if every expected proxy saw every request, with TLS if the mode claims it.
    pub proven: bool,
    /// Mode whose path was verified: that of the deployment. Absent if nothing was verified, and in results from earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Counts of each proxy over the trial.
    pub proxies: Vec<ProxyProof>,
    /// Reasons why the path is not proven; empty if it is.
    pub reasons: Vec<String>,
    /// Counts of the service; absent if the proxies' own counts suffice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceProof>,
    /// Tracing and resulting spans; absent if nothing was to be traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracing: Option<TracingProof>,
    /// Protocols between neighbours, from client to server; empty without proxies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hops: Vec<HopProof>,
    /// Filters of the gateway; empty if the scenario has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<FilterProof>,
    /// Edges of a topology with several; empty for a single edge, which is then the path itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<EdgeProof>,
}

impl PathProof {
    /// A proof of another mode's path proves nothing about this one. Returns the reason, unless it is among
    /// the reasons already.
    pub fn require_mode(&mut self, mode: Mode) -> Option<String> {
        let other = self.mode.filter(|other| *other != mode)?;
        let reason = format!("the proof is of mode {other}, and the trial is of mode {mode}");
        if self.reasons.contains(&reason) {
            return None;
        }
        self.proven = false;
        self.reasons.push(reason.clone());
        for edge in &mut self.edges {
            edge.proven = false;
            edge.reasons.push(reason.clone());
        }
        Some(reason)
    }
}

/// Evidence that a filter of the gateway acted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FilterProof {
    /// Name of the scenario with only this filter, such as `waf`.
    pub name: String,
    /// Requests checked by it, or by the service behind it, in the trial, warm-up included; absent if
    /// unknown.
    pub checks: Option<u64>,
    /// Requests received by the gateway in the same time.
    pub requests: u64,
    /// Requests sent before the load that the filter must reject or let pass.
    pub probes: Vec<FilterProbe>,
}

/// A probe of a filter, before the load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FilterProbe {
    /// Description of the request, such as `an attack by script`.
    pub what: String,
    /// Statuses of the responses; empty if there were none.
    pub statuses: Vec<u16>,
}

/// Path verification of one edge of a topology.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EdgeProof {
    /// Qualified name of the calling workload.
    pub from: String,
    /// Qualified name of the called workload.
    pub to: String,
    /// True if every expected proxy saw every request of this edge, with TLS if the mode claims it.
    pub proven: bool,
    /// Reasons why the edge is not proven; empty if it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}

/// Counts of the service between the start and the end of the generator, warm-up included: the reference for
/// proxies that carry connections without reading the requests in them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServiceProof {
    /// Requests received completely.
    pub requests_received: u64,
    /// Connections accepted.
    pub connections: u64,
    /// Bytes read, without TLS overhead.
    pub received_bytes: u64,
    /// Bytes sent, without TLS overhead.
    pub sent_bytes: u64,
}

/// Counts of one proxy between the start and the end of the generator, warm-up included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProxyProof {
    /// Name of the component.
    pub name: String,
    /// Requests received by the listener of this path. For a proxy that counts bytes (ztunnel), computed from
    /// the bytes; 0 for opaque TCP.
    pub requests_received: u64,
    /// Requests sent by the generator; 0 for opaque TCP.
    pub requests_expected: u64,
    /// Opaque TCP connections; absent if the proxy reads requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<StreamProof>,
    /// TLS handshakes completed with the peer proxy, as server or client.
    pub tls_handshakes: u64,
    /// True if the mode claims mutual TLS at this proxy.
    pub tls_expected: bool,
    /// Whether its configuration would also accept plaintext for the service; absent if not queried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub takes_plain_text: Option<bool>,
    /// Raw counters that these figures were computed from, for verification.
    pub counters: BTreeMap<String, u64>,
}

/// Connections that a proxy carried without reading the requests in them (opaque TCP).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamProof {
    /// Connections on this path through the proxy.
    pub connections: u64,
    /// Connections accepted by the service; 0 if the path bypasses this proxy.
    pub connections_expected: u64,
    /// Bytes from the client side.
    pub received_bytes: u64,
    /// Bytes to the client side.
    pub sent_bytes: u64,
}

/// Path verification over the valid trials of a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CellPath {
    /// True if every valid trial proved it.
    pub proven: bool,
    /// Proxies on the path, in order.
    pub proxies: Vec<String>,
    /// True if every proxy that claims TLS saw it; absent if none claims it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtls: Option<bool>,
    /// Protocols between neighbours, from client to server, in all those trials; empty without proxies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hops: Vec<HopProof>,
}
