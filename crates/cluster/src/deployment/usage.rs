//! Usage of every component at one moment. Workers read their generators' cgroups at that moment. For
//! services and proxies it comes from kubelets, whose samples have times of their own, or from a Prometheus
//! that has scraped them.

use super::kubelet::Subject;
use super::place::Running;
use super::pod::OpenProxy;
use super::sample::{Key, Opening, Reading, Sample, Samples, Traffic};
use crate::plug::ENVOY;
use crate::prometheus::Prometheus;
use crate::settings::SURE_WINDOW;
use crate::worker::protocol::{Status, Usage, unix_ns};
use experiment::environment::{ComponentMemory, ComponentSnapshot, CpuTimes, Snapshot, error_chain};
use jiff::Timestamp;
use mesh::concurrent::side_by_side;
use mesh::trial::course::{Course, KeepsCourse as _};
use mesh::trial::gateways::{Reading as GatewayReading, read_gateways};
use mesh::trial::place::Place as _;
use results::{NetworkUsage, Role, Throttling};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Time between two readings while first samples are expected. Each reading is work for kubelets.
const READ_INTERVAL: Duration = Duration::from_secs(2);

/// Gateways in a cluster flush their histograms only every few seconds.
const IN_WINDOW: GatewayReading =
    GatewayReading { clock: || Duration::from_nanos(unix_ns(Timestamp::now())), has_durations: false };

/// A container whose usage belongs to the experiment.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    pub name: String,
    pub role: Role,
    pub pod: String,
    pub key: Key,
    pub node: String,
    pub shows_network: bool,
}

/// Usage of the containers of a deployment, from the opening of a window to its close.
#[derive(Debug)]
pub(super) struct UsageReader {
    watched: Vec<Watched>,
    /// Present while the window is open.
    window: Option<Window>,
    /// Notes on the current trial.
    pub notes: Vec<String>,
}

/// An open window.
#[derive(Debug)]
struct Window {
    opening: Opening,
    opened_at: Instant,
    read_at: Instant,
    /// True if no first sample is expected any more.
    is_complete: bool,
}

impl Window {
    fn new(opening: Opening) -> Self {
        let now = Instant::now();
        Self { opening, opened_at: now, read_at: now, is_complete: false }
    }

    /// True if it is time to look for first samples.
    fn is_due(&mut self) -> bool {
        let is_due = !self.is_complete
            && self.opened_at.elapsed() < SURE_WINDOW
            && self.read_at.elapsed() > READ_INTERVAL;
        if is_due {
            self.read_at = Instant::now();
        }
        is_due
    }
}

/// The containers to look up at kubelets: services, proxies next to them and to drivers, and pods of the mesh.
fn watched(running: &Running<'_>) -> Vec<Watched> {
    let mut watched = Vec::new();
    for (workload, pods) in running.spec.topology.workloads.iter().zip(&running.pods) {
        for pod in pods {
            let state = &pod.state;
            let container = |container: &str, name: String, role, shows_network| Watched {
                name,
                role,
                pod: pod.name.clone(),
                key: (state.namespace.clone(), state.name.clone(), container.to_owned()),
                node: state.node.clone(),
                shows_network,
            };
            if let Some(OpenProxy { name, kind, .. }) = &pod.proxy {
                watched.push(container(kind.container, name.clone(), Role::Proxy, true));
            }
            if workload.serves() {
                let shows_network = pod.proxy.is_none();
                watched.push(container(&workload.name, pod.name.clone(), Role::App, shows_network));
            }
        }
    }
    watched.extend(running.gateways.iter().map(|pod| Watched {
        name: pod.name.clone(),
        role: Role::Proxy,
        pod: pod.name.clone(),
        key: (pod.state.namespace.clone(), pod.state.name.clone(), ENVOY.container.to_owned()),
        node: pod.state.node.clone(),
        shows_network: true,
    }));
    for pod in &running.shared.pods {
        watched.extend(pod.containers.iter().enumerate().map(|(number, container)| Watched {
            name: if number == 0 { pod.name.clone() } else { format!("{}-{container}", pod.name) },
            role: pod.component.role,
            pod: pod.state.name.clone(),
            key: (pod.state.namespace.clone(), pod.state.name.clone(), container.clone()),
            node: pod.state.node.clone(),
            shows_network: number == 0,
        }));
    }
    watched
}

