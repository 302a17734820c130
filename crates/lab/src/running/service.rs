//! Services in their pods, the same under every mesh: the synthetic service, and nodes of a graph with their
//! scripts.

use super::database::{self, DATABASE_PORT};
use crate::Result;
use crate::certificates::CredentialFiles;
use crate::component_name::lab_name;
use crate::container::{Container, ContainerSpec, ContainerUser};
use crate::context::DeploymentContext;
use crate::pod::Pod;
use crate::private_dir::PrivateDir;
use components::{Component, find_database};
use experiment::environment::{EnvironmentError, ErrorContext as _};
use experiment::topology::{Runs, Workload};
use mesh::admin::liveness::LivenessProbe;
use mesh::admin::{Admin, AdminCause, AdminError};
use mesh::service::{COUNTERS_PATH, READY_PATH, ServiceReading, synthetic_arguments};
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// Port of services, and of a gateway in front of them.
pub(crate) const SERVICE_PORT: u16 = 8080;

/// Port on the pod's loopback for a service's counters, unless it serves them on [`SERVICE_PORT`].
const COUNTERS_PORT: u16 = 8079;

/// A service starts within milliseconds, longer on a busy machine.
pub(super) const READY_TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(crate) struct RunningService {
    pub container: Container,
    pub port: u16,
    pub liveness: LivenessProbe,
    pub counters: ServiceCounters,
    pub credentials: Option<PrivateDir>,
}

impl RunningService {
    /// True once a node has filled the collections that it reads. The error is what it waits for.
    pub fn is_ready(&self) -> Result<bool> {
        if !matches!(self.counters.counts, Counts::OfNode) {
            return Ok(true);
        }
        match self.counters.admin.ask(READY_PATH) {
            Ok(_) => Ok(true),
            Err(AdminError { cause: AdminCause::Status(_) | AdminCause::Connect(_), .. }) => Ok(false),
            Err(error) => Err(EnvironmentError::new("ask a service whether it is ready", error)),
        }
    }
}

pub(crate) struct ServiceFactory<'a> {
    pub context: &'a DeploymentContext<'a>,
    /// Host name in the certificates of external services, and their port.
    pub external: (&'a str, u16),
    /// Topology file for services with scripts.
    pub topology: &'a Path,
    /// CA certificate that services verify databases with; absent if the topology has no database.
    pub database_authority: Option<&'a Path>,
}

