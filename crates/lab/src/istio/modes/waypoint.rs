//! The waypoint of `ambient-waypoint`: an Envoy in a pod of its own, which ztunnels send the requests of a namespace to.

use super::{SERVER, Trial, sidecar};
use crate::arrangement::LocalLab;
use crate::arrangement::service::SERVICE_PORT;
use crate::arrangement::started::Proxy;
use crate::envoy::hop::{Hop, Layer, Peer};
use crate::envoy::proof::{Count, Evidence};
use crate::istio::agent::{Agent, AgentSpec, ProxyKind};
use crate::istio::in_force::{Awaited, Expected};
use crate::pod::PodSpec;
use experiment::Mode;
use experiment::environment::EnvironmentError;
use mesh::istio::objects::markers::Markers;
use mesh::istio::objects::waypoint::{NAME, gateway};
use mesh::kubernetes::workloads::{Membership, ServicePort, Workload};
use mesh::names::{HBONE_PORT, READINESS_PORT};

/// The ports of its Service, as Istio's gateway controller makes it: its readiness and HBONE.
const PORTS: [ServicePort; 2] = [
    ServicePort { name: "status-port", port: READINESS_PORT },
    ServicePort { name: "mesh", port: HBONE_PORT },
];

/// The cluster by which it reaches ztunnels, whatever it sends them.
const TUNNEL_CLUSTER: &str = "connect_originate";

/// Its agent runs as user 1337, as a sidecar's does.
pub(super) fn can_run(place: &LocalLab, mode: Mode) -> Result<(), EnvironmentError> {
    sidecar::can_run(place, mode)
}

/// A waypoint in its pod, which is one of the trial's.
pub(super) struct Waypoint {
    pub agent: Agent,
}

impl Waypoint {
    /// Starts it, known to the API with what says that it is one. It need not be ready yet.
    pub fn start(trial: &mut Trial<'_>) -> Result<Self, EnvironmentError> {
        let names = trial.site.namespace.name_files();
        let mut pod = trial.site.lab().create_pod(&PodSpec::new(NAME).with_names(names))?;
        let namespace = trial.site.namespace.name().to_owned();
        let workload = Workload::single(NAME, &namespace, pod.address(), Membership::Waypoint);
        super::tell_of_pods(&mut trial.site.namespace, &[&workload])?;
        let mut objects = workload.service_objects(&PORTS);
        objects.push(gateway(&namespace));
        trial.site.namespace.apply(&objects)?;
        let factory = trial.site.agents();
        let agent = factory.start(
            &mut pod,
            &AgentSpec {
                name: NAME,
                kind: ProxyKind::Waypoint,
                workload: &workload,
                statistics: &statistics(&hop(trial)),
                environment: &[],
            },
        )?;
        trial.pods.others.push(pod);
        Ok(Self { agent })
    }

    /// What it must have been told. Its routes are in its listeners.
    pub fn awaited(&self, trial: &Trial<'_>) -> Awaited<'_> {
        let service = hop(trial).cluster;
        let Markers { every_listener, before_service, routes_to_service } = trial.markers();
        let mut expected = vec![Expected::Cluster(service.clone()), Expected::FilterChain(service)];
        let in_listeners = every_listener.into_iter().chain(before_service).chain(routes_to_service);
        expected.extend(in_listeners.map(Expected::InListeners));
        self.agent.awaited(expected)
    }

    /// It as a part of its arrangement.
    pub fn on_the_path(self, trial: &Trial<'_>) -> Proxy {
        // A connection from ztunnel carries many of clients.
        let mut evidence = Evidence { encrypted: None, ..hop(trial).evidence(true) };
        evidence.protocols.forwarded.hbone =
            Some(Count::Connections(format!("cluster.{TUNNEL_CLUSTER}.upstream_cx_http2_total")));
        self.agent.on_the_path(NAME, evidence)
    }
}

/// What it does with the load. The cluster and the filter chain of the server's Service have the same name. TLS counts on
/// connections from ztunnel; that those to the server's ztunnel are by mutual TLS too, the latter shows.
fn hop(trial: &Trial<'_>) -> Hop {
    let layer = Layer::for_protocol(trial.site.spec.protocol);
    let read_as = match layer {
        Layer::L7 { .. } => "http",
        Layer::L4 => "tcp",
    };
    Hop {
        cluster: format!("inbound-vip|{SERVICE_PORT}|{read_as}|{}", trial.site.namespace.host_of(SERVER)),
        peer: Peer::Previous(format!("0.0.0.0_{HBONE_PORT}")),
        ..Hop::inbound(layer, SERVICE_PORT)
    }
}

/// Prefixes of the statistics that prove its path, and of those on its connections to the server's ztunnel.
fn statistics(hop: &Hop) -> Vec<String> {
    hop.statistics().into_iter().chain([format!("cluster.{TUNNEL_CLUSTER}")]).collect()
}
