//! How a deployment comes up: objects written, pods awaited with one clear line for each reason why they do not run, ports
//! opened, and a first request answered.

use super::worker::Worker;
use super::{ClusterDeployment, RunningPod, Written};
use crate::Result;
use crate::environment::Cluster;
use crate::objects::{self, counters_port, url};
use crate::patience::{API_TIMEOUT, patiently};
use crate::plug::MeshPlug;
use crate::pods::PodState;
use crate::startup::Startup;
use crate::worker::protocol::{End, StartArgument};
use experiment::Protocol;
use experiment::environment::{DeploymentSpec, EnvironmentError, in_one_line};
use experiment::topology::{DriverPlacement, WorkloadId};
use mesh::kubernetes::object_ref::ObjectRef;
use mesh::names::ADMIN_PORT;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::{Duration, Instant};

/// Time without a pod that has become ready.
const ROLLOUT_TIMEOUT: Duration = Duration::from_secs(180);
/// Time until a first request is answered: names and routes of Services take a moment.
const SERVING_TIMEOUT: Duration = Duration::from_secs(60);
const WORKER_TIMEOUT: Duration = Duration::from_secs(30);
/// Time until objects that the API does not take are given up: a namespace may still lack its accounts.
const APPLY_TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Number of the first generator of a worker: it probes whether the target serves.
pub(super) const PROBE: u64 = 0;

/// Kinds that make pods: their accounts and files come first.
const MAKES_PODS: [&str; 2] = ["Deployment", "Job"];

/// Objects of a deployment whose pods are all ready. Dropping it removes the objects.
#[derive(Debug)]
pub struct RolledOut {
    written: Written,
    /// Of each workload.
    pods: Vec<Vec<PodState>>,
}

impl RolledOut {
    /// Objects that were written, without namespaces.
    pub fn objects(&self) -> usize {
        self.written.objects.len()
    }

    pub fn pods(&self) -> usize {
        self.pods.iter().map(Vec::len).sum()
    }

    /// Removes the objects and waits until their pods are gone.
    pub fn remove(mut self) -> Result<()> {
        self.written.remove()
    }
}

pub(crate) fn bring_up<'a>(
    cluster: &'a Cluster,
    spec: &DeploymentSpec,
    plug: Box<dyn MeshPlug>,
    label: &str,
) -> Result<ClusterDeployment<'a>> {
    let RolledOut { written, pods } = roll_out(cluster, spec, &*plug)?;
    let pods = open(cluster, spec, &*plug, pods)?;
    let workers = connect_workers(cluster, spec, &pods)?;
    let mut deployment = ClusterDeployment::new(cluster, spec, plug, written, pods, workers, label);
    deployment.wait_until_serving()?;
    Ok(deployment)
}

/// Writes the objects of a deployment and waits until every pod is ready.
pub(crate) fn roll_out(cluster: &Cluster, spec: &DeploymentSpec, plug: &dyn MeshPlug) -> Result<RolledOut> {
    let all = objects::objects(spec, &cluster.settings, plug)?;
    let api = &cluster.connected.api;
    let (first, others): (Vec<Value>, Vec<Value>) =
        all.into_iter().partition(|object| object["kind"] == "Namespace");
    let (before_pods, with_pods): (Vec<Value>, Vec<Value>) =
        others.into_iter().partition(|object| !MAKES_PODS.iter().any(|kind| object["kind"] == *kind));
    let references = before_pods.iter().chain(&with_pods).map(ObjectRef::from_object);
    let written = Written {
        api: Arc::clone(api),
        selector: cluster.settings.selector(),
        namespaces: spec
            .topology
            .namespaces()
            .into_iter()
            .map(|name| cluster.settings.namespace(name))
            .collect(),
        objects: references.collect::<Result<_>>()?,
    };
    for objects in [&first, &before_pods, &with_pods] {
        cluster.check_not_stopped("write the objects of a deployment")?;
        patiently(APPLY_TIMEOUT, || api.apply(objects)).map_err(EnvironmentError::lasting)?;
    }
    let pods = wait_until_running(cluster, spec, &written)?;
    Ok(RolledOut { written, pods })
}

/// Waits until every pod is ready. Returns those of each workload, in their order.
fn wait_until_running(
    cluster: &Cluster,
    spec: &DeploymentSpec,
    written: &Written,
) -> Result<Vec<Vec<PodState>>> {
    let wanted = spec.topology.pods();
    let (mut most_ready, mut changed_at) = (0, Instant::now());
    let startup = Startup::new(&written.api, &written.namespaces, &written.selector);
    loop {
        cluster.check_not_stopped("wait for pods")?;
        let looked_at = Instant::now();
        let pods = patiently(API_TIMEOUT, || written.pods())?;
        let pods: Vec<PodState> = pods.iter().map(PodState::read).collect();
        let by_workload = by_workload(cluster, spec, &pods);
        let ready = by_workload.iter().flatten().filter(|pod| pod.is_ready).count();
        if ready == wanted {
            return Ok(by_workload);
        }
        if ready > most_ready {
            (most_ready, changed_at) = (ready, Instant::now());
        }
        cluster.progress.report(&format!("{ready} of {wanted} pods are ready"));
        startup.check(&pods)?;
        if changed_at.elapsed() > ROLLOUT_TIMEOUT {
            let reason =
                format!("{ready} of {wanted} are ready, and no more since {} s", ROLLOUT_TIMEOUT.as_secs());
            return Err(EnvironmentError::new("wait for pods", reason));
        }
        // Lists of a thousand pods are work for the API server, which has others to do.
        thread::sleep(POLL_INTERVAL.max(4 * looked_at.elapsed()));
    }
}

