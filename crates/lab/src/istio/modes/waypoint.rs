//! The waypoint of `ambient-waypoint`: an Envoy in a pod of its own, which ztunnels send the requests of a namespace to.

use super::{SERVER, Trial, sidecar};
use crate::arrangement::LocalLab;
use crate::arrangement::service::SERVICE_PORT;
use crate::arrangement::started::Proxy;
use crate::envoy::proof::Evidence;
use crate::istio::Membership;
use crate::istio::agent::{Agent, AgentSpec, ProxyKind};
use crate::istio::in_force::{Awaited, Expected};
use crate::istio::objects::marks::{self, Marks};
use crate::istio::objects::waypoint::{NAME, PORT, gateway};
use crate::istio::workload::{ServicePort, Workload};
use crate::pod::PodSpec;
use experiment::Mode;
use experiment::environment::EnvironmentError;

/// The ports of its Service, as Istio's gateway controller makes it: its readiness and HBONE.
const PORTS: [ServicePort; 2] =
    [ServicePort { name: "status-port", port: 15021 }, ServicePort { name: "mesh", port: PORT }];

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
        let workload = Workload::new(NAME, &namespace, pod.address(), Membership::Waypoint);
        super::tell_of_pods(&mut trial.site.namespace, &[&workload])?;
        trial.site.namespace.apply(&[
            workload.service(&PORTS),
            workload.endpoints(&PORTS),
            gateway(&namespace),
        ])?;
        let factory = trial.site.agents();
        let agent = factory.start(
            &mut pod,
            &AgentSpec {
                name: NAME,
                kind: ProxyKind::Waypoint,
                workload: &workload,
                statistics: &statistics(),
                environment: &[],
            },
        )?;
        trial.pods.others.push(pod);
        Ok(Self { agent })
    }

    /// What it must have been told. Its routes are in its listeners.
    pub fn awaited(&self, trial: &Trial<'_>) -> Awaited<'_> {
        let service = cluster(trial);
        let marks = marks::of_settings(trial.site.spec, &trial.subject());
        let Marks { every_listener, before_service, routes_to_service } = marks;
        let mut expected = vec![Expected::Cluster(service.clone()), Expected::FilterChain(service)];
        let in_listeners = every_listener.into_iter().chain(before_service).chain(routes_to_service);
        expected.extend(in_listeners.map(Expected::InListeners));
        self.agent.awaited(expected)
    }

    /// It as a part of its arrangement.
    pub fn on_the_path(self, trial: &Trial<'_>) -> Proxy {
        let evidence = Evidence {
            // Of connections from ztunnel. That those to the server's ztunnel are by mutual TLS too, the latter shows.
            handshakes: Some(format!("listener.0.0.0.0_{PORT}.ssl.handshake")),
            tls_expected: true,
            ..Evidence::of_http(&format!("inbound_0.0.0.0_{SERVICE_PORT}"), &cluster(trial))
        };
        self.agent.on_the_path(NAME, evidence)
    }
}

/// The cluster and the filter chain of the server's Service, as istiod names both.
fn cluster(trial: &Trial<'_>) -> String {
    format!("inbound-vip|{SERVICE_PORT}|http|{}", trial.site.namespace.host_of(SERVER))
}

/// Prefixes of the statistics that prove its path.
fn statistics() -> [String; 4] {
    [
        format!("http.inbound_0.0.0.0_{SERVICE_PORT}"),
        format!("cluster.inbound-vip|{SERVICE_PORT}|"),
        "cluster.connect_originate".to_owned(),
        format!("listener.0.0.0.0_{PORT}"),
    ]
}
