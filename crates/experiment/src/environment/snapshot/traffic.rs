//! Request counters of gateways and services at one moment.

use results::{GatewayCounts, GatewayDuration, GatewayRecord};
use std::collections::BTreeMap;
use std::time::Duration;

/// Counters of a gateway at one moment, since it started.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GatewaySnapshot {
    /// Name of the proxy.
    pub name: String,
    /// Namespace in the topology; empty if the topology has a single one.
    pub namespace: String,
    /// Workloads that it routes drivers to, as `namespace/name`.
    pub targets: Vec<String>,
    /// Time at which the counters arrived, since any fixed moment.
    pub at: Duration,
    /// Counters since the gateway started.
    pub counters: GatewayCounters,
    /// Durations of downstream requests (from clients); absent if not read.
    pub downstream: Option<Buckets>,
    /// Durations of upstream requests (to destinations); absent if not read.
    pub upstream: Option<Buckets>,
}

/// Counters of a gateway.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct GatewayCounters {
    /// Requests and responses.
    pub counts: GatewayCounts,
    /// Bytes received from clients.
    pub bytes_received: u64,
    /// Bytes sent to clients.
    pub bytes_sent: u64,
    /// Connections opened by clients.
    pub connections: u64,
    /// Of `connections`, those with TLS.
    pub tls_connections: u64,
    /// Connections opened to destinations.
    pub upstream_connections: u64,
}

/// Requests received by a pod of a service, at one moment.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ServiceSnapshot {
    /// Name of the service.
    pub name: String,
    /// Namespace in the topology; empty if the topology has a single one.
    pub namespace: String,
    /// Name of the pod.
    pub pod: String,
    /// Time at which the counter arrived, since any fixed moment.
    pub at: Duration,
    /// Requests since the pod started.
    pub requests: u64,
}

/// Rate of a service between two snapshots, summed over its pods.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServiceRate {
    /// Name of the service.
    pub name: String,
    /// Namespace in the topology; empty if the topology has a single one.
    pub namespace: String,
    /// Requests per second.
    pub requests_per_s: f64,
}

/// Histogram of durations: cumulative counts per bucket, keyed by the bucket's lower bound. All in
/// microseconds.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Buckets(pub BTreeMap<u64, Bucket>);

/// A bucket of a histogram.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Bucket {
    /// Width of the bucket: its durations are below the lower bound plus this.
    pub width_us: u64,
    /// Durations in the bucket.
    pub count: u64,
}

impl GatewaySnapshot {
    /// Counts since an earlier snapshot.
    #[must_use]
    pub fn since(&self, open: &Self) -> GatewayRecord {
        let window_s = self.at.saturating_sub(open.at).as_secs_f64();
        let counts = self.counters.counts.since(&open.counters.counts);
        let rise =
            |read: fn(&GatewayCounters) -> u64| read(&self.counters).saturating_sub(read(&open.counters));
        let duration = |close: &Option<Buckets>, open: &Option<Buckets>| {
            close.as_ref().zip(open.as_ref()).and_then(|(close, open)| close.since(open).duration())
        };
        GatewayRecord {
            name: self.name.clone(),
            namespace: self.namespace.clone(),
            targets: self.targets.clone(),
            window_s,
            requests_per_s: if window_s > 0.0 { counts.requests as f64 / window_s } else { 0.0 },
            requests: counts.requests,
            forwarded: counts.forwarded,
            retries: counts.retries,
            responses: counts.responses,
            duration_downstream_us: duration(&self.downstream, &open.downstream),
            duration_upstream_us: duration(&self.upstream, &open.upstream),
            bytes_received: rise(|counters| counters.bytes_received),
            bytes_sent: rise(|counters| counters.bytes_sent),
            connections: rise(|counters| counters.connections),
            tls_connections: rise(|counters| counters.tls_connections),
            upstream_connections: rise(|counters| counters.upstream_connections),
            whole_trial: None,
        }
    }
}

/// Rates of all services between two snapshots, in the order of the later one. Services with a pod in only
/// one of the snapshots are left out.
#[must_use]
pub(super) fn service_rates(open: &[ServiceSnapshot], close: &[ServiceSnapshot]) -> Vec<ServiceRate> {
    let mut rates: Vec<(ServiceRate, bool)> = Vec::new();
    for pod in close {
        let before = open.iter().find(|before| before.pod == pod.pod);
        let rate = before.and_then(|before| {
            let elapsed_s = pod.at.saturating_sub(before.at).as_secs_f64();
            let requests = pod.requests.checked_sub(before.requests)?;
            (elapsed_s > 0.0).then(|| requests as f64 / elapsed_s)
        });
        let of_service =
            |(rate, _): &&mut (ServiceRate, bool)| rate.name == pod.name && rate.namespace == pod.namespace;
        if let Some((sum, is_known)) = rates.iter_mut().find(of_service) {
            sum.requests_per_s += rate.unwrap_or(0.0);
            *is_known &= rate.is_some();
        } else {
            let (name, namespace) = (pod.name.clone(), pod.namespace.clone());
            let sum = ServiceRate { name, namespace, requests_per_s: rate.unwrap_or(0.0) };
            rates.push((sum, rate.is_some()));
        }
    }
    rates.into_iter().filter(|(_, is_known)| *is_known).map(|(rate, _)| rate).collect()
}

