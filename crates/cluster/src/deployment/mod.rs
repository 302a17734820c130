//! Running workloads on a cluster: `experiment`'s `Deployment`.
//!
//! `rollout.rs` brings one up, `worker.rs` follows generators, `pod.rs` has pods with open ports.
//! `usage.rs` reads usage as samples (`sample.rs`) from workers, and from kubelets (`kubelet.rs`, `cadvisor.rs`) or a
//! Prometheus (`scraped.rs`). `place.rs` has what the course of a trial ([`mesh::trial`]) reads here,
//! `unresponsive.rs` notes for how long components were unresponsive, and `shared.rs` finds the pods of the mesh
//! that the run shares with others.

mod cadvisor;
mod invariants;
mod kubelet;
mod place;
mod pod;
mod rollout;
mod sample;
mod scraped;
mod shared;
mod unresponsive;
mod usage;
mod worker;
mod written;

pub use self::invariants::{check_kubelet, check_prometheus, check_worker};
pub use self::rollout::RolledOut;
pub(crate) use self::rollout::roll_out;

use self::place::Running;
use self::pod::RunningPod;
use self::rollout::PROBE;
use self::unresponsive::{API, UnresponsivePeriods};
use self::usage::UsageReader;
use self::worker::{Followed, Worker, release_delay, send_line, send_signal};
use self::written::Written;
use crate::Result;
use crate::environment::Cluster;
use crate::placement;
use crate::plug::{ENVOY, MeshPlug};
use crate::startup::log_tail;
use crate::worker::protocol::Signal;
use experiment::environment::deploy::{
    ComponentFailure, Deployment, DriverEnd, DriverEvent, DriverEventKind, DriverLoad, DriverStart,
    HealthProbe, TrialEvidence,
};
use experiment::environment::{DeploymentSpec, EnvironmentError, ErrorContext as _, Snapshot, error_chain};
use experiment::topology::WorkloadId;
use jiff::{SignedDuration, Timestamp};
use mesh::concurrent::side_by_side;
use mesh::trial::course::{Course, KeepsCourse as _};
use results::FleetAsk;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant, SystemTime};

/// Maximum time without a response from the API while load runs: workers carry on without it.
const AWAY_TIMEOUT: Duration = Duration::from_secs(15);

/// Running workloads. Dropping it removes their objects.
#[derive(Debug)]
pub(crate) struct ClusterDeployment<'a> {
    running: Running<'a>,
    usage: UsageReader,
    /// Notes that every trial gets.
    lasting_notes: Vec<String>,
    /// Number of the current trial's generators.
    number: u64,
    /// The worker of each generator in the current trial.
    generators: BTreeMap<String, (WorkloadId, usize)>,
    sender: Sender<DriverEvent>,
    events: Receiver<DriverEvent>,
    is_over: Arc<AtomicBool>,
    api_away_since: Option<Instant>,
    /// Unresponsive periods in the current trial.
    unresponsive_periods: UnresponsivePeriods,
    written: Written,
}

/// A note for every trial of a deployment whose generators share nodes with measured pods.
fn note_shared_nodes(running: &Running<'_>) -> Option<String> {
    let (mut generators, mut measured) = (BTreeSet::new(), BTreeSet::new());
    for (workload, pods) in running.spec.topology.workloads.iter().zip(&running.pods) {
        let nodes = if workload.serves() { &mut measured } else { &mut generators };
        nodes.extend(pods.iter().map(|pod| pod.state.node.as_str()));
    }
    measured.extend(running.gateways.iter().map(|gateway| gateway.state.node.as_str()));
    placement::note_shared_nodes(&generators, &measured)
}

/// A note on the offset of the workers' clocks from this machine's. Start times are corrected by it.
fn note_clocks(running: &Running<'_>) -> Option<String> {
    let workers = running.workers.iter().flatten();
    let worker = workers.max_by_key(|worker| worker.clock.offset_ns.abs())?;
    let ms = |ns: i128| ns as f64 / 1e6;
    let allowed = if worker.clock.correction_ns() == 0 {
        "within the error of the reading, so that no start allows for it"
    } else {
        "which its start allows for"
    };
    Some(format!(
        "clocks: that of {} is farthest from this machine's, {:.2} ms ± {:.2} ms, {allowed}",
        worker.pod,
        ms(worker.clock.offset_ns),
        ms(worker.clock.bound_ns)
    ))
}

impl Drop for ClusterDeployment<'_> {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

