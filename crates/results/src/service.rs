//! Services: workloads that serve requests, with their requests and usage.

use crate::disturbed::DisturbedFigures;
use crate::estimate::Estimate;
use serde::{Deserialize, Serialize};

/// A workload that serves requests, in one trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServiceRecord {
    /// Name in its namespace.
    pub name: String,
    /// Namespace in the topology; empty if the topology has a single one.
    #[serde(default)]
    pub namespace: String,
    /// Number of pods.
    pub replicas: usize,
    /// Requests answered by its pods over the whole trial, warm-up included; absent if they could not be
    /// read.
    #[serde(default)]
    pub requests: Option<u64>,
    /// Requests per second in the measured window, if its counters were read at both ends of the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_s: Option<f64>,
    /// Names of the components that are its pods. Their CPU is in the trial's `components`.
    #[serde(default)]
    pub components: Vec<String>,
}

/// A workload that serves requests, summarized over the trials of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServiceSummary {
    /// Name in its namespace.
    pub name: String,
    /// Namespace in the topology; empty if the topology has a single one.
    pub namespace: String,
    /// Number of pods.
    pub replicas: usize,
    /// Requests per second answered by all its pods together in the measured window; absent if they could not
    /// be counted.
    pub requests_per_s: Option<Estimate>,
    /// Mean CPU of its pods' application containers together, cores; without proxies.
    pub cpu_cores: Option<Estimate>,
    /// Mean CPU of the proxies in its pods together, cores; absent if its pods have no proxies of their own.
    /// Proxies shared by several pods are only reported as components.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_cpu_cores: Option<Estimate>,
    /// Mean CPU of applications and proxies together, cores; absent without such proxies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_cpu_cores: Option<Estimate>,
    /// Figures of trials that noise of the machine disturbed, in no estimate: `requests_per_s`, `cpu_cores`, `proxy_cpu_cores`.
    #[serde(default, skip_serializing_if = "DisturbedFigures::is_empty")]
    pub disturbed: DisturbedFigures,
}