impl ServiceFactory<'_> {
    /// Starts what a pod of a workload runs, if anything. `connect` are the options that locate its callees.
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
            Runs::Database => return self.database(pod, name, workload).map(Some),
            Runs::Scripted(_) => {
                arguments.extend([
                    format!("--topology={}", self.topology.display()),
                    format!("--service={}", workload.qualified_name()),
                    format!("--listen=0.0.0.0:{SERVICE_PORT}"),
                    format!("--admin-listen={}:{COUNTERS_PORT}", Ipv4Addr::LOCALHOST),
                ]);
                arguments.extend_from_slice(connect);
                if let Some(file) = self.database_authority {
                    arguments.push(format!("--database-ca={}", file.display()));
                }
            }
            Runs::Service(settings) => {
                arguments.extend(synthetic_arguments(settings, workload));
                if workload.protocol.is_http() {
                    arguments.push(format!("--listen=0.0.0.0:{SERVICE_PORT}"));
                    asked_at = SERVICE_PORT;
                } else {
                    arguments
                        .extend([listen_for_questions(), format!("--tcp-listen=0.0.0.0:{SERVICE_PORT}")]);
                }
            }
            Runs::ExternalService(settings) => {
                arguments.extend(synthetic_arguments(settings, workload));
                let (files, directory) = self.credentials(pod, name)?;
                arguments.extend(self.tls(&files, workload.protocol.is_http()));
                (port, credentials) = (self.external.1, Some(directory));
            }
        }
        let container = pod.start(&self.container(name, workload, self.context.meshmeter, arguments))?;
        let admin = pod.admin(name, asked_at);
        // Nodes do not count queries of their counters.
        let counts = match &workload.runs {
            Runs::Scripted(_) => Counts::OfNode,
            _ => Counts::WithQuestions(AtomicU64::default()),
        };
        Ok(Some(RunningService {
            container,
            port,
            liveness: LivenessProbe { process: None, admin: admin.clone(), path: COUNTERS_PATH },
            counters: ServiceCounters { admin, counts },
            credentials,
        }))
    }

    fn database(&self, pod: &mut Pod, name: &str, workload: &Workload) -> Result<RunningService> {
        let program = find_database(self.context.overrides)?;
        let (files, directory) = self.credentials(pod, name)?;
        let arguments = database::arguments(&program, &files, directory.path())?;
        let counts =
            if program.component == Component::FerretDb { Counts::OfFerretDb } else { Counts::Nothing };
        let container = pod.start(&self.container(name, workload, &program.path, arguments))?;
        let admin = pod.admin(name, database::METRICS_PORT);
        Ok(RunningService {
            container,
            port: DATABASE_PORT,
            liveness: LivenessProbe { process: None, admin: admin.clone(), path: database::LIVE_PATH },
            counters: ServiceCounters { admin, counts },
            credentials: Some(directory),
        })
    }

    fn container(
        &self,
        name: &str,
        workload: &Workload,
        program: &Path,
        arguments: Vec<String>,
    ) -> ContainerSpec {
        ContainerSpec {
            arguments: arguments.into_iter().map(Into::into).collect(),
            limits: workload.resources,
            ..self.context.container(name, program)
        }
    }

    /// Issues a certificate for the external name and the pod's address, in a private directory.
    fn credentials(&self, pod: &Pod, name: &str) -> Result<(CredentialFiles, PrivateDir)> {
        let operation = "make the certificate of the external service";
        let (host, _) = self.external;
        let credentials =
            self.context.authority.issue_server(&[host], &[pod.address().into()]).context(operation)?;
        let directory = lab_name(&format!("t{}-{name}-credentials", self.context.number));
        let directory = PrivateDir(self.context.lab.create_private_dir(&directory, ContainerUser::Lab)?);
        let files = credentials.write(directory.path(), None).context(operation)?;
        Ok((files, directory))
    }

    fn tls(&self, files: &CredentialFiles, is_http: bool) -> Vec<String> {
        let option = if is_http { "--tls-listen" } else { "--tcp-tls-listen" };
        vec![
            listen_for_questions(),
            format!("{option}=0.0.0.0:{}", self.external.1),
            format!("--tls-cert={}", files.certificate.display()),
            format!("--tls-key={}", files.key.display()),
        ]
    }
}

/// Plaintext listener for queries of counters only, on the pod's loopback.
fn listen_for_questions() -> String {
    format!("--listen={}:{COUNTERS_PORT}", Ipv4Addr::LOCALHOST)
}

const IN_WINDOW_TIMEOUT: Duration = Duration::from_secs(1);

/// A service's own counters, summed over its protocols.
#[derive(Debug)]
pub(crate) struct ServiceCounters {
    admin: Admin,
    counts: Counts,
}

#[derive(Debug)]
enum Counts {
    /// Number of queries so far. The service counts them too: each arrives on a connection of its own.
    WithQuestions(AtomicU64),
    OfNode,
    OfFerretDb,
    Nothing,
}

impl ServiceCounters {
    /// True if the service counts queries among its own requests and bytes.
    pub fn counts_own_queries(&self) -> bool {
        matches!(self.counts, Counts::WithQuestions(_))
    }

    pub fn read(&self) -> Result<ServiceReading, AdminError> {
        self.read_from(&self.admin)
    }

    /// Reads the counters while load runs. A slow service must not delay the monitoring of the others.
    pub fn read_in_window(&self) -> Result<ServiceReading, AdminError> {
        self.read_from(&self.admin.within(IN_WINDOW_TIMEOUT))
    }

    fn read_from(&self, admin: &Admin) -> Result<ServiceReading, AdminError> {
        match &self.counts {
            Counts::OfFerretDb => {
                let counters = database::read(admin)?;
                Ok(ServiceReading { counters, ..ServiceReading::default() })
            }
            Counts::Nothing => Ok(ServiceReading::default()),
            Counts::WithQuestions(asked) => ServiceReading::read(admin, Some(asked)),
            Counts::OfNode => ServiceReading::read(admin, None),
        }
    }
}
