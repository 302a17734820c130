//! A node of a cluster in the measured window.

use serde::{Deserialize, Serialize};

/// A node that has pods of the experiment, between two samples of its kubelet. The containers that it is held against have
/// samples of their own, which are of other moments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeUsage {
    /// Its name in the cluster.
    pub name: String,
    /// Time between the two samples, seconds.
    pub window_s: f64,
    /// Its CPUs; absent where its kubelet does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<usize>,
    /// Mean number of busy CPUs, cores: CPU of its topmost control group.
    pub busy_cores: f64,
    /// Of `busy_cores`, in the kernel, cores; absent where nothing tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_cores: Option<f64>,
    /// Of `busy_cores`, in no container of the experiment or of what its mesh shares, cores: interrupts, kernel threads,
    /// kubelet, kube-proxy, other pods; absent where a container has no two samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_cores: Option<f64>,
    /// Of `other_cores`, in the kernel, cores; absent where nothing tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_system_cores: Option<f64>,
}
