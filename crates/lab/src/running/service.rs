//! The synthetic service in its pods, the same under every mesh.

use crate::Result;
use crate::component_name::{file_name, lab_name};
use crate::container::{Container, ContainerSpec, ContainerUser, ErrorOutput};
use crate::context::DeploymentContext;
use crate::pod::Pod;
use crate::private_dir::PrivateDir;
use experiment::environment::{EnvironmentError, ServerSettings, TCP_REQUEST_BYTES};
use experiment::topology::Workload;
use experiment::units::{format_duration, format_fraction};
use mesh::admin::liveness::LivenessProbe;
use mesh::admin::{Admin, AdminError};
use mesh::proof::CountedService;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The port of services, and of a gateway before them.
pub(crate) const SERVICE_PORT: u16 = 8080;

/// Where a service is asked what it counted, on the loopback of its pod, while [`SERVICE_PORT`] speaks no HTTP.
const COUNTERS_PORT: u16 = 8079;

/// A service starts in milliseconds; more on a machine that is busy with other things.
pub(super) const READY_TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(crate) struct RunningService {
    pub container: Container,
    pub port: u16,
    pub liveness: LivenessProbe,
    pub counters: ServiceCounters,
    pub credentials: Option<PrivateDir>,
}

pub(crate) struct ServiceFactory<'a> {
    pub context: &'a DeploymentContext<'a>,
    /// The name in the certificates of external services, and their port.
    pub external: (&'a str, u16),
}

impl ServiceFactory<'_> {
    pub fn start(&self, pod: &mut Pod, name: &str, workload: &Workload) -> Result<Option<RunningService>> {
        let Some(settings) = workload.service() else { return Ok(None) };
        let is_http = workload.protocol.is_http();
        let (port, listens, credentials) = if workload.is_external() {
            let (listens, credentials) = self.tls(name, is_http)?;
            (self.external.1, listens, Some(credentials))
        } else {
            (SERVICE_PORT, clear_text(is_http), None)
        };
        let sizes = if is_http { Vec::new() } else { tcp_sizes(workload) };
        let container = self.process(pod, name, workload, settings, [listens, sizes].concat())?;
        // An external service speaks TLS at its own port.
        let asked_at = if is_http && !workload.is_external() { SERVICE_PORT } else { COUNTERS_PORT };
        let admin = pod.admin(name, asked_at);
        Ok(Some(RunningService {
            container,
            port,
            liveness: LivenessProbe { process: None, admin: admin.clone(), path: COUNTERS_PATH },
            counters: ServiceCounters { admin, asked: AtomicU64::new(0) },
            credentials,
        }))
    }

    fn tls(&self, name: &str, is_http: bool) -> Result<(Vec<String>, PrivateDir)> {
        let failed = |error: EnvironmentError| {
            EnvironmentError::new("make the certificate of the external service", error)
        };
        let (host, port) = self.external;
        let credentials = self.context.authority.issue_server(&[host], &[]).map_err(failed)?;
        let directory = lab_name(&format!("t{}-{name}-credentials", self.context.number));
        let directory = PrivateDir(self.context.lab.create_private_dir(&directory, ContainerUser::Lab)?);
        let files = credentials.write(directory.path(), None).map_err(failed)?;
        let option = if is_http { "--tls-listen" } else { "--tcp-tls-listen" };
        let arguments = vec![
            listen_for_questions(),
            format!("{option}=0.0.0.0:{port}"),
            format!("--tls-cert={}", files.certificate.display()),
            format!("--tls-key={}", files.key.display()),
        ];
        Ok((arguments, directory))
    }

    fn process(
        &self,
        pod: &mut Pod,
        name: &str,
        workload: &Workload,
        settings: &ServerSettings,
        listens: Vec<String>,
    ) -> Result<Container> {
        let arguments = [
            "serve".to_owned(),
            format!("--size={}", settings.payload_bytes),
            format!("--delay={}", format_duration(settings.delay)),
            format!("--error-rate={}", format_fraction(settings.error_fraction)),
        ];
        let arguments: Vec<String> = arguments.into_iter().chain(listens).collect();
        pod.start(&ContainerSpec {
            name: lab_name(name),
            program: self.context.meshmeter.to_path_buf(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            environment: BTreeMap::new(),
            cpu_limit_cores: workload.resources.cpu_limit_cores,
            user: ContainerUser::Lab,
            working_directory: None,
            output_log: self.context.log_dir.join(format!("{}.log", file_name(name))),
            error_output: ErrorOutput::WithOutput,
        })
    }
}

fn clear_text(is_http: bool) -> Vec<String> {
    let address = format!("0.0.0.0:{SERVICE_PORT}");
    if is_http {
        vec![format!("--listen={address}")]
    } else {
        vec![listen_for_questions(), format!("--tcp-listen={address}")]
    }
}

/// In clear text such a service responds on its loopback alone, when it is asked for its counters.
fn listen_for_questions() -> String {
    format!("--listen={}:{COUNTERS_PORT}", Ipv4Addr::LOCALHOST)
}

/// What generator and service agree on where the bytes do not say it.
fn tcp_sizes(workload: &Workload) -> Vec<String> {
    vec![
        format!("--tcp-request-size={TCP_REQUEST_BYTES}"),
        format!("--tcp-reply-size={}", workload.tcp_reply_bytes()),
    ]
}

/// Where a service returns what it counted (`docs/service.md`).
const COUNTERS_PATH: &str = "/meshmeter/counters";

/// A service's own counters, of all its protocols together.
#[derive(Debug)]
pub(crate) struct ServiceCounters {
    admin: Admin,
    /// Each question comes on a connection of its own, which the service counts.
    asked: AtomicU64,
}

impl ServiceCounters {
    pub fn read(&self) -> Result<BTreeMap<String, u64>, AdminError> {
        let counted: Counted = self.admin.ask_json(COUNTERS_PATH)?;
        let asked = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let counters = [
            (CountedService::REQUESTS, counted.requests),
            (CountedService::CONNECTIONS, counted.connections_accepted.saturating_sub(asked)),
            (CountedService::RECEIVED_BYTES, counted.bytes_received),
            (CountedService::SENT_BYTES, counted.bytes_sent),
        ];
        Ok(counters.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }
}

#[derive(Deserialize)]
struct Counted {
    requests: u64,
    connections_accepted: u64,
    bytes_received: u64,
    bytes_sent: u64,
}
