//! Traffic through one connection manager and one cluster of an Envoy, from its own counters: requests,
//! responses, bytes, connections, and request durations on both sides.
//!
//! Queries use a filter, since a gateway with many routes has very many statistics. The histograms of Envoy's
//! workers are merged on a flush. With [`BOOTSTRAP_FLUSH`], each query flushes; a timer would leave them up
//! to five seconds old.

use super::hop::{Hop, Layer};
use crate::admin::{Admin, AdminError};
use experiment::environment::{Bucket, Buckets, GatewayCounters};
use results::{GatewayCounts, percent_encode};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::{Duration, Instant};

/// Key and value of a bootstrap that make queries flush statistics, with no timer.
pub const BOOTSTRAP_FLUSH: (&str, bool) = ("stats_flush_on_admin", true);

/// Statistics read from a connection manager.
pub(super) const DOWNSTREAM: [&str; 11] = [
    "downstream_rq_total",
    "downstream_rq_1xx",
    "downstream_rq_2xx",
    "downstream_rq_3xx",
    "downstream_rq_4xx",
    "downstream_rq_5xx",
    "downstream_rq_time",
    "downstream_cx_total",
    "downstream_cx_ssl_total",
    "downstream_cx_rx_bytes_total",
    "downstream_cx_tx_bytes_total",
];
/// Statistics read from a cluster.
pub(super) const UPSTREAM: [&str; 4] =
    ["upstream_rq_total", "upstream_rq_retry", "upstream_rq_time", "upstream_cx_total"];

const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
/// A proxy at its CPU limit may need several enforcement periods of 100 ms each.
const MERGE_TIMEOUT: Duration = Duration::from_secs(2);
const POLL_INTERVAL: Duration = Duration::from_millis(10);
const MICROSECONDS_PER_MILLISECOND: f64 = 1000.0;

/// Statistics of connection managers and of the clusters behind them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Traffic {
    connection_managers: BTreeSet<String>,
    clusters: BTreeSet<String>,
}

/// Histograms of [`Traffic`], accumulated since the proxy started.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TrafficDurations {
    pub downstream: Buckets,
    pub upstream: Buckets,
}

impl Traffic {
    /// Absent for a proxy that does not read requests.
    pub fn of_hop(hop: &Hop) -> Option<Self> {
        let reads = matches!(hop.layer, Layer::L7 { .. });
        reads.then(|| Self {
            connection_managers: [hop.connection_manager.clone()].into(),
            clusters: [hop.cluster.clone()].into(),
        })
    }

