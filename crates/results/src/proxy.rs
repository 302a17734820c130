//! Proxies of a trial under a control plane: their build, and their telemetry.

use serde::{Deserialize, Serialize};

/// Build of Envoy.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProxyBuild {
    /// Without the filters that only Istio's proxy has.
    Upstream,
    /// With Istio's filters: `istio_stats`, peer metadata, ALPN.
    Istio,
}

/// Build and telemetry of the proxies that a control plane configured.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
pub struct ProxySetup {
    /// Build of every sidecar, gateway and waypoint of the trial.
    pub build: ProxyBuild,
    /// True if they generate Istio's metrics and exchange peer metadata for their labels.
    pub telemetry: bool,
}
