//! Counters of services and proxies before and after a trial, and what they prove.

use super::shared::SharedPod;
use super::{ClusterDeployment, OpenProxy};
use crate::Result;
use crate::environment::version_of_image;
use crate::gateway;
use crate::plug::{SharedProxy, Stands};
use experiment::environment::deploy::{DriverLoad, ServiceCount, TrialEvidence, expected_calls};
use experiment::environment::{EnvironmentError, error_chain};
use experiment::topology::{Call, WorkloadId};
use mesh::admin::{Admin, AdminError};
use mesh::concurrent::side_by_side;
use mesh::inbound::{Claim, Inbound, note_accepted};
use mesh::proof::edge::{Edge, EdgeProxy, Replica, Sent, have_settled, prove_edges};
use mesh::proof::{Accepts, CallCounters, CountedService, Evidence};
use mesh::service::ServiceReading;
use results::{ComponentVersion, PathProof};
use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::{Duration, Instant};

/// Time that proxies may take, after the drivers have ended, to count what was sent to them.
const SETTLED_TIMEOUT: Duration = Duration::from_secs(3);
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Readings by pod of the topology.
pub(super) type Readings = BTreeMap<String, Result<ServiceReading, String>>;
type ReadInbound = fn(&Admin) -> Result<Inbound, AdminError>;
pub(super) type Counters = BTreeMap<String, u64>;
pub(super) type ProxyCounters = BTreeMap<String, Result<Counters, String>>;

/// A call with the proxies on its path.
struct Station {
    call: Call,
    names: [String; 2],
    proxies: Vec<StationProxy>,
}

/// A proxy of a call.
struct StationProxy {
    name: String,
    /// The end of the call that the proxy is at, if a call passes it at both.
    side: Option<&'static str>,
    evidence: Evidence,
    /// Names of its replicas.
    replicas: Vec<String>,
}

pub(super) fn read_counters(proxy: &OpenProxy, name: &str) -> Result<Counters, String> {
    let OpenProxy { forward, kind } = proxy;
    let counters = (kind.counters)(&forward.admin(name));
    counters.map_err(|error| forward.last_error().unwrap_or(error_chain(&error)))
}

