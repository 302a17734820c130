//! Ways out of the mesh to a service that speaks TLS itself, as the client's database would: `egress-bypass`,
//! `egress-sidecar`, `egress-gateway`, `egress-gateway-mtls`, `egress-sni`.
//!
//! The service is a pod of its own that the mesh knows only as a ServiceEntry says; the client has a sidecar and speaks
//! TLS through it to the service, so all proxies carry connections that they do not read. What the service counted is
//! what they are held against. With `egress-bypass` the client's redirect rules leave the service's address out, and the
//! idle sidecar must have carried nothing.

mod external;
mod sni_proxy;

use self::external::External;
use super::gateway::Gateway;
use super::sidecar::{self, Side};
use super::{Memberships, Trial, Written};
use crate::arrangement::LocalLab;
use crate::arrangement::started::Started;
use crate::envoy::hop::{Hop, Layer, Peer};
use crate::envoy::proof::{Evidence, Seen};
use crate::istio::in_force::Expected;
use crate::istio::redirect::redirect_but_to;
use crate::redirect::OUTBOUND_PORT;
use experiment::Mode;
use experiment::environment::{DeploymentSpec, EnvironmentError};
use mesh::istio::objects::egress::{
    self, EXTERNAL_HOST, EXTERNAL_PORT, GATEWAY, GATEWAY_PORT, SNI_PROXY_HOST, SNI_PROXY_PORT,
};
use mesh::kubernetes::workloads::{Membership, ServicePort};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;

/// The gateway's proxy, as a component.
pub(super) const GATEWAY_PROXY: &str = "egress-gateway";

pub(super) fn can_run(place: &LocalLab, mode: Mode) -> Result<(), EnvironmentError> {
    sidecar::can_run(place, mode)?;
    if mode == Mode::EgressSni {
        sni_proxy::find()
            .map_err(|error| EnvironmentError { operation: format!("run mode {mode}"), ..error })?;
    }
    Ok(())
}

pub(super) fn bring_up(
    place: &LocalLab,
    spec: &DeploymentSpec,
    log_dir: &Path,
) -> Result<Started, EnvironmentError> {
    let sidecar = Memberships { client: Membership::Sidecar, server: Membership::Outside };
    let (mut trial, external) = Trial::begin_with_server(place, spec, log_dir, sidecar, |namespace, pod| {
        External::start(place, spec, namespace.name(), pod, log_dir)
    })?;
    super::tell_of_pods(&mut trial.site.namespace, &[&trial.client_workload])?;
    trial.write_settings()?;
    let mode = spec.mode;
    let bypassed: Option<Ipv4Addr> = (mode == Mode::EgressBypass).then_some(external.address);
    let gateway = has_gateway(mode)
        .then(|| Gateway::create(&mut trial, GATEWAY, ServicePort { name: "tls", port: GATEWAY_PORT }))
        .transpose()?;
    let gateway_hop = hop_of_gateway(mode);
    let gateway_proxy = gateway
        .as_ref()
        .map(|gateway| gateway.start(&mut trial, GATEWAY_PROXY, &gateway_hop.statistics()))
        .transpose()?;
    // Before the proxy: see `sidecar.rs`.
    redirect_but_to(&mut trial.pods.client, trial.site.programs, log_dir, bypassed)?;
    let client_hop = hop_of_client(&trial);
    let client = trial.start_sidecar(Side::Client, &statistics_of_client(&client_hop))?;
    for agent in std::iter::once(&client).chain(&gateway_proxy) {
        agent.wait_until_ready(place.lab())?;
    }
    let sni_proxy = match &gateway {
        Some(gateway) if mode == Mode::EgressSni => Some(sni_proxy::start(&mut trial, gateway, &external)?),
        _ => None,
    };
    let written = write(&mut trial, gateway.as_ref(), &external)?;
    let markers = trial.markers();
    let with_marks = |mut expected: Vec<Expected>| {
        expected.extend(markers.every_listener.iter().cloned().map(Expected::InListeners));
        expected
    };
    let of_client = expected_of_client(mode, &client_hop, gateway.as_ref(), &external);
    let mut awaited = vec![client.awaited(with_marks(of_client))];
    let of_gateway = || with_marks(expected_of_gateway(mode, &gateway_hop, &external));
    awaited.extend(gateway_proxy.as_ref().map(|agent| agent.awaited(of_gateway())));
    let in_force = trial.wait_until_propagated(&awaited, &written)?;
    drop(awaited);
    let client_evidence = match mode {
        Mode::EgressBypass => Evidence::new(Seen::Nothing(past_the_sidecar())),
        _ => client_hop.evidence(speaks_mutual_tls(mode)),
    };
    let mut proxies = vec![client.on_the_path(trial.pods.client.name(), client_evidence)];
    let gateway_evidence = gateway_hop.evidence(speaks_mutual_tls(mode));
    proxies.extend(gateway_proxy.map(|gateway| gateway.on_the_path(GATEWAY, gateway_evidence)));
    proxies.extend(sni_proxy);
    let url = external.url(spec.protocol);
    let client_arguments = external.client_arguments();
    let started = trial.started_listening_at(EXTERNAL_PORT)?;
    Ok(Started {
        proxies,
        push: Some(written.push(in_force)),
        url,
        client_arguments,
        _folders: vec![external.folder],
        ..started
    })
}

