//! The synthetic service in its pod, the same under every mesh.

use super::started::CounterSource;
use crate::certificates::CredentialFiles;
use crate::container::{Container, ContainerSpec, ContainerUser, ErrorOutput};
use crate::envoy::admin::{Admin, AdminError};
use crate::envoy::proof::CountedService;
use crate::life::Question;
use crate::pod::Pod;
use experiment::environment::{DeploymentSpec, EnvironmentError, ServerSettings, TCP_REQUEST_BYTES};
use experiment::units::{format_duration, format_fraction};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The port of the service, and of a gateway before it.
pub(crate) const SERVICE_PORT: u16 = 8080;

/// Where the service is asked what it counted, on the loopback of its pod, while [`SERVICE_PORT`] speaks no HTTP.
const COUNTERS_PORT: u16 = 8079;

/// The service starts in milliseconds; more on a machine that is busy with other things.
const SERVICE_READY_WITHIN: Duration = Duration::from_secs(20);

/// Starts the service. It need not listen yet.
pub(crate) fn start_service(
    pod: &mut Pod,
    spec: &DeploymentSpec,
    meshmeter: &Path,
    log_dir: &Path,
) -> Result<Container, EnvironmentError> {
    let place = format!("0.0.0.0:{SERVICE_PORT}");
    let listens = if spec.protocol.is_http() {
        vec![format!("--listen={place}")]
    } else {
        [vec![listen_for_questions(), format!("--tcp-listen={place}")], tcp_sizes(&spec.server)].concat()
    };
    start(pod, &spec.server, listens, meshmeter, log_dir)
}

/// Starts the service as one outside a mesh, which speaks TLS itself: at this port, with the certificate in these files.
/// It need not listen yet.
pub(crate) fn start_service_outside(
    pod: &mut Pod,
    spec: &DeploymentSpec,
    files: &CredentialFiles,
    port: u16,
    meshmeter: &Path,
    log_dir: &Path,
) -> Result<Container, EnvironmentError> {
    let option = if spec.protocol.is_http() { "--tls-listen" } else { "--tcp-tls-listen" };
    let arguments = vec![
        listen_for_questions(),
        format!("{option}=0.0.0.0:{port}"),
        format!("--tls-cert={}", files.certificate.display()),
        format!("--tls-key={}", files.key.display()),
    ];
    start(pod, &spec.server, [arguments, tcp_sizes(&spec.server)].concat(), meshmeter, log_dir)
}

/// In clear text it then answers on its loopback alone, when it is asked for its counters.
fn listen_for_questions() -> String {
    format!("--listen={}:{COUNTERS_PORT}", Ipv4Addr::LOCALHOST)
}

/// What generator and service agree on where the bytes do not say it.
fn tcp_sizes(settings: &ServerSettings) -> Vec<String> {
    vec![
        format!("--tcp-request-size={TCP_REQUEST_BYTES}"),
        format!("--tcp-reply-size={}", settings.payload_bytes.max(1)),
    ]
}

fn start(
    pod: &mut Pod,
    settings: &ServerSettings,
    listens: Vec<String>,
    meshmeter: &Path,
    log_dir: &Path,
) -> Result<Container, EnvironmentError> {
    let arguments = [
        "serve".to_owned(),
        format!("--size={}", settings.payload_bytes),
        format!("--delay={}", format_duration(settings.delay)),
        format!("--error-rate={}", format_fraction(settings.error_fraction)),
    ];
    let arguments: Vec<String> = arguments.into_iter().chain(listens).collect();
    pod.start(&ContainerSpec {
        name: "server".to_owned(),
        program: meshmeter.to_path_buf(),
        arguments: arguments.into_iter().map(Into::into).collect(),
        environment: BTreeMap::new(),
        cpu_limit_cores: settings.cpu_limit_cores,
        user: ContainerUser::Lab,
        working_directory: None,
        output_log: log_dir.join("server.log"),
        error_output: ErrorOutput::WithOutput,
    })
}

/// Waits until the service listens at this port.
pub(crate) fn wait_for_service(pod: &Pod, server: &Container, port: u16) -> Result<(), EnvironmentError> {
    pod.wait_until_listening(server, port, SERVICE_READY_WITHIN)
}

/// What the service of this trial answers as long as it does anything.
pub(crate) fn sign_of_life(pod: &Pod, spec: &DeploymentSpec) -> Question {
    // One outside a mesh speaks TLS itself.
    let is_asked_where_it_serves = spec.protocol.is_http() && !spec.mode.is_egress();
    let port = if is_asked_where_it_serves { SERVICE_PORT } else { COUNTERS_PORT };
    Question { process: None, admin: pod.admin("server", port), path: COUNTERS_PATH }
}

/// Where the service is asked what it counted (`docs/service.md`).
const COUNTERS_PATH: &str = "/meshmeter/counters";

/// The service's own counters, of all its protocols together.
#[derive(Debug)]
pub(crate) struct ServiceCounters {
    admin: Admin,
    /// Each question comes on a connection of its own, which the service counts.
    asked: AtomicU64,
}

impl ServiceCounters {
    /// Those of the service in this pod: of one that speaks TLS itself, or raw TCP.
    pub fn in_pod(pod: &Pod) -> Self {
        Self { admin: pod.admin("server", COUNTERS_PORT), asked: AtomicU64::new(0) }
    }
}

impl CounterSource for ServiceCounters {
    fn counters(&self) -> Result<BTreeMap<String, u64>, AdminError> {
        let counted: Counted = self.admin.ask_json(COUNTERS_PATH)?;
        let asked = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let connections = counted.connections_accepted.saturating_sub(asked);
        let counters = [
            (CountedService::REQUESTS, counted.requests),
            (CountedService::CONNECTIONS, connections),
            (CountedService::RECEIVED_BYTES, counted.bytes_received),
            (CountedService::SENT_BYTES, counted.bytes_sent),
        ];
        Ok(counters.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }
}

/// What is read of the service's answer.
#[derive(Deserialize)]
struct Counted {
    requests: u64,
    connections_accepted: u64,
    bytes_received: u64,
    bytes_sent: u64,
}