fn by_workload(cluster: &Cluster, spec: &DeploymentSpec, pods: &[PodState]) -> Vec<Vec<PodState>> {
    let workloads = spec.topology.workloads.iter();
    let own = workloads.map(|workload| {
        let namespace = cluster.settings.namespace(&workload.namespace);
        let is_own = |pod: &&PodState| pod.namespace == namespace && pod.app == workload.name;
        let mut own: Vec<PodState> = pods.iter().filter(is_own).cloned().collect();
        own.sort_by(|a, b| (a.index, &a.name).cmp(&(b.index, &b.name)));
        own
    });
    own.collect()
}

/// Opens the ports by which pods are asked for their counters.
fn open(
    cluster: &Cluster,
    spec: &DeploymentSpec,
    plug: &dyn MeshPlug,
    pods: Vec<Vec<PodState>>,
) -> Result<Vec<Vec<RunningPod>>> {
    let api = &cluster.connected.api;
    let mut all = Vec::with_capacity(pods.len());
    for (workload, states) in spec.topology.workloads.iter().zip(pods) {
        let mut running = Vec::with_capacity(states.len());
        for (name, state) in workload.pod_names().zip(states) {
            let forward = |port| api.forward(&state.namespace, &state.name, port);
            let service = workload.serves().then(|| forward(counters_port(workload))).transpose()?;
            let has_proxy = workload.in_mesh && plug.proxy_container().is_some();
            let proxy = has_proxy.then(|| forward(ADMIN_PORT)).transpose()?;
            running.push(RunningPod { name, state, service, proxy, asked: AtomicU64::default() });
        }
        all.push(running);
    }
    Ok(all)
}

/// A worker in each pod of a driver's workload, each with its clock read.
fn connect_workers(
    cluster: &Cluster,
    spec: &DeploymentSpec,
    pods: &[Vec<RunningPod>],
) -> Result<Vec<Vec<Worker>>> {
    let api = &cluster.connected.api;
    let mut all = Vec::with_capacity(pods.len());
    for (workload, pods) in spec.topology.workloads.iter().zip(pods) {
        let mut workers = Vec::new();
        for pod in pods.iter().filter(|_| !workload.serves()) {
            let mut worker = Worker::connect(api, &pod.state.namespace, &pod.state.name)?;
            let began = Instant::now();
            while let Err(error) = worker.status() {
                cluster.check_not_stopped("wait for workers")?;
                if began.elapsed() > WORKER_TIMEOUT {
                    return Err(error);
                }
                thread::sleep(POLL_INTERVAL);
            }
            worker.read_clock()?;
            workers.push(worker);
        }
        all.push(workers);
    }
    Ok(all)
}

impl ClusterDeployment<'_> {
    /// Sends single requests from a worker of each driver until one is answered.
    fn wait_until_serving(&mut self) -> Result<()> {
        let topology = Arc::clone(&self.spec.topology);
        for driver in &topology.drivers {
            let protocol = topology.workloads[driver.target].protocol;
            // What requests of the others are, the drivers alone know.
            if matches!(protocol, Protocol::Http1 | Protocol::Http2) {
                self.wait_for_target(driver, protocol)?;
            }
        }
        Ok(())
    }

    fn wait_for_target(&self, driver: &DriverPlacement, protocol: Protocol) -> Result<()> {
        let url = self.url_of(driver.target, &driver.endpoint);
        let Some(worker) = self.workers_of(driver.at).first() else { return Ok(()) };
        let began = Instant::now();
        loop {
            self.cluster.check_not_stopped("wait until the target serves")?;
            let last = match probe(worker, &url, protocol) {
                Ok(0) => "no response".to_owned(),
                Ok(_) => return Ok(()),
                Err(error) => in_one_line(&error),
            };
            if began.elapsed() > SERVING_TIMEOUT {
                let operation = format!("wait until {url} answers a request from {}", worker.pod);
                return Err(EnvironmentError::new(operation, last));
            }
        }
    }

    pub(super) fn url_of(&self, target: WorkloadId, endpoint: &str) -> String {
        url(&self.spec.topology, target, endpoint, &self.cluster.settings)
    }
}

/// Responses to one request.
fn probe(worker: &Worker, url: &str, protocol: Protocol) -> Result<u64> {
    let text = |text: &str| StartArgument::Text(text.to_owned());
    let mut arguments = ["load", url, "--clients=1", "--requests=1", "--timeout=2s"].map(text).to_vec();
    if protocol == Protocol::Http2 {
        arguments.push(text("--http=2"));
    }
    worker.start_with(PROBE, arguments)?;
    let began = Instant::now();
    loop {
        let progress = worker.progress(0)?;
        match progress.ended {
            Some(End { result_bytes: Some(_), .. }) => return Ok(worker.result()?.requests.completed),
            Some(_) => {
                let last = progress.lines.last().cloned().unwrap_or_default();
                return Err(EnvironmentError::new("probe the target", last));
            }
            None => {}
        }
        if began.elapsed() > WORKER_TIMEOUT {
            return Err(EnvironmentError::new("probe the target", "the probe does not end"));
        }
        thread::sleep(POLL_INTERVAL / 5);
    }
}
