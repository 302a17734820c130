//! Cluster node in the measured window.

use serde::{Deserialize, Serialize};

/// CPU of a node that runs pods of the experiment, between two samples of its kubelet. The containers that it
/// is compared with have their own sample times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeUsage {
    /// Name of the node in the cluster.
    pub name: String,
    /// Time between the two samples, seconds.
    pub window_s: f64,
    /// Number of CPUs; absent if the kubelet does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<usize>,
    /// Mean number of busy CPUs, cores: CPU of the node's root cgroup.
    pub busy_cores: f64,
    /// Kernel-mode part of `busy_cores`, cores; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_cores: Option<f64>,
    /// Part of `busy_cores` that is not in any container of the experiment or of its mesh's shared
    /// components, cores: interrupts, kernel threads, kubelet, kube-proxy, other pods. Absent if a container
    /// does not have two samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_cores: Option<f64>,
    /// Kernel-mode part of `other_cores`, cores; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_system_cores: Option<f64>,
}
