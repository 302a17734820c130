//! Usage of containers as kubelets tell it. A kubelet samples about every ten seconds: each counter is of its sample's time,
//! which is kept, so that usage is over the time between two samples and not over the window.

use jiff::Timestamp;
use mesh::exposition::samples;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// Namespace, pod and container.
pub(super) type Key = (String, String, String);

/// One container at the time of its sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sample {
    /// Since 1970.
    pub at: Duration,
    pub cpu: Duration,
    pub working_set_bytes: Option<u64>,
    pub anonymous_bytes: Option<u64>,
    /// Of the pod: received and sent bytes.
    pub network: Option<(u64, u64)>,
    /// Periods, throttled periods, and time throttled.
    pub throttling: Option<(u64, u64, f64)>,
}

/// Containers of a kubelet's summary (`/stats/summary`). A container without a sample is left out.
pub(super) fn read_summary(summary: &Value, into: &mut BTreeMap<Key, Sample>) {
    for pod in summary["pods"].as_array().into_iter().flatten() {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (namespace, name) = (text(&pod["podRef"]["namespace"]), text(&pod["podRef"]["name"]));
        let network = &pod["network"];
        let network = network["rxBytes"].as_u64().zip(network["txBytes"].as_u64());
        for container in pod["containers"].as_array().into_iter().flatten() {
            let (cpu, memory) = (&container["cpu"], &container["memory"]);
            let Some((at, cpu)) = time(&cpu["time"]).zip(cpu["usageCoreNanoSeconds"].as_u64()) else {
                continue;
            };
            let sample = Sample {
                at,
                cpu: Duration::from_nanos(cpu),
                working_set_bytes: memory["workingSetBytes"].as_u64(),
                anonymous_bytes: memory["rssBytes"].as_u64(),
                network,
                throttling: None,
            };
            into.insert((namespace.clone(), name.clone(), text(&container["name"])), sample);
        }
    }
}

/// Throttling from a kubelet's page of cAdvisor's metrics.
pub(super) fn read_throttling(page: &str, into: &mut BTreeMap<Key, Sample>) {
    for sample in samples(page) {
        let set: fn(&mut (u64, u64, f64), f64) = match sample.name {
            "container_cpu_cfs_periods_total" => |counts, value| counts.0 = value as u64,
            "container_cpu_cfs_throttled_periods_total" => |counts, value| counts.1 = value as u64,
            "container_cpu_cfs_throttled_seconds_total" => |counts, value| counts.2 = value,
            _ => continue,
        };
        let label = |name: &str| sample.label(name).unwrap_or_default().into_owned();
        if let Some(known) = into.get_mut(&(label("namespace"), label("pod"), label("container"))) {
            set(known.throttling.get_or_insert_default(), sample.value);
        }
    }
}

fn time(value: &Value) -> Option<Duration> {
    let time: Timestamp = value.as_str()?.parse().ok()?;
    u64::try_from(time.as_nanosecond()).ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn samples_keep_their_own_time() {
        let summary = json!({"pods": [{
            "podRef": {"namespace": "m", "name": "p"},
            "network": {"rxBytes": 5, "txBytes": 6},
            "containers": [
                {"name": "a", "cpu": {"time": "2026-11-22T20:00:01Z", "usageCoreNanoSeconds": 7}, "memory": {"workingSetBytes": 8, "rssBytes": 4}},
                {"name": "new", "cpu": {}},
            ],
        }]});
        let mut all = BTreeMap::new();
        read_summary(&summary, &mut all);
        let page = "container_cpu_cfs_periods_total{container=\"a\",namespace=\"m\",pod=\"p\"} 10 1700000000000\n\
                    container_cpu_cfs_throttled_periods_total{container=\"a\",namespace=\"m\",pod=\"p\"} 3 1700000000000\n\
                    container_cpu_cfs_throttled_seconds_total{container=\"a\",namespace=\"m\",pod=\"p\"} 0.5 1700000000000\n";
        read_throttling(page, &mut all);
        assert_eq!(all.len(), 1);
        let sample = all[&("m".to_owned(), "p".to_owned(), "a".to_owned())];
        assert_eq!((sample.at.as_secs(), sample.cpu.as_nanos()), (1_795_377_601, 7));
        assert_eq!((sample.network, sample.throttling), (Some((5, 6)), Some((10, 3, 0.5))));
    }
}
