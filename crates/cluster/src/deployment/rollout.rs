//! Brings up a deployment: writes its objects, waits for its pods (with a line per reason why they do not
//! run), opens ports, and waits for a first response.

use super::place::{Opened, Running};
use super::pod::{RunningPod, open_proxy};
use super::shared::find_shared;
use super::worker::Worker;
use super::written::Written;
use crate::Result;
use crate::check::others_objects;
use crate::cluster::Cluster;
use crate::gateway::{self, Destination, Gateway, GatewayCertificates, NOT_SERVED};
use crate::objects::{self, counters_port};
use crate::plug::{ENVOY, MeshPlug, ProxyKind};
use crate::pods::{NOT_INJECTED, PodState};
use crate::port_forward::PortForward;
use crate::retry::{API_TIMEOUT, retry};
use crate::startup::Startup;
use crate::worker::protocol::{End, StartArgument};
use experiment::Protocol;
use experiment::environment::{DeploymentSpec, EnvironmentError, error_chain};
use experiment::topology::DriverPlacement;
use mesh::istio::objects::ingress;
use mesh::kubernetes::object_ref::ObjectRef;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::{Duration, Instant};

/// Maximum time without another pod becoming ready.
const ROLLOUT_TIMEOUT: Duration = Duration::from_secs(180);
/// Time until a first request is answered: names and routes of Services take a moment.
const SERVING_TIMEOUT: Duration = Duration::from_secs(60);
const WORKER_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum time of retries for objects that the API rejects: a new namespace may still lack its service
/// accounts.
const APPLY_TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Number of a worker's first generator, which probes whether the target serves.
pub(super) const PROBE: u64 = 0;

/// Kinds that create pods. Their accounts and files come first.
const MAKES_PODS: [&str; 2] = ["Deployment", "Job"];

/// Objects of a deployment whose pods are all ready. Dropping it removes the objects.
#[derive(Debug)]
pub struct RolledOut {
    written: Written,
    pods: ReadyPods,
    certificates: Option<GatewayCertificates>,
}

/// Pods that are all ready.
#[derive(Debug)]
struct ReadyPods {
    /// Pods of each workload.
    workloads: Vec<Vec<PodState>>,
    /// In the order of [`gateway::gateways`].
    gateways: Vec<PodState>,
}

impl RolledOut {
    /// Number of objects written, without namespaces.
    pub fn objects(&self) -> usize {
        self.written.objects.len()
    }

    pub fn pods(&self) -> usize {
        self.pods.workloads.iter().map(Vec::len).sum::<usize>() + self.pods.gateways.len()
    }

    /// Removes the objects and waits until their pods are gone.
    pub fn remove(mut self) -> Result<()> {
        self.written.remove()
    }
}

/// Brings up a deployment whose targets answer, and the objects that it consists of.
pub(super) fn bring_up<'a>(
    cluster: &'a Cluster,
    spec: &DeploymentSpec,
    plug: Box<dyn MeshPlug>,
    label: &str,
) -> Result<(Running<'a>, Written)> {
    let RolledOut { written, pods: ReadyPods { workloads, gateways }, certificates } =
        roll_out(cluster, spec, &*plug)?;
    let pods = open(cluster, spec, &*plug, workloads)?;
    let gateways = open_gateways(cluster, spec, gateways)?;
    let shared = find_shared(cluster, spec, &*plug, &written, &pods)?;
    let workers = connect_workers(cluster, spec, &pods)?;
    let opened = Opened { pods, gateways, workers, certificates, shared };
    let running = Running::new(cluster, spec, plug, opened, label);
    wait_until_serving(&running)?;
    Ok((running, written))
}

