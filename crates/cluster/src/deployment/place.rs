//! The running parts of a deployment, as the course of a trial reads them: the calls with their proxies, and the counters of
//! services and proxies.

use super::pod::{OpenProxy, RunningPod};
use super::shared::{SharedPod, SharedPods};
use super::worker::Worker;
use crate::cluster::{Cluster, version_of_image};
use crate::gateway::{self, Destination, GatewayCertificates};
use crate::objects::{in_cluster, url};
use crate::plug::{MeshPlug, PlugContext, SharedProxy, Stands};
use experiment::environment::{ComponentMemory, DeploymentSpec};
use experiment::topology::{DriverPlacement, WorkloadId};
use mesh::concurrent::side_by_side;
use mesh::proof::edge::Replica;
use mesh::proof::{Counters, Evidence};
use mesh::service::ServiceReading;
use mesh::trial::course::{Course, KeepsCourse};
use mesh::trial::gateways::{Gateway, gateways};
use mesh::trial::place::{Edge, IN_WINDOW_TIMEOUT, Pace, Place, ProxyId, Readings, RunningProxy, Station};
use results::ComponentVersion;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Pods with open ports, and what drivers need to reach their targets.
#[derive(Debug)]
pub(super) struct Opened {
    pub pods: Vec<Vec<RunningPod>>,
    pub gateways: Vec<RunningPod>,
    pub workers: Vec<Vec<Worker>>,
    pub certificates: Option<GatewayCertificates>,
    pub shared: SharedPods,
}

/// Running workloads with everything on their paths, and the counters of their trials.
#[derive(Debug)]
pub(super) struct Running<'a> {
    pub cluster: &'a Cluster,
    pub spec: DeploymentSpec,
    pub plug: Box<dyn MeshPlug>,
    /// Pods of each workload.
    pub pods: Vec<Vec<RunningPod>>,
    pub workers: Vec<Vec<Worker>>,
    /// In the order of [`gateway::gateways`].
    pub gateways: Vec<RunningPod>,
    /// Certificates of gateways and drivers; absent without TLS between them.
    certificates: Option<GatewayCertificates>,
    /// Shared pods of the mesh.
    pub shared: SharedPods,
    edges: Vec<Edge>,
    /// Proxies whose requests are read at both ends of the window.
    pub counted_gateways: Vec<Gateway>,
    course: Course,
    pub log_dir: PathBuf,
}

/// Pods of a deployment, and the proxies in them.
#[derive(Clone, Copy)]
struct Paths<'a> {
    context: PlugContext<'a>,
    pods: &'a [Vec<RunningPod>],
    gateways: &'a [RunningPod],
    shared: &'a [SharedPod],
}

impl<'a> Paths<'a> {
    /// All proxies, those in pods of workloads first, then gateways and proxies that others share.
    fn proxies(self) -> impl Iterator<Item = &'a OpenProxy> {
        let own = self.pods.iter().flatten().chain(self.gateways).filter_map(|pod| pod.proxy.as_ref());
        own.chain(self.shared.iter().filter_map(|pod| pod.proxy.as_ref()))
    }

    /// All calls, with the proxies on their paths.
    fn edges(self, plug: &dyn MeshPlug) -> Vec<Edge> {
        let ids: BTreeMap<&str, ProxyId> =
            self.proxies().enumerate().map(|(id, proxy)| (proxy.name.as_str(), id)).collect();
        let PlugContext { spec, settings } = self.context;
        let by_callers = in_cluster(&spec.topology, settings);
        let edges = spec.topology.calls.iter().map(|call| {
            let gateway = gateway::of_call(&self.context, *call);
            let gateway = gateway.map(|gateway| Station {
                proxies: vec![ids[gateway.name.as_str()]],
                side: None,
                evidence: gateway.evidence(&self.context),
                name: gateway.name,
            });
            let of_mesh = plug.evidence(&self.context, *call).into_iter();
            let of_mesh = of_mesh.map(|(stands, evidence)| self.station(&stands, evidence, &ids));
            let stations = gateway.into_iter().chain(of_mesh).collect();
            let counted_as = by_callers.workloads[call.to].qualified_name();
            Edge { counted_as, ..Edge::new(&spec.topology, *call, stations) }
        });
        edges.collect()
    }

    fn station(self, stands: &Stands, evidence: Evidence, ids: &BTreeMap<&str, ProxyId>) -> Station {
        let of_mesh = |component: &str, is_own: &dyn Fn(&SharedPod) -> bool| {
            let own: Vec<&str> =
                self.shared.iter().filter(|pod| is_own(pod)).map(|pod| pod.name.as_str()).collect();
            let name = match own[..] {
                [only] => only,
                _ => component,
            };
            (name.to_owned(), own)
        };
        let mut side_of_call = None;
        let (name, proxies) = match stands {
            Stands::InPodsOf(id) => {
                let own = self.pods[*id].iter().filter_map(|pod| pod.proxy.as_ref());
                let name = format!("{}-proxy", self.context.spec.topology.workloads[*id].qualified_name());
                (name, own.map(|proxy| proxy.name.as_str()).collect())
            }
            Stands::OnNodesOf(id, side) => {
                side_of_call = Some(*side);
                let nodes: BTreeSet<&str> =
                    self.pods[*id].iter().map(|pod| pod.state.node.as_str()).collect();
                of_mesh("ztunnel", &|pod| pod.is_ztunnel() && nodes.contains(pod.state.node.as_str()))
            }
            Stands::WaypointOf(namespace) => of_mesh("waypoint", &|pod| {
                pod.component.proxy == Some(SharedProxy::Waypoint) && pod.state.namespace == *namespace
            }),
        };
        Station {
            name,
            side: side_of_call,
            evidence,
            proxies: proxies.iter().map(|name| ids[name]).collect(),
        }
    }
}

