//! cAdvisor's counters of control groups, as a kubelet's page has them, or a Prometheus that scrapes it. Those of one group
//! are of one moment, which the page has to the millisecond.

use super::sample::{Key, Modes};
use crate::prometheus::CPU_METRIC;
use mesh::exposition::samples;
use std::collections::BTreeMap;
use std::time::Duration;

/// Path of the group that has all others of a node in it.
const TOPMOST: &str = "/";

/// Metrics that are read.
pub(super) const METRICS: [&str; 10] = [
    CPU_METRIC,
    "container_cpu_user_seconds_total",
    "container_cpu_system_seconds_total",
    "container_cpu_cfs_periods_total",
    "container_cpu_cfs_throttled_periods_total",
    "container_cpu_cfs_throttled_seconds_total",
    "container_memory_working_set_bytes",
    "container_memory_rss",
    "container_network_receive_bytes_total",
    "container_network_transmit_bytes_total",
];

/// Counters of one control group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Counters {
    /// When its CPU was read, since 1970; absent where the page does not say.
    pub at: Option<Duration>,
    pub total: Option<Duration>,
    user: Option<Duration>,
    system: Option<Duration>,
    /// Periods of a CPU limit, those throttled, and seconds throttled.
    periods: Option<u64>,
    throttled_periods: Option<u64>,
    throttled_s: Option<f64>,
    pub working_set_bytes: Option<u64>,
    pub anonymous_bytes: Option<u64>,
}

impl Counters {
    /// User mode and kernel, where both are known.
    pub fn modes(&self) -> Option<(Duration, Duration)> {
        self.user.zip(self.system)
    }

    /// Periods, throttled periods, and time throttled in seconds; 0 where nothing tells the time.
    pub fn throttling(&self) -> Option<(u64, u64, f64)> {
        Some((self.periods?, self.throttled_periods?, self.throttled_s.unwrap_or(0.0)))
    }

    /// Throttled periods are known, and the time throttled is not.
    pub fn lacks_throttled_time(&self) -> bool {
        self.periods.is_some() && self.throttled_s.is_none()
    }

    fn set(&mut self, name: &str, at: Option<Duration>, value: f64) {
        // Zero for what is no time.
        let time = || Some(Duration::try_from_secs_f64(value).unwrap_or_default());
        let count = Some(value as u64);
        match name {
            // Of several that scrape one kubelet, the last one's.
            CPU_METRIC if at >= self.at => (self.at, self.total) = (at, time()),
            "container_cpu_user_seconds_total" => self.user = time(),
            "container_cpu_system_seconds_total" => self.system = time(),
            "container_cpu_cfs_periods_total" => self.periods = count,
            "container_cpu_cfs_throttled_periods_total" => self.throttled_periods = count,
            "container_cpu_cfs_throttled_seconds_total" => self.throttled_s = Some(value),
            "container_memory_working_set_bytes" => self.working_set_bytes = count,
            "container_memory_rss" => self.anonymous_bytes = count,
            _ => {}
        }
    }
}

/// Control groups of containers, of pods and of a node.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ControlGroups {
    /// By what it is of (a pod's has no container, a node's nothing), and its path: a container that was restarted has had
    /// several.
    groups: BTreeMap<(Key, String), Counters>,
    /// By namespace, pod and interface: bytes received and sent.
    networks: BTreeMap<Key, (u64, u64)>,
    /// CPUs of the node.
    pub cpus: Option<usize>,
}

impl ControlGroups {
    /// Reads a kubelet's page.
    pub fn read(page: &str) -> Self {
        let mut read = Self::default();
        for sample in samples(page) {
            let label = |name: &str| sample.label(name).unwrap_or_default().into_owned();
            let at = sample.timestamp_ms.map(|ms| Duration::from_millis(ms as u64));
            read.add(sample.name, label, at, sample.value);
        }
        read
    }

    /// Adds a sample of a series.
    pub fn add(&mut self, name: &str, label: impl Fn(&str) -> String, at: Option<Duration>, value: f64) {
        match name {
            "machine_cpu_cores" => self.cpus = Some(value as usize),
            "container_network_receive_bytes_total" => self.network_of(label).0 = value as u64,
            "container_network_transmit_bytes_total" => self.network_of(label).1 = value as u64,
            // Kubelets have all CPUs in one series.
            CPU_METRIC if !["", "total"].contains(&label("cpu").as_str()) => {}
            _ if METRICS.contains(&name) => {
                let (key, path) = ((label("namespace"), label("pod"), label("container")), label("id"));
                let is_wanted = match [&key.1, &key.2].map(String::is_empty) {
                    [true, true] => path == TOPMOST,
                    // A pod's own group has no image, unlike the container that holds its network namespace.
                    [false, true] => label("image").is_empty(),
                    [_, false] => true,
                };
                if is_wanted {
                    self.groups.entry((key, path)).or_default().set(name, at, value);
                }
            }
            _ => {}
        }
    }

    fn network_of(&mut self, label: impl Fn(&str) -> String) -> &mut (u64, u64) {
        self.networks.entry((label("namespace"), label("pod"), label("interface"))).or_default()
    }

    /// Namespace, pod and container of each group; a container that was restarted is there several times.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.groups.keys().map(|(key, _)| key)
    }

    /// Counters of a container; of several that it has had the newest.
    pub fn container(&self, key: &Key) -> Option<&Counters> {
        let groups = self.groups.range((key.clone(), String::new())..);
        let groups = groups.take_while(|((of, _), _)| of == key);
        groups.map(|(_, counters)| counters).max_by_key(|counters| counters.at)
    }

    /// User mode and kernel of a container, by its own counters or those of its pod.
    pub fn modes(&self, key: &Key) -> (Modes, (Duration, Duration)) {
        let own = self.container(key).copied().unwrap_or_default();
        let (namespace, pod, _) = key;
        let of_pod = || self.container(&(namespace.clone(), pod.clone(), String::new()))?.modes();
        match own.modes() {
            Some(times) if own.at.and(own.total).is_some() => (Modes::OfSample, times),
            Some(times) => (Modes::OfOtherSample, times),
            None => of_pod().map(|times| (Modes::OfPod, times)).unwrap_or_default(),
        }
    }

    /// Bytes received and sent by all interfaces of a pod.
    pub fn network(&self, (namespace, pod, _): &Key) -> Option<(u64, u64)> {
        let interfaces = self.networks.range((namespace.clone(), pod.clone(), String::new())..);
        let own = interfaces.take_while(|((of, name, _), _)| (of, name) == (namespace, pod));
        own.map(|(_, bytes)| *bytes).reduce(|sum, more| (sum.0 + more.0, sum.1 + more.1))
    }

    /// Counters of the node.
    pub fn node(&self) -> Option<&Counters> {
        self.container(&Key::default())
    }
}