fn has_gateway(mode: Mode) -> bool {
    matches!(mode, Mode::EgressGateway | Mode::EgressGatewayMtls | Mode::EgressSni)
}

/// Whether the sidecar speaks mutual TLS with the gateway, around the client's own TLS.
fn speaks_mutual_tls(mode: Mode) -> bool {
    matches!(mode, Mode::EgressGatewayMtls | Mode::EgressSni)
}

fn write(
    trial: &mut Trial<'_>,
    gateway: Option<&Gateway>,
    external: &External,
) -> Result<Written, EnvironmentError> {
    let spec = trial.site.spec;
    let exit = spec.mode.parts(spec.mesh).exit;
    let mut objects = egress::objects(exit, trial.site.namespace.name(), &[external.address]);
    objects.extend(gateway.iter().flat_map(|gateway| gateway.service()));
    let (written, _) = trial.write_without_service(&objects)?;
    trial.site.namespace.add_name(external.address, &[EXTERNAL_HOST])?;
    Ok(written)
}

/// What the sidecar does with the client's connections.
fn hop_of_client(trial: &Trial<'_>) -> Hop {
    let peer = if has_gateway(trial.site.spec.mode) { Peer::Next } else { Peer::Nobody };
    Hop { peer, ..Hop::outbound(Layer::L4, EXTERNAL_PORT, cluster_of_client(trial)) }
}

/// What the gateway does with them.
fn hop_of_gateway(mode: Mode) -> Hop {
    let peer = Peer::Previous(format!("0.0.0.0_{GATEWAY_PORT}"));
    Hop { peer, ..Hop::outbound(Layer::L4, GATEWAY_PORT, cluster_of_gateway(mode)) }
}

/// Where the sidecar sends the client's connections.
fn cluster_of_client(trial: &Trial<'_>) -> String {
    if has_gateway(trial.site.spec.mode) {
        format!("outbound|{GATEWAY_PORT}|{}|{}", egress::SUBSET, trial.site.namespace.host_of(GATEWAY))
    } else {
        external_cluster()
    }
}

/// Where the gateway sends them.
fn cluster_of_gateway(mode: Mode) -> String {
    if mode == Mode::EgressSni {
        format!("outbound|{SNI_PROXY_PORT}||{SNI_PROXY_HOST}")
    } else {
        external_cluster()
    }
}

fn external_cluster() -> String {
    format!("outbound|{EXTERNAL_PORT}||{EXTERNAL_HOST}")
}

/// What counts in a sidecar that traffic should have gone past: whatever it is redirected is taken here, known or not.
fn past_the_sidecar() -> Vec<String> {
    vec![
        format!("listener.0.0.0.0_{OUTBOUND_PORT}.downstream_cx_total"),
        "cluster.PassthroughCluster.upstream_cx_total".to_owned(),
        "cluster.BlackHoleCluster.upstream_cx_total".to_owned(),
    ]
}

/// Prefixes of the statistics that prove its path, or that nothing took it.
fn statistics_of_client(hop: &Hop) -> Vec<String> {
    hop.statistics().into_iter().chain(past_the_sidecar()).collect()
}

fn expected_of_client(
    mode: Mode,
    hop: &Hop,
    gateway: Option<&Gateway>,
    external: &External,
) -> Vec<Expected> {
    if mode == Mode::EgressBypass {
        return Vec::new();
    }
    let next = gateway
        .map_or(external.socket_address(), |gateway| SocketAddrV4::new(gateway.address(), GATEWAY_PORT));
    leading(hop, EXTERNAL_PORT, next)
}

fn expected_of_gateway(mode: Mode, hop: &Hop, external: &External) -> Vec<Expected> {
    let next = match mode {
        Mode::EgressSni => SocketAddrV4::new(Ipv4Addr::LOCALHOST, SNI_PROXY_PORT),
        _ => external.socket_address(),
    };
    leading(hop, GATEWAY_PORT, next)
}

/// That a proxy takes connections at this port and leads them to this address.
fn leading(hop: &Hop, port: u16, next: SocketAddrV4) -> Vec<Expected> {
    vec![
        Expected::Endpoint(hop.cluster.clone(), next),
        Expected::Listener(format!("0.0.0.0_{port}")),
        Expected::route(hop, EXTERNAL_HOST),
    ]
}
