//! Gateways: proxies in their own pods that read the drivers' requests. Has their own counters, and the rate
//! of the load as counted by generators, gateways and destinations.

use crate::estimate::Estimate;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Counters of a gateway in one trial, between readings at both ends of the measured window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GatewayRecord {
    /// Name of the proxy. Its CPU and memory are in the trial's `components`.
    pub name: String,
    /// Namespace in the topology; empty if the topology has a single one.
    #[serde(default)]
    pub namespace: String,
    /// Workloads that it routes drivers to, as `namespace/name`.
    #[serde(default)]
    pub targets: Vec<String>,
    /// Time between the two readings, seconds.
    pub window_s: f64,
    /// Requests received.
    pub requests: u64,
    /// Requests received per second, over its own `window_s`.
    pub requests_per_s: f64,
    /// Responses by class, such as `2xx`.
    #[serde(default)]
    pub responses: BTreeMap<String, u64>,
    /// Requests forwarded, retries included.
    #[serde(default)]
    pub forwarded: u64,
    /// Of `forwarded`, retries.
    #[serde(default)]
    pub retries: u64,
    /// Downstream duration, from a request's first byte to the end of its response; absent if not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_downstream_us: Option<GatewayDuration>,
    /// Upstream duration, from forwarding a request to the end of its response; absent if not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_upstream_us: Option<GatewayDuration>,
    /// Bytes received from clients, without TLS records.
    pub bytes_received: u64,
    /// Bytes sent to clients, without TLS records.
    pub bytes_sent: u64,
    /// Connections opened by clients.
    #[serde(default)]
    pub connections: u64,
    /// Of `connections`, those with TLS.
    #[serde(default)]
    pub tls_connections: u64,
    /// Connections opened to destinations.
    #[serde(default)]
    pub upstream_connections: u64,
    /// Counts of the whole trial, warm-up included; absent if they could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole_trial: Option<GatewayCounts>,
}

/// Request counts of a gateway.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct GatewayCounts {
    /// Requests received.
    pub requests: u64,
    /// Requests forwarded, retries included.
    pub forwarded: u64,
    /// Of `forwarded`, retries.
    pub retries: u64,
    /// Responses by class, such as `2xx`.
    pub responses: BTreeMap<String, u64>,
}

impl GatewayCounts {
    /// Counts since an earlier reading. Classes without a response are left out.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let responses = self.responses.iter().map(|(class, count)| {
            (class.clone(), count.saturating_sub(before.responses.get(class).copied().unwrap_or(0)))
        });
        Self {
            requests: self.requests.saturating_sub(before.requests),
            forwarded: self.forwarded.saturating_sub(before.forwarded),
            retries: self.retries.saturating_sub(before.retries),
            responses: responses.filter(|(_, count)| *count > 0).collect(),
        }
    }

    /// Requests that the gateway answered itself or not at all.
    #[must_use]
    pub fn not_forwarded(&self) -> u64 {
        self.requests.saturating_sub(self.forwarded.saturating_sub(self.retries))
    }
}

/// Durations measured by a proxy, microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GatewayDuration {
    /// Number of requests.
    pub count: u64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Width of the bucket that contains the 99th percentile: Envoy measures in whole milliseconds with two
    /// significant digits.
    pub resolution_us: f64,
}

/// Load of one trial as counted by each observer, requests per second over the drivers' window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrialRates {
    /// Responses received by the generators.
    pub generator: f64,
    /// Requests received by the gateways; absent without gateways, or if not counted.
    pub gateway: Option<f64>,
    /// Requests received by the destinations; absent if not counted.
    pub destination: Option<f64>,
}

/// [`TrialRates`] over the valid trials of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellRates {
    /// Responses received by the generators.
    pub generator: Estimate,
    /// Requests received by the gateways; absent without gateways, or if not counted.
    pub gateway: Option<Estimate>,
    /// Requests received by the destinations; absent if not counted.
    pub destination: Option<Estimate>,
}

/// Counters of a gateway over the valid trials of a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GatewaySummary {
    /// Name of the proxy. Its CPU and memory are in the cell's `components`.
    pub name: String,
    /// Namespace in the topology; empty if the topology has a single one.
    #[serde(default)]
    pub namespace: String,
    /// Workloads that it routes drivers to, as `namespace/name`.
    #[serde(default)]
    pub targets: Vec<String>,
    /// Requests received in all windows together.
    pub requests: u64,
    /// Requests received, per second.
    pub requests_per_s: Option<Estimate>,
    /// Responses per second by class, such as `2xx`.
    #[serde(default)]
    pub responses_per_s: BTreeMap<String, Estimate>,
    /// Downstream durations (to clients).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_downstream_us: Option<GatewayPercentiles>,
    /// Upstream durations (to destinations).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_upstream_us: Option<GatewayPercentiles>,
    /// Bytes received from clients, per second, without TLS records.
    pub bytes_received_s: Option<Estimate>,
    /// Bytes sent to clients, per second, without TLS records.
    pub bytes_sent_s: Option<Estimate>,
    /// Retries per second.
    pub retries_per_s: Option<Estimate>,
    /// Connections opened by clients, per second.
    pub connections_per_s: Option<Estimate>,
    /// Connections with TLS, per second.
    pub tls_connections_per_s: Option<Estimate>,
    /// Fraction of its CPU limit's enforcement periods in which it was throttled, 0 to 1; absent without a
    /// limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled: Option<Estimate>,
}

/// [`GatewayDuration`] over trials.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GatewayPercentiles {
    /// Median.
    pub p50: Estimate,
    /// 90th percentile.
    pub p90: Estimate,
    /// 99th percentile.
    pub p99: Estimate,
    /// Maximum width of a bucket that contains a 99th percentile.
    pub resolution_us: f64,
}
