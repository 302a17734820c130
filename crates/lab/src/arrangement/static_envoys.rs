//! Bringing up a pair under `mesh: envoy`: pods, service, proxies with static files, redirect, each waited for before
//! anything relies on it.

use super::LocalLab;
use super::proxy::{ProxyFactory, ProxySpec, StaticProxy};
use super::service::{SERVICE_PORT, sign_of_life, start_service, wait_for_service};
use super::started::{Pods, Started, create_log_dir};
use crate::envoy::bootstrap::Position;
use crate::pod::{Pod, PodSpec};
use crate::redirect::Redirect;
use experiment::Mode;
use experiment::environment::{DeploymentSpec, EnvironmentError};
use std::net::SocketAddrV4;
use std::path::Path;

/// Starts everything that a trial needs and waits until it is ready to serve. What an error leaves is dropped, and so
/// taken down.
pub(super) fn bring_up(
    place: &LocalLab,
    spec: &DeploymentSpec,
    log_dir: &Path,
) -> Result<Started, EnvironmentError> {
    create_log_dir(log_dir)?;
    let mut pods = create_pods(place, spec.mode)?;
    let server = start_service(&mut pods.server, spec, &place.programs.meshmeter, log_dir)?;
    let proxies = start_proxies(place, &mut pods, spec, log_dir)?;
    wait_for_service(&pods.server, &server, SERVICE_PORT)?;
    for proxy in &proxies {
        proxy.wait_until_ready(&place.lab, pod_of(&pods, proxy.position))?;
    }
    if spec.mode == Mode::Sidecar {
        redirect(&pods)?;
    }
    let target = pods.others.first().unwrap_or(&pods.server);
    let (scheme, path) = (spec.protocol.scheme(false), spec.protocol.path());
    let url = format!("{scheme}://{}:{SERVICE_PORT}{path}", target.address());
    let proxies = proxies.into_iter().map(|proxy| proxy.on_the_path(&pods)).collect();
    Ok(Started {
        server_sign_of_life: sign_of_life(&pods.server, spec),
        pods,
        server,
        proxies,
        supporting: Vec::new(),
        tracing: None,
        url,
        client_arguments: Vec::new(),
        push: None,
        _folders: Vec::new(),
        namespace: None,
    })
}

/// The pod of a proxy at this position.
pub(super) fn pod_of(pods: &Pods, position: Position) -> &Pod {
    match position {
        Position::ClientSidecar { .. } => &pods.client,
        Position::ServerSidecar { .. } => &pods.server,
        Position::Gateway { .. } => pods.others.first().expect("a gateway has a pod of its own"),
    }
}

fn create_pods(place: &LocalLab, mode: Mode) -> Result<Pods, EnvironmentError> {
    let create = |name: &str| place.lab.create_pod(&PodSpec::new(name));
    Ok(Pods {
        client: create("client")?,
        server: create("server")?,
        others: (mode == Mode::Gateway).then(|| create("gateway")).into_iter().collect::<Result<_, _>>()?,
    })
}

/// Starts the proxies of a mode, from client to server, all before the first is waited for.
fn start_proxies(
    place: &LocalLab,
    pods: &mut Pods,
    spec: &DeploymentSpec,
    log_dir: &Path,
) -> Result<Vec<StaticProxy>, EnvironmentError> {
    let service = SocketAddrV4::new(pods.server.address(), SERVICE_PORT);
    if spec.mode == Mode::None {
        return Ok(Vec::new());
    }
    let factory = ProxyFactory {
        envoy: place.envoy()?,
        settings: &spec.proxy,
        protocol: spec.protocol,
        authority: &place.authority,
        lab: &place.lab,
        arrangement: place.next_arrangement(),
        log_dir,
    };
    if let Some(pod) = pods.others.first_mut() {
        let position = Position::Gateway { port: SERVICE_PORT, service };
        return Ok(vec![factory.start(pod, &ProxySpec { name: "gateway", position })?]);
    }
    let client = ProxySpec { name: "client-proxy", position: Position::ClientSidecar { service } };
    let server = ProxySpec { name: "server-proxy", position: Position::ServerSidecar { port: SERVICE_PORT } };
    Ok(vec![factory.start(&mut pods.client, &client)?, factory.start(&mut pods.server, &server)?])
}

/// What leaves the client's pod and what enters the server's goes through their proxies. Nothing else of a mesh's rules
/// matters on this path: the client serves nothing, and the server calls nobody.
fn redirect(pods: &Pods) -> Result<(), EnvironmentError> {
    pods.client.redirect(&Redirect { outbound: true, inbound_ports: Vec::new() })?;
    pods.server.redirect(&Redirect { outbound: false, inbound_ports: vec![SERVICE_PORT] })
}
