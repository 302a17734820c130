//! Identity of a simulated proxy.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

pub use experiment::settings::fleet::{ProxyKind, XdsVariant};

/// A proxy's identity, as sent to the control plane.
#[derive(Clone, Debug, PartialEq)]
pub struct ProxySpec {
    /// Kind of proxy, which determines its subscriptions.
    pub kind: ProxyKind,
    /// Name of its pod.
    pub name: String,
    /// Namespace of its pod.
    pub namespace: String,
    /// Address of its pod.
    pub address: Ipv4Addr,
    /// Service account of its pod.
    pub service_account: String,
    /// Labels of its pod.
    pub labels: BTreeMap<String, String>,
    /// Kubernetes node of its pod.
    pub node: String,
    /// Name of the Kubernetes cluster, such as `Kubernetes`.
    pub cluster_id: String,
    /// Istio version that it claims.
    pub istio_version: String,
    /// For sidecars: the agent serves DNS, so it subscribes to the name table.
    pub dns_capture: bool,
    /// For ztunnels: addresses are requested only on demand.
    pub on_demand: bool,
    /// For ztunnels on demand: addresses to request once connected, such as `network/10.0.0.1` or
    /// `namespace/host.name`.
    pub demands: Vec<String>,
}