impl Place for Running<'_> {
    fn spec(&self) -> &DeploymentSpec {
        &self.spec
    }

    fn edges(&self) -> &[Edge] {
        &self.edges
    }

    fn proxies(&self) -> Vec<&dyn RunningProxy> {
        self.paths().proxies().map(|proxy| proxy as &dyn RunningProxy).collect()
    }

    fn read_services(&self) -> Readings {
        let services = self.services(|_| true);
        let read =
            side_by_side(services, |(pod, is_node)| (pod.name.clone(), pod.read_service(is_node, None)));
        read.into_iter().collect()
    }

    fn read_in_window(&self, workloads: &[WorkloadId]) -> BTreeMap<String, ServiceReading> {
        let services = self.services(|id| workloads.contains(&id));
        let deadline = Instant::now() + IN_WINDOW_TIMEOUT;
        let read = side_by_side(services, |(pod, is_node)| {
            let remaining = deadline.saturating_duration_since(Instant::now());
            let reading =
                (!remaining.is_zero()).then(|| pod.read_service(is_node, Some(remaining)).ok())??;
            Some((pod.name.clone(), reading))
        });
        read.into_iter().flatten().collect()
    }

    /// The pods of a service; for a ztunnel, those on its node.
    fn pods_behind(&self, proxy: ProxyId, service: WorkloadId) -> Vec<(&str, &str)> {
        let name = self.proxies()[proxy].name();
        let shared = self.shared.pods.iter().find(|pod| pod.name == name);
        let pods = self.pods[service].iter().map(|pod| &pod.state);
        let pods = pods.filter(|pod| shared.is_none_or(|shared| pod.node == shared.state.node));
        pods.map(|pod| (pod.namespace.as_str(), pod.name.as_str())).collect()
    }

    /// Kubelets have samples of memory every 10 to 20 seconds, which may be of the load.
    fn memory(&self) -> BTreeMap<String, ComponentMemory> {
        BTreeMap::new()
    }

    fn proves_all_services(&self) -> bool {
        true
    }

    fn pace(&self) -> Pace {
        Pace {
            settled_timeout: Duration::from_secs(3),
            settled_interval: Duration::from_millis(200),
            rest_interval: Duration::from_millis(200),
        }
    }

    fn is_stopped(&self) -> bool {
        (self.cluster.is_stopped)()
    }

    fn log_dir(&self) -> &Path {
        &self.log_dir
    }
}

impl KeepsCourse for Running<'_> {
    fn course(&mut self) -> &mut Course {
        &mut self.course
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.workers.iter().flatten().for_each(Worker::finish);
    }
}