impl UsageReader {
    pub fn new(running: &Running<'_>) -> Self {
        Self { watched: watched(running), window: None, notes: Vec::new() }
    }

    /// Begins a trial, with notes that every trial gets.
    pub fn begin(&mut self, notes: Vec<String>) {
        (self.window, self.notes) = (None, notes);
    }

    /// Counters now. At the close, services and proxies have the kubelets' last sample. At the opening that sample is
    /// older than the window, so [`Self::add_first_samples`] adds them later.
    pub fn read(&mut self, running: &mut Running<'_>) -> Snapshot {
        let now = Duration::from_nanos(unix_ns(Timestamp::now()));
        let mut components = read_generators(running);
        // Before anything that takes time: what is called meanwhile is not in the window.
        running.in_course(Course::open_window);
        let Reading { samples, nodes, other_proxies, mut notes } = self.read_samples(running);
        notes.extend(note_on_others(running, other_proxies));
        let mut known = self.by_component(&samples);
        let mut snapshot = Snapshot {
            gateways: read_gateways(&running.counted_gateways, &running.proxies(), IN_WINDOW),
            ..Snapshot::default()
        };
        match self.window.take() {
            None => self.window = Some(Window::new(Opening::new(now, known))),
            Some(Window { opening, .. }) => {
                notes.extend(self.note_on_absent(&known));
                notes.extend(known.keep_new(now, &opening));
                components.extend(self.snapshots_of(running, &known));
                snapshot.nodes = nodes;
            }
        }
        notes.into_iter().for_each(|note| self.note(note));
        Snapshot { components, ..snapshot }
    }

    /// Adds the first samples within the window to the snapshot of its opening.
    pub fn add_first_samples(&mut self, running: &Running<'_>, opened: &mut Snapshot) {
        if !self.window.as_mut().is_some_and(Window::is_due) {
            return;
        }
        let Reading { samples, nodes, .. } = self.read_samples(running);
        let known = self.by_component(&samples);
        let Some(Window { opening, is_complete, .. }) = &mut self.window else { return };
        let first = opening.add(known);
        let mut are_nodes_complete = true;
        for node in nodes {
            are_nodes_complete &= opening.add_node(node, &mut opened.nodes);
        }
        // If nothing can be read, later attempts fail too; notes of the snapshots say why.
        *is_complete =
            samples.is_empty() || (are_nodes_complete && opening.components() == self.watched.len());
        opened.components.extend(self.snapshots_of(running, &first));
    }

    fn by_component(&self, samples: &BTreeMap<Key, Sample>) -> Samples {
        let known = self.watched.iter();
        let known = known.filter_map(|watched| Some((watched.name.clone(), *samples.get(&watched.key)?)));
        Samples(known.collect())
    }

    fn snapshots_of(&self, running: &Running<'_>, samples: &Samples) -> Vec<ComponentSnapshot> {
        let source = source(running);
        let known = self.watched.iter();
        known
            .filter_map(|watched| Some(snapshot_of(watched, samples.0.get(&watched.name)?, source)))
            .collect()
    }

    fn read_samples(&self, running: &Running<'_>) -> Reading {
        let pods = running.pods.iter().flatten().map(|pod| (&*pod.state.namespace, &*pod.state.name));
        let shared = self.watched.iter().map(|watched| (&*watched.key.0, &*watched.key.1));
        let own: BTreeSet<(&str, &str)> = pods.chain(shared).collect();
        let settings = &running.cluster.settings;
        let not_known = |why: &str| Reading {
            notes: vec![format!("usage of services and proxies is not known: {why}")],
            ..Reading::default()
        };
        match &settings.prometheus {
            Some(address) => match Prometheus::new(address, &running.cluster.connected.api) {
                Ok(prometheus) => Reading::of_prometheus(&prometheus, &own),
                Err(error) => not_known(&error_chain(&error)),
            },
            None if settings.reads_nodes => self.read_kubelets(
                running,
                Subject { own: &own, proxy: running.plug.pod_proxy().map(|proxy| proxy.container) },
            ),
            None => not_known("kubelets are not read (--without-nodes), and no Prometheus is (--prometheus)"),
        }
    }

