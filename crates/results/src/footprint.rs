//! Footprint of a component, independent of the load: a proxy's configuration, and the memory that it
//! reports.
//!
//! A proxy is queried before the generator starts and after it has ended, never in between.
//! docs/decisions/0014-cpu-and-memory.md describes how each figure is measured and what it excludes.

use crate::estimate::Estimate;
use serde::{Deserialize, Serialize};

/// Number of items of each kind in a proxy's configuration. Kinds that the proxy does not have are absent:
/// Envoy has no workloads, ztunnel no routes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConfigurationCounts {
    /// Active clusters (Envoy).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters: Option<u64>,
    /// Active listeners (Envoy).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listeners: Option<u64>,
    /// Route tables, including those inline in listeners.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route_tables: Option<u64>,
    /// Virtual hosts in all route tables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtual_hosts: Option<u64>,
    /// Routes of all virtual hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routes: Option<u64>,
    /// Endpoints of all clusters, except those that a cluster only learns from connections (Envoy), or
    /// workloads of all services (ztunnel). An endpoint of two clusters counts twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<u64>,
    /// Services (ztunnel).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub services: Option<u64>,
    /// Workloads (ztunnel).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workloads: Option<u64>,
    /// Authorization policies (ztunnel).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policies: Option<u64>,
    /// Active secrets: its own certificates and sets of trusted CAs (Envoy), or identities with a certificate
    /// (ztunnel).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificates: Option<u64>,
    /// Updates rejected since it started, if reported. Its configuration then differs from what it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected_updates: Option<u64>,
}

impl ConfigurationCounts {
    /// Kinds that are part of the configuration, with their display names, in display order.
    #[must_use]
    pub fn held(&self) -> [(&'static str, Option<u64>); 10] {
        [
            ("clusters", self.clusters),
            ("listeners", self.listeners),
            ("route tables", self.route_tables),
            ("virtual hosts", self.virtual_hosts),
            ("routes", self.routes),
            ("endpoints", self.endpoints),
            ("services", self.services),
            ("workloads", self.workloads),
            ("policies", self.policies),
            ("certificates", self.certificates),
        ]
    }

    /// Singular or plural noun for a kind named by [`Self::held`]: `policy` for 1, otherwise `policies`.
    #[must_use]
    pub fn noun(kind: &str, count: u64) -> String {
        match kind.strip_suffix("ies") {
            _ if count != 1 => kind.to_owned(),
            Some(stem) => format!("{stem}y"),
            None => kind.strip_suffix('s').unwrap_or(kind).to_owned(),
        }
    }

    /// Maximum of both counts, per kind.
    #[must_use]
    pub fn greatest(&self, other: &Self) -> Self {
        Self {
            clusters: self.clusters.max(other.clusters),
            listeners: self.listeners.max(other.listeners),
            route_tables: self.route_tables.max(other.route_tables),
            virtual_hosts: self.virtual_hosts.max(other.virtual_hosts),
            routes: self.routes.max(other.routes),
            endpoints: self.endpoints.max(other.endpoints),
            services: self.services.max(other.services),
            workloads: self.workloads.max(other.workloads),
            policies: self.policies.max(other.policies),
            certificates: self.certificates.max(other.certificates),
            rejected_updates: self.rejected_updates.max(other.rejected_updates),
        }
    }
}

/// Configuration of a proxy, from its config dump after the load.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct ProxyConfiguration {
    /// Size of the parts of the config dump that affect traffic, as the proxy formats them (JSON with line
    /// breaks and indentation), bytes. Includes endpoints (for ztunnel: services, workloads and policies).
    /// Excludes certificates, keys and startup configuration (Envoy's bootstrap mostly lists compiled-in
    /// extensions).
    pub size_bytes: u64,
    /// Size of the whole response, bytes: `curl …/config_dump?include_eds | wc -c` (ztunnel:
    /// `…/config_dump`).
    pub dump_bytes: u64,
    /// Number of items of each kind.
    #[serde(flatten)]
    pub counts: ConfigurationCounts,
}

/// Heap reported by a proxy at one moment.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct ProxyHeap {
    /// In use, bytes.
    pub allocated_bytes: u64,
    /// Held by its allocator, including memory in use, bytes.
    pub heap_bytes: u64,
}

/// Footprint that a proxy reports in a trial, in addition to path verification.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProxyFootprint {
    /// Configuration; absent if it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configuration: Option<ProxyConfiguration>,
    /// Heap before the generator started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heap_before_load: Option<ProxyHeap>,
    /// Heap after the generator had ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heap_after_load: Option<ProxyHeap>,
    /// Reasons why parts of it could not be read; empty if there were no problems.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<String>,
}

/// A proxy's configuration over the valid trials of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConfigurationSummary {
    /// See [`ProxyConfiguration::size_bytes`].
    pub size_bytes: Estimate,
    /// See [`ProxyConfiguration::dump_bytes`].
    pub dump_bytes: Estimate,
    /// Number of items of each kind: the maximum over the trials.
    #[serde(flatten)]
    pub counts: ConfigurationCounts,
    /// True if the counts differ between trials. They should not, since the experiment configures the same in
    /// each.
    #[serde(default)]
    pub varies: bool,
}

/// Heap reported by a proxy, over the valid trials of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeapSummary {
    /// In use, bytes.
    pub allocated_bytes: Estimate,
    /// Held by its allocator, bytes.
    pub heap_bytes: Estimate,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noun_is_singular_for_one() {
        let nouns = |count: u64| {
            ConfigurationCounts::default().held().map(|(kind, _)| ConfigurationCounts::noun(kind, count))
        };
        let one = [
            "cluster",
            "listener",
            "route table",
            "virtual host",
            "route",
            "endpoint",
            "service",
            "workload",
            "policy",
            "certificate",
        ];
        assert_eq!(nouns(1), one);
        assert_eq!((nouns(0)[0].as_str(), nouns(9)[8].as_str()), ("clusters", "policies"));
    }
}