impl<'a> Running<'a> {
    pub fn new(
        cluster: &'a Cluster,
        spec: &DeploymentSpec,
        plug: Box<dyn MeshPlug>,
        opened: Opened,
        label: &str,
    ) -> Self {
        let Opened { pods, gateways: gateway_pods, workers, certificates, shared } = opened;
        let context = cluster.context(spec);
        let paths = Paths { context, pods: &pods, gateways: &gateway_pods, shared: &shared.pods };
        let edges = paths.edges(&*plug);
        let in_workloads = pods.iter().flatten().filter(|pod| pod.proxy.is_some()).count();
        let counted_gateways = gateways(&edges, &spec.topology, |id| id >= in_workloads);
        Self {
            cluster,
            spec: spec.clone(),
            plug,
            pods,
            workers,
            gateways: gateway_pods,
            certificates,
            shared,
            edges,
            counted_gateways,
            course: Course::default(),
            log_dir: cluster.log_dir(label),
        }
    }

    pub fn context(&self) -> PlugContext<'_> {
        self.cluster.context(&self.spec)
    }

    pub fn all_pods(&self) -> impl Iterator<Item = &RunningPod> {
        self.pods.iter().flatten().chain(&self.gateways)
    }

    /// Target of a driver: a gateway, or the service itself.
    pub fn destination_of(&self, driver: &DriverPlacement) -> Destination {
        let context = self.context();
        gateway::destination(&context, driver, self.certificates.as_ref()).unwrap_or_else(|| {
            let url = url(&self.spec.topology, driver.target, &driver.endpoint, &self.cluster.settings);
            Destination { probe_url: url.clone(), url, arguments: Vec::new(), is_gateway: false }
        })
    }

    fn paths(&self) -> Paths<'_> {
        Paths {
            context: self.context(),
            pods: &self.pods,
            gateways: &self.gateways,
            shared: &self.shared.pods,
        }
    }

    /// Pods with a service of these workloads, and whether they are nodes of a graph.
    fn services(&self, is_read: impl Fn(WorkloadId) -> bool) -> impl Iterator<Item = (&RunningPod, bool)> {
        let workloads = self.spec.topology.workloads.iter().zip(&self.pods).enumerate();
        let read = workloads.filter(move |(id, _)| is_read(*id));
        let pods =
            read.flat_map(|(_, (workload, pods))| pods.iter().map(|pod| (pod, workload.script().is_some())));
        pods.filter(|(pod, _)| pod.service.is_some())
    }

    /// Distinct versions of the proxies that the mesh has injected, and of gateways.
    pub fn proxy_versions(&self) -> Vec<ComponentVersion> {
        let mut versions = Vec::new();
        for pod in self.all_pods() {
            let Some(OpenProxy { kind, .. }) = &pod.proxy else { continue };
            let image = pod.state.images.get(kind.container).map(String::as_str);
            let version = version_of_image(kind.container, image.unwrap_or_default());
            if !versions.contains(&version) {
                versions.push(version);
            }
        }
        versions
    }

    /// Notes on the run's share of the traffic of each ztunnel.
    pub fn shares(&self, replicas: &[Replica]) -> Vec<String> {
        let evidence = self.edges.iter().flat_map(|edge| &edge.stations);
        let own: BTreeSet<&str> = evidence.flat_map(|station| station.evidence.counters()).collect();
        let ztunnels = self.shared.pods.iter().filter(|pod| pod.is_ztunnel());
        let note = |pod: &SharedPod| {
            let Replica { before, after, .. } = replicas.iter().find(|replica| replica.name == pod.name)?;
            let percent = percent_of_run(before, after.as_ref().ok()?, &own)?;
            Some(format!(
                "{} serves all pods of node {} that are in the ambient mesh, and its CPU and memory are for all of them: {percent:.1} % of \
                 the bytes that it carried during the trial were this run's",
                pod.name, pod.state.node
            ))
        };
        ztunnels.filter_map(note).collect()
    }
}

/// Percentage of a ztunnel's bytes between two readings that is part of the evidence; absent if it carried
/// none.
fn percent_of_run(before: &Counters, after: &Counters, own: &BTreeSet<&str>) -> Option<f64> {
    let rise = |is_counted: &dyn Fn(&str) -> bool| -> f64 {
        let bytes = after.iter().filter(|(name, _)| {
            (name.ends_with(".request_bytes") || name.ends_with(".response_bytes")) && is_counted(name)
        });
        let rises = bytes.map(|(name, count)| count.saturating_sub(before.get(name).copied().unwrap_or(0)));
        rises.sum::<u64>() as f64
    };
    let all = rise(&|_| true);
    (all > 0.0).then(|| 100.0 * rise(&|name| own.contains(name)) / all)
}
