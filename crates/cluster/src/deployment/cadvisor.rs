//! cAdvisor's cgroup counters, from a kubelet's metrics page or from a Prometheus that scrapes it. All
//! counters of one cgroup are from the same moment, which the page has to the millisecond.

use super::sample::{Key, Modes, Traffic};
use crate::prometheus::CPU_METRIC;
use results::exposition::samples;
use std::collections::BTreeMap;
use std::time::Duration;

/// Maximum CPU time that a counter can have: a thousand CPUs for over a century. Sums of some cannot overflow.
const MAX_CPU_TIME: Duration = Duration::from_secs(1000 * u32::MAX as u64);

/// Path of the root cgroup of a node.
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

/// Counters of one cgroup.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Counters {
    /// Time of its CPU reading since 1970; absent if the page has no timestamp.
    pub at: Option<Duration>,
    pub total: Option<Duration>,
    user: Option<Duration>,
    system: Option<Duration>,
    /// Enforcement periods of a CPU limit. The next fields are the throttled ones and the seconds throttled.
    periods: Option<u64>,
    throttled_periods: Option<u64>,
    throttled_s: Option<f64>,
    pub working_set_bytes: Option<u64>,
    pub anonymous_bytes: Option<u64>,
}

impl Counters {
    /// CPU time in user mode and in the kernel, if both are known.
    pub fn modes(&self) -> Option<(Duration, Duration)> {
        self.user.zip(self.system)
    }

    /// Periods, throttled periods, and seconds throttled; 0 s if the time is unknown.
    pub fn throttling(&self) -> Option<(u64, u64, f64)> {
        Some((self.periods?, self.throttled_periods?, self.throttled_s.unwrap_or(0.0)))
    }

    /// True if periods are known but the throttled time is not.
    pub fn lacks_throttled_time(&self) -> bool {
        self.periods.is_some() && self.throttled_s.is_none()
    }

    fn set(&mut self, name: &str, at: Option<Duration>, value: f64) {
        // Zero if the value is not a possible CPU time.
        let time = || {
            let time = Duration::try_from_secs_f64(value).ok().filter(|time| *time <= MAX_CPU_TIME);
            Some(time.unwrap_or_default())
        };
        let count = Some(value as u64);
        match name {
            // If several Prometheus servers scrape one kubelet, the latest sample counts.
            CPU_METRIC if at >= self.at => (self.at, self.total) = (at, time()),
            "container_cpu_user_seconds_total" => self.user = time(),
            "container_cpu_system_seconds_total" => self.system = time(),
            "container_cpu_cfs_periods_total" => self.periods = count,
            "container_cpu_cfs_throttled_periods_total" => self.throttled_periods = count,
            "container_cpu_cfs_throttled_seconds_total" => {
                self.throttled_s = time().map(|time| time.as_secs_f64());
            }
            "container_memory_working_set_bytes" => self.working_set_bytes = count,
            "container_memory_rss" => self.anonymous_bytes = count,
            _ => {}
        }
    }
}

/// Cgroups of containers, of pods and of a node.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ControlGroups {
    /// By subject and cgroup path. A pod's own cgroup has no container name, a node's has none at all. A
    /// container that was restarted has had several cgroups.
    groups: BTreeMap<(Key, String), Counters>,
    /// Traffic by namespace, pod and interface.
    networks: BTreeMap<Key, Traffic>,
    /// Number of CPUs of the node.
    pub cpus: Option<usize>,
}

impl ControlGroups {
    /// Parses a kubelet's metrics page.
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
            "container_network_receive_bytes_total" => {
                self.network_of(label, at).received_bytes = value as u64;
            }
            "container_network_transmit_bytes_total" => self.network_of(label, at).sent_bytes = value as u64,
            // Kubelets have a single series for all CPUs.
            CPU_METRIC if !["", "total"].contains(&label("cpu").as_str()) => {}
            _ if METRICS.contains(&name) => {
                let (key, path) = ((label("namespace"), label("pod"), label("container")), label("id"));
                let is_wanted = match [&key.1, &key.2].map(String::is_empty) {
                    [true, true] => path == TOPMOST,
                    // A pod's own cgroup has no image, unlike the container that holds its network namespace.
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

    fn network_of(&mut self, label: impl Fn(&str) -> String, at: Option<Duration>) -> &mut Traffic {
        let key = (label("namespace"), label("pod"), label("interface"));
        let traffic = self.networks.entry(key).or_default();
        traffic.at = at;
        traffic
    }

    /// Namespace, pod and container of each cgroup. A container that was restarted is listed several times.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.groups.keys().map(|(key, _)| key)
    }

    /// Counters of a container; those of its latest cgroup if it has had several.
    pub fn container(&self, key: &Key) -> Option<&Counters> {
        let groups = self.groups.range((key.clone(), String::new())..);
        let groups = groups.take_while(|((of, _), _)| of == key);
        groups.map(|(_, counters)| counters).max_by_key(|counters| counters.at)
    }

    /// CPU time of a container in user mode and in the kernel, from its own counters or those of its pod.
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

    /// Bytes of all interfaces of a pod.
    pub fn network(&self, (namespace, pod, _): &Key) -> Option<Traffic> {
        let interfaces = self.networks.range((namespace.clone(), pod.clone(), String::new())..);
        let own = interfaces.take_while(|((of, name, _), _)| (of, name) == (namespace, pod));
        own.map(|(_, traffic)| *traffic).reduce(|sum, more| Traffic {
            at: sum.at.min(more.at),
            received_bytes: sum.received_bytes.saturating_add(more.received_bytes),
            sent_bytes: sum.sent_bytes.saturating_add(more.sent_bytes),
        })
    }

    /// Counters of the node.
    pub fn node(&self) -> Option<&Counters> {
        self.container(&Key::default())
    }
}
