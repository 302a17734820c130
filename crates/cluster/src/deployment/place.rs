//! Readings for the course of a trial: the calls with their proxies, and the counters of services and proxies.

use super::shared::SharedPod;
use super::{ClusterDeployment, OpenProxy, RunningPod};
use crate::environment::version_of_image;
use crate::gateway;
use crate::objects::in_cluster;
use crate::plug::{MeshPlug, PlugContext, SharedProxy, Stands};
use crate::port_forward::PortForward;
use experiment::environment::{ComponentMemory, DeploymentSpec, error_chain};
use experiment::topology::WorkloadId;
use mesh::admin::AdminError;
use mesh::concurrent::side_by_side;
use mesh::proof::edge::Replica;
use mesh::proof::{Counters, Evidence};
use mesh::proxy::CounterSource;
use mesh::service::ServiceReading;
use mesh::trial::course::{Course, KeepsCourse};
use mesh::trial::place::{Edge, IN_WINDOW_TIMEOUT, Pace, Place, ProxyId, Readings, RunningProxy, Station};
use results::ComponentVersion;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

impl RunningProxy for OpenProxy {
    fn name(&self) -> &str {
        &self.name
    }

    fn source(&self) -> &dyn CounterSource {
        &*self.source
    }

    /// If the API is the reason, it says why.
    fn reason(&self, error: &AdminError) -> String {
        let failed = self.ports.last().and_then(PortForward::last_error);
        failed.unwrap_or_else(|| error_chain(&error.cause))
    }
}

/// Pods of a deployment, and the proxies in them.
#[derive(Clone, Copy)]
pub(super) struct Paths<'a> {
    pub context: PlugContext<'a>,
    pub pods: &'a [Vec<RunningPod>],
    pub gateways: &'a [RunningPod],
    pub shared: &'a [SharedPod],
}

impl<'a> Paths<'a> {
    /// All proxies, those in pods of workloads first, then gateways and proxies that others share.
    pub fn proxies(self) -> impl Iterator<Item = &'a OpenProxy> {
        let own = self.pods.iter().flatten().chain(self.gateways).filter_map(|pod| pod.proxy.as_ref());
        own.chain(self.shared.iter().filter_map(|pod| pod.proxy.as_ref()))
    }

    /// All calls, with the proxies on their paths.
    pub fn edges(self, plug: &dyn MeshPlug) -> Vec<Edge> {
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

impl Place for ClusterDeployment<'_> {
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

impl KeepsCourse for ClusterDeployment<'_> {
    fn course(&mut self) -> &mut Course {
        &mut self.course
    }
}

impl RunningPod {
    /// Counters of its service. Nodes do not count queries of their counters.
    fn read_service(&self, is_node: bool, timeout: Option<Duration>) -> Result<ServiceReading, String> {
        let forward = self.service.as_ref().ok_or("it runs no service")?;
        let admin = forward.admin(&self.name);
        let admin = timeout.map_or_else(|| admin.clone(), |timeout| admin.within(timeout));
        let reading = ServiceReading::read(&admin, (!is_node).then_some(&self.asked));
        reading.map_err(|error| forward.last_error().unwrap_or_else(|| error_chain(&error.cause)))
    }
}

impl ClusterDeployment<'_> {
    pub(super) fn paths(&self) -> Paths<'_> {
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
    pub(super) fn proxy_versions(&self) -> Vec<ComponentVersion> {
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
    pub(super) fn shares(&self, replicas: &[Replica]) -> Vec<String> {
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