impl<'a> ClusterDeployment<'a> {
    /// Brings up a deployment whose targets answer.
    pub(crate) fn bring_up(
        cluster: &'a Cluster,
        spec: &DeploymentSpec,
        plug: Box<dyn MeshPlug>,
        label: &str,
    ) -> Result<Self> {
        let (running, written) = rollout::bring_up(cluster, spec, plug, label)?;
        let (sender, events) = channel();
        let lasting_notes = running.plug.notes().into_iter().chain(running.shared.notes.iter().cloned());
        let lasting_notes = lasting_notes.chain(note_shared_nodes(&running)).chain(note_clocks(&running));
        Ok(Self {
            lasting_notes: lasting_notes.collect(),
            usage: UsageReader::new(&running),
            running,
            number: PROBE,
            generators: BTreeMap::new(),
            sender,
            events,
            is_over: Arc::default(),
            api_away_since: None,
            unresponsive_periods: UnresponsivePeriods::default(),
            written,
        })
    }

    fn worker_of(&self, generator: &str) -> Option<&Worker> {
        let (workload, pod) = *self.generators.get(generator)?;
        self.running.workers[workload].get(pod)
    }

    fn start_generator(&mut self, start: &DriverStart) -> Result<()> {
        let operation = || format!("start {}", start.generator);
        let driver = self.running.spec.topology.driver(&start.driver).cloned();
        let driver =
            driver.ok_or_else(|| EnvironmentError::new(operation(), "the topology has no such driver"))?;
        let destination = self.running.destination_of(&driver);
        let worker = self.running.workers[driver.at].get(start.pod).ok_or_else(|| {
            EnvironmentError::new(operation(), format!("there is no pod {} for it", start.pod + 1))
        })?;
        worker.start(self.number, start, &destination)?;
        let followed = Followed {
            generator: start.generator.clone(),
            number: self.number,
            admin: worker.admin.clone(),
            pod: worker.pod.clone(),
            unresponsive_periods: self.unresponsive_periods.clone(),
            events: self.sender.clone(),
            is_over: Arc::clone(&self.is_over),
        };
        followed.follow();
        self.generators.insert(start.generator.clone(), (driver.at, start.pod));
        Ok(())
    }

    fn failure(&mut self) -> Option<ComponentFailure> {
        let asked_at = Instant::now();
        let pods = match self.written.pods() {
            Ok(pods) => pods,
            Err(error) => {
                let away = self.api_away_since.get_or_insert(asked_at).elapsed();
                self.unresponsive_periods.note(API, away);
                let how = format!("has not answered for {} s: {}", away.as_secs(), error_chain(&error));
                return (away > AWAY_TIMEOUT).then_some(ComponentFailure { component: API.to_owned(), how });
            }
        };
        if let Some(since) = self.api_away_since.take() {
            self.unresponsive_periods.note(API, since.elapsed());
        }
        let by_name: BTreeMap<(&str, &str), &Value> = pods
            .iter()
            .filter_map(|pod| {
                let metadata = &pod["metadata"];
                Some(((metadata["namespace"].as_str()?, metadata["name"].as_str()?), pod))
            })
            .collect();
        self.running.all_pods().find_map(|pod| {
            let now = by_name.get(&(pod.state.namespace.as_str(), pod.state.name.as_str()));
            let how = pod.state.failure(now.copied())?;
            Some(ComponentFailure { component: pod.name.clone(), how })
        })
    }

    /// A proxy of the mesh that has failed since the deployment began.
    fn failure_of_mesh(&self) -> Option<ComponentFailure> {
        let proxies = self.running.shared.pods.iter().filter(|pod| pod.is_proxy());
        let api = &self.running.cluster.connected.api;
        let failures = side_by_side(proxies, |pod| pod.failure(api));
        failures.into_iter().flatten().next()
    }

    /// Ends the generators of a failed pod, which can no longer report it themselves.
    fn end_generators_of(&self, failure: &ComponentFailure) {
        for (generator, (workload, pod)) in &self.generators {
            if self.running.pods[*workload].get(*pod).is_some_and(|pod| pod.name == failure.component) {
                let result = Err(format!("its pod {}", failure.how));
                let end = DriverEnd { exit_code: None, result, last_lines: Vec::new() };
                let kind = DriverEventKind::Ended(Box::new(end));
                // This deployment holds the receiver.
                let _ = self.sender.send(DriverEvent { generator: generator.clone(), kind });
            }
        }
    }

