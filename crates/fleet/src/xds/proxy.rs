//! Identity of a simulated proxy.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

pub use experiment::settings::fleet::{ProxyKind, XdsVariant};

/// A proxy's identity, as it tells the control plane.
#[derive(Clone, Debug, PartialEq)]
pub struct ProxySpec {
    /// Kind of proxy, which decides the subscriptions.
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
    /// The Kubernetes cluster, such as `Kubernetes`.
    pub cluster_id: String,
    /// Istio's version that it claims.
    pub istio_version: String,
    /// Sidecars: its agent serves names, so that it asks for the name table.
    pub dns_capture: bool,
    /// Ztunnels: it asks for addresses only as it needs them.
    pub on_demand: bool,
    /// Ztunnels on demand: the addresses that they ask for once connected, such as `network/10.0.0.1` or
    /// `namespace/host.name`.
    pub demands: Vec<String>,
}