impl ClusterDeployment<'_> {
    pub(super) fn read_before(&mut self) -> Result<()> {
        self.trial.services_before = self.read_services();
        self.trial.proxies_before = self.read_proxies();
        let services = self.trial.services_before.iter().map(|(name, read)| (name, read.as_ref().err()));
        let proxies = self.trial.proxies_before.iter().map(|(name, read)| (name, read.as_ref().err()));
        match services.chain(proxies).find_map(|(name, error)| Some((name, error?))) {
            Some((name, reason)) => Err(EnvironmentError::new(
                format!("read the counters of {name} before the trial"),
                reason.clone(),
            )),
            None => Ok(()),
        }
    }

    fn read_services(&self) -> Readings {
        let topology = &self.spec.topology;
        let pods = topology.workloads.iter().zip(&self.pods);
        let pods = pods.flat_map(|(workload, pods)| pods.iter().map(move |pod| (workload, pod)));
        let services = pods.filter(|(_, pod)| pod.service.is_some());
        let read = side_by_side(services, |(workload, pod)| {
            let forward = pod.service.as_ref().expect("services alone are read");
            // Nodes do not count queries of their counters.
            let asked = workload.script().is_none().then_some(&pod.asked);
            let reading = ServiceReading::read(&forward.admin(&pod.name), asked);
            (pod.name.clone(), reading.map_err(|error| forward.last_error().unwrap_or(error_chain(&error))))
        });
        read.into_iter().collect()
    }

    fn read_proxies(&self) -> ProxyCounters {
        let proxies = self.all_pods().filter(|pod| pod.proxy.is_some());
        let read = side_by_side(proxies, |pod| {
            let proxy = pod.proxy.as_ref().expect("pods with proxies alone are read");
            (pod.proxy_name.clone(), read_counters(proxy, &pod.proxy_name))
        });
        let of_mesh = side_by_side(&self.shared.pods, |pod| Some((pod.name.clone(), pod.counters()?)));
        read.into_iter().chain(of_mesh.into_iter().flatten()).collect()
    }

    fn stations(&self) -> Vec<Station> {
        let context = self.context();
        let name = |id: WorkloadId| self.spec.topology.workloads[id].qualified_name();
        let station = |call: &Call| {
            let gateway = gateway::of_call(&context, *call).map(|gateway| StationProxy {
                replicas: vec![gateway.name.clone()],
                side: None,
                evidence: gateway.evidence(&context),
                name: gateway.name,
            });
            let of_mesh = self.plug.evidence(&context, *call).into_iter();
            let of_mesh = of_mesh.map(|(stands, evidence)| self.station_proxy(&stands, evidence));
            let proxies = gateway.into_iter().chain(of_mesh).collect();
            Station { call: *call, names: [name(call.from), name(call.to)], proxies }
        };
        self.spec.topology.calls.iter().map(station).collect()
    }

    fn station_proxy(&self, stands: &Stands, evidence: Evidence) -> StationProxy {
        let of_mesh = |component: &str, side, is_own: &dyn Fn(&SharedPod) -> bool| {
            let own = self.shared.pods.iter().filter(|pod| is_own(pod));
            let replicas: Vec<String> = own.map(|pod| pod.name.clone()).collect();
            let name = match &replicas[..] {
                [only] => only.clone(),
                _ => component.to_owned(),
            };
            (name, side, replicas)
        };
        let (name, side, replicas) = match stands {
            Stands::InPodsOf(id) => {
                let replicas = self.pods[*id].iter().map(|pod| pod.proxy_name.clone()).collect();
                (format!("{}-proxy", self.spec.topology.workloads[*id].qualified_name()), None, replicas)
            }
            Stands::OnNodesOf(id, side) => {
                let nodes: BTreeSet<&str> =
                    self.pods[*id].iter().map(|pod| pod.state.node.as_str()).collect();
                of_mesh("ztunnel", Some(*side), &|pod| {
                    pod.is_ztunnel() && nodes.contains(pod.state.node.as_str())
                })
            }
            Stands::WaypointOf(namespace) => of_mesh("waypoint", None, &|pod| {
                pod.component.proxy == Some(SharedProxy::Waypoint) && pod.state.namespace == *namespace
            }),
        };
        StationProxy { name, side, evidence, replicas }
    }

    pub(super) fn evidence(&mut self, sent: &[DriverLoad]) -> TrialEvidence {
        let stations = self.stations();
        let evidence = stations.iter().flat_map(|station| &station.proxies);
        let own: BTreeSet<&str> = evidence.flat_map(|proxy| proxy.evidence.counters()).collect();
        let expected = expected_calls(&self.spec.topology, sent);
        let deadline = Instant::now() + SETTLED_TIMEOUT;
        loop {
            let services = self.read_services();
            let after = self.read_proxies();
            let replicas = self.replicas(&after, &own);
            let counted = |station: &Station| self.counted(station.call, sent, &expected, &services);
            let counted: Vec<_> = stations.iter().map(counted).collect();
            let edges: Vec<Edge<'_>> = stations
                .iter()
                .zip(&counted)
                .map(|(station, counted)| edge(station, counted, &replicas))
                .collect();
            if Instant::now() < deadline && !have_settled(&edges) {
                thread::sleep(POLL_INTERVAL);
                continue;
            }
            let mut path = prove_edges(&edges);
            self.check_accepted(&stations, &mut path);
            path.proven = path.reasons.is_empty();
            path.mode = Some(self.spec.mode);
            let shares = self.shares(&after, &own);
            self.trial.notes.extend(shares);
            return TrialEvidence {
                path,
                services: self.service_counts(&services),
                gateways: self.gateway_counts(&after),
                notes: std::mem::take(&mut self.trial.notes),
                versions: self.proxy_versions(),
                ..TrialEvidence::default()
            };
        }
    }

    /// Compares what proxies accept for the services behind them with what the experiment sets.
    fn check_accepted(&self, stations: &[Station], path: &mut PathProof) {
        // A proxy is in the station of each call to its services.
        let mut claimed: BTreeMap<&str, (&str, BTreeMap<WorkloadId, Accepts>)> = BTreeMap::new();
        for station in stations {
            for proxy in &station.proxies {
                let Some(accepts) = proxy.evidence.accepts else { continue };
                for name in &proxy.replicas {
                    let (_, services) = claimed.entry(name).or_insert((&proxy.name, BTreeMap::new()));
                    services.insert(station.call.to, accepts);
                }
            }
        }
        let claimed = claimed.into_iter().map(|(name, claimed)| (name, claimed, self.inbound_of(name)));
        let read = side_by_side(claimed, |(name, claimed, (admin, read))| {
            (name, claimed, read(&admin).map_err(|error| error_chain(&error)))
        });
        for (name, (station, services), inbound) in read {
            let claims: Vec<Claim<'_>> =
                services.iter().map(|(id, accepts)| self.claim(name, *id, *accepts)).collect();
            note_accepted(path, (name, station), &claims, inbound);
        }
    }

    /// Admin interface of the proxy with this name in results, and how it shows what it accepts.
    fn inbound_of(&self, name: &str) -> (Admin, ReadInbound) {
        if let Some(pod) = self.shared_pod(name) {
            return (pod.admin(), Inbound::of_ztunnel);
        }
        let pod = self.all_pods().find(|pod| pod.proxy_name == name);
        let proxy = pod.and_then(|pod| pod.proxy.as_ref()).expect("stations have open proxies alone");
        (proxy.forward.admin(name), Inbound::of_sidecar)
    }

    /// A claim for the pods of a service that this proxy serves; a ztunnel serves those of its node.
    fn claim(&self, proxy: &str, id: WorkloadId, accepts: Accepts) -> Claim<'_> {
        let node = self.shared_pod(proxy).map(|pod| pod.state.node.as_str());
        let pods = self.pods[id].iter().map(|pod| &pod.state);
        let pods = pods.filter(|pod| node.is_none_or(|node| pod.node == node));
        Claim {
            service: &self.spec.topology.workloads[id].name,
            accepts,
            pods: pods.map(|pod| (pod.namespace.as_str(), pod.name.as_str())).collect(),
        }
    }

    fn shared_pod(&self, name: &str) -> Option<&SharedPod> {
        self.shared.pods.iter().find(|pod| pod.name == name)
    }

    /// Distinct versions of the proxies that the mesh has injected, and of gateways.
    fn proxy_versions(&self) -> Vec<ComponentVersion> {
        let mut versions = Vec::new();
        for pod in self.pods.iter().flatten().chain(&self.gateways) {
            let Some(OpenProxy { kind, .. }) = &pod.proxy else { continue };
            let image = pod.state.images.get(kind.container).map(String::as_str);
            let version = version_of_image(kind.container, image.unwrap_or_default());
            if !versions.contains(&version) {
                versions.push(version);
            }
        }
        versions
    }

    /// Counters of each proxy before and after. For a ztunnel only the counters in `own`, since it also
    /// carries other pods' traffic.
    fn replicas(&self, after: &ProxyCounters, own: &BTreeSet<&str>) -> BTreeMap<String, Replica> {
        let ztunnels = self.shared.pods.iter().filter(|pod| pod.is_ztunnel());
        let ztunnels: BTreeSet<&str> = ztunnels.map(|pod| pod.name.as_str()).collect();
        let replica = |(name, after): (&String, &Result<Counters, String>)| {
            let is_shared = ztunnels.contains(name.as_str());
            let kept = |counters: &Counters| match is_shared {
                true => of_run(counters, own),
                false => counters.clone(),
            };
            let before = self.trial.proxies_before.get(name).and_then(|before| before.as_ref().ok());
            let replica = Replica {
                name: name.clone(),
                before: before.map(kept).unwrap_or_default(),
                after: after.as_ref().map(kept).map_err(Clone::clone),
            };
            (name.clone(), replica)
        };
        after.iter().map(replica).collect()
    }

    /// Notes on the run's share of the traffic of each ztunnel.
    fn shares(&self, after: &ProxyCounters, own: &BTreeSet<&str>) -> Vec<String> {
        let ztunnels = self.shared.pods.iter().filter(|pod| pod.is_ztunnel());
        let note = |pod: &SharedPod| {
            let before = self.trial.proxies_before.get(&pod.name)?.as_ref().ok()?;
            let percent = percent_of_run(before, after.get(&pod.name)?.as_ref().ok()?, own)?;
            Some(format!(
                "{} serves all pods of node {} that are in the ambient mesh, and its CPU and memory are for all of them: {percent:.1} % of \
                 the bytes that it carried during the trial were this run's",
                pod.name, pod.state.node
            ))
        };
        ztunnels.filter_map(note).collect()
    }

    /// Requests sent over a call, and the counts of its callee's pods.
    fn counted(
        &self,
        call: Call,
        sent: &[DriverLoad],
        expected: &BTreeMap<Call, f64>,
        after: &Readings,
    ) -> (Sent, Vec<CountedService>) {
        let topology = &self.spec.topology;
        let sent = if topology.workloads[call.from].serves() {
            let expected = expected.get(&call).copied().unwrap_or_default();
            Sent::Calls { counted: self.calls(call, after), expected }
        } else {
            let drivers = topology.drivers.iter();
            let drivers = drivers.filter(|driver| (driver.at, driver.target) == (call.from, call.to));
            let loads = drivers.filter_map(|driver| sent.iter().find(|load| load.driver == driver.name));
            Sent::Load(loads.map(|load| &load.sent).sum())
        };
        (sent, self.counted_services(call.to, after))
    }

    fn counted_services(&self, workload: WorkloadId, after: &Readings) -> Vec<CountedService> {
        let counted = self.pods[workload].iter().filter_map(|pod| {
            let before = self.trial.services_before.get(&pod.name).and_then(|before| before.as_ref().ok());
            let after = after.get(&pod.name)?;
            Some(CountedService {
                before: before.map(|before| before.counters.clone()).unwrap_or_default(),
                after: after.as_ref().map(|after| after.counters.clone()).map_err(Clone::clone),
            })
        });
        counted.collect()
    }

    /// Calls as counted by the pods of the calling service.
    fn calls(&self, call: Call, after: &Readings) -> Result<CallCounters, String> {
        let callee =
            &crate::objects::in_cluster(&self.spec.topology, &self.cluster.settings).workloads[call.to];
        let callee = callee.qualified_name();
        let mut sum = CallCounters::default();
        for pod in &self.pods[call.from] {
            let name = &pod.name;
            let read = |readings: &Readings| match readings.get(name) {
                Some(Ok(reading)) => {
                    Ok(reading.calls.get(&callee).map(|calls| calls.counters).unwrap_or_default())
                }
                Some(Err(reason)) => Err(format!("{name}: {reason}")),
                None => Err(format!("{name}: it is gone")),
            };
            let (before, after) = (read(&self.trial.services_before)?, read(after)?);
            let own = after.since(&before);
            let own =
                own.ok_or_else(|| format!("{name}: it started anew during the trial: its counters fell"))?;
            sum = sum.and(&own);
        }
        Ok(sum)
    }

    fn service_counts(&self, after: &Readings) -> Vec<ServiceCount> {
        let workloads = self.spec.topology.workloads.iter().enumerate();
        let counts = workloads.filter(|(_, workload)| workload.serves()).map(|(id, workload)| {
            let counted = self.counted_services(id, after);
            let is_known = counted.iter().all(|service| service.after.is_ok());
            ServiceCount {
                name: workload.name.clone(),
                namespace: workload.namespace.clone(),
                replicas: workload.replicas,
                requests: is_known
                    .then(|| counted.iter().map(|service| service.proof().requests_received).sum()),
                components: workload.pod_names().collect(),
            }
        });
        counts.collect()
    }
}

/// The counters of a ztunnel that are part of the evidence.
fn of_run(counters: &Counters, own: &BTreeSet<&str>) -> Counters {
    let own = counters.iter().filter(|(name, _)| own.contains(name.as_str()));
    own.map(|(name, count)| (name.clone(), *count)).collect()
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

fn edge<'a>(
    station: &'a Station,
    (sent, services): &'a (Sent, Vec<CountedService>),
    replicas: &'a BTreeMap<String, Replica>,
) -> Edge<'a> {
    let proxies = station.proxies.iter().map(|proxy| EdgeProxy {
        name: &proxy.name,
        side: proxy.side,
        evidence: &proxy.evidence,
        spans: None,
        replicas: proxy.replicas.iter().filter_map(|name| replicas.get(name)).collect(),
    });
    Edge {
        from: &station.names[0],
        to: &station.names[1],
        sent: sent.clone(),
        service: services.iter().collect(),
        proxies: proxies.collect(),
    }
}
