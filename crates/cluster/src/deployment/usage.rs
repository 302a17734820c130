//! Usage of every component at one moment: generators by their workers, which read their own control group at that moment;
//! services and proxies by kubelets, whose samples have times of their own.

use super::ClusterDeployment;
use super::kubelet::{Key, Sample, read_summary, read_throttling};
use crate::gateway::CONTAINER;
use crate::worker::protocol::{Status, Usage, unix_ns};
use experiment::environment::{ComponentMemory, ComponentSnapshot, CpuTimes, Snapshot, in_one_line};
use experiment::schema::{NetworkUsage, Role, Throttling};
use jiff::Timestamp;
use mesh::concurrent::side_by_side;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Where the figures of kubelets come from, in results.
const KUBELET: &str = "kubelet";

/// A container whose usage belongs to the experiment.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    name: String,
    role: Role,
    pod: String,
    key: Key,
    node: String,
    is_limited: bool,
    shows_network: bool,
}

impl ClusterDeployment<'_> {
    /// Containers that kubelets are asked for: services, proxies beside them and beside drivers, and what the mesh shares.
    pub(super) fn watch(&mut self) {
        let proxy = self.plug.proxy_container();
        let mut watched = Vec::new();
        for (workload, pods) in self.spec.topology.workloads.iter().zip(&self.pods) {
            for pod in pods {
                let state = &pod.state;
                let container = |container: &str, name: String, role, shows_network| Watched {
                    name,
                    role,
                    pod: pod.name.clone(),
                    key: (state.namespace.clone(), state.name.clone(), container.to_owned()),
                    node: state.node.clone(),
                    is_limited: state.limited.iter().any(|limited| limited == container),
                    shows_network,
                };
                let proxy = proxy.filter(|_| pod.proxy.is_some());
                if let Some(proxy) = proxy {
                    watched.push(container(proxy, format!("{}-proxy", pod.name), Role::Proxy, true));
                }
                if workload.serves() {
                    watched.push(container(&workload.name, pod.name.clone(), Role::App, proxy.is_none()));
                }
            }
        }
        watched.extend(self.gateways.iter().map(|pod| Watched {
            name: pod.proxy_name.clone(),
            role: Role::Proxy,
            pod: pod.name.clone(),
            key: (pod.state.namespace.clone(), pod.state.name.clone(), CONTAINER.to_owned()),
            node: pod.state.node.clone(),
            is_limited: pod.state.limited.iter().any(|limited| limited == CONTAINER),
            shows_network: true,
        }));
        watched.extend(self.shared_containers());
        self.watched = watched;
    }

    /// Those of the mesh itself. Who may not list its pods goes without them, and the report says so.
    fn shared_containers(&mut self) -> Vec<Watched> {
        let mut watched = Vec::new();
        for shared in self.plug.shared() {
            let pods = self.cluster.connected.api.list("v1", "Pod", shared.namespace, &shared.selector);
            let pods = match pods {
                Ok(pods) => pods,
                Err(error) => {
                    self.lasting_notes.push(format!(
                        "usage of {} is not known: {}",
                        shared.name,
                        in_one_line(&error)
                    ));
                    continue;
                }
            };
            for (number, pod) in (1..).zip(&pods) {
                let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
                let name = if pods.len() == 1 {
                    shared.name.to_owned()
                } else {
                    format!("{}-{number}", shared.name)
                };
                for container in pod["spec"]["containers"].as_array().into_iter().flatten().take(1) {
                    watched.push(Watched {
                        name: name.clone(),
                        role: shared.role,
                        pod: text(&pod["metadata"]["name"]),
                        key: (
                            text(&pod["metadata"]["namespace"]),
                            text(&pod["metadata"]["name"]),
                            text(&container["name"]),
                        ),
                        node: text(&pod["spec"]["nodeName"]),
                        is_limited: !container["resources"]["limits"]["cpu"].is_null(),
                        shows_network: true,
                    });
                }
            }
        }
        watched
    }

    /// Counters now, of kubelets as they sampled them last.
    pub(super) fn read_usage(&mut self) -> Snapshot {
        let now = Duration::from_nanos(unix_ns(Timestamp::now()));
        let mut components = self.read_generators();
        let (samples, errors) = self.read_kubelets();
        for error in errors {
            self.note(error);
        }
        let known: Vec<ComponentSnapshot> = self
            .watched
            .iter()
            .filter_map(|watched| Some(snapshot_of(watched, samples.get(&watched.key)?)))
            .collect();
        components.extend(self.in_window(known, now));
        Snapshot { components, gateways: self.read_gateways(), ..Snapshot::default() }
    }

    fn read_generators(&self) -> Vec<ComponentSnapshot> {
        let topology = &self.spec.topology;
        let drivers = topology.drivers.iter().flat_map(|driver| {
            topology.generator_names(driver).zip(&self.pods[driver.at]).zip(self.workers_of(driver.at))
        });
        let read = side_by_side(drivers, |((name, pod), worker)| {
            let Status { now_ns, usage } = worker.status().ok()?;
            Some(generator_snapshot(name, &pod.name, now_ns, &usage?))
        });
        read.into_iter().flatten().collect()
    }

    fn read_kubelets(&self) -> (BTreeMap<Key, Sample>, Vec<String>) {
        if !self.cluster.settings.reads_nodes {
            let note = "usage of services and proxies is not known: kubelets are not read (--without-nodes)";
            return (BTreeMap::new(), vec![note.to_owned()]);
        }
        let nodes: BTreeSet<&str> = self.watched.iter().map(|watched| watched.node.as_str()).collect();
        let (api, watched) = (&self.cluster.connected.api, &self.watched);
        let pages = side_by_side(nodes, |node| {
            let operation = format!("read the kubelet of node {node}");
            let path = |page: &str| format!("/api/v1/nodes/{node}/proxy/{page}");
            let has_limits = watched.iter().any(|watched| watched.node == node && watched.is_limited);
            let summary = api.get_json(&operation, &path("stats/summary"));
            let throttling =
                has_limits.then(|| api.get_text(&operation, &path("metrics/cadvisor"))).transpose();
            (summary, throttling)
        });
        let (mut samples, mut errors) = (BTreeMap::new(), Vec::new());
        for (summary, throttling) in pages {
            match summary {
                Ok(summary) => read_summary(&summary, &mut samples),
                Err(error) => errors
                    .push(format!("usage of services and proxies is not known: {}", in_one_line(&error))),
            }
            match throttling {
                Ok(page) => read_throttling(&page.unwrap_or_default(), &mut samples),
                Err(error) => errors.push(format!("throttling is not known: {}", in_one_line(&error))),
            }
        }
        (samples, errors)
    }

    /// Notes how far samples are from the window. A container without a new sample since the window opened is left out:
    /// nothing is known of it.
    fn in_window(&mut self, components: Vec<ComponentSnapshot>, now: Duration) -> Vec<ComponentSnapshot> {
        let Some(opened) = self.trial.opened.clone() else {
            let opened = components.iter().map(|component| (component.name.clone(), component.at)).collect();
            self.trial.opened = Some((now, opened));
            return components;
        };
        let (opened_at, opened) = opened;
        let (new, stale): (Vec<_>, Vec<_>) = components
            .into_iter()
            .partition(|component| opened.get(&component.name).is_none_or(|at| component.at > *at));
        if !stale.is_empty() {
            let names: Vec<&str> = stale.iter().map(|component| component.name.as_str()).collect();
            self.note(format!(
                "usage of {} is not known: its kubelet took no sample within the window; a longer `load.duration` helps",
                names.join(", ")
            ));
        }
        let spans = new.iter().filter_map(|component| Some((*opened.get(&component.name)?, component.at)));
        let spans: Vec<(Duration, Duration)> = spans.collect();
        let late = |(open, close): &(Duration, Duration)| {
            opened_at.abs_diff(*open).max(now.abs_diff(*close)).as_secs_f64()
        };
        let farthest = spans.iter().map(late).fold(0.0, f64::max);
        if !spans.is_empty() {
            self.note(format!(
                "usage of services and proxies is between two samples of kubelets, up to {farthest:.1} s from the ends of the window"
            ));
        }
        new
    }

    fn note(&mut self, note: String) {
        if !self.trial.notes.contains(&note) {
            self.trial.notes.push(note);
        }
    }
}

