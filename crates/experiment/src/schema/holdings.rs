//! What a component holds beside the load: the configuration that a proxy was given, and the proxy's own account of its
//! memory.
//!
//! A proxy is asked before the generator starts and after it has ended, never in between. docs/decisions/0014-cpu-and-memory.md
//! says how each figure is taken and what it leaves out.

use super::estimate::Estimate;
use serde::{Deserialize, Serialize};

/// How many things of each kind a proxy's configuration has. A kind that the proxy does not know is absent: Envoy knows
/// no workloads, ztunnel no routes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConfigurationCounts {
    /// Places that requests may be sent to (Envoy), in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters: Option<u64>,
    /// Sockets or rules by which connections are taken (Envoy), in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listeners: Option<u64>,
    /// Route tables, those written within a listener included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route_tables: Option<u64>,
    /// Groups of domains in all route tables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtual_hosts: Option<u64>,
    /// Routes of all virtual hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routes: Option<u64>,
    /// Addresses of all clusters, but for those that a cluster only learns from the connections that pass (Envoy), or
    /// workloads behind all services (ztunnel); one that is in two of them counts twice.
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
    /// Certificates of its own and sets of trusted ones that were handed to it (Envoy: secrets in use), or the identities
    /// that it holds a certificate for (ztunnel).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificates: Option<u64>,
    /// Updates that it refused since it started, as far as it tells. What it holds then is not what it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected_updates: Option<u64>,
}

impl ConfigurationCounts {
    /// The kinds that are configuration, each with its name in words, in the order in which they are shown.
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

    /// What so many of a kind that [`Self::held`] names are called: `policy` of 1, else `policies`.
    #[must_use]
    pub fn noun(kind: &str, count: u64) -> String {
        match kind.strip_suffix("ies") {
            _ if count != 1 => kind.to_owned(),
            Some(stem) => format!("{stem}y"),
            None => kind.strip_suffix('s').unwrap_or(kind).to_owned(),
        }
    }

    /// The greater of two counts of each kind.
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

/// The configuration of a proxy, from its own dump of it after the load.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct ProxyConfiguration {
    /// Size of those parts of the dump that say what the proxy does with traffic, as the proxy writes them (JSON, with its
    /// line breaks and indentation), bytes: endpoints included (of a ztunnel services, workloads and policies); left out are
    /// certificates and keys, and what the proxy was started with (Envoy's bootstrap, most of which lists what is compiled
    /// in).
    pub size_bytes: u64,
    /// Size of the whole answer, bytes: what `curl …/config_dump?include_eds | wc -c` shows (ztunnel: `…/config_dump`).
    pub dump_bytes: u64,
    /// What it consists of.
    #[serde(flatten)]
    pub counts: ConfigurationCounts,
}

/// A proxy's own account of its heap at one moment.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct ProxyHeap {
    /// In use, bytes.
    pub allocated_bytes: u64,
    /// Held by its allocator, what is in use included, bytes.
    pub heap_bytes: u64,
}

/// What a proxy says of itself in a trial, beyond the proof of the path.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProxyHoldings {
    /// What it was configured with; absent where it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configuration: Option<ProxyConfiguration>,
    /// Before the generator started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heap_before_load: Option<ProxyHeap>,
    /// After the generator had ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heap_after_load: Option<ProxyHeap>,
    /// Why something of it could not be read; empty where nothing was wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<String>,
}

/// What the valid trials of a cell say of a proxy's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConfigurationSummary {
    /// As in [`ProxyConfiguration::size_bytes`], over the trials.
    pub size_bytes: Estimate,
    /// As in [`ProxyConfiguration::dump_bytes`], over the trials.
    pub dump_bytes: Estimate,
    /// What it consists of: the greatest count of each kind in any trial.
    #[serde(flatten)]
    pub counts: ConfigurationCounts,
    /// The counts differ between trials. They should not: the same experiment configures the same.
    #[serde(default)]
    pub varies: bool,
}

/// A proxy's own account of its heap, over the valid trials of a cell.
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
    fn one_of_a_kind_is_told_as_one() {
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
