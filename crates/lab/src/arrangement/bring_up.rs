//! Bringing up a pair: pods, service, proxies, redirect, each waited for before anything relies on it.

use super::LocalLab;
use super::proxy::{Proxy, ProxyFactory, ProxySpec};
use crate::container::{Container, ContainerSpec, ContainerUser, ErrorOutput};
use crate::envoy::bootstrap::Position;
use crate::pod::{Pod, PodSpec};
use crate::redirect::Redirect;
use experiment::Mode;
use experiment::environment::{ArrangementSpec, EnvironmentError, ServerSettings};
use experiment::units::{format_duration, format_fraction};
use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddrV4;
use std::path::Path;
use std::time::Duration;

/// The port of the service, and of a gateway before it.
pub(super) const SERVICE_PORT: u16 = 8080;

/// The service starts in milliseconds; more on a machine that is busy with other things.
const SERVICE_READY_WITHIN: Duration = Duration::from_secs(20);

/// The pods of an arrangement.
#[derive(Debug)]
pub(super) struct Pods {
    pub client: Pod,
    pub server: Pod,
    pub gateway: Option<Pod>,
}

impl Pods {
    /// The pod of a proxy at this position.
    pub fn of(&self, position: Position) -> &Pod {
        match position {
            Position::ClientSidecar { .. } => &self.client,
            Position::ServerSidecar { .. } => &self.server,
            Position::Gateway { .. } => self.gateway.as_ref().expect("a gateway has a pod of its own"),
        }
    }
}

/// Everything of an arrangement that was started. Pods come first, so that they, and all processes with them, are the
/// first to be dropped.
#[derive(Debug)]
pub(super) struct Started {
    pub pods: Pods,
    pub server: Container,
    /// From client to server.
    pub proxies: Vec<Proxy>,
    pub url: String,
}

/// Starts everything that a trial needs and waits until it is ready to serve. What an error leaves is dropped, and so
/// taken down.
pub(super) fn bring_up(
    place: &LocalLab,
    spec: &ArrangementSpec,
    log_dir: &Path,
) -> Result<Started, EnvironmentError> {
    fs::create_dir_all(log_dir).map_err(|error| {
        EnvironmentError::new(format!("create the log folder {}", log_dir.display()), error)
    })?;
    let mut pods = create_pods(place, spec.mode)?;
    let server = start_service(&mut pods.server, &spec.server, &place.programs.meshmeter, log_dir)?;
    let proxies = start_proxies(place, &mut pods, spec, log_dir)?;
    pods.server.wait_until_listening(&server, SERVICE_PORT, SERVICE_READY_WITHIN)?;
    for proxy in &proxies {
        proxy.wait_until_ready(&place.lab, pods.of(proxy.position))?;
    }
    if spec.mode == Mode::Sidecar {
        redirect(&pods)?;
    }
    let target = pods.gateway.as_ref().unwrap_or(&pods.server);
    let url = format!("http://{}:{SERVICE_PORT}/", target.address());
    Ok(Started { pods, server, proxies, url })
}

fn create_pods(place: &LocalLab, mode: Mode) -> Result<Pods, EnvironmentError> {
    let create = |name: &str| place.lab.create_pod(&PodSpec::new(name));
    Ok(Pods {
        client: create("client")?,
        server: create("server")?,
        gateway: (mode == Mode::Gateway).then(|| create("gateway")).transpose()?,
    })
}

fn start_service(
    pod: &mut Pod,
    settings: &ServerSettings,
    meshmeter: &Path,
    log_dir: &Path,
) -> Result<Container, EnvironmentError> {
    let arguments = [
        "serve".to_owned(),
        format!("--listen=0.0.0.0:{SERVICE_PORT}"),
        format!("--size={}", settings.payload_bytes),
        format!("--delay={}", format_duration(settings.delay)),
        format!("--error-rate={}", format_fraction(settings.error_fraction)),
    ];
    pod.start(&ContainerSpec {
        name: "server".to_owned(),
        program: meshmeter.to_path_buf(),
        arguments: arguments.map(Into::into).to_vec(),
        environment: BTreeMap::new(),
        cpu_limit_cores: settings.cpu_limit_cores,
        user: ContainerUser::Lab,
        output_log: log_dir.join("server.log"),
        error_output: ErrorOutput::WithOutput,
    })
}

/// Starts the proxies of a mode, from client to server, all before the first is waited for.
fn start_proxies(
    place: &LocalLab,
    pods: &mut Pods,
    spec: &ArrangementSpec,
    log_dir: &Path,
) -> Result<Vec<Proxy>, EnvironmentError> {
    let service = SocketAddrV4::new(pods.server.address(), SERVICE_PORT);
    if spec.mode == Mode::None {
        return Ok(Vec::new());
    }
    let factory = ProxyFactory {
        envoy: place.envoy()?,
        settings: &spec.proxy,
        authority: &place.authority,
        lab: &place.lab,
        arrangement: place.next_arrangement(),
        log_dir,
    };
    if let Some(pod) = &mut pods.gateway {
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