    /// Both combined.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.connection_managers.extend(other.connection_managers.iter().cloned());
        self.clusters.extend(other.clusters.iter().cloned());
        self
    }

    /// Reads the counters and flushes the histograms.
    pub fn read_counters(&self, admin: &Admin) -> Result<GatewayCounters, AdminError> {
        let counters =
            admin.counters_at(&format!("/stats?format=json&type=Counters&filter={}", self.filter()))?;
        let plain = counters.into_iter().map(|(name, count)| (plain_name(&name), count)).collect();
        Ok(self.counted(&plain))
    }

    /// Reads the histograms once they include all responses that these counters have. Each query flushes, and
    /// the workers merge their histograms as soon as they run; in a proxy that is out of CPU, that is after
    /// the query. Absent if the merge times out.
    pub fn read_durations(
        &self,
        admin: &Admin,
        counted: &GatewayCounters,
    ) -> Result<Option<TrafficDurations>, AdminError> {
        let path = format!(
            "/stats?format=json&type=Histograms&histogram_buckets=detailed&usedonly&filter={}",
            self.filter()
        );
        // An informational response does not end a request.
        let responses = counted.counts.responses.iter().filter(|(class, _)| *class != CLASSES[0]);
        let ended = responses.map(|(_, count)| *count).fold(0, u64::saturating_add);
        let deadline = Instant::now() + MERGE_TIMEOUT;
        loop {
            let durations = self.timed(admin.get_json(&path)?);
            if durations.downstream.count() >= ended {
                return Ok(Some(durations));
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// The traffic in these counters of the proxy, whether complete or filtered.
    pub fn counted(&self, counters: &BTreeMap<String, u64>) -> GatewayCounters {
        let sum = |names: Vec<String>| {
            names.iter().filter_map(|name| counters.get(name)).copied().fold(0, u64::saturating_add)
        };
        let downstream = |name: &str| sum(self.downstream(name));
        let upstream = |name: &str| sum(self.upstream(name));
        let responses =
            CLASSES.iter().map(|class| ((*class).to_owned(), downstream(&format!("downstream_rq_{class}"))));
        GatewayCounters {
            counts: GatewayCounts {
                requests: downstream("downstream_rq_total"),
                forwarded: upstream("upstream_rq_total"),
                retries: upstream("upstream_rq_retry"),
                responses: responses.filter(|(_, count)| *count > 0).collect(),
            },
            bytes_received: downstream("downstream_cx_rx_bytes_total"),
            bytes_sent: downstream("downstream_cx_tx_bytes_total"),
            connections: downstream("downstream_cx_total"),
            tls_connections: downstream("downstream_cx_ssl_total"),
            upstream_connections: upstream("upstream_cx_total"),
        }
    }

    pub(crate) fn timed(&self, statistics: Statistics) -> TrafficDurations {
        let histograms = statistics.stats.into_iter().filter_map(|element| element.histograms);
        let details: BTreeMap<String, Buckets> = histograms
            .flat_map(|histograms| histograms.details)
            .map(|histogram| (plain_name(&histogram.name), buckets(&histogram.totals)))
            .collect();
        let sum = |names: Vec<String>| {
            names.iter().filter_map(|name| details.get(name)).fold(Buckets::default(), Buckets::and)
        };
        TrafficDurations {
            downstream: sum(self.downstream("downstream_rq_time")),
            upstream: sum(self.upstream("upstream_rq_time")),
        }
    }

    fn downstream(&self, name: &str) -> Vec<String> {
        self.connection_managers.iter().map(|manager| format!("http.{manager}.{name}")).collect()
    }

    fn upstream(&self, name: &str) -> Vec<String> {
        self.clusters.iter().map(|cluster| format!("cluster.{cluster}.{name}")).collect()
    }

    /// A regular expression for Envoy's `filter`, URL-encoded. A name may end with a semicolon ([`plain_name`]).
    fn filter(&self) -> String {
        let expression = format!(
            "^(http\\.({});?\\.({})|cluster\\.({});?\\.({}))$",
            any_of(&self.connection_managers),
            DOWNSTREAM.join("|"),
            any_of(&self.clusters),
            UPSTREAM.join("|"),
        );
        percent_encode(&expression)
    }
}

/// Removes the semicolon by which recent versions of Istio end the subject of a statistic, for their own
/// parsing of names: `cluster.inbound|8080||;.upstream_rq_total`.
pub fn plain_name(name: &str) -> String {
    name.replace(";.", ".")
}

/// Converts to buckets. Envoy records durations in whole milliseconds, rounded down.
fn buckets(totals: &[Total]) -> Buckets {
    let bucket = |total: &Total| {
        let width_ms = total.width.max(1.0);
        let us = |ms: f64| (ms * MICROSECONDS_PER_MILLISECOND).round() as u64;
        (us(total.lower_bound), Bucket { width_us: us(width_ms), count: total.count })
    };
    Buckets(totals.iter().map(bucket).collect())
}

/// A regular expression that matches exactly these names.
pub(crate) fn any_of<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    let mut any = String::new();
    for name in names {
        any.push_str(if any.is_empty() { "" } else { "|" });
        for character in name.chars() {
            if !character.is_ascii_alphanumeric() && character != '_' {
                any.push('\\');
            }
            any.push(character);
        }
    }
    any
}

/// `/stats?format=json&histogram_buckets=detailed`: histograms are one element of the statistics array.
#[derive(Deserialize)]
pub(crate) struct Statistics {
    stats: Vec<Element>,
}

#[derive(Deserialize)]
struct Element {
    histograms: Option<Histograms>,
}

#[derive(Deserialize)]
struct Histograms {
    #[serde(default)]
    details: Vec<Histogram>,
}

#[derive(Deserialize)]
struct Histogram {
    name: String,
    /// Buckets since the start, without empty ones.
    #[serde(default)]
    totals: Vec<Total>,
}

#[derive(Deserialize)]
struct Total {
    lower_bound: f64,
    width: f64,
    count: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::Protocol;

    fn traffic() -> Traffic {
        let layer = Layer::for_protocol(Protocol::Http1);
        Traffic::of_hop(&Hop::outbound(
            layer,
            8443,
            "outbound|8080||server.mesh-1.svc.cluster.local".to_owned(),
        ))
        .unwrap()
    }

    #[test]
    fn names_are_escaped_in_filter() {
        let filter = traffic().filter();
        assert!(
            filter.starts_with("%5E%28http%5C.%28outbound_0%5C.0%5C.0%5C.0_8443%29%3B%3F%5C."),
            "{filter}"
        );
        assert!(
            filter.contains("cluster%5C.%28outbound%5C%7C8080%5C%7C%5C%7Cserver%5C.mesh%5C-1"),
            "{filter}"
        );
        assert!(!filter.contains('|') && !filter.contains('+'));
    }

    #[test]
    fn counters_are_read_for_any_istio_version() {
        let counters = [
            ("http.outbound_0.0.0.0_8443.downstream_rq_total", 100),
            ("http.outbound_0.0.0.0_8443.downstream_rq_2xx", 90),
            ("http.outbound_0.0.0.0_8443.downstream_rq_4xx", 10),
            ("http.another.downstream_rq_5xx", 3),
            ("cluster.outbound|8080||server.mesh-1.svc.cluster.local;.upstream_rq_total", 92),
            ("cluster.outbound|8080||server.mesh-1.svc.cluster.local;.upstream_rq_retry", 2),
        ];
        let plain = counters.iter().map(|(name, count)| (plain_name(name), *count)).collect();
        let GatewayCounters { counts, .. } = traffic().counted(&plain);
        assert_eq!((counts.requests, counts.forwarded, counts.retries), (100, 92, 2));
        assert_eq!(counts.not_forwarded(), 10);
        assert_eq!(counts.responses, BTreeMap::from([("2xx".to_owned(), 90), ("4xx".to_owned(), 10)]));
    }

    #[test]
    fn finest_bucket_is_one_millisecond() {
        let text = r#"{"stats":[{"name":"a","value":1},{"histograms":{"supported_percentiles":[0,50],"details":[
            {"name":"http.outbound_0.0.0.0_8443.downstream_rq_time","percentiles":[],
             "totals":[{"lower_bound":0,"width":0,"count":3},{"lower_bound":2,"width":0.1,"count":4},
                       {"lower_bound":120,"width":10,"count":5}],"intervals":[]}]}}]}"#;
        let TrafficDurations { downstream, upstream } = traffic().timed(serde_json::from_str(text).unwrap());
        let bucket = |width_us, count| Bucket { width_us, count };
        let expected = [(0, bucket(1000, 3)), (2000, bucket(1000, 4)), (120_000, bucket(10_000, 5))].into();
        assert_eq!((downstream, upstream), (Buckets(expected), Buckets::default()));
    }
}
