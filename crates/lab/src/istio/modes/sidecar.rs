//! `sidecar`: a proxy in the client's pod and one in the server's, traffic redirected by Istio's own rules.

use super::{Memberships, SERVER, Trial};
use crate::arrangement::LocalLab;
use crate::arrangement::service::SERVICE_PORT;
use crate::arrangement::started::Started;
use crate::envoy::proof::{Evidence, Takes};
use crate::istio::Membership;
use crate::istio::agent::{Agent, AgentSpec, ProxyKind};
use crate::istio::in_force::{Expected, wait_until_in_force};
use crate::istio::objects::{self, marks::Marks};
use crate::istio::redirect::redirect_through_sidecar;
use crate::redirect::{self, INBOUND_PORT, ProxyIdentity};
use experiment::Mode;
use experiment::environment::{ArrangementSpec, EnvironmentError, MutualTls};
use std::path::Path;

pub(super) const CLIENT_PROXY: &str = "client-proxy";
pub(super) const SERVER_PROXY: &str = "server-proxy";

pub(super) fn can_run(place: &LocalLab, mode: Mode) -> Result<(), EnvironmentError> {
    place.istio_programs()?;
    redirect::programs()?;
    if place.lab().proxy_identity() != ProxyIdentity::Uid {
        return Err(EnvironmentError::new(
            format!("run mode {mode}"),
            "Istio's redirect rules know a proxy by its user (1337), and this lab has one user only",
        )
        .with_hint("run meshmeter as root; `mesh: envoy` runs sidecars for ordinary users too"));
    }
    Ok(())
}

pub(super) fn bring_up(
    place: &LocalLab,
    spec: &ArrangementSpec,
    log_dir: &Path,
) -> Result<Started, EnvironmentError> {
    let sidecars = Memberships { client: Membership::Sidecar, server: Membership::Sidecar };
    let mut trial = Trial::begin(place, spec, log_dir, sidecars)?;
    trial.write_settings()?;
    // Before the proxies, as Istio's init container: a connection from before the rules came is taken for a new one by them, and
    // what istiod answers on it is led astray.
    redirect_through_sidecar(&mut trial.pods.client, trial.site.programs, log_dir)?;
    redirect_through_sidecar(&mut trial.pods.server, trial.site.programs, log_dir)?;
    let client = trial.start_sidecar(Side::Client)?;
    let server = trial.start_sidecar(Side::Server)?;
    for agent in [&client, &server] {
        agent.wait_until_ready(place.lab())?;
    }
    let (written, _) = trial.write(&trial.service_objects())?;
    let marks = objects::marks::of_settings(spec, &trial.subject());
    let awaited = [
        client.awaited(expected_of_client(&trial, &marks)),
        server.awaited(expected_of_server(spec.proxy.mtls, &marks)),
    ];
    let in_force =
        wait_until_in_force(place.lab(), &awaited, written.written_at, || trial.check_control_plane())?;
    let tls_expected = spec.proxy.mtls.is_spoken();
    let proxies = vec![
        client.on_the_path(trial.pods.client.name(), client_evidence(&cluster(&trial), tls_expected)),
        server.on_the_path(trial.pods.server.name(), server_evidence(spec.proxy.mtls)),
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
    /// Starts the sidecar of one pod. It need not be ready yet.
    pub(super) fn start_sidecar(&mut self, side: Side) -> Result<Agent, EnvironmentError> {
        self.start_sidecar_counting(side, &statistics())
    }

    /// The same with statistics of these prefixes.
    pub(super) fn start_sidecar_counting(
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

/// Prefixes of the statistics that prove a sidecar's path.
fn statistics() -> [String; 5] {
    [
        format!("http.outbound_0.0.0.0_{SERVICE_PORT}"),
        format!("http.inbound_0.0.0.0_{SERVICE_PORT}"),
        format!("cluster.outbound|{SERVICE_PORT}|"),
        format!("cluster.inbound|{SERVICE_PORT}|"),
        format!("listener.0.0.0.0_{INBOUND_PORT}"),
    ]
}

/// The cluster of the server's Service, as Istio names it.
pub(super) fn cluster(trial: &Trial<'_>) -> String {
    format!("outbound|{SERVICE_PORT}||{}", trial.site.namespace.host_of(SERVER))
}

fn expected_of_client(trial: &Trial<'_>, marks: &Marks) -> Vec<Expected> {
    let mut expected = vec![
        Expected::Endpoint(cluster(trial), trial.server_endpoint()),
        Expected::Listener(format!("0.0.0.0_{SERVICE_PORT}")),
        Expected::Domain(trial.site.namespace.host_of(SERVER)),
    ];
    expected.extend(marks.every_listener.iter().cloned().map(Expected::InListeners));
    expected.extend(marks.routes_to_service.iter().cloned().map(Expected::InRoutes));
    expected
}

pub(super) fn expected_of_server(mtls: MutualTls, marks: &Marks) -> Vec<Expected> {
    let mut expected = vec![
        Expected::Takes(taken_by_server(mtls)),
        Expected::Cluster(format!("inbound|{SERVICE_PORT}||")),
        Expected::FilterChain(format!("0.0.0.0_{SERVICE_PORT}")),
    ];
    let listeners = marks.every_listener.iter().chain(&marks.before_service);
    expected.extend(listeners.cloned().map(Expected::InListeners));
    expected
}

fn client_evidence(cluster: &str, tls_expected: bool) -> Evidence {
    Evidence {
        handshakes: Some(format!("cluster.{cluster}.ssl.handshake")),
        tls_expected,
        ..Evidence::of_http(&format!("outbound_0.0.0.0_{SERVICE_PORT}"), cluster)
    }
}

/// Mutual TLS alone, or plain text too or alone.
fn taken_by_server(mtls: MutualTls) -> Takes {
    Takes { port: SERVICE_PORT, plain_text: mtls != MutualTls::Strict }
}

pub(super) fn server_evidence(mtls: MutualTls) -> Evidence {
    let listener = format!("listener.0.0.0.0_{INBOUND_PORT}");
    Evidence {
        handshakes: Some(format!("{listener}.ssl.handshake")),
        tls_expected: mtls.is_spoken(),
        takes: Some(taken_by_server(mtls)),
        refused: Some(format!("{listener}.no_filter_chain_match")),
        ..Evidence::of_http(&format!("inbound_0.0.0.0_{SERVICE_PORT}"), &format!("inbound|{SERVICE_PORT}||"))
    }
}
