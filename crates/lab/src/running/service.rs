//! Services in their pods, the same under every mesh: the synthetic service, and nodes of a graph with their
//! scripts.

use super::database::{self, DATABASE_PORT};
use crate::Result;
use crate::certificates::CredentialFiles;
use crate::confined::server_user;
use crate::container::{Confined, Container, ContainerSpec, ContainerUser};
use crate::context::DeploymentContext;
use crate::pod::Pod;
use crate::private_dir::PrivateDir;
use components::{Component, find_database};
use experiment::environment::{EnvironmentError, ErrorContext as _};
use experiment::topology::{Runs, Workload};
use mesh::admin::liveness::LivenessProbe;
use mesh::admin::{Admin, AdminCause, AdminError};
use mesh::dataplane::SERVICE_PORT;
use mesh::istio::objects::egress::{EXTERNAL_HOST, EXTERNAL_PORT};
use mesh::service::{COUNTERS_PATH, READY_PATH, ServiceReading, synthetic_arguments};
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// Port on the pod's loopback for a service's counters, unless it serves them on [`SERVICE_PORT`].
const COUNTERS_PORT: u16 = 8079;

/// A service starts within milliseconds, longer on a busy machine.
pub(super) const READY_TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(crate) struct RunningService {
    pub container: Container,
    pub port: u16,
    pub credentials: Option<PrivateDir>,
    /// Interface with its counters, which are summed over its protocols.
    admin: Admin,
    counts: Counts,
}

#[derive(Debug)]
enum Counts {
    /// Number of queries so far. The service counts them too: each arrives on a connection of its own.
    WithQueries(AtomicU64),
    OfNode,
    OfFerretDb,
    /// A database that the user named.
    Nothing,
}

impl RunningService {
    /// True once a node has filled the collections that it reads. The error is what it waits for.
    pub fn is_ready(&self) -> Result<bool> {
        if !matches!(self.counts, Counts::OfNode) {
            return Ok(true);
        }
        match self.admin.ask(READY_PATH) {
            Ok(_) => Ok(true),
            Err(AdminError { cause: AdminCause::Status(_) | AdminCause::Connect(_), .. }) => Ok(false),
            Err(error) => Err(EnvironmentError::new("probe the readiness of a service", error)),
        }
    }

    pub fn liveness(&self) -> LivenessProbe {
        let is_database = matches!(self.counts, Counts::OfFerretDb | Counts::Nothing);
        let path = if is_database { database::LIVE_PATH } else { COUNTERS_PATH };
        LivenessProbe { process: None, admin: self.admin.clone(), path }
    }

    /// True if the service counts queries among its own requests and bytes.
    pub fn counts_own_queries(&self) -> bool {
        matches!(self.counts, Counts::WithQueries(_))
    }

    pub fn read_counters(&self) -> Result<ServiceReading, AdminError> {
        self.read_counters_from(&self.admin)
    }

    pub fn read_counters_within(&self, timeout: Duration) -> Result<ServiceReading, AdminError> {
        self.read_counters_from(&self.admin.within(timeout))
    }

    fn read_counters_from(&self, admin: &Admin) -> Result<ServiceReading, AdminError> {
        match &self.counts {
            Counts::OfFerretDb => {
                Ok(ServiceReading { counters: database::read(admin)?, ..ServiceReading::default() })
            }
            Counts::Nothing => Ok(ServiceReading::default()),
            Counts::WithQueries(asked) => ServiceReading::read(admin, Some(asked)),
            Counts::OfNode => ServiceReading::read(admin, None),
        }
    }
}

pub(crate) struct ServiceFactory<'a> {
    pub context: &'a DeploymentContext<'a>,
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
        let mut program = self.context.meshmeter.to_path_buf();
        let (mut port, mut admin_port, mut credentials) = (SERVICE_PORT, COUNTERS_PORT, None);
        let mut counts = Counts::WithQueries(AtomicU64::default());
        let mut arguments = vec!["serve".to_owned()];
        let mut confined = None;
        match &workload.runs {
            Runs::Drivers => return Ok(None),
            Runs::Database => {
                let database = find_database(self.context.overrides)?;
                confined = Confined::for_programs(&[&database]);
                let (files, directory) = self.credentials(pod, name, server_user(confined.as_ref()))?;
                confined = confined.map(|confined| confined.writing(directory.path()));
                arguments = database::arguments(&database, &files, directory.path())?;
                (port, admin_port, credentials) = (DATABASE_PORT, database::METRICS_PORT, Some(directory));
                let is_own = database.component == Component::FerretDb;
                counts = if is_own { Counts::OfFerretDb } else { Counts::Nothing };
                program = database.path;
            }
            Runs::Scripted(_) => {
                arguments.extend([
                    format!("--topology={}", self.topology.display()),
                    format!("--service={}", workload.qualified_name()),
                    format!("--listen=0.0.0.0:{SERVICE_PORT}"),
                    format!("--admin-listen={}:{COUNTERS_PORT}", Ipv4Addr::LOCALHOST),
                ]);
                arguments.extend_from_slice(connect);
                arguments
                    .extend(self.database_authority.map(|file| format!("--database-ca={}", file.display())));
                // Nodes do not count queries of their counters.
                counts = Counts::OfNode;
            }
            Runs::Service(settings) => {
                arguments.extend(synthetic_arguments(settings, workload));
                if workload.protocol.is_http() {
                    arguments.push(format!("--listen=0.0.0.0:{SERVICE_PORT}"));
                    admin_port = SERVICE_PORT;
                } else {
                    arguments.extend([listen_for_queries(), format!("--tcp-listen=0.0.0.0:{SERVICE_PORT}")]);
                }
            }
            Runs::ExternalService(settings) => {
                arguments.extend(synthetic_arguments(settings, workload));
                let (files, directory) = self.credentials(pod, name, ContainerUser::Lab)?;
                let option = if workload.protocol.is_http() { "--tls-listen" } else { "--tcp-tls-listen" };
                arguments.extend([
                    listen_for_queries(),
                    format!("{option}=0.0.0.0:{EXTERNAL_PORT}"),
                    format!("--tls-cert={}", files.certificate.display()),
                    format!("--tls-key={}", files.key.display()),
                ]);
                (port, credentials) = (EXTERNAL_PORT, Some(directory));
            }
        }
        let container = pod.start(&ContainerSpec {
            arguments: arguments.into_iter().map(Into::into).collect(),
            limits: workload.resources,
            user: server_user(confined.as_ref()),
            confined,
            ..self.context.container(name, &program)
        })?;
        let admin = pod.admin(name, admin_port);
        Ok(Some(RunningService { container, port, credentials, admin, counts }))
    }

    /// Issues a certificate for the external name and the pod's address, in a private directory.
    fn credentials(
        &self,
        pod: &Pod,
        name: &str,
        user: ContainerUser,
    ) -> Result<(CredentialFiles, PrivateDir)> {
        let operation = "make the certificate of the external service";
        let credentials = self.context.authority.issue_server(&[EXTERNAL_HOST], &[pod.address().into()]);
        let credentials = credentials.context(operation)?;
        let directory = format!("t{}-{name}-credentials", self.context.number);
        let directory = PrivateDir::create(self.context.lab, &directory, user)?;
        let files = credentials.write(directory.path(), self.context.lab.user_of(user)).context(operation)?;
        Ok((files, directory))
    }
}

/// Plaintext listener for queries of counters only, on the pod's loopback.
fn listen_for_queries() -> String {
    format!("--listen={}:{COUNTERS_PORT}", Ipv4Addr::LOCALHOST)
}