fn snapshot_of(watched: &Watched, sample: &Sample) -> ComponentSnapshot {
    let network = sample.network.filter(|_| watched.shows_network);
    ComponentSnapshot {
        pod: Some(watched.pod.clone()),
        cpu: CpuTimes { total: sample.cpu, ..CpuTimes::default() },
        cpu_source: KUBELET.to_owned(),
        memory: ComponentMemory {
            resident_bytes: sample.anonymous_bytes,
            working_set_bytes: sample.working_set_bytes,
            anonymous_bytes: sample.anonymous_bytes,
        },
        network: network.map(|(received_bytes, sent_bytes)| NetworkUsage { received_bytes, sent_bytes }),
        throttling: sample.throttling.map(|(of_periods, periods, time_s)| Throttling {
            periods,
            of_periods: Some(of_periods),
            time_s,
        }),
        ..ComponentSnapshot::new(&watched.name, watched.role, sample.at)
    }
}

fn generator_snapshot(name: String, pod: &str, now_ns: u64, usage: &Usage) -> ComponentSnapshot {
    let nanoseconds = Duration::from_nanos;
    ComponentSnapshot {
        pod: Some(pod.to_owned()),
        cpu: CpuTimes {
            total: nanoseconds(usage.cpu_ns),
            user: nanoseconds(usage.user_ns),
            system: nanoseconds(usage.system_ns),
        },
        cpu_source: usage.source.clone(),
        memory: ComponentMemory {
            resident_bytes: usage.anonymous_bytes,
            working_set_bytes: usage.memory_bytes,
            anonymous_bytes: usage.anonymous_bytes,
        },
        network: usage
            .received_bytes
            .zip(usage.sent_bytes)
            .map(|(received_bytes, sent_bytes)| NetworkUsage { received_bytes, sent_bytes }),
        throttling: usage.throttled_periods.map(|periods| Throttling {
            periods,
            of_periods: usage.periods,
            time_s: nanoseconds(usage.throttled_ns.unwrap_or(0)).as_secs_f64(),
        }),
        ..ComponentSnapshot::new(name, Role::Generator, nanoseconds(now_ns))
    }
}