impl Buckets {
    /// Durations added since an earlier reading.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let added = self.0.iter().filter_map(|(lower_us, bucket)| {
            let earlier = before.0.get(lower_us).map_or(0, |earlier| earlier.count);
            let count = bucket.count.saturating_sub(earlier);
            (count > 0).then_some((*lower_us, Bucket { count, ..*bucket }))
        });
        Self(added.collect())
    }

    /// Number of durations in all buckets.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.values().fold(0, |sum, bucket| bucket.count.saturating_add(sum))
    }

    /// Sum of both histograms.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        for (lower_us, bucket) in &other.0 {
            let sum = self.0.entry(*lower_us).or_insert(Bucket { count: 0, ..*bucket });
            sum.count = sum.count.saturating_add(bucket.count);
        }
        self
    }

    /// Percentiles; absent if the histogram is empty.
    #[must_use]
    pub fn duration(&self) -> Option<GatewayDuration> {
        let count = self.count();
        let (p50, p90, p99) = (self.percentile(0.5)?, self.percentile(0.9)?, self.percentile(0.99)?);
        Some(GatewayDuration { count, p50: p50.0, p90: p90.0, p99: p99.0, resolution_us: p99.1 as f64 })
    }

    /// Percentile, interpolated linearly within its bucket, and the bucket's width, microseconds.
    fn percentile(&self, fraction: f64) -> Option<(f64, u64)> {
        let rank = (self.count() as f64 * fraction).ceil().max(1.0);
        let mut below = 0_u64;
        for (lower_us, bucket) in &self.0 {
            if below.saturating_add(bucket.count) as f64 >= rank {
                let share = (rank - below as f64 - 0.5) / bucket.count as f64;
                return Some((*lower_us as f64 + share * bucket.width_us as f64, bucket.width_us));
            }
            below = below.saturating_add(bucket.count);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buckets(of: &[(u64, u64, u64)]) -> Buckets {
        Buckets(
            of.iter()
                .map(|(lower, width_us, count)| (*lower, Bucket { width_us: *width_us, count: *count }))
                .collect(),
        )
    }

    #[test]
    fn percentiles_are_those_of_the_window_alone() {
        let open = buckets(&[(0, 1000, 1_000_000), (90_000, 1000, 7)]);
        let close = buckets(&[(0, 1000, 1_000_000), (10_000, 1000, 90), (90_000, 1000, 17)]);
        let added = close.since(&open).duration().unwrap();
        assert_eq!(added.count, 100);
        assert!((10_000.0..11_000.0).contains(&added.p50), "{added:?}");
        assert!((10_900.0..=11_000.0).contains(&added.p90), "{added:?}");
        assert!((90_000.0..91_000.0).contains(&added.p99) && added.resolution_us == 1000.0, "{added:?}");
        assert_eq!(close.since(&close).duration(), None);
    }

    #[test]
    fn huge_counts_do_not_overflow() {
        let huge = buckets(&[(0, 1000, u64::MAX), (10_000, 1000, u64::MAX)]);
        let both = huge.clone().and(&huge);
        assert_eq!((both.count(), &both), (u64::MAX, &huge));
        let duration = both.duration().unwrap();
        assert!((0.0..=1000.0).contains(&duration.p50) && duration.p99 <= 11_000.0, "{duration:?}");
    }

    #[test]
    fn each_gateway_has_its_own_window() {
        let at = |ms, requests, responses: &[(&str, u64)]| GatewaySnapshot {
            at: Duration::from_millis(ms),
            counters: GatewayCounters {
                counts: GatewayCounts {
                    requests,
                    forwarded: requests,
                    retries: 0,
                    responses: responses.iter().map(|(class, count)| ((*class).to_owned(), *count)).collect(),
                },
                ..GatewayCounters::default()
            },
            ..GatewaySnapshot::default()
        };
        let record = at(2_500, 1_250, &[("2xx", 1_200), ("4xx", 10)]).since(&at(
            500,
            250,
            &[("2xx", 240), ("4xx", 10)],
        ));
        assert_eq!((record.window_s, record.requests, record.requests_per_s), (2.0, 1_000, 500.0));
        assert_eq!(record.responses, BTreeMap::from([("2xx".to_owned(), 960)]));
    }

    #[test]
    fn pods_of_service_are_summed_over_own_sample_times() {
        let pod = |pod: &str, ms, requests| ServiceSnapshot {
            name: "server".to_owned(),
            pod: pod.to_owned(),
            at: Duration::from_millis(ms),
            requests,
            ..ServiceSnapshot::default()
        };
        let open = [pod("server-1", 0, 0), pod("server-2", 500, 50)];
        let close = [pod("server-1", 1000, 100), pod("server-2", 2500, 250)];
        let rates = service_rates(&open, &close);
        assert_eq!(rates.len(), 1);
        assert_eq!(rates[0].requests_per_s, 200.0);
        assert!(service_rates(&open[..1], &close).is_empty());
    }
}
