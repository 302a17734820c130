//! Services in their pods, the same under every mesh: the synthetic service, and nodes of a graph with their scripts.

use crate::Result;
use crate::component_name::{file_name, lab_name};
use crate::container::{Container, ContainerSpec, ContainerUser, ErrorOutput};
use crate::context::DeploymentContext;
use crate::pod::Pod;
use crate::private_dir::PrivateDir;
use experiment::environment::{EnvironmentError, ServerSettings, TCP_REQUEST_BYTES};
use experiment::topology::{Runs, Workload};
use experiment::units::{format_duration, format_fraction};
use mesh::admin::liveness::LivenessProbe;
use mesh::admin::{Admin, AdminError};
use mesh::proof::{CallCounters, CountedService};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The port of services, and of a gateway before them.
pub(crate) const SERVICE_PORT: u16 = 8080;

/// Where a service is asked what it counted, on the loopback of its pod, unless it answers at [`SERVICE_PORT`] too.
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
    /// File of the topology, for services with scripts.
    pub topology: &'a Path,
}

impl ServiceFactory<'_> {
    /// Starts what a pod of a workload runs, if anything. `connect` are the options by which it finds its callees.
    pub fn start(
        &self,
        pod: &mut Pod,
        name: &str,
        workload: &Workload,
        connect: &[String],
    ) -> Result<Option<RunningService>> {
        let (mut port, mut asked_at, mut credentials) = (SERVICE_PORT, COUNTERS_PORT, None);
        let mut arguments = vec!["serve".to_owned()];
        match &workload.runs {
            Runs::Drivers => return Ok(None),
            Runs::Database => {
                return Err(EnvironmentError::new(format!("start {name}"), "a lab runs no database"));
            }
            Runs::Scripted(_) => {
                arguments.extend([
                    format!("--topology={}", self.topology.display()),
                    format!("--service={}", workload.qualified_name()),
                    format!("--listen=0.0.0.0:{SERVICE_PORT}"),
                    format!("--admin-listen={}:{COUNTERS_PORT}", Ipv4Addr::LOCALHOST),
                ]);
                arguments.extend_from_slice(connect);
            }
            Runs::Service(settings) => {
                arguments.extend(synthetic(settings, workload));
                if workload.protocol.is_http() {
                    arguments.push(format!("--listen=0.0.0.0:{SERVICE_PORT}"));
                    asked_at = SERVICE_PORT;
                } else {
                    arguments
                        .extend([listen_for_questions(), format!("--tcp-listen=0.0.0.0:{SERVICE_PORT}")]);
                }
            }
            Runs::ExternalService(settings) => {
                arguments.extend(synthetic(settings, workload));
                let (listens, directory) = self.tls(name, workload.protocol.is_http())?;
                arguments.extend(listens);
                (port, credentials) = (self.external.1, Some(directory));
            }
        }
        let container = pod.start(&ContainerSpec {
            name: lab_name(name),
            program: self.context.meshmeter.to_path_buf(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            environment: BTreeMap::new(),
            limits: workload.resources,
            user: ContainerUser::Lab,
            working_directory: None,
            output_log: self.context.log_dir.join(format!("{}.log", file_name(name))),
            error_output: ErrorOutput::WithOutput,
        })?;
        let admin = pod.admin(name, asked_at);
        // A node counts no questions.
        let asked = workload.script().is_none().then(AtomicU64::default);
        Ok(Some(RunningService {
            container,
            port,
            liveness: LivenessProbe { process: None, admin: admin.clone(), path: COUNTERS_PATH },
            counters: ServiceCounters { admin, asked },
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
}

/// What the synthetic service does, whatever it listens for. Where bytes do not say it, generator and service agree on sizes.
fn synthetic(settings: &ServerSettings, workload: &Workload) -> Vec<String> {
    let mut arguments = vec![
        format!("--size={}", settings.payload_bytes),
        format!("--delay={}", format_duration(settings.delay)),
        format!("--error-rate={}", format_fraction(settings.error_fraction)),
    ];
    if !workload.protocol.is_http() {
        arguments.extend([
            format!("--tcp-request-size={TCP_REQUEST_BYTES}"),
            format!("--tcp-reply-size={}", workload.tcp_reply_bytes()),
        ]);
    }
    arguments
}

/// In clear text such a service responds on its loopback alone, when it is asked for its counters.
fn listen_for_questions() -> String {
    format!("--listen={}:{COUNTERS_PORT}", Ipv4Addr::LOCALHOST)
}

/// Where a service returns what it counted (`docs/service.md`).
const COUNTERS_PATH: &str = "/meshmeter/counters";

/// A service's own counters, of all its protocols together.
#[derive(Debug)]
pub(crate) struct ServiceCounters {
    admin: Admin,
    /// Questions so far, where the service counts them: each comes on a connection of its own.
    asked: Option<AtomicU64>,
}

impl ServiceCounters {
    /// Whether the service counts questions among its own requests and bytes.
    pub fn counts_questions(&self) -> bool {
        self.asked.is_some()
    }

    pub fn read(&self) -> Result<ServiceReading, AdminError> {
        let counted: Counted = self.admin.ask_json(COUNTERS_PATH)?;
        let asked = self.asked.as_ref().map_or(0, |asked| asked.fetch_add(1, Ordering::Relaxed) + 1);
        let counters = [
            (CountedService::REQUESTS, counted.requests),
            (CountedService::CONNECTIONS, counted.connections_accepted.saturating_sub(asked)),
            (CountedService::RECEIVED_BYTES, counted.bytes_received),
            (CountedService::SENT_BYTES, counted.bytes_sent),
        ];
        let counters = counters.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Ok(ServiceReading { counters, calls: counted.calls })
    }
}

/// What a service had counted at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServiceReading {
    /// By the names of [`CountedService`]. One that it does not count is not in here.
    pub counters: BTreeMap<String, u64>,
    /// Of a node: its calls by qualified name of the callee.
    pub calls: BTreeMap<String, CallReading>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct CallReading {
    #[serde(flatten)]
    pub counters: CallCounters,
    /// HdrHistogram; empty if it is not measured.
    #[serde(default)]
    pub response_time_us: String,
}

#[derive(Deserialize)]
struct Counted {
    requests: u64,
    connections_accepted: u64,
    bytes_received: u64,
    bytes_sent: u64,
    #[serde(default)]
    calls: BTreeMap<String, CallReading>,
}