    /// Keeps the last log lines of a failed pod, for the report and with the run's logs.
    fn keep_log(&self, component: &str, evidence: &mut TrialEvidence) {
        let find = |pods: &'_ [RunningPod]| pods.iter().position(|pod| pod.name == component);
        let mut workloads = self.running.spec.topology.workloads.iter().zip(&self.running.pods);
        let of_workload =
            workloads.find_map(|(workload, pods)| Some((workload.name.as_str(), &pods[find(pods)?])));
        let of_gateway = || Some((ENVOY.container, &self.running.gateways[find(&self.running.gateways)?]));
        let Some((container, pod)) = of_workload.or_else(of_gateway) else { return };
        let place = (pod.state.namespace.as_str(), pod.state.name.as_str());
        let lines = log_tail(&self.running.cluster.connected.api, place, container, [true, false]);
        if !lines.is_empty() {
            let file = format!("{}.log", component.replace('/', "."));
            // The report has them too.
            let _ = fs::write(self.running.log_dir.join(file), lines.join("\n"));
            evidence.log_tails.insert(component.to_owned(), lines);
        }
    }
}

impl Deployment for ClusterDeployment<'_> {
    fn begin_trial(&mut self, label: &str) -> Result<()> {
        self.running.log_dir = self.running.cluster.log_dir(label);
        fs::create_dir_all(&self.running.log_dir)
            .context(format!("create the log folder {}", self.running.log_dir.display()))?;
        self.is_over.store(true, Ordering::Relaxed);
        self.is_over = Arc::default();
        (self.sender, self.events) = channel();
        self.generators.clear();
        self.unresponsive_periods = UnresponsivePeriods::default();
        self.number += 1;
        self.usage.begin(self.lasting_notes.clone());
        if let Some(ComponentFailure { component, how }) = self.failure().or_else(|| self.failure_of_mesh()) {
            return Err(EnvironmentError::new("begin a trial", format!("{component} {how}")));
        }
        self.running.in_course(Course::begin)
    }

    fn start(&mut self, generators: &[DriverStart]) -> Result<()> {
        generators.iter().try_for_each(|start| self.start_generator(start))
    }

    fn release(&mut self, generator: &str, window_opens_at: SystemTime) -> Result<()> {
        let operation = || format!("start the load of {generator}");
        let Some(worker) = self.worker_of(generator) else {
            return Err(EnvironmentError::new(operation(), "it is not held"));
        };
        let instant = Timestamp::try_from(window_opens_at).context(operation())?;
        let correction = SignedDuration::from_nanos(worker.clock.correction_ns());
        let by_its_clock = instant.checked_add(correction).context(operation())?;
        send_line(&worker.admin, by_its_clock.to_string());
        Ok(())
    }

    fn release_delay(&self) -> Duration {
        release_delay(
            self.running.workers.iter().flatten().map(Worker::slowest_message).max().unwrap_or_default(),
        )
    }

    /// Does nothing: starting a fleet is already an error.
    fn act(&mut self, _fleet: &str, _ask: &FleetAsk) {}

    fn next_event(&mut self, timeout: Duration) -> Option<DriverEvent> {
        self.events.recv_timeout(timeout).ok()
    }

    fn interrupt(&mut self, generator: &str) {
        if let Some(worker) = self.worker_of(generator) {
            send_signal(&worker.admin, Signal::Interrupt);
        }
    }

    fn kill(&mut self, generator: &str) {
        if let Some(worker) = self.worker_of(generator) {
            send_signal(&worker.admin, Signal::Kill);
        }
    }

    fn snapshot(&mut self) -> Result<Snapshot> {
        Ok(self.usage.read(&mut self.running))
    }

    fn complete_opening(&mut self, opened: &mut Snapshot) {
        self.usage.add_first_samples(&self.running, opened);
    }

    fn health(&mut self, _probe: HealthProbe) -> Option<ComponentFailure> {
        let failure = self.failure()?;
        self.end_generators_of(&failure);
        Some(failure)
    }

    fn end_trial(&mut self, sent: &[DriverLoad]) -> TrialEvidence {
        for generator in self.generators.keys().cloned().collect::<Vec<_>>() {
            self.kill(&generator);
        }
        let failure = self.failure().or_else(|| self.failure_of_mesh());
        let mut shares = Vec::new();
        let mut evidence = self.running.in_course(|course, cluster| {
            course.end(cluster, &cluster.counted_gateways, sent, |_, replicas, _| {
                shares = cluster.shares(replicas);
            })
        });
        evidence.notes = mem::take(&mut self.usage.notes);
        evidence.notes.extend(shares);
        evidence.versions = self.running.proxy_versions();
        if let Some(ComponentFailure { component, how }) = failure {
            evidence.path.proven = false;
            evidence.path.reasons.push(format!("{component} {how}"));
            self.keep_log(&component, &mut evidence);
        }
        for reason in self.unresponsive_periods.reasons() {
            evidence.path.proven = false;
            evidence.path.reasons.push(reason);
        }
        evidence
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        // Once: dropping what runs tells those that are left.
        mem::take(&mut self.running.workers).iter().flatten().for_each(Worker::finish);
        self.written.remove()
    }
}