    /// Reads the kubelets of all nodes that have pods of the run or shared pods of its mesh.
    fn read_kubelets(&self, running: &Running<'_>, subject: Subject<'_>) -> Reading {
        let nodes = running.pods.iter().flatten().map(|pod| &*pod.state.node);
        let nodes: BTreeSet<&str> = nodes.chain(self.watched.iter().map(|watched| &*watched.node)).collect();
        let api = &running.cluster.connected.api;
        let mut all = Reading::default();
        for reading in side_by_side(nodes, |node| Reading::of_node(api, node, subject)) {
            all.other_proxies += reading.other_proxies;
            all.samples.extend(reading.samples);
            all.nodes.extend(reading.nodes);
            all.notes.extend(reading.notes);
        }
        all
    }

    /// A note on containers without a sample. If nothing at all was read, other notes say why.
    fn note_on_absent(&self, known: &Samples) -> Option<String> {
        let absent = self.watched.iter().filter(|watched| !known.0.contains_key(&watched.name));
        let names: Vec<&str> = absent.map(|watched| watched.name.as_str()).collect();
        (!known.0.is_empty() && !names.is_empty())
            .then(|| format!("usage of {} is not known: there is no sample", names.join(", ")))
    }

    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

fn read_generators(running: &Running<'_>) -> Vec<ComponentSnapshot> {
    let topology = &running.spec.topology;
    let drivers = topology.drivers.iter().flat_map(|driver| {
        topology.generator_names(driver).zip(&running.pods[driver.at]).zip(&running.workers[driver.at])
    });
    let read = side_by_side(drivers, |((name, pod), worker)| {
        let Status { now_ns, usage } = worker.status().ok()?;
        Some(generator_snapshot(name, &pod.name, now_ns, &usage?))
    });
    read.into_iter().flatten().collect()
}

/// A note on shared components: they also work for other pods, and no counter says for which.
fn note_on_others(running: &Running<'_>, other_proxies: usize) -> Option<String> {
    let shared: Vec<&str> = running.plug.shared().iter().map(|shared| shared.name).collect();
    let own = running.pods.iter().flatten().filter(|pod| pod.proxy.is_some()).count();
    (other_proxies > 0 && !shared.is_empty()).then(|| {
            format!(
                "usage of {} is that for {other_proxies} proxies of other pods on these nodes too, beside {own} of this run",
                shared.join(", ")
            )
        })
}

/// Source of the figures of services and proxies, as in results.
fn source(running: &Running<'_>) -> &'static str {
    if running.cluster.settings.prometheus.is_some() { "prometheus" } else { "kubelet" }
}

pub(super) fn snapshot_of(watched: &Watched, sample: &Sample, source: &str) -> ComponentSnapshot {
    let network = sample.network.filter(|_| watched.shows_network);
    ComponentSnapshot {
        pod: Some(watched.pod.clone()),
        cpu: sample.cpu,
        cpu_source: source.to_owned(),
        memory: ComponentMemory {
            resident_bytes: None,
            working_set_bytes: sample.working_set_bytes,
            anonymous_bytes: sample.anonymous_bytes,
        },
        network: network
            .map(|Traffic { received_bytes, sent_bytes, .. }| NetworkUsage { received_bytes, sent_bytes }),
        throttling: sample.throttling.map(|(of_periods, periods, time_s)| Throttling {
            periods,
            of_periods: Some(of_periods),
            time_s,
        }),
        ..ComponentSnapshot::new(&watched.name, watched.role, sample.at)
    }
}

pub(super) fn generator_snapshot(name: String, pod: &str, now_ns: u64, usage: &Usage) -> ComponentSnapshot {
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
            resident_bytes: None,
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