/// Writes the objects of a deployment and waits until every pod is ready.
pub(crate) fn roll_out(cluster: &Cluster, spec: &DeploymentSpec, plug: &dyn MeshPlug) -> Result<RolledOut> {
    let context = cluster.context(spec);
    let mut all = objects::objects(spec, &cluster.settings, plug)?;
    let certificates = GatewayCertificates::issue(&context)?;
    certificates.iter().for_each(|certificates| certificates.fill_in(&mut all));
    let api = &cluster.connected.api;
    let (first, others): (Vec<Value>, Vec<Value>) =
        all.into_iter().partition(|object| object["kind"] == "Namespace");
    let (before_pods, with_pods): (Vec<Value>, Vec<Value>) =
        others.into_iter().partition(|object| !MAKES_PODS.iter().any(|kind| object["kind"] == *kind));
    let references = before_pods.iter().chain(&with_pods).map(ObjectRef::from_object);
    let references: Vec<ObjectRef> = references.collect::<Result<_>>()?;
    if cluster.settings.existing_namespaces {
        let others = || others_objects(&cluster.connected, &cluster.settings, &references);
        let others = retry(API_TIMEOUT, others)?;
        if let Some(first) = others.into_iter().next() {
            return Err(first.into_error("write the objects of a deployment"));
        }
    }
    let written = Written {
        api: Arc::clone(api),
        selector: cluster.settings.selector(),
        namespaces: spec
            .topology
            .namespaces()
            .into_iter()
            .map(|name| cluster.settings.namespace(name))
            .collect(),
        objects: references,
    };
    for objects in [&first, &before_pods, &with_pods] {
        cluster.check_not_stopped("write the objects of a deployment")?;
        retry(APPLY_TIMEOUT, || api.apply(objects)).map_err(EnvironmentError::lasting)?;
    }
    let pods = wait_until_running(cluster, spec, &written)?;
    Ok(RolledOut { written, pods, certificates })
}

