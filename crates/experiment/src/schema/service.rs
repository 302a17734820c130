//! Services: workloads that serve requests, and what each served and used.

use super::estimate::Estimate;
use serde::{Deserialize, Serialize};

/// A workload that serves requests, in one trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServiceRecord {
    /// Name in its namespace.
    pub name: String,
    /// Namespace in the topology; empty where that has a single one.
    #[serde(default)]
    pub namespace: String,
    /// Number of pods.
    pub replicas: usize,
    /// Requests that its pods answered over the whole trial, warm-up included; absent where they could not be read.
    #[serde(default)]
    pub requests: Option<u64>,
    /// Requests per second in the measured window, where its counters were read at both ends of the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_s: Option<f64>,
    /// Names of the components that are its pods: their CPU is in the trial's `components`.
    #[serde(default)]
    pub components: Vec<String>,
}

/// A workload that serves requests, over the trials of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServiceSummary {
    /// Name in its namespace.
    pub name: String,
    /// Namespace in the topology; empty where that has a single one.
    pub namespace: String,
    /// Number of pods.
    pub replicas: usize,
    /// Requests per second that its pods answered together in the measured window; absent where they could not be counted.
    pub requests_per_s: Option<Estimate>,
    /// Mean CPU of its pods' application containers together, cores; proxies are not in it.
    pub cpu_cores: Option<Estimate>,
    /// Mean CPU of the proxies in its pods together, cores; absent where its pods have none of their own. Proxies that
    /// several pods share are components alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_cpu_cores: Option<Estimate>,
}
