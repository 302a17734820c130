//! Usage of containers as a Prometheus has scraped it from kubelets, for users who may not read nodes.

use super::cadvisor::{ControlGroups, Counters, METRICS};
use super::sample::{Key, Reading, Sample};
use crate::prometheus::{LastSample, Prometheus};
use experiment::environment::{CpuTimes, error_chain};
use std::collections::BTreeSet;

/// Prometheus's own staleness limit.
const STALENESS_WINDOW: &str = "5m";

impl Reading {
    /// Reads the last samples. `own` are the namespaces and names of the pods that belong to the experiment.
    pub fn of_prometheus(prometheus: &Prometheus, own: &BTreeSet<(&str, &str)>) -> Self {
        let namespaces: BTreeSet<&str> = own.iter().map(|(namespace, _)| *namespace).collect();
        let namespaces: Vec<&str> = namespaces.into_iter().collect();
        let selector =
            format!("{{__name__=~\"{}\",namespace=~\"{}\"}}", METRICS.join("|"), namespaces.join("|"));
        match prometheus.last_samples(&selector, STALENESS_WINDOW) {
            Ok(samples) => Self::of_samples(&samples, own),
            Err(error) => {
                let note = format!("usage of services and proxies is not known: {}", error_chain(&error));
                Self { notes: vec![note], ..Self::default() }
            }
        }
    }

    pub fn of_samples(samples: &[LastSample], own: &BTreeSet<(&str, &str)>) -> Self {
        let mut groups = ControlGroups::default();
        for LastSample { labels, at, value } in samples {
            let label = |name: &str| labels.get(name).cloned().unwrap_or_default();
            groups.add(&label("__name__"), label, Some(*at), *value);
        }
        let keys = groups.keys().filter(|(namespace, pod, container)| {
            !container.is_empty() && own.contains(&(namespace.as_str(), pod.as_str()))
        });
        let keys: BTreeSet<&Key> = keys.collect();
        let lacks_time = |key: &&Key| groups.container(key).is_some_and(Counters::lacks_throttled_time);
        let note =
            "time throttled is shown as 0: Prometheus has no container_cpu_cfs_throttled_seconds_total";
        let notes = keys.iter().copied().find(lacks_time).map(|_| note.to_owned());
        let samples = keys.into_iter().filter_map(|key| Some((key.clone(), sample(key, &groups)?)));
        Self { samples: samples.collect(), notes: notes.into_iter().collect(), ..Self::default() }
    }
}

/// A sample of a container; absent if there is no total.
fn sample(key: &Key, groups: &ControlGroups) -> Option<Sample> {
    let counters = groups.container(key)?;
    let (modes, (user, system)) = groups.modes(key);
    Some(Sample {
        at: counters.at?,
        cpu: CpuTimes { total: counters.total?, user, system },
        modes,
        working_set_bytes: counters.working_set_bytes,
        anonymous_bytes: counters.anonymous_bytes,
        network: groups.network(key),
        throttling: counters.throttling(),
    })
}

#[cfg(test)]
mod tests;
