//! Usage of containers and nodes as kubelets sample it, each by themselves.

use super::cadvisor::ControlGroups;
use super::sample::{Key, Reading, Sample, Traffic};
use experiment::environment::{CpuSample, CpuTimes, NodeSnapshot, error_chain};
use jiff::Timestamp;
use mesh::kubernetes::client::{ApiClient, parse};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Pods that a reading is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subject<'a> {
    /// Namespaces and names of the pods that belong to the experiment.
    pub own: &'a BTreeSet<(&'a str, &'a str)>,
    /// Name of the proxy container in each pod of the mesh.
    pub proxy: Option<&'a str>,
}

impl Subject<'_> {
    pub fn has(&self, (namespace, pod, _): &Key) -> bool {
        self.own.contains(&(namespace.as_str(), pod.as_str()))
    }

    fn is_other_proxy(&self, key: &Key) -> bool {
        Some(key.2.as_str()) == self.proxy && !self.has(key)
    }
}

impl Reading {
    /// Reads one kubelet.
    pub fn of_node(api: &ApiClient, node: &str, subject: Subject<'_>) -> Self {
        let operation = format!("read the kubelet of node {node}");
        let path = |page: &str| format!("/api/v1/nodes/{node}/proxy/{page}");
        let mut notes = Vec::new();
        let summary = match api.get_text(&operation, &path("stats/summary")).and_then(|page| parse(&page)) {
            Ok(summary) => summary,
            Err(error) => {
                notes
                    .push(format!("usage of what runs on node {node} is not known: {}", error_chain(&error)));
                return Self { notes, ..Self::default() };
            }
        };
        let groups = match api.get_text(&operation, &path("metrics/cadvisor")) {
            Ok(page) => ControlGroups::read(&page),
            Err(error) => {
                notes.push(format!("throttling on node {node} is not known: {}", error_chain(&error)));
                ControlGroups::default()
            }
        };
        Self { notes, ..Self::of_pages(node, &summary, &groups, subject) }
    }

    /// Reading of a kubelet's two pages: its summary, and the counters of cAdvisor.
    pub fn of_pages(node: &str, summary: &Value, groups: &ControlGroups, subject: Subject<'_>) -> Self {
        let mut samples = read_summary(summary);
        let other_proxies = samples.keys().filter(|key| subject.is_other_proxy(key)).count();
        samples.retain(|key, _| subject.has(key));
        add_counters(groups, &mut samples);
        let node = read_node(node, summary, groups).map(|node| {
            let containers = samples.iter().map(|((namespace, pod, container), sample)| {
                let sample = CpuSample { at: sample.at, cpu: sample.cpu };
                (format!("{namespace}/{pod}/{container}"), sample)
            });
            NodeSnapshot { containers: containers.collect(), ..node }
        });
        Self { samples, nodes: node.into_iter().collect(), other_proxies, ..Self::default() }
    }
}

/// Containers from a kubelet's summary (`/stats/summary`). Times are in whole seconds; user mode, kernel and
/// throttling are missing. Containers without a sample are left out.
fn read_summary(summary: &Value) -> BTreeMap<Key, Sample> {
    let mut samples = BTreeMap::new();
    for pod in summary["pods"].as_array().into_iter().flatten() {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (namespace, name) = (text(&pod["podRef"]["namespace"]), text(&pod["podRef"]["name"]));
        let network = read_network(&pod["network"]);
        for container in pod["containers"].as_array().into_iter().flatten() {
            let (cpu, memory) = (&container["cpu"], &container["memory"]);
            let Some((at, total)) = time(&cpu["time"]).zip(cpu["usageCoreNanoSeconds"].as_u64()) else {
                continue;
            };
            let sample = Sample {
                at,
                cpu: CpuTimes { total: Duration::from_nanos(total), ..CpuTimes::default() },
                working_set_bytes: memory["workingSetBytes"].as_u64(),
                anonymous_bytes: memory["rssBytes"].as_u64(),
                network,
                ..Sample::default()
            };
            samples.insert((namespace.clone(), name.clone(), text(&container["name"])), sample);
        }
    }
    samples
}

fn read_network(network: &Value) -> Option<Traffic> {
    Some(Traffic {
        at: time(&network["time"]),
        received_bytes: network["rxBytes"].as_u64()?,
        sent_bytes: network["txBytes"].as_u64()?,
    })
}