/// Waits until every pod is ready.
fn wait_until_running(cluster: &Cluster, spec: &DeploymentSpec, written: &Written) -> Result<ReadyPods> {
    let gateways = gateway::gateways(&cluster.context(spec));
    let wanted = spec.topology.pods() + gateways.len();
    let (mut most_ready, mut changed_at) = (0, Instant::now());
    let startup = Startup::new(&written.api, &written.namespaces, &written.selector);
    loop {
        cluster.check_not_stopped("wait for pods")?;
        let looked_at = Instant::now();
        let pods = retry(API_TIMEOUT, || written.pods())?;
        let pods: Vec<PodState> = pods.iter().map(PodState::read).collect();
        let workloads = by_workload(cluster, spec, &pods);
        let of_gateways = of_gateways(&gateways, &pods);
        let ready = workloads.iter().flatten().chain(&of_gateways).filter(|pod| pod.is_ready).count();
        if ready == wanted {
            return Ok(ReadyPods { workloads, gateways: of_gateways });
        }
        if ready > most_ready {
            (most_ready, changed_at) = (ready, Instant::now());
        }
        cluster.progress.report(&format!("{ready} of {wanted} pods are ready"));
        startup.check(&pods)?;
        if changed_at.elapsed() > ROLLOUT_TIMEOUT {
            let timeout_s = ROLLOUT_TIMEOUT.as_secs();
            let mut reason = format!("{ready} of {wanted} are ready, and no more since {timeout_s} s");
            if of_gateways.len() < gateways.len() {
                reason.push_str("; there is a gateway of which nothing has made a pod");
            }
            return Err(EnvironmentError::new("wait for pods", reason));
        }
        // Listing a thousand pods costs the API server work that others may need.
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

/// The pod of each gateway, for gateways that have one.
fn of_gateways(gateways: &[Gateway], pods: &[PodState]) -> Vec<PodState> {
    let own = gateways.iter().filter_map(|gateway| {
        pods.iter().find(|pod| pod.namespace == gateway.namespace && pod.app == ingress::NAME)
    });
    own.cloned().collect()
}

/// Opens the ports for reading the pods' counters.
fn open(
    cluster: &Cluster,
    spec: &DeploymentSpec,
    plug: &dyn MeshPlug,
    pods: Vec<Vec<PodState>>,
) -> Result<Vec<Vec<RunningPod>>> {
    let api = &cluster.connected.api;
    let mut all = Vec::with_capacity(pods.len());
    for (id, (workload, states)) in spec.topology.workloads.iter().zip(pods).enumerate() {
        let mut running = Vec::with_capacity(states.len());
        for (name, state) in workload.pod_names().zip(states) {
            let forward = |port| PortForward::open(api, &state.namespace, &state.name, port);
            let service = workload.serves().then(|| forward(counters_port(workload))).transpose()?;
            let proxy = plug.pod_proxy().filter(|_| spec.is_member(id));
            proxy.map_or(Ok(()), |kind| check_injected(&state, kind))?;
            let proxy_name = format!("{name}-proxy");
            let proxy = proxy.map(|kind| open_proxy(api, &proxy_name, &state, kind)).transpose()?;
            running.push(RunningPod { name, state, service, proxy, asked: AtomicU64::default() });
        }
        all.push(running);
    }
    Ok(all)
}

/// Returns an error if the mesh has injected no proxy into a pod: its trials would be like those of mode
/// `none`.
fn check_injected(pod: &PodState, kind: ProxyKind) -> Result<()> {
    if pod.restarts.contains_key(kind.container) {
        return Ok(());
    }
    let reason =
        format!("pod {} in namespace {} has no container {}", pod.name, pod.namespace, kind.container);
    Err(EnvironmentError::new("find the sidecars of the mesh", reason).with_hint(NOT_INJECTED).lasting())
}

/// Opens the admin interfaces of gateways.
fn open_gateways(cluster: &Cluster, spec: &DeploymentSpec, pods: Vec<PodState>) -> Result<Vec<RunningPod>> {
    let gateways = gateway::gateways(&cluster.context(spec));
    let open = |(gateway, state): (Gateway, PodState)| {
        Ok(RunningPod {
            proxy: Some(open_proxy(&cluster.connected.api, &gateway.name, &state, ENVOY)?),
            name: gateway.name,
            state,
            service: None,
            asked: AtomicU64::default(),
        })
    };
    gateways.into_iter().zip(pods).map(open).collect()
}

/// Connects to a worker in each pod of a driver's workload and reads its clock.
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

/// Sends single requests from a worker of each driver until one is answered.
fn wait_until_serving(running: &Running<'_>) -> Result<()> {
    let topology = &running.spec.topology;
    for driver in &topology.drivers {
        let protocol = topology.workloads[driver.target].protocol;
        let destination = running.destination_of(driver);
        // Only drivers know how to send requests of other protocols. For a gateway, an HTTP probe shows
        // whether it has a route.
        if matches!(protocol, Protocol::Http1 | Protocol::Http2) || destination.is_gateway {
            wait_for_target(running, driver, &destination, protocol)?;
        }
    }
    Ok(())
}

fn wait_for_target(
    running: &Running<'_>,
    driver: &DriverPlacement,
    destination: &Destination,
    protocol: Protocol,
) -> Result<()> {
    let Some(worker) = running.workers[driver.at].first() else { return Ok(()) };
    let began = Instant::now();
    loop {
        running.cluster.check_not_stopped("wait until the target serves")?;
        let last = match probe(worker, destination, protocol) {
            Ok(None) => return Ok(()),
            Ok(Some(reason)) => reason,
            Err(error) => error_chain(&error),
        };
        if began.elapsed() > SERVING_TIMEOUT {
            let Destination { probe_url, .. } = destination;
            let operation = format!("wait until {probe_url} answers a request from {}", worker.pod);
            return Err(EnvironmentError::new(operation, last));
        }
    }
}

/// Sends one request. Returns why its response does not count, or `None` if it does.
fn probe(worker: &Worker, destination: &Destination, protocol: Protocol) -> Result<Option<String>> {
    let text = |text: &str| StartArgument::Text(text.to_owned());
    let url = destination.probe_url.as_str();
    let mut arguments = ["load", url, "--clients=1", "--requests=1", "--timeout=2s"].map(text).to_vec();
    if protocol.multiplexes() {
        arguments.push(text("--http=2"));
    }
    arguments.extend(destination.arguments.iter().cloned());
    worker.start_with(PROBE, arguments)?;
    let began = Instant::now();
    loop {
        let progress = worker.progress(0)?;
        match progress.ended {
            Some(End { result_bytes: Some(_), .. }) => {
                let requests = worker.result()?.requests;
                let statuses = requests.status.keys().map(String::as_str);
                let not_served = statuses.filter(|status| NOT_SERVED.contains(status));
                let mut not_served =
                    not_served.filter(|_| destination.is_gateway).map(|one| format!("status {one}"));
                return Ok(match requests.completed {
                    0 => Some("no response".to_owned()),
                    _ => not_served.next(),
                });
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pod_without_sidecar_is_named() {
        let pod = |list: &str, container: &str| {
            let status = json!({list: [{"name": "server"}, {"name": container, "restartCount": 0}]});
            PodState::read(&json!({"metadata": {"name": "server-1", "namespace": "m"}, "status": status}))
        };
        for list in ["containerStatuses", "initContainerStatuses"] {
            assert!(check_injected(&pod(list, "istio-proxy"), ENVOY).is_ok(), "{list}");
        }
        let error = check_injected(&pod("containerStatuses", "other"), ENVOY).unwrap_err();
        assert!(
            error_chain(&error).contains("server-1 in namespace m has no container istio-proxy"),
            "{error}"
        );
    }
}
