//! `sidecar`: a proxy in the client's pod and one in the server's, traffic redirected by Istio's own rules.

use super::{Memberships, SERVER, Trial};
use crate::NoProxyUser;
use crate::arrangement::LocalLab;
use crate::arrangement::service::SERVICE_PORT;
use crate::arrangement::started::Started;
use crate::envoy::hop::{Hop, Layer};
use crate::envoy::proof::{Accepts, Evidence};
use crate::istio::agent::{Agent, AgentSpec, ProxyKind};
use crate::istio::in_force::Expected;
use crate::istio::redirect::redirect_through_sidecar;
use crate::redirect;
use experiment::Mode;
use experiment::environment::{DeploymentSpec, EnvironmentError, MutualTls};
use experiment::schema::HopProtocol;
use mesh::istio::objects::markers::Markers;
use mesh::kubernetes::workloads::Membership;
use std::net::Ipv4Addr;
use std::path::Path;

pub(super) const CLIENT_PROXY: &str = "client-proxy";
pub(super) const SERVER_PROXY: &str = "server-proxy";

pub(super) fn can_run(place: &LocalLab, mode: Mode) -> Result<(), EnvironmentError> {
    place.istio_programs()?;
    redirect::programs()?;
    let Some(NoProxyUser { reason, hint }) = place.lab().no_proxy_user() else { return Ok(()) };
    Err(EnvironmentError::new(
        format!("run mode {mode}"),
        format!("Istio's redirect rules know a proxy by its user (1337), which cannot be had here: {reason}"),
    )
    .with_hint(format!("{hint}; `mesh: envoy` runs sidecars without it")))
}

pub(super) fn bring_up(
    place: &LocalLab,
    spec: &DeploymentSpec,
    log_dir: &Path,
) -> Result<Started, EnvironmentError> {
    let sidecars = Memberships { client: Membership::Sidecar, server: Membership::Sidecar };
    let mut trial = Trial::begin(place, spec, log_dir, sidecars)?;
    trial.write_settings()?;
    // Before the proxies, as Istio's init container: a connection from before the rules came is taken for a new one by them, and
    // what istiod answers on it is led astray.
    redirect_through_sidecar(&mut trial.pods.client, trial.site.programs, log_dir)?;
    redirect_through_sidecar(&mut trial.pods.server, trial.site.programs, log_dir)?;
    let (client_hop, server_hop) = (outbound(&trial), inbound(&trial));
    let client = trial.start_sidecar(Side::Client, &client_hop.statistics())?;
    let server = trial.start_sidecar(Side::Server, &server_hop.statistics())?;
    for agent in [&client, &server] {
        agent.wait_until_ready(place.lab())?;
    }
    let (written, service) = trial.write(&trial.service_objects())?;
    let markers = trial.markers();
    let expected_of_client = expected_of_client(&trial, &client_hop, service, &markers);
    let expected_of_server = expected_of_server(&trial, &server_hop, &markers);
    let awaited = [client.awaited(expected_of_client), server.awaited(expected_of_server)];
    let in_force = trial.wait_until_propagated(&awaited, &written)?;
    let proxies = vec![
        client.on_the_path(trial.pods.client.name(), client_hop.evidence(spec.proxy.mtls.is_spoken())),
        server.on_the_path(trial.pods.server.name(), evidence_of_server(&trial, &server_hop)),
    ];
    let started = trial.started()?;
    Ok(Started { proxies, push: Some(written.push(in_force)), ..started })
}

/// Which pod of a pair.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Side {
    Client,
    Server,
}

impl Trial<'_> {
    /// Starts the sidecar of one pod, which keeps statistics of these prefixes. It need not be ready yet.
    pub(super) fn start_sidecar(
        &mut self,
        side: Side,
        statistics: &[String],
    ) -> Result<Agent, EnvironmentError> {
        let (proxy, workload, pod) = match side {
            Side::Client => (CLIENT_PROXY, &self.client_workload, &mut self.pods.client),
            Side::Server => (SERVER_PROXY, &self.server_workload, &mut self.pods.server),
        };
        let factory = self.site.agents();
        factory.start(
            pod,
            &AgentSpec { name: proxy, kind: ProxyKind::Sidecar, workload, statistics, environment: &[] },
        )
    }
}

/// The cluster of the server's Service, as Istio names it.
pub(super) fn cluster(trial: &Trial<'_>) -> String {
    format!("outbound|{SERVICE_PORT}||{}", trial.site.namespace.host_of(SERVER))
}

/// What the client's sidecar does with the load.
fn outbound(trial: &Trial<'_>) -> Hop {
    Hop::outbound(before_servers_proxy(trial.site.spec), SERVICE_PORT, cluster(trial))
}

/// How a proxy handles the load that sends it to the server's.
pub(super) fn before_servers_proxy(spec: &DeploymentSpec) -> Layer {
    Layer::for_protocol(spec.protocol).between(None, between_proxies(spec))
}

/// What proxies speak with each other, where that is not what the client speaks.
fn between_proxies(spec: &DeploymentSpec) -> Option<HopProtocol> {
    spec.istio.http2_upgrade.then_some(HopProtocol::Http2)
}

/// What the server's does.
pub(super) fn inbound(trial: &Trial<'_>) -> Hop {
    let spec = trial.site.spec;
    Hop::inbound(Layer::for_protocol(spec.protocol).between(between_proxies(spec), None), SERVICE_PORT)
}

fn expected_of_client(trial: &Trial<'_>, hop: &Hop, service: Ipv4Addr, markers: &Markers) -> Vec<Expected> {
    let listens_at = match hop.layer {
        Layer::L7 { .. } => Ipv4Addr::UNSPECIFIED,
        // Nothing in a connection says whom it is for, but where it goes to.
        Layer::L4 => service,
    };
    let mut expected = vec![
        Expected::Endpoint(hop.cluster.clone(), trial.server_endpoint()),
        Expected::Listener(format!("{listens_at}_{SERVICE_PORT}")),
        Expected::route(hop, &trial.site.namespace.host_of(SERVER)),
    ];
    expected.extend(markers.every_listener.iter().cloned().map(Expected::InListeners));
    expected.extend(markers.routes_to_service.iter().cloned().map(Expected::InRoutes));
    expected
}

pub(super) fn expected_of_server(trial: &Trial<'_>, hop: &Hop, markers: &Markers) -> Vec<Expected> {
    let mut expected = vec![
        Expected::Cluster(hop.cluster.clone()),
        Expected::FilterChain(format!("0.0.0.0_{SERVICE_PORT}")),
    ];
    let listeners = markers.every_listener.iter().chain(&markers.before_service);
    expected.extend(listeners.cloned().map(Expected::InListeners));
    expected.push(Expected::Accepts(taken_by_server(trial)));
    expected
}

/// Mutual TLS alone, or plain text too or alone.
fn taken_by_server(trial: &Trial<'_>) -> Accepts {
    Accepts { port: SERVICE_PORT, plaintext: trial.site.spec.proxy.mtls != MutualTls::Strict }
}

pub(super) fn evidence_of_server(trial: &Trial<'_>, hop: &Hop) -> Evidence {
    let evidence = hop.evidence(trial.site.spec.proxy.mtls.is_spoken());
    Evidence { accepts: Some(taken_by_server(trial)), ..evidence }
}