/// Adds what only cAdvisor's counters have. Their total replaces the summary's, since its time is exact.
fn add_counters(groups: &ControlGroups, samples: &mut BTreeMap<Key, Sample>) {
    for (key, sample) in samples {
        let own = groups.container(key).copied().unwrap_or_default();
        sample.throttling = own.throttling();
        if let Some((at, total)) = own.at.zip(own.total) {
            (sample.at, sample.cpu.total) = (at, total);
        }
        (sample.modes, (sample.cpu.user, sample.cpu.system)) = groups.modes(key);
    }
}

/// A node as a whole, minus the containers of the experiment; absent if its kubelet has no sample for it.
fn read_node(name: &str, summary: &Value, groups: &ControlGroups) -> Option<NodeSnapshot> {
    let counters = groups.node().copied().unwrap_or_default();
    let cpu = &summary["node"]["cpu"];
    let of_summary =
        || Some((time(&cpu["time"])?, Duration::from_nanos(cpu["usageCoreNanoSeconds"].as_u64()?)));
    let (at, total) = counters.at.zip(counters.total).or_else(of_summary)?;
    let (user, system) = counters.modes().unwrap_or_default();
    let all = CpuSample { at, cpu: CpuTimes { total, user, system } };
    Some(NodeSnapshot { name: name.to_owned(), cpus: groups.cpus, all, ..NodeSnapshot::default() })
}

fn time(value: &Value) -> Option<Duration> {
    let time: Timestamp = value.as_str()?.parse().ok()?;
    u64::try_from(time.as_nanosecond()).ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::super::sample::Modes;
    use super::*;
    use serde_json::json;

    const NO_SAMPLE_OF_ITS_OWN: &str = "split";

    fn summary() -> Value {
        let container = |name: &str| {
            let cpu = json!({"time": "2026-11-22T20:00:01Z", "usageCoreNanoSeconds": 7});
            json!({"name": name, "cpu": cpu, "memory": {"workingSetBytes": 8, "rssBytes": 4}})
        };
        let node = json!({"cpu": {"time": "2026-11-22T20:00:03Z", "usageCoreNanoSeconds": 11}});
        json!({"node": node, "pods": [{
            "podRef": {"namespace": "m", "name": "p"},
            "network": {"time": "2026-11-22T20:00:02Z", "rxBytes": 5, "txBytes": 6},
            "containers": [container("a"), container(NO_SAMPLE_OF_ITS_OWN), container("b"), {"name": "new", "cpu": {}}],
        }]})
    }

    fn key(container: &str) -> Key {
        ("m".to_owned(), "p".to_owned(), container.to_owned())
    }

    /// Lines from a kubelet 1.36 with cgroups version 1, shortened.
    const PAGE: &str = r#"# HELP container_cpu_cfs_periods_total Number of elapsed enforcement period intervals.
container_cpu_cfs_periods_total{container="a",id="/k/2",image="i",name="2",namespace="m",pod="p"} 10 1795377601234
container_cpu_cfs_throttled_periods_total{container="a",id="/k/2",image="i",name="2",namespace="m",pod="p"} 3 1795377601234
container_cpu_cfs_throttled_seconds_total{container="a",id="/k/2",image="i",name="2",namespace="m",pod="p"} 0.5 1795377601234
container_cpu_usage_seconds_total{container="",cpu="total",id="/",image="",name="",namespace="",pod=""} 99 1795377601000
container_cpu_usage_seconds_total{container="",cpu="total",id="/k",image="",name="",namespace="",pod=""} 98 1795377601000
container_cpu_usage_seconds_total{container="a",cpu="total",id="/k/1",image="i",name="1",namespace="m",pod="p"} 50 1795377500000
container_cpu_usage_seconds_total{container="a",cpu="total",id="/k/2",image="i",name="2",namespace="m",pod="p"} 4 1795377601234
container_cpu_user_seconds_total{container="",id="/",image="",name="",namespace="",pod=""} 70 1795377601000
container_cpu_user_seconds_total{container="",id="/k",image="",name="",namespace="m",pod="p"} 30 1795377600000
container_cpu_user_seconds_total{container="",id="/k/0",image="pause",name="0",namespace="m",pod="p"} 1 1795377600000
container_cpu_user_seconds_total{container="a",id="/k/2",image="i",name="2",namespace="m",pod="p"} 3 1795377601234
container_cpu_user_seconds_total{container="split",id="/k/3",image="i",name="3",namespace="m",pod="p"} 2 1795377601234
container_cpu_system_seconds_total{container="",id="/",image="",name="",namespace="",pod=""} 29 1795377601000
container_cpu_system_seconds_total{container="",id="/k",image="",name="",namespace="m",pod="p"} 20 1795377600000
container_cpu_system_seconds_total{container="a",id="/k/2",image="i",name="2",namespace="m",pod="p"} 1 1795377601234
container_cpu_system_seconds_total{container="split",id="/k/3",image="i",name="3",namespace="m",pod="p"} 5 1795377601234
machine_cpu_cores{boot_id="1",machine_id="",system_uuid=""} 4
"#;

    #[test]
    fn summary_has_time_of_each_sample() {
        let samples = read_summary(&summary());
        assert_eq!(samples.len(), 3);
        let sample = samples[&key("a")];
        assert_eq!((sample.at.as_secs(), sample.cpu.total.as_nanos()), (1_795_377_601, 7));
        let at = Some(Duration::from_secs(1_795_377_602));
        let network = Traffic { at, received_bytes: 5, sent_bytes: 6 };
        assert_eq!((sample.network, sample.modes), (Some(network), Modes::Unknown));
    }

    #[test]
    fn counters_replace_totals_and_split_user_mode_from_kernel() {
        let mut samples = read_summary(&summary());
        add_counters(&ControlGroups::read(PAGE), &mut samples);
        let read = |container: &str| {
            let sample = samples[&key(container)];
            let CpuTimes { total, user, system } = sample.cpu;
            (sample.modes, sample.at.as_millis(), total.as_nanos(), user.as_secs(), system.as_secs())
        };
        assert_eq!(read("a"), (Modes::OfSample, 1_795_377_601_234, 4_000_000_000, 3, 1));
        assert_eq!(samples[&key("a")].throttling, Some((10, 3, 0.5)));
        let from_summary = 1_795_377_601_000;
        assert_eq!(read(NO_SAMPLE_OF_ITS_OWN), (Modes::OfOtherSample, from_summary, 7, 2, 5));
        assert_eq!(read("b"), (Modes::OfPod, from_summary, 7, 30, 20));
    }

    #[test]
    fn proxies_of_other_pods_are_counted_as_others() {
        let own = BTreeSet::from([("m", "p")]);
        let subject = Subject { own: &own, proxy: Some("proxy") };
        let of = |pod: &str, container: &str| ("m".to_owned(), pod.to_owned(), container.to_owned());
        assert!(subject.has(&of("p", "proxy")) && !subject.is_other_proxy(&of("p", "proxy")));
        assert!(!subject.has(&of("q", "proxy")) && subject.is_other_proxy(&of("q", "proxy")));
        assert!(!subject.is_other_proxy(&of("q", "app")));
        assert!(!Subject { proxy: None, ..subject }.is_other_proxy(&of("q", "proxy")));
    }

    #[test]
    fn node_is_read_from_counters_or_summary() {
        let of = |page: &str| read_node("node-1", &summary(), &ControlGroups::read(page)).unwrap();
        let [total, user, system] = [99, 70, 29].map(Duration::from_secs);
        let (exact, summed) = (of(PAGE), of(""));
        assert_eq!(
            (exact.all.at.as_secs(), exact.all.cpu),
            (1_795_377_601, CpuTimes { total, user, system })
        );
        assert_eq!((exact.name.as_str(), exact.cpus), ("node-1", Some(4)));
        let total = Duration::from_nanos(11);
        let cpu = CpuTimes { total, ..CpuTimes::default() };
        assert_eq!((summed.all.at.as_secs(), summed.all.cpu, summed.cpus), (1_795_377_603, cpu, None));
        assert_eq!(read_node("node-1", &json!({}), &ControlGroups::default()), None);
    }

    #[test]
    fn impossible_counters_are_no_cpu_time() {
        let cpu =
            |mode: &str| format!("container_cpu_{mode}_seconds_total{{id=\"/\"}} 1.8e19 1795377601000\n");
        let page = ["usage", "user", "system"].map(cpu).concat();
        let node = read_node("node-1", &summary(), &ControlGroups::read(&page)).unwrap();
        assert_eq!(node.all.cpu, CpuTimes::default());
        let interface = |name: &str| {
            let labels = format!("{{interface=\"{name}\",namespace=\"m\",pod=\"p\"}}");
            format!("container_network_receive_bytes_total{labels} 1e20 1795377601000\n")
        };
        let groups = ControlGroups::read(&["eth0", "eth1"].map(interface).concat());
        assert_eq!(groups.network(&key("a")).unwrap().received_bytes, u64::MAX);
    }

    #[test]
    fn empty_counters_leave_summary_unchanged() {
        let (before, mut samples) = (read_summary(&summary()), read_summary(&summary()));
        add_counters(&ControlGroups::read("404 page not found"), &mut samples);
        assert_eq!(samples, before);
    }
}
